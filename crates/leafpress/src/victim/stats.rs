//! What a victim cache holds and did.

/// Counts of a shard, changed under its lock.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) lookups: u64,
    pub(super) hits: u64,
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
    /// Memory held, in bytes: all mappings, used or not, tables and dictionaries. Never above the capacity.
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
    /// Lookups that found nothing, or nothing they could use.
    pub misses: u64,
    /// Hits that took the block out.
    pub taken: u64,
    /// Blocks put in.
    pub inserted: u64,
    /// Insertions that took the place of a block with the same key.
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
    /// Dictionaries trained and taken into use.
    pub dictionary_versions: u64,
    /// Memory of dictionaries and their tables, in bytes.
    pub dictionary_bytes: u64,
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
