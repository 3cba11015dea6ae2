//! The module's section of `INFO`.

use std::ffi::CStr;

use super::context::c_text;
use super::raw::RawInfo;
use super::table::api;

/// The section, to be filled.
pub struct Section(*mut RawInfo);

impl Section {
    /// # Safety
    /// `info` is the one that the server passed to the running callback, and the object does not outlive the callback.
    pub unsafe fn new(info: *mut RawInfo) -> Self {
        // SAFETY: the server passes a valid `info` for the duration of the callback. A section without a name of its
        // own has the module's.
        unsafe { (api().InfoAddSection)(info, c"".as_ptr()) };
        Self(info)
    }

    /// Adds a number.
    pub fn number(&mut self, name: &CStr, number: u64) {
        // SAFETY: the server passes a valid `info` for the duration of the callback.
        unsafe { (api().InfoAddFieldULongLong)(self.0, name.as_ptr(), number) };
    }

    /// Adds a fraction.
    pub fn fraction(&mut self, name: &CStr, fraction: f64) {
        // SAFETY: the server passes a valid `info` for the duration of the callback.
        unsafe { (api().InfoAddFieldDouble)(self.0, name.as_ptr(), fraction) };
    }

    /// Adds a text.
    pub fn text(&mut self, name: &CStr, text: &str) {
        let text = c_text(text);
        // SAFETY: the server passes a valid `info` for the duration of the callback, and copies the text.
        unsafe { (api().InfoAddFieldCString)(self.0, name.as_ptr(), text.as_ptr()) };
    }
}
