//! Rows of an evaluation, turned: for each setting, codecs down and workloads across.

use crate::core::keys::LoadOrder;
use crate::core::latency::Latency;
use crate::eval::Row;
use crate::eval::Workload;
use crate::eval::landing_bytes::LandingBytes;

/// With more workloads a table has no room for what a put costs over time.
const WORKLOADS_WITH_WORK: usize = 5;

/// All settings of an evaluation.
#[derive(Debug)]
pub(super) struct Pivot<'r> {
    pub(super) settings: Vec<Setting<'r>>,
    /// Every codec of the evaluation, in order of first appearance: the index decides its colour in every chart.
    pub(super) codecs: Vec<String>,
}

/// The runs compared in one table or set of charts.
#[derive(Debug)]
pub(super) struct Setting<'r> {
    pub(super) threads: usize,
    pub(super) landing_bytes: LandingBytes,
    pub(super) background: bool,
    /// In the order tables show them, those that have a row.
    pub(super) workloads: Vec<Workload>,
    pub(super) lines: Vec<Line<'r>>,
}

/// One codec in one setting.
#[derive(Debug)]
pub(super) struct Line<'r> {
    pub(super) codec: String,
    rows: Vec<&'r Row>,
}

/// The codec as tables and charts name it: with what was preloaded under it.
fn codec_label(row: &Row) -> String {
    if row.spec.run == "zlib_accel" {
        format!("{} accel", row.spec.codec)
    } else {
        row.spec.codec.clone()
    }
}

impl<'r> Pivot<'r> {
    pub(super) fn new(rows: &'r [Row]) -> Self {
        let mut pivot = Self {
            settings: Vec::new(),
            codecs: Vec::new(),
        };
        for row in rows {
            let codec = codec_label(row);
            if !pivot.codecs.contains(&codec) {
                pivot.codecs.push(codec.clone());
            }
            pivot.setting_of(row).add(codec, row);
        }
        for setting in &mut pivot.settings {
            setting
                .workloads
                .sort_by_key(|workload| Workload::ALL.iter().position(|known| known == workload));
            let order = |line: &Line<'_>| pivot.codecs.iter().position(|codec| *codec == line.codec);
            setting.lines.sort_by_key(order);
        }
        pivot
    }

    fn setting_of(&mut self, row: &Row) -> &mut Setting<'r> {
        let spec = &row.spec;
        let found = self.settings.iter().position(|setting| {
            (setting.threads, setting.landing_bytes, setting.background)
                == (spec.threads, spec.landing_bytes, spec.background)
        });
        let index = found.unwrap_or_else(|| {
            self.settings.push(Setting {
                threads: spec.threads,
                landing_bytes: spec.landing_bytes,
                background: spec.background,
                workloads: Vec::new(),
                lines: Vec::new(),
            });
            self.settings.len() - 1
        });
        &mut self.settings[index]
    }
}

impl<'r> Setting<'r> {
    fn add(&mut self, codec: String, row: &'r Row) {
        if !self.workloads.contains(&row.spec.workload) {
            self.workloads.push(row.spec.workload);
        }
        match self.lines.iter_mut().find(|line| line.codec == codec) {
            Some(line) => line.rows.push(row),
            None => self.lines.push(Line { codec, rows: vec![row] }),
        }
    }

    pub(super) fn title(&self) -> String {
        let threads = if self.threads == 1 {
            "1 thread".into()
        } else {
            format!("{} threads", self.threads)
        };
        let background = if self.background { "on" } else { "off" };
        format!(
            "{threads}, landing bytes {}, background compaction {background}",
            self.landing_bytes
        )
    }

    /// How the runs' keys were loaded.
    pub(super) fn load_order(&self) -> Option<LoadOrder> {
        let row = self.lines.iter().find_map(|line| line.rows.first())?;
        Some(row.spec.base.load_order)
    }

    /// The workload whose throughput per core, and so whose CPU cost, the tables show.
    pub(super) fn main_workload(&self) -> Workload {
        self.workloads.first().copied().unwrap_or(Workload::ReadOnly)
    }

    /// The workload whose read latency the tables show: the purest one.
    pub(super) fn read_workload(&self) -> Option<Workload> {
        self.workloads.iter().copied().find(|workload| workload.shares()[0] > 0)
    }

    /// The workload for which the tables show what a put costs over time, where they have room for it.
    pub(super) fn work_workload(&self) -> Option<Workload> {
        self.write_workload()
            .filter(|_| self.workloads.len() <= WORKLOADS_WITH_WORK)
    }

    /// The workload whose write latency the tables show.
    pub(super) fn write_workload(&self) -> Option<Workload> {
        let point = self
            .workloads
            .iter()
            .copied()
            .filter(|workload| workload.shares()[2] == 0);
        point
            .max_by_key(|workload| workload.shares()[1])
            .filter(|workload| workload.shares()[1] > 0)
    }
}

impl<'r> Line<'r> {
    pub(super) fn row(&self, workload: Workload) -> Option<&'r Row> {
        self.rows.iter().copied().find(|row| row.spec.workload == workload)
    }

    /// Throughput in millions of operations per second.
    pub(super) fn mops(&self, workload: Workload) -> Option<f64> {
        self.row(workload).map(|row| row.result.qps() / 1e6)
    }

    /// Throughput per core's worth of CPU time, in millions of operations per second.
    pub(super) fn mops_per_core(&self, workload: Workload) -> Option<f64> {
        self.row(workload)?.result.qps_per_core().map(|qps| qps / 1e6)
    }

    pub(super) fn read_latency(&self, workload: Option<Workload>) -> Option<&'r Latency> {
        self.row(workload?)?.result.read_latency.as_ref()
    }

    pub(super) fn write_latency(&self, workload: Option<Workload>) -> Option<&'r Latency> {
        self.row(workload?)?.result.write_latency.as_ref()
    }

    /// Bytes copied and bytes compressed for each user byte that was put in the timed window; `None` for maps that do
    /// not report it.
    pub(super) fn work_per_byte_put(&self, workload: Workload) -> Option<[f64; 2]> {
        let counters = &self.row(workload)?.result.counters;
        let per_byte = |bytes: u64| bytes as f64 / counters.put_bytes as f64;
        (counters.copied_bytes > 0 && counters.put_bytes > 0)
            .then(|| [counters.copied_bytes, counters.compressed_bytes].map(per_byte))
    }

    /// Resident memory for each user byte after each load: the least and the most over the workloads.
    pub(super) fn resident_per_user_byte(&self) -> Option<(f64, f64)> {
        range(
            self.rows
                .iter()
                .filter_map(|row| row.result.loaded.resident_per_user_byte()),
        )
    }

    /// Why the figure is missing.
    pub(super) fn resident_unknown(&self) -> Option<&'r str> {
        if self.resident_per_user_byte().is_some() {
            return None;
        }
        self.rows
            .iter()
            .find_map(|row| row.result.loaded.rss_growth_unknown.as_deref())
    }

    /// The codec that the tree chose, in the last run.
    pub(super) fn chosen(&self) -> Option<&'r str> {
        let row = self.rows.last()?;
        row.result.ended.chosen(&row.spec.codec)
    }

    /// Bytes held per user byte at the end of each run: the least and the most over the workloads.
    pub(super) fn held_per_user_byte(&self) -> Option<(f64, f64)> {
        range(self.rows.iter().filter_map(|row| held_per_user_byte(row)))
    }
}

/// The least and the most.
fn range(figures: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    figures.fold(None, |range, figure| {
        let (least, most) = range.unwrap_or((figure, figure));
        Some((least.min(figure), most.max(figure)))
    })
}

/// Bytes held per user byte at the end of a run; `None` for an empty tree and for maps that do not report it.
pub(super) fn held_per_user_byte(row: &Row) -> Option<f64> {
    let memory = &row.result.ended;
    (memory.user_bytes > 0 && memory.bytes_held > 0).then(|| memory.bytes_held as f64 / memory.user_bytes as f64)
}
