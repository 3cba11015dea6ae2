//! A shard of the cache: a table of entries, their memory, and the choice of victims. Its owner holds a lock.
//!
//! Entries are chained in buckets. The tables grow with the number of entries, up to a size that the budget determines.
//! Memory for tables of that size is always reserved in the budget, so that their growth never takes memory from
//! entries. The victim is the worst of a random sample of entries, by recent access frequency per byte (Blankstein,
//! Sen, Freedman, "Hyperbolic Caching", USENIX ATC 2017).

mod inspection;
mod memory;
mod raw;
mod victims;

use super::OnHit;
use super::entry::{At, BlockRef, EntryTable, Owned, Parts, Pin, Region, Unlinked};
use super::stats::{Count, VictimCounts};
use crate::eviction::sketch::Sketch;
use leafpress_base::random::Random;
pub(super) use raw::Form;
use raw::RawSpace;

#[derive(Default)]
pub(super) struct Shard {
    budget_bytes: usize,
    region_bytes: usize,
    table: EntryTable,
    regions: Vec<Region>,
    /// Memory of the regions, and the reservation for tables.
    held_bytes: usize,
    /// Reservation for tables, at least their current size.
    reserved_bytes: usize,
    /// The budget for which the tables are large enough.
    tables_for_bytes: usize,
    /// Bytes of regions, and the part of them that blocks take; without entries that have a mapping of their own.
    shared_bytes: usize,
    shared_used_bytes: usize,
    sketch: Sketch,
    raw: RawSpace,
    clock: u32,
    /// Evictions were necessary since there was last much free room.
    crowded: bool,
    random: Random,
    pub(super) entries: usize,
    pub(super) raw_bytes: u64,
    pub(super) stored_bytes: u64,
    pub(super) pressed_entries: usize,
    pub(super) counts: VictimCounts,
}

/// The outcome of an insertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placed {
    Inserted,
    NoRoom,
}

/// The outcome of a lookup.
#[derive(Debug)]
pub(super) struct Looked {
    /// The entry's pin.
    pub(super) pin: Option<Pin>,
    /// The recent access frequency of the key, including this lookup.
    pub(super) frequency: u8,
    /// The entry is compressed, and accessed so often that it should be raw.
    pub(super) is_for_raw: bool,
}

impl Shard {
    /// Creates a shard without memory. `keeps_raw`: there may be a share for compressible blocks that are kept raw,
    /// other than all.
    pub(super) fn new(seed: u64, keeps_raw: bool) -> Self {
        let mut shard = Self::default();
        shard.random = Random::new(seed);
        shard.raw = RawSpace::new(keeps_raw);
        shard
    }

    /// Looks up the entry, and counts the access.
    pub(super) fn get(&mut self, key: &[u8], hash: u64, on_hit: OnHit) -> Looked {
        self.clock = self.clock.wrapping_add(1);
        self.counts.add(Count::Lookups, 1);
        let frequency = self.sketch.add(hash);
        let Some(pin) = self.table.find(key, hash).map(BlockRef::pin) else {
            return Looked {
                pin: None,
                frequency,
                is_for_raw: false,
            };
        };
        let entry = pin.entry();
        entry.touch(self.clock);
        entry.set_promoted(on_hit == OnHit::Promote);
        if on_hit != OnHit::Keep {
            // Its hits will not be visible to this cache.
            self.sketch.add(hash);
            self.counts.add(Count::Taken, 1);
        }
        if on_hit == OnHit::Remove {
            self.remove(entry.at());
        }
        self.counts.add(Count::Hits, 1);
        self.counts.add(Count::CompressedHits, u64::from(entry.pressed));
        let is_for_raw = on_hit == OnHit::Keep && entry.pressed && self.is_for_raw(entry, frequency);
        Looked {
            pin: Some(pin),
            frequency,
            is_for_raw,
        }
    }

    /// Returns the recent access frequency of the key.
    pub(super) fn frequency(&self, hash: u64) -> u8 {
        self.sketch.get(hash)
    }

    /// Removes the entry of a key; returns true if there was one.
    pub(super) fn remove_key(&mut self, key: &[u8], hash: u64) -> bool {
        let at = self.table.find(key, hash).map(BlockRef::at);
        at.is_some_and(|at| self.remove(at))
    }

    /// Removes this particular entry; returns true if it was still linked. Its memory is freed by its last reader.
    pub(super) fn remove(&mut self, at: At) -> bool {
        let Some(unlinked) = self.table.unlink(at) else {
            return false;
        };
        self.release(unlinked);
        true
    }

    /// Removes an unlinked entry from the accounting, and frees it, or leaves that to its last reader.
    fn release(&mut self, unlinked: Unlinked) {
        self.entries -= 1;
        self.raw_bytes -= u64::from(unlinked.raw_bytes);
        self.stored_bytes -= u64::from(unlinked.stored_bytes);
        self.pressed_entries -= usize::from(unlinked.pressed);
        if let Some(entry) = unlinked.entry {
            self.free(entry);
        }
    }

    /// Removes a pin under the lock.
    fn unpin(&mut self, pin: Pin) {
        if let Some(entry) = pin.unpin() {
            self.free(entry);
        }
    }

    /// Returns true if there is too little memory for any block; counts a rejected insertion.
    pub(super) fn is_closed(&mut self) -> bool {
        self.counts.add(Count::NoRoom, u64::from(self.table.is_closed()));
        self.table.is_closed()
    }

    /// Returns true if a promoted block is still present and can only be this one; it then counts as inserted now.
    pub(super) fn has_returned(&mut self, key: &[u8], hash: u64, raw_bytes: u32, tag: u16) -> bool {
        let Some(entry) = self.table.find(key, hash) else {
            return false;
        };
        let is_same = entry.is_promoted() && (entry.raw_bytes, entry.tag) == (raw_bytes, tag);
        if is_same {
            entry.touch(self.clock);
            entry.set_promoted(false);
            self.counts.add(Count::Returned, 1);
        }
        is_same
    }

    /// Removes the entry of a key that has a newer block, whether that one is inserted or not.
    pub(super) fn drop_outdated(&mut self, key: &[u8], hash: u64) {
        let is_replaced = self.remove_key(key, hash);
        self.counts.add(Count::Replaced, u64::from(is_replaced));
    }

    /// Inserts an entry, replacing one with its key and evicting others. `keeps_raw`: it is compressible, and is kept
    /// raw as long as the share allows.
    pub(super) fn insert(&mut self, parts: Parts<'_>, keeps_raw: bool) -> Placed {
        self.drop_outdated(parts.key, parts.hash);
        if !self.put(parts, self.clock, keeps_raw) {
            self.counts.add(Count::NoRoom, 1);
            return Placed::NoRoom;
        }
        self.counts.add(Count::Inserted, 1);
        Placed::Inserted
    }

    /// Replaces an entry by another form of it; returns true if the entry was still there. If there is no room for the
    /// other form, the entry is removed.
    ///
    /// The caller has a pin on `entry`.
    pub(super) fn replace(&mut self, entry: At, parts: Parts<'_>, keeps_raw: bool) -> bool {
        let Some(unlinked) = self.table.unlink(entry) else {
            return false;
        };
        let touched = unlinked.touched;
        self.release(unlinked);
        if !self.put(parts, touched, keeps_raw) {
            self.counts.add(Count::Evicted, 1);
        }
        true
    }

    /// Writes and links an entry whose key has no other entry; returns true if there was room.
    fn put(&mut self, parts: Parts<'_>, touched: u32, keeps_raw: bool) -> bool {
        let bytes = parts.bytes();
        let Some(room) = self.make_room(bytes) else {
            return false;
        };
        let (raw_bytes, stored_bytes, pressed) = (parts.raw_bytes, parts.stored.len(), parts.pressed);
        let Some(entry) = Owned::write(room, parts, touched) else {
            return false;
        };
        self.entries += 1;
        self.raw_bytes += u64::from(raw_bytes);
        self.stored_bytes += stored_bytes as u64;
        self.pressed_entries += usize::from(pressed);
        let at = self.table.link(entry);
        if keeps_raw {
            self.list_raw(at, bytes);
        }
        self.grow_tables();
        true
    }
}

impl Drop for Shard {
    fn drop(&mut self) {
        // Entries hold references to dictionaries, which are stored elsewhere.
        for bucket in 0..self.table.buckets() {
            while let Some(at) = self.table.chain(bucket).next().map(BlockRef::at) {
                self.remove(at);
            }
        }
    }
}
