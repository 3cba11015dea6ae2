//! The synchronisation primitives of the tree and the pool, swapped for a model checker's under `--cfg shuttle`.
//!
//! Only what orders their own steps is swapped: node pointers, locks, landing counts, pins, epochs and what each thread notes of them. Statistics stay on `std`.

#[cfg(not(shuttle))]
mod imp {
    pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};

    pub(crate) use thread_local::ThreadLocal as PerThread;

    /// Spins for some nanoseconds, then gives the processor up.
    #[derive(Default)]
    pub(crate) struct Patience(u32);

    impl Patience {
        pub(crate) fn wait(&mut self) {
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
    pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};

    /// `parking_lot`'s interface over shuttle's mutex.
    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

    /// A lock that [`Condvar::wait`] can give up and take again.
    pub(crate) struct MutexGuard<'a, T> {
        mutex: &'a Mutex<T>,
        held: Option<shuttle::sync::MutexGuard<'a, T>>,
    }

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(shuttle::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            let held = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            MutexGuard {
                mutex: self,
                held: Some(held),
            }
        }

        pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            let held = Some(self.0.try_lock().ok()?);
            Some(MutexGuard { mutex: self, held })
        }
    }

    impl<T> std::ops::Deref for MutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            self.held.as_ref().expect("held but for the time of a wait")
        }
    }

    impl<T> std::ops::DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.held.as_mut().expect("held but for the time of a wait")
        }
    }

    /// `parking_lot`'s interface over shuttle's condition variable: a call that is missed is one for ever.
    #[derive(Debug, Default)]
    pub(crate) struct Condvar(shuttle::sync::Condvar);

    impl Condvar {
        pub(crate) fn notify_one(&self) {
            self.0.notify_one();
        }

        pub(crate) fn notify_all(&self) {
            self.0.notify_all();
        }

        pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
            if let Some(held) = guard.held.take() {
                let held = self.0.wait(held).unwrap_or_else(|poisoned| poisoned.into_inner());
                guard.held = Some(held);
            }
        }

        /// The time is always over at once: there is no clock in a model.
        pub(crate) fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _timeout: std::time::Duration) {
            guard.held = None;
            shuttle::thread::yield_now();
            guard.held = guard.mutex.lock().held;
        }
    }

    /// `thread_local`'s interface where the threads are the model checker's, which run on one of the system's.
    pub(crate) struct PerThread<T>(std::sync::Mutex<Vec<(shuttle::thread::ThreadId, *mut T)>>);

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
        pub(crate) fn get(&self) -> Option<&T> {
            Some(self.get_or_default())
        }

        pub(crate) fn get_or_default(&self) -> &T {
            let id = shuttle::thread::current().id();
            let mut all = self.0.lock().expect("no panic under the lock");
            let at = all.iter().position(|(of, _)| *of == id).unwrap_or_else(|| {
                all.push((id, Box::into_raw(Box::default())));
                all.len() - 1
            });
            // SAFETY: it stays until `self` is dropped.
            unsafe { &*all[at].1 }
        }

        pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
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
    pub(crate) struct Patience;

    impl Patience {
        pub(crate) fn wait(&mut self) {
            shuttle::thread::yield_now();
        }
    }
}

pub(crate) use imp::*;
