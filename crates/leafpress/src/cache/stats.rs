//! What a cache holds and what it did.

use super::counters::Count;
use super::disk::DiskStats;
use super::inner::CacheInner;
use crate::tree;

/// A snapshot, from [`Cache::stats`](super::Cache::stats). Displayed, it is a few lines for people.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CacheStats {
    /// What it may hold, in bytes.
    pub memory_bytes: u64,
    /// All that it holds now, in bytes.
    pub bytes_held: u64,
    /// The most that it was ever seen to hold. It is measured after every 64th part of the budget that is written, and now and then
    /// while it is written to.
    pub peak_bytes: u64,
    /// What the eviction works with, a part of `bytes_held`: most of it is what is remembered of keys that left.
    pub eviction_bytes: u64,
    /// Records in memory, including those that have expired and were not removed yet, without tombstones: see `tombstones`.
    pub records: u64,
    /// Keys that were removed and that memory holds a tombstone for, because an older record may be on disk. They leave with the next eviction.
    pub tombstones: u64,
    /// Bytes of the records' keys and values, with five more for each that expires, and of the tombstones' keys.
    pub user_bytes: u64,
    /// Reads that found their key.
    pub hits: u64,
    /// Of these, those that found it on disk, or on its way there.
    pub disk_hits: u64,
    /// Reads that did not.
    pub misses: u64,
    /// Of those that did not, the ones that got a value whose time was over, because another was loading it.
    pub stale: u64,
    /// Insertions.
    pub inserts: u64,
    /// Bytes of the keys and values that were inserted.
    pub inserted_bytes: u64,
    /// Calls to remove a key.
    pub removes: u64,
    /// Records that made room for others.
    pub evicted: u64,
    /// Records that left because their time was over.
    pub expired: u64,
    /// Values that were not kept because they hold more than an eighth of the memory.
    pub too_large: u64,
    /// Reads of records that could not be decoded, which count as misses.
    pub damaged: u64,
    /// Leaves that were looked at to make room or for what was over, and the records in them.
    pub leaves_visited: u64,
    /// See `leaves_visited`.
    pub records_visited: u64,
    /// Leaves that nothing could be taken out of, for want of memory or because a frame is damaged.
    pub eviction_errors: u64,
    /// Records that came back to memory from the disk.
    pub promoted: u64,
    /// The disk tier, where there is one.
    pub disk: Option<DiskStats>,
    /// Calls of the listener that panicked.
    pub listener_panics: u64,
    /// Times that background work panicked.
    pub background_panics: u64,
    /// Background threads that have ended because all they did panicked.
    pub background_threads_ended: u64,
    /// The tree that the records are in. Its values have the cache's bytes in front: one, and five more where a record expires.
    pub tree: tree::TreeStats,
}

impl CacheStats {
    /// Part of the reads that found their key; 0 where there were none.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// # cache.insert("user:42", "Ada")?;
    /// # cache.insert("user:43", "Grace")?;
    /// cache.get("user:42")?;
    /// cache.get("user:1")?;
    /// assert_eq!(cache.stats().hit_ratio(), 0.5);
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        let reads = self.hits + self.misses;
        if reads == 0 {
            0.0
        } else {
            self.hits as f64 / reads as f64
        }
    }
}

impl CacheInner {
    pub(super) fn stats(&self) -> CacheStats {
        let sum = |count| self.counters.sum(count);
        let tree = self.tree.stats();
        let tombstones = self.tree.empty_values() as u64;
        let records = tree.records.saturating_sub(tombstones);
        let disk_hits = sum(Count::DiskHits);
        CacheStats {
            memory_bytes: self.budget.memory_bytes(),
            bytes_held: self.held_bytes(),
            peak_bytes: self.budget.peak_bytes(),
            eviction_bytes: self.eviction_bytes(),
            records,
            tombstones,
            user_bytes: tree.user_bytes.saturating_sub(records),
            hits: sum(Count::MemoryHits) + disk_hits,
            disk_hits,
            misses: sum(Count::Misses),
            stale: sum(Count::Stale),
            inserts: sum(Count::Inserts),
            inserted_bytes: sum(Count::InsertedBytes),
            removes: sum(Count::Removes),
            evicted: sum(Count::Evicted),
            expired: sum(Count::Expired),
            too_large: sum(Count::TooLarge),
            damaged: sum(Count::Damaged),
            leaves_visited: sum(Count::Visits),
            records_visited: sum(Count::VisitedRecords),
            eviction_errors: sum(Count::EvictionErrors),
            promoted: sum(Count::Promoted),
            disk: self.disk.as_ref().map(|disk| disk.stats()),
            listener_panics: self.listener.as_ref().map_or(0, |listener| listener.panics()),
            background_panics: self.health.panics(),
            background_threads_ended: self.health.ended(),
            tree,
        }
    }
}
