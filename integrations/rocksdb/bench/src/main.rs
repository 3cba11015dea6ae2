//! The `leafpress-rocksdb` command.

mod cli;

use std::process::ExitCode;

use clap::Parser;
use leafpress_console::{cache, output, usage};
use leafpress_lab::cache::add_engines;
use leafpress_rocksdb_arguments::{Cli, Command};
use leafpress_rocksdb_bench::cache_engine::ENGINES;
use leafpress_rocksdb_bench::session::child_main;

/// The name under which the user ran this.
const COMMAND: &str = "leafpress-rocksdb";

fn main() -> ExitCode {
    output::fit_terminal();
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
        Command::Cache(args) => cache::run(args, COMMAND),
        Command::CacheRun => return leafpress_lab::child_main(),
        Command::Run => return child_main(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
