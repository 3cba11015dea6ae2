//! `frontier`: throughput against data size for every codec and level.

use clap::{Args, ValueEnum};
use leafpress_console::words::size;
use leafpress_lab::Bytes;

use crate::shared::{DB_BENCH, DataArgs, OutputArgs, RoundsArgs, TuningArgs};

/// Whose codecs.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Whose {
    /// Both.
    All,
    /// RocksDB's own.
    Rocksdb,
    /// Those of Leafpress.
    Leafpress,
}

/// Arguments of `frontier`.
#[derive(Debug, Args)]
#[command(args_override_self = true, after_help = AFTER_HELP)]
pub struct FrontierArgs {
    /// Compressions, with commas between them [default: every codec and level that runs here, with dictionaries and without]
    #[arg(long, visible_aliases = ["compression_type", "compression-type"], value_name = "LIST")]
    pub compression: Option<String>,
    /// Whose codecs, where none are named
    #[arg(long, alias = "codecs", value_enum, value_name = "WHOSE", default_value = "all")]
    pub codecs_of: Whose,
    /// Bytes of the dictionaries, where no codecs are named; 0 is without
    #[arg(long, alias = "dict", value_name = "BYTES", default_value = "16K")]
    pub dictionary_bytes: Bytes,
    /// What they are compared with
    #[arg(long, value_name = "NAME", default_value = "zstd")]
    pub baseline: String,
    /// Bytes of a block
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
        value_parser = size,
        help_heading = DB_BENCH
    )]
    pub value_size: usize,
    /// Databases beside each other [default: as the white paper's, by this machine's CPUs]
    #[arg(long, value_name = "N")]
    pub instances: Option<usize>,
    /// Threads of each instance [default: as the white paper's, by this machine's CPUs]
    #[arg(short = 't', long, value_name = "N")]
    pub threads: Option<usize>,
    /// Only read-only or 80:20
    #[arg(long, value_name = "ACCESS", value_parser = ["read-only", "80:20"])]
    pub access: Option<String>,
    /// Less of everything: data of 64M, three rounds of half a second
    #[arg(long)]
    pub quick: bool,
    /// Rounds and seconds.
    #[command(flatten)]
    pub rounds: RoundsArgs,
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

const AFTER_HELP: &str = "\
  leafpress-rocksdb frontier --quick
  leafpress-rocksdb frontier --data calgary.zip --block_size 4K --out result
  leafpress-rocksdb frontier --compression lz4,leafpress:zstd:1,leafpress:zstd:1,dict=16K";
