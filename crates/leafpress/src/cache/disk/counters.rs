//! Counters of a tier.

use std::sync::atomic::{AtomicU64, Ordering};

/// Shared by all threads: each increment accompanies a device read or a compaction, so contention is negligible.
#[derive(Default)]
pub(super) struct Counters {
    pub hits: AtomicU64,
    pub lookups: AtomicU64,
    pub blocks_read: AtomicU64,
    pub read_errors: AtomicU64,
    pub damaged: AtomicU64,
    pub admitted: AtomicU64,
    pub admitted_bytes: AtomicU64,
    pub clean: AtomicU64,
    pub dropped: AtomicU64,
    pub tombstones: AtomicU64,
    pub written_blocks: AtomicU64,
    pub write_errors: AtomicU64,
    pub log_errors: AtomicU64,
    pub merges: AtomicU64,
    pub left_out: AtomicU64,
    pub runs_dropped: AtomicU64,
    pub records_dropped: AtomicU64,
}

pub(super) fn add(count: &AtomicU64, amount: u64) {
    count.fetch_add(amount, Ordering::Relaxed);
}

pub(super) fn get(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}
