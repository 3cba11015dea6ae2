//! Raw deflate (RFC 1951) by libdeflate, with a history window of at most 4 KiB.
//!
//! libdeflate always uses the format's whole window of 32 KiB. Inputs of at most 4 KiB cannot exceed a window of 4 KiB;
//! larger ones are compressed by zlib-rs with a window of 12 bits. All blocks are decoded by libdeflate.

#[allow(unsafe_code, reason = "the bindings")]
mod ffi;

use zlib_rs::Deflate as WindowedStream;

use self::ffi::{Compressor, Decompressor, Refused};

use super::counters::Counters;
use super::room::{Room, append};
use super::{Codec, CodecError, Dictionary, Engine, EngineCounters, Scratch, output};
use leafpress_base::mem::room::TryGrow;
use leafpress_base::sync::per_core::PerCore;

const NAME: &str = "deflate";

/// The libraries behind the codec.
pub(super) const LIBRARY: &str = "libdeflate, zlib-rs";

/// The family's history window, in bits and in bytes: that of Intel IAA.
pub(super) const WINDOW_BITS: u8 = 12;
const WINDOW_BYTES: usize = 1 << WINDOW_BITS;

/// libdeflate stays in its fast decoding loop only while about this many bytes of room are left.
const SLACK_BYTES: usize = 320;

/// The engine of `deflate`.
#[derive(Debug)]
pub(super) struct Deflate {
    level: i32,
    counters: Counters,
}

/// One level's compressors.
struct Level {
    level: i32,
    whole: Option<Compressor>,
    windowed: Option<WindowedStream>,
    /// Buffer for a windowed stream that may not fit into its destination.
    room: Vec<u8>,
}

static LEVELS: PerCore<Vec<Level>> = PerCore::new();
static DECOMPRESSORS: PerCore<Option<Decompressor>> = PerCore::of_small();

impl Level {
    /// Compresses `raw` into the room; returns false if it does not fit.
    fn compress(&mut self, raw: &[u8], room: &mut Room<'_>) -> Result<bool, CodecError> {
        if raw.len() <= WINDOW_BYTES {
            return Ok(self.whole()?.compress(raw, room));
        }
        let bound = self.bound(raw.len())?;
        if room.capacity() >= bound {
            self.compress_windowed(raw, room)?;
            return Ok(true);
        }
        // A zlib-rs stream that stopped for lack of room is not valid after its reset (its pending buffer keeps its
        // offset, and an open block stays open), so it always gets enough room.
        let mut own = std::mem::take(&mut self.room);
        own.clear();
        let written = append(&mut own, bound, |own| self.compress_windowed(raw, own));
        let fits = written.map(|_| room.put(&own));
        self.room = own;
        fits
    }

    /// Returns an upper bound of the length of a stream of `raw_len` raw bytes.
    fn bound(&mut self, raw_len: usize) -> Result<usize, CodecError> {
        if raw_len > WINDOW_BYTES {
            // Fixed tables spend up to nine bits on a byte; a small window makes many small stored blocks.
            return Ok(raw_len + raw_len / 8 + raw_len / 512 + 64);
        }
        Ok(self.whole()?.bound(raw_len))
    }

    /// Returns libdeflate's compressor, made at its first use.
    fn whole(&mut self) -> Result<&mut Compressor, CodecError> {
        match &mut self.whole {
            Some(compressor) => Ok(compressor),
            none => {
                let new = Compressor::new(self.level);
                Ok(none.insert(new.ok_or_else(|| output::failed(NAME, "no memory for a compressor"))?))
            }
        }
    }

    /// Compresses `raw` by zlib-rs into a room that has the bound.
    fn compress_windowed(&mut self, raw: &[u8], room: &mut Room<'_>) -> Result<(), CodecError> {
        // zlib has nine levels to libdeflate's twelve. Its first one writes fixed Huffman tables, with which a block of
        // 8 KiB takes more than two of 4 KiB by libdeflate.
        let stream = match &mut self.windowed {
            Some(stream) => {
                stream.reset();
                stream
            }
            none => none.insert(WindowedStream::new(self.level.clamp(2, 9), false, WINDOW_BITS)),
        };
        match ffi::compress_windowed(stream, raw, room) {
            Ok(true) => Ok(()),
            Ok(false) => {
                self.windowed = None;
                Err(output::failed(NAME, "the compressed form does not fit its bound"))
            }
            Err(reason) => Err(output::failed(NAME, reason)),
        }
    }
}

/// Decodes `block` into `raw` and returns its length; `raw` may have slack at its end.
fn decode_into(block: &[u8], raw: &mut [u8]) -> Result<usize, CodecError> {
    DECOMPRESSORS.with(|slot| {
        let decompressor = match slot {
            Some(decompressor) => decompressor,
            none => {
                let new = Decompressor::new();
                none.insert(new.ok_or_else(|| output::failed(NAME, "no memory for a decompressor"))?)
            }
        };
        decompressor.decompress(block, raw).map_err(|refused| match refused {
            Refused::TooLong => output::corrupt(NAME, format!("it holds more than {} raw bytes", raw.len())),
            Refused::Malformed => output::corrupt(NAME, "it is malformed or truncated"),
        })
    })
}

impl Deflate {
    /// Returns an engine with a compression level.
    pub(super) fn new(level: i32) -> Self {
        Self {
            level,
            counters: Counters::default(),
        }
    }

    /// Runs `work` with compressors of this level.
    fn with_level<R>(&self, work: impl FnOnce(&mut Level) -> Result<R, CodecError>) -> Result<R, CodecError> {
        LEVELS.with(|levels| {
            let at = match levels.iter().position(|l| l.level == self.level) {
                Some(at) => at,
                None => {
                    levels.try_push(Level {
                        level: self.level,
                        whole: None,
                        windowed: None,
                        room: Vec::new(),
                    })?;
                    levels.len() - 1
                }
            };
            work(&mut levels[at])
        })
    }
}

impl Engine for Deflate {
    fn codec(&self) -> Codec {
        Codec::Deflate { level: self.level }
    }

    fn counters(&self) -> EngineCounters {
        self.counters.sum_cpu()
    }

    fn compress(&self, raw: &[u8], _: Option<&Dictionary>, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        self.counters.compress(raw.len(), || {
            self.with_level(|level| {
                let bound = level.bound(raw.len())?;
                append(out, bound, |room| {
                    if level.compress(raw, room)? {
                        Ok(())
                    } else {
                        Err(output::failed(NAME, "the compressed form does not fit its bound"))
                    }
                })
            })
        })
    }

    fn compress_into(&self, raw: &[u8], _: Option<&Dictionary>, out: &mut [u8]) -> Result<Option<usize>, CodecError> {
        self.counters.compress_into(raw.len(), || {
            let mut room = Room::of(out);
            let fits = self.with_level(|level| level.compress(raw, &mut room))?;
            Ok((fits && room.len() < raw.len()).then_some(room.len()))
        })
    }

    fn decompress(&self, block: &[u8], _: Option<&Dictionary>, raw: &mut [u8]) -> Result<(), CodecError> {
        let expected = raw.len();
        let work = || output::exact(NAME, decode_into(block, raw)?, expected);
        self.counters.decompress(block.len(), expected, work).map(drop)
    }

    fn decode<'s>(
        &self,
        block: &[u8],
        _: Option<&Dictionary>,
        raw_len: usize,
        _needed: usize,
        scratch: &'s mut Scratch,
    ) -> Result<&'s [u8], CodecError> {
        self.counters.decode(block.len(), raw_len, scratch, |scratch| {
            let (_, raw) = scratch.history_and_output(raw_len, SLACK_BYTES)?;
            output::exact(NAME, decode_into(block, raw)?, raw_len)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use crate::{Codec, EngineOptions};

    /// Above 4 KiB another library compresses; the ratio must not get worse.
    #[test]
    fn longer_blocks_compress_no_worse() {
        let words = [
            "Package",
            "Version",
            "Depends",
            "Description",
            "Section",
            "Filename",
            "library",
            "Maintainer",
        ];
        let mut text = String::new();
        let mut random = 1_u64;
        while text.len() < 256 << 10 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let word = words[(random >> 61) as usize];
            let _ = writeln!(
                text,
                "{word}: {} {:05}",
                words[(random >> 58 & 7) as usize],
                random >> 40 & 0xffff
            );
        }
        for level in 1..=12 {
            let engine = Codec::Deflate { level }.open(&EngineOptions::default()).unwrap();
            let total = |block_bytes: usize| -> usize {
                let blocks = text.as_bytes()[..256 << 10].chunks(block_bytes);
                blocks
                    .map(|raw| engine.compress(raw, None, &mut Vec::new()).unwrap())
                    .sum()
            };
            let (short, long) = (total(4 << 10), [8 << 10, 16 << 10, 64 << 10].map(total));
            assert!(
                long.iter().all(|long| *long <= short),
                "level {level}: {short} {long:?}"
            );
        }
    }
}
