//! Trees: many records at once.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;

use crate::callback::given;
use crate::failure::{Failure, STOPPED, call};
use crate::given::{Given, Out, copied};
use crate::sections::tree::of;
use crate::{lp_bytes, lp_found_fn, lp_status, lp_tree};

/// Calls read with the value of each of count keys, in their order. It is faster than as many calls of lp_tree_get():
/// the reads wait for memory together. The values need not be of one moment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_get_many(
    tree: Option<&lp_tree>,
    keys: *const lp_bytes,
    count: usize,
    read: lp_found_fn,
    context: *mut c_void,
) -> lp_status {
    map!(get_many, of(tree)?, keys, count, read, context)
}

/// Provides the next record to load: writes its key and value to the arguments and returns 1; 0 when there are no more;
/// a negative number to give up. The bytes have to be valid until it is called again or the load ends.
pub type lp_next_fn =
    Option<unsafe extern "C" fn(context: *mut c_void, key: *mut lp_bytes, value: *mut lp_bytes) -> c_int>;

/// Inserts or replaces the records that next provides, and writes how many keys were new to inserted (which may be
/// NULL). Records in ascending order of keys are packed into full leaves at once, which takes little more time than
/// compressing them; others are inserted one by one.
///
/// Returns LP_STOPPED if next gives up; inserted is written in that case too. After that, or a failure, the earlier
/// records are stored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_load(
    tree: Option<&lp_tree>,
    next: lp_next_fn,
    context: *mut c_void,
    inserted: Option<&mut MaybeUninit<u64>>,
) -> lp_status {
    call(|| {
        let tree = of(tree)?;
        let next = given(next, "callback")?;
        let mut ending = Ok(());
        let records = std::iter::from_fn(|| {
            let mut record = [lp_bytes::from(&[][..]); 2];
            let [key, value] = &mut record;
            // SAFETY: the header requires a function that may be called with this context; the places for its results
            // are writable.
            let returned = unsafe { next(context, key, value) };
            match returned {
                0 => return None,
                1.. => {}
                _ => {
                    ending = Err(STOPPED);
                    return None;
                }
            }
            match owned(*key, *value) {
                Ok(record) => Some(record),
                Err(failure) => {
                    ending = Err(failure);
                    None
                }
            }
        });
        let loaded = tree.extend(records.fuse())?;
        Out::put(inserted, loaded);
        ending
    })
}

/// Copies a record that the caller passed.
fn owned(key: lp_bytes, value: lp_bytes) -> Result<(Vec<u8>, Vec<u8>), Failure> {
    // SAFETY: the header requires the function to keep these bytes valid until it is called again.
    let (key, value) = unsafe { (Given::new(key.data, key.len), Given::new(value.data, value.len)) };
    Ok((copied(key.get("key")?)?, copied(value.get("value")?)?))
}
