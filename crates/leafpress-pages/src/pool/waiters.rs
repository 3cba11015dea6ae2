//! Waiting for room that other threads are making.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use leafpress_base::sync::{Condvar, Mutex};

/// Maximum wait before a thread looks again.
const WAIT: Duration = Duration::from_millis(1);

/// Threads waiting for others that are making room.
#[derive(Default)]
pub(super) struct Waiters {
    lock: Mutex<()>,
    made: Condvar,
    /// Number of victims being processed and of frames being read into.
    in_hand: AtomicUsize,
    waiting: AtomicUsize,
}

/// Counts something that will become room or an evictable page shortly.
pub(super) struct InHand<'r>(&'r Waiters);

impl Waiters {
    /// Returns the number of items in progress.
    pub(super) fn in_hand(&self) -> usize {
        self.in_hand.load(Relaxed)
    }

    /// Waits until other threads have made room, for a bounded time.
    pub(super) fn wait_for_others(&self) {
        let mut locked = self.lock.lock();
        if self.in_hand() > 0 {
            self.waiting.fetch_add(1, Relaxed);
            self.made.wait_for(&mut locked, WAIT);
            self.waiting.fetch_sub(1, Relaxed);
        }
    }

    /// Counts an item in progress, for a thread that does not wait for room until it has released it.
    pub(super) fn take_in_hand(&self) -> InHand<'_> {
        self.in_hand.fetch_add(1, Relaxed);
        InHand(self)
    }
}

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        self.0.in_hand.fetch_sub(1, Relaxed);
        if self.0.waiting.load(Relaxed) > 0 {
            let _locked = self.0.lock.lock();
            self.0.made.notify_all();
        }
    }
}
