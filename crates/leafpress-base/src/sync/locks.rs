//! The standard library's locks, without poison: what panics under a lock leaves what is right before and after each step.
//!
//! A lock is all in its own place. `parking_lot` keeps who waits in one table of the process: a child of `fork` has a copy of it with threads that
//! are not there, whose memory its own threads are given.

use std::sync;
use std::time::Duration;

/// A mutex that knows no poison.
#[derive(Debug, Default)]
pub struct Mutex<T>(sync::Mutex<T>);

/// A lock that [`Condvar::wait`] can give up and take again.
pub struct MutexGuard<'a, T> {
    /// There but for the time of a wait.
    held: Option<sync::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    /// Creates an unlocked mutex.
    pub const fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    /// Locks the mutex. A panic of an earlier holder is ignored.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let held = self.0.lock().unwrap_or_else(sync::PoisonError::into_inner);
        MutexGuard { held: Some(held) }
    }

    /// Locks the mutex unless another thread holds it.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let held = match self.0.try_lock() {
            Ok(held) => held,
            Err(sync::TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(sync::TryLockError::WouldBlock) => return None,
        };
        Some(MutexGuard { held: Some(held) })
    }
}

impl<T> std::ops::Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.held.as_ref().expect("held but for the time of a wait")
    }
}

impl<T> std::ops::DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.held.as_mut().expect("held but for the time of a wait")
    }
}

/// A lock of many readers or one writer that knows no poison.
#[derive(Debug, Default)]
pub struct RwLock<T>(sync::RwLock<T>);

pub use sync::{RwLockReadGuard, RwLockWriteGuard};

impl<T> RwLock<T> {
    /// Creates an unlocked lock.
    pub fn new(value: T) -> Self {
        Self(sync::RwLock::new(value))
    }

    /// Locks for shared access. A panic of an earlier holder is ignored.
    #[inline]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(sync::PoisonError::into_inner)
    }

    /// Locks for exclusive access. A panic of an earlier holder is ignored.
    #[inline]
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(sync::PoisonError::into_inner)
    }
}

/// A condition variable. A wait may end though nobody called.
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
            guard.held = Some(self.0.wait(held).unwrap_or_else(sync::PoisonError::into_inner));
        }
    }

    /// Waits until notified or until `timeout` has passed, and reacquires the lock.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, timeout: Duration) {
        if let Some(held) = guard.held.take() {
            let waited = self.0.wait_timeout(held, timeout);
            guard.held = Some(waited.unwrap_or_else(sync::PoisonError::into_inner).0);
        }
    }
}
