//! Zstandard.
//!
//! Up to 128 KiB of raw bytes make one bare zstd block: no frame header, no content size, no checksum, no block header.
//! On a record of 100 bytes these would be a seventh of the output. A block as long as its raw bytes is those bytes
//! (zstd never writes a block that does not shrink). More raw bytes make one frame without magic number, content size,
//! checksum or dictionary id. Which of the three a block is follows from the two lengths.

pub(super) mod dictionary;
pub(super) mod train;

use std::cell::UnsafeCell;
use std::ffi::CStr;
use std::ptr::NonNull;

use zstd_sys as ffi;

use super::counters::Counters;
use super::primed::with_primed_buffers;
use super::{Codec, CodecError, Dictionary, Engine, EngineCounters, Scratch, output};

const NAME: &str = "zstd";

/// The most raw bytes of a bare block (`ZSTD_BLOCKSIZE_MAX`).
const MAX_BLOCK_BYTES: usize = 128 << 10;

/// A dictionary's prepared tables lend their size to the table of the input. Longer inputs than this, and than the
/// dictionary, would be searched too coarsely: they load the dictionary anew, which is then a small part of their time.
const PREPARED_BYTES: usize = 4096;

/// After a frame of more raw bytes than this the compression context is freed: its tables grew to the frame's size.
const KEEP_CONTEXT_BYTES: usize = 1 << 20;

/// zstd copies in wide strides only while this many bytes of room are left (`WILDCOPY_OVERLENGTH` is 32).
const SLACK_BYTES: usize = 64;

/// Marks a whole dictionary as a buffer's history: LZ4's name for it stands for the 64 KiB it can reach.
const WHOLE_DICTIONARY: u64 = 1 << 63;

/// What is behind it, with its version.
pub(super) fn library() -> String {
    // SAFETY: the version is a static, terminated string.
    let version = unsafe { CStr::from_ptr(ffi::ZSTD_versionString()) };
    format!("libzstd {}", version.to_string_lossy())
}

/// The engine of `zstd`.
#[derive(Debug)]
pub(super) struct Zstd {
    level: i32,
    counters: Counters,
}

struct Compressor(NonNull<ffi::ZSTD_CCtx>);

impl Compressor {
    fn new() -> Result<Self, CodecError> {
        // SAFETY: creating a context has no preconditions.
        let context = NonNull::new(unsafe { ffi::ZSTD_createCCtx() }).map(Self);
        context.ok_or_else(|| output::failed(NAME, "no memory for a context"))
    }
}

impl Drop for Compressor {
    fn drop(&mut self) {
        // SAFETY: the context came from zstd and is freed once.
        unsafe { ffi::ZSTD_freeCCtx(self.0.as_ptr()) };
    }
}

struct Decompressor(NonNull<ffi::ZSTD_DCtx>);

impl Decompressor {
    fn new() -> Result<Self, CodecError> {
        // SAFETY: creating a context has no preconditions.
        let context = NonNull::new(unsafe { ffi::ZSTD_createDCtx() }).map(Self);
        let context = context.ok_or_else(|| output::failed(NAME, "no memory for a context"))?;
        // SAFETY: the context is valid; frames are without magic number.
        check(unsafe { ffi::ZSTD_DCtx_setFormat(context.0.as_ptr(), ffi::ZSTD_format_e::ZSTD_f_zstd1_magicless) })
            .map_err(|reason| output::failed(NAME, reason))?;
        Ok(context)
    }
}

impl Drop for Decompressor {
    fn drop(&mut self) {
        // SAFETY: the context came from zstd and is freed once.
        unsafe { ffi::ZSTD_freeDCtx(self.0.as_ptr()) };
    }
}

thread_local! {
    static COMPRESSOR: UnsafeCell<Option<Compressor>> = const { UnsafeCell::new(None) };
    static DECOMPRESSOR: UnsafeCell<Option<Decompressor>> = const { UnsafeCell::new(None) };
}

/// Runs `work` with the calling thread's compression context.
#[inline]
fn with_compressor<R>(
    drop_after: bool,
    work: impl FnOnce(*mut ffi::ZSTD_CCtx) -> Result<R, CodecError>,
) -> Result<R, CodecError> {
    COMPRESSOR
        .try_with(|cell| {
            // SAFETY: the cell is this thread's, and `work` is code of this file that does not come back here.
            let slot = unsafe { &mut *cell.get() };
            let context = match slot {
                Some(context) => context,
                None => slot.insert(Compressor::new()?),
            };
            let result = work(context.0.as_ptr());
            if drop_after {
                *slot = None;
            }
            result
        })
        .map_err(|_| output::failed(NAME, "the thread is ending"))?
}

/// Runs `work` with the calling thread's decompression context.
#[inline]
fn with_decompressor<R>(work: impl FnOnce(*mut ffi::ZSTD_DCtx) -> Result<R, CodecError>) -> Result<R, CodecError> {
    DECOMPRESSOR
        .try_with(|cell| {
            // SAFETY: the cell is this thread's, and `work` is code of this file that does not come back here.
            let slot = unsafe { &mut *cell.get() };
            let context = match slot {
                Some(context) => context,
                None => slot.insert(Decompressor::new()?),
            };
            work(context.0.as_ptr())
        })
        .map_err(|_| output::failed(NAME, "the thread is ending"))?
}

/// A zstd result: a length, or the error's name.
#[inline]
fn check(result: usize) -> Result<usize, String> {
    // SAFETY: looks at the number only.
    if unsafe { ffi::ZSTD_isError(result) } == 0 {
        return Ok(result);
    }
    // SAFETY: the name is a static, terminated string.
    let name = unsafe { CStr::from_ptr(ffi::ZSTD_getErrorName(result)) };
    Err(name.to_string_lossy().into_owned())
}

/// The error of a compression.
fn failed(result: usize) -> Result<usize, CodecError> {
    check(result).map_err(|reason| output::failed(NAME, reason))
}

/// The length of a compressed form; `None` when there was no room for it.
fn fitting(result: usize) -> Result<Option<usize>, CodecError> {
    // SAFETY: looks at the number only.
    if unsafe { ffi::ZSTD_getErrorCode(result) } == ffi::ZSTD_ErrorCode::ZSTD_error_dstSize_tooSmall {
        return Ok(None);
    }
    failed(result).map(Some)
}

/// The error of a decompression.
#[inline]
fn corrupt(result: usize) -> Result<usize, CodecError> {
    check(result).map_err(|reason| output::corrupt(NAME, reason))
}

const FRAME: ffi::ZSTD_frameParameters = ffi::ZSTD_frameParameters {
    contentSizeFlag: 0,
    checksumFlag: 0,
    noDictIDFlag: 1,
};

/// A dictionary that has bytes.
fn non_empty(dictionary: Option<&Dictionary>) -> Option<&Dictionary> {
    dictionary.filter(|d| !d.bytes().is_empty())
}

impl Zstd {
    /// An engine with a compression level.
    pub(super) fn new(level: i32) -> Self {
        Self {
            level,
            counters: Counters::default(),
        }
    }

    /// Writes one bare block to `out`, which has `room` writable bytes; `None` when it does not shrink or does not fit.
    fn compress_block(
        &self,
        raw: &[u8],
        dictionary: Option<&Dictionary>,
        out: *mut u8,
        room: usize,
    ) -> Result<Option<usize>, CodecError> {
        let prepared = dictionary
            .filter(|d| raw.len() <= d.bytes().len().max(PREPARED_BYTES))
            .map(|d| d.zstd_compression(self.level))
            .transpose()?;
        let loaded = dictionary.map_or([].as_slice(), Dictionary::bytes);
        with_compressor(false, |context| {
            let pledged = raw.len() as u64;
            // SAFETY: the context is valid, as are the dictionary's tables and bytes, which outlive the call.
            failed(unsafe {
                match prepared {
                    Some(tables) => ffi::ZSTD_compressBegin_usingCDict_advanced(context, tables, FRAME, pledged),
                    None => ffi::ZSTD_compressBegin_advanced(
                        context,
                        loaded.as_ptr().cast(),
                        loaded.len(),
                        ffi::ZSTD_parameters {
                            cParams: ffi::ZSTD_getCParams(self.level, pledged, loaded.len()),
                            fParams: FRAME,
                        },
                        pledged,
                    ),
                }
            })?;
            // SAFETY: the context was begun; `out` has `room` writable bytes, `raw` is readable.
            let written =
                fitting(unsafe { ffi::ZSTD_compressBlock(context, out.cast(), room, raw.as_ptr().cast(), raw.len()) })?;
            Ok(written.filter(|written| *written > 0 && *written < raw.len()))
        })
    }

    /// Writes one frame to `out`, which has `room` writable bytes; `None` when it does not fit.
    fn compress_frame(
        &self,
        raw: &[u8],
        dictionary: Option<&Dictionary>,
        out: *mut u8,
        room: usize,
    ) -> Result<Option<usize>, CodecError> {
        use ffi::ZSTD_cParameter::{
            ZSTD_c_checksumFlag, ZSTD_c_compressionLevel, ZSTD_c_contentSizeFlag, ZSTD_c_dictIDFlag,
            ZSTD_c_experimentalParam2 as ZSTD_c_format, ZSTD_c_experimentalParam4 as ZSTD_c_forceAttachDict,
        };
        let tables = dictionary.map(|d| d.zstd_compression(self.level)).transpose()?;
        with_compressor(raw.len() > KEEP_CONTEXT_BYTES, |context| {
            let magicless = ffi::ZSTD_format_e::ZSTD_f_zstd1_magicless as i32;
            for (parameter, value) in [
                (ZSTD_c_compressionLevel, self.level),
                (ZSTD_c_contentSizeFlag, 0),
                (ZSTD_c_checksumFlag, 0),
                (ZSTD_c_dictIDFlag, 0),
                (ZSTD_c_format, magicless),
                // As for blocks that are longer than the dictionary.
                (
                    ZSTD_c_forceAttachDict,
                    ffi::ZSTD_dictAttachPref_e::ZSTD_dictForceLoad as i32,
                ),
            ] {
                // SAFETY: the context is valid and between frames.
                failed(unsafe { ffi::ZSTD_CCtx_setParameter(context, parameter, value) })?;
            }
            // SAFETY: as above; the tables outlive the call.
            failed(unsafe { ffi::ZSTD_CCtx_refCDict(context, tables.unwrap_or(std::ptr::null())) })?;
            // SAFETY: `out` has `room` writable bytes, `raw` is readable, the tables outlive the call.
            let written = unsafe { ffi::ZSTD_compress2(context, out.cast(), room, raw.as_ptr().cast(), raw.len()) };
            // SAFETY: as above. A frame that broke off for want of room must not be taken up again.
            failed(unsafe { ffi::ZSTD_CCtx_reset(context, ffi::ZSTD_ResetDirective::ZSTD_reset_session_only) })?;
            // SAFETY: as above; without this the context would refer to tables that may be gone.
            failed(unsafe { ffi::ZSTD_CCtx_refCDict(context, std::ptr::null()) })?;
            fitting(written)
        })
    }
}

/// A dictionary's tables, or null for none.
fn tables(dictionary: Option<&Dictionary>) -> Result<*const ffi::ZSTD_DDict, CodecError> {
    non_empty(dictionary).map_or(Ok(std::ptr::null()), Dictionary::zstd_decompression)
}

/// Decodes a block of `raw_len` raw bytes into the front of `raw`; what is behind them is room for wide strides.
///
/// # Safety
/// `tables` is null or outlives the call, as do the dictionary's bytes that it refers to.
#[inline]
unsafe fn decode_into(
    block: &[u8],
    tables: *const ffi::ZSTD_DDict,
    raw: &mut [u8],
    raw_len: usize,
) -> Result<usize, CodecError> {
    if block.len() == raw_len && raw_len <= MAX_BLOCK_BYTES {
        raw[..raw_len].copy_from_slice(block);
        return Ok(raw_len);
    }
    let found = with_decompressor(|context| {
        let (dest, source) = (raw.as_mut_ptr().cast(), block.as_ptr().cast());
        if raw_len > MAX_BLOCK_BYTES {
            // SAFETY: the context is valid, the caller vouches for the tables, zstd stays within the two slices.
            return corrupt(unsafe {
                ffi::ZSTD_decompress_usingDDict(context, dest, raw.len(), source, block.len(), tables)
            });
        }
        // SAFETY: the context is valid, the caller vouches for the tables until the next call, the last to use them.
        corrupt(unsafe { ffi::ZSTD_decompressBegin_usingDDict(context, tables) })?;
        // SAFETY: zstd stays within the two slices and the dictionary, whatever the bytes are.
        corrupt(unsafe { ffi::ZSTD_decompressBlock(context, dest, raw.len(), source, block.len()) })
    })?;
    output::exact(NAME, found, raw_len)
}

impl Engine for Zstd {
    fn codec(&self) -> Codec {
        Codec::Zstd { level: self.level }
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
            let dictionary = non_empty(dictionary);
            // SAFETY: looks at the number only.
            let bound = failed(unsafe { ffi::ZSTD_compressBound(raw.len()) })?;
            let write = |out: *mut u8| {
                if raw.len() > MAX_BLOCK_BYTES {
                    let written = self.compress_frame(raw, dictionary, out, bound)?;
                    return written.ok_or_else(|| output::failed(NAME, "the compressed form does not fit its bound"));
                }
                if let Some(written) = self.compress_block(raw, dictionary, out, bound)? {
                    return Ok(written);
                }
                // SAFETY: `out` has `bound >= raw.len()` writable bytes that are not part of `raw`.
                unsafe { out.copy_from_nonoverlapping(raw.as_ptr(), raw.len()) };
                Ok(raw.len())
            };
            // SAFETY: zstd initialises the bytes it reports, within the bound it is given.
            unsafe { output::append(out, bound, write) }
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
            let (out, room) = (out.as_mut_ptr(), out.len());
            if raw.len() > MAX_BLOCK_BYTES {
                let written = self.compress_frame(raw, dictionary, out, room)?;
                return Ok(written.filter(|written| *written < raw.len()));
            }
            self.compress_block(raw, dictionary, out, room)
        })
    }

    fn decompress(&self, block: &[u8], dictionary: Option<&Dictionary>, raw: &mut [u8]) -> Result<(), CodecError> {
        let expected = raw.len();
        let work = || {
            let Some(dictionary) = non_empty(dictionary) else {
                // SAFETY: there are no tables.
                return unsafe { decode_into(block, std::ptr::null(), raw, expected) };
            };
            with_primed_buffers(NAME, |buffers| {
                let id = dictionary.serial() | WHOLE_DICTIONARY;
                // Never for one block alone: tables take longer to make than a block to decode.
                if let Some(primed) = buffers.primed_with(id, dictionary, expected, false)
                    && primed.prime(id, dictionary.bytes())?
                {
                    let (tables, buffer) = primed.zstd_tables_and_output(expected, SLACK_BYTES)?;
                    // SAFETY: the tables and the history they refer to are the buffer's, which the slices borrow.
                    let found = unsafe { decode_into(block, tables.as_ptr(), buffer, expected) }?;
                    raw.copy_from_slice(&buffer[..expected]);
                    return Ok(found);
                }
                // SAFETY: the tables outlive the call with `dictionary`.
                unsafe { decode_into(block, tables(Some(dictionary))?, raw, expected) }
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
            if let Some(dictionary) = non_empty(dictionary)
                && scratch.prime(dictionary.serial() | WHOLE_DICTIONARY, dictionary.bytes())?
            {
                let (tables, raw) = scratch.zstd_tables_and_output(raw_len, SLACK_BYTES)?;
                // SAFETY: the tables and the history they refer to are the scratch's, which the slices borrow.
                return unsafe { decode_into(block, tables.as_ptr(), raw, raw_len) };
            }
            let (_, raw) = scratch.history_and_output(raw_len, SLACK_BYTES)?;
            // SAFETY: the tables outlive the call with `dictionary`.
            unsafe { decode_into(block, tables(dictionary)?, raw, raw_len) }
        })
    }
}
