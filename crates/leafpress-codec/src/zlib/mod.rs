//! Raw deflate (RFC 1951) by the system's zlib, or by a library preloaded over it, with a history window of 4 KiB, or
//! with zlib's own of 32 KiB.

#[allow(unsafe_code, reason = "the bindings")]
pub(super) mod ffi;

use std::ffi::c_uint;

use self::ffi::{Direction, Stream, Zlib};
use super::counters::{Count, Counters};
use super::room::{Room, append};
use super::{Codec, CodecError, Dictionary, Engine, EngineCounters, StreamCache, output};
use leafpress_base::mem::room::TryGrow;
use leafpress_base::sync::per_core::PerCore;

const NAME: &str = "zlib";

/// The format's largest history window, in bits: zlib's default.
const MAX_WINDOW_BITS: u8 = 15;
/// A window of 4 KiB, which an IAA device can decompress.
const WINDOW_BITS: u8 = 12;

/// Returns the library and its version, if it is loaded.
pub(super) fn library() -> Option<String> {
    let zlib = Zlib::get().ok()?;
    Some(match &zlib.interposer {
        Some(path) => format!("{} before zlib {}", path.display(), zlib.version()),
        None => format!("zlib {}", zlib.version()),
    })
}

/// The engine of `zlib`.
pub(super) struct ZlibEngine {
    codec: Codec,
    level: i32,
    window_bits: u8,
    cache: StreamCache,
    zlib: &'static Zlib,
    counters: Counters,
}

impl std::fmt::Debug for ZlibEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ZlibEngine")
            .field("codec", &self.codec)
            .field("cache", &self.cache)
            .finish_non_exhaustive()
    }
}

/// One stream per level and one to inflate, for each window: a few, so a list is searched faster than a map.
static STREAMS: PerCore<Vec<Stream>> = PerCore::new();

/// Converts a length to zlib's type.
fn length(bytes: usize) -> Result<c_uint, CodecError> {
    c_uint::try_from(bytes).map_err(|_| output::failed(NAME, format!("{bytes} bytes are too many for one block")))
}

fn new_stream(zlib: &'static Zlib, direction: Direction, window_bits: u8) -> Result<Stream, CodecError> {
    Stream::new(zlib, direction, window_bits)
        .map_err(|status| output::failed(NAME, format!("initialising a stream gave status {status}")))
}

impl ZlibEngine {
    /// Returns the engine of a codec of the family.
    ///
    /// # Errors
    /// Returns why there is no zlib, or that the codec is of another family.
    pub(super) fn new(codec: Codec, cache: StreamCache) -> Result<Self, &'static str> {
        let (level, window_bits) = match codec {
            Codec::Zlib { level } => (level, WINDOW_BITS),
            Codec::Zlib32K { level } => (level, MAX_WINDOW_BITS),
            _ => return Err("it is not a codec of zlib's"),
        };
        Ok(Self {
            codec,
            level,
            window_bits,
            cache,
            zlib: Zlib::get()?,
            counters: Counters::default(),
        })
    }

    /// Runs `work` with a stream that has been reset.
    fn with_stream<R>(
        &self,
        direction: Direction,
        work: impl FnOnce(&mut Stream) -> Result<R, CodecError>,
    ) -> Result<R, CodecError> {
        let counts = self.counters.mine();
        if self.cache == StreamCache::None {
            counts.add(Count::StreamInits, 1);
            return work(&mut new_stream(self.zlib, direction, self.window_bits)?);
        }
        STREAMS.with(|streams| {
            let is_mine = |stream: &Stream| stream.direction() == direction && stream.window_bits() == self.window_bits;
            let at = match streams.iter().position(is_mine) {
                Some(at) if streams[at].reset() => {
                    counts.add(Count::StreamReuses, 1);
                    at
                }
                at => {
                    counts.add(Count::StreamInits, 1);
                    if let Some(broken) = at {
                        streams.swap_remove(broken);
                    }
                    streams.try_push(new_stream(self.zlib, direction, self.window_bits)?)?;
                    streams.len() - 1
                }
            };
            work(&mut streams[at])
        })
    }
}

impl Engine for ZlibEngine {
    fn codec(&self) -> Codec {
        self.codec
    }

    fn engine_name(&self) -> &'static str {
        if self.zlib.interposer.is_some() {
            "zlib_accel_preload"
        } else {
            "zlib_system"
        }
    }

    fn counters(&self) -> EngineCounters {
        self.counters.sum_cpu()
    }

    fn compress(&self, raw: &[u8], _: Option<&Dictionary>, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        let work = |stream: &mut Stream| {
            length(raw.len())?;
            // One byte more than the bound: deflate reports a stream that exactly fills its room as unfinished.
            let bound = stream.bound(raw.len()) + 1;
            length(bound)?;
            append(out, bound, |room| match stream.run(raw, room) {
                ffi::STREAM_END => Ok(()),
                status => Err(output::failed(NAME, format!("deflate gave status {status}"))),
            })
        };
        let direction = Direction::Deflate { level: self.level };
        self.counters.compress(raw.len(), || self.with_stream(direction, work))
    }

    fn compress_into(&self, raw: &[u8], _: Option<&Dictionary>, out: &mut [u8]) -> Result<Option<usize>, CodecError> {
        let most = out.len().min(raw.len());
        length(most)?;
        let work = |stream: &mut Stream| {
            length(raw.len())?;
            let mut room = Room::of(&mut out[..most]);
            match stream.run(raw, &mut room) {
                ffi::STREAM_END => Ok(Some(room.len()).filter(|written| *written < raw.len())),
                // The room is exhausted; the stream is reset before its next use.
                ffi::OK | ffi::BUFFER_ERROR => Ok(None),
                status => Err(output::failed(NAME, format!("deflate gave status {status}"))),
            }
        };
        let direction = Direction::Deflate { level: self.level };
        self.counters
            .compress_into(raw.len(), || self.with_stream(direction, work))
    }

    fn decompress(&self, block: &[u8], _: Option<&Dictionary>, raw: &mut [u8]) -> Result<(), CodecError> {
        let expected = raw.len();
        let work = |stream: &mut Stream| {
            length(block.len())?;
            length(expected)?;
            let mut room = Room::of(raw);
            match stream.run(block, &mut room) {
                ffi::STREAM_END => output::exact(NAME, room.len(), expected),
                status => Err(output::corrupt(NAME, format!("inflate gave status {status}"))),
            }
        };
        self.counters
            .decompress(block.len(), expected, || self.with_stream(Direction::Inflate, work))
            .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Codec, EngineOptions};

    /// Repetitions at a distance of 8 KiB are found by the window of 32 KiB only, and each codec reads its own blocks,
    /// alternating on one thread.
    #[test]
    fn the_windows_are_4_and_32_kib() {
        let mut random = 1_u64;
        let mut byte = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 56) as u8
        };
        let once: Vec<u8> = (0..8192).map(|_| byte()).collect();
        let raw = once.repeat(2);
        let mut lengths = Vec::new();
        for name in ["zlib:6", "zlib:32k=6", "zlib:6", "zlib:32k=6"] {
            let codec: Codec = name.parse().unwrap();
            let Ok(engine) = codec.open(&EngineOptions::default()) else {
                println!("skipped: no zlib");
                return;
            };
            assert_eq!((engine.codec(), codec.to_string().as_str()), (codec, name));
            let mut block = Vec::new();
            lengths.push(engine.compress(&raw, None, &mut block).unwrap());
            let mut back = vec![0; raw.len()];
            engine.decompress(&block, None, &mut back).unwrap();
            assert_eq!(back, raw, "{name}");
        }
        assert!(
            lengths[0] >= raw.len() && lengths[1] < raw.len() * 6 / 10,
            "{lengths:?}"
        );
        assert_eq!(lengths[..2], lengths[2..]);
    }
}
