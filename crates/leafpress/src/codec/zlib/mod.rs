//! Raw deflate (RFC 1951) by the system's zlib, or by what is preloaded over it, with a history window of 4 KiB.

pub(super) mod ffi;

use std::cell::RefCell;
use std::ffi::{c_int, c_uint};

use self::ffi::Zlib;
use super::counters::Counters;
use super::deflate::WINDOW_BITS;
use super::{Codec, CodecError, Dictionary, Engine, EngineCounters, StreamCache, output};

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

/// An initialised stream in one direction.
struct Stream {
    stream: Box<ffi::Stream>,
    direction: Direction,
    zlib: &'static Zlib,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Deflate { level: c_int },
    Inflate,
}

impl Stream {
    fn new(zlib: &'static Zlib, direction: Direction) -> Result<Self, CodecError> {
        let mut stream = ffi::Stream::new();
        // SAFETY: the stream is not initialised yet.
        let status = unsafe {
            match direction {
                Direction::Deflate { level } => zlib.init_deflate(&raw mut *stream, level, WINDOW_BITS),
                Direction::Inflate => zlib.init_inflate(&raw mut *stream, WINDOW_BITS),
            }
        };
        if status != ffi::OK {
            return Err(output::failed(
                NAME,
                format!("initialising a stream gave status {status}"),
            ));
        }
        Ok(Self {
            stream,
            direction,
            zlib,
        })
    }

    fn reset(&mut self) -> bool {
        let stream = &raw mut *self.stream;
        // SAFETY: the stream is initialised in this direction.
        let status = unsafe {
            match self.direction {
                Direction::Deflate { .. } => (self.zlib.deflate_reset)(stream),
                Direction::Inflate => (self.zlib.inflate_reset)(stream),
            }
        };
        status == ffi::OK
    }

    /// Gives the stream all input and room, runs it to its end, and returns its status and the bytes it wrote.
    ///
    /// # Safety
    /// `input` and `room` are a readable and a writable area of these lengths.
    unsafe fn run(&mut self, input: &[u8], room: *mut u8, room_len: c_uint) -> (c_int, usize) {
        let stream = &mut *self.stream;
        stream.next_in = input.as_ptr();
        stream.avail_in = input.len() as c_uint;
        stream.next_out = room;
        stream.avail_out = room_len;
        let stream = &raw mut *stream;
        // SAFETY: the stream is initialised in this direction; the areas are the caller's.
        let status = unsafe {
            match self.direction {
                Direction::Deflate { .. } => (self.zlib.deflate)(stream, ffi::FINISH),
                Direction::Inflate => (self.zlib.inflate)(stream, ffi::FINISH),
            }
        };
        let written = room_len - self.stream.avail_out.min(room_len);
        (status, written as usize)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let stream = &raw mut *self.stream;
        // SAFETY: the stream is initialised in this direction and is ended once.
        unsafe {
            match self.direction {
                Direction::Deflate { .. } => (self.zlib.deflate_end)(stream),
                Direction::Inflate => (self.zlib.inflate_end)(stream),
            }
        };
    }
}

thread_local! {
    // One for each level and one to inflate: a handful, so a list is searched faster than a map.
    static STREAMS: RefCell<Vec<Stream>> = const { RefCell::new(Vec::new()) };
}

fn ending<E>(_: E) -> CodecError {
    output::failed(NAME, "the thread is ending")
}

/// A length as zlib counts it.
fn length(bytes: usize) -> Result<c_uint, CodecError> {
    c_uint::try_from(bytes).map_err(|_| output::failed(NAME, format!("{bytes} bytes are too many for one block")))
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
            return work(&mut Stream::new(self.zlib, direction)?);
        }
        STREAMS
            .try_with(|streams| {
                let mut streams = streams.try_borrow_mut().map_err(ending)?;
                let at = match streams.iter().position(|s| s.direction == direction) {
                    Some(at) if streams[at].reset() => {
                        counts.stream_reuses.add(1);
                        at
                    }
                    at => {
                        counts.stream_inits.add(1);
                        if let Some(broken) = at {
                            streams.swap_remove(broken);
                        }
                        streams.push(Stream::new(self.zlib, direction)?);
                        streams.len() - 1
                    }
                };
                work(&mut streams[at])
            })
            .map_err(ending)?
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
            // SAFETY: the stream is initialised to deflate.
            let bound = unsafe { (self.zlib.deflate_bound)(&raw mut *stream.stream, raw.len() as _) } as usize + 1;
            let room_len = length(bound)?;
            let write = |out: *mut u8| {
                // SAFETY: `out` has `bound` writable bytes.
                match unsafe { stream.run(raw, out, room_len) } {
                    (ffi::STREAM_END, written) => Ok(written),
                    (status, _) => Err(output::failed(NAME, format!("deflate gave status {status}"))),
                }
            };
            // SAFETY: zlib initialises the bytes it reports, within the room it is given.
            unsafe { output::append(out, bound, write) }
        };
        let direction = Direction::Deflate { level: self.level };
        self.counters.compress(raw.len(), || self.with_stream(direction, work))
    }

    fn compress_into(&self, raw: &[u8], _: Option<&Dictionary>, out: &mut [u8]) -> Result<Option<usize>, CodecError> {
        let room_len = length(out.len().min(raw.len()))?;
        let work = |stream: &mut Stream| {
            length(raw.len())?;
            // SAFETY: `out` has `room_len` writable bytes.
            match unsafe { stream.run(raw, out.as_mut_ptr(), room_len) } {
                (ffi::STREAM_END, written) => Ok(Some(written).filter(|written| *written < raw.len())),
                // The room is used up; the stream is reset before it is used again.
                (ffi::OK | ffi::BUFFER_ERROR, _) => Ok(None),
                (status, _) => Err(output::failed(NAME, format!("deflate gave status {status}"))),
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
            // zlib wants a pointer to something even where there is nothing to write.
            let mut nothing = [0];
            let room = if raw.is_empty() {
                nothing.as_mut_ptr()
            } else {
                raw.as_mut_ptr()
            };
            // SAFETY: `room` has `expected` writable bytes.
            match unsafe { stream.run(block, room, length(expected)?) } {
                (ffi::STREAM_END, found) if found == expected => Ok(found),
                (ffi::STREAM_END, found) => Err(output::wrong_length(NAME, found, expected)),
                (status, _) => Err(output::corrupt(NAME, format!("inflate gave status {status}"))),
            }
        };
        self.counters
            .decompress(block.len(), expected, || self.with_stream(Direction::Inflate, work))
            .map(drop)
    }
}
