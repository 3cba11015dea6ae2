//! The functions that the compression shim calls; `shim/compression_abi.h` declares them.

mod compressor;
mod decompressor;
mod options;

use leafpress::codec::CodecError;

use crate::abi::{Code, Failure};

use super::decompressor::ReadError;

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        let code = match &error {
            ReadError::Corrupt(_) => Code::Corruption,
            ReadError::UnknownType(_) => Code::NotSupported,
            ReadError::Failed(CodecError::OutOfMemory { .. }) => Code::MemoryLimit,
            ReadError::Failed(_) => Code::IoError,
        };
        Self(code, error.to_string())
    }
}

fn invalid(error: impl ToString) -> Failure {
    Failure(Code::InvalidArgument, error.to_string())
}
