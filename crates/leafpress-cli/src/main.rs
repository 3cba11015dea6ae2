//! The `leafpress` command: arguments in, calls to the laboratory, tables and files out.

mod doctor;
mod failure;
mod output;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use mimalloc::MiMalloc;

use crate::failure::Failure;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// A compressed key-value cache, and what it gains on your data and machine.
#[derive(Debug, Parser)]
#[command(name = "leafpress", version, about, max_term_width = 120)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Report what this machine offers to accelerators, direct I/O and hardware counters, and how to mend what is missing
    Doctor(doctor::DoctorArgs),
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(cli: &Cli) -> Result<(), Failure> {
    match &cli.command {
        Command::Doctor(args) => doctor::run(args),
    }
}
