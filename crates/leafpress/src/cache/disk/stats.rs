//! What a tier holds and what it did.

use super::counters::get;
use super::page::BLOCK_BYTES;
use super::tier::Tier;

/// A snapshot of a disk tier, part of [`CacheStats`](crate::cache::CacheStats).
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct DiskStats {
    /// What it is and how it is read, in a line for people.
    pub place: String,
    /// What it may use of the store, in bytes.
    pub capacity_bytes: u64,
    /// What is in use of that: records of a key that has a newer one are counted until a merge.
    pub used_bytes: u64,
    /// Records in use: as above.
    pub records: u64,
    /// Runs, and the ranges of keys that they are of.
    pub runs: u64,
    /// See `runs`.
    pub super_leaves: u64,
    /// Memory for what is on disk, in bytes.
    pub index_bytes: u64,
    /// Memory of records that wait to be written, in bytes.
    pub waiting_bytes: u64,
    /// Full batches of such records, two at most.
    pub waiting_batches: u64,
    /// Whether nothing is taken in just now because nothing was written for too long.
    pub is_stalled: bool,
    /// Times that a key was looked for here, since it was not in memory: by reads, removals, loads, and while the cache becomes warm.
    pub lookups: u64,
    /// Of these, those that were found here, or on their way here.
    pub hits: u64,
    /// Blocks of 4 KiB that lookups have read.
    pub blocks_read: u64,
    /// Reads of the device that failed. What was to be read counts as missed.
    pub read_errors: u64,
    /// Pages that were not what had been written there.
    pub damaged: u64,
    /// Records that left memory for the disk, and their bytes: key and value.
    pub admitted: u64,
    /// See `admitted`.
    pub admitted_bytes: u64,
    /// Records that left memory and were here already.
    pub clean: u64,
    /// Records that left memory and were not taken in: longer than a 64th of the disk or a 32nd of the memory, too much
    /// waited to be written, too much was written, or the tier was given up.
    pub dropped: u64,
    /// Tombstones that took the place of dropped records in memory.
    pub tombstones: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Runs that could not be written. What is older is forgotten with what was to be written.
    pub write_errors: u64,
    /// What the last of them said; empty where there was none.
    pub last_error: String,
    /// Merges of runs.
    pub merges: u64,
    /// Runs that made room, or were forgotten after an error or by [`Cache::clear`](crate::Cache::clear); and their records.
    pub runs_dropped: u64,
    /// See `runs_dropped`.
    pub records_dropped: u64,
    /// Records that merges left out because the store was nearly full.
    pub left_out: u64,
    /// Records of runs that were found again at opening, after the process before was killed: see
    /// [`Disk::recover_after_crash`](super::Disk::recover_after_crash). Those are counted that reads refuse since.
    pub recovered_records: u64,
    /// Whether what is on disk would be found again if the process were killed now.
    pub is_recoverable: bool,
    /// Times that the log could not be written by which it would be: it is given up then, and the cache goes on.
    pub log_errors: u64,
    /// Whether it was given up because writes failed again and again. The cache goes on in memory.
    pub has_failed: bool,
}

impl DiskStats {
    /// Bytes that lookups have read.
    #[must_use]
    pub fn read_bytes(&self) -> u64 {
        self.blocks_read * BLOCK_BYTES as u64
    }

    /// Bytes written for each byte that was admitted; 0 where none was.
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
        // Before what memory knows is locked, as everywhere.
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
            lookups: get(&counters.lookups),
            hits: get(&counters.hits),
            blocks_read: get(&counters.blocks_read),
            read_errors: get(&counters.read_errors),
            damaged: get(&counters.damaged),
            admitted: get(&counters.admitted),
            admitted_bytes: get(&counters.admitted_bytes),
            clean: get(&counters.clean),
            dropped: get(&counters.dropped),
            tombstones: get(&counters.tombstones),
            written_bytes: get(&counters.written_blocks) * block,
            write_errors: get(&counters.write_errors),
            last_error: self.last_error.lock().clone(),
            merges: get(&counters.merges),
            runs_dropped: get(&counters.runs_dropped),
            records_dropped: get(&counters.records_dropped),
            left_out: get(&counters.left_out),
            recovered_records: self.recovered,
            is_recoverable: is_recoverable && !self.has_failed(),
            log_errors: get(&counters.log_errors),
            has_failed: self.has_failed(),
        }
    }
}
