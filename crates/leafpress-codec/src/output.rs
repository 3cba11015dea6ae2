//! Errors common to the engines.

use super::CodecError;

/// Reserves room for `bytes` more.
pub(super) fn reserve(out: &mut Vec<u8>, bytes: usize) -> Result<(), CodecError> {
    out.try_reserve(bytes).map_err(|_| CodecError::OutOfMemory { bytes })
}

/// Checks that `found` is the expected number of raw bytes.
#[inline]
pub(super) fn exact(codec: &'static str, found: usize, expected: usize) -> Result<usize, CodecError> {
    if found == expected {
        Ok(found)
    } else {
        Err(wrong_length(codec, found, expected))
    }
}

/// The error for a block with another number of raw bytes than expected.
#[cold]
pub(super) fn wrong_length(codec: &'static str, found: usize, expected: usize) -> CodecError {
    CodecError::Corrupt {
        codec,
        reason: format!("it holds {found} raw bytes, {expected} were expected").into(),
    }
}

/// The error for bytes that are not a block of this codec.
#[cold]
pub(super) fn corrupt(codec: &'static str, reason: impl Into<std::borrow::Cow<'static, str>>) -> CodecError {
    CodecError::Corrupt {
        codec,
        reason: reason.into(),
    }
}

/// The error for a failure of the engine itself.
#[cold]
pub(super) fn failed(codec: &'static str, reason: impl Into<String>) -> CodecError {
    CodecError::Failed {
        codec,
        reason: reason.into(),
    }
}

#[cfg(any(feature = "qpl", feature = "zlib"))]
/// The reason why a library could not be loaded, in the loader's words, which include the file's name.
pub(super) fn loader_reason(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(feature = "zstd")]
/// The error for dictionary bytes that a codec refuses.
pub(super) fn refused(codec: &'static str) -> CodecError {
    failed(
        codec,
        "the dictionary is malformed, or there is no memory for its tables",
    )
}
