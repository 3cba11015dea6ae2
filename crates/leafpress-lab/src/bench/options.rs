//! The options of a run, and their bounds.

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{OsStringValueParser, PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args};
use serde::{Deserialize, Serialize};

use super::numbers::{known, number, share, size, whole};
use super::{Builtin, Dump, Input, Law, Operation, Pin, TreeOptions, ValueSource, Ycsb};
use crate::core::keys::{Distribution, KeyShape, LoadOrder};
use crate::core::words::between;
use crate::core::{Bytes, LabError};
use crate::harness::MAX_THREADS;

/// Longest key with its prefix, in bytes: PiBench's.
pub const MAX_KEY_BYTES: usize = 128;
/// Longest value, in bytes.
pub const MAX_VALUE_BYTES: usize = 1 << 20;
/// Most records of a scan.
pub const MAX_SCAN: usize = 1 << 20;
/// Most records to load.
pub const MAX_RECORDS: u64 = 1 << 40;
/// Most operations of a run.
pub const MAX_OPERATIONS: u64 = 1 << 50;
/// Longest run in time mode, and longest warm-up, in seconds: 30 days.
pub const MAX_SECONDS: f64 = 2_592_000.0;
/// Longest window of samples, in milliseconds: an hour.
pub const MAX_SAMPLING_MS: u64 = 3_600_000;
/// Most repetitions.
pub const MAX_REPEAT: usize = 1000;
/// Tolerance of the sum of the ratios.
const RATIO_TOLERANCE: f64 = 1e-6;

/// The end condition of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// [`Options::operations`] done.
    Operation,
    /// [`Options::seconds`] past.
    Time,
}

impl Mode {
    fn of(word: String) -> Self {
        match word.eq_ignore_ascii_case("time") {
            true => Self::Time,
            false => Self::Operation,
        }
    }
}

/// The share of each operation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Args)]
pub struct Ratios {
    /// Ratio of read operations; all ratios sum to 1 [default: 1]
    #[arg(
        short = 'r', long = "read_ratio", alias = "read-ratio", value_name = "RATIO", value_parser = share(),
        allow_negative_numbers = true
    )]
    pub read: f64,
    /// Ratio of insert operations [default: 0]
    #[arg(
        short = 'i', long = "insert_ratio", alias = "insert-ratio", value_name = "RATIO", value_parser = share(),
        allow_negative_numbers = true
    )]
    pub insert: f64,
    /// Ratio of update operations [default: 0]
    #[arg(
        short = 'u', long = "update_ratio", alias = "update-ratio", value_name = "RATIO", value_parser = share(),
        allow_negative_numbers = true
    )]
    pub update: f64,
    /// Ratio of remove operations [default: 0]
    #[arg(
        short = 'd', long = "remove_ratio", alias = "remove-ratio", value_name = "RATIO", value_parser = share(),
        allow_negative_numbers = true
    )]
    pub remove: f64,
    /// Ratio of scan operations [default: 0]
    #[arg(
        short = 's', long = "scan_ratio", alias = "scan-ratio", value_name = "RATIO", value_parser = share(),
        allow_negative_numbers = true
    )]
    pub scan: f64,
    /// A point read and then an update of the same key: YCSB F.
    #[arg(skip)]
    pub read_modify_write: f64,
}

impl Ratios {
    /// No operation at all.
    pub const NONE: Self = Self {
        read: 0.0,
        insert: 0.0,
        update: 0.0,
        remove: 0.0,
        scan: 0.0,
        read_modify_write: 0.0,
    };

    /// Returns the share of one operation.
    pub fn of(&self, operation: Operation) -> f64 {
        match operation {
            Operation::Read => self.read,
            Operation::Insert => self.insert,
            Operation::Update => self.update,
            Operation::Remove => self.remove,
            Operation::Scan => self.scan,
            Operation::ReadModifyWrite => self.read_modify_write,
        }
    }

    /// Returns the sum of all shares; 1 in a valid mix.
    pub fn sum(&self) -> f64 {
        super::outcome::OPERATIONS
            .iter()
            .map(|operation| self.of(*operation))
            .sum()
    }

    fn validate(&self) -> Result<(), LabError> {
        for (option, share) in [
            ("read_ratio", self.read),
            ("insert_ratio", self.insert),
            ("update_ratio", self.update),
            ("remove_ratio", self.remove),
            ("scan_ratio", self.scan),
        ] {
            between(option, share, 0.0, 1.0)?;
        }
        let sum = self.sum();
        if (sum - 1.0).abs() > RATIO_TOLERANCE {
            return Err(LabError::option(
                "read_ratio",
                format!(
                    "the ratios must sum to 1, but sum to {} (read {}, insert {}, update {}, remove {}, scan {}; \
                     read_ratio is 1 unless given)",
                    (sum * 1e9).round() / 1e9,
                    self.read,
                    self.insert,
                    self.update,
                    self.remove,
                    self.scan
                ),
            ));
        }
        Ok(())
    }
}

/// A run of the benchmark, with its flags. The defaults are PiBench's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Args)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The index to benchmark.
    #[arg(skip = Input::Builtin(Builtin::Dummy))]
    pub input: Input,
    /// Records to load, up to [`MAX_RECORDS`].
    #[arg(skip)]
    pub records: u64,
    /// Number of operations to execute, over all threads [default: 1000000]
    #[arg(short = 'p', long, value_parser = whole::<u64>(0, MAX_OPERATIONS), allow_negative_numbers = true)]
    pub operations: u64,
    /// Number of threads to use [default: 1]
    #[arg(short = 't', long, value_parser = whole::<usize>(1, MAX_THREADS as u64), allow_negative_numbers = true)]
    pub threads: usize,
    /// Prefix string prepended to every key
    #[arg(short = 'f', long = "key_prefix", alias = "key-prefix", value_name = "PREFIX")]
    pub key_prefix: String,
    /// Size of keys in bytes, without prefix (PiBench's README says 4; PiBench itself takes 8) [default: 8]
    #[arg(
        short = 'k', long = "key_size", aliases = ["key-size", "key-bytes"], value_name = "BYTES",
        value_parser = size(1, MAX_KEY_BYTES as u64), allow_negative_numbers = true
    )]
    pub key_size: usize,
    /// Shape of the keys: dense (the best case), scattered, text, uuid, path [default: PiBench's, which are scattered]
    #[arg(long = "key_shape", alias = "key-shape", value_name = "SHAPE", help_heading = "Ours")]
    pub key_shape: Option<KeyShape>,
    /// Order in which dense keys and records are loaded: random or sequential [default: random]
    #[arg(
        long = "load_order",
        alias = "load-order",
        value_name = "ORDER",
        help_heading = "Ours"
    )]
    pub load_order: LoadOrder,
    /// Take keys and values from here.
    #[arg(skip)]
    pub dump: Option<Dump>,
    /// Size of values in bytes (PiBench's README says 4; PiBench itself takes 8) [default: 8]
    #[arg(
        short = 'v', long = "value_size", aliases = ["value-size", "value-bytes"], value_name = "BYTES",
        value_parser = size(1, MAX_VALUE_BYTES as u64), allow_negative_numbers = true
    )]
    pub value_size: usize,
    /// The mix of operations.
    #[command(flatten)]
    pub ratios: Ratios,
    /// Number of records per scan [default: 100]
    #[arg(
        long = "scan_size", alias = "scan-size", value_name = "RECORDS",
        value_parser = whole::<usize>(1, MAX_SCAN as u64), allow_negative_numbers = true
    )]
    pub scan_size: usize,
    /// Whether scans have 1 to `scan_size` records, evenly, and not always `scan_size`: YCSB E.
    #[arg(skip)]
    pub scan_size_varies: bool,
    /// Sampling window in milliseconds [default: 1000]
    #[arg(
        long = "sampling_ms", alias = "sampling-ms", value_name = "MS", value_parser = whole::<u64>(1, MAX_SAMPLING_MS),
        allow_negative_numbers = true
    )]
    pub sampling_ms: u64,
    /// How ids are chosen.
    #[arg(skip = Law::Uniform)]
    pub law: Law,
    /// Skew of the key distribution: above 0 to 0.5 for self-similar, 0 to below 1 for zipfian and latest [default:
    /// 0.2; 0.99 for latest and YCSB]
    #[arg(
        long, value_name = "SKEW",
        value_parser = number("above 0 to 0.5 for self-similar, 0 to below 1 for zipfian and latest"),
        allow_negative_numbers = true
    )]
    pub skew: f64,
    /// For --distribution hotset: percentage of keys that are hot, percentage of operations on them [default: 20,80]
    #[arg(long, value_name = "KEYS,OPERATIONS", help_heading = "Ours", display_order = 28, value_parser = percentages)]
    pub hotset: (f64, f64),
    /// Seed of every random choice [default: 1729]
    #[arg(long, value_parser = whole::<u64>(0, u64::MAX), allow_negative_numbers = true)]
    pub seed: u64,
    /// What ends the run: operation or time [default: operation]
    #[arg(
        short = 'm', long, value_name = "MODE", ignore_case = true,
        value_parser = PossibleValuesParser::new(["operation", "time"]).map(Mode::of)
    )]
    pub mode: Mode,
    /// Length of the run in seconds, in time mode [default: 20]
    #[arg(
        long, value_name = "SECONDS", value_parser = number(format!("more than 0 and at most {MAX_SECONDS}")),
        allow_negative_numbers = true
    )]
    pub seconds: f64,
    /// Read hardware metrics (perf events); --pcm=false turns them off [default: true]
    #[arg(
        long = "pcm", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
        action = ArgAction::Set
    )]
    pub hardware: bool,
    /// Path of a persistent pool, passed to the wrapper
    #[arg(
        long = "pool_path", alias = "pool-path", value_name = "PATH",
        value_parser = OsStringValueParser::new().map(PathBuf::from)
    )]
    #[serde(with = "crate::core::paths")]
    pub pool_path: PathBuf,
    /// Size of a persistent pool in bytes, passed to the wrapper [default: 0]
    #[arg(
        long = "pool_size", alias = "pool-size", value_name = "BYTES", value_parser = Bytes::parse_u64,
        allow_negative_numbers = true
    )]
    pub pool_size: u64,
    /// Skip the load: the pool already has the records
    #[arg(
        long = "skip_load", alias = "skip-load", value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = ArgAction::Set
    )]
    pub skip_load: bool,
    /// Share of operations whose latency is measured, 0 to 1 [default: 0]
    #[arg(
        long = "latency_sampling", alias = "latency-sampling", value_name = "SHARE", value_parser = share(),
        allow_negative_numbers = true
    )]
    pub latency_sampling: f64,
    /// Concurrency control protocol, for wrappers of the fork: 0 Mono, 1 ORWC, 2 OLC
    #[arg(
        short = 'c', long, value_name = "0|1|2", value_parser = known::<u8>("0, 1 or 2"), allow_negative_numbers = true
    )]
    pub protocol: Option<u8>,
    /// Clock, for wrappers of the fork: 0 optimistic, 1 sync, 2 free (3 in the fork's own help)
    #[arg(
        short = 'x', long, value_name = "0|1|2|3", value_parser = known::<u8>("0, 1, 2 or 3"),
        allow_negative_numbers = true
    )]
    pub clock: Option<u8>,
    /// Garbage collector, for wrappers of the fork: 0 off, 1 on
    #[arg(
        short = 'g', long = "garbage_collector", alias = "garbage-collector", value_name = "0|1",
        value_parser = known::<u8>("0 or 1"), allow_negative_numbers = true
    )]
    pub garbage_collector: Option<u8>,
    /// The YCSB workload of the mix, for titles.
    #[arg(skip)]
    pub ycsb: Option<Ycsb>,
    /// Open loop: issue this many operations per second; latency counts from the intended start
    #[arg(
        long, value_name = "OPS_PER_S", help_heading = "Ours", value_parser = number("more than 0 and at most 1e9"),
        allow_negative_numbers = true
    )]
    pub rate: Option<f64>,
    /// Source of values: pool, compressible:ETA (the share ETA is compressible), corpus:PATH (cuts of a file,
    /// directory, archive, or bundled sample) [default: pool]
    #[arg(
        long = "value_source", alias = "value-source", value_name = "SOURCE", help_heading = "Ours",
        value_parser = OsStringValueParser::new().try_map(|word| ValueSource::named(&word))
    )]
    pub value_source: ValueSource,
    /// Warm-up: run the same work this long before the run [default: 0]
    #[arg(
        long, aliases = ["warmup", "warmup_seconds"], value_name = "SECONDS", help_heading = "Ours",
        value_parser = number(format!("between 0 and {MAX_SECONDS}")), allow_negative_numbers = true
    )]
    pub warmup_seconds: f64,
    /// Pin threads: compact, spread or none [default: none]
    #[arg(long, value_name = "HOW", help_heading = "Ours")]
    pub pin: Pin,
    /// Repeat the run N times; report the median, with the spread [default: 1]
    #[arg(
        long, value_name = "N", help_heading = "Ours", value_parser = whole::<usize>(1, MAX_REPEAT as u64),
        allow_negative_numbers = true
    )]
    pub repeat: usize,
    /// Options of the Leafpress tree: leaf_bytes=, frame_bytes=, landing_bytes=, shards=, background_threads=,
    /// landing_compaction_pct=, dictionary=0|1
    #[arg(long, value_name = "KEY=VALUE,...", help_heading = "Ours")]
    pub tree: TreeOptions,
}

impl Options {
    /// Default key length: PiBench's.
    pub const DEFAULT_KEY_SIZE: usize = 8;
    /// Default value length.
    pub const DEFAULT_VALUE_SIZE: usize = 8;

    /// Creates PiBench's defaults for an input.
    pub fn new(input: Input) -> Self {
        Self {
            input,
            records: 1_000_000,
            operations: 1_000_000,
            threads: 1,
            key_prefix: String::new(),
            key_size: 8,
            key_shape: None,
            load_order: LoadOrder::Random,
            dump: None,
            value_size: 8,
            ratios: Ratios {
                read: 1.0,
                ..Ratios::NONE
            },
            scan_size: 100,
            scan_size_varies: false,
            sampling_ms: 1000,
            law: Law::Uniform,
            skew: 0.2,
            hotset: (20.0, 80.0),
            seed: 1729,
            mode: Mode::Operation,
            seconds: 20.0,
            hardware: true,
            pool_path: PathBuf::new(),
            pool_size: 0,
            skip_load: false,
            latency_sampling: 0.0,
            protocol: None,
            clock: None,
            garbage_collector: None,
            ycsb: None,
            rate: None,
            value_source: ValueSource::Pool,
            warmup_seconds: 0.0,
            pin: Pin::None,
            repeat: 1,
            tree: TreeOptions::default(),
        }
    }

    /// Sets the mix and the key choice of a YCSB workload.
    pub fn set_ycsb(&mut self, workload: Ycsb) {
        self.ycsb = Some(workload);
        self.ratios = workload.ratios();
        self.law = workload.law();
        self.skew = super::ycsb::SKEW;
        self.scan_size_varies = workload == Ycsb::E;
    }

    /// Sets the shape of keys, and their length if the shape defines it.
    pub fn set_key_shape(&mut self, shape: KeyShape) {
        self.key_shape = Some(shape);
        if !shape.has_key_bytes() {
            self.key_size = shape.longest(self.key_size);
        }
    }

    /// Returns the length of a key with its prefix, in bytes; of the longest where they differ.
    pub fn key_bytes(&self) -> usize {
        self.key_prefix.len() + self.key_size
    }

    /// Returns the length of every key and of every value in bytes; `None` where they differ.
    pub fn fixed_lengths(&self) -> Option<(usize, usize)> {
        let keys_alike = self.key_shape.is_none_or(|shape| shape.fixed(self.key_size).is_some());
        (self.dump.is_none() && keys_alike).then(|| (self.key_bytes(), self.value_size))
    }

    /// Describes a record: the lengths of key and value, and their source if not PiBench's.
    pub fn record(&self) -> String {
        match (&self.dump, self.key_shape) {
            (Some(dump), _) => format!("from {dump}"),
            (None, Some(shape)) => {
                let up_to = if self.fixed_lengths().is_some() { "" } else { "up to " };
                format!("of {up_to}{} ({shape}) + {} bytes", self.key_bytes(), self.value_size)
            }
            (None, None) => format!("of {} + {} bytes", self.key_bytes(), self.value_size),
        }
    }

    /// Returns how ids are chosen, with the parameters.
    ///
    /// # Errors
    /// [`LabError::Option`] when they are out of the distribution's bounds.
    pub fn distribution(&self) -> Result<Distribution, LabError> {
        self.law.with(self.skew, self.hotset.0, self.hotset.1)
    }

    /// Checks every bound and the compatibility of options. Reads no file.
    ///
    /// # Errors
    /// [`LabError::Option`], the first at fault.
    pub fn validate(&self) -> Result<(), LabError> {
        between("records", self.records, 0, MAX_RECORDS)?;
        between("operations", self.operations, 0, MAX_OPERATIONS)?;
        between("threads", self.threads, 1, MAX_THREADS)?;
        let longest_key = MAX_KEY_BYTES.saturating_sub(self.key_prefix.len());
        if longest_key == 0 {
            return Err(LabError::option(
                "key_prefix",
                format!(
                    "{} bytes leave no room for a key: a prefix has at most {}, as prefix and key together have at \
                     most {MAX_KEY_BYTES}",
                    self.key_prefix.len(),
                    MAX_KEY_BYTES - 1
                ),
            ));
        }
        if self.key_size < 1 || self.key_size > longest_key {
            return Err(LabError::option(
                "key_size",
                format!(
                    "{} is not between 1 and {longest_key} (prefix and key together are at most {MAX_KEY_BYTES} bytes)",
                    self.key_size
                ),
            ));
        }
        between("value_size", self.value_size, 1, MAX_VALUE_BYTES)?;
        self.ratios.validate()?;
        between("scan_size", self.scan_size, 1, MAX_SCAN)?;
        between("sampling_ms", self.sampling_ms, 1, MAX_SAMPLING_MS)?;
        self.distribution()?;
        if !(self.seconds > 0.0 && self.seconds <= MAX_SECONDS) {
            let mode = if self.mode == Mode::Time {
                ": time mode needs a length"
            } else {
                ""
            };
            return Err(LabError::option(
                "seconds",
                format!(
                    "{} must be greater than 0 and at most {MAX_SECONDS}{mode}",
                    self.seconds
                ),
            ));
        }
        between("latency_sampling", self.latency_sampling, 0.0, 1.0)?;
        for (option, value, known) in [
            ("protocol", self.protocol, [0, 1, 2].as_slice()),
            // The fork's help says 3 for the free clock, its code 2.
            ("clock", self.clock, &[0, 1, 2, 3]),
            ("garbage_collector", self.garbage_collector, &[0, 1]),
        ] {
            if let Some(value) = value.filter(|value| !known.contains(value)) {
                return Err(LabError::option(option, format!("{value} is not one of {known:?}")));
            }
        }
        if let Some(rate) = self.rate
            && !(rate > 0.0 && rate <= 1e9)
        {
            return Err(LabError::option(
                "rate",
                format!("{rate} must be greater than 0 and at most 1e9"),
            ));
        }
        between("warmup-seconds", self.warmup_seconds, 0.0, MAX_SECONDS)?;
        between("repeat", self.repeat, 1, MAX_REPEAT)?;
        self.tree.validate()?;
        self.validate_together()
    }

    /// Combinations that cannot work.
    fn validate_together(&self) -> Result<(), LabError> {
        if self.ratios.scan > 0.0 && !self.input.scans() {
            return Err(LabError::option(
                "scan_ratio",
                format!(
                    "{} is unordered and cannot scan: it can find, insert, update and remove",
                    self.input
                ),
            ));
        }
        self.validate_keys()?;
        if self.records == 0 && self.ratios.insert < 1.0 {
            return Err(LabError::option(
                "records",
                "0 records leave nothing to read, update, remove or scan; only a run of inserts (-r 0 -i 1) can start \
                 empty",
            ));
        }
        if self.repeat > 1 && self.skip_load && self.ratios.insert + self.ratios.remove > 0.0 {
            return Err(LabError::option(
                "repeat",
                "with skip_load, one repetition's inserts and removes would affect the next",
            ));
        }
        let inserts = match self.mode {
            Mode::Operation => self.operations as f64 * self.ratios.insert,
            // Time decides how many there will be; keys that come round again are inserts that do not succeed.
            Mode::Time => 0.0,
        };
        if self.key_size < 8 && self.dump.is_none() {
            let keys = 256_f64.powi(self.key_size as i32) - 1.0;
            if self.records as f64 + inserts > keys {
                return Err(LabError::option(
                    "key_size",
                    format!(
                        "{} bytes make {keys} different keys, but {} records and about {} inserts need one each",
                        self.key_size,
                        self.records,
                        inserts.round()
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Shapes and records that cannot work with an index, or with other options.
    fn validate_keys(&self) -> Result<(), LabError> {
        let option = if self.dump.is_some() { "records" } else { "key_shape" };
        if self.dump.is_some() && (self.key_shape.is_some() || !self.key_prefix.is_empty()) {
            let given = if self.key_shape.is_some() {
                "key_shape"
            } else {
                "key_prefix"
            };
            return Err(LabError::option(
                given,
                "records have their own keys: omit it with --records FORMAT",
            ));
        }
        if let Some(shape) = self.key_shape {
            shape.validate(self.key_size).map_err(|_| {
                LabError::option(
                    "key_size",
                    format!("{} is less than 8 bytes, the minimum of scattered keys", self.key_size),
                )
            })?;
        }
        if self.fixed_lengths().is_none() {
            if let Input::Library(_) = self.input {
                return Err(LabError::option(
                    option,
                    format!("{} requires keys and values of fixed length", self.input),
                ));
            }
            let masstree = matches!(self.input, Input::Builtin(Builtin::Masstree));
            if masstree && self.ratios.scan > 0.0 {
                return Err(LabError::option(
                    "scan_ratio",
                    "masstree's scans skip records if keys differ in length",
                ));
            }
        }
        let ordered = self.dump.is_some() || self.key_shape.is_some_and(KeyShape::keeps_order);
        if self.load_order == LoadOrder::Sequential && !ordered {
            return Err(LabError::option(
                "load_order",
                "only dense keys and records can be loaded in key order; others are generated in random order",
            ));
        }
        Ok(())
    }

    /// Limits of a repetition: operations of thread `thread`, the remainder going to the first threads; `None` in time
    /// mode.
    pub(super) fn operations_of(&self, thread: usize) -> Option<u64> {
        let (threads, thread) = (self.threads as u64, thread as u64);
        (self.mode == Mode::Operation)
            .then(|| self.operations / threads + u64::from(thread < self.operations % threads))
    }
}

fn percentages(text: &str) -> Result<(f64, f64), LabError> {
    let numbers = text.split_once(',').and_then(|(keys, operations)| {
        Some((f64::from_str(keys.trim()).ok()?, f64::from_str(operations.trim()).ok()?))
    });
    numbers.ok_or_else(|| {
        LabError::option(
            "hotset",
            format!("`{text}`: use KEYS,OPERATIONS in percent, as in 20,80"),
        )
    })
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
