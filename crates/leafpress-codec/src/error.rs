//! Errors of codecs.

use std::borrow::Cow;

use thiserror::Error;

use leafpress_base::mem::OutOfMemory;

/// The names of all codecs, for messages.
const NAMES: &str = "none, lz4, lz4:fast=1..65537, lz4:hc=2..12, zstd:-131072..22 (not 0), onpair, \
                                onpair:14|16|huffman, deflate:1..12, zlib:1..9, zlib:32k=1..9, \
                                qpl:software|hardware|auto:fixed|dynamic, and for trees trial, trial:memory, auto, \
                                auto:zstd:LEVEL";

/// An error of a codec or its engine.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The name is not a codec's, or a setting is out of its bounds.
    #[error("unknown codec {0:?}; the codecs are {NAMES}")]
    UnknownName(String),
    /// The codec exists but cannot run here.
    #[error("codec {codec} is not available: {reason}")]
    Unavailable {
        /// The requested codec.
        codec: String,
        /// The cause, and the remedy.
        reason: String,
    },
    /// The compressed bytes are corrupt, truncated, or of another codec.
    #[error("corrupt {codec} block: {reason}")]
    Corrupt {
        /// The codec that was decoding.
        codec: &'static str,
        /// The cause. Most causes need no allocation, since a block may be checked when there is no memory.
        reason: Cow<'static, str>,
    },
    /// The engine itself failed.
    #[error("{codec} failed: {reason}")]
    Failed {
        /// The codec that failed.
        codec: &'static str,
        /// The message of the engine.
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
        /// The maximum, in bytes.
        limit_bytes: usize,
    },
    /// Memory could not be allocated.
    #[error("out of memory: {bytes} bytes were requested")]
    OutOfMemory {
        /// The size of the failed allocation, in bytes.
        bytes: usize,
    },
}

impl From<OutOfMemory> for CodecError {
    fn from(OutOfMemory { bytes }: OutOfMemory) -> Self {
        CodecError::OutOfMemory { bytes }
    }
}
