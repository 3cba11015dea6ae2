//! A shard's memory: tables that grow with the number of entries, and regions that are mapped and unmapped whole.

use crate::eviction::sketch::Sketch;
use crate::victim::entry::{MAX_REGION_BYTES, MIN_REGION_BYTES, Owned, Region, Room, Table, block_bytes};
use crate::victim::shard::Shard;
use crate::victim::shard::raw::BYTES_PER_PLACE;
use leafpress_base::mem::mapping::page_bytes;

/// Memory that the tables count on for an entry, in bytes.
const BYTES_PER_ENTRY: usize = 1536;
/// Budget for each bucket, in bytes.
const BUCKET_BYTES: usize = 1024;
/// The tables of an empty shard are large enough for so much of its budget, in bytes.
const FIRST_TABLES_FOR_BYTES: usize = 512 << 10;
/// With less a shard holds nothing.
const MIN_BYTES: usize = 2 * MIN_REGION_BYTES;
/// Regions of a shard, about.
const REGIONS: usize = 8;
/// An entry that takes more than this part of a region has a mapping of its own.
const LARGE_ONE_IN: usize = 4;
/// Evictions for one insertion at most.
const MAX_EVICTIONS: usize = 256;

impl Shard {
    /// Memory of tables for a budget, in bytes.
    fn table_bytes_for(&self, budget_bytes: usize) -> usize {
        if budget_bytes == 0 {
            return 0;
        }
        let entries = budget_bytes / BYTES_PER_ENTRY;
        let places = self.raw.places_for(budget_bytes);
        Table::bytes_for(budget_bytes / BUCKET_BYTES, places) + Sketch::bytes_for(entries)
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
        if budget_bytes < MIN_BYTES {
            self.shrink(0);
            self.drop_tables();
            return self.held_bytes <= budget_bytes;
        }
        if self.table.is_closed() || self.tables_for_bytes > budget_bytes / 4 * 5 {
            let tables_for = self.tables_for_entries();
            // For a moment there are both the old tables and the new ones.
            let both = self.tables_bytes() + self.table_bytes_for(tables_for);
            self.shrink(budget_bytes.saturating_sub(both));
            if self.regions_bytes() + both > budget_bytes {
                return false;
            }
            self.remake_tables(tables_for);
        }
        let reserved = self.table_bytes_for(budget_bytes).max(self.tables_bytes());
        self.shrink(budget_bytes.saturating_sub(reserved));
        self.reserve(reserved);
        self.held_bytes <= budget_bytes
    }

    fn regions_bytes(&self) -> usize {
        self.held_bytes - self.reserved_bytes
    }

    /// Memory of the tables as they are, in bytes.
    fn tables_bytes(&self) -> usize {
        self.table_bytes_for(self.tables_for_bytes)
    }

    /// Reserves this much of the budget for tables.
    fn reserve(&mut self, bytes: usize) {
        self.held_bytes = self.regions_bytes() + bytes;
        self.reserved_bytes = bytes;
    }

    /// The budget for which tables have to be large enough to hold the entries that there are.
    fn tables_for_entries(&self) -> usize {
        let needed = (self.entries * BYTES_PER_PLACE).next_power_of_two();
        needed.max(FIRST_TABLES_FOR_BYTES).min(self.budget_bytes)
    }

    /// The tables are empty, and go.
    fn drop_tables(&mut self) {
        self.reserve(0);
        self.table.close();
        self.sketch = Sketch::default();
        self.tables_for_bytes = 0;
    }

    /// Hangs all entries into tables that are large enough for a budget. Without memory for them it stays with those it has.
    fn remake_tables(&mut self, tables_for: usize) {
        let Some(sketch) = Sketch::new(tables_for / BYTES_PER_ENTRY) else {
            return;
        };
        if self
            .table
            .remake(tables_for / BUCKET_BYTES, self.raw.places_for(tables_for))
        {
            self.sketch = sketch;
            self.tables_for_bytes = tables_for;
        }
    }

    /// Makes the tables larger once they have as many entries as they are made for, unless they are as large as the budget allows.
    pub(super) fn grow_tables(&mut self) {
        if self.entries <= self.tables_for_bytes / BYTES_PER_PLACE || self.tables_for_bytes >= self.budget_bytes {
            return;
        }
        let tables_for = self.tables_for_bytes.saturating_mul(2).min(self.budget_bytes);
        let both = self.tables_bytes() + self.table_bytes_for(tables_for);
        // The buckets stay fuller than they should be where the regions leave no room for both.
        if self.regions_bytes() + both > self.budget_bytes || !self.sketch.grow(tables_for / BYTES_PER_ENTRY) {
            return;
        }
        if self
            .table
            .remake(tables_for / BUCKET_BYTES, self.raw.places_for(tables_for))
        {
            self.tables_for_bytes = tables_for;
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
            let Some(least) = staying.min_by_key(|&at| self.regions[at].used_bytes()) else {
                return;
            };
            self.regions[least].leaving = true;
            self.evict_region(least);
        }
    }

    /// Removes all entries of a region, and the region with the last of them that nobody reads.
    fn evict_region(&mut self, region: usize) {
        self.regions[region].staying = true;
        for bucket in 0..self.table.buckets() {
            let mut chain = self.table.chain(bucket);
            while let Some(entry) = chain.find(|entry| self.regions[region].contains(entry.address())) {
                let at = entry.at();
                self.counts.evicted += 1;
                self.remove(at);
                chain = self.table.chain(bucket);
            }
        }
        self.regions[region].staying = false;
        self.drop_if_left(region);
    }

    /// Unmaps a region that is to go and has no entry any more, or that was the mapping of an entry that has gone.
    fn drop_if_left(&mut self, at: usize) {
        let region = &self.regions[at];
        if region.entries() == 0 && !region.staying && (region.leaving || region.is_single()) {
            let held = region.held_bytes();
            self.shared_bytes -= if region.is_single() { 0 } else { held };
            self.held_bytes -= held;
            self.regions.swap_remove(at);
        }
    }

    /// Gives an entry's memory back. Its last reader calls this as well.
    pub(crate) fn free(&mut self, entry: Owned) {
        let address = entry.address();
        let Some(at) = self.regions.iter().position(|region| region.contains(address)) else {
            debug_assert!(false, "an entry lies in a region");
            return;
        };
        let region = &mut self.regions[at];
        let room = entry.into_room();
        if !region.is_single() {
            self.shared_used_bytes -= block_bytes(room.bytes());
        }
        region.free(room);
        self.drop_if_left(at);
    }

    /// Room for an entry of so many bytes; others leave for it.
    pub(crate) fn make_room(&mut self, bytes: usize) -> Option<Room> {
        if self.table.is_closed() {
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
    fn make_single(&mut self, bytes: usize) -> Option<Room> {
        let held = Region::held_bytes_for(Region::single_bytes(bytes));
        // One entry does not drive out more than half of the others.
        if held > self.budget_bytes / 2 {
            return None;
        }
        if self.held_bytes + held > self.budget_bytes {
            self.shrink(self.budget_bytes.saturating_sub(self.reserved_bytes + held));
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

    fn allocate(&mut self, bytes: usize) -> Option<Room> {
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
        self.regions_bytes() + self.tables_bytes()
    }
}
