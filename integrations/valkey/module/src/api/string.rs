//! The server's strings.

use std::ffi::c_char;

use super::raw::RawString;
use super::table::api;

/// A string that the server owns and keeps while a callback runs.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Str<'c> {
    raw: *mut RawString,
    call: std::marker::PhantomData<&'c RawString>,
}

impl<'c> Str<'c> {
    /// # Safety
    /// `raw` is a string that lives as long as `'c`, and is not changed meanwhile.
    pub unsafe fn new(raw: *mut RawString) -> Self {
        Self {
            raw,
            call: std::marker::PhantomData,
        }
    }

    /// Returns the server's pointer.
    pub fn raw(self) -> *mut RawString {
        self.raw
    }

    /// Returns its bytes.
    #[inline]
    pub fn bytes(self) -> &'c [u8] {
        let mut len = 0;
        // SAFETY: the string lives as long as `'c`, and its bytes with it.
        unsafe {
            let start = (api().StringPtrLen)(self.raw, &raw mut len);
            std::slice::from_raw_parts(start.cast(), len)
        }
    }
}

/// A string that the module owns.
pub struct OwnedStr(*mut RawString);

impl OwnedStr {
    /// Returns a copy of `bytes`.
    pub fn new(bytes: &[u8]) -> Self {
        // SAFETY: the server copies the bytes; without a context, nobody else frees the string.
        Self(unsafe { (api().CreateString)(std::ptr::null_mut(), bytes.as_ptr().cast::<c_char>(), bytes.len()) })
    }

    /// # Safety
    /// `raw` is a string whose hold becomes this one's.
    pub unsafe fn from_raw(raw: *mut RawString) -> Self {
        Self(raw)
    }

    /// Borrows it.
    pub fn as_str(&self) -> Str<'_> {
        // SAFETY: it lives as long as this.
        unsafe { Str::new(self.0) }
    }

    /// Returns the server's pointer, which the server owns from now on.
    pub fn into_raw(self) -> *mut RawString {
        std::mem::ManuallyDrop::new(self).0
    }
}

impl Drop for OwnedStr {
    fn drop(&mut self) {
        // SAFETY: it is ours, and nothing refers to it any more.
        unsafe { (api().FreeString)(std::ptr::null_mut(), self.0) };
    }
}

// SAFETY: the server counts the references to a string; this one is held here only, and used under its owner's lock.
unsafe impl Send for OwnedStr {}
