//! Corpora, workloads, measurement and reports for Leafpress.
//!
//! [`core`] is what measurements are made of, [`harness`] what runs of every kind share, [`driver`] what keeps their
//! threads in step, [`report`] what every report is made of; none of the four knows a command. Above them a folder for
//! each command: its options, its run, what it measured, and how that is shown.
//! [`run_eval`], for one, runs an [`EvalConfig`]: each codec and configuration in its own process.
#![warn(missing_docs)]

#[cfg(feature = "advise")]
pub mod advise;
#[cfg(feature = "bench")]
pub mod bench;
#[cfg(feature = "cache")]
pub mod cache;
pub mod core;
#[cfg(feature = "device")]
pub mod device;
pub mod driver;
pub mod eval;
pub mod harness;
mod jobs;
#[cfg(feature = "keyspace")]
pub mod keyspace;
pub mod model;
pub mod papers;
#[cfg(feature = "peers")]
pub mod peers;
#[cfg(feature = "plan")]
pub mod plan;
#[cfg(feature = "pool")]
pub mod pool;
pub mod report;
#[cfg(feature = "suite")]
pub mod suite;

pub use core::{Bytes, LabError, ParseBytesError};
pub use eval::{EvalConfig, EvalOutcome, Failure, Progress, Row, RunSpec, Workload, run_eval, run_eval_with};
pub use harness::Phase;
pub use harness::child::{CHILD_SUBCOMMAND, Launcher, serve};
pub use jobs::child_main;
#[cfg(feature = "bench")]
pub use jobs::child_main_with;
