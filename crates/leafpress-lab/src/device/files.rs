//! What a probe leaves in a directory.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Report, html, tables};
use crate::LabError;
use crate::report::write;

/// Files that were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// A line for each measurement.
    pub summary: PathBuf,
    /// Everything.
    pub json: PathBuf,
    /// A page with charts.
    pub html: PathBuf,
}

/// What `results.json` holds.
#[derive(Serialize)]
struct Document<'d> {
    /// Number of this layout; a change that breaks readers raises it.
    format: u32,
    version: &'static str,
    command_line: &'d str,
    #[serde(flatten)]
    report: &'d Report,
}

/// Writes `summary.tsv`, `results.json` and `report.html` into `directory`, which exists.
///
/// # Errors
/// [`LabError::Io`] when a file cannot be written, [`LabError::Chart`] when a chart cannot be drawn.
pub fn write_files(report: &Report, command_line: &str, directory: &Path) -> Result<Files, LabError> {
    let files = Files {
        summary: directory.join("summary.tsv"),
        json: directory.join("results.json"),
        html: directory.join("report.html"),
    };
    let document = Document {
        format: 1,
        version: env!("CARGO_PKG_VERSION"),
        command_line,
        report,
    };
    let json = serde_json::to_string_pretty(&document).map_err(|e| LabError::System(e.to_string()))?;
    write(&files.summary, &tables::summary(report))?;
    write(&files.json, &(json + "\n"))?;
    write(&files.html, &html::page(report, command_line)?)?;
    Ok(files)
}
