//! The synchronisation primitives of the tree, swapped for a model checker's under `--cfg shuttle`.
//!
//! Only what orders the tree's own steps is swapped: node pointers, node locks, landing counts. Statistics stay on `std`.

use std::sync::atomic::Ordering;

#[cfg(not(shuttle))]
mod imp {
    pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32};

    /// Spins for some nanoseconds, then gives the processor up.
    #[derive(Default)]
    pub(super) struct Patience(u32);

    impl Patience {
        pub(super) fn wait(&mut self) {
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
    pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32};

    /// `parking_lot`'s interface over shuttle's mutex.
    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

    pub(crate) type MutexGuard<'a, T> = shuttle::sync::MutexGuard<'a, T>;

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(shuttle::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
        }

        pub(crate) fn get_mut(&mut self) -> &mut T {
            self.0.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner())
        }
    }

    /// `parking_lot`'s interface over shuttle's condition variable.
    #[derive(Debug, Default)]
    pub(crate) struct Condvar;

    impl Condvar {
        pub(crate) fn notify_one(&self) {}
        pub(crate) fn notify_all(&self) {}
        /// Gives the lock up for a turn: callers wait in a loop.
        pub(crate) fn wait<T>(&self, _guard: &mut MutexGuard<'_, T>) {
            shuttle::thread::yield_now();
        }
    }

    /// Waiting that the scheduler sees.
    #[derive(Default)]
    pub(super) struct Patience;

    impl Patience {
        pub(super) fn wait(&mut self) {
            shuttle::thread::yield_now();
        }
    }
}

pub(crate) use imp::*;

/// A one-byte lock that lives in a node. It is held for microseconds and rarely waited for, and released by a plain store: a
/// read-modify-write, which a lock that can wake sleepers needs, would wait for every store made under the lock to leave the core.
pub(crate) struct NodeLock(AtomicBool);

impl NodeLock {
    pub(crate) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    #[inline]
    pub(crate) fn lock(&self) {
        let mut patience = imp::Patience::default();
        while !self.try_lock() {
            patience.wait();
        }
    }

    #[inline]
    pub(crate) fn try_lock(&self) -> bool {
        !self.0.load(Ordering::Relaxed)
            && self
                .0
                .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }

    /// # Safety
    /// The calling thread holds the lock.
    #[inline]
    pub(crate) unsafe fn unlock(&self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Loads a node's address such that `guard` protects the node until it is dropped.
#[inline(always)]
pub(crate) fn load(pointer: &AtomicPtr<u8>, guard: &seize::LocalGuard<'_>) -> *mut u8 {
    #[cfg(not(shuttle))]
    {
        seize::Guard::protect(guard, pointer, Ordering::Acquire)
    }
    #[cfg(shuttle)]
    {
        let _ = guard;
        pointer.load(Ordering::SeqCst)
    }
}
