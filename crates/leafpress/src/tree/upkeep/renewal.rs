//! Trainings because the records have changed, in a tree that need not have grown.
//!
//! Only the counts of writes are compared, not what is written: a training that finds nothing better costs little, and
//! rest periods bound how often there is one.

use std::sync::atomic::Ordering;

use crate::tree::inner::TreeInner;
use crate::tree::thread_state::Count;
use crate::tree::upkeep::scheduler::Background;
use crate::tree::upkeep::training::FIRST_TRAINING_LEAVES;

/// Fractions of the records, as divisors, of which more must have been replaced or removed for another training: in the
/// background, and by `settle`. The latter leaves at most an eighth of the records unlike those of the last training.
const TURNED_FOR_UPKEEP: u64 = 2;
pub(super) const TURNED_FOR_SETTLE: u64 = 8;
/// The upkeep of a cache with fewer bytes of nodes does not train again: a training takes some 5 MB for a moment, which
/// would be more than half as much as the memory of the cache.
const MIN_CACHE_BYTES: i64 = 8 << 20;

impl Background {
    /// Records that a training begins.
    pub(super) fn training_begins(&self, core: &TreeInner) {
        self.turned_at.store(core.turned(), Ordering::Relaxed);
        self.state.lock().renewal_due = false;
    }

    /// Requests a training of the upkeep if enough records were replaced or removed.
    pub(crate) fn renew_if_due(&self, core: &TreeInner) {
        // Only the trees of caches have marks.
        if !core.marks || core.memory.live_bytes() >= MIN_CACHE_BYTES {
            self.renew_if_turned(core, TURNED_FOR_UPKEEP);
        }
    }

    /// Requests a training if, since the last one, more than `1 / one_in` of the records of a tree that is large enough
    /// to be trained were replaced or removed.
    pub(super) fn renew_if_turned(&self, core: &TreeInner, one_in: u64) {
        if self.leaves() < FIRST_TRAINING_LEAVES || !core.dictionaries.auto && !core.sizing.auto {
            return;
        }
        let turned = core.turned().saturating_sub(self.turned_at.load(Ordering::Relaxed));
        if turned > core.len() as u64 / one_in {
            self.state.lock().renewal_due = true;
            self.due.wake();
        }
    }
}

impl TreeInner {
    /// Returns the number of records that were replaced or removed, approximately: writes whose condition does not hold
    /// count as well.
    fn turned(&self) -> u64 {
        // Every insertion counts as a put first.
        let inserted = self.contexts.sum(Count::Inserted);
        self.contexts.sum(Count::Puts).saturating_sub(inserted) + self.contexts.sum(Count::Erased)
    }
}
