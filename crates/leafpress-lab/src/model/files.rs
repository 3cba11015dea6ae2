//! Files of the model.

use std::path::Path;

use serde::Serialize;

use super::tco::Savings;
use super::{Outcome, html, tables};
use crate::core::LabError;
use crate::report::{self, Written, write_all};

/// Fields of `results.json`, in addition to the common ones.
#[derive(Serialize)]
struct Document<'d> {
    #[serde(flatten)]
    outcome: &'d Outcome,
    savings: Option<&'d [Savings]>,
}

/// `results.json`.
///
/// # Errors
/// [`LabError::System`] when it cannot be written as JSON.
pub fn json(outcome: &Outcome, savings: Option<&[Savings]>, command_line: &str) -> Result<String, LabError> {
    report::json(command_line, &Document { outcome, savings })
}

/// Writes `summary.tsv`, a line for each codec and share, `results.json` and `report.html` into `directory`, which
/// exists.
///
/// # Errors
/// [`LabError::Io`] when a file cannot be written, [`LabError::Chart`] when a chart cannot be drawn.
pub fn write_files(
    outcome: &Outcome,
    savings: Option<&[Savings]>,
    command_line: &str,
    directory: &Path,
) -> Result<Written, LabError> {
    let files = [
        ("summary", "summary.tsv", tables::summary(outcome)),
        ("json", "results.json", json(outcome, savings, command_line)?),
        ("report", "report.html", html::page(outcome, savings, command_line)?),
    ];
    write_all(directory, files)
}
