//! What a pool holds and did.

use std::sync::atomic::Ordering::Relaxed;

use super::counts::Count;
use super::inner::PoolInner;

/// A snapshot of a [`PagePool`](super::PagePool). Counts are since it was built.
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
    /// Pages replaced by `update`.
    pub updates: u64,
    /// Pages removed.
    pub removes: u64,

    /// Victims that were compressed and stayed.
    pub compressions: u64,
    /// Victims that saved less than an eighth and left.
    pub incompressible: u64,
    /// Compressed pages that became raw again after enough hits.
    pub restorations: u64,
    /// Raw pages that left the pool.
    pub raw_evictions: u64,
    /// Compressed pages that left the pool.
    pub compressed_evictions: u64,
    /// Dirty pages written to the store.
    pub write_backs: u64,
    /// Writes to the store that failed; their pages stayed.
    pub write_errors: u64,
    /// Syncs of the store that failed; the pages that they should have made last are dirty again.
    pub sync_errors: u64,
    /// Pages now that were written or removed before a sync that failed, and that the pool cannot write again: they may be lost.
    pub lost_pages: u64,
    /// Panics in the pool's own threads, which went on with the next piece of work.
    pub worker_panics: u64,
    /// Threads of the pool that ended because they did nothing but panic. Without any, the threads that call the pool make all room.
    pub workers_ended: u64,
    /// Batches of victims that were chosen.
    pub sweeps: u64,
    /// Nanoseconds that threads spent choosing, compressing and evicting victims.
    pub sweep_ns: u64,

    /// Bytes read from the store.
    pub store_read_bytes: u64,
    /// Bytes written to the store.
    pub store_write_bytes: u64,

    /// Raw pages held.
    pub raw_pages: u64,
    /// Compressed pages held.
    pub compressed_pages: u64,
    /// Pages that callers have pinned now, each as often as they have. What the pool itself works on is not counted.
    pub pinned_pages: u64,
    /// Bytes of the compressed pages when decoded.
    pub compressed_raw_bytes: usize,
    /// Bytes of the compressed pages as they are stored.
    pub compressed_bytes: usize,

    /// The budget.
    pub budget_bytes: usize,
    /// Memory held now: the five below.
    pub bytes_held: usize,
    /// Memory of the raw space: frames, with what their rounding wastes.
    pub raw_space_bytes: usize,
    /// Memory of the compressed space: segments, with what is dead in them.
    pub compressed_space_bytes: usize,
    /// Memory of the page table and the policies.
    pub table_bytes: usize,
    /// Memory of what the adaptive share follows: pages that are not here any more, and small models of other shares.
    pub ghost_bytes: usize,
    /// Memory of decoded copies and old versions that are pinned: over and above the budget.
    pub pinned_copy_bytes: usize,

    /// Percent of the budget that is meant for raw pages now.
    pub raw_percent: f64,
    /// Mean nanoseconds of reading a page from the store, lately.
    pub store_read_ns: f64,
    /// Mean nanoseconds of compressing a victim, lately.
    pub compress_ns: f64,
    /// Mean nanoseconds of decoding a page, lately.
    pub decompress_ns: f64,
    /// Raw bytes over stored bytes of what was compressed lately; what does not shrink counts as 1.
    pub ratio: f64,
    /// Nanoseconds that threads spent deciding on the share.
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
