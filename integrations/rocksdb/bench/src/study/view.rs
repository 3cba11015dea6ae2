//! A study for people and programs.

use leafpress_lab::Bytes;
use leafpress_lab::report::palette::colours;
use leafpress_lab::report::{Document, NOT_APPLICABLE, Table, tsv};
use plotters::style::RGBColor;

use super::{Access, Cell, Study, median};
use crate::report::Row;
use crate::report::cells::{change, figure, size, throughput};
use crate::report::tables::number;
use crate::{Compression, Outcome, Shape};

/// The colour of the baseline.
pub(crate) const BASELINE_HUE: RGBColor = RGBColor(0xe8, 0x7a, 0x24);

/// Returns a shape in few words: `16K blocks, 256 B values`.
pub fn shape_name(shape: &Shape) -> String {
    format!("{} blocks, {} B values", Bytes(shape.block_bytes), shape.value_bytes)
}

/// Colours of compressions in order: the codec decides, so that one looks the same in every chart.
pub fn hues(compressions: &[&Compression]) -> Vec<RGBColor> {
    let mut codecs: Vec<String> = Vec::new();
    for compression in compressions {
        let codec = compression.codec();
        if !codecs.contains(&codec) {
            codecs.push(codec);
        }
    }
    let hues = colours(codecs.iter().map(|name| Some(name.as_str())));
    let hue = |compression: &&Compression| {
        codecs
            .iter()
            .position(|codec| *codec == compression.codec())
            .and_then(|at| hues.get(at))
    };
    compressions
        .iter()
        .filter_map(|compression| hue(compression).copied())
        .collect()
}

/// Returns the figures of the baseline in an access pattern: medians over all pairs.
fn baseline(study: &Study, access: Access, of: impl Fn(&Outcome) -> Option<f64>) -> Option<f64> {
    let cells = study.cells.iter().filter(|cell| cell.access == access);
    median(
        cells
            .flat_map(|cell| cell.pairs.iter())
            .filter_map(|pair| of(&pair.baseline)),
    )
}

impl Study {
    /// Returns the cells of an access pattern that measured something.
    pub fn cells(&self, access: Access) -> impl Iterator<Item = &Cell> {
        self.cells
            .iter()
            .filter(move |cell| cell.access == access && !cell.pairs.is_empty())
    }

    /// Adds the tables of all access patterns, the baseline first, each under what it is of. `mark` gives what is put
    /// behind the names of the rows of an access pattern, by their numbers.
    pub(crate) fn tables(&self, document: &mut Document<'_>, mark: impl Fn(Access) -> Vec<(usize, &'static str)>) {
        for access in &self.plan.accesses {
            if let Some(mut table) = self.table(*access) {
                for (number, mark) in mark(*access) {
                    table.rows[number][0].text += mark;
                }
                document.table(table);
            }
        }
    }

    fn table(&self, access: Access) -> Option<Table> {
        let cells: Vec<&Cell> = self.cells(access).collect();
        cells.first()?;
        let mut headings = vec![
            "compression",
            "Mops/s",
            "throughput\n%",
            "least..most\n%",
            "p99\nus",
            "p99\n%",
            "data",
            "data\n%",
            "bytes\nper key",
            "CPU us\nper op",
            "CPU per\nop %",
        ];
        if self.plan.ladder {
            headings.push("CPU saved at its\nthroughput %");
        }
        let rows = cells.iter().map(|cell| self.row(cell));
        let rows = std::iter::once(self.baseline_row(access)).chain(rows);
        let compressions: Vec<_> = cells.iter().map(|cell| &cell.compression).collect();
        let table = Table {
            title: format!("{}, {access}", shape_name(&self.plan.shape)),
            hues: std::iter::once(BASELINE_HUE).chain(hues(&compressions)).collect(),
            ..Table::new(headings, rows)
        };
        Some(table.parts(&[
            ("", &[1, 2, 7]),
            ("Latency, and CPU of an operation", &[4, 5, 9, 10]),
            ("Range of the throughput, CPU saved", &[3, 11]),
            ("Bytes of files", &[6, 8]),
        ]))
    }

    fn row(&self, cell: &Cell) -> Vec<String> {
        let keys = self.plan.shape.keys().max(1) as f64;
        let range = cell.throughput_range_pct();
        let mut row = vec![
            cell.compression.to_string(),
            throughput(cell.figure(|outcome| Some(outcome.throughput()))),
            change(cell.throughput_change_pct()),
            range.map_or_else(String::new, |(least, most)| format!("{least:+.0}..{most:+.0}")),
            figure(cell.figure(Outcome::p99_us)),
            change(cell.p99_change_pct()),
            size(Some(cell.loaded_bytes as f64)),
            change(cell.size_change_pct()),
            format!("{:.1}", cell.loaded_bytes as f64 / keys),
            figure(cell.figure(|outcome| Some(outcome.cpu_us()))),
            change(cell.cpu_change_pct()),
        ];
        if self.plan.ladder {
            let sign = cell.ladder.as_ref().is_some_and(|ladder| !ladder.reaches());
            let saved = cell.cpu_saved_pct().map(|saved| format!("{saved:.1}"));
            row.push(match (saved, sign) {
                (None, _) => NOT_APPLICABLE.into(),
                (Some(saved), false) => saved,
                (Some(saved), true) => format!("{saved} *"),
            });
        }
        row
    }

    /// Returns the first row of the table.
    fn baseline_row(&self, access: Access) -> Vec<String> {
        let keys = self.plan.shape.keys().max(1) as f64;
        let of_baseline = |of: fn(&Outcome) -> Option<f64>| baseline(self, access, of);
        let bytes = self.cells(access).map(|cell| cell.baseline_bytes).next().unwrap_or(0);
        let mut row = vec![
            self.plan.baseline.to_string(),
            throughput(of_baseline(|outcome| Some(outcome.throughput()))),
            "0".into(),
            String::new(),
            figure(of_baseline(Outcome::p99_us)),
            "0".into(),
            size(Some(bytes as f64)),
            "0".into(),
            format!("{:.1}", bytes as f64 / keys),
            figure(of_baseline(|outcome| Some(outcome.cpu_us()))),
            "0".into(),
        ];
        if self.plan.ladder {
            row.push("0".into());
        }
        row
    }

    /// Reads that did not return what their keys hold, in all runs.
    pub fn mismatches(&self) -> u64 {
        self.runs.iter().map(|row| row.outcome.mismatches).sum()
    }

    /// Returns the caveats, in lines.
    pub fn troubles(&self) -> Vec<String> {
        let name = shape_name(&self.plan.shape);
        let failed = self
            .failures
            .iter()
            .map(|(compression, reason)| format!("failed: {name}, {compression}: {reason}"));
        let wrong = self.runs.iter().filter_map(Row::wrong_answers);
        let wrong = wrong.map(|wrong| format!("WRONG ANSWERS: {name}, {wrong}"));
        failed.chain(wrong).collect()
    }
}

type Column = (&'static str, fn(&(&Study, &Cell)) -> tsv::Cell);

/// The columns of `summary.tsv`, in order.
const COLUMNS: [Column; 21] = [
    ("access", |(_, cell)| tsv::word(cell.access)),
    ("block_bytes", |(study, _)| tsv::word(study.plan.shape.block_bytes)),
    ("value_bytes", |(study, _)| tsv::word(study.plan.shape.value_bytes)),
    ("compression", |(_, cell)| tsv::word(&cell.compression)),
    ("baseline", |(study, _)| tsv::word(&study.plan.baseline)),
    ("instances", |(study, _)| tsv::word(study.plan.shape.instances)),
    ("threads_per_instance", |(study, cell)| {
        tsv::word(study.plan.threads(cell.access))
    }),
    ("keys", |(study, _)| tsv::word(study.plan.shape.keys())),
    ("pairs", |(_, cell)| tsv::word(cell.pairs.len())),
    ("ops_per_second", |(_, cell)| {
        number(cell.figure(|outcome| Some(outcome.throughput())))
    }),
    ("throughput_change_pct", |(_, cell)| {
        number(cell.throughput_change_pct())
    }),
    ("throughput_change_least_pct", |(_, cell)| {
        number(cell.throughput_range_pct().map(|(least, _)| least))
    }),
    ("throughput_change_most_pct", |(_, cell)| {
        number(cell.throughput_range_pct().map(|(_, most)| most))
    }),
    ("read_p99_us", |(_, cell)| number(cell.figure(Outcome::p99_us))),
    ("read_p99_change_pct", |(_, cell)| number(cell.p99_change_pct())),
    ("sst_bytes", |(_, cell)| tsv::word(cell.loaded_bytes)),
    ("size_change_pct", |(_, cell)| number(cell.size_change_pct())),
    ("cpu_us_per_op", |(_, cell)| {
        number(cell.figure(|outcome| Some(outcome.cpu_us())))
    }),
    ("cpu_per_op_change_pct", |(_, cell)| number(cell.cpu_change_pct())),
    ("cpu_saved_at_baseline_throughput_pct", |(_, cell)| {
        number(cell.cpu_saved_pct())
    }),
    ("mismatches", |(_, cell)| {
        let pairs = cell.pairs.iter();
        tsv::word(
            pairs
                .map(|pair| pair.other.mismatches + pair.baseline.mismatches)
                .sum::<u64>(),
        )
    }),
];

/// `summary.tsv`: a line for each scenario and compression.
pub(crate) fn summary<'s>(studies: impl IntoIterator<Item = &'s Study>) -> String {
    let cells = studies.into_iter().flat_map(|study| {
        let measured = study.cells.iter().filter(|cell| !cell.pairs.is_empty());
        measured.map(move |cell| (study, cell))
    });
    tsv::columns(COLUMNS, cells, |of, row| of(row))
}
