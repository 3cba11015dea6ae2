//! The command line of `leafpress bench`: PiBench's, with our extensions.

mod errors;
mod plan;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};
use leafpress_lab::bench::{
    MAX_KEY_BYTES, MAX_OPERATIONS, MAX_RECORDS, MAX_REPEAT, MAX_SAMPLING_MS, MAX_SCAN, MAX_SECONDS, MAX_VALUE_BYTES,
};
use leafpress_lab::core::corpus::RecordFormat;
use leafpress_lab::harness::MAX_THREADS;
use leafpress_lab::{Bytes, LabError};

pub use self::errors::bad_input;
pub use self::plan::Plan;
use super::numbers::{known, number, share, size, whole};
use crate::failure::Failure;

/// Arguments of `leafpress bench`.
///
/// PiBench writes its long options with underscores; with hyphens they work too.
#[derive(Debug, Args)]
#[command(args_override_self = true, after_help = AFTER_HELP)]
#[command(next_help_heading = "PiBench's options")]
pub struct BenchArgs {
    #[arg(value_name = "INPUT", help = INPUT_HELP)]
    positional: Option<OsString>,
    /// Same as INPUT
    #[arg(long, value_name = "INPUT", conflicts_with = "positional")]
    input: Option<OsString>,
    /// Number of records to load [default: 1000000]; or the format of keys and values in --data: jsonl:/POINTER,
    /// csv:COLUMN, stanzas:FIELD, tsv (loads all records unless -n is given)
    #[arg(short = 'n', long, value_name = "N|FORMAT", action = ArgAction::Append, value_parser = records, allow_negative_numbers = true)]
    records: Vec<RecordsWord>,
    /// Number of operations to execute, over all threads
    #[arg(short = 'p', long, default_value_t = 1_000_000, value_parser = whole::<u64>(0, MAX_OPERATIONS), allow_negative_numbers = true)]
    operations: u64,
    /// Number of threads to use
    #[arg(short = 't', long, default_value_t = 1, value_parser = whole::<usize>(1, MAX_THREADS as u64), allow_negative_numbers = true)]
    threads: usize,
    /// Prefix string prepended to every key
    #[arg(
        short = 'f',
        long = "key_prefix",
        alias = "key-prefix",
        default_value = "",
        value_name = "PREFIX",
        hide_default_value = true
    )]
    key_prefix: String,
    /// Size of keys in bytes, without prefix (PiBench's README says 4; PiBench itself takes 8)
    #[arg(
        short = 'k',
        long = "key_size",
        aliases = ["key-size", "key-bytes"],
        default_value_t = 8,
        value_name = "BYTES",
        value_parser = size(1, MAX_KEY_BYTES as u64),
        allow_negative_numbers = true
    )]
    key_size: usize,
    /// Size of values in bytes (PiBench's README says 4; PiBench itself takes 8)
    #[arg(
        short = 'v',
        long = "value_size",
        aliases = ["value-size", "value-bytes"],
        default_value_t = 8,
        value_name = "BYTES",
        value_parser = size(1, MAX_VALUE_BYTES as u64),
        allow_negative_numbers = true
    )]
    value_size: usize,
    /// Ratio of read operations; all ratios sum to 1 [default: 1]
    #[arg(short = 'r', long = "read_ratio", alias = "read-ratio", value_name = "RATIO", value_parser = share(), allow_negative_numbers = true)]
    read_ratio: Option<f64>,
    /// Ratio of insert operations [default: 0]
    #[arg(short = 'i', long = "insert_ratio", alias = "insert-ratio", value_name = "RATIO", value_parser = share(), allow_negative_numbers = true)]
    insert_ratio: Option<f64>,
    /// Ratio of update operations [default: 0]
    #[arg(short = 'u', long = "update_ratio", alias = "update-ratio", value_name = "RATIO", value_parser = share(), allow_negative_numbers = true)]
    update_ratio: Option<f64>,
    /// Ratio of remove operations [default: 0]
    #[arg(short = 'd', long = "remove_ratio", alias = "remove-ratio", value_name = "RATIO", value_parser = share(), allow_negative_numbers = true)]
    remove_ratio: Option<f64>,
    /// Ratio of scan operations [default: 0]
    #[arg(short = 's', long = "scan_ratio", alias = "scan-ratio", value_name = "RATIO", value_parser = share(), allow_negative_numbers = true)]
    scan_ratio: Option<f64>,
    /// Number of records per scan
    #[arg(
        long = "scan_size",
        alias = "scan-size",
        default_value_t = 100,
        value_name = "RECORDS",
        value_parser = whole::<usize>(1, MAX_SCAN as u64),
        allow_negative_numbers = true
    )]
    scan_size: usize,
    /// Sampling window in milliseconds
    #[arg(
        long = "sampling_ms",
        alias = "sampling-ms",
        default_value_t = 1000,
        value_name = "MS",
        value_parser = whole::<u64>(1, MAX_SAMPLING_MS),
        allow_negative_numbers = true
    )]
    sampling_ms: u64,
    // No docstring: rustdoc would take the brackets for links.
    #[arg(
        long,
        value_name = "DISTRIBUTION",
        help = "Key distribution: UNIFORM, SELFSIMILAR, ZIPFIAN with --skew, or as in other commands uniform, zipfian[:THETA], self-similar[:H], \
                latest[:THETA], hotset[:KEYS_PCT:OPERATIONS_PCT] [default: UNIFORM]"
    )]
    distribution: Option<String>,
    /// Skew of the key distribution: above 0 to 0.5 for self-similar, 0 to below 1 for zipfian and latest [default:
    /// 0.2; 0.99 for latest and YCSB]
    #[arg(long, value_name = "SKEW", value_parser = number("above 0 to 0.5 for self-similar, 0 to below 1 for zipfian and latest"), allow_negative_numbers = true)]
    skew: Option<f64>,
    /// Seed of every random choice
    #[arg(long, default_value_t = 1729, value_parser = whole::<u64>(0, u64::MAX), allow_negative_numbers = true)]
    seed: u64,
    /// What ends the run: operation or time [default: operation]
    #[arg(short = 'm', long, value_name = "MODE", ignore_case = true, value_parser = ["operation", "time"])]
    mode: Option<String>,
    /// Length of the run in seconds, in time mode [default: 20]
    #[arg(long, value_name = "SECONDS", value_parser = number(format!("more than 0 and at most {MAX_SECONDS}")), allow_negative_numbers = true)]
    seconds: Option<f64>,
    /// Read hardware metrics (perf events); --pcm=false turns them off [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", action = ArgAction::Set)]
    pcm: Option<bool>,
    /// Path of a persistent pool, passed to the wrapper
    #[arg(
        long = "pool_path",
        alias = "pool-path",
        default_value = "",
        value_name = "PATH",
        hide_default_value = true
    )]
    pool_path: OsString,
    /// Size of a persistent pool in bytes, passed to the wrapper
    #[arg(
        long = "pool_size",
        alias = "pool-size",
        default_value = "0",
        value_name = "BYTES",
        allow_negative_numbers = true
    )]
    pool_size: Bytes,
    /// Skip the load: the pool already has the records
    #[arg(long = "skip_load", alias = "skip-load", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", action = ArgAction::Set)]
    skip_load: Option<bool>,
    /// Share of operations whose latency is measured, 0 to 1
    #[arg(
        long = "latency_sampling",
        alias = "latency-sampling",
        default_value_t = 0.0,
        value_name = "SHARE",
        value_parser = share(),
        allow_negative_numbers = true
    )]
    latency_sampling: f64,
    /// Concurrency control protocol, for wrappers of the fork: 0 Mono, 1 ORWC, 2 OLC
    #[arg(short = 'c', long, value_name = "0|1|2", value_parser = known::<u8>("0, 1 or 2"), allow_negative_numbers = true)]
    protocol: Option<u8>,
    /// Clock, for wrappers of the fork: 0 optimistic, 1 sync, 2 free (3 in the fork's own help)
    #[arg(short = 'x', long, value_name = "0|1|2|3", value_parser = known::<u8>("0, 1, 2 or 3"), allow_negative_numbers = true)]
    clock: Option<u8>,
    /// Garbage collector, for wrappers of the fork: 0 off, 1 on
    #[arg(
        short = 'g',
        long = "garbage_collector",
        alias = "garbage-collector",
        value_name = "0|1",
        value_parser = known::<u8>("0 or 1"),
        allow_negative_numbers = true
    )]
    garbage_collector: Option<u8>,

    /// With --records FORMAT: file, directory, archive or bundled sample to read the records from [default: packages]
    #[arg(long, value_name = "DATA", help_heading = "Ours")]
    data: Option<OsString>,
    /// Shape of the keys: dense (the best case), scattered, text, uuid, path [default: PiBench's, which are scattered]
    #[arg(long = "key_shape", alias = "key-shape", value_name = "SHAPE", help_heading = "Ours")]
    key_shape: Option<String>,
    /// Order in which dense keys and records are loaded: random or sequential [default: random]
    #[arg(
        long = "load_order",
        alias = "load-order",
        value_name = "ORDER",
        help_heading = "Ours"
    )]
    load_order: Option<String>,
    /// Mix and key choice of a YCSB workload: A to F; several (A,C,E or A..F) make a table
    #[arg(long, value_name = "WORKLOAD", help_heading = "Ours")]
    ycsb: Option<String>,
    /// Open loop: issue this many operations per second; latency counts from the intended start
    #[arg(long, value_name = "OPS_PER_S", help_heading = "Ours", value_parser = number("more than 0 and at most 1e9"), allow_negative_numbers = true)]
    rate: Option<f64>,
    /// For --distribution hotset: percentage of keys that are hot, percentage of operations on them [default: 20,80]
    #[arg(long, value_name = "KEYS,OPERATIONS", help_heading = "Ours")]
    hotset: Option<String>,
    /// Source of values: pool, compressible:ETA (the share ETA is compressible), corpus:PATH (cuts of a file,
    /// directory, archive, or bundled sample)
    #[arg(
        long = "value_source",
        alias = "value-source",
        default_value = "pool",
        value_name = "SOURCE",
        help_heading = "Ours"
    )]
    value_source: OsString,
    /// Warm-up: run the same work this long before the run
    #[arg(
        long = "warmup-seconds",
        aliases = ["warmup", "warmup_seconds"],
        default_value_t = 0.0,
        value_name = "SECONDS",
        help_heading = "Ours",
        value_parser = number(format!("between 0 and {MAX_SECONDS}")),
        allow_negative_numbers = true
    )]
    warmup: f64,
    /// Pin threads: compact, spread or none
    #[arg(long, default_value = "none", value_name = "HOW", help_heading = "Ours")]
    pin: String,
    /// Repeat the run N times; report the median, with the spread
    #[arg(long, default_value_t = 1, value_name = "N", help_heading = "Ours", value_parser = whole::<usize>(1, MAX_REPEAT as u64), allow_negative_numbers = true)]
    repeat: usize,
    /// Options of the Leafpress tree: leaf_bytes=, frame_bytes=, landing_bytes=, shards=, background_threads=,
    /// landing_compaction_pct=, dictionary=0|1
    #[arg(
        long,
        value_name = "KEY=VALUE,...",
        default_value = "",
        help_heading = "Ours",
        hide_default_value = true
    )]
    tree: String,
    /// Compare several indexes, each in its own process, in one table
    #[arg(long, value_name = "INPUT", num_args = 1.., help_heading = "Ours", conflicts_with_all = ["positional", "input"])]
    compare: Vec<OsString>,
    /// Report layout for one index: table, or pibench (line for line) [default: table on a terminal, pibench in files
    /// and pipes]
    #[arg(
        long,
        value_name = "LAYOUT",
        value_enum,
        hide_possible_values = true,
        help_heading = "Ours"
    )]
    report: Option<Layout>,
    /// Write results.json and report.html to this directory
    #[arg(short = 'o', long, value_name = "DIR", help_heading = "Ours", conflicts_with_all = ["json", "html"])]
    pub out: Option<PathBuf>,
    /// Write all results as JSON
    #[arg(long, value_name = "FILE", help_heading = "Ours")]
    pub json: Option<PathBuf>,
    /// Write a page with charts
    #[arg(long, value_name = "FILE", help_heading = "Ours")]
    pub html: Option<PathBuf>,
}

const INPUT_HELP: &str = "\
Path of a shared library written for PiBench (./NAME.so), or a built-in index: leafpress[:CODEC] btreemap skiplist treeindex \
masstree hashmap dummy";

const AFTER_HELP: &str = "\
On a terminal the report is a table. In files and pipes, or with --report pibench, one index has PiBench's layout; what PiBench does \
not have comes after it. docs/commands/bench.md says how the two differ.

  leafpress bench leafpress:zstd:1 -n 1000000 -p 1000000 -r 0.5 -u 0.5 --latency_sampling 1
  leafpress bench ./libstlmap.so -t 2 -r 0.95 -i 0.05
  leafpress bench --compare leafpress:none leafpress:lz4 btreemap masstree --ycsb A,C,E --html compare.html";

/// The report layout for one index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Layout {
    /// A verdict and tables, as in the other commands.
    Table,
    /// PiBench's layout, line for line, for scripts that parse it.
    Pibench,
}

impl BenchArgs {
    /// The requested layout, or else the default for standard output.
    pub fn layout(&self) -> Layout {
        self.report.unwrap_or(if std::io::stdout().is_terminal() {
            Layout::Table
        } else {
            Layout::Pibench
        })
    }

    /// Checks that a comparison can be printed in this layout.
    pub fn check_layout_of_several(&self) -> Result<(), Failure> {
        match self.report {
            Some(Layout::Pibench) => Err(Failure::bad_input(
                "--report: the PiBench layout requires one index and one workload",
            )),
            _ => Ok(()),
        }
    }
}

/// The value of `--records`: PiBench's number, or the format of a dump.
#[derive(Debug, Clone)]
enum RecordsWord {
    Count(u64),
    Format(RecordFormat),
}

fn records(word: &str) -> Result<RecordsWord, String> {
    if word.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return word.parse().map(RecordsWord::Format).map_err(|e| match e {
            LabError::Option { reason, .. } => reason,
            e => e.to_string(),
        });
    }
    let count = word.parse().ok().filter(|count| *count <= MAX_RECORDS);
    count
        .map(RecordsWord::Count)
        .ok_or_else(|| format!("it is neither a whole number between 0 and {MAX_RECORDS} nor the format of a dump"))
}
