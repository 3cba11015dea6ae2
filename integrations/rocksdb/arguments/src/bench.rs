//! `bench`: db_bench's command line.

use std::path::PathBuf;

use clap::Args;
use clap::builder::BoolishValueParser;
use leafpress_lab::Bytes;

use crate::shared::{DB_BENCH, RunArgs, SizesArgs};

/// Arguments of `bench`.
#[derive(Debug, Args)]
#[command(args_override_self = true, after_help = AFTER_HELP)]
pub struct BenchArgs {
    /// Benchmarks in turn, each in a process of its own: fillseq fillrandom overwrite readseq readrandom seekrandom
    /// readrandomwriterandom ycsba..ycsbf compact
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "fillseq,readrandom",
        help_heading = DB_BENCH
    )]
    pub benchmarks: Vec<String>,
    /// Directory of the database; instances are below it [default: one for temporary files, removed at the end]
    #[arg(long, value_name = "DIR", help_heading = DB_BENCH)]
    pub db: Option<PathBuf>,
    /// Use the databases that are there
    #[arg(
        long = "use_existing_db",
        alias = "use-existing-db",
        num_args = 0..=1,
        default_missing_value = "true",
        default_value = "false",
        value_parser = BoolishValueParser::new(),
        require_equals = true,
        value_name = "BOOL",
        hide_default_value = true,
        help_heading = DB_BENCH,
    )]
    pub use_existing_db: bool,
    /// none, lz4, lz4hc[:LEVEL], zstd[:LEVEL] or leafpress:CODEC[,option=value..]; dict=BYTES gives each file a
    /// dictionary
    #[arg(
        long,
        visible_aliases = ["compression_type", "compression-type"],
        value_name = "NAME",
        default_value = "zstd",
    )]
    pub compression: String,
    /// Level of --compression zstd, as db_bench has it
    #[arg(
        long = "compression_level",
        alias = "compression-level",
        value_name = "N",
        allow_negative_numbers = true,
        help_heading = DB_BENCH
    )]
    pub compression_level: Option<i32>,
    /// Most bytes of a file's dictionary, as db_bench has it
    #[arg(
        long = "compression_max_dict_bytes",
        alias = "compression-max-dict-bytes",
        value_name = "BYTES",
        help_heading = DB_BENCH
    )]
    pub compression_max_dict_bytes: Option<Bytes>,
    /// Databases in one process
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub instances: usize,
    /// Threads of each instance
    #[arg(short = 't', long, value_name = "N", default_value_t = 1)]
    pub threads: usize,
    /// Blocks and values.
    #[command(flatten)]
    pub sizes: SizesArgs,
    /// none, SIZE, SIZE+compressed-secondary:SIZE or SIZE+leafpress-secondary:SIZE[,option=value..]; of each instance
    #[arg(long, value_name = "CACHE", default_value = "none")]
    pub cache: String,
    /// Bytes of the block cache, as db_bench has it; 0 or less is none
    #[arg(
        long = "cache_size",
        alias = "cache-size",
        value_name = "BYTES",
        conflicts_with = "cache",
        allow_negative_numbers = true,
        help_heading = DB_BENCH
    )]
    pub cache_size: Option<String>,
    /// Length of each benchmark in seconds; 0 does --reads operations in each thread
    #[arg(
        short = 'd',
        long,
        visible_alias = "duration",
        value_name = "SECONDS",
        default_value_t = 10.0,
        allow_negative_numbers = true
    )]
    pub seconds: f64,
    /// The same work before that, in seconds
    #[arg(
        long,
        alias = "warmup",
        value_name = "SECONDS",
        default_value_t = 1.0,
        allow_negative_numbers = true
    )]
    pub warmup_seconds: f64,
    /// Operations of each thread, instead of a length [default: --num]
    #[arg(long, visible_alias = "writes", value_name = "N", help_heading = DB_BENCH)]
    pub reads: Option<u64>,
    /// How keys are chosen: uniform, zipfian[:THETA], latest[:THETA], self-similar[:H],
    /// hotset[:KEYS_PCT:OPERATIONS_PCT]; ycsb workloads have their own
    #[arg(long, value_name = "DISTRIBUTION")]
    pub distribution: Option<String>,
    /// Percent of reads in readrandomwriterandom
    #[arg(long, visible_alias = "readwrite-percent", value_name = "PCT", default_value_t = 80, help_heading = DB_BENCH)]
    pub readwritepercent: u64,
    /// Puts that fillseq writes together
    #[arg(long = "batch_size", alias = "batch-size", value_name = "N", default_value_t = 1, help_heading = DB_BENCH)]
    pub batch_size: u64,
    /// Steps behind each seek of seekrandom
    #[arg(long = "seek_nexts", alias = "seek-nexts", value_name = "N", default_value_t = 0, help_heading = DB_BENCH)]
    pub seek_nexts: u64,
    /// Compare every value that is read with what its key can hold, and not only its length
    #[arg(
        long,
        alias = "verify",
        num_args = 0..=1,
        default_missing_value = "true",
        default_value = "false",
        value_parser = BoolishValueParser::new(),
        require_equals = true,
        value_name = "BOOL",
        hide_default_value = true,
    )]
    pub check_values: bool,
    /// What all runs have.
    #[command(flatten)]
    pub run: RunArgs,
}

const AFTER_HELP: &str = "\
Defaults are the white paper's, not db_bench's: docs/bench.md compares them.

  leafpress-rocksdb bench --benchmarks=fillseq,readrandom,readrandomwriterandom --compression zstd --threads 2
  leafpress-rocksdb bench --db /data/bench --compression leafpress:zstd:1,dict=16K --instances 4 --threads 25 --out \
  result
  leafpress-rocksdb bench --db /data/bench --use_existing_db --benchmarks=readrandom --compression \
  leafpress:zstd:1,dict=16K";
