//! Errors of a cache.

use std::fmt;
use std::sync::Arc;

use crate::tree;
use leafpress_codec::CodecError;

/// An error of a [`Cache`](super::Cache).
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// The key is longer than [`MAX_KEY_BYTES`](super::MAX_KEY_BYTES).
    #[error("a key of {len} bytes exceeds the maximum of {max} bytes", max = super::MAX_KEY_BYTES)]
    KeyTooLong {
        /// The length of the key, in bytes.
        len: usize,
    },
    /// The value is longer than [`MAX_VALUE_BYTES`](super::MAX_VALUE_BYTES).
    #[error("a value of {len} bytes exceeds the maximum of {max} bytes", max = super::MAX_VALUE_BYTES)]
    ValueTooLong {
        /// The length of the value, in bytes.
        len: usize,
    },
    /// A builder option is out of its bounds.
    #[error("{option}: {reason}")]
    Option {
        /// The name of the builder's method.
        option: &'static str,
        /// The invalid value and the allowed values.
        reason: String,
    },
    /// A key or value of a [`TypedCache`](super::TypedCache) cannot be encoded, or a value just loaded cannot be
    /// decoded.
    #[cfg(feature = "serde")]
    #[error("cannot encode a key or value: {reason}")]
    Encoding {
        /// The message of the encoder.
        reason: String,
    },
    /// The file or device of the disk tier cannot be used.
    #[error("disk tier: {reason}")]
    Disk {
        /// The cause, with the name of the file.
        reason: String,
    },
    /// The target of the disk tier is not empty, and no Leafpress cache wrote it. It is unchanged.
    #[error(
        "disk tier: {place} is not empty and was not written by a Leafpress cache; use another file, or set \
         `overwrite` to discard its contents"
    )]
    NotACache {
        /// The file, device or store.
        place: String,
    },
    /// The system has no memory left.
    #[error("no memory for {bytes} bytes")]
    OutOfMemory {
        /// The size of the failed allocation, in bytes.
        bytes: usize,
    },
    /// A codec failed.
    #[error(transparent)]
    Codec(CodecError),
    /// A background thread cannot be started, or has ended after repeated panics.
    #[error("background work: {reason}")]
    Background {
        /// The cause.
        reason: String,
    },
    /// The load of another caller did not end within [`CacheBuilder::load_wait`](super::CacheBuilder::load_wait). It
    /// goes on.
    #[error("another caller's load of the key did not end within {waited:?}")]
    LoadWait {
        /// The limit.
        waited: std::time::Duration,
    },
    /// The cache was closed: see [`Cache::close`](super::Cache::close).
    #[error("the cache is closed")]
    Closed,
    /// [`Cache::validate`](super::Cache::validate) found a violated invariant.
    #[error("the cache is broken: {0}")]
    Invalid(String),
}

impl From<tree::TreeError> for CacheError {
    fn from(error: tree::TreeError) -> Self {
        match error {
            tree::TreeError::KeyTooLong { len } => Self::KeyTooLong { len },
            tree::TreeError::ValueTooLong { len } => Self::ValueTooLong { len },
            tree::TreeError::OutOfMemory { bytes } => Self::OutOfMemory { bytes },
            tree::TreeError::Codec(error) => error.into(),
            tree::TreeError::Option { option, reason } => Self::Option { option, reason },
            tree::TreeError::Invalid(reason) => Self::Invalid(reason),
            tree::TreeError::Closed => Self::Closed,
            other => Self::Background {
                reason: other.to_string(),
            },
        }
    }
}

impl From<CodecError> for CacheError {
    fn from(error: CodecError) -> Self {
        match error {
            CodecError::OutOfMemory { bytes } => Self::OutOfMemory { bytes },
            error => Self::Codec(error),
        }
    }
}

impl From<leafpress_base::mem::OutOfMemory> for CacheError {
    fn from(error: leafpress_base::mem::OutOfMemory) -> Self {
        Self::OutOfMemory { bytes: error.bytes }
    }
}

/// The reason why a value was not loaded.
#[derive(Debug)]
pub enum LoadError<E> {
    /// The loader failed. All callers that waited for it get the same error.
    Load(Arc<E>),
    /// The cache failed.
    Cache(CacheError),
}

impl<E> Clone for LoadError<E> {
    fn clone(&self) -> Self {
        match self {
            Self::Load(error) => Self::Load(Arc::clone(error)),
            Self::Cache(error) => Self::Cache(error.clone()),
        }
    }
}

impl<E: fmt::Display> fmt::Display for LoadError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(error) => write!(f, "cannot load the value: {error}"),
            Self::Cache(error) => error.fmt(f),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for LoadError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Load(error) => Some(&**error),
            Self::Cache(error) => Some(error),
        }
    }
}

impl<E> From<CacheError> for LoadError<E> {
    fn from(error: CacheError) -> Self {
        Self::Cache(error)
    }
}
