//! The evaluation: codecs and configurations of the tree, each in its own process, over the same data.
//!
//! [`run_eval`] expands an [`EvalConfig`] (`options`) into runs (`matrix`), starts a process for each, which does it
//! (`driver`) and answers with its measurements (`result`), writes a line of `summary.tsv` as each ends (`summary`),
//! and the tables, charts and page at the end (`view`).

pub mod dataset;
pub mod driver;
mod landing_bytes;
pub mod matrix;
pub mod options;
mod outcome;
pub mod result;
mod run;
pub mod summary;
mod view;
pub mod words;
pub mod workload;

pub use landing_bytes::LandingBytes;
pub use matrix::RunSpec;
pub use options::EvalConfig;
pub use outcome::{EvalOutcome, Failure, Progress, Row};
pub use run::{run_eval, run_eval_with};
pub use workload::Workload;

/// The job of a child that does one run; the answer is a [`RunResult`](result::RunResult).
pub(crate) const RUN: &str = "eval_run";
/// The job of a child that loads a run's tree to see what it takes; the answer is a
/// [`Weight`](crate::harness::resident_memory::Weight).
pub(crate) const WEIGH: &str = "eval_weigh";
/// The job of a child that only opens a run's codec; the answer is the name of its engine.
pub(crate) const ENGINE: &str = "eval_engine";
