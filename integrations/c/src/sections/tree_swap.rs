//! Trees: reading and writing in one step.

use std::ffi::c_void;

use crate::sections::tree::of;
use crate::{lp_bytes, lp_status, lp_tree, lp_value_fn};

/// Removes the record and then calls read with the value that it had; LP_NOT_FOUND if it was not there. Of several
/// threads that take a record one gets it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_take(
    tree: Option<&lp_tree>,
    key: *const c_void,
    key_len: usize,
    read: lp_value_fn,
    context: *mut c_void,
) -> lp_status {
    map!(take, of(tree)?, key, key_len, read, context)
}

/// Inserts the record, or replaces its value, and then calls read with the value that it had; where it had none, read
/// is not called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_swap(
    tree: Option<&lp_tree>,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    read: lp_value_fn,
    context: *mut c_void,
) -> lp_status {
    map!(swap, of(tree)?, key, key_len, value, value_len, read, context)
}

/// Gives the key a new value if it has the expected one, in one step, and else returns LP_MISMATCH: expected NULL means
/// that the key is not there, value NULL that it is to be removed. To change a value atomically, read it, make another
/// of it, call this, and begin again at LP_MISMATCH.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_compare_and_swap(
    tree: Option<&lp_tree>,
    key: *const c_void,
    key_len: usize,
    expected: Option<&lp_bytes>,
    value: Option<&lp_bytes>,
) -> lp_status {
    map!(compare_and_swap, of(tree)?, key, key_len, expected, value)
}
