//! `frontier`: throughput against data size for every codec and level.

use clap::{Args, ValueEnum};
use leafpress_lab::Bytes;

use crate::shared::{RoundsArgs, RunArgs, SizesArgs, StudyArgs};

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
    /// Compressions, with commas between them [default: every codec and level that runs here, with dictionaries and
    /// without]
    #[arg(long, visible_aliases = ["compression_type", "compression-type"], value_name = "LIST")]
    pub compression: Option<String>,
    /// Whose codecs, where none are named
    #[arg(long, alias = "codecs", value_enum, value_name = "WHOSE", default_value = "all")]
    pub codecs_of: Whose,
    /// Bytes of the dictionaries, where no codecs are named; 0 is without
    #[arg(long, alias = "dict", value_name = "BYTES", default_value = "16K")]
    pub dictionary_bytes: Bytes,
    /// Blocks and values.
    #[command(flatten)]
    pub sizes: SizesArgs,
    /// What is compared with what.
    #[command(flatten)]
    pub study: StudyArgs,
    /// Less of everything: data of 64M, three rounds of half a second
    #[arg(long)]
    pub quick: bool,
    /// Rounds and seconds.
    #[command(flatten)]
    pub rounds: RoundsArgs,
    /// What all runs have.
    #[command(flatten)]
    pub run: RunArgs,
}

const AFTER_HELP: &str = "\
  leafpress-rocksdb frontier --quick
  leafpress-rocksdb frontier --data calgary.zip --block_size 4K --out result
  leafpress-rocksdb frontier --compression lz4,leafpress:zstd:1,leafpress:zstd:1,dict=16K";
