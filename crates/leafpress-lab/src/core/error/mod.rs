//! Errors of the laboratory. Every message is one line that names what to change.

#[cfg(feature = "device")]
mod device;

use std::path::PathBuf;

use thiserror::Error;

#[cfg(feature = "device")]
pub use device::DeviceError;

/// An error of the laboratory.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LabError {
    /// An option is out of its bounds.
    #[error("{option}: {reason}")]
    Option {
        /// The option's name on the command line, without dashes in front.
        option: &'static str,
        /// The problem and the valid values.
        reason: String,
    },
    /// A data source cannot be used.
    #[error("data {source_name}: {reason}")]
    Data {
        /// The path or name as given.
        source_name: String,
        /// The problem.
        reason: String,
    },
    /// A file or directory cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path at fault.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A run's own process failed.
    #[error("run failed: {reason}")]
    Child {
        /// Its exit status, and the end of its output.
        reason: String,
    },
    /// The tree failed.
    #[error(transparent)]
    Tree(#[from] leafpress::TreeError),
    /// A cache failed.
    #[cfg(feature = "cache")]
    #[error(transparent)]
    Cache(#[from] leafpress::CacheError),
    /// The page pool failed.
    #[cfg(feature = "pool")]
    #[error(transparent)]
    Pool(#[from] leafpress_pages::pool::PoolError),
    /// A storage device cannot be probed.
    #[cfg(feature = "device")]
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// An operation of a run failed.
    #[error("{operation} of key {id} failed: {reason}")]
    Operation {
        /// `put`, `get`, `remove` or `scan`.
        operation: &'static str,
        /// The key's number.
        id: u64,
        /// The store's error.
        reason: String,
    },
    /// An index under benchmark cannot be opened, or does not do what an index does.
    #[error("{index}: {reason}")]
    Index {
        /// The index as given.
        index: String,
        /// The problem.
        reason: String,
    },
    /// A codec failed on a block, or gave back other bytes than it was given.
    #[cfg(feature = "suite")]
    #[error("{codec} failed on {file}, block {block} of {block_bytes} bytes: {reason}")]
    Block {
        /// The codec.
        codec: String,
        /// The file as the report names it.
        file: String,
        /// The block's number in the file, from 0, in blocks of this length.
        block: u64,
        /// Length of the blocks that the file was cut into.
        block_bytes: usize,
        /// The codec's error, or which byte was wrong.
        reason: String,
    },
    /// A Redis or Valkey server cannot be reached, or does not answer as one.
    #[cfg(feature = "keyspace")]
    #[error("{server}: {reason}")]
    Server {
        /// Its address, without user and password.
        server: String,
        /// The problem and the remedy.
        reason: String,
    },
    /// The run was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The system refused something the measurement needs.
    #[error("{0}")]
    System(String),
    /// A chart could not be drawn.
    #[error("cannot draw the {chart} chart: {reason}")]
    Chart {
        /// Which chart.
        chart: &'static str,
        /// The drawing library's error.
        reason: String,
    },
}

impl LabError {
    /// Returns the error without the name of the option, for a caller that has another name for it.
    pub fn reason(self) -> String {
        match self {
            Self::Option { reason, .. } => reason,
            e => e.to_string(),
        }
    }

    /// Creates an error of an option, by its name on the command line.
    pub fn option(option: &'static str, reason: impl Into<String>) -> Self {
        Self::Option {
            option,
            reason: reason.into(),
        }
    }

    pub(crate) fn data(source_name: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Data {
            source_name: source_name.into(),
            reason: reason.into(),
        }
    }

    pub(crate) fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Io {
            path: path.into(),
            source,
        }
    }
}
