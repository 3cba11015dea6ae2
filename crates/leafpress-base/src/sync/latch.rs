//! The latch of a node.

use std::sync::atomic::Ordering;

use super::{AtomicBool, Patience};

/// A one-byte lock that lives in a node. It is held for microseconds and rarely contended, and released by a plain
/// store: a read-modify-write, which a lock that can wake sleepers needs, would wait for every store made under the
/// lock to leave the core's store buffer.
#[derive(Default)]
pub struct Latch(AtomicBool);

impl Latch {
    /// Creates an unlocked latch.
    pub fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Locks the latch; spins, then yields, while another thread holds it.
    #[inline]
    pub fn lock(&self) -> LatchGuard<'_> {
        let mut patience = Patience::default();
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            patience.wait();
        }
    }

    /// Locks the latch unless another thread holds it.
    #[inline]
    pub fn try_lock(&self) -> Option<LatchGuard<'_>> {
        let is_free = !self.0.load(Ordering::Relaxed)
            && self
                .0
                .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
                .is_ok();
        // Constructed only if the latch was taken: dropping it releases the latch.
        is_free.then(|| LatchGuard(self))
    }
}

/// Holds a latch until it is dropped.
#[must_use]
pub struct LatchGuard<'l>(&'l Latch);

impl Drop for LatchGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Release);
    }
}
