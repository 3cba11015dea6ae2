//! The options of a manager, for the shim.

use std::slice;

use crate::abi::{Failure, Text, View, guarded, reported};

use super::super::options::CompressionOptions;
use super::super::shared::SharedDictionaries;
use super::invalid;

/// The options of a manager, and the dictionaries of the files that it wrote.
pub struct Prepared {
    pub(super) options: CompressionOptions,
    pub(super) dictionaries: SharedDictionaries,
}

fn text(bytes: &[u8]) -> Result<&str, Failure> {
    std::str::from_utf8(bytes).map_err(|_| invalid("leafpress: options are text in UTF-8"))
}

/// Checks a single option and writes its usual spelling to `spelling`.
///
/// # Safety
/// The arguments are readable, the results writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_option_check(name: View, value: View, spelling: *mut Text, error: *mut Text) -> i32 {
    let work = || {
        // SAFETY: the shim keeps the bytes of `name` and `value` readable until this function returns.
        let (name, value) = unsafe { (text(name.bytes())?, text(value.bytes())?) };
        let mut options = CompressionOptions::default();
        options.set(name, value).map_err(invalid)?;
        // SAFETY: `spelling` points to a text of the shim that is writable until this function returns.
        unsafe { spelling.write(Text::give(options.text(name))) };
        Ok(())
    };
    // SAFETY: `error` points to a text of the shim that is writable until this function returns.
    unsafe { reported(error, work) }
}

/// Makes options of `count` pairs of a name and a value. The codecs that they name can run here.
///
/// # Safety
/// The arguments are readable, the results writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_options_new(
    pairs: *const View,
    count: usize,
    out: *mut *mut Prepared,
    error: *mut Text,
) -> i32 {
    let work = || {
        let mut options = CompressionOptions::default();
        // SAFETY: `pairs` is an array of `2 * count` views, which the shim neither moves nor changes during this call.
        for pair in unsafe { slice::from_raw_parts(pairs, 2 * count) }.chunks_exact(2) {
            // SAFETY: the shim keeps the bytes of every name and value readable until this function returns.
            let (name, value) = unsafe { (text(pair[0].bytes())?, text(pair[1].bytes())?) };
            options.set(name, value).map_err(invalid)?;
        }
        options.resolve().map_err(invalid)?;
        options.check_available().map_err(invalid)?;
        let dictionaries = SharedDictionaries::default();
        // SAFETY: `out` points to a pointer of the shim that is writable until this function returns.
        unsafe { out.write(Box::into_raw(Box::new(Prepared { options, dictionaries }))) };
        Ok(())
    };
    // SAFETY: `error` points to a text of the shim that is writable until this function returns.
    unsafe { reported(error, work) }
}

/// Returns an option's value, which the shim gives back.
///
/// # Safety
/// `options` came from `leafpress_options_new`, `name` is readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_options_text(options: *const Prepared, name: View) -> Text {
    guarded(Text::NONE, || {
        // SAFETY: `options` came from `leafpress_options_new` and is not freed meanwhile, and `name` is readable during
        // this call.
        let (options, name) = unsafe { (&(*options).options, name.bytes()) };
        Text::give(text(name).map(|name| options.text(name)).unwrap_or_default())
    })
}

/// Returns `parallel_threads`.
///
/// # Safety
/// `options` came from `leafpress_options_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_options_parallel_threads(options: *const Prepared) -> u32 {
    // SAFETY: `options` came from `leafpress_options_new` and is not freed before this function returns.
    unsafe { &*options }.options.parallel_threads()
}

/// Returns `honor_no_compression`.
///
/// # Safety
/// `options` came from `leafpress_options_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_options_honor_no_compression(options: *const Prepared) -> bool {
    // SAFETY: `options` came from `leafpress_options_new` and is not freed before this function returns.
    unsafe { &*options }.options.honor_no_compression()
}

/// Frees options.
///
/// # Safety
/// They came from `leafpress_options_new` and are freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_options_free(options: *mut Prepared) {
    // SAFETY: `options` is the box that `leafpress_options_new` released, and the shim frees it once.
    guarded((), || drop(unsafe { Box::from_raw(options) }));
}
