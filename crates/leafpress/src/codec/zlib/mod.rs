//! Raw deflate (RFC 1951) by the system's zlib, or by what is preloaded over it, with a history window of 4 KiB.

#[allow(unsafe_code, reason = "the bindings")]
pub(super) mod ffi;

use std::ffi::c_uint;

use self::ffi::{Direction, Stream, Zlib};
use super::counters::Counters;
use super::deflate::WINDOW_BITS;
use super::room::{Room, append};
use super::{Codec, CodecError, Dictionary, Engine, EngineCounters, StreamCache, output};
use crate::mem::room::TryGrow;
use crate::sync::per_core::PerCore;

const NAME: &str = "zlib";

/// What is behind it, with its version, where it is loaded.
pub(super) fn library() -> Option<String> {
    let zlib = Zlib::get().ok()?;
    Some(match &zlib.interposer {
        Some(path) => format!("{} before zlib {}", path.display(), zlib.version()),
        None => format!("zlib {}", zlib.version()),
    })
}

/// The engine of `zlib`.
pub(super) struct ZlibEngine {
    level: i32,
    cache: StreamCache,
    zlib: &'static Zlib,
    counters: Counters,
}

impl std::fmt::Debug for ZlibEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ZlibEngine")
            .field("level", &self.level)
            .field("cache", &self.cache)
            .finish_non_exhaustive()
    }
}

/// One for each level and one to inflate: a handful, so a list is searched faster than a map.
static STREAMS: PerCore<Vec<Stream>> = PerCore::new();

/// A length as zlib counts it.
fn length(bytes: usize) -> Result<c_uint, CodecError> {
    c_uint::try_from(bytes).map_err(|_| output::failed(NAME, format!("{bytes} bytes are too many for one block")))
}

fn new_stream(zlib: &'static Zlib, direction: Direction) -> Result<Stream, CodecError> {
    Stream::new(zlib, direction, WINDOW_BITS)
        .map_err(|status| output::failed(NAME, format!("initialising a stream gave status {status}")))
}

impl ZlibEngine {
    /// An engine with a compression level.
    ///
    /// # Errors
    /// Why there is no zlib.
    pub(super) fn new(level: i32, cache: StreamCache) -> Result<Self, &'static str> {
        Ok(Self {
            level,
            cache,
            zlib: Zlib::get()?,
            counters: Counters::default(),
        })
    }

    /// Runs `work` with a stream that is ready to begin.
    fn with_stream<R>(
        &self,
        direction: Direction,
        work: impl FnOnce(&mut Stream) -> Result<R, CodecError>,
    ) -> Result<R, CodecError> {
        let counts = self.counters.mine();
        if self.cache == StreamCache::None {
            counts.stream_inits.add(1);
            return work(&mut new_stream(self.zlib, direction)?);
        }
        STREAMS.with(|streams| {
            let at = match streams.iter().position(|s| s.direction() == direction) {
                Some(at) if streams[at].reset() => {
                    counts.stream_reuses.add(1);
                    at
                }
                at => {
                    counts.stream_inits.add(1);
                    if let Some(broken) = at {
                        streams.swap_remove(broken);
                    }
                    streams.try_push(new_stream(self.zlib, direction)?)?;
                    streams.len() - 1
                }
            };
            work(&mut streams[at])
        })
    }
}

impl Engine for ZlibEngine {
    fn codec(&self) -> Codec {
        Codec::Zlib { level: self.level }
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
            // A byte more than the bound: deflate calls a stream that just fills its room unfinished.
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
                // The room is used up; the stream is reset before it is used again.
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
