//! Refuses uses of the parent's objects in a forked process.
//!
//! Trees and caches have threads and locks. In a child of `fork` the threads do not exist and a lock that one of them
//! held stays locked, so objects made before the fork raise an exception instead of waiting for ever.

use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;

use crate::errors::Class;

static FORKS: AtomicU64 = AtomicU64::new(0);

/// Returns the number of forks between the process that loaded the module and this one.
pub fn forks() -> u64 {
    FORKS.load(Ordering::Relaxed)
}

extern "C" fn count() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Counts forks from now on.
pub fn watch() {
    static ONCE: Once = Once::new();
    // SAFETY: `count` exists as long as the process, and does only what is allowed after a fork: it adds to an atomic.
    // Extension modules are never unloaded.
    ONCE.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(count));
    });
}

/// An object that only the process that made it may use and release.
pub struct OfThisProcess<T> {
    /// [`Some`] until it is ended.
    inner: Option<T>,
    forks: u64,
    what: &'static str,
}

impl<T> OfThisProcess<T> {
    /// `what` is its name in messages.
    pub fn new(what: &'static str, inner: T) -> Self {
        Self {
            inner: Some(inner),
            forks: FORKS.load(Ordering::Relaxed),
            what,
        }
    }

    fn is_of_this_process(&self) -> bool {
        self.forks == FORKS.load(Ordering::Relaxed)
    }

    /// # Errors
    /// `ForkedProcess` in a child of the process that made it.
    #[inline]
    pub fn get(&self) -> PyResult<&T> {
        match &self.inner {
            Some(inner) if self.is_of_this_process() => Ok(inner),
            _ => Err(self.refuse()),
        }
    }

    /// Releases it now, if that is allowed.
    pub fn end(&mut self) {
        let inner = self.inner.take();
        // In a child its threads cannot be waited for. The memory is the parent's, of which the child has a copy until
        // it ends.
        if !self.is_of_this_process() {
            std::mem::forget(inner);
        }
    }

    #[cold]
    fn refuse(&self) -> PyErr {
        Class::ForkedProcess.error(format!(
            "this {} was made before the process forked, and its threads are not in the child: make another in the \
             child, or start processes by multiprocessing's \"spawn\" or \"forkserver\"",
            self.what
        ))
    }
}

impl<T> Drop for OfThisProcess<T> {
    fn drop(&mut self) {
        self.end();
    }
}
