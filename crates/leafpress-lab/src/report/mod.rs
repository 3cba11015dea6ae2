//! Common parts of reports: pages, charts, tables, formatted numbers, and atomically written files. Independent of any
//! command.

pub(crate) mod document;
pub mod draw;
mod files;
pub(crate) mod hot_set_move;
pub mod html;
pub(crate) mod labels;
pub mod numbers;
#[cfg(any(feature = "bench", feature = "cache", feature = "pool"))]
pub(crate) mod over_time;
pub mod palette;
pub(crate) mod paragraph;
#[cfg(feature = "cache")]
pub(crate) mod rows;
pub mod scatter;
#[cfg(feature = "suite")]
pub(crate) mod stepped_lines;
pub(crate) mod table;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(feature = "suite")]
pub(crate) mod trade_off;
pub mod tsv;
pub(crate) mod verdict;
mod width;
pub(crate) mod words;

use serde::Serialize;

use crate::core::LabError;
pub use document::{Document, Table};
pub use files::{Written, write, write_all};
pub use paragraph::{narrow, wrapped, wrapped_to};
pub use table::{Marked, Part, of_parts};
pub use width::set_page_width;

/// A cell without meaning for a run.
pub const NOT_APPLICABLE: &str = "NA";

/// The layout of every `results.json`: these fields, and the results' own.
#[derive(Serialize)]
struct Results<'d, R> {
    /// Number of this layout; a change that breaks readers raises it.
    format: u32,
    version: &'static str,
    command_line: &'d str,
    #[serde(flatten)]
    results: &'d R,
}

/// Formats the text of a `results.json`.
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
