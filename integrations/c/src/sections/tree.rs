//! Trees: ordered maps that stay compressed.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::Arc;

use leafpress_core::Tree;
use leafpress_core::tree::{MAX_KEY_BYTES, MAX_VALUE_BYTES};

use crate::callback::{given, show_record};
use crate::failure::{Failure, NOT_FOUND, call, found};
use crate::fork::Process;
use crate::given::Given;
use crate::handle::{self, Handle};
use crate::lp_status::LP_EXISTS;
use crate::sections::options::tree_builder;
use crate::{lp_options, lp_record_fn, lp_status, lp_value_fn};

/// Longest key, in bytes.
pub const LP_MAX_KEY_BYTES: usize = 1024;
/// Longest value of a tree, in bytes: 64 MiB.
pub const LP_MAX_VALUE_BYTES: usize = 67108864;

const _: () = assert!(LP_MAX_KEY_BYTES == MAX_KEY_BYTES && LP_MAX_VALUE_BYTES == MAX_VALUE_BYTES);

/// An ordered map from byte strings to byte strings whose records are kept compressed. It keeps every record that is
/// inserted: it has no memory bound.
///
/// Any number of threads may use a tree at the same time, with all functions except lp_tree_free(). Reads do not wait
/// for locks. Operations on one record are atomic.
pub struct lp_tree {
    pub(crate) tree: Arc<Tree>,
    process: Process,
}

impl Handle for lp_tree {
    const NAME: &'static str = "tree";

    fn process(&self) -> Process {
        self.process
    }
}

/// Returns the tree behind a handle.
#[inline]
pub(crate) fn of(tree: Option<&lp_tree>) -> Result<&Tree, Failure> {
    Ok(&handle::of(tree)?.tree)
}

/// Makes a tree. options may be NULL. Free it with lp_tree_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_open(
    options: Option<&lp_options>,
    tree: Option<&mut MaybeUninit<*mut lp_tree>>,
) -> lp_status {
    call(|| {
        handle::hand_out(tree, || {
            let process = Process::this();
            let tree = Arc::new(tree_builder(options)?.build()?);
            Ok(lp_tree { tree, process })
        })
    })
}

/// Frees the tree with all its records; NULL is allowed. Its cursors may still be used: the memory is freed with the
/// last of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_free(tree: *mut lp_tree) {
    // SAFETY: `free` accepts NULL and handles that were handed out, which the caller gives back once.
    unsafe { handle::free(tree) };
}

/// Inserts the record, or replaces its value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_insert(
    tree: Option<&lp_tree>,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
) -> lp_status {
    // SAFETY: the header requires bytes that are readable and unchanged during the call.
    let (key, value) = unsafe { (Given::new(key, key_len), Given::new(value, value_len)) };
    call(|| {
        of(tree)?.insert(key.get("key")?, value.get("value")?)?;
        Ok(())
    })
}

/// Inserts the record unless the key exists: returns LP_EXISTS then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_insert_if_absent(
    tree: Option<&lp_tree>,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
) -> lp_status {
    // SAFETY: the header requires bytes that are readable and unchanged during the call.
    let (key, value) = unsafe { (Given::new(key, key_len), Given::new(value, value_len)) };
    call(
        || match of(tree)?.insert_if_absent(key.get("key")?, value.get("value")?)? {
            true => Ok(()),
            false => Err(Failure::fixed(LP_EXISTS, c"the key is there already")),
        },
    )
}

/// Replaces the value if the key exists; otherwise returns LP_NOT_FOUND.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_update_if_present(
    tree: Option<&lp_tree>,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
) -> lp_status {
    // SAFETY: the header requires bytes that are readable and unchanged during the call.
    let (key, value) = unsafe { (Given::new(key, key_len), Given::new(value, value_len)) };
    call(|| found(of(tree)?.replace(key.get("key")?, value.get("value")?)?))
}

/// Copies the key's value to buffer, which has room for capacity bytes, and writes its length to value_len. With a NULL
/// buffer (and a capacity of 0) it only returns the length.
///
/// Returns LP_NOT_FOUND, or LP_BUFFER_TOO_SMALL with the needed length in value_len. Another thread may replace the
/// value by a longer one between two calls: lp_tree_read() needs one call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_get(
    tree: Option<&lp_tree>,
    key: *const c_void,
    key_len: usize,
    buffer: *mut c_void,
    capacity: usize,
    value_len: Option<&mut MaybeUninit<usize>>,
) -> lp_status {
    map!(get, of(tree)?, key, key_len, buffer, capacity, value_len)
}

/// Calls read with the key's value, which is not copied. Returns LP_NOT_FOUND, or LP_STOPPED if read returns other than
/// 0. Memory that other threads free in the tree is kept until read returns: return quickly.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_read(
    tree: Option<&lp_tree>,
    key: *const c_void,
    key_len: usize,
    read: lp_value_fn,
    context: *mut c_void,
) -> lp_status {
    map!(read, of(tree)?, key, key_len, read, context)
}

/// Returns LP_OK if the key exists, else LP_NOT_FOUND.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_contains(tree: Option<&lp_tree>, key: *const c_void, key_len: usize) -> lp_status {
    map!(contains_key, of(tree)?, key, key_len)
}

/// Removes the record; returns LP_NOT_FOUND if it was not there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_remove(tree: Option<&lp_tree>, key: *const c_void, key_len: usize) -> lp_status {
    map!(remove, of(tree)?, key, key_len)
}

/// Shows one record, if there is one.
fn show_one(
    tree: Option<&lp_tree>,
    read: lp_record_fn,
    context: *mut c_void,
    one: impl FnOnce(&Tree) -> Result<Option<leafpress_core::Record>, leafpress_core::TreeError>,
) -> lp_status {
    call(|| {
        given(read, "callback")?;
        let (key, value) = one(of(tree)?)?.ok_or(NOT_FOUND)?;
        // SAFETY: the header requires a function that may be called with this context.
        unsafe { show_record(read, context, &key, &value) }
    })
}

/// Calls read with the record of the least key; returns LP_NOT_FOUND if the tree is empty.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_first(tree: Option<&lp_tree>, read: lp_record_fn, context: *mut c_void) -> lp_status {
    show_one(tree, read, context, Tree::first)
}

/// Calls read with the record of the greatest key; returns LP_NOT_FOUND if the tree is empty.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_last(tree: Option<&lp_tree>, read: lp_record_fn, context: *mut c_void) -> lp_status {
    show_one(tree, read, context, Tree::last)
}

/// Removes the record of the least key and then calls read with it; returns LP_NOT_FOUND if the tree is empty. Each of
/// several threads gets another record.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_pop_first(
    tree: Option<&lp_tree>,
    read: lp_record_fn,
    context: *mut c_void,
) -> lp_status {
    show_one(tree, read, context, Tree::pop_first)
}

/// Like lp_tree_pop_first(), for the greatest key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_pop_last(
    tree: Option<&lp_tree>,
    read: lp_record_fn,
    context: *mut c_void,
) -> lp_status {
    show_one(tree, read, context, Tree::pop_last)
}

/// Returns the number of records; while others write, the number of a moment ago.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_len(tree: Option<&lp_tree>, records: Option<&mut MaybeUninit<u64>>) -> lp_status {
    map!(len, of(tree)?, records)
}

/// Removes every record.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_clear(tree: Option<&lp_tree>) -> lp_status {
    call(|| Ok(of(tree)?.clear()?))
}
