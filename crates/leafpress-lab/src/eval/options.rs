//! The capacities of an evaluation, their defaults and their bounds.

use std::path::PathBuf;

use clap::ArgAction::Set;
use clap::Args;
use leafpress::Codec;
use leafpress::codec::{JobCache, StreamCache};
use leafpress::tree::{MAX_KEY_BYTES, MAX_VALUE_BYTES, TemperatureRule};
use serde::{Deserialize, Serialize};

use crate::core::corpus::{Cut, RecordFormat, Source};
use crate::core::keys::{Distribution, KeyShape, LoadOrder, MAX_KEYS, MIN_KEY_BYTES};
use crate::core::words::{as_text, between};
use crate::core::{Bytes, LabError};
use crate::eval::landing_bytes::LandingBytes;
use crate::eval::words;
use crate::eval::workload::Workload;
use crate::harness::MAX_THREADS;

/// Most point reads in one call.
pub const MAX_READS_PER_CALL: usize = 64;

/// Options of `leafpress eval`, with their flags. Lists sweep: the run is their cross product (see
/// [`crate::eval::matrix`]). Fields are in the order of `results.json`; `display_order` puts the flags in the order of
/// the help.
///
/// Defaults are the evaluation's, except where the machine or the default of the library is the better guide: `threads`
/// is 1 and the number of cores, and `stream_cache` is `thread` (the prototype initialises a zlib stream for every
/// call, which costs more than the call and says nothing about compression; `none` is there to reproduce it).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Args)]
#[serde(default, deny_unknown_fields)]
pub struct EvalConfig {
    /// File, directory, zip, gzip or zstd file (opened), bundled sample, or synthetic:SHARE (compressible share, 0 to
    /// 1) [default: the bundled sample `packages`]
    #[arg(long, value_name = "DATA", help_heading = "Data")]
    pub data: Source,
    /// How the data is cut into values: fixed:BYTES, lines, length-prefixed [default: fixed:VALUE_BYTES]
    #[arg(long, value_name = "CUT", help_heading = "Data", display_order = 2)]
    pub cut: Option<Cut>,
    /// Use an archive's own, compressed bytes instead of opening it
    #[arg(long, help_heading = "Data", display_order = 1)]
    pub raw: bool,
    /// Use the data's own records, key and value: jsonl:/POINTER, csv:COLUMN, stanzas:FIELD, tsv
    #[arg(long, value_name = "FORMAT", help_heading = "Data", display_order = 8)]
    pub records: Option<RecordFormat>,
    /// Codecs of the software runs (`SOFTWARE_CODECS`); `qpl` is short for `qpl:software:fixed`.
    #[arg(skip)]
    pub codecs: Vec<String>,
    /// Workloads, in order.
    #[arg(skip)]
    pub workloads: Vec<Workload>,
    /// Worker threads (`THREADS_LIST`), each 1 to [`MAX_THREADS`].
    #[arg(skip)]
    pub threads: Vec<usize>,
    /// Length of each timed run [default: 5]
    #[arg(short = 'd', long, help_heading = "Work")]
    pub seconds: f64,
    /// Run the workload this long before the timed window [default: 0]
    #[arg(long, value_name = "SECONDS", help_heading = "Work")]
    pub warmup_seconds: f64,
    /// Number of keys [default: 50000; with --records all there are]
    #[arg(long, value_name = "N", help_heading = "Work")]
    pub keys: u64,
    /// Bytes of a value cut at a fixed size [default: 128]
    #[arg(long, value_name = "BYTES", help_heading = "Data", value_parser = Bytes::parse_usize)]
    pub value_bytes: usize,
    /// Shape of the keys: dense (the best case), scattered, text, uuid, path [default: dense]
    #[arg(long, value_name = "SHAPE", help_heading = "Work")]
    pub key_shape: KeyShape,
    /// Bytes of a dense or scattered key [default: 8]
    #[arg(long, value_name = "BYTES", help_heading = "Work", value_parser = Bytes::parse_usize)]
    pub key_bytes: usize,
    /// Order in which keys are loaded: sequential or random [default: sequential]
    #[arg(long, alias = "key-order", value_name = "ORDER", help_heading = "Work")]
    pub load_order: LoadOrder,
    /// Distribution of keys.
    #[arg(
        long,
        value_name = "DISTRIBUTION",
        help_heading = "Work",
        help = "Distribution of keys: uniform, zipfian[:THETA], self-similar[:H], latest[:THETA], \
                hotset[:KEYS_PCT:OPERATIONS_PCT] [default: uniform]"
    )]
    pub distribution: Distribution,
    /// Operations after which the hot set moves, in the workload hotset [default: 1000000]
    #[arg(long, value_name = "OPERATIONS", help_heading = "Work")]
    pub shift_at: u64,
    /// Records per scan [default: 100]
    #[arg(long, value_name = "N", help_heading = "Work")]
    pub scan_records: usize,
    /// Point reads per call to the tree; the call's latency counts for each [default: 1]
    #[arg(long, value_name = "N", help_heading = "Work")]
    pub reads_per_call: usize,
    /// Shards of the tree [default: 1]
    #[arg(long, value_name = "N", help_heading = "Tree")]
    pub shards: usize,
    /// How keys are assigned to shards: hash or range [default: hash]
    #[arg(
        long = "shard-by", value_name = "CHOICE", help_heading = "Tree", action = Set,
        value_parser = words::shard_by_range
    )]
    pub shard_by_range: bool,
    /// Sizes of landing buffers (`LANDING_LIST`, `BTREE_LANDING_BUFFER_BYTES`).
    #[arg(skip)]
    pub landing_bytes: Vec<LandingBytes>,
    /// Background compaction off or on (`BTREE_BG_COMPACTION`; both is `RUN_BG_SWEEP` with `BG_SWEEP_VALUES`).
    #[arg(skip)]
    pub background: Vec<bool>,
    /// Background compaction threads [default: 1]
    #[arg(long, value_name = "N", help_heading = "Background compaction")]
    pub background_threads: usize,
    /// Fill percentage of a landing buffer at which its leaf is queued for background compaction [default: 75]
    #[arg(long, value_name = "PCT", help_heading = "Background compaction", value_parser = words::percentage)]
    pub landing_compaction_pct: u8,
    /// Restrict background compaction to a codec family: all, none, lz4, zstd, onpair, deflate, zlib, qpl [default:
    /// all]
    #[arg(long, value_name = "FAMILY", help_heading = "Background compaction", value_parser = words::background_family)]
    pub background_codec: std::option::Option<String>,
    /// Cache QPL jobs: thread or none [default: thread]
    #[arg(long, value_name = "CHOICE", help_heading = "Accelerators", value_parser = words::job_cache)]
    #[serde(with = "job_cache")]
    pub job_cache: JobCache,
    /// Cache zlib streams: thread or none [default: thread]
    #[arg(long, value_name = "CHOICE", help_heading = "Accelerators", value_parser = words::stream_cache)]
    #[serde(with = "stream_cache")]
    pub stream_cache: StreamCache,
    /// Record latencies: on or off [default: on]
    #[arg(long, value_name = "ON|OFF", help_heading = "Measurement", action = Set, value_parser = words::flag)]
    pub measure_latency: bool,
    /// Latency samples per thread, spread over the whole run; 0 records every operation [default: 100000]
    #[arg(long, value_name = "N", help_heading = "Measurement")]
    pub latency_samples_per_thread: usize,
    /// Record CPU seconds, memory and context switches: on or off [default: on]
    #[arg(long, value_name = "ON|OFF", help_heading = "Measurement", action = Set, value_parser = words::flag)]
    pub collect_cpu: bool,
    /// Also run QPL on an IAA device
    #[arg(long, help_heading = "Accelerators")]
    pub iaa: bool,
    /// Codecs of the IAA runs (`IAA_CODECS`).
    #[arg(skip)]
    pub iaa_codecs: Vec<String>,
    /// Include dynamic Huffman tables in the IAA runs: on or off [default: on]
    #[arg(
        long, value_name = "ON|OFF", num_args = 0..=1, default_missing_value = "on", help_heading = "Accelerators",
        action = Set, value_parser = words::flag
    )]
    pub qpl_dynamic: bool,
    /// Also run zlib under Intel zlib-accel
    #[arg(long, help_heading = "Accelerators")]
    pub zlib_accel: bool,
    /// Path of libzlib-accel.so; implies --zlib-accel
    #[arg(long, value_name = "PATH", help_heading = "Accelerators")]
    #[serde(with = "crate::core::paths::optional")]
    pub zlib_accel_so: Option<PathBuf>,
    /// Codecs of the zlib-accel runs (`ZLIB_ACCEL_CODECS`); `zlib_accel` is short for `zlib:1`.
    #[arg(skip)]
    pub zlib_accel_codecs: Vec<String>,
    /// User bytes at which a leaf splits [default: the tree chooses]
    #[arg(long, value_name = "BYTES", help_heading = "Tree", value_parser = Bytes::parse_usize)]
    pub leaf_bytes: Option<usize>,
    /// Raw bytes at which a frame is closed; 1 makes every record a frame [default: the tree chooses]
    #[arg(long, value_name = "BYTES", help_heading = "Tree", value_parser = Bytes::parse_usize)]
    pub frame_bytes: Option<usize>,
    /// ordered, or hashed:N for N sub-pages per leaf [default: ordered]
    #[arg(long = "layout", value_name = "LAYOUT", help_heading = "Tree", value_parser = words::layout)]
    pub hashed_sub_pages: std::option::Option<usize>,
    /// Trained dictionary: auto or off [default: auto]
    #[arg(long, value_name = "CHOICE", help_heading = "Tree", action = Set, value_parser = words::dictionary)]
    pub dictionary: bool,
    /// Maximum size of a trained dictionary
    #[arg(long, value_name = "BYTES", help_heading = "Tree", value_parser = Bytes::parse_usize)]
    pub dictionary_bytes: Option<usize>,
    /// How trees of the codec `auto` detect cold leaves.
    #[arg(
        long,
        value_name = "RULE",
        help_heading = "Tree",
        display_order = 31,
        value_parser = words::temperature_rule,
        help = "How the codec auto detects cold leaves: costs[:SLOWDOWN_PCT], deviation[:FACTOR] (the ZipCache \
                paper's) or deviation:auto[:SLOWDOWN_PCT] [default: costs:50]"
    )]
    #[serde(with = "as_text")]
    pub temperature: TemperatureRule,
    /// Seed of every random choice [default: 1]
    #[arg(long, help_heading = "Work")]
    pub seed: u64,
    /// The command line, for the report.
    #[arg(skip)]
    pub command_line: Option<String>,
}

impl Default for EvalConfig {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            data: Source::Sample("packages".into()),
            cut: None,
            raw: false,
            records: None,
            codecs: ["none", "lz4", "zstd:1", "zstd:3", "deflate:1", "trial"]
                .map(String::from)
                .to_vec(),
            workloads: Workload::POINT.to_vec(),
            threads: if cores > 1 { vec![1, cores] } else { vec![1] },
            seconds: 5.0,
            warmup_seconds: 0.0,
            keys: 50_000,
            value_bytes: 128,
            key_shape: KeyShape::Dense,
            key_bytes: 8,
            load_order: LoadOrder::Sequential,
            distribution: Distribution::Uniform,
            shift_at: 1_000_000,
            scan_records: 100,
            reads_per_call: 1,
            // As a tree has that nobody configures, and so in every command. Keys spread by hash over more of them have
            // other neighbours, which compress less.
            shards: 1,
            shard_by_range: false,
            landing_bytes: vec![LandingBytes::Auto],
            background: vec![false],
            background_threads: 1,
            landing_compaction_pct: 75,
            background_codec: None,
            job_cache: JobCache::Thread,
            stream_cache: StreamCache::Thread,
            measure_latency: true,
            latency_samples_per_thread: 100_000,
            collect_cpu: true,
            iaa: false,
            iaa_codecs: vec!["qpl".into()],
            qpl_dynamic: true,
            zlib_accel: false,
            zlib_accel_so: None,
            zlib_accel_codecs: vec!["zlib_accel".into()],
            leaf_bytes: None,
            frame_bytes: None,
            hashed_sub_pages: None,
            dictionary: true,
            dictionary_bytes: None,
            temperature: TemperatureRule::default(),
            seed: 1,
            command_line: None,
        }
    }
}

impl EvalConfig {
    /// Returns the source of keys, in a word: the format of the records, or a shape.
    pub fn key_source(&self) -> String {
        match &self.records {
            Some(format) => format.to_string(),
            None => self.key_shape.to_string(),
        }
    }

    /// Returns the cut in force: [`EvalConfig::cut`], or fixed cuts of [`EvalConfig::value_bytes`].
    pub fn effective_cut(&self) -> Cut {
        self.cut.unwrap_or(Cut::Fixed(self.value_bytes))
    }

    /// Checks options that conflict with records.
    fn validate_records(&self) -> Result<(), LabError> {
        let Some(format) = &self.records else { return Ok(()) };
        for (option, given, what) in [
            (
                "cut",
                self.cut.is_some(),
                "how values are cut from data without records",
            ),
            ("raw", self.raw, "an archive's own bytes, which are not records"),
            (
                "key-shape",
                self.key_shape != KeyShape::Dense,
                "the shape of generated keys",
            ),
        ] {
            if given {
                return Err(LabError::option(
                    option,
                    format!("this is {what}: omit it with --records {format}"),
                ));
            }
        }
        if let Source::Synthetic(_) = self.data {
            return Err(LabError::option(
                "records",
                format!("{} has no records: set a file with --data", self.data),
            ));
        }
        Ok(())
    }

    /// Returns the key distribution of a workload: `hotset` defaults to one with hot keys.
    pub fn distribution_of(&self, workload: Workload) -> Distribution {
        match (workload, self.distribution) {
            (Workload::HotSet, Distribution::Uniform) => Distribution::HOT_SET,
            (_, asked_for) => asked_for,
        }
    }

    pub(super) fn validate_bounds(&self) -> Result<(), LabError> {
        for (option, empty) in [
            ("codecs", self.codecs.is_empty() && !self.iaa && !self.zlib_accel),
            ("workloads", self.workloads.is_empty()),
            ("threads", self.threads.is_empty()),
            ("landing-bytes", self.landing_bytes.is_empty()),
            ("background", self.background.is_empty()),
        ] {
            if empty {
                return Err(LabError::option(option, "the list is empty"));
            }
        }
        for &threads in &self.threads {
            between("threads", threads, 1, MAX_THREADS)?;
        }
        if !(self.seconds > 0.0 && self.seconds <= 86_400.0) {
            return Err(LabError::option(
                "seconds",
                format!("{} must be greater than 0 and at most 86400", self.seconds),
            ));
        }
        between("warmup-seconds", self.warmup_seconds, 0.0, 86_400.0)?;
        between("keys", self.keys, u64::from(self.records.is_none()), MAX_KEYS)?;
        between("value-bytes", self.value_bytes, 1, MAX_VALUE_BYTES)?;
        between("key-bytes", self.key_bytes, MIN_KEY_BYTES, MAX_KEY_BYTES)?;
        self.key_shape.validate(self.key_bytes)?;
        self.validate_records()?;
        between("shift-at", self.shift_at, 1, 1 << 40)?;
        between("scan-records", self.scan_records, 1, 1 << 20)?;
        between("reads-per-call", self.reads_per_call, 1, MAX_READS_PER_CALL)?;
        between("shards", self.shards, 1, 1024)?;
        if self.shard_by_range && self.keys < self.shards as u64 && self.keys > 0 {
            return Err(LabError::option(
                "shard-by",
                format!("{} keys cannot be split into {} ranges", self.keys, self.shards),
            ));
        }
        between("background-threads", self.background_threads, 1, 64)?;
        between("landing-compaction-pct", self.landing_compaction_pct, 1, 100)?;
        self.distribution.validate()?;
        if self.workloads.contains(&Workload::HotSet) && matches!(self.distribution, Distribution::Latest { .. }) {
            return Err(LabError::option(
                "distribution",
                "the hot set of `latest` cannot be moved: use another distribution for the workload `hotset`",
            ));
        }
        self.data.validate()?;
        if let Some(cut) = self.cut {
            cut.validate()?;
        }
        if let Some(family) = self.background_codec.as_deref()
            && !["none", "lz4", "zstd", "onpair", "deflate", "zlib", "qpl"].contains(&family)
        {
            return Err(LabError::option(
                "background-codec",
                format!("unknown codec family `{family}`; known: all none lz4 zstd onpair deflate zlib qpl"),
            ));
        }
        if self.zlib_accel {
            let so = self
                .zlib_accel_so
                .as_deref()
                .ok_or_else(|| LabError::option("zlib-accel-so", "the path of libzlib-accel.so is required"))?;
            check_shared_object(so)?;
        }
        Ok(())
    }
}

/// A file that `LD_PRELOAD` cannot load causes only a warning of the loader, so the file is checked here.
fn check_shared_object(path: &std::path::Path) -> Result<(), LabError> {
    use std::io::Read;
    if path.to_string_lossy().contains([' ', ':']) {
        return Err(LabError::option(
            "zlib-accel-so",
            format!(
                "{}: LD_PRELOAD does not accept a path with a space or a colon; copy or link it",
                path.display()
            ),
        ));
    }
    // Checked before opening: opening a pipe blocks until it has a writer.
    if path.metadata().is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        return Err(LabError::option(
            "zlib-accel-so",
            format!("{} is not a regular file", path.display()),
        ));
    }
    let mut magic = [0; 4];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    match read {
        Ok(()) if magic == *b"\x7fELF" => Ok(()),
        Err(e) if e.kind() != std::io::ErrorKind::UnexpectedEof => {
            Err(LabError::option("zlib-accel-so", format!("{}: {e}", path.display())))
        }
        _ => Err(LabError::option(
            "zlib-accel-so",
            format!("{} is not a shared library", path.display()),
        )),
    }
}

/// Parses a codec name of this option, with the evaluation's short names: `qpl` and `zlib_accel`.
pub(crate) fn parse_codec(option: &'static str, name: &str) -> Result<Codec, LabError> {
    let full = match name {
        "qpl" => "qpl:software:fixed",
        "zlib_accel" => "zlib:1",
        name => name,
    };
    full.parse()
        .map_err(|e: leafpress::CodecError| LabError::option(option, e.to_string()))
}

macro_rules! serde_cache {
    ($module:ident, $type:ty) => {
        mod $module {
            use serde::{Deserialize, Deserializer, Serializer, de::Error};

            pub fn serialize<S: Serializer>(value: &$type, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(match value {
                    <$type>::Thread => "thread",
                    <$type>::None => "none",
                })
            }

            pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                match String::deserialize(deserializer)?.as_str() {
                    "thread" => Ok(<$type>::Thread),
                    "none" => Ok(<$type>::None),
                    other => Err(D::Error::unknown_variant(other, &["thread", "none"])),
                }
            }
        }
    };
}
serde_cache!(job_cache, leafpress::codec::JobCache);
serde_cache!(stream_cache, leafpress::codec::StreamCache);
