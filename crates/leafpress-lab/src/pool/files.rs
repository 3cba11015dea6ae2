//! What a run, or several, leave in a directory.

use std::path::{Path, PathBuf};

use super::sweep::Sweep;
use super::{html, tables};
use crate::core::LabError;
use crate::report::{json, write};

/// Files that were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// A line for each run.
    pub summary: PathBuf,
    /// A line for each window of each run.
    pub over_time: PathBuf,
    /// Everything.
    pub json: PathBuf,
    /// A page with charts.
    pub html: PathBuf,
}

/// Writes `summary.tsv`, `over_time.tsv`, `results.json` and `report.html` into `directory`, which exists.
///
/// # Errors
/// [`LabError::Io`] when a file cannot be written, [`LabError::Chart`] when a chart cannot be drawn.
pub fn write_files(sweep: &Sweep, command_line: &str, directory: &Path) -> Result<Files, LabError> {
    let files = Files {
        summary: directory.join("summary.tsv"),
        over_time: directory.join("over_time.tsv"),
        json: directory.join("results.json"),
        html: directory.join("report.html"),
    };
    write(&files.summary, &tables::summary(sweep))?;
    write(&files.over_time, &tables::over_time(sweep))?;
    write(&files.json, &json(command_line, sweep)?)?;
    write(&files.html, &html::page(sweep, command_line)?)?;
    Ok(files)
}
