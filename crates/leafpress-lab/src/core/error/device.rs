//! Errors of probing a device or reading a result of fio. Every message is one line with a remedy.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::core::{Bytes, about};

/// An error of the probe.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The path cannot be probed.
    #[error("{}: {reason}", path.display())]
    Path {
        /// The path as given.
        path: PathBuf,
        /// The problem and the remedy.
        reason: String,
    },
    /// The file system has too little room for the probe's file; nothing was written.
    #[error(
        "{}: a probe file of {} needs that space and {} to spare, and {} are free: use a smaller --file-bytes, or \
         another directory",
        path.display(), Bytes(*wanted_bytes), Bytes(*spare_bytes), about(*free_bytes as f64)
    )]
    NoRoom {
        /// The directory.
        path: PathBuf,
        /// Bytes of the probe's file.
        wanted_bytes: u64,
        /// Bytes that the probe leaves to others.
        spare_bytes: u64,
        /// Bytes free for this user.
        free_bytes: u64,
    },
    /// The probe's file could not be filled; it is gone again.
    #[error("{}: the probe file could be written up to byte {written_bytes} of {wanted_bytes}, then: {source}; it is \
             removed again", path.display())]
    Fill {
        /// The directory.
        path: PathBuf,
        /// Bytes that were written.
        written_bytes: u64,
        /// Bytes of the probe's file.
        wanted_bytes: u64,
        /// The system's error.
        source: io::Error,
    },
    /// A read or write that was measured failed.
    #[error("{}: {operation} of {block_bytes} bytes at byte {offset_bytes} failed: {source}", path.display())]
    Transfer {
        /// The path as given.
        path: PathBuf,
        /// `read` or `write`.
        operation: &'static str,
        /// Length of the block.
        block_bytes: u64,
        /// Where in the file.
        offset_bytes: u64,
        /// The system's error.
        source: io::Error,
    },
    /// io_uring was requested and is not available.
    #[error("io_uring is not available ({0}): omit --engine to use threads instead, or see `leafpress doctor`")]
    NoUring(io::Error),
    /// A file that is not a result of `leafpress device`.
    #[error("{}: {reason}", path.display())]
    Saved {
        /// The file as given.
        path: PathBuf,
        /// The problem and the remedy.
        reason: String,
    },
    /// A file that is not a result of fio, or one without reads or writes.
    #[error("{}: {reason}", path.display())]
    Fio {
        /// The file.
        path: PathBuf,
        /// The problem and the remedy.
        reason: String,
    },
}
