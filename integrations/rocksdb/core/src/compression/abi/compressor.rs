//! Compressors, for the shim.

use std::slice;

use crate::abi::{Text, View, guarded, reported};

use super::super::compressor::{Compressor, Outcome};
use super::invalid;
use super::options::Prepared;

/// Makes a compressor for files of an LSM level; null in `out` where they are not compressed.
///
/// # Safety
/// `options` came from `leafpress_options_new`, the results are writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_compressor_new(
    options: *const Prepared,
    family: View,
    level: i32,
    max_dict_bytes: u32,
    zstd_max_train_bytes: u32,
    verified: bool,
    out: *mut *mut Compressor,
    error: *mut Text,
) -> i32 {
    let work = || {
        // SAFETY: `options` came from `leafpress_options_new` and is not freed meanwhile, and `family` is readable
        // during this call.
        let (prepared, family) = unsafe { (&*options, family.bytes()) };
        let line = |codec, dictionary_bytes| {
            let family = String::from_utf8_lossy(family);
            prepared.dictionaries.line(&family, codec, dictionary_bytes)
        };
        let new = Compressor::new(&prepared.options, &line, level, max_dict_bytes, zstd_max_train_bytes)
            .map_err(invalid)?
            .map(|new| new.verified_by_rocksdb(verified));
        // SAFETY: `out` points to a pointer of the shim that is writable until this function returns.
        unsafe { out.write(boxed(new)) };
        Ok(())
    };
    // SAFETY: `error` points to a text of the shim that is writable until this function returns.
    unsafe { reported(error, work) }
}

fn boxed(compressor: Option<Compressor>) -> *mut Compressor {
    compressor.map_or(std::ptr::null_mut(), |new| Box::into_raw(Box::new(new)))
}

/// Copies a compressor; null without memory.
///
/// # Safety
/// `compressor` is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_compressor_copy(compressor: *const Compressor) -> *mut Compressor {
    // SAFETY: `compressor` came from this module, and is not freed before this function returns.
    guarded(std::ptr::null_mut(), || boxed(Some(unsafe { &*compressor }.copied())))
}

/// Makes a compressor with a dictionary trained from blocks that are stored back to back; null if no dictionary pays.
///
/// # Safety
/// `compressor` is valid; `samples` is as long as the sum of the `count` lengths.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_compressor_train(
    compressor: *const Compressor,
    samples: View,
    lengths: *const usize,
    count: usize,
) -> *mut Compressor {
    guarded(std::ptr::null_mut(), || {
        // SAFETY: `compressor` came from this module, and is not freed before this function returns; `samples` is
        // readable, and `lengths` is an array of `count` lengths, during this call.
        let (compressor, mut rest, lengths) =
            unsafe { (&*compressor, samples.bytes(), slice::from_raw_parts(lengths, count)) };
        let mut blocks = Vec::with_capacity(count);
        for length in lengths {
            let Some((block, behind)) = rest.split_at_checked(*length) else {
                return std::ptr::null_mut();
            };
            blocks.push(block);
            rest = behind;
        }
        boxed(compressor.trained(&blocks))
    })
}

/// Makes a compressor with these bytes as its dictionary.
///
/// # Safety
/// `compressor` is valid, `bytes` are readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_compressor_with_dictionary(
    compressor: *const Compressor,
    bytes: View,
) -> *mut Compressor {
    guarded(std::ptr::null_mut(), || {
        // SAFETY: `compressor` came from this module, and is not freed before this function returns; `bytes` is
        // readable during this call.
        let (compressor, bytes) = unsafe { (&*compressor, bytes.bytes()) };
        boxed(Some(compressor.with_dictionary_bytes(bytes)))
    })
}

/// Frees a compressor.
///
/// # Safety
/// It came from this module, and is freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_compressor_free(compressor: *mut Compressor) {
    // SAFETY: `compressor` is the box that a function of this module released, and the shim frees it once.
    guarded((), || drop(unsafe { Box::from_raw(compressor) }));
}

/// Returns the dictionary's bytes, which live as long as the compressor; none without a dictionary.
///
/// # Safety
/// `compressor` is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_compressor_dictionary(compressor: *const Compressor) -> View {
    // SAFETY: `compressor` came from this module, and is not freed before this function returns; RocksDB holds it for
    // as long as it uses the dictionary's bytes.
    let dictionary = unsafe { &*compressor }.dictionary();
    dictionary.map_or(View::NONE, |dictionary| View::of(dictionary.bytes()))
}

/// Returns the dictionary of an earlier file for this file, which the shim gives back; none if the file is to train its
/// own.
///
/// # Safety
/// `compressor` is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_compressor_ready_dictionary(compressor: *const Compressor) -> Text {
    guarded(Text::NONE, || {
        // SAFETY: `compressor` came from this module, and is not freed before this function returns.
        let ready = unsafe { &*compressor }.ready_dictionary();
        ready.map_or(Text::NONE, |dictionary| Text::give(dictionary.bytes().to_vec()))
    })
}

/// Returns how many bytes of blocks to sample for a dictionary; 0 for no dictionary.
///
/// # Safety
/// `compressor` is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_compressor_sample_bytes(compressor: *const Compressor) -> usize {
    // SAFETY: `compressor` came from this module, and is not freed before this function returns.
    unsafe { &*compressor }.sample_bytes()
}

/// Returns the codec and whether there is a dictionary, which the shim gives back.
///
/// # Safety
/// `compressor` is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_compressor_id(compressor: *const Compressor) -> Text {
    // SAFETY: `compressor` came from this module, and is not freed before this function returns.
    guarded(Text::NONE, || Text::give(unsafe { &*compressor }.id()))
}

/// Returns the type of its blocks.
///
/// # Safety
/// `compressor` is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_compressor_block_type(compressor: *const Compressor) -> u8 {
    // SAFETY: `compressor` came from this module, and is not freed before this function returns.
    unsafe { &*compressor }.block_type() as u8
}

/// The results of `leafpress_compress` other than the length of a block.
const BYPASSED: i64 = 0;
const REJECTED: i64 = -1;
const MISMATCHED: i64 = -2;

/// Compresses a block into the front of `out` and returns its length, or 0 when it was not tried, -1 when it does not
/// fit, -2 when it did not decode to itself.
///
/// # Safety
/// `compressor` is valid, `raw` is readable and `out` writable for `out_len` bytes; they do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_compress(
    compressor: *const Compressor,
    raw: View,
    out: *mut u8,
    out_len: usize,
) -> i64 {
    guarded(BYPASSED, || {
        if out_len == 0 {
            return BYPASSED;
        }
        // SAFETY: `compressor` came from this module, and is not freed before this function returns. `raw` is readable,
        // and `out` points to `out_len` bytes that nothing else uses during this call; they do not overlap, and no byte
        // of `out` is read before it is written.
        let (compressor, raw, out) = unsafe { (&*compressor, raw.bytes(), slice::from_raw_parts_mut(out, out_len)) };
        match compressor.compress(raw, out) {
            Outcome::Compressed(written) => i64::try_from(written).unwrap_or(BYPASSED),
            Outcome::Rejected => REJECTED,
            Outcome::Bypassed => BYPASSED,
            Outcome::Mismatched => MISMATCHED,
        }
    })
}
