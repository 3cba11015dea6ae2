//! What an evaluation leaves: a row for each run that finished, a reason for each that did not, and where its files are.

use std::path::PathBuf;

use serde::Serialize;

use super::matrix::RunSpec;
use super::result::RunResult;
use crate::harness::Phase;

/// A run that finished, with its log files.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// What ran.
    pub spec: RunSpec,
    /// What it measured.
    pub result: RunResult,
    /// What its process wrote.
    #[serde(serialize_with = "crate::core::paths::serialize")]
    pub log: PathBuf,
    /// Its CPU and memory figures, `None` when they were not collected.
    #[serde(serialize_with = "crate::core::paths::optional::serialize")]
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

/// What an evaluation leaves.
#[derive(Debug, Clone)]
pub struct EvalOutcome {
    /// Runs that finished, in order.
    pub rows: Vec<Row>,
    /// Runs that failed.
    pub failures: Vec<Failure>,
    /// What was stored, in words.
    pub data: String,
    /// What must be known before the figures are believed, a sentence or two each.
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
    /// Whether every run finished without a mismatch. A command exits with 1 when not.
    pub fn is_good(&self) -> bool {
        self.mismatches == 0 && self.failures.is_empty() && !self.cancelled
    }
}
