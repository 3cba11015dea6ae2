//! Caches: ranges of keys.

use std::ffi::c_void;

use leafpress_core::cache::CacheRange;

use crate::callback::{given, show_record};
use crate::failure::{Failure, call};
use crate::given::Given;
use crate::sections::cache::of;
use crate::sections::tree_scan::bounds;
use crate::{lp_cache, lp_record_fn, lp_status};

/// Shows records until there are no more, or the function stops.
///
/// # Safety
/// The function is the caller's, for this context.
unsafe fn show_all(records: CacheRange<'_>, read: lp_record_fn, context: *mut c_void) -> Result<(), Failure> {
    given(read, "callback")?;
    for record in records {
        let (key, value) = record?;
        // SAFETY: the header requires a function that may be called with this context.
        unsafe { show_record(read, context, &key, &value)? };
    }
    Ok(())
}

/// Calls read with the records in memory from the key from (included) to the key to (excluded), in the order of their
/// keys, as lp_tree_scan() does. Records that are only on disk are not shown. It does not count as a read of the
/// records.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_cache_scan(
    cache: Option<&lp_cache>,
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
        let records = of(cache)?.range(bounds(from, to)?);
        // SAFETY: the header requires a function that may be called with this context.
        unsafe { show_all(records, read, context) }
    })
}

/// Like lp_cache_scan(), for the records whose keys begin with prefix.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_cache_scan_prefix(
    cache: Option<&lp_cache>,
    prefix: *const c_void,
    prefix_len: usize,
    read: lp_record_fn,
    context: *mut c_void,
) -> lp_status {
    // SAFETY: the header requires bytes that are readable and unchanged during the call.
    let prefix = unsafe { Given::new(prefix, prefix_len) };
    call(|| {
        let records = of(cache)?.prefix(prefix.get("prefix")?);
        // SAFETY: the header requires a function that may be called with this context.
        unsafe { show_all(records, read, context) }
    })
}
