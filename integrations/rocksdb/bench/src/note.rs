//! Identifies databases: by a note next to those that this program filled, by RocksDB's options file for others.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use leafpress_lab::LabError;
use leafpress_lab::report;
use serde::{Deserialize, Serialize};

use crate::BenchError;
use crate::options::{Run, Shape};

/// The name of the file that describes a directory of databases: written when they are filled, read when they are used
/// again.
const NOTE: &str = "leafpress-rocksdb.json";

/// The content of the databases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// The compression that they were filled with.
    pub shape: Shape,
    /// Whether every key was inserted.
    pub complete: bool,
}

impl Note {
    /// Returns the note of a directory; `None` if there is none, as for a database that db_bench wrote.
    ///
    /// # Errors
    /// [`BenchError::Database`] when it cannot be read.
    pub fn read(directory: &Path) -> Result<Option<Self>, BenchError> {
        let path = directory.join(NOTE);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(LabError::Io { path, source: e }.into()),
        };
        let note = serde_json::from_str(&text);
        note.map(Some).map_err(|e| {
            BenchError::database(
                path,
                format!("is not a note of this program ({e}); fill the database again"),
            )
        })
    }

    /// Writes the note of a directory.
    pub(crate) fn write(&self, directory: &Path) -> Result<(), BenchError> {
        let text = serde_json::to_string_pretty(self).map_err(|e| LabError::System(e.to_string()))?;
        Ok(report::write(&directory.join(NOTE), &(text + "\n"))?)
    }
}

/// Removes the note of a directory, if there is one.
pub(crate) fn forget(directory: &Path) -> Result<(), BenchError> {
    let path = directory.join(NOTE);
    match fs::remove_file(&path) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(LabError::Io { path, source: e }.into()),
        _ => Ok(()),
    }
}

/// Checks that the databases of a run exist and match its options; returns whether they have every key.
///
/// # Errors
/// [`BenchError::Database`].
pub fn check(run: &Run) -> Result<bool, BenchError> {
    for number in 0..run.shape.instances {
        let directory = run.instance_directory(number);
        if !directory.join("CURRENT").is_file() {
            return Err(BenchError::database(
                directory,
                "there is no database; fill it first with --benchmarks=fillseq, without --use_existing_db",
            ));
        }
    }
    let Some(note) = Note::read(&run.directory)? else {
        return compare_with_options_file(run).map(|()| false);
    };
    let (found, requested) = (&note.shape, &run.shape);
    let differences = [
        (
            "compression",
            found.compression.to_string(),
            requested.compression.to_string(),
        ),
        ("num", found.num.to_string(), requested.num.to_string()),
        (
            "instances",
            found.instances.to_string(),
            requested.instances.to_string(),
        ),
        ("key_size", found.key_bytes.to_string(), requested.key_bytes.to_string()),
        (
            "value_size",
            found.value_bytes.to_string(),
            requested.value_bytes.to_string(),
        ),
        (
            "block_size",
            found.block_bytes.to_string(),
            requested.block_bytes.to_string(),
        ),
        ("seed", found.seed.to_string(), requested.seed.to_string()),
        (
            "value_src_data_type",
            found.values.kind.to_string(),
            requested.values.kind.to_string(),
        ),
        ("data", found.values.data.to_string(), requested.values.data.to_string()),
    ];
    match differences.iter().find(|(_, found, requested)| found != requested) {
        None => Ok(note.complete),
        Some((option, found, requested)) => Err(BenchError::database(
            &run.directory,
            format!(
                "was filled with --{option} {found}, not {requested}; give that, or fill it again without \
                 --use_existing_db"
            ),
        )),
    }
}

/// Checks the compression of a database without a note, by the options with which it was last opened.
fn compare_with_options_file(run: &Run) -> Result<(), BenchError> {
    let directory = run.instance_directory(0);
    let entries = fs::read_dir(&directory).map_err(|source| LabError::Io {
        path: directory.clone(),
        source,
    })?;
    let names = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    let latest = names
        .filter(|name| name.starts_with("OPTIONS-") && !name.ends_with(".dbtmp"))
        .max();
    let Some(text) = latest.and_then(|name| fs::read_to_string(directory.join(name)).ok()) else {
        return Ok(());
    };
    let requested = run.shape.compression.options_string();
    for option in ["compression_manager", "compression"] {
        let Some(found) = value_of(&text, option) else {
            continue;
        };
        let wanted = requested
            .split(';')
            .find_map(|part| part.strip_prefix(option)?.strip_prefix('='));
        let ours = found.contains("leafpress");
        let same = match option {
            "compression" => run.shape.compression.is_leafpress() || wanted == Some(found),
            _ => ours == run.shape.compression.is_leafpress(),
        };
        if !same {
            return Err(BenchError::database(
                directory,
                format!(
                    "was written with {option}={found}, not with {}; give that with --compression",
                    run.shape.compression
                ),
            ));
        }
    }
    Ok(())
}

/// Returns the value of an option in an OPTIONS file.
fn value_of<'t>(text: &'t str, option: &str) -> Option<&'t str> {
    text.lines()
        .find_map(|line| line.trim().strip_prefix(option)?.strip_prefix('='))
}
