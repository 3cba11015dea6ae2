//! Per-thread counters of a tier.

use leafpress_base::sync::counts::ThreadCounts;

#[derive(Debug, Clone, Copy)]
pub(super) enum Count {
    Hits,
    Lookups,
    BlocksRead,
    ReadErrors,
    Damaged,
    Admitted,
    AdmittedBytes,
    Clean,
    Dropped,
    Tombstones,
    WrittenBlocks,
    WriteErrors,
    LogErrors,
    Merges,
    LeftOut,
    RunsDropped,
    RecordsDropped,
}

impl From<Count> for usize {
    fn from(count: Count) -> Self {
        count as Self
    }
}

/// Counters of all threads.
pub(super) type Counters = ThreadCounts<{ Count::RecordsDropped as usize + 1 }>;
