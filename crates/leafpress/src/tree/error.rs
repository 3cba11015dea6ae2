//! Errors of the tree.

use thiserror::Error;

use leafpress_base::mem::OutOfMemory;
use leafpress_codec::CodecError;

/// Longest key, in bytes.
pub const MAX_KEY_BYTES: usize = 1024;
/// Longest value, in bytes.
pub const MAX_VALUE_BYTES: usize = 64 << 20;

/// An error of a [`Tree`](crate::tree::Tree). The record that the failed operation concerned is unchanged.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum TreeError {
    /// The key is longer than [`MAX_KEY_BYTES`].
    #[error("key of {len} bytes is longer than the limit of {MAX_KEY_BYTES}")]
    KeyTooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// The value is longer than [`MAX_VALUE_BYTES`].
    #[error("value of {len} bytes is longer than the limit of {MAX_VALUE_BYTES}")]
    ValueTooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// A builder option is out of its bounds.
    #[error("{option}: {reason}")]
    Option {
        /// The builder method.
        option: &'static str,
        /// The problem and the allowed values.
        reason: String,
    },
    /// The codec failed.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// Memory could not be allocated.
    #[error("out of memory: {bytes} bytes were requested")]
    OutOfMemory {
        /// The size of the request in bytes.
        bytes: usize,
    },
    /// Records that have to be in key order are not.
    #[error("record {index} is out of order: its key is not above the one before it")]
    Unsorted {
        /// Index of the record, counted from 0.
        index: usize,
    },
    /// A thread could not be started.
    #[error("cannot start a background thread: {reason}")]
    Thread {
        /// The system's error message.
        reason: String,
    },
    /// A background thread has ended after repeated panics; its work is not done any more.
    #[error("background work has stopped: {reason}")]
    Background {
        /// The reason, with the last panic's message.
        reason: String,
    },
    /// The tree belongs to a cache that was closed: see [`Cache::close`](crate::Cache::close). No method of a
    /// [`Tree`](crate::tree::Tree) returns it.
    #[error("the tree refuses writes: its cache is closed")]
    Closed,
    /// [`Tree::validate`](crate::tree::Tree::validate) found a broken invariant: a bug in this library, or corrupted
    /// memory.
    #[error("broken invariant: {0}")]
    Invalid(String),
}

impl From<OutOfMemory> for TreeError {
    fn from(OutOfMemory { bytes }: OutOfMemory) -> Self {
        TreeError::OutOfMemory { bytes }
    }
}
