//! The synchronisation primitives of the tree, swapped for a model checker's under `--cfg shuttle`.
//!
//! Only what orders the tree's own steps is swapped: node pointers, node locks, landing counts. Statistics stay on `std`.

#[cfg(not(shuttle))]
mod imp {
    use parking_lot::lock_api::RawMutex as _;

    pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32};

    /// A one-byte lock that lives in a node.
    pub(crate) struct NodeLock(parking_lot::RawMutex);

    impl NodeLock {
        pub(crate) const fn new() -> Self {
            Self(parking_lot::RawMutex::INIT)
        }

        pub(crate) fn lock(&self) {
            self.0.lock();
        }

        pub(crate) fn try_lock(&self) -> bool {
            self.0.try_lock()
        }

        /// # Safety
        /// The calling thread holds the lock.
        pub(crate) unsafe fn unlock(&self) {
            // SAFETY: the caller holds the lock.
            unsafe { self.0.unlock() }
        }
    }
}

#[cfg(shuttle)]
mod imp {
    use std::sync::atomic::Ordering;

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

    /// A spin lock whose waiting is visible to the scheduler.
    pub(crate) struct NodeLock(AtomicBool);

    impl NodeLock {
        pub(crate) fn new() -> Self {
            Self(AtomicBool::new(false))
        }

        pub(crate) fn lock(&self) {
            while !self.try_lock() {
                shuttle::thread::yield_now();
            }
        }

        pub(crate) fn try_lock(&self) -> bool {
            self.0
                .compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        }

        /// # Safety
        /// The calling thread holds the lock.
        pub(crate) unsafe fn unlock(&self) {
            self.0.store(false, Ordering::Release);
        }
    }
}

pub(crate) use imp::*;

/// Loads a node's address such that `guard` protects the node until it is dropped.
#[inline(always)]
pub(crate) fn load(pointer: &AtomicPtr<u8>, guard: &seize::LocalGuard<'_>) -> *mut u8 {
    #[cfg(not(shuttle))]
    {
        seize::Guard::protect(guard, pointer, std::sync::atomic::Ordering::Acquire)
    }
    #[cfg(shuttle)]
    {
        let _ = guard;
        pointer.load(std::sync::atomic::Ordering::SeqCst)
    }
}
