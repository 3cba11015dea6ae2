//! Statistics of a cache.

use super::counters::Count;
use super::disk::DiskStats;
use super::inner::CacheInner;
use crate::tree;

/// A snapshot of the statistics, from [`Cache::stats`](super::Cache::stats). Its `Display` is a short report.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CacheStats {
    /// The memory budget, in bytes.
    pub memory_bytes: u64,
    /// Memory held now, all included, in bytes.
    pub bytes_held: u64,
    /// The highest value of `bytes_held` that was measured. It is measured after every 1/64 of the budget that is
    /// written, and periodically while the cache is written to.
    pub peak_bytes: u64,
    /// Memory of the eviction policy, part of `bytes_held`: mostly the ghost queue of evicted keys.
    pub eviction_bytes: u64,
    /// Records in memory, including expired records that have not been removed yet, without tombstones: see
    /// `tombstones`.
    pub records: u64,
    /// Tombstones in memory, one per removed key of which an older record may be on disk. They leave with the next
    /// eviction.
    pub tombstones: u64,
    /// Bytes of keys and values, with six more for each record that expires, and of the tombstones' keys.
    pub user_bytes: u64,
    /// Reads that found their key.
    pub hits: u64,
    /// Hits on disk, or in a batch on its way to disk; part of `hits`.
    pub disk_hits: u64,
    /// Reads that did not find their key.
    pub misses: u64,
    /// Misses that were answered with an expired value, because another caller was loading or the load failed; part of
    /// `misses`.
    pub stale: u64,
    /// Misses that were answered by a remembered absence of the key, without a call of the loader; part of `misses`.
    pub known_absent: u64,
    /// Insertions.
    pub inserts: u64,
    /// Bytes of the inserted keys and values.
    pub inserted_bytes: u64,
    /// Calls to remove a key.
    pub removes: u64,
    /// Records evicted to make room for others.
    pub evicted: u64,
    /// Records removed because they had expired.
    pub expired: u64,
    /// Values that were not kept because they exceed an eighth of the memory budget.
    pub too_large: u64,
    /// Reads of records that could not be decoded, which count as misses.
    pub damaged: u64,
    /// Leaves visited for eviction or expiry.
    pub leaves_visited: u64,
    /// Records in the leaves visited for eviction or expiry.
    pub records_visited: u64,
    /// Leaves from which nothing could be evicted, for lack of memory or because a frame is damaged.
    pub eviction_errors: u64,
    /// Records promoted from disk to memory.
    pub promoted: u64,
    /// Statistics of the disk tier, if there is one.
    pub disk: Option<DiskStats>,
    /// Memory for uncompressed copies of the most read records, in bytes, part of `memory_bytes`: see
    /// [`CacheBuilder::share`](super::CacheBuilder::share). What they hold now is in `tree.hot_bytes`.
    pub raw_share_bytes: u64,
    /// Why that share was chosen, in words; empty until it was.
    pub raw_share_reason: String,
    /// Panics of the listener.
    pub listener_panics: u64,
    /// Panics of background work.
    pub background_panics: u64,
    /// Background threads that have ended after repeated panics.
    pub background_threads_ended: u64,
    /// Statistics of the tree of records. Its values include the cache's header: one byte, and six more if the record
    /// expires.
    pub tree: tree::TreeStats,
}

impl CacheStats {
    /// Returns the fraction of reads that found their key; 0 if there were none.
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
            known_absent: sum(Count::KnownAbsent),
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
            raw_share_bytes: self.raw_copies.bytes_of(self.budget.memory_bytes()),
            raw_share_reason: self.raw_copies.reason(),
            listener_panics: self.listener.as_ref().map_or(0, |listener| listener.panics()),
            background_panics: self.health.panics(),
            background_threads_ended: self.health.ended(),
            tree,
        }
    }
}
