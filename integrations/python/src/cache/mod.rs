//! `leafpress.Cache`, except for the part that is written in Python.
//!
//! `options`, `keys` and `forms` translate Python's arguments to the library's types; `handle` is a cache that may be
//! closed while it is used; `pending_load` and `waits` are loads, `load` their methods; `listener` reports removed
//! records. The other files group methods by subject.

mod advice;
mod forms;
mod handle;
mod keys;
mod lifetime;
mod listener;
mod load;
mod many;
pub mod options;
mod pending_load;
mod scan;
mod single;
mod stats;
mod update;
mod waits;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leafpress::Cache;
use leafpress::cache::InsertOptions;
use pyo3::prelude::*;

use self::forms::{KeyForm, ValueForm};
use self::handle::Handle;
use self::listener::Removal;
use crate::errors;
use crate::fork::OfThisProcess;

/// Longer values are decoded and compressed without the interpreter's lock. Releasing it for less costs more than it
/// gains: another thread that computes may keep it for 5 ms.
const LONG_BYTES: usize = 64 << 10;

/// The base class of `leafpress.Cache`.
#[pyclass(name = "CacheBase", module = "leafpress._leafpress", subclass, weakref, frozen)]
pub struct CacheBase {
    handle: OfThisProcess<Handle>,
    keys: Arc<KeyForm>,
    values: Arc<ValueForm>,
    removal: Option<Arc<Removal>>,
    name: String,
    has_disk: bool,
    /// The time to live of records without their own.
    ttl: Option<Duration>,
    /// Records that expire within this time are loaded anew.
    refresh_ahead: Option<Duration>,
    /// Set if a long value was inserted, or may be on disk.
    has_long: AtomicBool,
}

impl CacheBase {
    /// Calls `work` with the cache.
    #[inline]
    fn with<R>(&self, work: impl FnOnce(&Arc<Cache>) -> PyResult<R>) -> PyResult<R> {
        self.handle.get()?.with(work)
    }

    /// Calls `work` without the interpreter's lock.
    fn unlocked<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Cache) -> Result<R, leafpress::CacheError> + Send,
    ) -> PyResult<R> {
        self.with(|cache| {
            let cache: &Cache = cache;
            py.detach(|| work(cache)).map_err(|error| errors::of_cache(&error))
        })
    }

    /// Calls `work`, and keeps the interpreter's lock unless `is_long`: short work takes about a microsecond.
    #[inline]
    fn short<R: Send>(
        &self,
        py: Python<'_>,
        is_long: bool,
        work: impl FnOnce(&Cache) -> Result<R, leafpress::CacheError> + Send,
    ) -> PyResult<R> {
        if is_long || self.has_disk {
            return self.unlocked(py, work);
        }
        self.with(|cache| work(cache).map_err(|error| errors::of_cache(&error)))
    }

    fn note_length(&self, bytes: usize) -> bool {
        let is_long = bytes > LONG_BYTES;
        if is_long {
            self.has_long.store(true, Ordering::Relaxed);
        }
        is_long
    }

    /// Returns the value of a key as a Python object.
    #[inline]
    fn find<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = key.py();
        let key = self.keys.input(key)?;
        let key: &[u8] = key.as_ref();
        let raw = self.with(|cache| {
            if !self.has_long.load(Ordering::Relaxed) {
                let read = |bytes: &[u8]| self.values.raw(py, bytes);
                let found = if self.has_disk {
                    cache.get_in_memory_with(key, read)
                } else {
                    cache.get_with(key, read)
                };
                match found.map_err(|error| errors::of_cache(&error))? {
                    Some(raw) => return raw,
                    None if !self.has_disk => return Ok(None),
                    None => {}
                }
            }
            let found = py.detach(|| cache.get(key)).map_err(|error| errors::of_cache(&error))?;
            found.map_or(Ok(None), |bytes| {
                self.note_length(bytes.len());
                self.values.raw(py, &bytes)
            })
        })?;
        raw.map(|raw| self.values.finish(raw)).transpose()
    }

    /// Looks the key up before a load, if that needs no wait for a disk. A record that is to be loaded anew is not
    /// found.
    fn find_before_load<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = self.find_in_memory(key)?;
        let (Some(_), Some(period)) = (&found, self.refresh_ahead) else {
            return Ok(found);
        };
        let key = self.keys.input(key)?;
        let left = self.with(|cache| cache.ttl(key.as_ref()).map_err(|error| errors::of_cache(&error)))?;
        Ok(found.filter(|_| left.is_some_and(|left| left > period)))
    }

    /// Looks the key up if that needs no wait for a disk. A miss is not counted.
    fn find_in_memory<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = key.py();
        let key = self.keys.input(key)?;
        let raw = self.with(|cache| {
            let found = cache.get_in_memory_with(key.as_ref(), |bytes| self.values.raw(py, bytes));
            found.map_err(|error| errors::of_cache(&error))?.unwrap_or(Ok(None))
        })?;
        raw.map(|raw| self.values.finish(raw)).transpose()
    }
}

/// Returns the insert options of a record that lives for `ttl`, and for `time_to_idle` without a read, and has `tags`:
/// one, or an iterable of several.
fn entry(
    ttl: Option<&Bound<'_, PyAny>>,
    tags: Option<&Bound<'_, PyAny>>,
    time_to_idle: Option<&Bound<'_, PyAny>>,
) -> PyResult<InsertOptions> {
    let mut entry = InsertOptions::default();
    entry.ttl = options::time_or_none("ttl", ttl)?;
    entry.time_to_idle = options::time_or_none("time_to_idle", time_to_idle)?;
    Ok(options::tags(tags)?.into_iter().fold(entry, InsertOptions::tag))
}

/// Adds the classes of this module.
///
/// # Errors
/// Where they cannot be added.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    listener::watch(module)?;
    load::register(module)?;
    scan::register(module)?;
    module.add("MIN_MEMORY_BYTES", leafpress::cache::MIN_MEMORY_BYTES)?;
    module.add_class::<advice::CacheAdvice>()?;
    module.add_class::<CacheBase>()
}
