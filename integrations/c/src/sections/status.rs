//! Statuses and messages.

use std::ffi::{c_char, c_int};

use crate::failure::last_message;

/// The result of a call. Every function that can fail returns one. Later versions may add some: treat an unknown status
/// as a failure.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum lp_status {
    /// The call succeeded.
    LP_OK = 0,
    /// There is no such record, or no further one. Not a failure.
    LP_NOT_FOUND = 1,
    /// The key exists, and was expected to be absent. Not a failure.
    LP_EXISTS = 2,
    /// The record has another value than expected. Not a failure.
    LP_MISMATCH = 3,
    /// A callback returned other than 0, which stopped the call. Not a failure.
    LP_STOPPED = 4,
    /// The buffer is too small; the needed length was written.
    LP_BUFFER_TOO_SMALL = 5,
    /// An argument or option is not allowed: a NULL, an unknown name, a number out of bounds.
    LP_INVALID_ARGUMENT = 6,
    /// The key, the value or the raw bytes are too long.
    LP_TOO_LONG = 7,
    /// Compressed bytes are damaged or of another format; or a tree or cache is inconsistent.
    LP_CORRUPT = 8,
    /// A sealed block needs a dictionary that was not passed.
    LP_UNKNOWN_DICTIONARY = 9,
    /// The codec cannot run here; the message says what is missing.
    LP_UNAVAILABLE = 10,
    /// The system has no more memory.
    LP_OUT_OF_MEMORY = 11,
    /// A file or device cannot be used.
    LP_IO = 12,
    /// A background thread cannot be started, or has ended. Records are safe.
    LP_BACKGROUND = 13,
    /// The loader failed: see lp_cache_get_or_load().
    LP_LOAD_FAILED = 14,
    /// The handle was made before this process was forked.
    LP_FORKED = 15,
    /// A codec failed: for example, it refuses a dictionary, or there are too few samples to train one.
    LP_FAILED = 16,
    /// A bug in the library was detected and contained. Please report it with the message.
    LP_PANIC = 17,
}

/// Returns the status's name, for example "LP_OK"; "unknown status" for other numbers. The string is valid for ever.
///
/// Any thread may call it at any time.
#[unsafe(no_mangle)]
pub extern "C" fn lp_status_name(status: c_int) -> *const c_char {
    use lp_status::*;
    let named = |known: lp_status| known as c_int == status;
    let name = match () {
        () if named(LP_OK) => c"LP_OK",
        () if named(LP_NOT_FOUND) => c"LP_NOT_FOUND",
        () if named(LP_EXISTS) => c"LP_EXISTS",
        () if named(LP_MISMATCH) => c"LP_MISMATCH",
        () if named(LP_STOPPED) => c"LP_STOPPED",
        () if named(LP_BUFFER_TOO_SMALL) => c"LP_BUFFER_TOO_SMALL",
        () if named(LP_INVALID_ARGUMENT) => c"LP_INVALID_ARGUMENT",
        () if named(LP_TOO_LONG) => c"LP_TOO_LONG",
        () if named(LP_CORRUPT) => c"LP_CORRUPT",
        () if named(LP_UNKNOWN_DICTIONARY) => c"LP_UNKNOWN_DICTIONARY",
        () if named(LP_UNAVAILABLE) => c"LP_UNAVAILABLE",
        () if named(LP_OUT_OF_MEMORY) => c"LP_OUT_OF_MEMORY",
        () if named(LP_IO) => c"LP_IO",
        () if named(LP_BACKGROUND) => c"LP_BACKGROUND",
        () if named(LP_LOAD_FAILED) => c"LP_LOAD_FAILED",
        () if named(LP_FORKED) => c"LP_FORKED",
        () if named(LP_FAILED) => c"LP_FAILED",
        () if named(LP_PANIC) => c"LP_PANIC",
        () => c"unknown status",
    };
    name.as_ptr()
}

/// Returns a one-line description of this thread's last call that returned other than LP_OK: the cause, and usually the
/// remedy; "" if there was none. The string is valid until the thread calls the library again.
#[unsafe(no_mangle)]
pub extern "C" fn lp_last_error() -> *const c_char {
    last_message()
}

/// Returns the version of the running library, "0.1.0". LP_VERSION is that of this header; the two are compatible if
/// major and minor are equal. The string is valid for ever.
///
/// Any thread may call it at any time.
#[unsafe(no_mangle)]
pub extern "C" fn lp_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
