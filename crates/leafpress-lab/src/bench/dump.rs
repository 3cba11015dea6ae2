//! Records of a dump as keys and values of a benchmark.

use std::fmt;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use super::{Mode, Options};
use crate::core::LabError;
use crate::core::corpus::{RecordFormat, Records, Source};

/// Where records are taken from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dump {
    /// The file, directory, archive or bundled sample.
    pub data: Source,
    /// How it holds its records.
    pub format: RecordFormat,
    /// Skipped records, in words, once it was read.
    pub left_out: Option<String>,
}

impl fmt::Display for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.data, self.format)?;
        match &self.left_out {
            Some(words) => write!(f, "; {words}"),
            None => Ok(()),
        }
    }
}

impl Dump {
    fn read(&self, cancel: &AtomicBool) -> Result<Records, LabError> {
        Records::load_until(&self.data, &self.format, cancel).map_err(|e| match e {
            LabError::Data { source_name, reason } => LabError::Data {
                reason: with_option(reason, &self.format),
                source_name,
            },
            e => e,
        })
    }

    /// Reads the records, and checks that there are as many as the run loads and inserts.
    ///
    /// # Errors
    /// As [`Records::load`]; [`LabError::Option`] of `records` when there are too few.
    pub(super) fn load(&self, options: &Options, cancel: &AtomicBool) -> Result<Records, LabError> {
        let records = self.read(cancel)?;
        let (found, inserts) = (records.keys.len(), inserts(options));
        if options.records + inserts > found {
            let inserts = if inserts > 0 {
                format!(" and about {inserts} to insert")
            } else {
                String::new()
            };
            return Err(LabError::option(
                "records",
                format!(
                    "{} to load{inserts} are requested, but {} has {found} records",
                    options.records, self.data
                ),
            ));
        }
        Ok(records)
    }
}

/// About how many records the run inserts.
fn inserts(options: &Options) -> u64 {
    match options.mode {
        Mode::Operation => (options.operations as f64 * options.ratios.insert).ceil() as u64,
        // Time decides; records that come round again are inserts that do not succeed.
        Mode::Time => 0,
    }
}

/// Adds the option to a message without it, so that the error is not mistaken for one of the value source.
fn with_option(reason: String, format: &RecordFormat) -> String {
    if reason.contains("(--records ") {
        return reason;
    }
    format!("{reason} (--records {format})")
}

/// Looks at a run's dump for what is left out of it; with `all` the run is to load all its records, but for those that
/// it inserts: half of them at most, and in time mode a tenth.
///
/// # Errors
/// As [`Records::load`].
pub fn look_at_records(options: &mut Options, all: bool) -> Result<(), LabError> {
    let inserts = inserts(options);
    let Some(dump) = &mut options.dump else { return Ok(()) };
    let records = dump.read(&AtomicBool::new(false))?;
    dump.left_out = records.census.left_out();
    if all {
        let found = records.keys.len();
        let kept = match options.mode {
            Mode::Time if options.ratios.insert > 0.0 => found / 10,
            _ => inserts.min(found / 2),
        };
        options.records = found - kept;
    }
    Ok(())
}
