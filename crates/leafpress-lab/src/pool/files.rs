//! Files of one or several runs.

use std::path::Path;

use super::sweep::Sweep;
use super::{html, tables};
use crate::core::LabError;
use crate::report::{Written, json, write_all};

/// Writes `summary.tsv`, a line for each run, `over_time.tsv`, a line for each window of each run, `results.json` and
/// `report.html` into `directory`, which exists.
///
/// # Errors
/// [`LabError::Io`] when a file cannot be written, [`LabError::Chart`] when a chart cannot be drawn.
pub fn write_files(sweep: &Sweep, command_line: &str, directory: &Path) -> Result<Written, LabError> {
    let files = [
        ("summary", "summary.tsv", tables::summary(sweep)),
        ("over time", "over_time.tsv", tables::over_time(sweep)),
        ("json", "results.json", json(command_line, sweep)?),
        ("report", "report.html", html::page(sweep, command_line)?),
    ];
    write_all(directory, files)
}
