//! The files that a command writes to a directory.

use std::fmt;
use std::path::{Path, PathBuf};

use leafpress_lab::report::{json, write};
use serde::Serialize;

use super::{Report, html, tables};
use crate::BenchError;

/// Files that were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// Tables for programs.
    pub tables: Vec<PathBuf>,
    /// Everything.
    pub json: PathBuf,
    /// A page with charts.
    pub html: PathBuf,
}

impl fmt::Display for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f)?;
        for table in &self.tables {
            writeln!(f, "table   {}", table.display())?;
        }
        writeln!(f, "json    {}\nreport  {}", self.json.display(), self.html.display())
    }
}

/// Writes `summary.tsv`, `results.json` and `report.html` of benchmarks into `directory`, which exists.
///
/// # Errors
/// [`BenchError::Lab`] when a file cannot be written or a chart not be drawn.
pub fn write_files(report: &Report, command_line: &str, directory: &Path) -> Result<Files, BenchError> {
    let page = html::page(report, command_line)?;
    write_set(
        &[("summary", tables::summary(&report.rows))],
        report,
        &page,
        command_line,
        directory,
    )
}

/// Writes tables by their names, `results.json` and `report.html` into `directory`, which exists.
///
/// # Errors
/// [`BenchError::Lab`] when a file cannot be written.
pub fn write_set(
    tables: &[(&str, String)],
    results: &impl Serialize,
    page: &str,
    command_line: &str,
    directory: &Path,
) -> Result<Files, BenchError> {
    let mut files = Files {
        tables: Vec::new(),
        json: directory.join("results.json"),
        html: directory.join("report.html"),
    };
    for (name, table) in tables {
        let path = directory.join(format!("{name}.tsv"));
        write(&path, table)?;
        files.tables.push(path);
    }
    write(&files.json, &json(command_line, results)?)?;
    write(&files.html, page)?;
    Ok(files)
}
