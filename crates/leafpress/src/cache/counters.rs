//! Per-thread counters of a cache.

use std::sync::atomic::{AtomicU64, Ordering};

use leafpress_base::sync::PerThread;

#[derive(Debug, Clone, Copy)]
#[repr(usize)]
pub(super) enum Count {
    /// Reads that found their key in memory.
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
    /// Bytes of inserted keys and values.
    InsertedBytes,
    /// Records promoted from the disk.
    Promoted,
    /// Misses answered with an expired value while it was being loaded.
    Stale,
}

const COUNTS: usize = Count::Stale as usize + 1;

/// Counters of one thread, on cache lines of their own. Only that thread writes them.
#[repr(align(128))]
pub(super) struct Local([AtomicU64; COUNTS]);

impl Default for Local {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

/// Counters of all threads.
#[derive(Default)]
pub(super) struct Counters {
    threads: PerThread<Local>,
    /// Shared by threads whose own counters could not be allocated.
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

    /// Increments a counter; returns the thread's count.
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
