//! The synchronisation primitives of the tree and the pool, swapped for a model checker's under `--cfg shuttle`.
//!
//! Only what orders their own steps is swapped: node pointers, locks, landing counts, pins, epochs and what each thread notes of them. Statistics stay on `std`.

mod latch;
mod locks;
#[cfg(shuttle)]
mod model_locks;
/// Of the system's threads, whatever the model checker's are.
pub mod per_core;
/// Threads of the system's, whatever the model checker's are.
#[allow(unsafe_code)]
pub mod per_thread;
pub mod priority;
pub mod runtime;
pub mod worker;

#[cfg(not(shuttle))]
mod imp {
    pub use super::locks::{Condvar, Mutex, MutexGuard};
    pub use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};

    pub use super::per_thread::PerThread;

    /// Spins for some nanoseconds, then gives the processor up.
    #[derive(Default)]
    pub struct Patience(u32);

    impl Patience {
        /// Waits a little longer than the call before.
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

    /// The same interface where the threads are the model checker's, which run on one of the system's.
    pub struct PerThread<T>(std::sync::Mutex<Vec<(shuttle::thread::ThreadId, *mut T)>>);

    // SAFETY: as of `thread_local::ThreadLocal`.
    unsafe impl<T: Send> Send for PerThread<T> {}
    // SAFETY: as above.
    unsafe impl<T: Send> Sync for PerThread<T> {}

    impl<T> Default for PerThread<T> {
        fn default() -> Self {
            Self(std::sync::Mutex::default())
        }
    }

    impl<T: Default + Send + Sync> PerThread<T> {
        pub fn get(&self) -> Option<&T> {
            self.get_or_make()
        }

        pub fn get_or_make(&self) -> Option<&T> {
            let id = shuttle::thread::current().id();
            let mut all = self.0.lock().expect("no panic under the lock");
            let at = all.iter().position(|(of, _)| *of == id).unwrap_or_else(|| {
                all.push((id, Box::into_raw(Box::default())));
                all.len() - 1
            });
            // SAFETY: it stays until `self` is dropped.
            Some(unsafe { &*all[at].1 })
        }

        pub fn iter(&self) -> impl Iterator<Item = &T> {
            let all = self.0.lock().expect("no panic under the lock").clone();
            // SAFETY: as above; the bounds ask for what other threads may look at.
            all.into_iter().map(|(_, item)| unsafe { &*item })
        }
    }

    impl<T> Drop for PerThread<T> {
        fn drop(&mut self) {
            for (_, item) in self.0.get_mut().expect("no panic under the lock").drain(..) {
                // SAFETY: it came from `Box::into_raw`, and all borrows of `self` are over.
                drop(unsafe { Box::from_raw(item) });
            }
        }
    }

    /// Waiting that the scheduler sees.
    #[derive(Default)]
    pub struct Patience;

    impl Patience {
        pub fn wait(&mut self) {
            shuttle::thread::yield_now();
        }
    }
}

/// Locks of what the model checker does not see: always of the system's threads.
pub mod plain {
    pub use super::locks::{Condvar, Mutex, MutexGuard, RwLock, RwLockWriteGuard};
}

pub use imp::*;
pub use latch::{Latch, LatchGuard};
