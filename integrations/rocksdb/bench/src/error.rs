//! What can go wrong in a benchmark. Every message is one line that says what to change.

use std::path::PathBuf;

use leafpress_lab::LabError;
use thiserror::Error;

/// An error of a benchmark.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BenchError {
    /// An option is out of its bounds.
    #[error("--{option}: {reason}")]
    Option {
        /// The option's name on the command line, without dashes in front.
        option: &'static str,
        /// What was wrong and what is allowed.
        reason: String,
    },
    /// A database that was to be there is not there, or is not the one that the options describe.
    #[error("{}: {reason}", path.display())]
    Database {
        /// Its directory.
        path: PathBuf,
        /// What was wrong, and what to do.
        reason: String,
    },
    /// RocksDB failed.
    #[error("{what}: {}", source.as_ref())]
    RocksDb {
        /// What was asked of it.
        what: String,
        /// What it said.
        source: rocksdb::Error,
    },
    /// The laboratory failed: the data, a child, a chart, a file.
    #[error(transparent)]
    Lab(#[from] LabError),
}

impl BenchError {
    /// Returns an option out of its bounds.
    pub fn option(option: &'static str, reason: impl Into<String>) -> Self {
        Self::Option {
            option,
            reason: reason.into(),
        }
    }

    /// Returns a database that cannot be used.
    pub fn database(path: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        Self::Database {
            path: path.into(),
            reason: reason.into(),
        }
    }

    /// Returns whether the user stopped it.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Lab(LabError::Cancelled))
    }
}

/// Says what RocksDB was asked when it failed.
pub(crate) trait Asked<T> {
    /// Names what was asked.
    fn asked(self, what: impl FnOnce() -> String) -> Result<T, BenchError>;
}

impl<T> Asked<T> for Result<T, rocksdb::Error> {
    fn asked(self, what: impl FnOnce() -> String) -> Result<T, BenchError> {
        self.map_err(|source| BenchError::RocksDb { what: what(), source })
    }
}
