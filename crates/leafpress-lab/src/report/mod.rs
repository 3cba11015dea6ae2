//! What every report is made of: pages, charts, tables, numbers as people read them, and files that are whole or not there. Knows no command.

pub mod draw;
pub mod html;
pub(crate) mod labels;
#[cfg(feature = "suite")]
pub(crate) mod ladder;
pub mod numbers;
pub mod palette;
pub mod scatter;

use std::path::Path;

use comfy_table::{LineStyle, TableStyle};
use serde::Serialize;

use crate::core::LabError;

/// What a cell holds that has no meaning for a run.
pub const NOT_APPLICABLE: &str = "NA";

/// How tables for people are drawn: a rule above, below, and under the header.
pub const TABLE_STYLE: TableStyle = TableStyle::new()
    .top_border(RULE)
    .header_separator(RULE)
    .bottom_border(RULE);
const RULE: LineStyle = LineStyle::none().fill('─').junction('─');

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
