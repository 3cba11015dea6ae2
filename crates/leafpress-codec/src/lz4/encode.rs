//! Encoders of liblz4. All of them write the same block format, and the decoder does not depend on the encoder.
//!
//! Compression of small inputs must not clear a table of 16 or 256 KiB per call, so working streams are kept, as many
//! as cores can use, with the `_fast` resets, which only advance the position.

use std::ffi::c_int;

use super::ffi::{HighStream, Stream};
use crate::room::Room;
use crate::{CodecError, Dictionary};
use leafpress_base::mem::room::TryGrow;
use leafpress_base::sync::per_core::PerCore;

/// An encoder of liblz4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    /// `LZ4_compress_fast`: one hash table, one candidate per position.
    Fast {
        /// liblz4's acceleration factor.
        acceleration: c_int,
    },
    /// `LZ4_compress_HC`: two hash tables (level 2), chains of candidates (3 to 9) or optimal parsing (10 to 12).
    High {
        /// liblz4's level.
        level: c_int,
    },
}

/// The input of a compression.
#[derive(Clone, Copy)]
pub(crate) enum Input<'r> {
    Whole(&'r [u8]),
    /// With bytes appended.
    Tailed(&'r [u8], &'r [u8]),
}

/// Compression streams, created at their first use.
#[derive(Default)]
pub(crate) struct Encoder {
    /// Buffer for an input with its tail.
    tailed: Vec<u8>,
    // A fast stream that alternates between tables for short and for long distances is cleared each time, so there is
    // one for blocks with a dictionary and one for blocks without.
    plain: Option<Box<Stream>>,
    with_dictionary: Option<Box<Stream>>,
    high: Option<Box<HighStream>>,
}

static ENCODERS: PerCore<Encoder> = PerCore::new();

/// Runs `work` with an encoder.
#[inline]
pub(crate) fn with_encoder<R>(work: impl FnOnce(&mut Encoder) -> Result<R, CodecError>) -> Result<R, CodecError> {
    ENCODERS.with(work)
}

/// Returns the stream in `slot`, created if there is none.
#[inline]
fn stream<S>(slot: &mut Option<Box<S>>, new: impl FnOnce() -> Option<Box<S>>) -> Result<&mut S, CodecError> {
    match slot {
        Some(stream) => Ok(stream),
        none => {
            let new = new().ok_or(CodecError::OutOfMemory { bytes: size_of::<S>() })?;
            Ok(none.insert(new))
        }
    }
}

impl Encoder {
    /// Compresses `input` into the room; returns false if it does not fit.
    pub(crate) fn compress(
        &mut self,
        method: Method,
        input: Input<'_>,
        dictionary: Option<&Dictionary>,
        room: &mut Room<'_>,
    ) -> Result<bool, CodecError> {
        let bytes = match input {
            Input::Whole(raw) => raw,
            Input::Tailed(raw, tail) => {
                self.tailed.clear();
                self.tailed.try_append(raw)?;
                self.tailed.try_append(tail)?;
                &self.tailed
            }
        };
        match method {
            Method::Fast { acceleration } => {
                let slot = if dictionary.is_some() {
                    &mut self.with_dictionary
                } else {
                    &mut self.plain
                };
                let prepared = dictionary.map(Dictionary::lz4_fast).transpose()?;
                stream(slot, Stream::new)?.compress(bytes, prepared, acceleration, room)
            }
            Method::High { level } => {
                let prepared = dictionary.map(|d| d.lz4_high(level)).transpose()?;
                stream(&mut self.high, HighStream::new)?.compress(bytes, prepared, level, room)
            }
        }
    }
}
