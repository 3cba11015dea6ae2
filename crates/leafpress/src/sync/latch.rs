//! The latch of a node.

use std::sync::atomic::Ordering;

use super::{AtomicBool, Patience};

/// A one-byte lock that lives in a node. It is held for microseconds and rarely waited for, and released by a plain store: a
/// read-modify-write, which a lock that can wake sleepers needs, would wait for every store made under the lock to leave the core.
pub(crate) struct Latch(AtomicBool);

impl Latch {
    pub(crate) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    #[inline]
    pub(crate) fn lock(&self) {
        let mut patience = Patience::default();
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
