//! Long values that are being inserted: the memory that their writers hold, besides the nodes of the tree.

use std::sync::atomic::{AtomicU64, Ordering};

use leafpress_base::sync::{Condvar, Mutex};

/// Bounds the long values that writers hold at the same time.
#[derive(Default)]
pub(super) struct LongValues {
    in_hand: AtomicU64,
    /// Held while `in_hand` is changed.
    changing: Mutex<()>,
    left: Condvar,
}

/// A long value in the hand of a writer, until dropped.
pub(super) struct InHand<'a> {
    all: &'a LongValues,
    bytes: u64,
}

impl LongValues {
    /// Returns the bytes that writers hold.
    pub(super) fn in_hand_bytes(&self) -> u64 {
        self.in_hand.load(Ordering::Relaxed)
    }

    /// Waits until all writers together hold at most `most` bytes with these, or no others. While the result exists, no
    /// listener or loader may be called: it could wait for another writer.
    pub(super) fn take(&self, bytes: u64, most: u64) -> InHand<'_> {
        let mut changing = self.changing.lock();
        loop {
            let others = self.in_hand_bytes();
            if others == 0 || others + bytes <= most {
                self.in_hand.store(others + bytes, Ordering::Relaxed);
                return InHand { all: self, bytes };
            }
            self.left.wait(&mut changing);
        }
    }
}

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        let _changing = self.all.changing.lock();
        self.all.in_hand.fetch_sub(self.bytes, Ordering::Relaxed);
        self.all.left.notify_all();
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn writers_wait_for_one_another() {
        let (all, most) = (LongValues::default(), AtomicU64::new(0));
        thread::scope(|scope| {
            for bytes in [3, 4, 5, 20] {
                let (all, most) = (&all, &most);
                scope.spawn(move || {
                    for _ in 0..100 {
                        let _in_hand = all.take(bytes, 10);
                        most.fetch_max(all.in_hand_bytes(), Ordering::Relaxed);
                        thread::yield_now();
                    }
                });
            }
        });
        // One that exceeds the bound by itself is alone.
        assert_eq!(most.into_inner(), 20);
        assert_eq!(all.in_hand_bytes(), 0);
    }
}
