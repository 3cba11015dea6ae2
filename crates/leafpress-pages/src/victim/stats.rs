//! Statistics of a victim cache.

use leafpress_base::sync::counts;

/// The counters.
#[derive(Debug, Clone, Copy)]
pub(super) enum Count {
    Lookups,
    Hits,
    CompressedHits,
    Restored,
    Returned,
    Taken,
    Inserted,
    Replaced,
    Rejected,
    NoRoom,
    Evicted,
    Erased,
    CompressedLater,
    /// Lookups of corrupt blocks.
    Corrupt,
    /// Corrupt blocks found other than by lookups.
    CorruptUnread,
    FailedHits,
    FailedInsertions,
}

impl From<Count> for usize {
    fn from(count: Count) -> Self {
        count as Self
    }
}

/// A shard has a set, changed under its lock: every lookup holds the lock and has its cache lines, so that a set per
/// thread would cost one more. Another set is for what is counted without a lock, which is rare.
pub(super) type VictimCounts = counts::Counts<{ Count::FailedInsertions as usize + 1 }>;

/// A snapshot of the statistics of a [`VictimCache`](super::VictimCache). Counters start at its construction.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct VictimStats {
    /// The memory budget, in bytes.
    pub budget_bytes: u64,
    /// Memory held, in bytes: all mappings, used or not, tables, dictionaries and buffers. Never above the budget,
    /// except for the growth of buffers in calls in progress.
    pub bytes_held: u64,
    /// Blocks held.
    pub entries: u64,
    /// Blocks held that are compressed by the cache's codec.
    pub compressed_entries: u64,
    /// Raw bytes of the blocks held.
    pub raw_bytes: u64,
    /// Bytes of the blocks held, as stored, without keys and headers.
    pub stored_bytes: u64,
    /// Lookups.
    pub lookups: u64,
    /// Lookups that found a block and could use it.
    pub hits: u64,
    /// Hits on blocks that are stored raw.
    pub raw_hits: u64,
    /// Hits on blocks that had to be decoded.
    pub compressed_hits: u64,
    /// Lookups that found no usable block.
    pub misses: u64,
    /// Hits that removed or promoted the block.
    pub taken: u64,
    /// Insertions of promoted blocks that were still present: not compressed again.
    pub returned: u64,
    /// Blocks inserted.
    pub inserted: u64,
    /// Blocks removed because one with the same key was inserted or rejected.
    pub replaced: u64,
    /// Blocks rejected because their victims were worth more.
    pub rejected: u64,
    /// Blocks rejected because no room could be made: too long, or all blocks are being read.
    pub no_room: u64,
    /// Failed insertions: `fill` or the codec failed.
    pub failed_insertions: u64,
    /// Blocks evicted to make room.
    pub evicted: u64,
    /// Blocks removed by key.
    pub erased: u64,
    /// Blocks with a wrong checksum. They were dropped, and count as misses.
    pub corrupt: u64,
    /// Hits whose `read` closure failed on intact bytes. The blocks were dropped, and count as misses.
    pub failed_hits: u64,
    /// Blocks that were inserted or made raw, and compressed later.
    pub compressed_later: u64,
    /// Compressed blocks that were made raw because of their access frequency.
    pub restored: u64,
    /// The share of the memory for compressible blocks that are kept raw, in percent, 0 to 100.
    pub raw_share_pct: f64,
    /// Compressible blocks held raw, if the share is neither 0 nor 100%.
    pub kept_raw_entries: u64,
    /// Memory of these, in bytes.
    pub kept_raw_bytes: u64,
    /// Moving average of the time to decode a block, in nanoseconds; 0 before the first.
    pub decode_ns: u64,
    /// Moving average of the time to compress a block, in nanoseconds; 0 before the first.
    pub compress_ns: u64,
    /// Moving average of the time from a miss to the next insertion by the same thread, in nanoseconds, which is about
    /// the time to fetch a block from elsewhere; 0 before the first.
    pub miss_ns: u64,
    /// Processor time spent on adapting the share, in nanoseconds.
    pub deciding_ns: u64,
    /// Trainings and steps of the adaptive share that panicked, and were abandoned.
    pub background_panics: u64,
    /// 1 if the cache's upkeep has ended after repeated panics: no dictionary is trained any more, and the share is
    /// fixed. [`VictimCache::settle`](super::VictimCache::settle) reports that too.
    pub background_threads_ended: u64,
    /// Dictionaries trained and used.
    pub dictionary_versions: u64,
    /// Memory of dictionaries and their tables, in bytes.
    pub dictionary_bytes: u64,
    /// Memory of the buffers for compressing and decoding that are kept between calls, in bytes.
    pub buffer_bytes: u64,
}

impl VictimStats {
    /// Returns the raw bytes of the blocks held per byte held; 0 without any.
    pub fn ratio(&self) -> f64 {
        if self.bytes_held == 0 {
            0.0
        } else {
            self.raw_bytes as f64 / self.bytes_held as f64
        }
    }
}
