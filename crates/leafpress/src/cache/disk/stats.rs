//! Statistics of the disk tier.

use super::counters::Count;
use super::page::BLOCK_BYTES;
use super::tier::Tier;

/// A snapshot of the statistics of a disk tier, part of [`CacheStats`](crate::cache::CacheStats).
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct DiskStats {
    /// A one-line description of the store and of its I/O method.
    pub place: String,
    /// The size of the tier in the store, in bytes.
    pub capacity_bytes: u64,
    /// Bytes in use: replaced records are included until they are merged.
    pub used_bytes: u64,
    /// Records in use: replaced records are included until they are merged.
    pub records: u64,
    /// Runs on disk.
    pub runs: u64,
    /// Super-leaves, the ranges of keys to which runs belong.
    pub super_leaves: u64,
    /// Memory of the index of the disk, in bytes.
    pub index_bytes: u64,
    /// Memory of the batches that wait to be written, in bytes.
    pub waiting_bytes: u64,
    /// Full batches that wait to be written, at most two.
    pub waiting_batches: u64,
    /// Whether evicted records are currently dropped because the device has completed no transfer for too long.
    pub is_stalled: bool,
    /// Lookups in the tier for keys that were not in memory: by reads, removals, loads, and during warming.
    pub lookups: u64,
    /// Lookups that found their key on disk or in a batch.
    pub hits: u64,
    /// Blocks of 4 KiB read by lookups.
    pub blocks_read: u64,
    /// Failed reads of the device. They count as misses.
    pub read_errors: u64,
    /// Pages whose contents were not what had been written.
    pub damaged: u64,
    /// Records spilled from memory.
    pub admitted: u64,
    /// Bytes of the keys and values of spilled records.
    pub admitted_bytes: u64,
    /// Records evicted from memory that were on disk already.
    pub clean: u64,
    /// Records evicted from memory and not admitted: longer than 1/64 of the disk or 1/32 of the memory, too many
    /// batches waiting to be written, the write limit exceeded, or the tier given up.
    pub dropped: u64,
    /// Tombstones that replaced dropped records in memory.
    pub tombstones: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Runs that could not be written. Everything older in their key range is forgotten with them.
    pub write_errors: u64,
    /// The message of the last write error; empty if there was none.
    pub last_error: String,
    /// Merges of runs.
    pub merges: u64,
    /// Runs dropped to make room, after an error, or by [`Cache::clear`](crate::Cache::clear).
    pub runs_dropped: u64,
    /// Records of the dropped runs.
    pub records_dropped: u64,
    /// Records that merges left out because the store was nearly full.
    pub left_out: u64,
    /// Records of runs recovered at opening, after the previous process was killed: see
    /// [`Disk::recover_after_crash`](super::Disk::recover_after_crash). It includes records that reads refuse as stale.
    pub recovered_records: u64,
    /// Whether the disk tier would be recovered if the process were killed now.
    pub is_recoverable: bool,
    /// Failed writes of the log of runs. The log is then given up, and the cache continues.
    pub log_errors: u64,
    /// Whether the tier was given up after repeated write errors. The cache continues in memory.
    pub has_failed: bool,
}

impl DiskStats {
    /// Returns the bytes read by lookups.
    #[must_use]
    pub fn read_bytes(&self) -> u64 {
        self.blocks_read * BLOCK_BYTES as u64
    }

    /// Returns the bytes written per admitted byte; 0 if none was admitted.
    #[must_use]
    pub fn write_amplification(&self) -> f64 {
        if self.admitted_bytes == 0 {
            0.0
        } else {
            self.written_bytes as f64 / self.admitted_bytes as f64
        }
    }
}

impl Tier {
    pub(in crate::cache) fn stats(&self) -> DiskStats {
        let block = BLOCK_BYTES as u64;
        let counters = &self.counters;
        // Lock order: the log before the tier's state.
        let is_recoverable = self.recovery.as_ref().is_some_and(|recovery| recovery.log().is_kept());
        let state = self.state.read();
        DiskStats {
            place: self.device.describe(),
            capacity_bytes: self.device.blocks * block,
            used_bytes: state.blocks * block,
            records: state.records,
            runs: state.runs,
            super_leaves: state.leaves().len() as u64,
            index_bytes: state.index_bytes() as u64,
            waiting_bytes: state.batches_bytes() as u64,
            waiting_batches: state.sealed.len() as u64,
            is_stalled: self.is_stalled(),
            lookups: counters.sum(Count::Lookups),
            hits: counters.sum(Count::Hits),
            blocks_read: counters.sum(Count::BlocksRead),
            read_errors: counters.sum(Count::ReadErrors),
            damaged: counters.sum(Count::Damaged),
            admitted: counters.sum(Count::Admitted),
            admitted_bytes: counters.sum(Count::AdmittedBytes),
            clean: counters.sum(Count::Clean),
            dropped: counters.sum(Count::Dropped),
            tombstones: counters.sum(Count::Tombstones),
            written_bytes: counters.sum(Count::WrittenBlocks) * block,
            write_errors: counters.sum(Count::WriteErrors),
            last_error: self.last_error.lock().clone(),
            merges: counters.sum(Count::Merges),
            runs_dropped: counters.sum(Count::RunsDropped),
            records_dropped: counters.sum(Count::RecordsDropped),
            left_out: counters.sum(Count::LeftOut),
            recovered_records: self.recovered,
            is_recoverable: is_recoverable && !self.has_failed(),
            log_errors: counters.sum(Count::LogErrors),
            has_failed: self.has_failed(),
        }
    }
}
