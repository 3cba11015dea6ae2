//! Trees: ranges of keys.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ops::Bound;

use leafpress_core::Range;

use crate::callback::{given, show_record};
use crate::failure::{Failure, call};
use crate::given::{Given, Out};
use crate::sections::tree::of;
use crate::{lp_record_fn, lp_status, lp_tree};

/// A start and an end, in the library's form.
pub(crate) type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Returns the bounds from one key (included) to another (excluded).
pub(crate) fn bounds(from: Given<'_>, to: Given<'_>) -> Result<Bounds, Failure> {
    Ok((
        from.bound("range's start", Bound::Included)?,
        to.bound("range's end", Bound::Excluded)?,
    ))
}

/// Shows records until there are no more, or the function stops.
///
/// # Safety
/// The function is the caller's, for this context.
unsafe fn show_all(mut records: Range<'_>, read: lp_record_fn, context: *mut c_void) -> Result<(), Failure> {
    given(read, "callback")?;
    // SAFETY: the header requires a function that may be called with this context.
    while let Some(shown) = records.next_with(|key, value| unsafe { show_record(read, context, key, value) }) {
        shown??;
    }
    Ok(())
}

/// Calls read with the records from the key from (included) to the key to (excluded), in the order of their keys: that
/// of memcmp(), where a key that is a prefix of another one is first. If from or to is NULL, the range is open at that
/// end. Returns LP_STOPPED if read returns other than 0.
///
/// Other threads, and read itself, may write meanwhile: a record that exists from the start to the end of the scan is
/// shown once; one that is inserted or removed meanwhile may be shown or not. lp_tree_cursor moves in both directions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_scan(
    tree: Option<&lp_tree>,
    from: *const c_void,
    from_len: usize,
    to: *const c_void,
    to_len: usize,
    read: lp_record_fn,
    context: *mut c_void,
) -> lp_status {
    // SAFETY: the header requires bytes that are readable and unchanged during the call.
    let (from, to) = unsafe { (Given::new(from, from_len), Given::new(to, to_len)) };
    call(|| {
        let records = of(tree)?.range(bounds(from, to)?);
        // SAFETY: the header requires a function that may be called with this context.
        unsafe { show_all(records, read, context) }
    })
}

/// Like lp_tree_scan(), for the records whose keys begin with prefix.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_scan_prefix(
    tree: Option<&lp_tree>,
    prefix: *const c_void,
    prefix_len: usize,
    read: lp_record_fn,
    context: *mut c_void,
) -> lp_status {
    // SAFETY: the header requires bytes that are readable and unchanged during the call.
    let prefix = unsafe { Given::new(prefix, prefix_len) };
    call(|| {
        let records = of(tree)?.prefix(prefix.get("prefix")?);
        // SAFETY: the header requires a function that may be called with this context.
        unsafe { show_all(records, read, context) }
    })
}

/// Counts the records from the key from (included) to the key to (excluded), either NULL for an open end, by the
/// leaves' counts: no record is decoded.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_count(
    tree: Option<&lp_tree>,
    from: *const c_void,
    from_len: usize,
    to: *const c_void,
    to_len: usize,
    records: Option<&mut MaybeUninit<u64>>,
) -> lp_status {
    // SAFETY: the header requires bytes that are readable and unchanged during the call.
    let (from, to) = unsafe { (Given::new(from, from_len), Given::new(to, to_len)) };
    call(|| {
        let records = Out::at(records, "where to put the number of records")?;
        records.write(of(tree)?.count(bounds(from, to)?)?);
        Ok(())
    })
}

/// Removes the records from the key from (included) to the key to (excluded), either NULL for an open end, and writes
/// how many there were to removed (which may be NULL). It takes a small part of the time of as many calls of
/// lp_tree_remove(). It is atomic for each record, not for the range.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_remove_range(
    tree: Option<&lp_tree>,
    from: *const c_void,
    from_len: usize,
    to: *const c_void,
    to_len: usize,
    removed: Option<&mut MaybeUninit<u64>>,
) -> lp_status {
    // SAFETY: the header requires bytes that are readable and unchanged during the call.
    let (from, to) = unsafe { (Given::new(from, from_len), Given::new(to, to_len)) };
    call(|| {
        let gone = of(tree)?.remove_range(bounds(from, to)?, usize::MAX)?;
        Out::put(removed, gone.records);
        Ok(())
    })
}
