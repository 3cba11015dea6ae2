//! What can go wrong in a cache.

use std::fmt;
use std::sync::Arc;

use crate::tree;
use leafpress_codec::CodecError;

/// An error of a [`Cache`](super::Cache).
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// The key is longer than [`MAX_KEY_BYTES`](super::MAX_KEY_BYTES).
    #[error("a key of {len} bytes is longer than keys may be ({max} bytes)", max = super::MAX_KEY_BYTES)]
    KeyTooLong {
        /// Its length, in bytes.
        len: usize,
    },
    /// The value is longer than [`MAX_VALUE_BYTES`](super::MAX_VALUE_BYTES).
    #[error("a value of {len} bytes is longer than values may be ({max} bytes)", max = super::MAX_VALUE_BYTES)]
    ValueTooLong {
        /// Its length, in bytes.
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
    /// A key or value of a [`TypedCache`](super::TypedCache) cannot be turned into bytes, or what was just loaded not back.
    #[cfg(feature = "serde")]
    #[error("cannot encode a key or value: {reason}")]
    Encoding {
        /// What the encoder said.
        reason: String,
    },
    /// The file or device of the disk tier cannot be used.
    #[error("disk tier: {reason}")]
    Disk {
        /// What was wrong, and with which file.
        reason: String,
    },
    /// What the disk tier was to be kept in is not empty, and no cache of Leafpress wrote it. It was left as it is.
    #[error(
        "disk tier: {place} is not empty and holds no cache of Leafpress; name another, or set `overwrite` to lose what it holds"
    )]
    NotACache {
        /// The file, device or store.
        place: String,
    },
    /// The system has no memory.
    #[error("no memory for {bytes} bytes")]
    OutOfMemory {
        /// What was asked for.
        bytes: usize,
    },
    /// A codec failed.
    #[error(transparent)]
    Codec(CodecError),
    /// A background thread cannot be started, or has ended because all it did panicked.
    #[error("background work: {reason}")]
    Background {
        /// What happened.
        reason: String,
    },
    /// [`Cache::validate`](super::Cache::validate) found the cache broken.
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

/// Why a value was not loaded.
#[derive(Debug)]
pub enum LoadError<E> {
    /// The loader said so. All who waited for it have the same error.
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
