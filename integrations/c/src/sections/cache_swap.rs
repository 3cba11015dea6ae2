//! Caches: reading and writing in one step.

use std::ffi::c_void;

use crate::sections::cache::of;
use crate::{lp_bytes, lp_cache, lp_status, lp_value_fn};

/// Removes the record and then calls read with its previous value; returns LP_NOT_FOUND if it was not there. Of several
/// threads that take a record, one gets it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_cache_take(
    cache: Option<&lp_cache>,
    key: *const c_void,
    key_len: usize,
    read: lp_value_fn,
    context: *mut c_void,
) -> lp_status {
    map!(take, of(cache)?, key, key_len, read, context)
}

/// Inserts the record as lp_cache_insert() does, and then calls read with its previous value; if there was none, read
/// is not called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_cache_swap(
    cache: Option<&lp_cache>,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    read: lp_value_fn,
    context: *mut c_void,
) -> lp_status {
    map!(swap, of(cache)?, key, key_len, value, value_len, read, context)
}

/// Atomically replaces the value if it is the expected one, and otherwise returns LP_MISMATCH. A NULL expected means
/// that the key is absent; a NULL value removes the record. A record keeps its expiry. A cache may evict a record: then
/// it is absent. To change a value atomically, read it, compute the new one, call this function, and start again on
/// LP_MISMATCH.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_cache_compare_and_swap(
    cache: Option<&lp_cache>,
    key: *const c_void,
    key_len: usize,
    expected: Option<&lp_bytes>,
    value: Option<&lp_bytes>,
) -> lp_status {
    map!(compare_and_swap, of(cache)?, key, key_len, expected, value)
}
