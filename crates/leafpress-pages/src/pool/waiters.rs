//! Waiting for room that other threads are making.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use leafpress_base::sync::{Condvar, Mutex};

/// A thread that waits for others' victims looks again after this.
const WAIT: Duration = Duration::from_millis(1);

/// Where threads wait for others that are making room.
#[derive(Default)]
pub(super) struct Waiters {
    lock: Mutex<()>,
    made: Condvar,
    /// Victims that threads have in hand, and frames that they read into.
    in_hand: AtomicUsize,
    waiting: AtomicUsize,
}

/// A thread has something in hand that will be room in a moment, or a page that can leave.
pub(super) struct InHand<'r>(&'r Waiters);

impl Waiters {
    /// What threads have in hand.
    pub(super) fn in_hand(&self) -> usize {
        self.in_hand.load(Relaxed)
    }

    /// Waits until others have made room, but not for long.
    pub(super) fn wait_for_others(&self) {
        let mut locked = self.lock.lock();
        if self.in_hand() > 0 {
            self.waiting.fetch_add(1, Relaxed);
            self.made.wait_for(&mut locked, WAIT);
            self.waiting.fetch_sub(1, Relaxed);
        }
    }

    /// For a thread that waits for no room until it has let go of it.
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
