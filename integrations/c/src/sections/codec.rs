//! Codecs: compressing bytes of your own.

use std::ffi::{CString, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::Arc;

use leafpress_core::Codec;
use leafpress_core::codec::sealed::Sealer;
use leafpress_core::codec::{Engine, EngineOptions, Lz4Blocks};

use crate::callback::{given, went_on};
use crate::failure::{Failure, call};
use crate::fork::Process;
use crate::given::{Given, Room, text};
use crate::handle::{self, Handle};
use crate::{lp_dictionary, lp_status};

/// A codec at a level, by its name: none, lz4, lz4:fast=1..65537, lz4:hc=2..12, zstd:-131072..22 (not 0),
/// onpair, onpair:14|16|huffman, deflate:1..12, zlib:1..9, qpl:software|hardware|auto:fixed|dynamic.
///
/// Any number of threads may use a codec at the same time, with all functions except lp_codec_free().
pub struct lp_codec {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) sealer: Sealer,
    process: Process,
}

impl Handle for lp_codec {
    const NAME: &'static str = "codec";

    fn process(&self) -> Process {
        self.process
    }
}

/// Opens the codec of that name. Returns LP_INVALID_ARGUMENT for an unknown name, and LP_UNAVAILABLE if a library or
/// device is missing. Free it with lp_codec_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_codec_open(
    name: *const c_char,
    codec: Option<&mut MaybeUninit<*mut lp_codec>>,
) -> lp_status {
    call(|| {
        handle::hand_out(codec, || {
            // SAFETY: the header requires NULL or a string that ends with a zero byte and is unchanged during the call.
            let codec: Codec = unsafe { text(name, "codec's name")? }.parse()?;
            // Formats that other programs read.
            let mut options = EngineOptions::default();
            options.lz4_blocks = Lz4Blocks::Standard;
            Ok(lp_codec {
                engine: codec.open(&options)?,
                sealer: Sealer::open(codec)?,
                process: Process::this(),
            })
        })
    })
}

/// Frees a codec; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_codec_free(codec: *mut lp_codec) {
    // SAFETY: `free` accepts NULL and handles that were handed out, which the caller gives back once.
    unsafe { handle::free(codec) };
}

/// Receives a codec: its name at a usual level, and why it cannot run here, NULL if it can. The strings are valid until
/// the callback returns. Returns 0 to continue, anything else to stop.
pub type lp_codec_fn = Option<
    unsafe extern "C" fn(context: *mut c_void, name: *const c_char, unavailable_because: *const c_char) -> c_int,
>;

/// Calls report with each codec.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_codec_list(report: lp_codec_fn, context: *mut c_void) -> lp_status {
    call(|| {
        let report = given(report, "callback")?;
        let string = |text: String| CString::new(text).map_err(|_| Failure::argument("a name with a zero byte"));
        for found in Codec::list() {
            let name = string(found.codec.to_string())?;
            let reason = found.engine.err().map(string).transpose()?;
            let reason = reason.as_ref().map_or(std::ptr::null(), |reason| reason.as_ptr());
            // SAFETY: the header requires a function that may be called with this context, and the strings live until
            // it returns.
            went_on(unsafe { report(context, name.as_ptr(), reason) })?;
        }
        Ok(())
    })
}

/// Returns the most bytes that raw_len bytes can become with any codec: lp_compress() never needs more room.
#[unsafe(no_mangle)]
pub extern "C" fn lp_compress_bound(raw_len: usize) -> usize {
    // Deflate's fixed codes need at most nine bits per byte.
    raw_len.saturating_add(raw_len / 8).saturating_add(256)
}

/// Compresses raw into block, which has room for capacity bytes, and writes the block's length to block_len. With a
/// NULL block (and a capacity of 0) it only returns the length, which takes as long.
///
/// The block contains neither the length of raw nor the codec and dictionary that made it: store those, or use
/// lp_seal(), which does. A block of lz4 is a plain LZ4 block; of deflate, zlib and qpl a raw deflate stream (RFC
/// 1951); of zstd a frame without magic number and header. A dictionary (NULL for none) is used by lz4 and zstd, and
/// ignored by others. Data that does not shrink becomes up to lp_compress_bound() bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_compress(
    codec: Option<&lp_codec>,
    dictionary: Option<&lp_dictionary>,
    raw: *const c_void,
    raw_len: usize,
    block: *mut c_void,
    capacity: usize,
    block_len: Option<&mut MaybeUninit<usize>>,
) -> lp_status {
    // SAFETY: the header requires bytes that are readable and unchanged during the call.
    let raw = unsafe { Given::new(raw, raw_len) };
    call(|| {
        // SAFETY: the header requires NULL or room that is writable and unused by others during the call.
        let mut room = unsafe { Room::new(block, capacity, block_len)? };
        let (codec, raw) = (handle::of(codec)?, raw.get("input")?);
        let dictionary = lp_dictionary::of(dictionary)?;
        let mut made = Vec::new();
        codec.engine.compress(raw, dictionary, &mut made)?;
        room.fill(&made)
    })
}

/// Decompresses block into raw, whose length has to be that of the original data. Returns LP_CORRUPT for a block that
/// lp_compress() did not make of that many bytes with this dictionary, as far as that can be detected: only a sealed
/// block has a checksum. No block makes it read or write outside of the buffers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_decompress(
    codec: Option<&lp_codec>,
    dictionary: Option<&lp_dictionary>,
    block: *const c_void,
    block_len: usize,
    raw: *mut c_void,
    raw_len: usize,
) -> lp_status {
    // SAFETY: the header requires bytes that are readable and unchanged during the call.
    let block = unsafe { Given::new(block, block_len) };
    call(|| {
        let mut len = MaybeUninit::uninit();
        // SAFETY: the header requires NULL or room that is writable and unused by others during the call.
        let mut room = unsafe { Room::new(raw, raw_len, Some(&mut len))? };
        let (codec, block) = (handle::of(codec)?, block.get("block")?);
        let dictionary = lp_dictionary::of(dictionary)?;
        codec
            .engine
            .decompress(block, dictionary, room.all().unwrap_or_default())?;
        Ok(())
    })
}
