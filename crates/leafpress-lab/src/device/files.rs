//! Files of a probe.

use std::path::Path;

use super::{Report, html, tables};
use crate::core::LabError;
use crate::report::{Written, json, write_all};

/// Writes `summary.tsv`, a line for each measurement, `results.json` and `report.html` into `directory`, which exists.
///
/// # Errors
/// [`LabError::Io`] when a file cannot be written, [`LabError::Chart`] when a chart cannot be drawn.
pub fn write_files(report: &Report, command_line: &str, directory: &Path) -> Result<Written, LabError> {
    let files = [
        ("summary", "summary.tsv", tables::summary(report)),
        ("json", "results.json", json(command_line, report)?),
        ("report", "report.html", html::page(report, command_line)?),
    ];
    write_all(directory, files)
}
