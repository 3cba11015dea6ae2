//! Per-thread counters of a cache, and the outcomes of reads.

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
    /// Misses answered by a remembered absence.
    KnownAbsent,
    /// Loads, and their nanoseconds.
    Loads,
    LoadNs,
}

impl From<Count> for usize {
    fn from(count: Count) -> Self {
        count as Self
    }
}

/// Outcome of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Memory,
    Disk,
    Miss,
}

impl Outcome {
    #[inline]
    pub(super) fn of(is_found: bool, is_from_disk: bool) -> Self {
        match (is_found, is_from_disk) {
            (false, _) => Self::Miss,
            (true, false) => Self::Memory,
            (true, true) => Self::Disk,
        }
    }

    /// The counter of the outcome.
    #[inline]
    pub(super) fn count(self) -> Count {
        match self {
            Self::Memory => Count::MemoryHits,
            Self::Disk => Count::DiskHits,
            Self::Miss => Count::Misses,
        }
    }
}

/// Counters of all threads.
pub(super) type Counters = ThreadCounts<{ Count::LoadNs as usize + 1 }>;
