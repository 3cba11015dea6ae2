//! LZ4 by liblz4. A block is a bare LZ4 block, without frame or length.
//!
//! Compression of small inputs must never clear a 16 KiB table per call, so every thread keeps its working streams and uses
//! the `_fast` resets, which only step the position on. Decoding with a dictionary wants the dictionary directly before
//! the output ([`Scratch`]), where liblz4 treats it as history instead of as a second buffer.

use std::cell::UnsafeCell;
use std::ffi::{c_char, c_int};

use super::counters::Counters;
use super::dictionary::Lz4Dictionary;
use super::lz4_ffi as ffi;
use super::{Codec, CodecError, Dictionary, Engine, EngineCounters, Scratch, output};

const NAME: &str = "lz4";

/// liblz4 decodes in wide strides only while this many bytes of room are left. With them behind the output, a short
/// record is decoded in wide strides to its end.
const SLACK_BYTES: usize = 96;

/// Decoding stops early only when it saves at least this many bytes of output.
const PARTIAL_SAVES_BYTES: usize = 128;

/// The engine of `lz4`.
#[derive(Debug)]
pub(super) struct Lz4 {
    acceleration: c_int,
    counters: Counters,
}

/// A thread's compression streams. A stream that changes between tables for short and for long distances is cleared, so
/// there is one for blocks with a dictionary and one for blocks without.
#[derive(Default)]
struct Streams {
    plain: Option<Box<ffi::Stream>>,
    with_dictionary: Option<Box<ffi::Stream>>,
}

thread_local! {
    static STREAMS: UnsafeCell<Streams> = const { UnsafeCell::new(Streams { plain: None, with_dictionary: None }) };
}

/// Runs `work` with one of the calling thread's streams.
#[inline]
fn with_stream<R>(
    pick: impl FnOnce(&mut Streams) -> &mut Option<Box<ffi::Stream>>,
    work: impl FnOnce(*mut ffi::Stream) -> R,
) -> Result<R, CodecError> {
    STREAMS
        .try_with(|streams| {
            // SAFETY: the cell is this thread's, and `work` is code of this file that does not come back here.
            let slot = pick(unsafe { &mut *streams.get() });
            if slot.is_none() {
                *slot = Some(ffi::Stream::new().ok_or(CodecError::OutOfMemory {
                    bytes: ffi::STREAM_BYTES,
                })?);
            }
            match slot {
                Some(stream) => Ok(work(&raw mut **stream)),
                None => Err(CodecError::OutOfMemory {
                    bytes: ffi::STREAM_BYTES,
                }),
            }
        })
        .map_err(|_| output::failed(NAME, "the thread is ending"))?
}

impl Lz4 {
    /// An engine with liblz4's acceleration factor.
    pub(super) fn new(acceleration: i32) -> Self {
        Self {
            acceleration,
            counters: Counters::default(),
        }
    }

    fn compress_plain(&self, raw: &[u8], out: *mut u8, size: c_int, bound: c_int) -> Result<c_int, CodecError> {
        with_stream(
            |s| &mut s.plain,
            // SAFETY: the stream is initialised and this thread's; `raw` is `size` readable bytes, `out` `bound` writable.
            |stream| unsafe {
                ffi::LZ4_compress_fast_extState_fastReset(
                    stream,
                    raw.as_ptr().cast(),
                    out.cast(),
                    size,
                    bound,
                    self.acceleration,
                )
            },
        )
    }

    fn compress_with(
        &self,
        raw: &[u8],
        dictionary: &Lz4Dictionary,
        out: *mut u8,
        size: c_int,
        bound: c_int,
    ) -> Result<c_int, CodecError> {
        with_stream(
            |s| &mut s.with_dictionary,
            // SAFETY: as `compress_plain`; the attached dictionary's stream is only read, is never written after it was
            // prepared, and is detached before it can be freed since `dictionary` outlives this call.
            |stream| unsafe {
                ffi::LZ4_resetStream_fast(stream);
                ffi::LZ4_attach_dictionary(stream, dictionary.stream());
                let written = ffi::LZ4_compress_fast_continue(
                    stream,
                    raw.as_ptr().cast(),
                    out.cast(),
                    size,
                    bound,
                    self.acceleration,
                );
                ffi::LZ4_attach_dictionary(stream, std::ptr::null());
                written
            },
        )
    }
}

/// The part of a dictionary that LZ4 can reach.
fn reachable(dictionary: &Dictionary) -> &[u8] {
    let bytes = dictionary.bytes();
    &bytes[bytes.len().saturating_sub(ffi::MAX_DICTIONARY_BYTES)..]
}

/// A dictionary that has bytes.
fn non_empty(dictionary: Option<&Dictionary>) -> Option<&Dictionary> {
    dictionary.filter(|d| !d.bytes().is_empty())
}

/// LZ4_compressBound, or an error for an input that LZ4 cannot take.
fn bound(raw: &[u8]) -> Result<(c_int, usize), CodecError> {
    match c_int::try_from(raw.len()) {
        Ok(size) if raw.len() <= ffi::MAX_INPUT_BYTES => Ok((size, raw.len() + raw.len() / 255 + 16)),
        _ => Err(output::failed(
            NAME,
            format!("{} bytes are too many for one block", raw.len()),
        )),
    }
}

/// A length that liblz4 can be given; longer blocks are never LZ4's.
fn int(bytes: usize) -> Result<c_int, CodecError> {
    c_int::try_from(bytes).map_err(|_| output::corrupt(NAME, "it is longer than a block can be"))
}

/// What a decoder returned, as a length.
fn decoded(result: c_int) -> Result<usize, CodecError> {
    usize::try_from(result).map_err(|_| output::corrupt(NAME, "it is malformed or truncated"))
}

impl Engine for Lz4 {
    fn codec(&self) -> Codec {
        Codec::Lz4 {
            acceleration: self.acceleration,
        }
    }

    fn engine_name(&self) -> &'static str {
        "cpu"
    }

    fn counters(&self) -> EngineCounters {
        self.counters.sum_cpu()
    }

    fn supports_dictionary(&self) -> bool {
        true
    }

    fn compress(&self, raw: &[u8], dictionary: Option<&Dictionary>, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        self.counters.compress(raw.len(), || {
            let (size, bound) = bound(raw)?;
            let prepared = non_empty(dictionary).map(Dictionary::lz4).transpose()?;
            let write = |out: *mut u8| {
                let capacity = int(bound)?;
                let written = match prepared {
                    None => self.compress_plain(raw, out, size, capacity)?,
                    Some(prepared) => self.compress_with(raw, prepared, out, size, capacity)?,
                };
                // With room for the bound, liblz4 cannot fail.
                usize::try_from(written)
                    .ok()
                    .filter(|n| *n > 0)
                    .ok_or_else(|| output::failed(NAME, "liblz4 reported an error"))
            };
            // SAFETY: liblz4 initialises the bytes it reports, within the capacity it is given.
            unsafe { output::append(out, bound, write) }
        })
    }

    fn decompress(&self, block: &[u8], dictionary: Option<&Dictionary>, raw: &mut [u8]) -> Result<(), CodecError> {
        let expected = raw.len();
        let work = || {
            let found = decode_into(block, non_empty(dictionary).map_or(&[], reachable), raw, expected)?;
            if found == expected {
                Ok(found)
            } else {
                Err(output::wrong_length(NAME, found, expected))
            }
        };
        self.counters.decompress(block.len(), expected, work).map(drop)
    }

    fn decode<'s>(
        &self,
        block: &[u8],
        dictionary: Option<&Dictionary>,
        raw_len: usize,
        needed: usize,
        scratch: &'s mut Scratch,
    ) -> Result<&'s [u8], CodecError> {
        let buffer = &mut *scratch;
        let len = self.counters.decompress(block.len(), raw_len, || {
            let target = if needed.saturating_add(PARTIAL_SAVES_BYTES) < raw_len {
                needed
            } else {
                raw_len
            };
            let dictionary = non_empty(dictionary);
            let outside = match dictionary {
                Some(d) => {
                    let bytes = reachable(d);
                    if buffer.fronted(d.serial(), bytes)? {
                        None
                    } else {
                        Some(bytes)
                    }
                }
                None => Some([].as_slice()),
            };
            let (front, output) = buffer.front_and_output(raw_len, SLACK_BYTES)?;
            let found = decode_into(block, outside.unwrap_or(front), output, target)?;
            if target == raw_len && found != raw_len {
                Err(output::wrong_length(NAME, found, raw_len))
            } else if found < target {
                Err(output::wrong_length(NAME, found, target))
            } else {
                Ok(found.min(raw_len))
            }
        })?;
        Ok(&scratch.output(raw_len, 0)?[..len])
    }
}

/// Decodes `block` into `raw`, at least its first `target` bytes where it has them; all of it when `raw` has no more than
/// slack behind `target`. Returns the length that was decoded.
#[inline]
fn decode_into(block: &[u8], history: &[u8], raw: &mut [u8], target: usize) -> Result<usize, CodecError> {
    let source: *const c_char = block.as_ptr().cast();
    let dest: *mut c_char = raw.as_mut_ptr().cast();
    let (source_size, capacity, history_size) = (int(block.len())?, int(raw.len())?, int(history.len())?);
    let dictionary: *const c_char = history.as_ptr().cast();
    let result = if raw.len() <= target + SLACK_BYTES {
        // SAFETY: liblz4's safe decoders read `source_size` bytes of the block and the dictionary's `history_size`, write
        // within `capacity`, and check every length and distance against these, whatever the bytes are.
        unsafe {
            if history.is_empty() {
                ffi::LZ4_decompress_safe(source, dest, source_size, capacity)
            } else {
                ffi::LZ4_decompress_safe_usingDict(source, dest, source_size, capacity, dictionary, history_size)
            }
        }
    } else {
        // The decoder stops at the target, so give it slack too: past it the strides are narrow.
        let target = int(target + SLACK_BYTES)?;
        // SAFETY: as above.
        unsafe {
            if history.is_empty() {
                ffi::LZ4_decompress_safe_partial(source, dest, source_size, target, capacity)
            } else {
                ffi::LZ4_decompress_safe_partial_usingDict(
                    source,
                    dest,
                    source_size,
                    target,
                    capacity,
                    dictionary,
                    history_size,
                )
            }
        }
    };
    decoded(result)
}
