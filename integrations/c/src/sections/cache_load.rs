//! Caches: loading missing records.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::time::Duration;

use leafpress_core::cache::{InsertOptions, LoadError};

use crate::callback::{given, show_value};
use crate::failure::{Failure, NOT_FOUND, call};
use crate::given::{Given, copied};
use crate::lp_status::{self, LP_LOAD_FAILED, LP_NOT_FOUND};
use crate::sections::cache::of;
use crate::{lp_cache, lp_value_fn};

/// A load in progress, which receives the loader's value.
pub struct lp_load {
    value: Option<Vec<u8>>,
    entry: InsertOptions,
}

/// Gets the value of a key that is not in the cache from its source, and passes it to lp_load_set(). Returns 0;
/// LP_NOT_FOUND if the source does not have the key; anything else if it failed.
pub type lp_load_fn =
    Option<unsafe extern "C" fn(context: *mut c_void, key: *const c_void, key_len: usize, load: *mut lp_load) -> c_int>;

/// Passes the loaded value; the bytes are copied. The record expires after the option ttl_ms. May be called only by a
/// loader, with the load that it was called with.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_load_set(load: Option<&mut lp_load>, value: *const c_void, value_len: usize) -> lp_status {
    // SAFETY: the header requires bytes that are readable and unchanged during the call.
    let value = unsafe { Given::new(value, value_len) };
    call(|| {
        let load = load.ok_or_else(|| Failure::argument("the load is NULL"))?;
        load.value = Some(copied(value.get("value")?)?);
        Ok(())
    })
}

/// Sets the lifetime of the loaded value to ttl_ms milliseconds, 1 to 10 years, instead of the option's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_load_set_ttl(load: Option<&mut lp_load>, ttl_ms: u64) -> lp_status {
    call(|| {
        let load = load.ok_or_else(|| Failure::argument("the load is NULL"))?;
        load.entry = InsertOptions::ttl(Duration::from_millis(ttl_ms));
        Ok(())
    })
}

/// Calls read with the key's value. If the key is absent, load gets the value first, and it is inserted.
///
/// One thread loads a key at a time; others that miss it meanwhile wait, and get the same value or the same failure.
/// Failures are not kept: the next miss loads again. If the key is written or removed meanwhile, the loaded value is
/// shown, but not inserted. The same holds if it cannot be stored: a key that is too long, a time to live out of
/// bounds.
///
/// load is called with no lock held, and may use the cache. It may not close or free it, nor call this function with
/// the key that it loads: that returns LP_INVALID_ARGUMENT. Two loaders that wait for each other's keys wait for ever.
///
/// Returns LP_NOT_FOUND if the loader returned that; LP_LOAD_FAILED if it returned anything else but 0, or passed no
/// value; LP_STOPPED if read returns other than 0. read may be NULL, to load only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_cache_get_or_load(
    cache: Option<&lp_cache>,
    key: *const c_void,
    key_len: usize,
    load: lp_load_fn,
    load_context: *mut c_void,
    read: lp_value_fn,
    read_context: *mut c_void,
) -> lp_status {
    // SAFETY: the header requires bytes that are readable and unchanged during the call.
    let key = unsafe { Given::new(key, key_len) };
    call(|| {
        let (key, load) = (key.get("key")?, given(load, "loader")?);
        let cache = of(cache)?;
        let place = std::ptr::from_ref(cache).addr();
        refuse_own(place, key)?;
        let loaded = cache.try_get_or_insert_entry_with(key, || {
            let mut taken = lp_load {
                value: None,
                entry: InsertOptions::default(),
            };
            // Without memory to note it, a loader that requests its own key waits for ever.
            let _loading = copied(key).map(|key| Loading::begin(place, key));
            // SAFETY: the header requires a function that may be called with this context; bytes and load live until it
            // returns.
            let returned = unsafe { load(load_context, key.as_ptr().cast(), key.len(), &mut taken) };
            match (returned, taken.value) {
                (0, Some(value)) => Ok((value, taken.entry)),
                (returned, _) => Err(returned),
            }
        });
        let value = loaded.map_err(|error| match error {
            LoadError::Cache(error) => Failure::from(error),
            LoadError::Load(returned) => refused(*returned),
        })?;
        // SAFETY: the header requires a function that may be called with this context.
        unsafe { show_value(read, read_context, &value) }
    })
}

fn refused(returned: c_int) -> Failure {
    match returned {
        0 => Failure::fixed(
            LP_LOAD_FAILED,
            c"the loader returned 0 and handed over no value: lp_load_set() does that",
        ),
        returned if returned == LP_NOT_FOUND as c_int => NOT_FOUND,
        returned => Failure::new(LP_LOAD_FAILED, format!("the loader returned {returned}")),
    }
}

thread_local! {
    /// What this thread loads: the address of the cache, and the key. Usually empty, or one entry.
    static LOADS: RefCell<Vec<(usize, Vec<u8>)>> = const { RefCell::new(Vec::new()) };
}

/// Returns an error if a loader requests the key that it loads, since it would wait for itself.
fn refuse_own(place: usize, key: &[u8]) -> Result<(), Failure> {
    LOADS.with_borrow(|loads| {
        if loads.iter().any(|load| load.0 == place && load.1 == key) {
            return Err(Failure::argument("a loader requested the key that it is to load"));
        }
        Ok(())
    })
}

/// Marks a key as loaded by this thread until it is dropped.
struct Loading;

impl Loading {
    fn begin(place: usize, key: Vec<u8>) -> Self {
        LOADS.with_borrow_mut(|loads| loads.push((place, key)));
        Self
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        LOADS.with_borrow_mut(Vec::pop);
    }
}
