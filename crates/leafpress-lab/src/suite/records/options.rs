//! The options of a suite over records, and their bounds.

use std::path::PathBuf;

use leafpress::Codec;
use leafpress::codec::MIN_DICTIONARY_BYTES;
use serde::Serialize;

use crate::core::corpus::RecordFormat;
use crate::core::{Bytes, LabError};
use crate::suite::options::{bounds, names};

/// Default frame sizes, in bytes.
pub const DEFAULT_FRAME_BYTES: [usize; 2] = [4 << 10, 16 << 10];
/// Default dictionary size, in bytes.
pub const DEFAULT_DICTIONARY_BYTES: usize = 32 << 10;
/// Longest dictionary, in bytes.
pub const MAX_DICTIONARY_BYTES: usize = 1 << 20;

/// Options of a suite over records.
#[derive(Debug, Clone, Serialize)]
pub struct Options {
    /// A dump, an archive of dumps, a directory of them, or a bundled sample by its name.
    #[serde(serialize_with = "crate::core::paths::serialize")]
    pub path: PathBuf,
    /// How the dump holds its records.
    pub records: RecordFormat,
    /// Which codecs, as [`crate::suite::Options::codecs`].
    #[serde(serialize_with = "names")]
    pub codecs: Option<Vec<Codec>>,
    /// Lengths of frames in bytes: as many neighbours as fit, one at least.
    pub frame_bytes: Vec<usize>,
    /// Longest dictionary that is trained, in bytes; 0 for none.
    pub dictionary_bytes: usize,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Passes over the records that are measured.
    pub passes: usize,
    /// Take about this many bytes of values, in runs of neighbours evenly spread over the keys.
    pub max_bytes: Option<u64>,
}

impl Options {
    /// Creates the defaults: all records of `path`, by every codec, in three passes, on one thread.
    pub fn new(path: PathBuf, records: RecordFormat) -> Self {
        Self {
            path,
            records,
            codecs: None,
            frame_bytes: DEFAULT_FRAME_BYTES.to_vec(),
            dictionary_bytes: DEFAULT_DICTIONARY_BYTES,
            threads: vec![1],
            passes: 3,
            max_bytes: None,
        }
    }

    /// Checks all bounds that can be checked without the data.
    ///
    /// # Errors
    /// [`LabError::Option`] with the name of the option on the command line.
    pub fn validate(&self) -> Result<(), LabError> {
        bounds(
            self.codecs.as_deref(),
            Some(&self.frame_bytes),
            &self.threads,
            self.passes,
        )?;
        let bytes = self.dictionary_bytes;
        if bytes != 0 && !(MIN_DICTIONARY_BYTES..=MAX_DICTIONARY_BYTES).contains(&bytes) {
            return Err(LabError::option(
                "dictionary-bytes",
                format!(
                    "{} is not between {MIN_DICTIONARY_BYTES} bytes and {}, nor 0 for none",
                    Bytes(bytes as u64),
                    Bytes(MAX_DICTIONARY_BYTES as u64)
                ),
            ));
        }
        let longest = self.frame_bytes.iter().copied().max().unwrap_or(0) as u64;
        if self.max_bytes.is_some_and(|most| most < longest) {
            return Err(LabError::option(
                "max-bytes",
                format!("it must be at least a frame, and the largest has {}", Bytes(longest)),
            ));
        }
        Ok(())
    }
}
