//! A shard's memory: tables that grow with the number of entries, and regions that are mapped and unmapped whole.

use crate::eviction::sketch::Sketch;
use crate::victim::entry::{EntryTable, MAX_REGION_BYTES, MIN_REGION_BYTES, Owned, Region, Room, block_bytes};
use crate::victim::shard::Shard;
use crate::victim::shard::raw::BYTES_PER_PLACE;
use crate::victim::stats::Count;
use leafpress_base::mem::mapping::page_bytes;

/// Memory per entry for which the tables are sized, in bytes.
const BYTES_PER_ENTRY: usize = 1536;
/// Budget for each bucket, in bytes.
const BUCKET_BYTES: usize = 1024;
/// The tables of an empty shard are sized for this part of its budget, in bytes.
const FIRST_TABLES_FOR_BYTES: usize = 512 << 10;
/// A shard with less memory holds nothing.
const MIN_BYTES: usize = 2 * MIN_REGION_BYTES;
/// Approximate number of regions of a shard.
const REGIONS: usize = 8;
/// An entry that exceeds this fraction (1/4) of a region has a mapping of its own.
const LARGE_ONE_IN: usize = 4;
/// Maximum number of evictions for one insertion.
const MAX_EVICTIONS: usize = 256;

impl Shard {
    /// Memory of tables for a budget, in bytes.
    fn table_bytes_for(&self, budget_bytes: usize) -> usize {
        if budget_bytes == 0 {
            return 0;
        }
        let entries = budget_bytes / BYTES_PER_ENTRY;
        let places = self.raw.places_for(budget_bytes);
        EntryTable::bytes_for(budget_bytes / BUCKET_BYTES, places) + Sketch::bytes_for(entries)
    }

    /// Returns the size of regions that divides a budget with little remainder.
    fn region_bytes_for(&self, budget_bytes: usize) -> usize {
        let room = budget_bytes.saturating_sub(self.table_bytes_for(budget_bytes));
        let regions = room / (room / REGIONS).clamp(MIN_REGION_BYTES, MAX_REGION_BYTES);
        let each = (room / regions.max(1)).saturating_sub(Region::held_bytes_for(0));
        (each / page_bytes() * page_bytes()).max(MIN_REGION_BYTES)
    }

    /// Changes the budget. Returns true if all excess has been evicted: entries that are being read are evicted
    /// afterwards, and this has to be called again until then.
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
            // During a rebuild there are both the old tables and the new ones.
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

    /// Current memory of the tables, in bytes.
    fn tables_bytes(&self) -> usize {
        self.table_bytes_for(self.tables_for_bytes)
    }

    /// Reserves this much of the budget for tables.
    fn reserve(&mut self, bytes: usize) {
        self.held_bytes = self.regions_bytes() + bytes;
        self.reserved_bytes = bytes;
    }

    /// Returns the budget for which tables are large enough for the present entries.
    fn tables_for_entries(&self) -> usize {
        let needed = (self.entries * BYTES_PER_PLACE).next_power_of_two();
        needed.max(FIRST_TABLES_FOR_BYTES).min(self.budget_bytes)
    }

    /// Frees the tables, which are empty.
    fn drop_tables(&mut self) {
        self.reserve(0);
        self.table.close();
        self.sketch = Sketch::default();
        self.tables_for_bytes = 0;
    }

    /// Rebuilds the tables for a budget. If there is no memory, the old tables are kept.
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

    /// Grows the tables when they have the number of entries that they are sized for, unless they have the maximum size
    /// for the budget.
    pub(super) fn grow_tables(&mut self) {
        if self.entries <= self.tables_for_bytes / BYTES_PER_PLACE || self.tables_for_bytes >= self.budget_bytes {
            return;
        }
        let tables_for = self.tables_for_bytes.saturating_mul(2).min(self.budget_bytes);
        let both = self.tables_bytes() + self.table_bytes_for(tables_for);
        // If the regions leave no room for both tables, the buckets have a higher load.
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

    /// Evicts whole regions until their memory fits, except entries with readers.
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

    /// Evicts all entries of a region, and unmaps it once the last of them has no reader.
    fn evict_region(&mut self, region: usize) {
        self.regions[region].staying = true;
        for bucket in 0..self.table.buckets() {
            let mut chain = self.table.chain(bucket);
            while let Some(entry) = chain.find(|entry| self.regions[region].contains(entry.address())) {
                let at = entry.at();
                self.counts.add(Count::Evicted, 1);
                self.remove(at);
                chain = self.table.chain(bucket);
            }
        }
        self.regions[region].staying = false;
        self.drop_if_left(region);
    }

    /// Unmaps a region that is being evacuated and has no entry any more, or that was the mapping of one freed entry.
    fn drop_if_left(&mut self, at: usize) {
        let region = &self.regions[at];
        if region.entries() == 0 && !region.staying && (region.leaving || region.is_single()) {
            let held = region.held_bytes();
            self.shared_bytes -= if region.is_single() { 0 } else { held };
            self.held_bytes -= held;
            self.regions.swap_remove(at);
        }
    }

    /// Frees an entry's memory. Its last reader calls this as well.
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

    /// Allocates room for an entry of `bytes`, evicting others.
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

    /// Maps memory for one entry. If there is no other room, a region is evicted.
    fn make_single(&mut self, bytes: usize) -> Option<Room> {
        let held = Region::held_bytes_for(Region::single_bytes(bytes));
        // One entry does not evict more than half of the others.
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

    /// Maps a new region; the last one takes the rest of the budget.
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
