//! Files of a suite.

use std::path::Path;

use super::{Report, html, tables};
use crate::core::LabError;
use crate::report::{Written, json, write_all};

/// Writes into `directory`, which exists: `summary.tsv`, a line for each file, codec, length of blocks and number of
/// threads; `overall.tsv`, the same without the files; `suite_wide_Nt.tsv`, the thesis' table, for each number of
/// threads; `results.json` and `report.html`.
///
/// # Errors
/// [`LabError::Io`] when a file cannot be written, [`LabError::Chart`] when a chart cannot be drawn.
pub fn write_files(report: &Report, command_line: &str, directory: &Path) -> Result<Written, LabError> {
    let mut files = vec![
        ("summary", "summary.tsv".to_owned(), tables::summary(report)),
        ("overall", "overall.tsv".into(), tables::overall(report)),
    ];
    let threads = report.options.threads.iter();
    files.extend(threads.map(|&threads| {
        (
            "wide",
            format!("suite_wide_{threads}t.tsv"),
            tables::wide(report, threads),
        )
    }));
    files.push(("json", "results.json".into(), json(command_line, report)?));
    files.push(("report", "report.html".into(), html::page(report, command_line)?));
    write_all(directory, files)
}
