//! What every report is made of: pages, charts, tables, numbers as people read them, and files that are whole or not there. Knows no command.

pub mod draw;
pub mod html;
pub(crate) mod labels;
#[cfg(feature = "suite")]
pub(crate) mod ladder;
pub mod numbers;
pub mod palette;
pub mod scatter;
#[cfg(feature = "suite")]
pub(crate) mod trade_off;
pub(crate) mod tsv;

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
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

/// Writes a file in one step: a reader finds the old one or the new one, never a part, and so does who comes after a power cut.
///
/// # Errors
/// [`LabError::Io`] when it cannot be written; what was there stays.
pub fn write(path: &Path, text: &str) -> Result<(), LabError> {
    replace(path, text).map_err(|e| LabError::io(path, e))
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut file = tempfile::Builder::new()
        .prefix(".leafpress-")
        // What a new file has, before the mask.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    // The file's name is the directory's.
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_or_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("results.json");
        for text in ["old", "new"] {
            write(&path, text).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(
            std::fs::read_dir(directory.path()).unwrap().count(),
            1,
            "nothing else is left"
        );
        // A directory cannot be replaced: nothing of the attempt stays either.
        let taken = directory.path().join("taken");
        std::fs::create_dir(&taken).unwrap();
        assert!(write(&taken, "text").unwrap_err().to_string().contains("taken"));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn two_writers_of_one_file_leave_one_of_the_two() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("results.json");
        std::thread::scope(|scope| {
            for letter in ["a", "b"] {
                let path = &path;
                scope.spawn(move || (0..50).for_each(|_| write(path, &letter.repeat(100_000)).unwrap()));
            }
        });
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text == "a".repeat(100_000) || text == "b".repeat(100_000));
    }
}
