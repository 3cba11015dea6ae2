//! Corpora, workloads, measurement and reports for Leafpress.
//!
//! [`run_eval`] runs an [`EvalConfig`]: each codec and configuration in a process of its own. It returns the rows and writes
//! `summary.tsv`, `results.json` and `report.html`.
#![warn(missing_docs)]

#[cfg(feature = "advise")]
pub mod advise;
#[cfg(feature = "bench")]
pub mod bench;
mod bytes;
pub mod check;
mod child;
pub mod config;
pub mod corpus;
#[cfg(feature = "device")]
pub mod device;
mod error;
mod eval;
pub mod keys;
pub mod latency;
#[cfg(feature = "peers")]
mod maps;
pub mod matrix;
pub mod model;
#[cfg(feature = "peers")]
pub mod peers;
#[cfg(feature = "pool")]
pub mod pool;
pub mod report;
pub mod resources;
pub mod result;
pub mod run;
pub mod store;
#[cfg(feature = "suite")]
pub mod suite;
pub mod summary;
pub mod workload;

pub use bytes::{Bytes, ParseBytesError};
#[cfg(feature = "bench")]
pub use child::child_main_with;
pub use child::{CHILD_SUBCOMMAND, Launcher, child_main, serve};
pub use config::EvalConfig;
pub use error::LabError;
pub use eval::{EvalOutcome, Failure, Phase, Progress, Row, run_eval, run_eval_with};
pub use matrix::RunSpec;
pub use workload::Workload;
