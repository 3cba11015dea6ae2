//! What a suite leaves in a directory.

use std::path::{Path, PathBuf};

use super::{Report, html, tables};
use crate::core::LabError;
use crate::report::{json, write};

/// Files that were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// A line for each file, codec, length of blocks and number of threads.
    pub summary: PathBuf,
    /// A line for each codec, length of blocks and number of threads.
    pub overall: PathBuf,
    /// The thesis' table, one for each number of threads.
    pub wide: Vec<PathBuf>,
    /// Everything.
    pub json: PathBuf,
    /// A page with charts.
    pub html: PathBuf,
}

/// Writes `summary.tsv`, `overall.tsv`, `suite_wide_Nt.tsv` for each number of threads, `results.json` and `report.html` into
/// `directory`, which exists.
///
/// # Errors
/// [`LabError::Io`] when a file cannot be written, [`LabError::Chart`] when a chart cannot be drawn.
pub fn write_files(report: &Report, command_line: &str, directory: &Path) -> Result<Files, LabError> {
    let wide = |threads: &usize| (*threads, directory.join(format!("suite_wide_{threads}t.tsv")));
    let wide: Vec<(usize, PathBuf)> = report.options.threads.iter().map(wide).collect();
    for (threads, path) in &wide {
        write(path, &tables::wide(report, *threads))?;
    }
    let files = Files {
        summary: directory.join("summary.tsv"),
        overall: directory.join("overall.tsv"),
        wide: wide.into_iter().map(|(_, path)| path).collect(),
        json: directory.join("results.json"),
        html: directory.join("report.html"),
    };
    write(&files.summary, &tables::summary(report))?;
    write(&files.overall, &tables::overall(report))?;
    write(&files.json, &json(command_line, report)?)?;
    write(&files.html, &html::page(report, command_line)?)?;
    Ok(files)
}
