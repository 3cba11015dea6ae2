//! A shard's memory: tables of a fixed size, and regions that are mapped and unmapped whole.

use std::ptr::NonNull;

use crate::eviction::sketch::Sketch;
use crate::mem::mapping::page_bytes;
use crate::victim::entry::Entry;
use crate::victim::region::{MAX_REGION_BYTES, MIN_REGION_BYTES, Region, block_bytes};
use crate::victim::shard::Shard;

/// Memory that the tables count on for an entry, in bytes.
const BYTES_PER_ENTRY: usize = 1536;
/// Budget for each bucket, in bytes.
const BUCKET_BYTES: usize = 1024;
/// With less a shard holds nothing.
const LEAST_BYTES: usize = 2 * MIN_REGION_BYTES;
/// Regions of a shard, about.
const REGIONS: usize = 8;
/// An entry that takes more than this part of a region has a mapping of its own.
const LARGE_ONE_IN: usize = 4;
/// Evictions for one insertion at most.
const MAX_EVICTIONS: usize = 256;

impl Shard {
    /// Memory of tables for a budget, in bytes.
    fn table_bytes_for(&self, budget_bytes: usize) -> usize {
        let entries = budget_bytes / BYTES_PER_ENTRY;
        (budget_bytes / BUCKET_BYTES) * size_of::<Option<Entry>>()
            + Sketch::bytes_for(entries)
            + self.raw.bytes_for(budget_bytes)
    }

    /// The length of regions that use a budget up, but for some pages.
    fn region_bytes_for(&self, budget_bytes: usize) -> usize {
        let room = budget_bytes.saturating_sub(self.table_bytes_for(budget_bytes));
        let regions = room / (room / REGIONS).clamp(MIN_REGION_BYTES, MAX_REGION_BYTES);
        let each = (room / regions.max(1)).saturating_sub(Region::held_bytes_for(0));
        (each / page_bytes() * page_bytes()).max(MIN_REGION_BYTES)
    }

    /// Changes the budget. Whether all that has to leave has left: entries that are being read leave when that is done, and this is
    /// to be called again until then.
    pub(crate) fn resize(&mut self, budget_bytes: usize) -> bool {
        self.budget_bytes = budget_bytes;
        self.raw.set_budget(budget_bytes);
        self.region_bytes = self.region_bytes_for(budget_bytes);
        let made_for = self.buckets.len() * BUCKET_BYTES;
        let fitting = made_for / 4 * 3..=made_for / 4 * 5;
        if budget_bytes < LEAST_BYTES {
            self.shrink(0);
            self.drop_tables();
        } else if !fitting.contains(&budget_bytes) || self.buckets.is_empty() {
            let new = self.table_bytes_for(budget_bytes);
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
        self.raw.drop_table();
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
        if !self.raw.remake_table(self.budget_bytes) {
            return;
        }
        buckets.resize(len, None);
        let old_bytes = self.tables_bytes();
        self.held_bytes = self.held_bytes - old_bytes + self.table_bytes_for(self.budget_bytes);
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

    /// Gives an entry's memory back. Its last reader calls this as well.
    ///
    /// # Safety
    /// The entry is unlinked, and nobody has a pin.
    pub(crate) unsafe fn free(&mut self, entry: Entry) {
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
    pub(crate) unsafe fn free_read(&mut self, entry: Entry) {
        // SAFETY: as the caller promises.
        unsafe { self.free(entry) };
    }

    /// Room for an entry of so many bytes; others leave for it.
    pub(crate) fn make_room(&mut self, bytes: usize) -> Option<NonNull<u8>> {
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

    /// Memory held, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes
    }
}
