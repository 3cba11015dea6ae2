//! Decompressors and the dictionaries they read with, for the shim.

use std::slice;

use crate::abi::{Code, Failure, Text, View, guarded, reported};

use super::super::decompressor::Decompressor;
use super::super::known::Reading;
use super::super::statistics::{Ticker, count};
use super::super::wire::BlockType;
use super::options::Prepared;

/// Makes a decompressor; `options` may be null.
///
/// # Safety
/// `options` came from `leafpress_options_new` or is null, the results are writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_decompressor_new(
    options: *const Prepared,
    out: *mut *mut Decompressor,
    error: *mut Text,
) -> i32 {
    let work = || {
        // SAFETY: `options` is null or came from `leafpress_options_new`, and is not freed before this function
        // returns.
        let codec = unsafe { options.as_ref() }.and_then(|prepared| prepared.options.reading_codec());
        let new = Decompressor::new(codec).map_err(|error| Failure(Code::IoError, error.to_string()))?;
        // SAFETY: `out` points to a pointer of the shim that is writable until this function returns.
        unsafe { out.write(Box::into_raw(Box::new(new))) };
        Ok(())
    };
    // SAFETY: `error` points to a text of the shim that is writable until this function returns.
    unsafe { reported(error, work) }
}

/// Frees a decompressor.
///
/// # Safety
/// It came from this module, and is freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_decompressor_free(decompressor: *mut Decompressor) {
    // SAFETY: `decompressor` is the box that `leafpress_decompressor_new` released, and the shim frees it once.
    guarded((), || drop(unsafe { Box::from_raw(decompressor) }));
}

/// Reads a block's size prefix.
///
/// # Safety
/// `stored` is readable, the results are writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_raw_bytes(
    block_type: u8,
    stored: View,
    raw_bytes: *mut u64,
    prefix_bytes: *mut usize,
    error: *mut Text,
) -> i32 {
    let work = || {
        // SAFETY: the shim keeps the bytes of `stored` readable until this function returns.
        let found = Decompressor::raw_bytes(block_type, unsafe { stored.bytes() });
        let (raw, prefix) = found.inspect_err(|_| count([(Ticker::DecompressCorrupt, 1)]))?;
        // SAFETY: both point to integers of the shim that are writable until this function returns.
        unsafe {
            raw_bytes.write(raw);
            prefix_bytes.write(prefix);
        }
        Ok(())
    };
    // SAFETY: `error` points to a text of the shim that is writable until this function returns.
    unsafe { reported(error, work) }
}

/// Decodes a block without its prefix into `raw`, whose length is in the prefix. `dictionary` may be null.
///
/// # Safety
/// `decompressor` is valid, `dictionary` is valid or null, `block` is readable and `raw` writable for `raw_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_decompress(
    decompressor: *const Decompressor,
    block_type: u8,
    dictionary: *const Reading,
    block: View,
    raw: *mut u8,
    raw_len: usize,
    error: *mut Text,
) -> i32 {
    let work = || {
        let raw = if raw_len == 0 {
            &mut [][..]
        } else {
            // SAFETY: `raw` points to `raw_len` bytes that nothing else uses during this call, and no byte is read
            // before it is written.
            unsafe { slice::from_raw_parts_mut(raw, raw_len) }
        };
        // SAFETY: the decompressor and the dictionary, which may be null, came from this module and are not freed
        // meanwhile, and `block` is readable during this call.
        let (decompressor, dictionary, block) = unsafe { (&*decompressor, dictionary.as_ref(), block.bytes()) };
        Ok(decompressor.decompress(block_type, dictionary.map(Reading::dictionary), block, raw)?)
    };
    // SAFETY: `error` points to a text of the shim that is writable until this function returns.
    unsafe { reported(error, work) }
}

/// Prepares a file's dictionary for reading.
///
/// # Safety
/// `bytes` are readable, the results are writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_dictionary_new(bytes: View, out: *mut *mut Reading, error: *mut Text) -> i32 {
    let work = || {
        // SAFETY: the shim keeps `bytes` readable until this function returns.
        let new = Reading::new(unsafe { bytes.bytes() });
        let new = new.map_err(|error| Failure(Code::Corruption, format!("leafpress: corrupt dictionary: {error}")))?;
        // SAFETY: `out` points to a pointer of the shim that is writable until this function returns.
        unsafe { out.write(Box::into_raw(Box::new(new))) };
        Ok(())
    };
    // SAFETY: `error` points to a text of the shim that is writable until this function returns.
    unsafe { reported(error, work) }
}

/// Returns the memory that a dictionary holds, in bytes.
///
/// # Safety
/// `dictionary` is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_dictionary_held_bytes(dictionary: *const Reading) -> usize {
    // SAFETY: `dictionary` came from `leafpress_dictionary_new` and is not freed before this function returns.
    unsafe { &*dictionary }.held_bytes()
}

/// Frees a dictionary.
///
/// # Safety
/// It came from this module, and is freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_dictionary_free(dictionary: *mut Reading) {
    // SAFETY: `dictionary` is the box that `leafpress_dictionary_new` released, and the shim frees it once.
    guarded((), || drop(unsafe { Box::from_raw(dictionary) }));
}

/// Returns the name of a type of block, a static text; none for an unknown type.
#[unsafe(no_mangle)]
pub extern "C" fn leafpress_block_type_name(block_type: u8) -> View {
    BlockType::from_number(block_type).map_or(View::NONE, |found| View::of(found.name().as_bytes()))
}
