//! `caches`: block caches and secondary caches at the same total memory.

use clap::Args;
use clap::builder::BoolishValueParser;
use leafpress_lab::Bytes;

use crate::shared::{RoundsArgs, RunArgs, SizesArgs};

/// Arguments of `caches`.
#[derive(Debug, Args)]
#[command(args_override_self = true, after_help = AFTER_HELP, mut_arg("block_size", |size| size.default_value("4K")))]
pub struct CachesArgs {
    /// Memory of each instance's caches together
    #[arg(short = 'm', long, value_name = "BYTES", default_value = "64M")]
    pub memory: Bytes,
    /// Ratio of data to memory
    #[arg(long, value_name = "N", default_value_t = 4.0, allow_negative_numbers = true)]
    pub times: f64,
    /// Percent of the memory that a secondary cache has, if there is one
    #[arg(
        long,
        alias = "secondary_pct",
        value_name = "PCT",
        default_value_t = 75.0,
        allow_negative_numbers = true
    )]
    pub secondary_pct: f64,
    /// Options of our secondary cache, as in codec=zstd:1; given several times, each is a cache of its own
    #[arg(long, alias = "secondary_options", value_name = "OPTIONS")]
    pub secondary_options: Vec<String>,
    /// Caches to compare, instead of the three, each as in `bench --cache`; given several times
    #[arg(long, value_name = "CACHE")]
    pub cache: Vec<String>,
    /// How files are compressed
    #[arg(
        long,
        visible_aliases = ["compression_type", "compression-type"],
        value_name = "NAME",
        default_value = "none",
    )]
    pub compression: String,
    /// readrandom, readrandomwriterandom, or one of ycsba..ycsbf
    #[arg(long, value_name = "BENCHMARK", default_value = "readrandom")]
    pub benchmark: String,
    /// How keys are chosen
    #[arg(long, value_name = "DISTRIBUTION", default_value = "zipfian:0.99")]
    pub distribution: String,
    /// Read files through the page cache, which then is memory besides
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
    pub buffered: bool,
    /// Blocks and values.
    #[command(flatten)]
    pub sizes: SizesArgs,
    /// Databases in one process
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub instances: usize,
    /// Threads of each instance [default: one for each CPU]
    #[arg(short = 't', long, value_name = "N")]
    pub threads: Option<usize>,
    /// Less of everything: memory of 8M, three rounds of half a second
    #[arg(long)]
    pub quick: bool,
    /// Rounds and seconds.
    #[command(flatten)]
    pub rounds: RoundsArgs,
    /// What all runs have.
    #[command(flatten)]
    pub run: RunArgs,
}

const AFTER_HELP: &str = "Files are read around the page cache, so that a miss costs what the device costs; the page \
cache would be more memory for all.

  leafpress-rocksdb caches --quick
  leafpress-rocksdb caches --memory 256M --rounds 5 --out result
  leafpress-rocksdb caches --secondary-options codec=lz4 --secondary-options codec=zstd:1 --compression zstd";
