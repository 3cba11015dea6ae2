//! What a cache counts, by thread.

use std::sync::atomic::{AtomicU64, Ordering};

use leafpress_base::sync::PerThread;

#[derive(Debug, Clone, Copy)]
#[repr(usize)]
pub(super) enum Count {
    /// Reads that found their key, in memory or on disk.
    MemoryHits,
    DiskHits,
    Misses,
    Inserts,
    Removes,
    Evicted,
    Expired,
    TooLarge,
    Damaged,
    Visits,
    VisitedRecords,
    EvictionErrors,
    /// Bytes of keys and values that were inserted.
    InsertedBytes,
    /// Records that came back from the disk.
    Promoted,
    /// Values whose time was over that were given to who asked while they were loaded.
    Stale,
}

const COUNTS: usize = Count::Stale as usize + 1;

/// One thread's counts, on cache lines of their own. Only that thread writes them.
#[repr(align(128))]
pub(super) struct Local([AtomicU64; COUNTS]);

impl Default for Local {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

/// All threads' counts.
#[derive(Default)]
pub(super) struct Counters {
    threads: PerThread<Local>,
    /// Of threads that there is no memory for counts of their own for.
    common: Local,
}

impl Counters {
    #[inline]
    pub(super) fn add(&self, count: Count, amount: u64) {
        match self.threads.get_or_make() {
            Some(local) => {
                let count = &local.0[count as usize];
                count.store(count.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
            }
            None => _ = self.common.0[count as usize].fetch_add(amount, Ordering::Relaxed),
        }
    }

    /// Counts one more; how many the thread has counted.
    #[inline]
    pub(super) fn count(&self, count: Count) -> u64 {
        match self.threads.get_or_make() {
            Some(local) => {
                let count = &local.0[count as usize];
                let now = count.load(Ordering::Relaxed).wrapping_add(1);
                count.store(now, Ordering::Relaxed);
                now
            }
            None => self.common.0[count as usize].fetch_add(1, Ordering::Relaxed) + 1,
        }
    }

    pub(super) fn sum(&self, count: Count) -> u64 {
        let locals = self.threads.iter().chain([&self.common]);
        locals.fold(0, |sum, local| {
            sum.wrapping_add(local.0[count as usize].load(Ordering::Relaxed))
        })
    }

    pub(super) fn held_bytes(&self) -> u64 {
        (self.threads.iter().count() * size_of::<Local>()) as u64
    }
}
