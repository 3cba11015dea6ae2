//! What a comparison leaves in a directory.

use std::path::Path;

use super::outcome::Outcome;
use super::{html, tables};
use crate::core::LabError;
use crate::report::{Written, json, write_all};

/// Writes `summary.tsv`, a line for each cache, `over_time.tsv`, a line for each window of each, `results.json` and `report.html` into
/// `directory`, which exists.
///
/// # Errors
/// [`LabError::Io`] when a file cannot be written, [`LabError::Chart`] when a chart cannot be drawn.
pub fn write_files(outcome: &Outcome, command_line: &str, directory: &Path) -> Result<Written, LabError> {
    let files = [
        ("summary", "summary.tsv", tables::summary(outcome)),
        ("over time", "over_time.tsv", tables::over_time(outcome)),
        ("json", "results.json", json(command_line, outcome)?),
        ("report", "report.html", html::page(outcome, command_line)?),
    ];
    write_all(directory, files)
}
