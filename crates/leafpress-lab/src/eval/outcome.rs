//! Results of an evaluation: a row for each finished run, a reason for each failed one, and the locations of files.

use std::path::PathBuf;

use serde::Serialize;

use super::matrix::RunSpec;
use super::result::RunResult;
use crate::harness::Phase;

/// A run that finished, with its log files.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The run's setting.
    pub spec: RunSpec,
    /// Its measurements.
    pub result: RunResult,
    /// The log of its process.
    #[serde(serialize_with = "crate::core::paths::serialize")]
    pub log: PathBuf,
    /// Its CPU and memory figures, `None` when they were not collected.
    #[serde(serialize_with = "crate::core::paths::optional::serialize")]
    pub cpu_log: Option<PathBuf>,
}

/// A run that failed.
#[derive(Debug, Clone, Serialize)]
pub struct Failure {
    /// The run's setting.
    pub spec: RunSpec,
    /// Why it did not, in one line.
    pub reason: String,
    /// The log of its process.
    #[serde(serialize_with = "crate::core::paths::serialize")]
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
        /// The run in progress.
        spec: Box<RunSpec>,
    },
    /// The run in progress.
    Phase {
        /// Its phase.
        phase: Phase,
        /// Its progress, 0 to 1.
        fraction: f64,
    },
    /// The run finished and its row is on disk.
    Finished(Box<Row>),
    /// The run failed; the evaluation continues.
    Failed(Box<Failure>),
}

/// Results of an evaluation.
#[derive(Debug, Clone)]
pub struct EvalOutcome {
    /// Runs that finished, in order.
    pub rows: Vec<Row>,
    /// Runs that failed.
    pub failures: Vec<Failure>,
    /// Description of the data.
    pub data: String,
    /// Caveats of the figures, a sentence or two each.
    pub cautions: Vec<String>,
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
    /// Returns whether every run finished without a mismatch. A command exits with 1 when not.
    pub fn is_good(&self) -> bool {
        self.mismatches == 0 && self.failures.is_empty() && !self.cancelled
    }
}
