//! Output of an evaluation for people and programs: the table, `results.json` and `report.html`.

mod charts;
mod document;
mod hotset;
mod pivot;
mod table;
mod verdict;

use serde::Serialize;

use super::options::EvalConfig;
use super::outcome::{EvalOutcome, Failure, Row};
use crate::core::LabError;
use crate::report::write;
use pivot::Pivot;

/// Fields of `results.json`.
#[derive(Serialize)]
struct Document<'r> {
    /// Number of this layout; a change that breaks readers raises it.
    format: u32,
    version: &'static str,
    host: &'r str,
    command_line: Option<&'r str>,
    cancelled: bool,
    mismatches: u64,
    cautions: &'r [String],
    config: &'r EvalConfig,
    rows: &'r [Row],
    failures: &'r [Failure],
}

/// Makes the table and writes the files of a finished, or cancelled, evaluation.
///
/// # Errors
/// [`LabError::Io`] when a file cannot be written, [`LabError::Chart`] when a chart cannot be drawn.
pub(super) fn finish(config: &EvalConfig, host: &str, outcome: &mut EvalOutcome) -> Result<(), LabError> {
    let pivot = Pivot::new(&outcome.rows);
    let document = Document {
        format: 1,
        version: env!("CARGO_PKG_VERSION"),
        host,
        command_line: config.command_line.as_deref(),
        cancelled: outcome.cancelled,
        mismatches: outcome.mismatches,
        cautions: &outcome.cautions,
        config,
        rows: &outcome.rows,
        failures: &outcome.failures,
    };
    let json = serde_json::to_string_pretty(&document).map_err(|e| LabError::System(e.to_string()))?;
    write(&outcome.json_path, &json)?;
    let report = document::document(config, host, outcome, &pivot);
    let page = report.page(config.command_line.as_deref().unwrap_or_default())?;
    write(&outcome.html_path, &page)?;
    let text = report.text();
    drop(report);
    outcome.table = text;
    Ok(())
}

#[cfg(test)]
mod tests;
