//! The `leafpress` command: parses arguments, calls the laboratory, prints tables and writes files.

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

/// The name under which the program was started.
const COMMAND: &str = "leafpress";

/// A compressed key-value cache, and tools that measure its benefit on your data and machine
#[derive(Debug, Parser)]
#[command(name = "leafpress", version, about, max_term_width = 120)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Advise whether compression pays for your data, device and memory size: codec, block size, share, and why
    Advise(Box<advise::AdviseArgs>),
    /// Run the evaluation: put, get and scan workloads on compressed trees, one process per codec and configuration
    Eval(Box<eval::EvalArgs>),
    /// Benchmark an index as PiBench does: the Leafpress tree, built-in ordered maps, or a shared library written for
    /// PiBench
    Bench(Box<bench::BenchArgs>),
    /// Compare caches in the same memory: Leafpress and others, on the ZipCache paper's objects, your records, or a
    /// trace
    Cache(Box<cache::CacheArgs>),
    /// Benchmark the page pool as Tyche does, on your pages: whether to keep cold pages compressed, and in how much of
    /// the memory
    Pool(Box<pool::PoolArgs>),
    /// Probe a storage device as fio does: requests per second and latency percentiles of random reads, for each block
    /// size
    Device(Box<device::DeviceArgs>),
    /// Predict hit ratio and microseconds per page by formulas, over all shares of the memory: whether compression
    /// pays, and from which share
    Model(Box<model::ModelArgs>),
    /// Measure every codec, block size and number of threads on your files: ratio, microseconds per block, MB/s, with
    /// memcpy as the floor
    Suite(Box<suite::SuiteArgs>),
    /// Compare with uncompressed concurrent ordered maps: reads per second and core, memory per record
    Peers(Box<peers::PeersArgs>),
    /// List every codec: availability, a self-test, MB/s and ratio on a sample
    Codecs(codecs::CodecsArgs),
    /// Check accelerators, direct I/O and hardware counters of this machine, and suggest fixes
    Doctor(doctor::DoctorArgs),
    /// Run one part of an evaluation in its own process; the configuration comes on standard input
    #[command(name = leafpress_lab::CHILD_SUBCOMMAND, hide = true)]
    EvalRun,
}

/// The command line, quoted for a shell.
fn command_line() -> String {
    output::command_line(COMMAND, std::env::args_os())
}

/// The command to suggest --help for: the mistyped one, if its name is known.
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
