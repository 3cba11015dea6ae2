//! A part of the cache: a table of entries, their memory, and the choice of what leaves. Its owner holds a lock.
//!
//! Entries hang in buckets, as many as the budget has kilobytes, so that the table never grows and what is held never does either.
//! The victim is the worst of some entries drawn at random, by how often they were asked for lately against what they take
//! (Blankstein, Sen, Freedman, "Hyperbolic Caching", USENIX ATC 2017).

#[allow(unsafe_code)]
mod books;
#[allow(unsafe_code)]
mod memory;
#[allow(unsafe_code)]
mod raw;
#[allow(unsafe_code)]
mod victims;

use super::Taking;
use super::entry::{Entry, Parts};
use super::region::Region;
use super::stats::Counts;
use crate::eviction::sketch::Sketch;
pub(super) use raw::Form;
use raw::RawSpace;

#[derive(Default)]
pub(super) struct Shard {
    budget_bytes: usize,
    region_bytes: usize,
    buckets: Vec<Option<Entry>>,
    regions: Vec<Region>,
    held_bytes: usize,
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
#[derive(Debug, Clone, Copy)]
pub(super) struct Looked {
    /// The entry, pinned.
    pub(super) entry: Option<Entry>,
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

    #[inline]
    fn bucket(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.buckets.len() as u128) >> 64) as usize
    }

    fn find(&self, key: &[u8], hash: u64) -> Option<Entry> {
        let mut at = if self.buckets.is_empty() {
            None
        } else {
            self.buckets[self.bucket(hash)]
        };
        while let Some(entry) = at {
            // SAFETY: the entry is linked, and the lock is held.
            let header = unsafe { entry.header() };
            // SAFETY: as above.
            if header.hash == hash && unsafe { entry.key() } == key {
                return Some(entry);
            }
            at = header.next();
        }
        None
    }

    /// Looks for the entry, and counts that it was asked for.
    pub(super) fn get(&mut self, key: &[u8], hash: u64, taking: Taking) -> Looked {
        self.clock = self.clock.wrapping_add(1);
        self.counts.lookups += 1;
        let asked = self.sketch.add(hash);
        let Some(entry) = self.find(key, hash) else {
            return Looked {
                entry: None,
                asked,
                is_for_raw: false,
            };
        };
        // SAFETY: the entry is linked, and the lock is held.
        let header = unsafe { entry.header() };
        header.pin();
        header.touch(self.clock);
        header.set_lent(taking == Taking::Lend);
        if taking != Taking::Keep {
            // It will be hit where this cache does not see it.
            self.sketch.add(hash);
            self.counts.taken += 1;
        }
        if taking == Taking::Take {
            self.unlink(self.bucket(hash), entry);
            header.unlink_is_free();
            self.forget(entry);
        }
        self.counts.hits += 1;
        self.counts.compressed_hits += u64::from(header.pressed);
        Looked {
            entry: Some(entry),
            asked,
            is_for_raw: taking == Taking::Keep && header.pressed && self.is_for_raw(entry, asked),
        }
    }

    /// How often the key was asked for lately.
    pub(super) fn asked(&self, hash: u64) -> u8 {
        self.sketch.get(hash)
    }

    /// Removes the entry; whether there was one.
    pub(super) fn erase(&mut self, key: &[u8], hash: u64) -> bool {
        let Some(entry) = self.find(key, hash) else {
            return false;
        };
        self.unlink(self.bucket(hash), entry);
        self.release(entry);
        true
    }

    /// Removes this very entry, if it is still linked.
    pub(super) fn erase_entry(&mut self, entry: Entry, hash: u64) {
        let bucket = self.bucket(hash);
        let mut at = self.buckets.get(bucket).copied().flatten();
        while let Some(found) = at {
            if found == entry {
                self.unlink(bucket, entry);
                self.release(entry);
                return;
            }
            // SAFETY: the entry is linked, and the lock is held.
            at = unsafe { found.header() }.next();
        }
    }

    fn unlink(&mut self, bucket: usize, entry: Entry) {
        // SAFETY: both entries are linked, and the lock is held.
        let next = unsafe { entry.header() }.next();
        if self.buckets[bucket] == Some(entry) {
            self.buckets[bucket] = next;
            return;
        }
        let mut at = self.buckets[bucket];
        while let Some(before) = at {
            // SAFETY: as above.
            let header = unsafe { before.header() };
            if header.next() == Some(entry) {
                header.set_next(next);
                return;
            }
            at = header.next();
        }
    }

    /// Takes an entry that is unlinked out of the books.
    fn forget(&mut self, entry: Entry) {
        self.raw.unlist(entry);
        // SAFETY: the entry is not freed before this function's caller does it.
        let header = unsafe { entry.header() };
        self.entries -= 1;
        self.raw_bytes -= u64::from(header.raw_bytes);
        self.stored_bytes -= u64::from(header.stored_bytes);
        self.pressed_entries -= usize::from(header.pressed);
    }

    /// Frees an unlinked entry, or leaves that to its last reader.
    fn release(&mut self, entry: Entry) {
        self.forget(entry);
        // SAFETY: as above.
        if unsafe { entry.header() }.unlink_is_free() {
            // SAFETY: it is unlinked, and nobody has a pin.
            unsafe { self.free(entry) };
        }
    }

    /// Whether there is too little memory for any block; counts a block that was to be put in.
    pub(super) fn is_closed(&mut self) -> bool {
        self.counts.no_room += u64::from(self.buckets.is_empty());
        self.buckets.is_empty()
    }

    /// Whether a block that was lent is here and can be no other than this; it is as if it was put in now.
    pub(super) fn has_returned(&mut self, key: &[u8], hash: u64, raw_bytes: u32, tag: u16) -> bool {
        let Some(entry) = self.find(key, hash) else {
            return false;
        };
        // SAFETY: the entry is linked, and the lock is held.
        let header = unsafe { entry.header() };
        let is_same = header.is_lent() && (header.raw_bytes, header.tag) == (raw_bytes, tag);
        if is_same {
            header.touch(self.clock);
            header.set_lent(false);
            self.counts.returned += 1;
        }
        is_same
    }

    /// Puts an entry in, in place of one with its key; others leave for it. `keeps_raw`: it could be compressed, and is kept raw as
    /// long as there is room for it among those.
    pub(super) fn insert(&mut self, parts: Parts<'_>, keeps_raw: bool) -> Placed {
        if self.erase(parts.key, parts.hash) {
            self.counts.replaced += 1;
        }
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
    pub(super) fn replace(&mut self, entry: Entry, parts: Parts<'_>, keeps_raw: bool) -> bool {
        // SAFETY: the caller has a pin.
        let header = unsafe { entry.header() };
        if !header.is_linked() {
            return false;
        }
        self.unlink(self.bucket(parts.hash), entry);
        self.release(entry);
        if !self.put(parts, header.touched(), keeps_raw) {
            self.counts.evicted += 1;
        }
        true
    }

    /// Writes and links an entry that nobody else has the key of; whether there was room.
    fn put(&mut self, parts: Parts<'_>, touched: u32, keeps_raw: bool) -> bool {
        let hash = parts.hash;
        let Some(room) = self.make_room(parts.bytes()) else {
            return false;
        };
        self.entries += 1;
        self.raw_bytes += u64::from(parts.raw_bytes);
        self.stored_bytes += parts.stored.len() as u64;
        self.pressed_entries += usize::from(parts.pressed);
        // SAFETY: the room is that entry's alone.
        let entry = unsafe { Entry::write(room, parts, touched) };
        let bucket = self.bucket(hash);
        // SAFETY: it was just written.
        unsafe { entry.header() }.set_next(self.buckets[bucket]);
        self.buckets[bucket] = Some(entry);
        if keeps_raw {
            self.raw.list(entry);
        }
        true
    }
}

impl Drop for Shard {
    fn drop(&mut self) {
        // Entries hold on to dictionaries, which live elsewhere.
        for bucket in 0..self.buckets.len() {
            while let Some(entry) = self.buckets[bucket] {
                self.unlink(bucket, entry);
                self.release(entry);
            }
        }
    }
}
