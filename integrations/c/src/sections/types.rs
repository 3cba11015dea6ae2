//! What sections have in common: handles, bytes and callbacks.

use std::ffi::{c_int, c_void};

/// Bytes that somebody else owns. data may be NULL where len is 0.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct lp_bytes {
    /// Where they are.
    pub data: *const c_void,
    /// How many.
    pub len: usize,
}

impl From<&[u8]> for lp_bytes {
    fn from(bytes: &[u8]) -> Self {
        Self {
            data: bytes.as_ptr().cast(),
            len: bytes.len(),
        }
    }
}

/// Is shown a value. The bytes are there until it returns. 0 to go on, anything else to stop.
pub type lp_value_fn =
    Option<unsafe extern "C" fn(context: *mut c_void, value: *const c_void, value_len: usize) -> c_int>;

/// Is shown a record. The bytes are there until it returns. 0 to go on, anything else to stop.
pub type lp_record_fn = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        key: *const c_void,
        key_len: usize,
        value: *const c_void,
        value_len: usize,
    ) -> c_int,
>;

/// Is shown the value of keys[index]; value is NULL if the key is not there. The bytes are there until it returns. 0
/// to go on, anything else to stop.
pub type lp_found_fn =
    Option<unsafe extern "C" fn(context: *mut c_void, index: usize, value: *const c_void, value_len: usize) -> c_int>;
