//! LZ4 by liblz4, and by an encoder for short records with a dictionary ([`short`]). A block is a bare LZ4 block,
//! without frame or length.
//!
//! The format requires that the last bytes of a block are literals and that no match begins in its last twelve: a third
//! of the size of a compressed record of 100 bytes. Inputs of up to 4 KiB are therefore compressed with twelve fixed
//! bytes, [`TAIL`], appended. These become the literals; they are cut off the block and appended again before it is
//! decoded. A block as long as its raw bytes contains them uncompressed. If a match runs into the tail, the input is
//! compressed without it: a decoder that does not find the tail at the end of its output decodes again.
//!
//! A dictionary precedes the output directly ([`Scratch`]), so that liblz4 decodes with it as contiguous history
//! instead of as a second buffer.

pub(super) mod dictionary;
mod encode;
#[allow(unsafe_code, reason = "the bindings")]
pub(super) mod ffi;
#[cfg(miri)]
pub(super) mod run_lengths;
#[allow(unsafe_code, reason = "an encoder whose speed is in it")]
pub(super) mod short;

use self::encode::{Encoder, Input, with_encoder};
use self::ffi::NAME;
use super::counters::Counters;
use super::engine::copy_smaller;
use super::primed::with_primed_buffers;
use super::room::{Room, append};
use super::{Codec, CodecError, Dictionary, Engine, EngineCounters, Lz4Blocks, Scratch, output};

pub(crate) use self::encode::Method;

/// liblz4 decodes in wide strides only while this many bytes of room are left. With slack after the output, a short
/// record is decoded in wide strides to its end.
const SLACK_BYTES: usize = 96;

/// Decoding stops early only when it saves at least this many bytes of output.
const PARTIAL_SAVES_BYTES: usize = 128;

/// Twelve bytes (`MFLIMIT` of lz4.c) that are rare in text and numbers.
const TAIL: [u8; 12] = [0xF9, 0xC5, 0xE3, 0x9B, 0xF6, 0xA7, 0xED, 0x8F, 0xDB, 0xFA, 0xB1, 0xCE];

/// Maximum input length for compression with a tail. Copying longer ones costs more than it saves.
const MAX_TAILED_BYTES: usize = 4096;

/// Returns the library and its version.
pub(super) fn library() -> String {
    let (major, minor, patch) = ffi::version();
    format!("liblz4 {major}.{minor}.{patch}")
}

/// The engine of `lz4`.
#[derive(Debug)]
pub(super) struct Lz4 {
    method: Method,
    /// Maximum input length for compression with a tail, in bytes; `None` if none has one.
    tailed_bytes: Option<usize>,
    counters: Counters,
}

impl Lz4 {
    /// Returns an engine that compresses by one of liblz4's encoders.
    pub(super) fn new(method: Method, blocks: Lz4Blocks) -> Self {
        Self {
            method,
            tailed_bytes: (blocks == Lz4Blocks::TailCutOff).then_some(MAX_TAILED_BYTES),
            counters: Counters::default(),
        }
    }

    /// Returns true if a block of `raw_len` raw bytes has its tail cut off.
    #[inline]
    fn tailed(&self, raw_len: usize) -> bool {
        self.tailed_bytes.is_some_and(|most| raw_len <= most)
    }

    /// Returns the table of the encoder of short records, if it is to compress an input of this length. Its ratio is
    /// that of liblz4 at full effort.
    #[inline]
    fn own<'d>(&self, raw_len: usize, dictionary: Option<&'d Dictionary>) -> Option<short::History<'d>> {
        let is_for_it = self.method == Method::Fast { acceleration: 1 }
            && self.tailed(raw_len)
            && raw_len <= short::MAX_SHORT_BYTES;
        if is_for_it { dictionary?.lz4_short() } else { None }
    }

    /// Compresses a short input into the room.
    fn compress_short(
        &self,
        encoder: &mut Encoder,
        raw: &[u8],
        dictionary: Option<&Dictionary>,
        room: &mut Room<'_>,
    ) -> Result<(), CodecError> {
        bounded(encoder.compress(self.method, Input::Tailed(raw, &TAIL), dictionary, room)?)?;
        // Whatever the block's last bytes mean, cutting the tail off and appending it gives the same block.
        if let Some(cut) = room.block().strip_suffix(&TAIL) {
            let cut = cut.len();
            if cut < raw.len() {
                room.truncate(cut);
                return Ok(());
            }
        } else {
            bounded(encoder.compress(self.method, Input::Whole(raw), dictionary, room)?)?;
            let (block, mut scratch) = (room.block(), Scratch::default());
            let tried = try_tailed(block, dictionary.map(reachable), raw.len(), raw.len(), &mut scratch);
            // If there was no memory for the check, the result is unknown.
            if block.len() < raw.len() && matches!(tried, Ok(Err(_)) | Err(CodecError::Corrupt { .. })) {
                return Ok(());
            }
        }
        bounded(room.put(raw))
    }
}

/// The part of a dictionary within LZ4's maximum distance.
fn reachable(dictionary: &Dictionary) -> &[u8] {
    dictionary::reachable(dictionary.bytes())
}

/// Returns the dictionary unless it is empty.
fn non_empty(dictionary: Option<&Dictionary>) -> Option<&Dictionary> {
    dictionary.filter(|d| !d.bytes().is_empty())
}

/// Returns `LZ4_compressBound`, or an error for an input that is too long for LZ4.
fn bound(raw_len: usize) -> Result<usize, CodecError> {
    if raw_len > ffi::MAX_INPUT_BYTES {
        return Err(output::failed(
            NAME,
            format!("{raw_len} bytes are too many for one block"),
        ));
    }
    Ok(raw_len + raw_len / 255 + 16)
}

/// Checks a compression with room for the bound, in which liblz4 cannot fail.
fn bounded(fits: bool) -> Result<(), CodecError> {
    if fits {
        Ok(())
    } else {
        Err(output::failed(NAME, "liblz4 reported an error"))
    }
}

impl Engine for Lz4 {
    fn codec(&self) -> Codec {
        match self.method {
            Method::Fast { acceleration } => Codec::Lz4 { acceleration },
            Method::High { level } => Codec::Lz4Hc { level },
        }
    }

    fn counters(&self) -> EngineCounters {
        self.counters.sum_cpu()
    }

    fn supports_dictionary(&self) -> bool {
        true
    }

    fn compress(&self, raw: &[u8], dictionary: Option<&Dictionary>, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        self.counters.compress(raw.len(), || {
            let dictionary = non_empty(dictionary);
            if let Some(history) = self.own(raw.len(), dictionary) {
                return append(out, raw.len() + short::ROOM_BYTES, |room| {
                    match short::encode(raw, history, room) {
                        true => Ok(()),
                        false => Err(output::failed(NAME, "the record is too long")),
                    }
                });
            }
            let short = self.tailed(raw.len());
            let bound = bound(if short { raw.len() + TAIL.len() } else { raw.len() })?;
            append(out, bound, |room| {
                with_encoder(|encoder| {
                    if short {
                        self.compress_short(encoder, raw, dictionary, room)
                    } else {
                        bounded(encoder.compress(self.method, Input::Whole(raw), dictionary, room)?)
                    }
                })
            })
        })
    }

    fn compress_into(
        &self,
        raw: &[u8],
        dictionary: Option<&Dictionary>,
        out: &mut [u8],
    ) -> Result<Option<usize>, CodecError> {
        if self.tailed(raw.len()) {
            let mut block = Vec::new();
            self.compress(raw, dictionary, &mut block)?;
            return Ok(copy_smaller(&block, raw.len(), out));
        }
        self.counters.compress_into(raw.len(), || {
            bound(raw.len())?;
            let mut room = Room::of(out);
            let fits = with_encoder(|encoder| {
                encoder.compress(self.method, Input::Whole(raw), non_empty(dictionary), &mut room)
            })?;
            Ok((fits && room.len() < raw.len()).then_some(room.len()))
        })
    }

    fn decompress(&self, block: &[u8], dictionary: Option<&Dictionary>, raw: &mut [u8]) -> Result<(), CodecError> {
        let expected = raw.len();
        let short = self.tailed(expected);
        let work = || {
            let dictionary = non_empty(dictionary);
            let history = dictionary.map_or([].as_slice(), reachable);
            if !short && dictionary.is_none() {
                return output::exact(NAME, decode_into(block, history, raw, expected)?, expected);
            }
            with_primed_buffers(|buffers| {
                let primed = dictionary.and_then(|d| buffers.primed_with(d.serial(), d, expected, true));
                let (buffer, outside) = match primed {
                    Some(buffer) => {
                        let outside = outside(dictionary, buffer)?;
                        (buffer, outside)
                    }
                    None if short => (buffers.plain(), Some(history)),
                    None => return output::exact(NAME, decode_into(block, history, raw, expected)?, expected),
                };
                let decode = if short { decode_short } else { decode_plain };
                decode(block, outside, expected, expected, buffer)?;
                raw.copy_from_slice(buffer.output(expected, 0)?);
                Ok(expected)
            })
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
            let outside = outside(non_empty(dictionary), buffer)?;
            if self.tailed(raw_len) {
                return decode_short(block, outside, raw_len, target, buffer);
            }
            decode_plain(block, outside, raw_len, target, buffer)
        })?;
        Ok(&scratch.output(raw_len, 0)?[..len])
    }
}

/// Returns the history that is not in the buffer: none if the buffer is primed with the dictionary, or becomes so now.
#[inline]
fn outside<'d>(dictionary: Option<&'d Dictionary>, buffer: &mut Scratch) -> Result<Option<&'d [u8]>, CodecError> {
    let Some(dictionary) = dictionary else {
        return Ok(Some(&[]));
    };
    let bytes = reachable(dictionary);
    Ok(if buffer.prime(dictionary.serial(), bytes)? {
        None
    } else {
        Some(bytes)
    })
}

/// Decodes a block of a short input into the buffer's output, at least `target` bytes of it; `target` is `raw_len` or
/// well below. Without `history`, the buffer's own is used. Returns the number of decoded bytes.
fn decode_short(
    block: &[u8],
    history: Option<&[u8]>,
    raw_len: usize,
    target: usize,
    buffer: &mut Scratch,
) -> Result<usize, CodecError> {
    if block.len() == raw_len {
        buffer.output(raw_len, 0)?.copy_from_slice(block);
        return Ok(raw_len);
    }
    if block.len() > raw_len {
        return Err(output::corrupt(NAME, "it is longer than its raw bytes"));
    }
    match try_tailed(block, history, raw_len, target, buffer) {
        Ok(Ok(found)) => Ok(found),
        // It may still be a block whose tail was cut off: the result of decoding without the tail does not exclude
        // that.
        Err(error @ CodecError::OutOfMemory { .. }) => Err(error),
        // The block may also be one without a cut tail; those are rare.
        Ok(Err(_)) | Err(_) => decode_plain(block, history, raw_len, target, buffer),
    }
}

/// Implements [`decode_short`] for a block whose tail was cut off. A wrong length is not yet reported as an error,
/// which would allocate its text: so a block can be tried.
#[inline]
fn try_tailed(
    block: &[u8],
    history: Option<&[u8]>,
    raw_len: usize,
    target: usize,
    buffer: &mut Scratch,
) -> Result<Result<usize, usize>, CodecError> {
    let room = raw_len + TAIL.len() + SLACK_BYTES;
    let (primed, space) = buffer.history_and_output(room, block.len() + TAIL.len())?;
    let (raw, tailed) = space.split_at_mut(room);
    tailed[..block.len()].copy_from_slice(block);
    tailed[block.len()..].copy_from_slice(&TAIL);
    let whole = target == raw_len;
    let target = if whole { raw_len + TAIL.len() } else { target };
    let found = decode_into(tailed, history.unwrap_or(primed), raw, target)?;
    if whole && (found != target || raw[raw_len..target] != TAIL) || found < target {
        return Ok(Err(found.min(raw_len)));
    }
    Ok(Ok(found.min(raw_len)))
}

/// Implements [`decode_short`] for a block without a cut tail, of any length.
fn decode_plain(
    block: &[u8],
    history: Option<&[u8]>,
    raw_len: usize,
    target: usize,
    buffer: &mut Scratch,
) -> Result<usize, CodecError> {
    let (primed, raw) = buffer.history_and_output(raw_len, SLACK_BYTES)?;
    let found = decode_into(block, history.unwrap_or(primed), raw, target)?;
    if target == raw_len {
        output::exact(NAME, found, raw_len)
    } else if found < target {
        Err(output::wrong_length(NAME, found, target))
    } else {
        Ok(found.min(raw_len))
    }
}

/// Decodes `block` into `raw`, at least its first `target` bytes if it has them; all of it if `raw` has at most slack
/// after `target`. Returns the decoded length.
#[inline]
fn decode_into(block: &[u8], history: &[u8], raw: &mut [u8], target: usize) -> Result<usize, CodecError> {
    if raw.len() <= target + SLACK_BYTES {
        ffi::decompress(block, history, raw, None)
    } else {
        // The decoder stops at the target, so that includes slack: near it the strides are narrow.
        ffi::decompress(block, history, raw, Some(target + SLACK_BYTES))
    }
}
