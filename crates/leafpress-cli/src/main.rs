//! The `leafpress` command: arguments in, calls to the laboratory, tables and files out.

mod advise;
mod bench;
mod codecs;
mod device;
mod doctor;
#[cfg(test)]
mod documents;
mod eval;
#[cfg(test)]
mod flags;
mod model;
mod peers;
mod pool;
mod records;
mod suite;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use leafpress_console::{cache, failure, interrupt, output, progress, usage};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The name under which the user ran this.
const COMMAND: &str = "leafpress";

/// A compressed key-value cache, and what it gains on your data and machine.
#[derive(Debug, Parser)]
#[command(name = "leafpress", version, about, max_term_width = 120)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Advise whether compression pays for your data, on your device, in so much memory: codec, block size, share, and why
    Advise(Box<advise::AdviseArgs>),
    /// Run the evaluation: real put, get and scan work on compressed trees, one process per codec and configuration
    Eval(Box<eval::EvalArgs>),
    /// Benchmark an index as PiBench does: our tree, built-in ordered maps, or a shared library written for PiBench
    Bench(Box<bench::BenchArgs>),
    /// Compare caches in the same memory: ours and the registry's, on the ZipCache paper's objects, your records, or a trace
    Cache(Box<cache::CacheArgs>),
    /// Benchmark the page pool as Tyche does, on your pages: does keeping cold ones compressed pay, and how much of the memory should it have?
    Pool(Box<pool::PoolArgs>),
    /// Probe a storage device as fio does: requests per second and latency percentiles of random reads, for each block size
    Device(Box<device::DeviceArgs>),
    /// Predict hit ratio and microseconds per page by formulas, over all shares of the memory: does compression pay, and from where on?
    Model(Box<model::ModelArgs>),
    /// Measure every codec, block length and number of threads on your files: ratio, microseconds per block, MB/s, memcpy as the floor
    Suite(Box<suite::SuiteArgs>),
    /// Compare with uncompressed concurrent ordered maps: reads per second and core, memory per record
    Peers(Box<peers::PeersArgs>),
    /// List every codec: whether it runs here, a self-test, MB/s and ratio on a sample
    Codecs(codecs::CodecsArgs),
    /// Report what this machine offers to accelerators, direct I/O and hardware counters, and how to mend what is missing
    Doctor(doctor::DoctorArgs),
    /// One run of an evaluation in its own process; the configuration comes on standard input
    #[command(name = leafpress_lab::CHILD_SUBCOMMAND, hide = true)]
    EvalRun,
}

/// The command line as a shell takes it.
fn command_line() -> String {
    output::command_line(COMMAND, std::env::args_os())
}

/// What to ask for help: the command that was mistyped, if there is one of that name.
fn program(command: Option<OsString>) -> String {
    match command.and_then(|command| command.into_string().ok()) {
        Some(name) if Cli::command().find_subcommand(&name).is_some() => format!("leafpress {name}"),
        _ => "leafpress".to_owned(),
    }
}

fn main() -> ExitCode {
    output::fit_terminal();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => return usage::report(&e, &program(std::env::args_os().nth(1))),
    };
    let result = match &cli.command {
        Command::Advise(args) => advise::run(args),
        Command::Eval(args) => eval::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Cache(args) => cache::run(args, COMMAND),
        Command::Pool(args) => pool::run(args),
        Command::Device(args) => device::run(args),
        Command::Model(args) => model::run(args),
        Command::Suite(args) => suite::run(args),
        Command::Peers(args) => peers::run(args),
        Command::Codecs(args) => codecs::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::EvalRun => return leafpress_lab::child_main_with(bench::open_library),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
