//! Files of a suite over records.

use std::path::Path;

use super::{Report, html, tables};
use crate::core::LabError;
use crate::report::{Written, json, write_all};

/// Writes `records.tsv`, a line for each codec, place and number of threads and one for the limit, `results.json` and
/// `report.html` into `directory`, which exists.
///
/// # Errors
/// [`LabError::Io`] when a file cannot be written, [`LabError::Chart`] when a chart cannot be drawn.
pub fn write_files(report: &Report, command_line: &str, directory: &Path) -> Result<Written, LabError> {
    let files = [
        ("records", "records.tsv", tables::table(report)),
        ("json", "results.json", json(command_line, report)?),
        ("report", "report.html", html::page(report, command_line)?),
    ];
    write_all(directory, files)
}
