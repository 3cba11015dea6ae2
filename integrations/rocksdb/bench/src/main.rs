//! The `leafpress-rocksdb` command.

mod cli;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use leafpress_console::usage;
use leafpress_lab::cache::add_engines;
use leafpress_rocksdb_bench::cache_engine::ENGINES;
use leafpress_rocksdb_bench::session::{CHILD_SUBCOMMAND, child_main};

/// The name under which the user ran this.
const COMMAND: &str = "leafpress-rocksdb";

/// RocksDB with and without Leafpress: db_bench's workloads, the white paper's matrix, the frontier of codecs, and caches.
#[derive(Debug, Parser)]
#[command(name = "leafpress-rocksdb", version, about, max_term_width = 120)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run db_bench's benchmarks of the same names, or YCSB's workloads, on one compression
    Bench(Box<cli::bench::BenchArgs>),
    /// Run the white paper's whole set against zstd: throughput, p99, data size, CPU saved at equal throughput, cost
    Matrix(Box<cli::matrix::MatrixArgs>),
    /// Draw throughput against data size for every codec and level, with dictionaries and without
    Frontier(Box<cli::frontier::FrontierArgs>),
    /// Compare block caches and secondary caches at the same total memory
    Caches(Box<cli::caches::CachesArgs>),
    /// Compare caches as `leafpress cache` does, with RocksDB among them: on the paper's objects, your records, or a trace
    #[command(after_help = cli::cache::AFTER_HELP, mut_arg("engines", cli::cache::engines))]
    Cache(Box<cli::cache::CacheArgs>),
    /// One run of `cache` in its own process; what to do comes on standard input
    #[command(name = leafpress_lab::CHILD_SUBCOMMAND, hide = true)]
    CacheRun,
    /// One run in its own process; what to do comes on standard input
    #[command(name = CHILD_SUBCOMMAND, hide = true)]
    Run,
}

fn main() -> ExitCode {
    add_engines(&ENGINES);
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => return usage::report(&e, COMMAND),
    };
    let result = match &cli.command {
        Command::Bench(args) => cli::bench::run(args),
        Command::Matrix(args) => cli::matrix::run(args),
        Command::Frontier(args) => cli::frontier::run(args),
        Command::Caches(args) => cli::caches::run(args),
        Command::Cache(args) => cli::cache::run(args, COMMAND),
        Command::CacheRun => return leafpress_lab::child_main(),
        Command::Run => return child_main(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
