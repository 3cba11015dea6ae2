//! liblz4's encoders. All write the one block format; which of them wrote a block, its decoder cannot tell.
//!
//! Compression of small inputs must never clear a table of 16 or 256 KiB per call, so every thread keeps its working streams
//! and uses the `_fast` resets, which only step the position on.

use std::cell::UnsafeCell;
use std::ffi::{c_char, c_int};

use super::{NAME, ffi, int};
use crate::codec::{CodecError, Dictionary, output};

/// Which of liblz4's encoders compresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::codec) enum Method {
    /// `LZ4_compress_fast`: one hash table, one candidate a position.
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

/// What is compressed.
#[derive(Clone, Copy)]
pub(in crate::codec) enum Input<'r> {
    Whole(&'r [u8]),
    /// With bytes behind it.
    Tailed(&'r [u8], &'r [u8]),
}

/// A thread's compression streams, made when they are first used.
#[derive(Default)]
pub(in crate::codec) struct Encoder {
    /// An input with its tail.
    tailed: Vec<u8>,
    // A fast stream that changes between tables for short and for long distances is cleared, so there is one for blocks with
    // a dictionary and one for blocks without.
    plain: Option<Box<ffi::Stream>>,
    with_dictionary: Option<Box<ffi::Stream>>,
    high: Option<Box<ffi::HighStream>>,
}

thread_local! {
    static ENCODER: UnsafeCell<Encoder> = const {
        UnsafeCell::new(Encoder { tailed: Vec::new(), plain: None, with_dictionary: None, high: None })
    };
}

/// Runs `work` with the calling thread's encoder.
#[inline]
pub(in crate::codec) fn with_encoder<R>(
    work: impl FnOnce(&mut Encoder) -> Result<R, CodecError>,
) -> Result<R, CodecError> {
    ENCODER
        // SAFETY: the cell is this thread's, and `work` is code of `lz4` that does not come back here.
        .try_with(|encoder| work(unsafe { &mut *encoder.get() }))
        .map_err(|_| output::failed(NAME, "the thread is ending"))?
}

/// The stream in `slot`, made now if there is none.
#[inline]
fn stream<S>(slot: &mut Option<Box<S>>, new: impl FnOnce() -> Option<Box<S>>) -> Result<*mut S, CodecError> {
    match slot {
        Some(stream) => Ok(&raw mut **stream),
        none => {
            let new = new().ok_or(CodecError::OutOfMemory { bytes: size_of::<S>() })?;
            Ok(&raw mut **none.insert(new))
        }
    }
}

/// Bytes to compress and where to.
struct Call {
    source: *const c_char,
    size: c_int,
    dest: *mut c_char,
    capacity: c_int,
}

impl Call {
    /// In the order in which liblz4 takes them.
    fn parts(&self) -> (*const c_char, c_int, *mut c_char, c_int) {
        (self.source, self.size, self.dest, self.capacity)
    }
}

impl Encoder {
    /// Compresses to `out`, which has `capacity` writable bytes. Returns the length of the block, or `None` when it does not fit.
    pub(in crate::codec) fn compress(
        &mut self,
        method: Method,
        input: Input<'_>,
        dictionary: Option<&Dictionary>,
        out: *mut u8,
        capacity: usize,
    ) -> Result<Option<usize>, CodecError> {
        let bytes = match input {
            Input::Whole(raw) => raw,
            Input::Tailed(raw, tail) => {
                self.tailed.clear();
                self.tailed.extend_from_slice(raw);
                self.tailed.extend_from_slice(tail);
                &self.tailed
            }
        };
        let call = Call {
            source: bytes.as_ptr().cast(),
            size: int(bytes.len())?,
            dest: out.cast(),
            capacity: int(capacity)?,
        };
        let written = match method {
            Method::Fast { acceleration } => {
                let slot = if dictionary.is_some() {
                    &mut self.with_dictionary
                } else {
                    &mut self.plain
                };
                let stream = stream(slot, ffi::Stream::new)?;
                let prepared = dictionary.map(Dictionary::lz4_fast).transpose()?;
                // SAFETY: the stream is initialised and this thread's; the call's source is readable and its destination
                // writable for their lengths; `dictionary` outlives the call.
                let written = unsafe { compress_fast(stream, prepared, acceleration, &call) };
                if written <= 0 {
                    // liblz4 vouches for a stream's state only where a block was finished; its slow streams know of it.
                    // SAFETY: the stream is this thread's and as long as it is said to be.
                    unsafe { ffi::LZ4_initStream(stream, ffi::STREAM_BYTES) };
                }
                written
            }
            Method::High { level } => {
                let stream = stream(&mut self.high, ffi::HighStream::new)?;
                let prepared = dictionary.map(|d| d.lz4_high(level)).transpose()?;
                // SAFETY: as above.
                unsafe { compress_high(stream, prepared, level, &call) }
            }
        };
        Ok(usize::try_from(written).ok().filter(|written| *written > 0))
    }
}

/// # Safety
/// The stream is initialised, no other thread's, and refers to no dictionary; the call's source is readable and its
/// destination writable for their lengths; `dictionary` was prepared, is only read, and outlives this call.
unsafe fn compress_fast(
    stream: *mut ffi::Stream,
    dictionary: Option<*const ffi::Stream>,
    acceleration: c_int,
    call: &Call,
) -> c_int {
    let (source, size, dest, capacity) = call.parts();
    // SAFETY: the caller's promise. An attached dictionary is only read, and is detached before it can be freed.
    unsafe {
        let Some(dictionary) = dictionary else {
            return ffi::LZ4_compress_fast_extState_fastReset(stream, source, dest, size, capacity, acceleration);
        };
        ffi::LZ4_resetStream_fast(stream);
        ffi::LZ4_attach_dictionary(stream, dictionary);
        let written = ffi::LZ4_compress_fast_continue(stream, source, dest, size, capacity, acceleration);
        ffi::LZ4_attach_dictionary(stream, std::ptr::null());
        written
    }
}

/// # Safety
/// As [`compress_fast`]; `dictionary` was prepared for the encoder that `level` is.
unsafe fn compress_high(
    stream: *mut ffi::HighStream,
    dictionary: Option<*const ffi::HighStream>,
    level: c_int,
    call: &Call,
) -> c_int {
    let (source, size, dest, capacity) = call.parts();
    // SAFETY: the caller's promise. An attached dictionary is only read, or copied with the addresses of its bytes into the
    // stream, which the reset before the next call forgets; it is detached before it can be freed.
    unsafe {
        ffi::LZ4_resetStreamHC_fast(stream, level);
        ffi::LZ4_attach_HC_dictionary(stream, dictionary.unwrap_or(std::ptr::null()));
        let written = ffi::LZ4_compress_HC_continue(stream, source, dest, size, capacity);
        ffi::LZ4_attach_HC_dictionary(stream, std::ptr::null());
        written
    }
}
