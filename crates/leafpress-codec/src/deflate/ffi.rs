//! Safe bindings of libdeflate.

use std::ptr::NonNull;

use libdeflate_sys as libdeflate;
use zlib_rs::{Deflate, DeflateFlush, Status};

use crate::room::Room;

/// A compressor of one level.
pub(super) struct Compressor(NonNull<libdeflate::libdeflate_compressor>);

// SAFETY: a compressor owns its memory, which is not tied to a thread, and every use borrows it exclusively.
unsafe impl Send for Compressor {}

impl Drop for Compressor {
    fn drop(&mut self) {
        // SAFETY: the compressor came from libdeflate and is freed once.
        unsafe { libdeflate::libdeflate_free_compressor(self.0.as_ptr()) };
    }
}

impl Compressor {
    /// Returns a compressor; `None` if there is no memory for it, or no such level.
    pub(super) fn new(level: i32) -> Option<Self> {
        // SAFETY: libdeflate accepts any level, and returns null for an invalid one.
        NonNull::new(unsafe { libdeflate::libdeflate_alloc_compressor(level) }).map(Self)
    }

    /// Returns an upper bound of the length of a stream of `raw_len` raw bytes.
    pub(super) fn bound(&mut self, raw_len: usize) -> usize {
        // SAFETY: the compressor is valid.
        unsafe { libdeflate::libdeflate_deflate_compress_bound(self.0.as_ptr(), raw_len) }
    }

    /// Compresses `raw` into the room; returns false if it does not fit.
    pub(super) fn compress(&mut self, raw: &[u8], room: &mut Room<'_>) -> bool {
        let (out, capacity) = (room.as_mut_ptr(), room.capacity());
        // SAFETY: the compressor is valid and borrowed exclusively, `raw` is readable and the room writable for their
        // lengths; libdeflate initialised the number of bytes that it returns.
        unsafe {
            let written = libdeflate::libdeflate_deflate_compress(
                self.0.as_ptr(),
                raw.as_ptr().cast(),
                raw.len(),
                out.cast(),
                capacity,
            );
            room.set_len(written);
            written > 0
        }
    }
}

/// The cause of a failed decompression.
pub(super) enum Refused {
    /// The stream has more raw bytes than there is room for.
    TooLong,
    /// The stream is malformed or truncated.
    Malformed,
}

/// A decompressor.
pub(super) struct Decompressor(NonNull<libdeflate::libdeflate_decompressor>);

// SAFETY: a decompressor owns its memory, which is not tied to a thread, and every use borrows it exclusively.
unsafe impl Send for Decompressor {}

impl Drop for Decompressor {
    fn drop(&mut self) {
        // SAFETY: the decompressor came from libdeflate and is freed once.
        unsafe { libdeflate::libdeflate_free_decompressor(self.0.as_ptr()) };
    }
}

impl Decompressor {
    /// Returns a decompressor; `None` if there is no memory for it.
    pub(super) fn new() -> Option<Self> {
        // SAFETY: the function has no preconditions.
        NonNull::new(unsafe { libdeflate::libdeflate_alloc_decompressor() }).map(Self)
    }

    /// Decodes `block` into the front of `raw` and returns its length.
    pub(super) fn decompress(&mut self, block: &[u8], raw: &mut [u8]) -> Result<usize, Refused> {
        let mut found = 0;
        // SAFETY: the decompressor is valid and borrowed exclusively; for any input libdeflate reads within the block
        // and writes within `raw`.
        let result = unsafe {
            libdeflate::libdeflate_deflate_decompress(
                self.0.as_ptr(),
                block.as_ptr().cast(),
                block.len(),
                raw.as_mut_ptr().cast(),
                raw.len(),
                &raw mut found,
            )
        };
        match result {
            libdeflate::libdeflate_result_LIBDEFLATE_SUCCESS => Ok(found),
            libdeflate::libdeflate_result_LIBDEFLATE_INSUFFICIENT_SPACE => Err(Refused::TooLong),
            _ => Err(Refused::Malformed),
        }
    }
}

/// Compresses `raw` into the room by zlib-rs; returns false if the room is exhausted.
pub(super) fn compress_windowed(stream: &mut Deflate, raw: &[u8], room: &mut Room<'_>) -> Result<bool, &'static str> {
    let (mut consumed, mut written) = (0, 0);
    loop {
        // SAFETY: zlib-rs only writes initialised bytes.
        let out = unsafe { room.spare() };
        let status = stream
            .compress_uninit(&raw[consumed..], &mut out[written..], DeflateFlush::Finish)
            .map_err(|error| error.as_str())?;
        let progress = (stream.total_in() as usize, stream.total_out() as usize);
        let moved = progress != (consumed, written);
        (consumed, written) = progress;
        match status {
            Status::StreamEnd => {
                // SAFETY: zlib-rs initialised the number of bytes that it counts.
                unsafe { room.set_len(written) };
                return Ok(true);
            }
            // Inputs larger than 4 GiB take several calls.
            _ if moved => {}
            _ => return Ok(false),
        }
    }
}
