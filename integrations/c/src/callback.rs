//! The caller's functions that are called back.

use std::ffi::{c_int, c_void};

use crate::failure::{Failure, STOPPED};
use crate::{lp_bytes, lp_found_fn, lp_record_fn, lp_value_fn};

/// The context of a callback.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context(*mut c_void);

// SAFETY: it is only handed back. The header requires that the arguments of functions called by other threads can be
// shared by them.
unsafe impl Send for Context {}
// SAFETY: it is only handed back, as the header requires of contexts.
unsafe impl Sync for Context {}

impl Context {
    pub fn new(context: *mut c_void) -> Self {
        Self(context)
    }

    pub fn get(self) -> *mut c_void {
        self.0
    }
}

/// Returns a callback's pointer, or an error if it is NULL.
pub(crate) fn given<F>(function: Option<F>, what: &str) -> Result<F, Failure> {
    function.ok_or_else(|| Failure::argument(format!("the {what} is NULL")))
}

/// Converts a callback's result: an error if it stops the call.
#[inline]
pub(crate) fn went_on(returned: c_int) -> Result<(), Failure> {
    if returned == 0 { Ok(()) } else { Err(STOPPED) }
}

/// Shows a value, if there is a function for it.
///
/// # Safety
/// The function is the caller's, for this context.
#[inline]
pub(crate) unsafe fn show_value(function: lp_value_fn, context: *mut c_void, value: &[u8]) -> Result<(), Failure> {
    let Some(function) = function else { return Ok(()) };
    let value = lp_bytes::from(value);
    // SAFETY: the header requires a callable function, and the bytes are valid until it returns.
    went_on(unsafe { function(context, value.data, value.len) })
}

/// Shows a record, if there is a function for it.
///
/// # Safety
/// As for [`show_value`].
#[inline]
pub(crate) unsafe fn show_record(
    function: lp_record_fn,
    context: *mut c_void,
    key: &[u8],
    value: &[u8],
) -> Result<(), Failure> {
    let Some(function) = function else { return Ok(()) };
    let (key, value) = (lp_bytes::from(key), lp_bytes::from(value));
    // SAFETY: the header requires a callable function, and the bytes are valid until it returns.
    went_on(unsafe { function(context, key.data, key.len, value.data, value.len) })
}

/// Shows what was found of several keys, until the function stops.
pub(crate) struct ShowFound {
    function: unsafe extern "C" fn(*mut c_void, usize, *const c_void, usize) -> c_int,
    context: *mut c_void,
    has_stopped: bool,
}

impl ShowFound {
    /// # Safety
    /// The function is the caller's, for this context, while this is there.
    pub unsafe fn new(function: lp_found_fn, context: *mut c_void) -> Result<Self, Failure> {
        Ok(Self {
            function: given(function, "callback")?,
            context,
            has_stopped: false,
        })
    }

    pub fn show(&mut self, index: usize, value: Option<&[u8]>) {
        if self.has_stopped {
            return;
        }
        let (data, len) = value.map_or((std::ptr::null(), 0), |value| (value.as_ptr(), value.len()));
        // SAFETY: the header requires a callable function, and the bytes are valid until it returns.
        self.has_stopped = unsafe { (self.function)(self.context, index, data.cast(), len) } != 0;
    }

    pub fn end(self) -> Result<(), Failure> {
        if self.has_stopped { Err(STOPPED) } else { Ok(()) }
    }
}
