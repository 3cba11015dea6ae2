//! Caches: statistics.

use leafpress_core::cache::CacheStats;

use crate::failure::call;
use crate::sections::cache::of;
use crate::sections::tree_stats::fill;
use crate::{lp_cache, lp_status};

/// Statistics of a cache. Set struct_size to sizeof(lp_cache_stats) before the call; later versions add fields at the
/// end. Fields that begin with disk_ are 0 if there is no disk tier; disk_hits is part of hits.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct lp_cache_stats {
    /// In: the size of the caller's struct. Out: the bytes that were written.
    pub struct_size: usize,
    /// The memory bound, in bytes.
    pub memory_bytes: u64,
    /// All memory that the cache holds, in bytes.
    pub bytes_held: u64,
    /// The highest value seen of bytes_held.
    pub peak_bytes: u64,
    /// Records in memory, including expired ones that have not been removed yet.
    pub records: u64,
    /// Bytes of their keys and values.
    pub user_bytes: u64,
    /// Reads that found their key.
    pub hits: u64,
    /// Of these, those that found it on disk.
    pub disk_hits: u64,
    /// Reads that did not find their key.
    pub misses: u64,
    /// Of these, those that got an expired value, because another thread was loading the key.
    pub stale: u64,
    /// Insertions.
    pub inserts: u64,
    /// Bytes of the keys and values that were inserted.
    pub inserted_bytes: u64,
    /// Removals.
    pub removes: u64,
    /// Records that were evicted.
    pub evicted: u64,
    /// Records that expired.
    pub expired: u64,
    /// Values that were too large to be kept.
    pub too_large: u64,
    /// Reads of records that could not be decoded, which count as misses.
    pub damaged: u64,
    /// Records that returned from the disk to memory.
    pub promoted: u64,
    /// Failures of background work.
    pub background_failures: u64,
    /// The disk tier's capacity, in bytes.
    pub disk_capacity_bytes: u64,
    /// Bytes of it in use.
    pub disk_used_bytes: u64,
    /// Records on disk, including those that were replaced by newer ones.
    pub disk_records: u64,
    /// Memory of the disk tier's index, in bytes.
    pub disk_index_bytes: u64,
    /// Lookups on disk.
    pub disk_lookups: u64,
    /// Blocks of 4 KiB read by these lookups.
    pub disk_blocks_read: u64,
    /// Bytes of the records that were moved to the disk.
    pub disk_admitted_bytes: u64,
    /// Bytes written for them, including merges.
    pub disk_written_bytes: u64,
    /// Records that left memory and that the disk tier did not accept.
    pub disk_dropped: u64,
    /// Reads and writes of the device that failed.
    pub disk_errors: u64,
    /// Pages whose content differs from what was written.
    pub disk_damaged: u64,
    /// 1 if the disk tier was disabled because writes failed repeatedly: the cache continues in memory.
    pub disk_has_failed: u64,
}

/// Fills in stats. It visits every leaf: do not call it on every request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_cache_get_stats(cache: Option<&lp_cache>, stats: *mut lp_cache_stats) -> lp_status {
    call(|| {
        let cache = of(cache)?;
        // SAFETY: the header requires NULL or a struct with as many writable bytes as its first field says.
        unsafe { fill(stats, |size| lp_cache_stats::of(cache.stats(), size)) }
    })
}

impl lp_cache_stats {
    fn of(stats: CacheStats, struct_size: usize) -> Self {
        let disk = stats.disk.unwrap_or_default();
        Self {
            struct_size,
            memory_bytes: stats.memory_bytes,
            bytes_held: stats.bytes_held,
            peak_bytes: stats.peak_bytes,
            records: stats.records,
            user_bytes: stats.user_bytes,
            hits: stats.hits,
            disk_hits: stats.disk_hits,
            misses: stats.misses,
            stale: stats.stale,
            inserts: stats.inserts,
            inserted_bytes: stats.inserted_bytes,
            removes: stats.removes,
            evicted: stats.evicted,
            expired: stats.expired,
            too_large: stats.too_large,
            damaged: stats.damaged,
            promoted: stats.promoted,
            background_failures: stats.background_panics + stats.eviction_errors,
            disk_capacity_bytes: disk.capacity_bytes,
            disk_used_bytes: disk.used_bytes,
            disk_records: disk.records,
            disk_index_bytes: disk.index_bytes,
            disk_lookups: disk.lookups,
            disk_blocks_read: disk.blocks_read,
            disk_admitted_bytes: disk.admitted_bytes,
            disk_written_bytes: disk.written_bytes,
            disk_dropped: disk.dropped,
            disk_errors: disk.read_errors + disk.write_errors,
            disk_damaged: disk.damaged,
            disk_has_failed: disk.has_failed.into(),
        }
    }
}
