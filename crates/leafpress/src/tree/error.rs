//! What can go wrong in a tree.

use thiserror::Error;

use leafpress_base::mem::OutOfMemory;
use leafpress_codec::CodecError;

/// Longest key, in bytes.
pub const MAX_KEY_BYTES: usize = 1024;
/// Longest value, in bytes.
pub const MAX_VALUE_BYTES: usize = 64 << 20;

/// An error of a [`Tree`](crate::tree::Tree). The record that an operation failed on is as it was before.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum TreeError {
    /// The key is longer than [`MAX_KEY_BYTES`].
    #[error("key of {len} bytes is longer than the limit of {MAX_KEY_BYTES}")]
    KeyTooLong {
        /// Its length.
        len: usize,
    },
    /// The value is longer than [`MAX_VALUE_BYTES`].
    #[error("value of {len} bytes is longer than the limit of {MAX_VALUE_BYTES}")]
    ValueTooLong {
        /// Its length.
        len: usize,
    },
    /// A builder option is out of its bounds.
    #[error("{option}: {reason}")]
    Option {
        /// The builder method.
        option: &'static str,
        /// What was wrong and what is allowed.
        reason: String,
    },
    /// The codec failed.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// Memory could not be allocated.
    #[error("out of memory: {bytes} bytes were asked for")]
    OutOfMemory {
        /// Bytes asked for.
        bytes: usize,
    },
    /// Records that were to be in the order of their keys are not.
    #[error("record {index} is out of order: its key is not above the one before it")]
    Unsorted {
        /// Which record, counted from 0.
        index: usize,
    },
    /// A thread could not be started.
    #[error("cannot start a background thread: {reason}")]
    Thread {
        /// What the system said.
        reason: String,
    },
    /// A background thread panicked again and again and has ended; what it did is not done any more.
    #[error("background work is not done any more: {reason}")]
    Background {
        /// What happened.
        reason: String,
    },
    /// [`Tree::validate`](crate::tree::Tree::validate) found a broken invariant: a bug in this library, or memory that someone overwrote.
    #[error("broken invariant: {0}")]
    Invalid(String),
}

impl From<OutOfMemory> for TreeError {
    fn from(OutOfMemory { bytes }: OutOfMemory) -> Self {
        TreeError::OutOfMemory { bytes }
    }
}
