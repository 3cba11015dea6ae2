//! Streams that values are saved to and loaded from.

use std::ffi::CStr;

use super::context::c_text;
use super::raw::{RawDigest, RawIo, RawString};
use super::string::{OwnedStr, Str};
use super::table::api;

/// A snapshot that is being written.
pub struct Saver(*mut RawIo);

/// A snapshot that is being read, or a payload of `RESTORE`.
pub struct Loader(*mut RawIo);

/// An append-only file that is being rewritten.
pub struct Rewriter(*mut RawIo);

/// A digest of the data set.
pub struct Digest(*mut RawDigest);

impl Saver {
    /// # Safety
    /// `io` is the one that the server passed to the running callback, and the object does not outlive the callback.
    pub unsafe fn new(io: *mut RawIo) -> Self {
        Self(io)
    }

    /// Writes a number.
    pub fn unsigned(&mut self, number: u64) {
        // SAFETY: the server passes a valid `io` for the duration of the callback.
        unsafe { (api().SaveUnsigned)(self.0, number) };
    }

    /// Writes bytes and their length.
    pub fn bytes(&mut self, bytes: &[u8]) {
        // SAFETY: the server passes a valid `io` for the duration of the callback, and writes or copies the bytes.
        unsafe { (api().SaveStringBuffer)(self.0, bytes.as_ptr().cast(), bytes.len()) };
    }

    /// Logs that the key's value could not be written, and why.
    pub fn log(&mut self, text: &str) {
        log_key(self.0, text);
    }

    /// Has the server take the whole save as failed, whose file it then drops: the earlier one stays.
    pub fn fail(&mut self) {
        fail(self.0);
    }
}

/// Has the server note an error of a stream that it writes: it ends its work when the callback returns. The interface
/// has no call for that, but a read from such a stream fails, whatever its destination is, and is noted as an error.
fn fail(io: *mut RawIo) {
    // SAFETY: the server passes a valid `io` for the duration of the callback. The module handles errors of streams, so
    // that the server does not end.
    unsafe { (api().LoadUnsigned)(io) };
    debug_assert!(is_broken(io));
}

fn is_broken(io: *mut RawIo) -> bool {
    // SAFETY: the server passes a valid `io` for the duration of the callback.
    unsafe { (api().IsIOError)(io) != 0 }
}

/// Logs a text about the key whose value is written.
fn log_key(io: *mut RawIo, text: &str) {
    // SAFETY: the server passes a valid `io` for the duration of the callback; its string lives as long.
    let (name, database) = unsafe {
        let name = (api().GetKeyNameFromIO)(io);
        let bytes = (!name.is_null()).then(|| Str::new(name.cast_mut()).bytes());
        (bytes.unwrap_or_default(), (api().GetDbIdFromIO)(io))
    };
    let name = String::from_utf8_lossy(name);
    log(
        io,
        &format!("leafpress: the key '{name}' in database {database}: {text}"),
    );
}

fn log(io: *mut RawIo, text: &str) {
    let text = c_text(text);
    // SAFETY: the server passes a valid `io` for the duration of the callback; the format has one string.
    unsafe { (api().LogIOError)(io, c"warning".as_ptr(), c"%s".as_ptr(), text.as_ptr()) };
}

/// Bytes that the server has loaded.
pub struct Loaded {
    start: *mut u8,
    len: usize,
}

impl std::ops::Deref for Loaded {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the server has allocated `len` bytes, which this object owns.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // SAFETY: the server allocated the bytes and passed their ownership to this object, which frees them once.
        unsafe { (api().Free)(self.start.cast()) };
    }
}

impl Loader {
    /// # Safety
    /// As [`Saver::new`].
    pub unsafe fn new(io: *mut RawIo) -> Self {
        Self(io)
    }

    /// Reads a number; `None` at the end or if there is none.
    pub fn unsigned(&mut self) -> Option<u64> {
        // SAFETY: the server passes a valid `io` for the duration of the callback.
        let number = unsafe { (api().LoadUnsigned)(self.0) };
        (!is_broken(self.0)).then_some(number)
    }

    /// Reads bytes; `None` at the end or if there are none.
    pub fn bytes(&mut self) -> Option<Loaded> {
        let mut len = 0;
        // SAFETY: the server passes a valid `io` for the duration of the callback.
        let start = unsafe { (api().LoadStringBuffer)(self.0, &raw mut len) };
        if start.is_null() {
            return None;
        }
        let loaded = Loaded {
            start: start.cast(),
            len,
        };
        (!is_broken(self.0)).then_some(loaded)
    }

    /// Returns the database that the value is for.
    pub fn database(&self) -> i32 {
        // SAFETY: the server passes a valid `io` for the duration of the callback.
        unsafe { (api().GetDbIdFromIO)(self.0) }
    }

    /// Logs why a value could not be loaded.
    pub fn log(&mut self, text: &str) {
        log(self.0, text);
    }
}

impl Rewriter {
    /// # Safety
    /// As [`Saver::new`].
    pub unsafe fn new(io: *mut RawIo) -> Self {
        Self(io)
    }

    /// Writes a command with a key and further arguments.
    pub fn emit<'a>(&mut self, command: &CStr, key: Str<'_>, arguments: impl IntoIterator<Item = &'a [u8]>) {
        let strings: Vec<OwnedStr> = arguments.into_iter().map(OwnedStr::new).collect();
        let raw: Vec<*mut RawString> = strings.iter().map(|string| string.as_str().raw()).collect();
        // SAFETY: the server passes a valid `io` for the duration of the callback; "sv" stands for a string, a
        // vector of strings and its length, which outlive the call.
        unsafe {
            (api().EmitAOF)(
                self.0,
                command.as_ptr(),
                c"sv".as_ptr(),
                key.raw(),
                raw.as_ptr(),
                raw.len(),
            )
        };
    }

    /// Logs that the key's value could not be written, and why.
    pub fn log(&mut self, text: &str) {
        log_key(self.0, text);
    }

    /// Has the server take the whole rewrite as failed, whose file it then drops: the earlier one stays.
    pub fn fail(&mut self) {
        fail(self.0);
    }
}

impl Digest {
    /// # Safety
    /// `digest` is the one that the server passed to the running callback, and the object does not outlive the
    /// callback.
    pub unsafe fn new(digest: *mut RawDigest) -> Self {
        Self(digest)
    }

    /// Adds bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        // SAFETY: the server passes a valid `digest` for the duration of the callback.
        unsafe { (api().DigestAddStringBuffer)(self.0, bytes.as_ptr().cast(), bytes.len()) };
    }

    /// Ends an element whose order matters.
    pub fn end(&mut self) {
        // SAFETY: the server passes a valid `digest` for the duration of the callback.
        unsafe { (api().DigestEndSequence)(self.0) };
    }
}
