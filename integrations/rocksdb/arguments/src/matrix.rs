//! `matrix`: the white paper's whole set.

use clap::Args;
use leafpress_console::cost::CostArgs;
use leafpress_lab::Bytes;

use crate::shared::{DB_BENCH, RoundsArgs, RunArgs, StudyArgs};

/// Compressions that are compared with zstd by default.
const COMPRESSIONS: &str = "none,lz4,lz4hc:5,dict=64K,leafpress:lz4,leafpress:zstd:3,leafpress:zstd:1,\
     leafpress:deflate:1,leafpress:lz4:hc=5,dict=64K";

/// Arguments of `matrix`.
#[derive(Debug, Args)]
#[command(args_override_self = true, after_help = AFTER_HELP)]
pub struct MatrixArgs {
    /// Less of everything: data of 64M, two rounds of half a second
    #[arg(long)]
    pub quick: bool,
    /// Compressions, with commas between them
    #[arg(
        long,
        visible_aliases = ["compression_type", "compression-type"],
        value_name = "LIST",
        default_value = COMPRESSIONS,
    )]
    pub compression: String,
    /// Bytes of a block, with commas between them
    #[arg(
        long = "block_size",
        alias = "block-size",
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "4K,16K",
        help_heading = DB_BENCH,
    )]
    pub block_size: Vec<Bytes>,
    /// Bytes of a value, with commas between them
    #[arg(
        long = "value_size",
        alias = "value-size",
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "32,256",
        value_parser = Bytes::parse_usize,
        help_heading = DB_BENCH,
    )]
    pub value_size: Vec<usize>,
    /// What is compared with what.
    #[command(flatten)]
    pub study: StudyArgs,
    /// Do not raise threads to find the CPU saved at the baseline's throughput
    #[arg(long)]
    pub no_ladder: bool,
    /// Block cache of each instance
    #[arg(long, value_name = "CACHE", default_value = "none")]
    pub cache: String,
    /// Rounds and seconds.
    #[command(flatten)]
    pub rounds: RoundsArgs,
    /// What saved cores are worth.
    #[command(flatten)]
    pub cost: CostArgs,
    /// What all runs have.
    #[command(flatten)]
    pub run: RunArgs,
}

const AFTER_HELP: &str = "Everything is compared with the baseline in pairs of runs directly one after the other. \
docs/bench.md explains the report.

  leafpress-rocksdb matrix --quick
  leafpress-rocksdb matrix --data calgary.zip --compression lz4,leafpress:zstd:1 --rounds 5 --out result";
