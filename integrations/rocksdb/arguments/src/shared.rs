//! Options that several subcommands have: db_bench's where it has them, in both spellings.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use clap::builder::BoolishValueParser;
use leafpress_lab::Bytes;

/// Section of options that db_bench has too; docs/flags.md distinguishes them by it.
pub const DB_BENCH: &str = "db_bench's options";

/// What all runs have.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// What the databases hold.
    #[command(flatten)]
    pub data: DataArgs,
    /// How RocksDB is run.
    #[command(flatten)]
    pub tuning: TuningArgs,
    /// Where results go.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Blocks and values of all databases.
#[derive(Debug, Args)]
pub struct SizesArgs {
    /// Bytes of a block before compression
    #[arg(
        long = "block_size",
        alias = "block-size",
        value_name = "BYTES",
        default_value = "16K",
        help_heading = DB_BENCH
    )]
    pub block_size: Bytes,
    /// Bytes of a value
    #[arg(
        long = "value_size",
        alias = "value-size",
        value_name = "BYTES",
        default_value = "256",
        value_parser = Bytes::parse_usize,
        help_heading = DB_BENCH
    )]
    pub value_size: usize,
}

/// What a study compares, and in how many threads.
#[derive(Debug, Args)]
pub struct StudyArgs {
    /// What they are compared with
    #[arg(long, value_name = "NAME", default_value = "zstd")]
    pub baseline: String,
    /// Databases in one process [default: as the white paper's 4, by this machine's CPUs]
    #[arg(long, value_name = "N")]
    pub instances: Option<usize>,
    /// Threads of each instance [default: as the white paper's 25 that read and 10 that read and write, by this
    /// machine's CPUs]
    #[arg(short = 't', long, value_name = "N")]
    pub threads: Option<usize>,
    /// Only read-only or 80:20
    #[arg(long, value_name = "ACCESS", value_parser = ["read-only", "80:20"])]
    pub access: Option<String>,
}

/// What the databases hold.
#[derive(Debug, Args)]
pub struct DataArgs {
    /// Bytes of a key
    #[arg(
        long = "key_size",
        alias = "key-size",
        value_name = "BYTES",
        default_value = "16",
        value_parser = Bytes::parse_usize,
        help_heading = DB_BENCH,
    )]
    pub key_size: usize,
    /// Where values come from: pure_random (as db_bench), file_random, file_direct (as RocksDB's pull request 10395)
    #[arg(
        long = "value_src_data_type",
        alias = "value-src-data-type",
        value_name = "TYPE",
        default_value = "file_direct",
        help_heading = DB_BENCH
    )]
    pub value_src_data_type: String,
    /// File, directory, archive (Calgary's zip), bundled sample, or synthetic:SHARE that values are cut from
    #[arg(
        long,
        visible_alias = "value_src_data_file",
        alias = "value-src-data-file",
        value_name = "DATA",
        default_value = "packages"
    )]
    pub data: OsString,
    /// Part of a generated value that is not a repetition
    #[arg(
        long = "compression_ratio",
        alias = "compression-ratio",
        value_name = "RATIO",
        default_value_t = 0.5,
        allow_negative_numbers = true,
        help_heading = DB_BENCH
    )]
    pub compression_ratio: f64,
    /// Keys of an instance [default: by --data-bytes]
    #[arg(long, value_name = "N", help_heading = DB_BENCH)]
    pub num: Option<u64>,
    /// Bytes of keys and values of all instances, or N% of the memory that is free [default: an eighth of it, at most
    /// 1G]
    #[arg(long, aliases = ["data-size", "data_size"], value_name = "BYTES", allow_hyphen_values = true)]
    pub data_bytes: Option<String>,
    /// Bits of a Bloom filter for each key; 0 is none
    #[arg(long = "bloom_bits", alias = "bloom-bits", value_name = "N", default_value_t = 10, help_heading = DB_BENCH)]
    pub bloom_bits: u32,
    /// Version of the files' format [default: RocksDB's, or what the compression needs]
    #[arg(
        long = "format_version",
        alias = "format-version",
        value_name = "N",
        default_value_t = 0,
        hide_default_value = true,
        help_heading = DB_BENCH
    )]
    pub format_version: u32,
    /// Seed of every random choice
    #[arg(long, default_value_t = 1729)]
    pub seed: u64,
}

/// How RocksDB is run.
#[derive(Debug, Args)]
#[command(next_help_heading = DB_BENCH)]
pub struct TuningArgs {
    /// Which block cache, if there is one: hyper_clock_cache or lru_cache
    #[arg(
        long = "cache_type",
        alias = "cache-type",
        value_name = "TYPE",
        default_value = "hyper_clock_cache",
        value_parser = ["hyper_clock_cache", "lru_cache"],
    )]
    pub cache_type: String,
    /// Background jobs of each instance [default: one for each CPU, at least 2]
    #[arg(long = "max_background_jobs", alias = "max-background-jobs", value_name = "N")]
    pub max_background_jobs: Option<usize>,
    /// Bytes of a memtable
    #[arg(
        long = "write_buffer_size",
        alias = "write-buffer-size",
        value_name = "BYTES",
        default_value = "64M"
    )]
    pub write_buffer_size: Bytes,
    /// Most memtables
    #[arg(
        long = "max_write_buffer_number",
        alias = "max-write-buffer-number",
        value_name = "N",
        default_value_t = 2
    )]
    pub max_write_buffer_number: u32,
    /// Read files around the page cache
    #[arg(
        long = "use_direct_reads",
        alias = "use-direct-reads",
        num_args = 0..=1,
        default_missing_value = "true",
        default_value = "false",
        value_parser = BoolishValueParser::new(),
        require_equals = true,
        value_name = "BOOL",
        hide_default_value = true,
    )]
    pub use_direct_reads: bool,
    /// Do not log writes [default: true, as the white paper; db_bench logs]
    #[arg(
        long = "disable_wal",
        alias = "disable-wal",
        num_args = 0..=1,
        default_missing_value = "true",
        default_value = "true",
        value_parser = BoolishValueParser::new(),
        require_equals = true,
        value_name = "BOOL",
        hide_default_value = true,
    )]
    pub disable_wal: bool,
    /// Each write waits for the device
    #[arg(
        long,
        num_args = 0..=1,
        default_missing_value = "true",
        default_value = "false",
        value_parser = BoolishValueParser::new(),
        require_equals = true,
        value_name = "BOOL",
        hide_default_value = true,
    )]
    pub sync: bool,
    /// No compaction of itself
    #[arg(
        long = "disable_auto_compactions",
        alias = "disable-auto-compactions",
        num_args = 0..=1,
        default_missing_value = "true",
        default_value = "false",
        value_parser = BoolishValueParser::new(),
        require_equals = true,
        value_name = "BOOL",
        hide_default_value = true,
    )]
    pub disable_auto_compactions: bool,
    /// Check the checksum of every block that is read [default: true]
    #[arg(
        long = "verify_checksum",
        alias = "verify-checksum",
        num_args = 0..=1,
        default_missing_value = "true",
        default_value = "true",
        value_parser = BoolishValueParser::new(),
        require_equals = true,
        value_name = "BOOL",
        hide_default_value = true,
    )]
    pub verify_checksum: bool,
    /// Let RocksDB count; tickers only, no timers [default: true; db_bench does not]
    #[arg(
        long,
        num_args = 0..=1,
        default_missing_value = "true",
        default_value = "true",
        value_parser = BoolishValueParser::new(),
        require_equals = true,
        value_name = "BOOL",
        hide_default_value = true,
    )]
    pub statistics: bool,
    /// More for RocksDB's options string; it has the last word, as in "target_file_size_base=8388608;num_levels=4"
    #[arg(
        long = "rocksdb_options",
        alias = "rocksdb-options",
        value_name = "STRING",
        default_value = "",
        hide_default_value = true
    )]
    pub rocksdb_options: String,
}

/// Where results go.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Directory for summary.tsv, results.json and report.html
    #[arg(short = 'o', long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Say nothing while runs go on
    #[arg(long, short)]
    pub quiet: bool,
}

/// How long things take.
#[derive(Debug, Args)]
#[command(next_help_heading = "Measurement")]
pub struct RoundsArgs {
    /// Rounds: each compares everything once
    #[arg(long, value_name = "N")]
    pub rounds: Option<usize>,
    /// Length of each run in seconds
    #[arg(
        short = 'd',
        long,
        visible_alias = "duration",
        value_name = "SECONDS",
        allow_negative_numbers = true
    )]
    pub seconds: Option<f64>,
    /// The same work before that, in seconds
    #[arg(long, alias = "warmup", value_name = "SECONDS", allow_negative_numbers = true)]
    pub warmup_seconds: Option<f64>,
    /// Directory for databases, which are removed when they are done with [default: one for temporary files]
    #[arg(long, value_name = "DIR")]
    pub db: Option<PathBuf>,
}
