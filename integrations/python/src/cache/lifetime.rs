//! Opening, resizing and closing a cache.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use leafpress::Cache;
use leafpress::cache::{Disk, RawShare};
use pyo3::PyTraverseError;
use pyo3::exceptions::PyTypeError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;

use super::forms::{self, ValueForm};
use super::handle::Handle;
use super::listener::Removal;
use super::{CacheBase, options};
use crate::codec::dictionary_of;
use crate::errors::{self, Class};
use crate::fork::OfThisProcess;

/// The default memory of a cache.
const MEMORY_BYTES: u64 = 64 << 20;
/// The default size of a disk tier: a constant, since the records left on disk are found again by it.
const DISK_BYTES: u64 = 1 << 30;

/// The constructor's options.
struct Options<'a, 'py> {
    memory: Option<&'a Bound<'py, PyAny>>,
    disk: Option<PathBuf>,
    disk_bytes: Option<&'a Bound<'py, PyAny>>,
    recover_after_crash: bool,
    overwrite: bool,
    times: [Option<&'a Bound<'py, PyAny>>; 5],
    ttl_jitter: u8,
    advice: bool,
    codec: Option<&'a str>,
    share: Option<&'a str>,
    miss_cost: Option<&'a Bound<'py, PyAny>>,
    name: Option<&'a str>,
    dictionary: Option<&'a Bound<'py, PyAny>>,
}

impl Options<'_, '_> {
    /// Returns the library's builder.
    fn builder(self) -> PyResult<leafpress::cache::CacheBuilder> {
        let mut builder = Cache::builder().memory(match self.memory {
            Some(memory) => options::bytes("memory", memory)?,
            None => MEMORY_BYTES,
        });
        let [ttl, to_idle, refresh, stale, stale_if_error] = self.times;
        if let Some(ttl) = options::time_or_none("ttl", ttl)? {
            builder = builder.default_ttl(ttl);
        }
        if let Some(time) = options::time_or_none("time_to_idle", to_idle)? {
            builder = builder.time_to_idle(time);
        }
        if let Some(time) = options::time_or_none("refresh_ahead", refresh)? {
            builder = builder.refresh_ahead(time);
        }
        if let Some(time) = options::time_or_none("stale_while_revalidate", stale)? {
            builder = builder.stale_while_revalidate(time);
        }
        if let Some(time) = options::time_or_none("stale_if_error", stale_if_error)? {
            builder = builder.stale_if_error(time);
        }
        builder = builder.ttl_jitter(self.ttl_jitter).advice(self.advice);
        if let Some(codec) = self.codec {
            builder = builder.codec(codec.parse().map_err(|error| errors::of_codec(&error))?);
        }
        if let Some(share) = self.share {
            let share = share.parse::<RawShare>();
            builder = builder.share(share.map_err(|error| Class::InvalidOption.error(format!("share: {error}")))?);
        }
        if let Some(cost) = options::time_or_none("miss_cost", self.miss_cost)? {
            builder = builder.miss_cost(cost);
        }
        if let Some(name) = self.name {
            builder = builder.name(name);
        }
        if let Some(dictionary) = self.dictionary {
            builder = builder.initial_dictionary(dictionary_of(dictionary)?);
        }
        match (self.disk, self.disk_bytes) {
            (Some(path), bytes) => {
                let bytes = bytes.map_or(Ok(DISK_BYTES), |bytes| options::bytes("disk_bytes", bytes))?;
                let disk = Disk::file(path, bytes)
                    .recover_after_crash(self.recover_after_crash)
                    .overwrite(self.overwrite);
                Ok(builder.disk(disk))
            }
            (None, None) if self.recover_after_crash => {
                Err(Class::InvalidOption.error("recover_after_crash: name the file too, by disk="))
            }
            (None, None) if self.overwrite => Err(Class::InvalidOption.error("overwrite: name the file too, by disk=")),
            (None, None) => Ok(builder),
            (None, Some(_)) => Err(Class::InvalidOption.error("disk_bytes: name the file too, by disk=")),
        }
    }
}

#[pymethods]
impl CacheBase {
    #[new]
    #[pyo3(
        signature = (memory=None, *, disk=None, disk_bytes=None, recover_after_crash=false, overwrite=false, ttl=None,
            time_to_idle=None, refresh_ahead=None, stale_while_revalidate=None, stale_if_error=None, ttl_jitter=None,
            codec=None, share=None, miss_cost=None, serializer=None, encoding=None, name=None, on_removal=None,
            advice=false, dictionary=None),
        text_signature = "(memory='64MiB', *, disk=None, disk_bytes='1GiB', recover_after_crash=False, \
            overwrite=False, ttl=None, time_to_idle=None, refresh_ahead=None, stale_while_revalidate=None, \
            stale_if_error=None, ttl_jitter=0, codec='trial:memory', share='adaptive', miss_cost=None, \
            serializer=None, encoding=None, name=None, on_removal=None, advice=False, dictionary=None)"
    )]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        memory: Option<&Bound<'_, PyAny>>,
        disk: Option<PathBuf>,
        disk_bytes: Option<&Bound<'_, PyAny>>,
        recover_after_crash: bool,
        overwrite: bool,
        ttl: Option<&Bound<'_, PyAny>>,
        time_to_idle: Option<&Bound<'_, PyAny>>,
        refresh_ahead: Option<&Bound<'_, PyAny>>,
        stale_while_revalidate: Option<&Bound<'_, PyAny>>,
        stale_if_error: Option<&Bound<'_, PyAny>>,
        ttl_jitter: Option<&Bound<'_, PyAny>>,
        codec: Option<&str>,
        share: Option<&str>,
        miss_cost: Option<&Bound<'_, PyAny>>,
        serializer: Option<&Bound<'_, PyAny>>,
        encoding: Option<&Bound<'_, PyAny>>,
        name: Option<&str>,
        on_removal: Option<Bound<'_, PyAny>>,
        advice: bool,
        dictionary: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let path = disk.clone();
        let (keys, values) = forms::forms(py, serializer, encoding, path.is_some())?;
        let times = [ttl, time_to_idle, refresh_ahead, stale_while_revalidate, stale_if_error];
        let mut builder = Options {
            memory,
            disk,
            disk_bytes,
            recover_after_crash,
            overwrite,
            times,
            ttl_jitter: options::percent_or_zero("ttl_jitter", ttl_jitter)?,
            advice,
            codec,
            share,
            miss_cost,
            name,
            dictionary,
        }
        .builder()?;
        let (keys, values) = (Arc::new(keys), Arc::new(values));
        let removal = on_removal
            .map(|callback| removal(callback, &keys, &values))
            .transpose()?;
        if let Some(removal) = &removal {
            let removal = Arc::clone(removal);
            builder = builder.listener(move |key, value, cause| removal.report(key, value, cause));
        }
        let cache = py
            .detach(|| builder.build())
            .map_err(|error| errors::of_disk(&error, path.as_deref()))?;
        Ok(Self {
            name: cache.name().to_owned(),
            has_disk: path.is_some(),
            ttl: options::time_or_none("ttl", ttl)?,
            refresh_ahead: options::time_or_none("refresh_ahead", refresh_ahead)?,
            handle: OfThisProcess::new("cache", Handle::new(cache, path)),
            keys,
            values,
            removal,
            has_long: AtomicBool::new(false),
        })
    }

    /// End the cache. With a disk tier what is in memory goes there, and the next cache with the same file begins with
    /// it.
    ///
    /// Every later call raises Closed; closing again does nothing. A cache that is not closed, but released, leaves
    /// nothing on disk.
    ///
    /// >>> cache = Cache()
    /// >>> cache.close()
    /// >>> cache.closed
    /// True
    #[pyo3(text_signature = "($self)")]
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let handle = self.handle.get()?;
        py.detach(|| handle.close(true))
    }

    /// Returns whether the cache has been closed.
    #[getter]
    fn closed(&self) -> PyResult<bool> {
        Ok(self.handle.get()?.is_closed())
    }

    /// What the cache is called in messages and figures.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of memory that the cache may hold, all included. May be set, as a number or as text like "64MiB"; when
    /// that returns, the cache holds no more.
    ///
    /// >>> cache = Cache("64MiB")
    /// >>> cache.memory = "32MiB"
    /// >>> cache.memory
    /// 33554432
    #[getter]
    fn get_memory(&self) -> PyResult<u64> {
        self.with(|cache| Ok(cache.memory()))
    }

    #[setter]
    fn set_memory(&self, py: Python<'_>, memory: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = options::bytes("memory", memory)?;
        self.unlocked(py, |cache| cache.set_memory(bytes))
    }

    /// Bytes of memory that the cache may hold: cachetools' word for `memory`.
    #[getter]
    fn maxsize(&self) -> PyResult<u64> {
        self.get_memory()
    }

    /// Bytes of memory that the cache holds, all included.
    #[getter]
    fn currsize(&self) -> PyResult<u64> {
        self.with(|cache| Ok(cache.bytes_held()))
    }

    /// Returns whether there is a disk tier.
    #[getter]
    fn has_disk(&self) -> bool {
        self.has_disk
    }

    #[getter]
    fn _keys_are_bytes(&self) -> bool {
        self.keys.are_bytes()
    }

    /// Remove every record, in memory and on disk.
    ///
    /// >>> cache = Cache(encoding="utf-8")
    /// >>> cache["apple"] = "red"
    /// >>> cache.clear()
    /// >>> len(cache)
    /// 0
    #[pyo3(text_signature = "($self)")]
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.unlocked(py, Cache::clear)
    }

    /// Do the work that the cache would do some time after the last write: remove expired records, compact, write what
    /// waits for the disk.
    #[pyo3(text_signature = "($self)")]
    fn settle(&self, py: Python<'_>) -> PyResult<()> {
        self.unlocked(py, Cache::settle)
    }

    fn __repr__(&self) -> PyResult<String> {
        let handle = self.handle.get()?;
        if handle.is_closed() {
            return Ok(format!("<leafpress.Cache {:?}, closed>", self.name));
        }
        handle.with(|cache| {
            Ok(format!(
                "<leafpress.Cache {:?}: {} records in {} of {} bytes{}>",
                self.name,
                cache.len(),
                cache.bytes_held(),
                cache.memory(),
                if self.has_disk { ", and a disk" } else { "" }
            ))
        })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The listener has no references of its own to these objects.
        self.values.traverse(&visit)?;
        self.removal.as_ref().map_or(Ok(()), |removal| removal.traverse(&visit))
    }

    fn __clear__(&self) {
        if let Some(removal) = &self.removal {
            removal.clear();
        }
    }
}

fn removal(
    callback: Bound<'_, PyAny>,
    keys: &Arc<super::forms::KeyForm>,
    values: &Arc<ValueForm>,
) -> PyResult<Arc<Removal>> {
    if !callback.is_callable() {
        return Err(PyTypeError::new_err(format!(
            "on_removal must be a callable of key, value and cause, not {}",
            forms::name_of(&callback)
        )));
    }
    Ok(Removal::new(callback.unbind(), keys, values))
}

impl Drop for CacheBase {
    fn drop(&mut self) {
        // The cache's threads may wait for the interpreter's lock, to report a record, and are waited for. Loads that
        // are left have the cache for longer, and release it in this way as well.
        let Ok(handle) = self.handle.get() else { return };
        let _ = Python::try_attach(|py| py.detach(|| handle.drop_cache()));
    }
}
