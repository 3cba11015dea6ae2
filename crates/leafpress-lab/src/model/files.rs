//! What the model leaves in a directory.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::tco::Savings;
use super::{Outcome, html, tables};
use crate::core::LabError;
use crate::report::{self, write};

/// Files that were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// A line for each codec and share.
    pub summary: PathBuf,
    /// Everything.
    pub json: PathBuf,
    /// A page with charts.
    pub html: PathBuf,
}

/// What `results.json` holds beside what each has.
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

/// Writes `summary.tsv`, `results.json` and `report.html` into `directory`, which exists.
///
/// # Errors
/// [`LabError::Io`] when a file cannot be written, [`LabError::Chart`] when a chart cannot be drawn.
pub fn write_files(
    outcome: &Outcome,
    savings: Option<&[Savings]>,
    command_line: &str,
    directory: &Path,
) -> Result<Files, LabError> {
    let files = Files {
        summary: directory.join("summary.tsv"),
        json: directory.join("results.json"),
        html: directory.join("report.html"),
    };
    write(&files.summary, &tables::summary(outcome))?;
    write(&files.json, &json(outcome, savings, command_line)?)?;
    write(&files.html, &html::page(outcome, savings, command_line)?)?;
    Ok(files)
}
