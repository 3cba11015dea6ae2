//! Errors of disk operations.

use std::io;

use leafpress_base::mem::OutOfMemory;
use leafpress_codec::CodecError;

#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Codec(CodecError),
    #[error("no memory for {bytes} bytes")]
    OutOfMemory { bytes: usize },
    /// The bytes are not those that were written: damaged, or overwritten.
    #[error("a page is damaged or overwritten")]
    Damaged,
}

impl From<OutOfMemory> for Failure {
    fn from(error: OutOfMemory) -> Self {
        Self::OutOfMemory { bytes: error.bytes }
    }
}

impl From<CodecError> for Failure {
    fn from(error: CodecError) -> Self {
        match error {
            CodecError::OutOfMemory { bytes } => Self::OutOfMemory { bytes },
            CodecError::Corrupt { .. } => Self::Damaged,
            other => Self::Codec(other),
        }
    }
}
