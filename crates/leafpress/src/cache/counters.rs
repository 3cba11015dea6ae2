//! Per-thread counters of a cache.

use leafpress_base::sync::counts::ThreadCounts;

#[derive(Debug, Clone, Copy)]
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

impl From<Count> for usize {
    fn from(count: Count) -> Self {
        count as Self
    }
}

/// Counters of all threads.
pub(super) type Counters = ThreadCounts<{ Count::Stale as usize + 1 }>;
