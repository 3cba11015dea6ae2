//! An evaluation: runs one after the other, rows as they finish, reports at the end.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;

use crate::matrix::RunSpec;
use crate::result::RunResult;
use crate::{EvalConfig, LabError};

/// A run that finished, with its log files.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// What ran.
    pub spec: RunSpec,
    /// What it measured.
    pub result: RunResult,
    /// What its process wrote.
    pub log: PathBuf,
    /// Its CPU and memory figures, `None` when they were not collected.
    pub cpu_log: Option<PathBuf>,
}

/// A run that failed.
#[derive(Debug, Clone, Serialize)]
pub struct Failure {
    /// What was to run.
    pub spec: RunSpec,
    /// Why it did not, in one line.
    pub reason: String,
    /// What its process wrote.
    pub log: PathBuf,
}

/// Where an evaluation is.
#[derive(Debug, Clone)]
pub enum Progress {
    /// Run number `index` (from 0) of `total` starts.
    Started {
        /// The run's number.
        index: usize,
        /// Number of runs.
        total: usize,
        /// What runs.
        spec: Box<RunSpec>,
    },
    /// The run in progress.
    Phase {
        /// What it is doing.
        phase: Phase,
        /// How much of that is done, 0 to 1.
        fraction: f64,
    },
    /// The run finished and its row is on disk.
    Finished(Box<Row>),
    /// The run failed; the evaluation goes on.
    Failed(Box<Failure>),
}

/// What a run is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Reading and cutting the data.
    Corpus,
    /// Loading the key space.
    Load,
    /// Warming up.
    WarmUp,
    /// The timed window.
    Timed,
    /// Checking every key after the timed window.
    Verify,
}

/// What an evaluation leaves.
#[derive(Debug, Clone)]
pub struct EvalOutcome {
    /// Runs that finished, in order.
    pub rows: Vec<Row>,
    /// Runs that failed.
    pub failures: Vec<Failure>,
    /// The table for people, ready to print.
    pub table: String,
    /// `summary.tsv`.
    pub summary_path: PathBuf,
    /// `results.json`.
    pub json_path: PathBuf,
    /// `report.html`.
    pub html_path: PathBuf,
    /// Mismatches of all rows together; must be 0.
    pub mismatches: u64,
    /// Whether it was cancelled before the last run.
    pub cancelled: bool,
}

impl EvalOutcome {
    /// Whether every run finished without a mismatch. A command exits with 1 when not.
    pub fn is_good(&self) -> bool {
        self.mismatches == 0 && self.failures.is_empty() && !self.cancelled
    }
}

/// Runs an evaluation: each codec and configuration in a process of its own (the current executable with the hidden subcommand
/// [`CHILD_SUBCOMMAND`](crate::CHILD_SUBCOMMAND)), a row in `out_dir/summary.tsv` as soon as it finishes, then the reports.
/// `cancel` ends the run in progress and keeps the rows finished so far.
///
/// # Errors
/// What [`EvalConfig::validate`] finds, unusable data, or an `out_dir` that cannot be written; nothing is left half-written
/// then. A run that fails is not an error but a [`Failure`].
pub fn run_eval(
    config: &EvalConfig,
    out_dir: &Path,
    cancel: &Arc<AtomicBool>,
    progress: &mut dyn FnMut(Progress),
) -> Result<EvalOutcome, LabError> {
    let _ = (config, out_dir, cancel, progress);
    Err(LabError::System("the evaluation is not here yet".into()))
}
