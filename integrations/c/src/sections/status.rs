//! Statuses and messages.

use std::ffi::{c_char, c_int};

use crate::failure::last_message;

/// What came of a call. Every function that can fail returns one. Later versions may add some: take what you do not know as a failure.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum lp_status {
    /// It was done.
    LP_OK = 0,
    /// There is no such record, or none further on. No failure.
    LP_NOT_FOUND = 1,
    /// The key is there already, and was to be absent. No failure.
    LP_EXISTS = 2,
    /// The record has another value than was expected. No failure.
    LP_MISMATCH = 3,
    /// A callback returned other than 0, so that the rest was left. No failure.
    LP_STOPPED = 4,
    /// The buffer is too small; the length that is needed was written.
    LP_BUFFER_TOO_SMALL = 5,
    /// An argument or option is not allowed: a NULL, a name that is unknown, a number out of its bounds.
    LP_INVALID_ARGUMENT = 6,
    /// The key, the value or the raw bytes are longer than they may be.
    LP_TOO_LONG = 7,
    /// Compressed bytes are damaged, or not what they are taken for; or a tree or cache was found broken.
    LP_CORRUPT = 8,
    /// A sealed block needs a dictionary that was not given.
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
    /// A codec failed by itself: a dictionary that it refuses, too few samples to train one.
    LP_FAILED = 16,
    /// A bug in the library was met and contained. Please report it with the message.
    LP_PANIC = 17,
}

/// The status's name, "LP_OK" and so on; "unknown status" for a number that is none. The string is there for ever.
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

/// What went wrong in the last call of this thread that returned other than LP_OK, in a line for people: what it was, and mostly what to do.
/// "" where there was none. The string is there until the thread calls the library again.
#[unsafe(no_mangle)]
pub extern "C" fn lp_last_error() -> *const c_char {
    last_message()
}

/// The version of the library that runs, "0.1.0". LP_VERSION is that of this header; the two fit where major and minor are equal.
/// The string is there for ever.
///
/// Any thread may call it at any time.
#[unsafe(no_mangle)]
pub extern "C" fn lp_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
