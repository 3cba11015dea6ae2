//! The standard library's locks without poisoning: code under a lock keeps its invariants at every step that may panic.
//!
//! The state of each lock is entirely inside it. `parking_lot` keeps waiters in one table of the process: a child of
//! `fork` has a copy of that table with threads that do not exist in the child, and whose memory is reused by the
//! child's own threads.

use std::sync;
use std::time::Duration;

/// A mutex without poisoning.
#[derive(Debug, Default)]
pub struct Mutex<T>(sync::Mutex<T>);

/// A mutex guard that [`Condvar::wait`] can release and reacquire.
pub struct MutexGuard<'a, T> {
    /// `None` only during a wait.
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

/// A readers-writer lock without poisoning.
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

/// A condition variable. Wakeups may be spurious.
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
