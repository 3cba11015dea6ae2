//! The synchronisation primitives of the tree and the pool, replaced by a model checker's under `--cfg shuttle`.
//!
//! Only the primitives that order the steps of tree and pool are replaced: node pointers, locks, landing counts, pins,
//! epochs and per-thread slots. Statistics use `std`.

pub mod counts;
mod latch;
mod locks;
#[cfg(shuttle)]
mod model_locks;
/// Slots are chosen by system thread, also under the model checker.
pub mod per_core;
/// Values are per system thread, also under the model checker.
#[allow(unsafe_code)]
pub mod per_thread;
pub mod priority;
pub mod runtime;
#[allow(unsafe_code)]
pub mod threads;
pub mod worker;

#[cfg(not(shuttle))]
mod imp {
    pub use super::locks::{Condvar, Mutex, MutexGuard};
    pub use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};

    pub use super::per_thread::PerThread;

    /// Backoff: spins for some nanoseconds, then yields the processor.
    #[derive(Default)]
    pub struct Patience(u32);

    impl Patience {
        /// Waits a little longer than the previous call.
        pub fn wait(&mut self) {
            if self.0 < 7 {
                for _ in 0..1 << self.0 {
                    std::hint::spin_loop();
                }
                self.0 += 1;
            } else {
                std::thread::yield_now();
            }
        }
    }
}

#[cfg(shuttle)]
mod imp {
    pub use super::model_locks::{Condvar, Mutex, MutexGuard};
    pub use shuttle::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};

    /// `PerThread` for the model checker, whose threads all run on one system thread.
    pub struct PerThread<T>(std::sync::Mutex<Vec<(shuttle::thread::ThreadId, *mut T)>>);

    // SAFETY: other threads get only shared references to the items, for which `iter` requires `T: Sync`; dropping
    // `self` elsewhere requires `T: Send`.
    unsafe impl<T: Send> Send for PerThread<T> {}
    // SAFETY: the list is behind a mutex; each thread's item is created by it, and shared access to others requires `T:
    // Sync`.
    unsafe impl<T: Send> Sync for PerThread<T> {}

    impl<T> Default for PerThread<T> {
        fn default() -> Self {
            Self(std::sync::Mutex::default())
        }
    }

    impl<T: Default + Send + Sync> PerThread<T> {
        /// Returns the calling thread's item, which always exists.
        pub fn get(&self) -> Option<&T> {
            self.get_or_make()
        }

        /// Returns the calling thread's item, creating it if necessary.
        pub fn get_or_make(&self) -> Option<&T> {
            let id = shuttle::thread::current().id();
            let mut all = self.0.lock().expect("no panic under the lock");
            let at = all.iter().position(|(of, _)| *of == id).unwrap_or_else(|| {
                all.push((id, Box::into_raw(Box::default())));
                all.len() - 1
            });
            // SAFETY: the item is boxed and lives until `self` is dropped.
            Some(unsafe { &*all[at].1 })
        }

        /// Returns all threads' items.
        pub fn iter(&self) -> impl Iterator<Item = &T> {
            let all = self.0.lock().expect("no panic under the lock").clone();
            // SAFETY: the items are boxed and live until `self` is dropped; the bounds require that other threads may
            // access them.
            all.into_iter().map(|(_, item)| unsafe { &*item })
        }
    }

    impl<T> Drop for PerThread<T> {
        fn drop(&mut self) {
            for (_, item) in self.0.get_mut().expect("no panic under the lock").drain(..) {
                // SAFETY: it came from `Box::into_raw`, and `&mut self` shows that all borrows are over.
                drop(unsafe { Box::from_raw(item) });
            }
        }
    }

    /// Backoff that is visible to the model checker's scheduler.
    #[derive(Default)]
    pub struct Patience;

    impl Patience {
        /// Yields to the scheduler.
        pub fn wait(&mut self) {
            shuttle::thread::yield_now();
        }
    }
}

/// Locks that are not modelled: always the system's.
pub mod plain {
    pub use super::locks::{Condvar, Mutex, MutexGuard, RwLock, RwLockWriteGuard};
}

pub use imp::*;
pub use latch::{Latch, LatchGuard};
