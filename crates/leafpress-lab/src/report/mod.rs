//! What a run leaves for people and programs: the table of an evaluation, `results.json`, `report.html`, and what every report is made of.

mod charts;
pub mod draw;
pub mod html;
mod labels;
#[cfg(feature = "suite")]
pub(crate) mod ladder;
pub mod palette;
mod pivot;
pub mod scatter;
mod table;

use std::path::Path;

use comfy_table::{LineStyle, TableStyle};
use serde::Serialize;

use crate::eval::{EvalOutcome, Failure, Row};
use crate::{EvalConfig, LabError};
use pivot::Pivot;

/// How tables for people are drawn: a rule above, below, and under the header.
pub const TABLE_STYLE: TableStyle = TableStyle::new()
    .top_border(RULE)
    .header_separator(RULE)
    .bottom_border(RULE);
const RULE: LineStyle = LineStyle::none().fill('─').junction('─');

/// What `results.json` holds.
#[derive(Serialize)]
struct Document<'r> {
    /// Number of this layout; a change that breaks readers raises it.
    format: u32,
    version: &'static str,
    host: &'r str,
    command_line: Option<&'r str>,
    cancelled: bool,
    mismatches: u64,
    config: &'r EvalConfig,
    rows: &'r [Row],
    failures: &'r [Failure],
}

/// Makes the table and writes the files of a finished, or cancelled, evaluation.
///
/// # Errors
/// [`LabError::Io`] when a file cannot be written, [`LabError::Chart`] when a chart cannot be drawn.
pub(crate) fn finish(config: &EvalConfig, host: &str, outcome: &mut EvalOutcome) -> Result<(), LabError> {
    let pivot = Pivot::new(&outcome.rows);
    let document = Document {
        format: 1,
        version: env!("CARGO_PKG_VERSION"),
        host,
        command_line: config.command_line.as_deref(),
        cancelled: outcome.cancelled,
        mismatches: outcome.mismatches,
        config,
        rows: &outcome.rows,
        failures: &outcome.failures,
    };
    let json = serde_json::to_string_pretty(&document).map_err(|e| LabError::System(e.to_string()))?;
    write(&outcome.json_path, &json)?;
    write(&outcome.html_path, &html::page(config, host, outcome, &pivot)?)?;
    outcome.table = table::text(outcome, &pivot);
    Ok(())
}

/// What every `results.json` is: this, and the results' own fields.
#[derive(Serialize)]
struct Results<'d, R> {
    /// Number of this layout; a change that breaks readers raises it.
    format: u32,
    version: &'static str,
    command_line: &'d str,
    #[serde(flatten)]
    results: &'d R,
}

/// The text of a `results.json`.
///
/// # Errors
/// [`LabError::System`] when the results have no form in JSON.
pub fn json(command_line: &str, results: &impl Serialize) -> Result<String, LabError> {
    let results = Results {
        format: 1,
        version: env!("CARGO_PKG_VERSION"),
        command_line,
        results,
    };
    let json = serde_json::to_string_pretty(&results).map_err(|e| LabError::System(e.to_string()))?;
    Ok(json + "\n")
}

/// Writes a file in one step: a reader finds the old one or the new one, never a part.
///
/// # Errors
/// [`LabError::Io`] when it cannot be written.
pub fn write(path: &Path, text: &str) -> Result<(), LabError> {
    let unfinished = path.with_extension("unfinished");
    std::fs::write(&unfinished, text).map_err(|e| LabError::io(&unfinished, e))?;
    std::fs::rename(&unfinished, path).map_err(|e| LabError::io(path, e))
}

#[cfg(test)]
mod tests;
