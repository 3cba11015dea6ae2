//! What a victim cache holds and did.

/// Counts of a shard, changed under its lock.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) lookups: u64,
    pub(super) hits: u64,
    pub(super) compressed_hits: u64,
    pub(super) restored: u64,
    pub(super) returned: u64,
    pub(super) taken: u64,
    pub(super) inserted: u64,
    pub(super) replaced: u64,
    pub(super) rejected: u64,
    pub(super) no_room: u64,
    pub(super) evicted: u64,
    pub(super) erased: u64,
}

impl Counts {
    pub(super) fn add(&mut self, other: &Self) {
        self.lookups += other.lookups;
        self.hits += other.hits;
        self.compressed_hits += other.compressed_hits;
        self.restored += other.restored;
        self.returned += other.returned;
        self.taken += other.taken;
        self.inserted += other.inserted;
        self.replaced += other.replaced;
        self.rejected += other.rejected;
        self.no_room += other.no_room;
        self.evicted += other.evicted;
        self.erased += other.erased;
    }
}

/// What a [`VictimCache`](super::VictimCache) holds and did. Counts are since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct VictimStats {
    /// What the cache may hold, in bytes.
    pub capacity_bytes: u64,
    /// Memory held, in bytes: all mappings, used or not, tables, dictionaries and buffers. Never above the capacity, but for
    /// what calls that are not over have in hand.
    pub bytes_held: u64,
    /// Blocks held.
    pub entries: u64,
    /// Blocks of these that are compressed by the cache's codec.
    pub compressed_entries: u64,
    /// Raw bytes of the blocks held.
    pub raw_bytes: u64,
    /// Bytes of the blocks held, as they are stored, without keys and headers.
    pub stored_bytes: u64,
    /// Lookups.
    pub lookups: u64,
    /// Lookups that found a block and could use it.
    pub hits: u64,
    /// Hits of these on blocks that are stored as they are.
    pub raw_hits: u64,
    /// Hits on blocks that had to be decoded.
    pub compressed_hits: u64,
    /// Lookups that found nothing, or nothing they could use.
    pub misses: u64,
    /// Hits that took the block out, or borrowed it.
    pub taken: u64,
    /// Blocks that were to be put in and were here: not compressed again.
    pub returned: u64,
    /// Blocks put in.
    pub inserted: u64,
    /// Blocks that left because one with the same key was put in, or refused.
    pub replaced: u64,
    /// Blocks refused because what would have to leave was worth more.
    pub rejected: u64,
    /// Blocks refused because there was no room to be made: too long, or everything is being read.
    pub no_room: u64,
    /// Blocks refused because they could not be had: their owner did not hand out their bytes, or the codec failed.
    pub failed_insertions: u64,
    /// Blocks that left to make room.
    pub evicted: u64,
    /// Blocks erased by name.
    pub erased: u64,
    /// Blocks that were not what was put in. They were dropped, and count as misses.
    pub corrupt: u64,
    /// Hits whose user failed on good bytes. They were dropped, and count as misses.
    pub failed_hits: u64,
    /// Blocks that were put in raw, or made raw again, and compressed later.
    pub compressed_later: u64,
    /// Compressed blocks that were made raw again because they were asked for often.
    pub restored: u64,
    /// The part of the memory for blocks that could be compressed and are kept raw, in percent, 0 to 100.
    pub raw_share_pct: f64,
    /// Blocks held that could be compressed and are kept raw, where the share is neither 0 nor 100%.
    pub kept_raw_entries: u64,
    /// Memory of these, in bytes.
    pub kept_raw_bytes: u64,
    /// Mean nanoseconds of decoding a block, lately; 0 before the first.
    pub decode_ns: u64,
    /// Mean nanoseconds of compressing a block, lately; 0 before the first.
    pub compress_ns: u64,
    /// Mean nanoseconds from a lookup that found nothing to the next insertion of the same thread, lately, which is about what a block
    /// takes to come from elsewhere; 0 before the first.
    pub miss_ns: u64,
    /// Processor time that was spent on finding the share, in nanoseconds.
    pub deciding_ns: u64,
    /// Trainings and decisions on the share that panicked, and were given up.
    pub background_panics: u64,
    /// 1 when the cache's upkeep has ended because all it did panicked: no dictionary is trained any more, and the share stays.
    /// [`VictimCache::settle`](super::VictimCache::settle) says so too.
    pub background_threads_ended: u64,
    /// Dictionaries trained and taken into use.
    pub dictionary_versions: u64,
    /// Memory of dictionaries and their tables, in bytes.
    pub dictionary_bytes: u64,
    /// Memory of buffers that calls compress to and decode to, kept from one call to the next, in bytes.
    pub buffer_bytes: u64,
}

impl VictimStats {
    /// Raw bytes of the blocks held for each byte held; 0 without any.
    pub fn ratio(&self) -> f64 {
        if self.bytes_held == 0 {
            0.0
        } else {
            self.raw_bytes as f64 / self.bytes_held as f64
        }
    }
}
