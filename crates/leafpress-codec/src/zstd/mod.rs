//! Zstandard.
//!
//! Up to 128 KiB of raw bytes become one bare zstd block: no frame header, no content size, no checksum, no block
//! header. For a record of 100 bytes these would be a seventh of the output. A block as long as its raw bytes contains
//! them uncompressed (zstd never writes a block that does not shrink). More raw bytes become one frame without magic
//! number, content size, checksum or dictionary id. The two lengths determine which of the three a block is.

pub(super) mod dictionary;
#[allow(unsafe_code, reason = "the bindings")]
pub(super) mod ffi;
pub(super) mod train;

use self::ffi::{Compressor, DecompressionTables, Decompressor, History, Prepared, Refused};
use super::counters::Counters;
use super::primed::with_primed_buffers;
use super::room::{Room, append};
use super::{Codec, CodecError, Dictionary, Engine, EngineCounters, Scratch, output};
use leafpress_base::sync::per_core::PerCore;

const NAME: &str = "zstd";

/// Maximum raw bytes of a bare block (`ZSTD_BLOCKSIZE_MAX`).
const MAX_BLOCK_BYTES: usize = 128 << 10;

/// zstd sizes the input's table by that of a prepared dictionary. Inputs longer than this and than the dictionary would
/// be searched too coarsely: they load the dictionary again, which is then a small part of their time.
const PREPARED_BYTES: usize = 4096;

/// After a frame of more raw bytes than this the compression context is freed: its tables have grown to the frame's
/// size.
const KEEP_CONTEXT_BYTES: usize = 1 << 20;

/// zstd copies in wide strides only while this many bytes of room are left (`WILDCOPY_OVERLENGTH` is 32).
const SLACK_BYTES: usize = 64;

/// Flag of a buffer history id for a whole dictionary: LZ4's id stands for the 64 KiB it can reach.
const WHOLE_DICTIONARY: u64 = 1 << 63;

/// Returns the library and its version.
pub(super) fn library() -> String {
    format!("libzstd {}", ffi::version())
}

/// The engine of `zstd`.
#[derive(Debug)]
pub(super) struct Zstd {
    level: i32,
    counters: Counters,
}

static COMPRESSORS: PerCore<Option<Compressor>> = PerCore::new();
static DECOMPRESSORS: PerCore<Option<Decompressor>> = PerCore::of_small();

/// Runs `work` with a context of the pool, created if there is none.
#[inline]
fn with_context<C, R>(
    pool: &'static PerCore<Option<C>>,
    new: impl FnOnce() -> Option<C>,
    drop_after: bool,
    work: impl FnOnce(&mut C) -> Result<R, CodecError>,
) -> Result<R, CodecError> {
    pool.with(|kept| {
        let context = match &mut *kept {
            Some(context) => context,
            none => none.insert(new().ok_or_else(|| output::failed(NAME, "no memory for a context"))?),
        };
        let result = work(context);
        if drop_after {
            *kept = None;
        }
        result
    })
}

/// The error of a compression.
fn failed(refused: Refused) -> CodecError {
    output::failed(NAME, refused.name())
}

/// The error of a decompression.
fn corrupt(refused: Refused) -> CodecError {
    output::corrupt(NAME, refused.name())
}

/// Returns the dictionary unless it is empty.
fn non_empty(dictionary: Option<&Dictionary>) -> Option<&Dictionary> {
    dictionary.filter(|d| !d.bytes().is_empty())
}

impl Zstd {
    /// Returns an engine with a compression level.
    pub(super) fn new(level: i32) -> Self {
        Self {
            level,
            counters: Counters::default(),
        }
    }

    /// Compresses `raw` into the room as a bare block; returns false if it does not shrink or does not fit.
    fn compress_block(
        &self,
        raw: &[u8],
        dictionary: Option<&Dictionary>,
        room: &mut Room<'_>,
    ) -> Result<bool, CodecError> {
        let history = match dictionary {
            Some(dictionary) if raw.len() <= dictionary.bytes().len().max(PREPARED_BYTES) => {
                History::Prepared(dictionary.zstd_compression(self.level)?)
            }
            loaded => History::Loaded(loaded.map_or(&[], Dictionary::bytes)),
        };
        with_context(&COMPRESSORS, Compressor::new, false, |context| {
            context.block(self.level, raw, &history, room).map_err(failed)
        })
    }

    /// Compresses `raw` into the room as a frame; returns false if it does not fit.
    fn compress_frame(
        &self,
        raw: &[u8],
        dictionary: Option<&Dictionary>,
        room: &mut Room<'_>,
    ) -> Result<bool, CodecError> {
        let tables = dictionary.map(|d| d.zstd_compression(self.level)).transpose()?;
        with_context(
            &COMPRESSORS,
            Compressor::new,
            raw.len() > KEEP_CONTEXT_BYTES,
            |context| context.frame(self.level, raw, tables.as_ref(), room).map_err(failed),
        )
    }
}

/// Decodes a block of `raw_len` raw bytes into the front of `raw`; the rest is slack for wide strides.
#[inline]
fn decode_into(
    block: &[u8],
    tables: Option<&Prepared<'_, DecompressionTables>>,
    raw: &mut [u8],
    raw_len: usize,
) -> Result<usize, CodecError> {
    if block.len() == raw_len && raw_len <= MAX_BLOCK_BYTES {
        raw[..raw_len].copy_from_slice(block);
        return Ok(raw_len);
    }
    let found = with_context(&DECOMPRESSORS, Decompressor::new, false, |context| {
        let found = if raw_len > MAX_BLOCK_BYTES {
            context.frame(block, tables, raw)
        } else {
            context.block(block, tables, raw)
        };
        found.map_err(corrupt)
    })?;
    output::exact(NAME, found, raw_len)
}

impl Engine for Zstd {
    fn codec(&self) -> Codec {
        Codec::Zstd { level: self.level }
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
            append(out, ffi::bound(raw.len()).map_err(failed)?, |room| {
                let done = if raw.len() > MAX_BLOCK_BYTES {
                    self.compress_frame(raw, dictionary, room)?
                } else {
                    self.compress_block(raw, dictionary, room)? || room.put(raw)
                };
                if done {
                    Ok(())
                } else {
                    Err(output::failed(NAME, "the compressed form does not fit its bound"))
                }
            })
        })
    }

    fn compress_into(
        &self,
        raw: &[u8],
        dictionary: Option<&Dictionary>,
        out: &mut [u8],
    ) -> Result<Option<usize>, CodecError> {
        self.counters.compress_into(raw.len(), || {
            let dictionary = non_empty(dictionary);
            let mut room = Room::of(out);
            let fits = if raw.len() > MAX_BLOCK_BYTES {
                self.compress_frame(raw, dictionary, &mut room)?
            } else {
                self.compress_block(raw, dictionary, &mut room)?
            };
            Ok((fits && room.len() < raw.len()).then_some(room.len()))
        })
    }

    fn decompress(&self, block: &[u8], dictionary: Option<&Dictionary>, raw: &mut [u8]) -> Result<(), CodecError> {
        let expected = raw.len();
        let work = || {
            let Some(dictionary) = non_empty(dictionary) else {
                return decode_into(block, None, raw, expected);
            };
            with_primed_buffers(|buffers| {
                let id = dictionary.serial() | WHOLE_DICTIONARY;
                // Never for one block alone: building the tables takes longer than decoding a block.
                if let Some(primed) = buffers.primed_with(id, dictionary, expected, false)
                    && primed.prime(id, dictionary.bytes())?
                {
                    let (tables, buffer) = primed.zstd_tables_and_output(expected, SLACK_BYTES)?;
                    let found = decode_into(block, Some(&tables), buffer, expected)?;
                    raw.copy_from_slice(&buffer[..expected]);
                    return Ok(found);
                }
                decode_into(block, Some(&dictionary.zstd_decompression()?), raw, expected)
            })
        };
        self.counters.decompress(block.len(), expected, work).map(drop)
    }

    fn decode<'s>(
        &self,
        block: &[u8],
        dictionary: Option<&Dictionary>,
        raw_len: usize,
        _needed: usize,
        scratch: &'s mut Scratch,
    ) -> Result<&'s [u8], CodecError> {
        self.counters.decode(block.len(), raw_len, scratch, |scratch| {
            let Some(dictionary) = non_empty(dictionary) else {
                let (_, raw) = scratch.history_and_output(raw_len, SLACK_BYTES)?;
                return decode_into(block, None, raw, raw_len);
            };
            if scratch.prime(dictionary.serial() | WHOLE_DICTIONARY, dictionary.bytes())? {
                let (tables, raw) = scratch.zstd_tables_and_output(raw_len, SLACK_BYTES)?;
                return decode_into(block, Some(&tables), raw, raw_len);
            }
            let (_, raw) = scratch.history_and_output(raw_len, SLACK_BYTES)?;
            decode_into(block, Some(&dictionary.zstd_decompression()?), raw, raw_len)
        })
    }
}
