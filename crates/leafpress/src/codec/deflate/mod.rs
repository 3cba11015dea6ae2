//! Raw deflate (RFC 1951) by libdeflate, with a history window of at most 4 KiB.
//!
//! libdeflate always uses the format's whole window of 32 KiB. Inputs of at most 4 KiB cannot exceed ours; larger ones are
//! compressed by zlib-rs with a window of 12 bits. Decoding is libdeflate's whoever wrote the block.

use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use libdeflate_sys as ffi;
use zlib_rs::{Deflate as WindowedStream, DeflateFlush, Status};

use super::counters::Counters;
use super::{Codec, CodecError, Dictionary, Engine, EngineCounters, Scratch, output};

const NAME: &str = "deflate";

/// What is behind it.
pub(super) const LIBRARY: &str = "libdeflate, zlib-rs";

/// The family's history window, in bits and in bytes: what Intel IAA has.
pub(super) const WINDOW_BITS: u8 = 12;
const WINDOW_BYTES: usize = 1 << WINDOW_BITS;

/// libdeflate decodes in its fast loop only while about this many bytes of room are left.
const SLACK_BYTES: usize = 320;

/// The engine of `deflate`.
#[derive(Debug)]
pub(super) struct Deflate {
    level: i32,
    counters: Counters,
}

struct Compressor(NonNull<ffi::libdeflate_compressor>);

impl Drop for Compressor {
    fn drop(&mut self) {
        // SAFETY: the compressor came from libdeflate and is freed once.
        unsafe { ffi::libdeflate_free_compressor(self.0.as_ptr()) };
    }
}

struct Decompressor(NonNull<ffi::libdeflate_decompressor>);

impl Drop for Decompressor {
    fn drop(&mut self) {
        // SAFETY: the decompressor came from libdeflate and is freed once.
        unsafe { ffi::libdeflate_free_decompressor(self.0.as_ptr()) };
    }
}

/// One level's compressors.
struct Level {
    level: i32,
    whole: Option<Compressor>,
    windowed: Option<WindowedStream>,
    /// Where a windowed stream goes that may not fit where it is wanted.
    room: Vec<u8>,
}

thread_local! {
    static LEVELS: RefCell<Vec<Level>> = const { RefCell::new(Vec::new()) };
    static DECOMPRESSOR: RefCell<Option<Decompressor>> = const { RefCell::new(None) };
}

/// The error for a thread-local value that is gone or in use: neither can be, but for a thread's destructors.
fn ending<E>(_: E) -> CodecError {
    output::failed(NAME, "the thread is ending")
}

impl Level {
    /// Compresses to `out`; `None` when the stream does not fit.
    fn compress(&mut self, raw: &[u8], out: &mut [MaybeUninit<u8>]) -> Result<Option<usize>, CodecError> {
        if raw.len() <= WINDOW_BYTES {
            return self.compress_whole(raw, out);
        }
        let bound = self.bound(raw.len())?;
        if out.len() >= bound {
            return self.compress_windowed(raw, out).map(Some);
        }
        // A stream of zlib-rs that breaks off for want of room is not whole again after its reset (its pending buffer keeps
        // its offset, and an open block stays open), so it is always given room.
        let mut room = std::mem::take(&mut self.room);
        room.clear();
        output::reserve(&mut room, bound)?;
        let written = self.compress_windowed(raw, room.spare_capacity_mut());
        let written = written.inspect(|written| {
            if let Some(out) = out.get_mut(..*written) {
                out.copy_from_slice(&room.spare_capacity_mut()[..*written]);
            }
        });
        self.room = room;
        Ok(Some(written?).filter(|written| *written <= out.len()))
    }

    /// Room in which every stream of so many raw bytes fits.
    fn bound(&mut self, raw_len: usize) -> Result<usize, CodecError> {
        if raw_len > WINDOW_BYTES {
            // The fixed tables of level 1 spend up to nine bits on a byte; a small window makes many small stored blocks.
            return Ok(raw_len + raw_len / 8 + raw_len / 512 + 64);
        }
        let compressor = self.whole()?;
        // SAFETY: the compressor is valid.
        Ok(unsafe { ffi::libdeflate_deflate_compress_bound(compressor, raw_len) })
    }

    /// libdeflate's compressor, made at its first use.
    fn whole(&mut self) -> Result<*mut ffi::libdeflate_compressor, CodecError> {
        match &mut self.whole {
            Some(compressor) => Ok(compressor.0.as_ptr()),
            none => {
                // SAFETY: any level is allowed; null is checked.
                let new = NonNull::new(unsafe { ffi::libdeflate_alloc_compressor(self.level) });
                let new = new.ok_or_else(|| output::failed(NAME, "no memory for a compressor"))?;
                Ok(none.insert(Compressor(new)).0.as_ptr())
            }
        }
    }

    fn compress_whole(&mut self, raw: &[u8], out: &mut [MaybeUninit<u8>]) -> Result<Option<usize>, CodecError> {
        let compressor = self.whole()?;
        // SAFETY: the compressor is valid, `raw` is readable and `out` writable for its length.
        let written = unsafe {
            ffi::libdeflate_deflate_compress(
                compressor,
                raw.as_ptr().cast(),
                raw.len(),
                out.as_mut_ptr().cast(),
                out.len(),
            )
        };
        Ok((written > 0).then_some(written))
    }

    /// Compresses to `out`, which has room for the bound.
    fn compress_windowed(&mut self, raw: &[u8], out: &mut [MaybeUninit<u8>]) -> Result<usize, CodecError> {
        // zlib has nine levels to libdeflate's twelve.
        let stream = match &mut self.windowed {
            Some(stream) => {
                stream.reset();
                stream
            }
            none => none.insert(WindowedStream::new(self.level.min(9), false, WINDOW_BITS)),
        };
        let mut given = 0;
        let mut written = 0;
        loop {
            let status = stream
                .compress_uninit(&raw[given..], &mut out[written..], DeflateFlush::Finish)
                .map_err(|e| output::failed(NAME, e.as_str()))?;
            let progress = (stream.total_in() as usize, stream.total_out() as usize);
            let moved = progress != (given, written);
            (given, written) = progress;
            match status {
                Status::StreamEnd => return Ok(written),
                // Inputs past 4 GiB are taken in several calls.
                _ if moved => {}
                _ => {
                    self.windowed = None;
                    return Err(output::failed(NAME, "the compressed form does not fit its bound"));
                }
            }
        }
    }
}

/// Decodes `block` into `raw` and returns the length it has; `raw` may have room behind.
pub(super) fn decode_into(codec: &'static str, block: &[u8], raw: &mut [u8]) -> Result<usize, CodecError> {
    let work = |slot: &RefCell<Option<Decompressor>>| {
        let mut slot = slot.try_borrow_mut().map_err(ending)?;
        let decompressor = match &mut *slot {
            Some(decompressor) => decompressor.0.as_ptr(),
            none => {
                // SAFETY: no preconditions; null is checked.
                let new = NonNull::new(unsafe { ffi::libdeflate_alloc_decompressor() });
                let new = new.ok_or_else(|| output::failed(codec, "no memory for a decompressor"))?;
                none.insert(Decompressor(new)).0.as_ptr()
            }
        };
        let mut found = 0;
        // SAFETY: libdeflate reads within the block and writes within `raw`, whatever the bytes are.
        let result = unsafe {
            ffi::libdeflate_deflate_decompress(
                decompressor,
                block.as_ptr().cast(),
                block.len(),
                raw.as_mut_ptr().cast(),
                raw.len(),
                &raw mut found,
            )
        };
        match result {
            ffi::libdeflate_result_LIBDEFLATE_SUCCESS => Ok(found),
            ffi::libdeflate_result_LIBDEFLATE_INSUFFICIENT_SPACE => Err(output::corrupt(
                codec,
                format!("it holds more than {} raw bytes", raw.len()),
            )),
            _ => Err(output::corrupt(codec, "it is malformed or truncated")),
        }
    };
    DECOMPRESSOR.try_with(work).map_err(ending)?
}

impl Deflate {
    /// An engine with a compression level.
    pub(super) fn new(level: i32) -> Self {
        Self {
            level,
            counters: Counters::default(),
        }
    }

    /// Runs `work` with the calling thread's compressors of this level.
    fn with_level<R>(&self, work: impl FnOnce(&mut Level) -> Result<R, CodecError>) -> Result<R, CodecError> {
        let work = |levels: &RefCell<Vec<Level>>| {
            let mut levels = levels.try_borrow_mut().map_err(ending)?;
            let at = levels.iter().position(|l| l.level == self.level).unwrap_or_else(|| {
                levels.push(Level {
                    level: self.level,
                    whole: None,
                    windowed: None,
                    room: Vec::new(),
                });
                levels.len() - 1
            });
            work(&mut levels[at])
        };
        LEVELS.try_with(work).map_err(ending)?
    }
}

impl Engine for Deflate {
    fn codec(&self) -> Codec {
        Codec::Deflate { level: self.level }
    }

    fn engine_name(&self) -> &'static str {
        "cpu"
    }

    fn counters(&self) -> EngineCounters {
        self.counters.sum_cpu()
    }

    fn compress(&self, raw: &[u8], _: Option<&Dictionary>, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        self.counters.compress(raw.len(), || {
            self.with_level(|level| {
                let bound = level.bound(raw.len())?;
                output::reserve(out, bound)?;
                let written = level.compress(raw, &mut out.spare_capacity_mut()[..bound])?;
                let written =
                    written.ok_or_else(|| output::failed(NAME, "the compressed form does not fit its bound"))?;
                let len = out.len();
                // SAFETY: the `written` bytes were initialised, which were reserved behind `len`.
                unsafe { out.set_len(len + written) };
                Ok(written)
            })
        })
    }

    fn compress_into(&self, raw: &[u8], _: Option<&Dictionary>, out: &mut [u8]) -> Result<Option<usize>, CodecError> {
        // SAFETY: the engines only ever write initialised bytes to it.
        let out = unsafe { &mut *(out as *mut [u8] as *mut [MaybeUninit<u8>]) };
        self.counters.compress_into(raw.len(), || {
            let written = self.with_level(|level| level.compress(raw, out))?;
            Ok(written.filter(|written| *written < raw.len()))
        })
    }

    fn decompress(&self, block: &[u8], _: Option<&Dictionary>, raw: &mut [u8]) -> Result<(), CodecError> {
        let expected = raw.len();
        let work = || output::exact(NAME, decode_into(NAME, block, raw)?, expected);
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
            output::exact(NAME, decode_into(NAME, block, raw)?, raw_len)
        })
    }
}
