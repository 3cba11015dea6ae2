//! A part of the cache: a table of entries, their memory, and the choice of what leaves. Its owner holds a lock.
//!
//! Entries hang in buckets, as many as the budget has kilobytes, so that the table never grows and what is held never does either.
//! The victim is the worst of some entries drawn at random, by how often they were asked for lately against what they take
//! (Blankstein, Sen, Freedman, "Hyperbolic Caching", USENIX ATC 2017).

use std::ptr::NonNull;

use super::entry::{Entry, Parts, entry_bytes};
use super::region::{MAX_REGION_BYTES, MIN_REGION_BYTES, Region, block_bytes};
use super::sketch::Sketch;
use super::stats::Counts;
use crate::mapping::page_bytes;

/// Memory that the tables count on for an entry, in bytes.
const BYTES_PER_ENTRY: usize = 1536;
/// Budget for each bucket, in bytes.
const BUCKET_BYTES: usize = 1024;
/// With less a shard holds nothing.
pub(super) const LEAST_BYTES: usize = 2 * MIN_REGION_BYTES;
/// Regions of a shard, about.
const REGIONS: usize = 8;
/// An entry that takes more than this part of a region has a mapping of its own.
const LARGE_ONE_IN: usize = 4;
/// Entries that a victim is chosen from.
const SAMPLE: usize = 8;
/// Evictions for one insertion at most.
const MAX_EVICTIONS: usize = 256;
/// Free room that admits everything again is one in so many of the budget's bytes.
const ROOMY_ONE_IN: usize = 4;

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

impl Shard {
    pub(super) fn new(seed: u64) -> Self {
        let mut shard = Self::default();
        shard.random = seed.wrapping_mul(2).wrapping_add(1);
        shard
    }

    /// Memory of tables for a budget, in bytes.
    fn table_bytes_for(budget_bytes: usize) -> usize {
        let entries = budget_bytes / BYTES_PER_ENTRY;
        (budget_bytes / BUCKET_BYTES) * size_of::<Option<Entry>>() + Sketch::bytes_for(entries)
    }

    /// The length of regions that use a budget up, but for some pages.
    fn region_bytes_for(budget_bytes: usize) -> usize {
        let room = budget_bytes.saturating_sub(Self::table_bytes_for(budget_bytes));
        let regions = room / (room / REGIONS).clamp(MIN_REGION_BYTES, MAX_REGION_BYTES);
        let each = (room / regions.max(1)).saturating_sub(Region::held_bytes_for(0));
        (each / page_bytes() * page_bytes()).max(MIN_REGION_BYTES)
    }

    /// Changes the budget. Whether all that has to leave has left: entries that are being read leave when that is done, and this is
    /// to be called again until then.
    pub(super) fn resize(&mut self, budget_bytes: usize) -> bool {
        self.budget_bytes = budget_bytes;
        self.region_bytes = Self::region_bytes_for(budget_bytes);
        let made_for = self.buckets.len() * BUCKET_BYTES;
        let fitting = made_for / 4 * 3..=made_for / 4 * 5;
        if budget_bytes < LEAST_BYTES {
            self.shrink(0);
            self.drop_tables();
        } else if !fitting.contains(&budget_bytes) || self.buckets.is_empty() {
            let new = Self::table_bytes_for(budget_bytes);
            self.shrink(budget_bytes.saturating_sub(self.tables_bytes() + new));
            let regions = self.held_bytes - self.tables_bytes();
            if regions + new > budget_bytes {
                return false;
            }
            self.remake_tables();
        } else {
            self.shrink(budget_bytes.saturating_sub(self.tables_bytes()));
        }
        self.held_bytes <= self.budget_bytes
    }

    fn tables_bytes(&self) -> usize {
        self.held_bytes - self.regions.iter().map(Region::held_bytes).sum::<usize>()
    }

    /// The tables are empty, and go.
    fn drop_tables(&mut self) {
        self.held_bytes -= self.tables_bytes();
        self.buckets = Vec::new();
        self.sketch = Sketch::default();
    }

    /// Hangs all entries into tables for the budget. Without memory for them it stays with those it has.
    fn remake_tables(&mut self) {
        let len = self.budget_bytes / BUCKET_BYTES;
        let mut buckets = Vec::new();
        if buckets.try_reserve_exact(len).is_err() {
            return;
        }
        let Some(sketch) = Sketch::new(self.budget_bytes / BYTES_PER_ENTRY) else {
            return;
        };
        buckets.resize(len, None);
        let old_bytes = self.tables_bytes();
        self.held_bytes = self.held_bytes - old_bytes + Self::table_bytes_for(self.budget_bytes);
        self.sketch = sketch;
        for mut chain in std::mem::replace(&mut self.buckets, buckets) {
            while let Some(entry) = chain {
                // SAFETY: the entry was linked, and the lock is held.
                let header = unsafe { entry.header() };
                chain = header.next();
                let bucket = self.bucket(header.hash);
                header.set_next(self.buckets[bucket]);
                self.buckets[bucket] = Some(entry);
            }
        }
    }

    /// Lets whole regions go until their memory fits, except where a reader has an entry.
    fn shrink(&mut self, regions_bytes: usize) {
        loop {
            let staying = self.regions.iter().filter(|region| !region.leaving);
            if staying.map(Region::held_bytes).sum::<usize>() <= regions_bytes {
                return;
            }
            let staying = (0..self.regions.len()).filter(|&at| !self.regions[at].leaving);
            let Some(least) = staying.min_by_key(|&at| self.regions[at].used_bytes) else {
                return;
            };
            self.regions[least].leaving = true;
            self.evict_region(least);
        }
    }

    /// Removes all entries of a region, and the region with the last of them that nobody reads.
    fn evict_region(&mut self, region: usize) {
        // Pinned by a count of one, so that the region stays until all entries are out.
        self.regions[region].entries += 1;
        for bucket in 0..self.buckets.len() {
            let mut at = self.buckets[bucket];
            while let Some(entry) = at {
                // SAFETY: the entry is linked, and the lock is held.
                at = unsafe { entry.header() }.next();
                if self.regions[region].contains(entry.address()) {
                    self.counts.evicted += 1;
                    self.unlink(bucket, entry);
                    self.release(entry);
                }
            }
        }
        self.regions[region].entries -= 1;
        self.drop_if_left(region);
    }

    /// Unmaps a region that is to go and has no entry any more, or that was the mapping of an entry that has gone.
    fn drop_if_left(&mut self, at: usize) {
        let region = &self.regions[at];
        if region.entries == 0 && (region.leaving || region.is_single()) {
            let held = region.held_bytes();
            self.shared_bytes -= if region.is_single() { 0 } else { held };
            self.held_bytes -= held;
            self.regions.swap_remove(at);
        }
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

    /// The entry, pinned. Counts that it was asked for.
    pub(super) fn get(&mut self, key: &[u8], hash: u64, take: bool) -> Option<Entry> {
        self.clock = self.clock.wrapping_add(1);
        self.counts.lookups += 1;
        self.sketch.add(hash);
        let entry = self.find(key, hash)?;
        // SAFETY: the entry is linked, and the lock is held.
        let header = unsafe { entry.header() };
        header.pin();
        header.touch(self.clock);
        if take {
            // It will be hit where this cache does not see it.
            self.sketch.add(hash);
            self.counts.taken += 1;
            self.unlink(self.bucket(hash), entry);
            header.unlink_is_free();
            self.forget(entry);
        }
        self.counts.hits += 1;
        Some(entry)
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

    /// Gives an entry's memory back. Its last reader calls this as well.
    ///
    /// # Safety
    /// The entry is unlinked, and nobody has a pin.
    unsafe fn free(&mut self, entry: Entry) {
        // SAFETY: as the caller promises.
        let (bytes, address) = unsafe { (entry.bytes(), entry.address()) };
        let Some(at) = self.regions.iter().position(|region| region.contains(address)) else {
            debug_assert!(false, "an entry lies in a region");
            return;
        };
        let region = &mut self.regions[at];
        // SAFETY: as the caller promises.
        unsafe { entry.drop_dictionary() };
        if !region.is_single() {
            self.shared_used_bytes -= block_bytes(bytes);
        }
        // SAFETY: the entry was allocated with these bytes.
        unsafe { region.free(address, bytes) };
        self.drop_if_left(at);
    }

    /// Frees an entry whose last reader the caller was.
    ///
    /// # Safety
    /// As [`Shard::free`].
    pub(super) unsafe fn free_read(&mut self, entry: Entry) {
        // SAFETY: as the caller promises.
        unsafe { self.free(entry) };
    }

    fn random(&mut self) -> u64 {
        // xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift generators", ACM TOMS 2016.
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// What an entry is worth a byte: how often it was asked for lately, a little less the longer ago that was.
    fn worth(&self, entry: Entry) -> f32 {
        // SAFETY: the entry is linked, and the lock is held.
        let header = unsafe { entry.header() };
        let age = self.clock.wrapping_sub(header.touched()) as f32 / (4 * self.entries.max(64)) as f32;
        let asked = f32::from(self.sketch.get(header.hash));
        // SAFETY: as above.
        (asked + 0.5 - 0.4 * age.min(1.0)) / unsafe { entry.bytes() } as f32
    }

    /// The entry that is worth least of some, with that.
    fn victim(&mut self) -> Option<(Entry, f32)> {
        if self.entries == 0 {
            return None;
        }
        let random = self.random();
        let mut bucket = self.bucket(random);
        let (mut worst, mut seen): (Option<(Entry, f32)>, usize) = (None, 0);
        for _ in 0..self.buckets.len() {
            let mut at = self.buckets[bucket];
            while let Some(entry) = at {
                // SAFETY: the entry is linked, and the lock is held.
                let header = unsafe { entry.header() };
                at = header.next();
                if header.is_pinned() {
                    continue;
                }
                let worth = self.worth(entry);
                if worst.is_none_or(|(_, least)| worth < least) {
                    worst = Some((entry, worth));
                }
                seen += 1;
            }
            if seen >= SAMPLE {
                break;
            }
            bucket = (bucket + 1) % self.buckets.len();
        }
        worst
    }

    /// Whether there is too little memory for any block; counts a block that was to be put in.
    pub(super) fn is_closed(&mut self) -> bool {
        self.counts.no_room += u64::from(self.buckets.is_empty());
        self.buckets.is_empty()
    }

    /// Whether a block that would take about so many bytes is worth more than what would have to leave for it.
    pub(super) fn admits(&mut self, hash: u64, key_bytes: usize, stored_bytes: usize) -> bool {
        let bytes = entry_bytes(key_bytes, stored_bytes);
        if self.buckets.is_empty() {
            return false;
        }
        let unmapped = self.budget_bytes.saturating_sub(self.held_bytes);
        let free = self.shared_bytes - self.shared_used_bytes.min(self.shared_bytes);
        if free + unmapped > self.budget_bytes / ROOMY_ONE_IN {
            self.crowded = false;
        }
        if !self.crowded {
            return true;
        }
        let worth = f32::from(self.sketch.get(hash)) / bytes as f32;
        self.victim().is_none_or(|(_, least)| worth > least)
    }

    /// Puts an entry in, in place of one with its key; others leave for it.
    pub(super) fn insert(&mut self, parts: Parts<'_>) -> Placed {
        let (hash, bytes) = (parts.hash, parts.bytes());
        if self.erase(parts.key, hash) {
            self.counts.replaced += 1;
        }
        let Some(room) = self.make_room(bytes) else {
            self.counts.no_room += 1;
            return Placed::NoRoom;
        };
        self.entries += 1;
        self.raw_bytes += u64::from(parts.raw_bytes);
        self.stored_bytes += parts.stored.len() as u64;
        self.pressed_entries += usize::from(parts.pressed);
        self.counts.inserted += 1;
        // SAFETY: the room is that entry's alone.
        let entry = unsafe { Entry::write(room, parts, self.clock) };
        let bucket = self.bucket(hash);
        // SAFETY: it was just written.
        unsafe { entry.header() }.set_next(self.buckets[bucket]);
        self.buckets[bucket] = Some(entry);
        Placed::Inserted
    }

    fn make_room(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        if self.buckets.is_empty() {
            return None;
        }
        if bytes > self.region_bytes / LARGE_ONE_IN {
            return self.make_single(bytes);
        }
        for _ in 0..MAX_EVICTIONS {
            if let Some(room) = self.allocate(bytes) {
                return Some(room);
            }
            let (victim, _) = self.victim()?;
            self.crowded = true;
            self.evict(victim);
        }
        None
    }

    /// A mapping for one entry. A region leaves where there is no other room.
    fn make_single(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        let held = Region::held_bytes_for(Region::single_bytes(bytes));
        // One entry does not drive out more than half of the others.
        if held > self.budget_bytes / 2 {
            return None;
        }
        if self.held_bytes + held > self.budget_bytes {
            let tables = self.tables_bytes();
            self.shrink(self.budget_bytes.saturating_sub(tables + held));
        }
        if self.held_bytes + held > self.budget_bytes {
            return None;
        }
        self.regions.try_reserve(1).ok()?;
        let mut region = Region::single(bytes)?;
        let room = region.allocate(bytes)?;
        self.held_bytes += held;
        self.regions.push(region);
        Some(room)
    }

    fn allocate(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        let from = self.regions.iter_mut().filter(|region| !region.is_single());
        let room = from.into_iter().find_map(|region| region.allocate(bytes));
        let room = match room {
            Some(room) => room,
            None => self.grow()?.allocate(bytes)?,
        };
        self.shared_used_bytes += block_bytes(bytes);
        Some(room)
    }

    /// A new region, the last one with what is left of the budget.
    fn grow(&mut self) -> Option<&mut Region> {
        let left = self
            .budget_bytes
            .checked_sub(self.held_bytes + Region::held_bytes_for(0))?;
        let bytes = self.region_bytes.min(left) / page_bytes() * page_bytes();
        if bytes < MIN_REGION_BYTES.min(self.region_bytes) {
            return None;
        }
        self.regions.try_reserve(1).ok()?;
        let region = Region::new(bytes)?;
        self.held_bytes += region.held_bytes();
        self.shared_bytes += region.held_bytes();
        self.regions.push(region);
        self.regions.last_mut()
    }

    fn evict(&mut self, entry: Entry) {
        // SAFETY: the entry is linked, and the lock is held.
        let hash = unsafe { entry.header() }.hash;
        self.counts.evicted += 1;
        self.unlink(self.bucket(hash), entry);
        self.release(entry);
    }

    /// Some entries of a family, pinned, from a random place on, until their raw bytes are enough.
    pub(super) fn sample(&mut self, family: u8, mut raw_bytes: usize, out: &mut Vec<Entry>) {
        if self.buckets.is_empty() {
            return;
        }
        let random = self.random();
        let start = self.bucket(random);
        for bucket in 0..self.buckets.len() {
            let mut at = self.buckets[(start + bucket) % self.buckets.len()];
            while let Some(entry) = at {
                // SAFETY: the entry is linked, and the lock is held.
                let header = unsafe { entry.header() };
                at = header.next();
                if header.family == family && out.try_reserve(1).is_ok() {
                    header.pin();
                    out.push(entry);
                    raw_bytes = raw_bytes.saturating_sub(header.raw_bytes as usize);
                }
            }
            if raw_bytes == 0 {
                return;
            }
        }
    }

    /// Flips a bit of an entry that nobody reads; whether there is one.
    pub(super) fn flip(&mut self, key: &[u8], hash: u64, bit: usize) -> bool {
        let Some(entry) = self.find(key, hash) else {
            return false;
        };
        // SAFETY: the entry is linked, and the lock is held.
        let is_free = !unsafe { entry.header() }.is_pinned();
        if is_free {
            // SAFETY: as above, and nobody has a pin.
            unsafe { entry.flip(bit) };
        }
        is_free
    }

    /// What is wrong with the books; empty when nothing is.
    pub(super) fn faults(&self) -> String {
        let (mut entries, mut raw, mut stored, mut pressed, mut lost) = (0, 0, 0, 0, 0);
        for (at, &bucket) in self.buckets.iter().enumerate() {
            let mut next = bucket;
            while let Some(entry) = next {
                // SAFETY: the entry is linked, and the lock is held.
                let header = unsafe { entry.header() };
                next = header.next();
                entries += 1;
                raw += u64::from(header.raw_bytes);
                stored += u64::from(header.stored_bytes);
                pressed += usize::from(header.pressed);
                let regions = self
                    .regions
                    .iter()
                    .filter(|region| region.contains(entry.address()))
                    .count();
                lost += usize::from(
                    self.bucket(header.hash) != at || regions != 1 || header.stored_bytes > header.raw_bytes,
                );
            }
        }
        let regions: usize = self.regions.iter().map(Region::held_bytes).sum();
        let in_regions: usize = self.regions.iter().map(|region| region.entries).sum();
        let tables = self.held_bytes.wrapping_sub(regions);
        let good = (entries, raw, stored, pressed, lost)
            == (self.entries, self.raw_bytes, self.stored_bytes, self.pressed_entries, 0)
            && in_regions >= entries
            && tables <= self.held_bytes
            && self.held_bytes <= self.budget_bytes;
        if good {
            return String::new();
        }
        format!(
            "{entries} entries of {}, {raw} raw bytes of {}, {stored} stored of {}, {pressed} compressed of {}, {lost} out of place, \
             {in_regions} in regions, {regions} bytes of regions in {} of {}",
            self.entries, self.raw_bytes, self.stored_bytes, self.pressed_entries, self.held_bytes, self.budget_bytes
        )
    }

    /// Memory held, in bytes.
    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes
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
