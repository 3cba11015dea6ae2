//! Statistics of a pool.

use std::sync::atomic::Ordering::Relaxed;

use super::counts::Count;
use super::inner::PoolInner;

/// A snapshot of the statistics of a [`PagePool`](super::PagePool). Counters start at its construction.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct PoolStats {
    /// `get`s that found the page raw.
    pub raw_hits: u64,
    /// `get`s that found the page compressed and decoded it.
    pub compressed_hits: u64,
    /// `get`s that read the store.
    pub misses: u64,
    /// Pages read ahead by `prefetch`.
    pub prefetched: u64,
    /// Pages replaced by `write`.
    pub updates: u64,
    /// Pages removed.
    pub removes: u64,

    /// Victims that were compressed and kept.
    pub compressions: u64,
    /// Victims that saved less than an eighth and were evicted.
    pub incompressible: u64,
    /// Compressed pages that became raw again after enough hits.
    pub restorations: u64,
    /// Raw pages evicted from the pool.
    pub raw_evictions: u64,
    /// Compressed pages evicted from the pool.
    pub compressed_evictions: u64,
    /// Dirty pages written to the store.
    pub write_backs: u64,
    /// Failed writes to the store; their pages stayed.
    pub write_errors: u64,
    /// Failed syncs of the store; the affected pages are dirty again.
    pub sync_errors: u64,
    /// Current number of pages that were written or removed before a failed sync, and that the pool cannot write again:
    /// they may be lost.
    pub lost_pages: u64,
    /// Panics of worker threads, which continued with the next task.
    pub worker_panics: u64,
    /// Worker threads that ended after repeated panics. Without any, the calling threads make all room.
    pub workers_ended: u64,
    /// Batches of chosen victims.
    pub sweeps: u64,
    /// Time spent on choosing, compressing and evicting victims, in nanoseconds.
    pub sweep_ns: u64,

    /// Bytes read from the store.
    pub store_read_bytes: u64,
    /// Bytes written to the store.
    pub store_write_bytes: u64,

    /// Raw pages held.
    pub raw_pages: u64,
    /// Compressed pages held.
    pub compressed_pages: u64,
    /// Pages pinned by callers now, counted once per guard. The pool's own pins are not included.
    pub pinned_pages: u64,
    /// Bytes of the compressed pages when decoded.
    pub compressed_raw_bytes: usize,
    /// Bytes of the compressed pages as stored.
    pub compressed_bytes: usize,

    /// The memory budget, in bytes.
    pub budget_bytes: usize,
    /// Memory held now, in bytes: the sum of the five values below.
    pub bytes_held: usize,
    /// Memory of the raw space: frames, including their rounding.
    pub raw_space_bytes: usize,
    /// Memory of the compressed space: segments, including dead blocks.
    pub compressed_space_bytes: usize,
    /// Memory of the page table and the policies.
    pub table_bytes: usize,
    /// Memory of the adaptive share: sampled pages that are not in the pool any more, and miniature simulations of
    /// other shares.
    pub ghost_bytes: usize,
    /// Memory of pinned decoded copies and old versions: in addition to the budget.
    pub pinned_copy_bytes: usize,

    /// Current target percentage of the budget for raw pages.
    pub raw_percent: f64,
    /// Moving average of the time to read a page from the store, in nanoseconds.
    pub store_read_ns: f64,
    /// Moving average of the time to compress a victim, in nanoseconds.
    pub compress_ns: f64,
    /// Moving average of the time to decode a page, in nanoseconds.
    pub decompress_ns: f64,
    /// Moving average of the ratio of raw to stored bytes; incompressible pages count as 1.
    pub ratio: f64,
    /// Time spent on adapting the share, in nanoseconds.
    pub deciding_ns: u64,
}

impl PoolInner {
    pub(super) fn stats(&self) -> PoolStats {
        let count = |count| self.counts.sum(count);
        let (compressed_pages, compressed_bytes, compressed_raw_bytes) = self.log.live();
        let (raw_space_bytes, compressed_space_bytes) = (self.frames.bytes(), self.log.bytes());
        let (table_bytes, ghost_bytes) = (self.table_bytes(), self.ghost_bytes());
        let pinned_copy_bytes = self.copy_bytes.load(Relaxed);
        let raw_pages = self.raw.lock().len() as u64;
        PoolStats {
            raw_hits: count(Count::RawHits),
            compressed_hits: count(Count::CompressedHits),
            misses: count(Count::Misses),
            prefetched: count(Count::Prefetched),
            updates: count(Count::Updates),
            removes: count(Count::Removes),
            compressions: count(Count::Compressions),
            incompressible: count(Count::Incompressible),
            restorations: count(Count::Restorations),
            raw_evictions: count(Count::RawEvictions),
            compressed_evictions: count(Count::CompressedEvictions),
            write_backs: count(Count::WriteBacks),
            write_errors: count(Count::WriteErrors),
            sync_errors: count(Count::SyncErrors),
            lost_pages: self.unsynced.lost_pages() as u64,
            worker_panics: self.workers.health.panics(),
            workers_ended: self.workers.health.ended(),
            sweeps: count(Count::Sweeps),
            sweep_ns: count(Count::SweepNs),
            store_read_bytes: count(Count::StoreReadBytes),
            store_write_bytes: count(Count::StoreWriteBytes),
            raw_pages,
            compressed_pages: compressed_pages as u64,
            pinned_pages: self.counts.pages_in_hand(),
            compressed_raw_bytes,
            compressed_bytes,
            budget_bytes: self.budget.load(Relaxed),
            bytes_held: raw_space_bytes + compressed_space_bytes + table_bytes + ghost_bytes + pinned_copy_bytes,
            raw_space_bytes,
            compressed_space_bytes,
            table_bytes,
            ghost_bytes,
            pinned_copy_bytes,
            raw_percent: self.raw_percent(),
            store_read_ns: self.costs.store_read_ns(),
            compress_ns: self.costs.compress_ns(),
            decompress_ns: self.costs.decompress_ns(),
            ratio: self.costs.ratio(),
            deciding_ns: self.adaptive.as_ref().map_or(0, |adaptive| adaptive.deciding_ns()),
        }
    }
}
