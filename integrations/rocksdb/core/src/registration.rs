//! Making Leafpress known to RocksDB, from Rust and from C.

use std::ffi::{CStr, CString, c_char, c_int};

use thiserror::Error;

use crate::statistics_text;

unsafe extern "C" {
    fn leafpress_shim_register() -> *const c_char;
    fn leafpress_shim_check_options(text: *const c_char) -> *mut c_char;
    fn leafpress_shim_text_free(text: *mut c_char);
}

/// RocksDB in this process is not the one that the library was built for.
#[derive(Debug, Clone, Error)]
#[error("{0}")]
pub struct RegisterError(String);

/// Makes `leafpress` known to RocksDB's options strings and to its readers; more than once does no harm. It is to be
/// called before the first database is opened: static initialisers would be dropped by the linker.
///
/// With the feature `bundled` it cannot fail; otherwise see [`try_register`].
pub fn register() {
    let _ = try_register();
}

/// As [`register`], for a RocksDB that the program brings.
///
/// # Errors
/// [`RegisterError`] when that RocksDB is of another version than the headers the library was built with.
pub fn try_register() -> Result<(), RegisterError> {
    let error = error();
    if error.is_empty() {
        Ok(())
    } else {
        Err(RegisterError(error.to_string_lossy().into_owned()))
    }
}

/// Checks that RocksDB takes every part of an options string.
///
/// `get_options_from_string` of the `rocksdb` crate, and `GetOptionsFromString` without a strict `ConfigOptions`, leave
/// out in silence what RocksDB does not know by name: with a misspelled `id`, or before [`register`], a database is
/// written without the requested compression. Registers first.
///
/// # Errors
/// [`RefusedOptions`], with RocksDB's message.
pub fn check_options(text: &str) -> Result<(), RefusedOptions> {
    register();
    let text = CString::new(text).map_err(|_| RefusedOptions("options are text without NUL".to_owned()))?;
    // SAFETY: the text is terminated; what is returned is null or a terminated text that is freed once, after it was
    // copied.
    unsafe {
        let message = leafpress_shim_check_options(text.as_ptr());
        if message.is_null() {
            return Ok(());
        }
        let copy = CStr::from_ptr(message).to_string_lossy().into_owned();
        leafpress_shim_text_free(message);
        Err(RefusedOptions(copy))
    }
}

/// An options string that RocksDB does not take as a whole.
#[derive(Debug, Clone, Error)]
#[error("{0}")]
pub struct RefusedOptions(String);

/// Registers, once, and says why it could not; empty if it could.
fn error() -> &'static CStr {
    // SAFETY: takes no arguments, may be called from any thread, and its text stays valid.
    unsafe {
        let error = leafpress_shim_register();
        if error.is_null() { c"" } else { CStr::from_ptr(error) }
    }
}

/// Registers when the shared library is loaded. `LD_PRELOAD` is enough then for programs that know nothing of
/// Leafpress, such as RocksDB's ldb and sst_dump. A program in Rust has this library linked in, and calls [`register`].
#[cfg(all(target_os = "linux", not(feature = "bundled")))]
mod at_load {
    use std::ffi::CStr;
    use std::io::Write;

    #[used]
    #[unsafe(link_section = ".init_array")]
    static REGISTER: extern "C" fn() = register;

    extern "C" fn register() {
        let error: &CStr = super::error();
        let preloaded = || std::env::var_os("LD_PRELOAD").is_some_and(|libraries| !libraries.is_empty());
        // Only this line reports why a preloaded library does nothing; a program that loads the library itself requests
        // the reason.
        if !error.is_empty() && preloaded() {
            let _ = writeln!(std::io::stderr(), "{}", error.to_string_lossy());
        }
    }
}

/// [`register`] for programs in other languages: 0 for success (`include/leafpress_rocksdb.h`).
#[unsafe(no_mangle)]
pub extern "C" fn leafpress_rocksdb_register() -> c_int {
    c_int::from(!error().is_empty())
}

/// Returns the reason why [`leafpress_rocksdb_register`] failed; empty if it did not. It stays valid.
#[unsafe(no_mangle)]
pub extern "C" fn leafpress_rocksdb_error() -> *const c_char {
    error().as_ptr()
}

/// [`statistics_text`] for programs in other languages, to be given to [`leafpress_rocksdb_free`].
#[unsafe(no_mangle)]
pub extern "C" fn leafpress_rocksdb_statistics() -> *mut c_char {
    let text = std::panic::catch_unwind(|| CString::new(statistics_text()).unwrap_or_default());
    text.map_or(std::ptr::null_mut(), CString::into_raw)
}

/// Frees text that [`leafpress_rocksdb_statistics`] returned; null does nothing.
///
/// # Safety
/// `text` came from there and is freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leafpress_rocksdb_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: `text` came from `CString::into_raw` in `leafpress_rocksdb_statistics`, and its owner frees it once.
        drop(unsafe { CString::from_raw(text) });
    }
}
