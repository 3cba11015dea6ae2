//! The output of benchmarks for people and programs: a table, `summary.tsv`, `results.json`, `report.html`.

pub(crate) mod cells;
mod document;
pub(crate) mod tables;

use leafpress_lab::core::resources;
use serde::Serialize;

pub use document::{document, line};
pub(crate) use document::{options_of, shape};

use crate::{Outcome, Run};

/// A benchmark that ran.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The run.
    pub run: Run,
    /// RocksDB's options, as they were given to it.
    pub options: String,
    /// Its results.
    pub outcome: Outcome,
}

impl Row {
    /// Returns a run and what it measured.
    pub fn new(run: &Run, outcome: Outcome) -> Self {
        Self {
            run: run.clone(),
            options: crate::options_string(&run.shape, &run.tuning),
            outcome,
        }
    }

    /// The wrong answers of the run, with an example; none where all were right.
    pub(crate) fn wrong_answers(&self) -> Option<String> {
        let Outcome {
            mismatches,
            mismatch_examples,
            ..
        } = &self.outcome;
        let example = mismatch_examples.first().map_or("", String::as_str);
        (*mismatches > 0).then(|| {
            let (workload, compression) = (&self.run.workload, &self.run.shape.compression);
            format!("{workload} {compression}: {mismatches} ({example})")
        })
    }
}

/// Benchmarks of one command.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The machine.
    pub host: String,
    /// The runs, in order.
    pub rows: Vec<Row>,
    /// The user stopped it.
    pub cancelled: bool,
    /// The reason why the rest did not run.
    pub failure: Option<String>,
}

impl Report {
    /// Returns a report without a row, of this machine.
    pub fn new() -> Self {
        Self {
            host: resources::host(),
            rows: Vec::new(),
            cancelled: false,
            failure: None,
        }
    }
}

impl Default for Report {
    fn default() -> Self {
        Self::new()
    }
}
