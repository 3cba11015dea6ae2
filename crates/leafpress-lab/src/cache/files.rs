//! Files of a comparison.

use std::path::Path;

use super::outcome::Outcome;
use super::{FigureOutcome, html, mrc, paper, tables};
use crate::core::LabError;
use crate::report::{Written, json, write_all};

/// Writes `summary.tsv`, a line for each cache, `over_time.tsv`, a line for each window of each, `mrc.tsv`, a line for
/// each size of the curves, `results.json` and `report.html` into `directory`, which is created if missing. There are
/// no files for what was not run.
///
/// # Errors
/// [`LabError::Io`] when a file cannot be written, [`LabError::Chart`] when a chart cannot be drawn.
pub fn write_files(outcome: &Outcome, command_line: &str, directory: &Path) -> Result<Written, LabError> {
    let mut files = Vec::new();
    if !outcome.options.engines.is_empty() {
        files.push(("summary", "summary.tsv", tables::summary(outcome)));
        files.push(("over time", "over_time.tsv", tables::over_time(outcome)));
    }
    if let Some(curves) = &outcome.mrc {
        files.push(("curves", "mrc.tsv", mrc::tsv(curves)));
    }
    files.push(("json", "results.json", json(command_line, outcome)?));
    files.push(("report", "report.html", html::page(outcome, command_line)?));
    write_all(directory, files)
}

/// Writes the files of a figure of the paper, with the scenario of each line; see [`write_files`].
///
/// # Errors
/// As [`write_files`].
pub fn write_figure_files(outcome: &FigureOutcome, command_line: &str, directory: &Path) -> Result<Written, LabError> {
    let files = [
        ("summary", "summary.tsv", paper::summary(outcome)),
        ("over time", "over_time.tsv", paper::over_time(outcome)),
        ("json", "results.json", json(command_line, outcome)?),
        ("report", "report.html", paper::page(outcome, command_line)?),
    ];
    write_all(directory, files)
}
