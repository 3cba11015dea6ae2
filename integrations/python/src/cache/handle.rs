//! A cache that may be closed while other threads use it.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use leafpress::{Cache, CacheError};
use pyo3::prelude::*;

use super::pending_load::PendingLoad;
use crate::errors::{self, Class};
use crate::lock::Mutex;

/// Interval between two checks whether the last user is gone.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

thread_local! {
    /// The number of this thread's current calls of caches, and calls of Python from within them.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Counts as a use of a cache by this thread, until it is dropped.
pub struct InUse(());

impl InUse {
    pub fn begin() -> Self {
        DEPTH.set(DEPTH.get() + 1);
        Self(())
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// A cache, open or closed.
pub struct Handle {
    cache: ArcSwapOption<Cache>,
    /// Loads in progress, which hold the cache for longer than a call.
    pending: Mutex<Vec<std::sync::Weak<PendingLoad>>>,
    /// The file of the disk tier.
    path: Option<PathBuf>,
    /// A number that is unique in the process.
    pub serial: u64,
}

impl Handle {
    pub fn new(cache: Cache, path: Option<PathBuf>) -> Self {
        static SERIALS: AtomicU64 = AtomicU64::new(1);
        Self {
            cache: ArcSwapOption::from_pointee(cache),
            pending: Mutex::default(),
            path,
            serial: SERIALS.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Calls `work` with the cache.
    ///
    /// # Errors
    /// `Closed`, or what `work` says.
    #[inline]
    pub fn with<R>(&self, work: impl FnOnce(&Arc<Cache>) -> PyResult<R>) -> PyResult<R> {
        // A thread that closes the cache waits until this is dropped.
        let cache = self.cache.load();
        let _in_use = InUse::begin();
        work(cache.as_ref().ok_or_else(errors::closed)?)
    }

    pub fn is_closed(&self) -> bool {
        self.cache.load().is_none()
    }

    /// Registers a load, so that it ends when the cache is closed.
    pub fn remember(&self, load: &Arc<PendingLoad>) {
        let mut pending = self.pending.lock();
        if pending.len() == pending.capacity() {
            pending.retain(|load| load.strong_count() > 0);
        }
        pending.push(Arc::downgrade(load));
    }

    /// Waits for calls in progress, ends loads, and closes the cache: its records are moved to its disk tier, if it has
    /// one. The interpreter's lock must not be held. Closing a closed cache does nothing.
    ///
    /// # Errors
    /// `InvalidOption` from within a call of the same thread; errors of the disk.
    pub fn close(&self, keep: bool) -> PyResult<()> {
        if DEPTH.get() > 0 {
            return Err(Class::Error.error("a cache cannot be closed by what it calls: close it elsewhere"));
        }
        let Some(cache) = self.cache.swap(None) else {
            return Ok(());
        };
        for load in self.pending.lock().drain(..) {
            if let Some(load) = load.upgrade() {
                load.end();
            }
        }
        let cache = alone(cache);
        if keep {
            return cache
                .close()
                .map_err(|error: CacheError| errors::of_disk(&error, self.path.as_deref()));
        }
        drop(cache);
        Ok(())
    }
}

impl Handle {
    /// Releases the cache. The interpreter's lock must not be held.
    pub fn drop_cache(&self) {
        let cache = self.cache.swap(None);
        if DEPTH.get() == 0 {
            drop(cache);
        } else {
            // One of the cache's own threads, which reports a record, is the last to hold it, and cannot wait for
            // itself. Where no thread can be started the cache stays.
            let cache = std::mem::ManuallyDrop::new(cache);
            let _ = std::thread::Builder::new().spawn(move || drop(std::mem::ManuallyDrop::into_inner(cache)));
        }
    }
}

/// Returns the cache once no other thread holds it. No thread can take it any more; those that hold it are about to
/// release it.
fn alone(mut cache: Arc<Cache>) -> Cache {
    loop {
        match Arc::try_unwrap(cache) {
            Ok(cache) => return cache,
            Err(shared) => cache = shared,
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}
