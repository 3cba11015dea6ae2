//! Derives a run on this machine from a scenario of the paper.

use super::FigureOptions;
use crate::cache::{DiskOptions, EngineSpec, Length, Options, PaperObjects, Work};
use crate::core::keys::Distribution;

/// Default measured time of a scenario.
const SECONDS: f64 = 3.0;
/// Multiple of all keys and values for a disk that holds everything: room for rewritten records not yet merged.
const ROOM: u64 = 2;
/// And at least this many bytes.
const MIN_DISK_BYTES: u64 = 64 << 20;
/// Warm-up operations per record that the memory would hold uncompressed.
const WARMUP: f64 = 2.0;
/// Bytes of a key.
const KEY_BYTES: f64 = 16.0;

/// Key distribution: 80% of the operations are on this part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Locality {
    /// 8% of the keys.
    Strong,
    /// 20%.
    Moderate,
    /// 64%.
    Weak,
    /// All alike.
    Zero,
}

impl Locality {
    pub(super) const ALL: [Self; 4] = [Self::Strong, Self::Moderate, Self::Weak, Self::Zero];

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Strong => "strong",
            Self::Moderate => "moderate",
            Self::Weak => "weak",
            Self::Zero => "uniform",
        }
    }

    fn distribution(self) -> Distribution {
        let hot = |keys_pct| Distribution::HotSet {
            keys_pct,
            operations_pct: 80.0,
        };
        match self {
            Self::Strong => hot(8.0),
            Self::Moderate => hot(20.0),
            Self::Weak => hot(64.0),
            Self::Zero => Distribution::Uniform,
        }
    }
}

/// The tier on a disk.
#[derive(Debug, Clone, Copy)]
pub(super) enum DiskSize {
    /// All keys and values fit.
    All,
    /// A multiple of `-m`.
    TimesMemory(f64),
}

/// A scenario of the paper.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// Its name within the figure.
    pub(super) name: String,
    /// The paper's result, in its own units.
    pub(super) paper: Option<&'static str>,
    /// DRAM, in parts of `-m`.
    pub(super) memory: f64,
    /// Keys and values, in times of `-m`.
    pub(super) working_set: f64,
    pub(super) disk: DiskSize,
    pub(super) locality: Locality,
    pub(super) put_pct: f64,
    pub(super) objects: PaperObjects,
    /// Operations before other keys become hot and all of them, before they are scaled.
    pub(super) shift: Option<(u64, u64)>,
    /// The warm-up has as many operations as there are keys: what is on the disk must settle too.
    pub(super) is_warmed_by_key: bool,
    pub(super) seconds: f64,
}

impl Plan {
    /// The paper's objects by moderate locality, half of the operations writes; all fits into memory and disk, the
    /// memory has a part of it.
    pub(super) fn fitting(name: impl Into<String>, working_set: f64) -> Self {
        Self {
            name: name.into(),
            paper: None,
            memory: 1.0,
            working_set,
            disk: DiskSize::All,
            locality: Locality::Moderate,
            put_pct: 50.0,
            objects: PaperObjects::default(),
            shift: None,
            is_warmed_by_key: false,
            seconds: SECONDS,
        }
    }
}

/// A scenario of a figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Its name within the figure.
    pub name: String,
    /// The paper's result, in its own units.
    pub paper: Option<&'static str>,
    /// The options.
    pub options: Options,
}

impl Scenario {
    pub(super) fn new(plan: Plan, figure: &FigureOptions) -> Self {
        let memory = figure.memory_bytes as f64 * figure.scale;
        let memory_bytes = (memory * plan.memory) as u64;
        let working_set_bytes = (memory * plan.working_set) as u64;
        let scaled = |operations: u64| ((operations as f64 * figure.scale) as u64).max(1);
        let shortest = plan.objects.value_bytes.iter().min().copied().unwrap_or(0);
        let record_bytes = KEY_BYTES + f64::from(shortest);
        let warmup = if plan.is_warmed_by_key {
            working_set_bytes as f64 / record_bytes
        } else {
            WARMUP * memory_bytes as f64 / record_bytes
        };
        let own_length = match plan.shift {
            Some((_, operations)) => Length::Operations(scaled(operations)),
            None => Length::Seconds(plan.seconds),
        };
        let engines = figure.engines();
        let disk = engines.iter().any(EngineSpec::has_disk).then(|| DiskOptions {
            bytes: match plan.disk {
                DiskSize::All => (ROOM * working_set_bytes).max(MIN_DISK_BYTES),
                DiskSize::TimesMemory(times) => (memory * times) as u64,
            },
            path: figure.disk_path.clone(),
        });
        let options = Options {
            engines,
            memory_bytes,
            disk,
            distribution: Some(plan.locality.distribution()),
            working_set_bytes: Some(working_set_bytes),
            shift_at: plan.shift.map(|(at, _)| scaled(at)),
            write_pct: plan.put_pct,
            threads: figure.threads,
            load: true,
            warmup_operations: Some(figure.warmup_operations.unwrap_or(warmup as u64)),
            length: Some(figure.length.unwrap_or(own_length)),
            backend_us: figure.backend_us,
            seed: figure.seed,
            ..Options::new(Work::Paper(plan.objects))
        };
        Self {
            name: plan.name,
            paper: plan.paper,
            options,
        }
    }

    /// Bytes of its shortest key and value.
    pub(super) fn record_bytes(&self) -> f64 {
        let Work::Paper(objects) = &self.options.work else {
            return KEY_BYTES;
        };
        let shortest = objects.value_bytes.iter().min().copied().unwrap_or(0);
        KEY_BYTES + f64::from(shortest)
    }
}
