//! The interface of `locks`, implemented by the model checker's locks.

use shuttle::sync;

/// A mutex without poisoning.
#[derive(Debug, Default)]
pub struct Mutex<T>(sync::Mutex<T>);

/// A mutex guard that [`Condvar::wait`] can release and reacquire.
pub struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    held: Option<sync::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    /// Creates an unlocked mutex.
    pub fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    /// Locks the mutex. A panic of an earlier holder is ignored.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let held = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        self.guard(held)
    }

    /// Locks the mutex unless another thread holds it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        Some(self.guard(self.0.try_lock().ok()?))
    }

    fn guard<'a>(&'a self, held: sync::MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        MutexGuard {
            mutex: self,
            held: Some(held),
        }
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

/// A condition variable. In a model, a missed notification is lost for good.
#[derive(Debug, Default)]
pub struct Condvar(sync::Condvar);

impl Condvar {
    /// Wakes one waiting thread.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all waiting threads.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }

    /// Waits until notified, and reacquires the lock.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        if let Some(held) = guard.held.take() {
            let held = self.0.wait(held).unwrap_or_else(|poisoned| poisoned.into_inner());
            guard.held = Some(held);
        }
    }

    /// Returns at once, as if the time had passed: there is no clock in a model.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _timeout: std::time::Duration) {
        guard.held = None;
        shuttle::thread::yield_now();
        guard.held = guard.mutex.lock().held;
    }
}
