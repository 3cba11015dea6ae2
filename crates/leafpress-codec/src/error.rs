//! What can go wrong in a codec.

use std::borrow::Cow;

use thiserror::Error;

use leafpress_base::mem::OutOfMemory;

/// An error of a codec or its engine.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The name is not a codec's.
    #[error("{0}")]
    UnknownName(String),
    /// The codec exists but cannot run here.
    #[error("codec {codec} is not available: {reason}")]
    Unavailable {
        /// The codec asked for.
        codec: String,
        /// Why it cannot run, and what to do.
        reason: String,
    },
    /// The compressed bytes are corrupt, truncated, or of another codec.
    #[error("corrupt {codec} block: {reason}")]
    Corrupt {
        /// The codec that was decoding.
        codec: &'static str,
        /// What was wrong. Most reasons need no memory, for it may be asked what a block is when there is none.
        reason: Cow<'static, str>,
    },
    /// The engine itself failed.
    #[error("{codec} failed: {reason}")]
    Failed {
        /// The codec that was at work.
        codec: &'static str,
        /// What the engine reported.
        reason: String,
    },
    /// A [sealed](super::sealed) block names a dictionary that is not among those given.
    #[error("the block was compressed with the dictionary {id:#010x}, which is not among those given")]
    UnknownDictionary {
        /// The dictionary's id.
        id: u32,
    },
    /// There are more raw bytes than the caller or the format allows.
    #[error("{bytes} raw bytes are more than the {limit_bytes} that are allowed")]
    TooLong {
        /// Raw bytes.
        bytes: usize,
        /// How many are allowed.
        limit_bytes: usize,
    },
    /// Memory could not be allocated.
    #[error("out of memory: {bytes} bytes were asked for")]
    OutOfMemory {
        /// Bytes asked for.
        bytes: usize,
    },
}

impl From<OutOfMemory> for CodecError {
    fn from(OutOfMemory { bytes }: OutOfMemory) -> Self {
        CodecError::OutOfMemory { bytes }
    }
}
