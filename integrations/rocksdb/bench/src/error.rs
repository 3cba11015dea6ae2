//! Errors of a benchmark. Every message is one line with the remedy.

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
        /// The fault, and the allowed values.
        reason: String,
    },
    /// A required database does not exist, or differs from the options.
    #[error("{}: {reason}", path.display())]
    Database {
        /// Its directory.
        path: PathBuf,
        /// The fault, and the remedy.
        reason: String,
    },
    /// RocksDB failed.
    #[error("{what}: {}", source.as_ref())]
    RocksDb {
        /// The operation.
        what: String,
        /// RocksDB's message.
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

/// Adds the operation to an error of RocksDB.
pub(crate) trait WithOperation<T> {
    /// Returns the result with the operation that failed.
    fn with_operation(self, what: impl FnOnce() -> String) -> Result<T, BenchError>;
}

impl<T> WithOperation<T> for Result<T, rocksdb::Error> {
    fn with_operation(self, what: impl FnOnce() -> String) -> Result<T, BenchError> {
        self.map_err(|source| BenchError::RocksDb { what: what(), source })
    }
}
