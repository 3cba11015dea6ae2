//! What a suite over records leaves in a directory.

use std::path::{Path, PathBuf};

use super::{Report, html, tables};
use crate::core::LabError;
use crate::report::{json, write};

/// Files that were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// A line for each codec, place and number of threads, and one for the limit.
    pub table: PathBuf,
    /// Everything.
    pub json: PathBuf,
    /// A page with charts.
    pub html: PathBuf,
}

/// Writes `records.tsv`, `results.json` and `report.html` into `directory`, which exists.
///
/// # Errors
/// [`LabError::Io`] when a file cannot be written, [`LabError::Chart`] when a chart cannot be drawn.
pub fn write_files(report: &Report, command_line: &str, directory: &Path) -> Result<Files, LabError> {
    let files = Files {
        table: directory.join("records.tsv"),
        json: directory.join("results.json"),
        html: directory.join("report.html"),
    };
    write(&files.table, &tables::table(report))?;
    write(&files.json, &json(command_line, report)?)?;
    write(&files.html, &html::page(report, command_line)?)?;
    Ok(files)
}
