//! A part of the cache: a table of entries, their memory, and the choice of what leaves. Its owner holds a lock.
//!
//! Entries hang in buckets. The tables grow with the number of entries, up to a size that the budget determines. The budget always has
//! room reserved for tables of that size, so that their growth never takes memory from entries.
//! The victim is the worst of some entries drawn at random, by how often they were asked for lately against what they take
//! (Blankstein, Sen, Freedman, "Hyperbolic Caching", USENIX ATC 2017).

mod books;
mod memory;
mod raw;
mod victims;

use super::OnHit;
use super::entry::{At, BlockRef, Owned, Parts, Pin, Region, Table, Unlinked};
use super::stats::Counts;
use crate::eviction::sketch::Sketch;
pub(super) use raw::Form;
use raw::RawSpace;

#[derive(Default)]
pub(super) struct Shard {
    budget_bytes: usize,
    region_bytes: usize,
    table: Table,
    regions: Vec<Region>,
    /// Memory of the regions, and what is reserved for tables.
    held_bytes: usize,
    /// What is reserved for tables, never less than they take.
    reserved_bytes: usize,
    /// The budget for which the tables are large enough.
    tables_for_bytes: usize,
    /// Bytes that regions have, and of these bytes that blocks take; entries with a mapping of their own aside.
    shared_bytes: usize,
    shared_used_bytes: usize,
    sketch: Sketch,
    raw: RawSpace,
    clock: u32,
    /// Something had to leave for room since there was last much of it.
    crowded: bool,
    random: u64,
    pub(super) entries: usize,
    pub(super) raw_bytes: u64,
    pub(super) stored_bytes: u64,
    pub(super) pressed_entries: usize,
    pub(super) counts: Counts,
}

/// What became of an insertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placed {
    Inserted,
    NoRoom,
}

/// What a lookup found.
#[derive(Debug)]
pub(super) struct Looked {
    /// The entry's pin.
    pub(super) pin: Option<Pin>,
    /// How often the key was asked for lately, now included.
    pub(super) asked: u8,
    /// The entry is compressed, and asked for so often that it should be raw.
    pub(super) is_for_raw: bool,
}

impl Shard {
    /// A shard without memory. `keeps_raw`: there may be a share for raw blocks that could be compressed, other than all.
    pub(super) fn new(seed: u64, keeps_raw: bool) -> Self {
        let mut shard = Self::default();
        shard.random = seed.wrapping_mul(2).wrapping_add(1);
        shard.raw = RawSpace::new(keeps_raw);
        shard
    }

    /// Looks for the entry, and counts that it was asked for.
    pub(super) fn get(&mut self, key: &[u8], hash: u64, on_hit: OnHit) -> Looked {
        self.clock = self.clock.wrapping_add(1);
        self.counts.lookups += 1;
        let asked = self.sketch.add(hash);
        let Some(pin) = self.table.find(key, hash).map(BlockRef::pin) else {
            return Looked {
                pin: None,
                asked,
                is_for_raw: false,
            };
        };
        let entry = pin.entry();
        entry.touch(self.clock);
        entry.set_lent(on_hit == OnHit::Promote);
        if on_hit != OnHit::Keep {
            // It will be hit where this cache does not see it.
            self.sketch.add(hash);
            self.counts.taken += 1;
        }
        if on_hit == OnHit::Remove {
            self.remove(entry.at());
        }
        self.counts.hits += 1;
        self.counts.compressed_hits += u64::from(entry.pressed);
        let is_for_raw = on_hit == OnHit::Keep && entry.pressed && self.is_for_raw(entry, asked);
        Looked {
            pin: Some(pin),
            asked,
            is_for_raw,
        }
    }

    /// How often the key was asked for lately.
    pub(super) fn asked(&self, hash: u64) -> u8 {
        self.sketch.get(hash)
    }

    /// Removes the entry; whether there was one.
    pub(super) fn remove_key(&mut self, key: &[u8], hash: u64) -> bool {
        let at = self.table.find(key, hash).map(BlockRef::at);
        at.is_some_and(|at| self.remove(at))
    }

    /// Removes this very entry; whether it was still linked. Its memory goes with its last reader.
    pub(super) fn remove(&mut self, at: At) -> bool {
        let Some(unlinked) = self.table.unlink(at) else {
            return false;
        };
        self.release(unlinked);
        true
    }

    /// Takes an entry that is unlinked out of the books, and frees it, or leaves that to its last reader.
    fn release(&mut self, unlinked: Unlinked) {
        self.entries -= 1;
        self.raw_bytes -= u64::from(unlinked.raw_bytes);
        self.stored_bytes -= u64::from(unlinked.stored_bytes);
        self.pressed_entries -= usize::from(unlinked.pressed);
        if let Some(entry) = unlinked.entry {
            self.free(entry);
        }
    }

    /// Gives a pin back under the lock.
    fn unpin(&mut self, pin: Pin) {
        if let Some(entry) = pin.unpin() {
            self.free(entry);
        }
    }

    /// Whether there is too little memory for any block; counts a block that was to be put in.
    pub(super) fn is_closed(&mut self) -> bool {
        self.counts.no_room += u64::from(self.table.is_closed());
        self.table.is_closed()
    }

    /// Whether a block that was lent is here and can be no other than this; it is as if it was put in now.
    pub(super) fn has_returned(&mut self, key: &[u8], hash: u64, raw_bytes: u32, tag: u16) -> bool {
        let Some(entry) = self.table.find(key, hash) else {
            return false;
        };
        let is_same = entry.is_lent() && (entry.raw_bytes, entry.tag) == (raw_bytes, tag);
        if is_same {
            entry.touch(self.clock);
            entry.set_lent(false);
            self.counts.returned += 1;
        }
        is_same
    }

    /// Removes the entry of a key that has a newer block, whether that one is put in or not.
    pub(super) fn drop_outdated(&mut self, key: &[u8], hash: u64) {
        self.counts.replaced += u64::from(self.remove_key(key, hash));
    }

    /// Puts an entry in, in place of one with its key; others leave for it. `keeps_raw`: it could be compressed, and is kept raw as
    /// long as there is room for it among those.
    pub(super) fn insert(&mut self, parts: Parts<'_>, keeps_raw: bool) -> Placed {
        self.drop_outdated(parts.key, parts.hash);
        if !self.put(parts, self.clock, keeps_raw) {
            self.counts.no_room += 1;
            return Placed::NoRoom;
        }
        self.counts.inserted += 1;
        Placed::Inserted
    }

    /// Puts another form of an entry in its place; whether the entry was still there. It is gone where there is no room for the other.
    ///
    /// The caller has a pin on `entry`.
    pub(super) fn replace(&mut self, entry: At, parts: Parts<'_>, keeps_raw: bool) -> bool {
        let Some(unlinked) = self.table.unlink(entry) else {
            return false;
        };
        let touched = unlinked.touched;
        self.release(unlinked);
        if !self.put(parts, touched, keeps_raw) {
            self.counts.evicted += 1;
        }
        true
    }

    /// Writes and links an entry that nobody else has the key of; whether there was room.
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
        // Entries hold on to dictionaries, which live elsewhere.
        for bucket in 0..self.table.buckets() {
            while let Some(at) = self.table.chain(bucket).next().map(BlockRef::at) {
                self.remove(at);
            }
        }
    }
}
