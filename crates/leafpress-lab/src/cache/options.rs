//! Options of a comparison, and their bounds.

use std::path::PathBuf;

use clap::Args;
use leafpress::cache::{MIN_DISK_BYTES, MIN_MEMORY_BYTES};
use serde::{Deserialize, Serialize};

use super::engines::EngineSpec;
use super::mrc::MrcOptions;
use super::objects::PaperObjects;
use super::workload::{TraceFormat, check_scale};
use crate::core::corpus::{Cut, RecordFormat, Source};
use crate::core::keys::Distribution;
use crate::core::words::{as_text, between};
use crate::core::{Bytes, LabError, about, resources};
use crate::harness::MAX_THREADS;

/// Most bytes of keys and values that a working set may have.
pub const MAX_WORKING_SET_BYTES: u64 = 1 << 44;
/// Longest measured time, in seconds.
const MAX_SECONDS: f64 = 86_400.0;
/// Most operations of a warm-up or a run.
const MAX_OPERATIONS: u64 = 1 << 40;
/// Most requests per second.
const MAX_RATE: f64 = 1e8;
/// A cache is loaded with at most this multiple of the bytes of its memory and disk.
const LOADED: u64 = 3;
/// Longest time to live, in seconds: a year.
const MAX_TTL_SECONDS: u64 = 366 * 24 * 3600;

/// The backend's records, and the order of requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// The ZipCache paper's objects: keys of 16 bytes, values of 64 bytes of which half are zeros, unless they say
    /// else.
    Paper(PaperObjects),
    /// Values cut out of data, under keys of 16 bytes.
    Values {
        /// Their source.
        data: Source,
        /// How they are cut.
        cut: Cut,
    },
    /// The records of a dump, key and value.
    Records {
        /// Their source.
        data: Source,
        /// The dump's format.
        #[serde(with = "as_text")]
        format: RecordFormat,
    },
    /// The requests of a trace. It has lengths, but no values: those are made from a dump's records.
    Trace {
        /// The trace.
        #[serde(with = "crate::core::paths")]
        path: PathBuf,
        /// Its format; `None` derives it from the name.
        format: Option<TraceFormat>,
        /// Replay only this many requests.
        requests: Option<u64>,
        /// Source of the values' bytes.
        data: Source,
        /// Its format; `None` uses it as plain data.
        records: Option<RecordFormat>,
    },
    /// A workload of CacheBench: operations, popularity and lengths. Values are made as a trace's.
    #[serde(rename = "cachebench")]
    CacheBench {
        /// Its file.
        #[serde(with = "crate::core::paths")]
        path: PathBuf,
        /// Factor of its keys, more than 0 and at most 1.
        scale: f64,
        /// Source of the values' bytes.
        data: Source,
        /// Its format; `None` uses it as plain data.
        records: Option<RecordFormat>,
    },
}

/// For how long is measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Length {
    /// This many seconds.
    Seconds(f64),
    /// This many operations of all threads together.
    Operations(u64),
}

/// A tier on a disk, for the engines that have one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskOptions {
    /// Its maximum size in bytes.
    pub bytes: u64,
    /// The file.
    #[serde(with = "crate::core::paths")]
    pub path: PathBuf,
}

impl DiskOptions {
    /// Returns where engines that have many files have them: what the file is called, and `.d`.
    pub fn directory(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".d");
        name.into()
    }

    fn validate(&self, engines: &[EngineSpec]) -> Result<(), LabError> {
        if self.bytes < MIN_DISK_BYTES {
            let least = Bytes(MIN_DISK_BYTES);
            let reason = format!("{} is too small: at least {least}", Bytes(self.bytes));
            return Err(LabError::option("disk", reason));
        }
        let of_files = engines.iter().find(|engine| engine.needs_disk());
        let directory = of_files.map(|engine| (engine, self.directory()));
        let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let reason = match directory {
            _ if self.path.is_dir() => format!("{} is a directory: use a file in it", self.path.display()),
            _ if parent.is_some_and(|parent| parent.exists() && !parent.is_dir()) => {
                format!(
                    "{}: its parent is not a directory: use another file",
                    self.path.display()
                )
            }
            _ if self.path.is_file() => format!("{} exists already: use another file", self.path.display()),
            Some((engine, _)) if self.path.exists() && !self.path.is_dir() => {
                let path = self.path.display();
                format!("{path} is a device, and {engine} needs a file")
            }
            Some((_, directory)) if directory.exists() => {
                format!("{} exists already: remove it, or use another file", directory.display())
            }
            _ => return Ok(()),
        };
        Err(LabError::option("disk-path", reason))
    }
}

/// Options of a comparison, with the flags of most. Fields are in the order of `results.json`; `display_order` puts the
/// flags in the order of the help.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Args)]
pub struct Options {
    /// The caches.
    #[arg(skip)]
    pub engines: Vec<EngineSpec>,
    /// Total memory budget (RSS growth) [default: 64M, or the CacheBench file's]
    #[arg(short = 'm', long = "memory", value_name = "BYTES", help_heading = "Caches", value_parser = Bytes::parse_u64)]
    pub memory_bytes: u64,
    /// A disk tier.
    #[arg(skip)]
    pub disk: Option<DiskOptions>,
    /// The workload.
    #[arg(skip = Work::Paper(PaperObjects::default()))]
    pub work: Work,
    /// Distribution of keys; `None` is the workload's own. A trace has none, and a CacheBench file its own.
    #[arg(
        long,
        value_name = "DISTRIBUTION",
        help_heading = "Work",
        display_order = 25,
        help = "Distribution of keys: uniform, zipfian[:THETA] (or zipf), self-similar[:H], \
                hotset[:KEYS_PCT:OPERATIONS_PCT] [default: hotset:20:80 for the paper's objects, else zipfian:0.99]"
    )]
    pub distribution: Option<Distribution>,
    /// Total bytes of keys and values [default: 8 times the memory]
    #[arg(
        long = "working-set", value_name = "BYTES", help_heading = "Work", display_order = 24,
        value_parser = Bytes::parse_u64
    )]
    pub working_set_bytes: Option<u64>,
    /// Move the hot set after N measured operations of all threads
    #[arg(long, value_name = "OPERATIONS", help_heading = "Work", display_order = 25)]
    #[serde(default)]
    pub shift_at: Option<u64>,
    /// Percentage of the operations that overwrite a key with a new version [default: 0]
    #[arg(
        long = "writes",
        value_name = "PCT",
        allow_negative_numbers = true,
        help_heading = "Work",
        display_order = 40
    )]
    pub write_pct: f64,
    /// Time to live of records [default: none]
    #[arg(long = "ttl", value_name = "SECONDS", help_heading = "Work", display_order = 41)]
    pub ttl_seconds: Option<u64>,
    /// Client threads [default: 2, or the CacheBench file's]
    #[arg(short = 't', long, value_name = "N", help_heading = "Measurement")]
    pub threads: usize,
    /// Insert every key once before the warm-up, up to three times the bytes of memory and disk
    #[arg(long, help_heading = "Measurement", display_order = 10)]
    #[serde(default)]
    pub load: bool,
    /// Warm-up operations [default: two per key; none for a trace or a CacheBench file]
    #[arg(long, alias = "warmup", value_name = "N", help_heading = "Measurement")]
    pub warmup_operations: Option<u64>,
    /// For how long is measured; `None` is 5 seconds, and once through a trace.
    #[arg(skip)]
    pub length: Option<Length>,
    /// Open loop: issue N requests per second; latency counts from the intended start
    #[arg(
        long,
        value_name = "OPS_PER_S",
        allow_negative_numbers = true,
        help_heading = "Measurement"
    )]
    pub rate: Option<f64>,
    /// Cost of a miss at the backend [default: 1000]
    #[arg(long, value_name = "US", allow_negative_numbers = true, help_heading = "Measurement")]
    pub backend_us: f64,
    /// Seed of every random choice [default: 1]
    #[arg(long, help_heading = "Measurement")]
    pub seed: u64,
    /// Curves of hits by memory; with them there need be no caches.
    #[arg(skip)]
    #[serde(default)]
    pub mrc: Option<MrcOptions>,
}

impl Options {
    /// Creates the defaults: every engine that is compiled in, under `work` in 64 MiB.
    pub fn new(work: Work) -> Self {
        Self {
            engines: EngineSpec::default_list(),
            memory_bytes: 64 << 20,
            disk: None,
            work,
            distribution: None,
            working_set_bytes: None,
            shift_at: None,
            write_pct: 0.0,
            ttl_seconds: None,
            threads: 2,
            load: false,
            warmup_operations: None,
            length: None,
            rate: None,
            backend_us: 1000.0,
            seed: 1,
            mrc: None,
        }
    }

    /// Returns whether the requests are a trace's.
    pub fn is_trace(&self) -> bool {
        matches!(self.work, Work::Trace { .. })
    }

    /// Returns whether a file defines the keys and the requests. Such workloads begin with an empty cache.
    pub fn is_of_a_file(&self) -> bool {
        matches!(self.work, Work::Trace { .. } | Work::CacheBench { .. })
    }

    /// Returns the distribution of keys.
    pub fn distribution(&self) -> Distribution {
        self.distribution.unwrap_or(match self.work {
            Work::Paper(_) => Distribution::HOT_SET,
            _ => Distribution::Zipfian { theta: 0.99 },
        })
    }

    /// Returns the bytes of all keys and values, unless a trace defines them.
    pub fn working_set_bytes(&self) -> u64 {
        self.working_set_bytes
            .unwrap_or(self.memory_bytes.saturating_mul(8))
            .min(MAX_WORKING_SET_BYTES)
    }

    /// Checks all that can be checked without reading data: bounds, and that each engine can be made.
    ///
    /// # Errors
    /// [`LabError::Option`] with the name of the option on the command line.
    pub fn validate(&self) -> Result<(), LabError> {
        let refuse = |option, reason: String| Err(LabError::option(option, reason));
        if self.memory_bytes < MIN_MEMORY_BYTES {
            let (memory, least) = (Bytes(self.memory_bytes), Bytes(MIN_MEMORY_BYTES));
            return refuse("memory", format!("{memory} is less than the minimum, {least}"));
        }
        if let Some(total) = resources::total_memory_bytes().filter(|total| self.memory_bytes > *total) {
            let memory = Bytes(self.memory_bytes);
            let smaller = match self.work {
                Work::CacheBench { .. } => ": scale keys and memory with --scale, or set --memory",
                _ => "",
            };
            let reason = format!(
                "{memory} is more than this machine has, {}{smaller}",
                about(total as f64)
            );
            return refuse("memory", reason);
        }
        between("threads", self.threads, 1, MAX_THREADS)?;
        between("writes", self.write_pct, 0.0, 100.0)?;
        if let Some(seconds) = self.ttl_seconds {
            between("ttl", seconds, 1, MAX_TTL_SECONDS)?;
        }
        if let Some(operations) = self.warmup_operations {
            between("warmup-operations", operations, 0, MAX_OPERATIONS)?;
        }
        match self.length {
            Some(Length::Seconds(seconds)) if !(seconds > 0.0 && seconds <= MAX_SECONDS) => {
                return refuse(
                    "seconds",
                    format!("{seconds} must be greater than 0 and at most {MAX_SECONDS}"),
                );
            }
            Some(Length::Operations(operations)) => between("operations", operations, 1, MAX_OPERATIONS)?,
            _ => {}
        }
        if let Some(rate) = self.rate {
            between("rate", rate, 1.0, MAX_RATE)?;
        }
        between("backend-us", self.backend_us, 0.0, 1e9)?;
        if let Some(mrc) = &self.mrc {
            mrc.validate()?;
        }
        self.validate_work()?;
        self.validate_engines()
    }

    fn validate_work(&self) -> Result<(), LabError> {
        let own = match &self.work {
            Work::Trace { .. } => Some("defined by the trace: omit it with --trace"),
            Work::CacheBench { .. } => Some("defined by the file: omit it with --cachebench"),
            _ => None,
        };
        let is_cachebench = matches!(self.work, Work::CacheBench { .. });
        for (option, given) in [
            ("distribution", self.distribution.is_some()),
            ("working-set", self.working_set_bytes.is_some()),
            ("shift-at", self.shift_at.is_some()),
            ("load", self.load),
            ("writes", is_cachebench && self.write_pct > 0.0),
        ] {
            if let Some(own) = own.filter(|_| given) {
                return Err(LabError::option(option, own));
            }
        }
        if let Some(bytes) = self.working_set_bytes {
            between("working-set", Bytes(bytes), Bytes(1), Bytes(MAX_WORKING_SET_BYTES))?;
        }
        match &self.work {
            Work::Paper(objects) => objects.validate()?,
            Work::Values { data, cut } => {
                data.validate()?;
                cut.validate()?;
            }
            Work::Records { data, .. } => data.validate()?,
            Work::Trace { data, requests, .. } => {
                if *requests == Some(0) {
                    return Err(LabError::option("requests", "must be at least 1"));
                }
                data.validate()?;
            }
            Work::CacheBench { data, scale, .. } => {
                check_scale(*scale)?;
                data.validate()?;
            }
        }
        let distribution = self.distribution();
        if let Distribution::Latest { .. } = distribution {
            return Err(LabError::option(
                "distribution",
                "latest needs an insertion order, which a cache's keys do not have",
            ));
        }
        distribution.validate()?;
        self.validate_shift(distribution)
    }

    fn validate_shift(&self, distribution: Distribution) -> Result<(), LabError> {
        let Some(shift_at) = self.shift_at else {
            return Ok(());
        };
        between("shift-at", shift_at, 1, MAX_OPERATIONS)?;
        if distribution == Distribution::Uniform {
            return Err(LabError::option("shift-at", "uniform has no hot set to move"));
        }
        match self.length {
            Some(Length::Operations(operations)) if operations <= shift_at => Err(LabError::option(
                "shift-at",
                format!("{shift_at} must be less than the number of operations, {operations}"),
            )),
            _ => Ok(()),
        }
    }

    /// Cost of a missed read, in nanoseconds: 0 with a rate, which it does not affect.
    pub(super) fn charge_ns(&self) -> u64 {
        match self.rate {
            Some(_) => 0,
            None => (self.backend_us * 1e3) as u64,
        }
    }

    /// Bytes that the cache is loaded with before the warm-up.
    pub(super) fn load_bytes(&self) -> u64 {
        let holds = self.memory_bytes + self.disk.as_ref().map_or(0, |disk| disk.bytes);
        LOADED.saturating_mul(holds)
    }

    fn validate_engines(&self) -> Result<(), LabError> {
        if self.engines.is_empty() && self.mrc.is_none() {
            return Err(LabError::option("engines", "the list is empty"));
        }
        for (at, engine) in self.engines.iter().enumerate() {
            if self.engines[..at].contains(engine) {
                return Err(LabError::option("engines", format!("{engine} is listed twice")));
            }
            engine.check()?;
        }
        if let Some(disk) = &self.disk {
            disk.validate(&self.engines)?;
        }
        let on_disk = self.engines.iter().find(|engine| engine.needs_disk());
        if let (None, Some(engine)) = (&self.disk, on_disk) {
            let reason = format!("{engine} keeps its records on disk: set a size, as in --disk 1G, or omit it");
            return Err(LabError::option("disk", reason));
        }
        if self.disk.is_some() && !self.engines.iter().any(EngineSpec::has_disk) {
            return Err(LabError::option(
                "disk",
                "no listed cache has a disk tier: leafpress has",
            ));
        }
        Ok(())
    }
}
