//! Inspection of a shard's entries: samples, faults for tests, and validation of the accounting.

use super::super::entry::{EntryTable, Pin, Region};
use super::Shard;

impl Shard {
    /// Pins entries of a family, from a random bucket on, until their raw bytes are enough.
    pub(in crate::victim) fn sample(&mut self, family: u8, mut raw_bytes: usize, out: &mut Vec<Pin>) {
        if self.table.is_closed() {
            return;
        }
        let random = self.random.next_u64();
        let start = self.table.bucket(random);
        for bucket in 0..self.table.buckets() {
            for entry in self.table.chain((start + bucket) % self.table.buckets()) {
                if entry.family == family && out.try_reserve(1).is_ok() {
                    out.push(entry.pin());
                    raw_bytes = raw_bytes.saturating_sub(entry.raw_bytes as usize);
                }
            }
            if raw_bytes == 0 {
                return;
            }
        }
    }

    /// Flips a bit of an entry without readers; returns true if there is one.
    #[cfg(feature = "testing")]
    pub(in crate::victim) fn flip(&mut self, key: &[u8], hash: u64, bit: usize) -> bool {
        self.table.flip(key, hash, bit)
    }

    /// Returns the inconsistencies of the accounting; empty if there are none.
    pub(in crate::victim) fn faults(&self) -> String {
        let (mut entries, mut raw, mut stored, mut pressed, mut lost) = (0, 0, 0, 0, 0);
        let (mut listed, mut listed_bytes) = (0, 0);
        for at in 0..self.table.buckets() {
            for entry in self.table.chain(at) {
                entries += 1;
                raw += u64::from(entry.raw_bytes);
                stored += u64::from(entry.stored_bytes);
                pressed += usize::from(entry.pressed);
                let regions = self
                    .regions
                    .iter()
                    .filter(|region| region.contains(entry.address()))
                    .count();
                listed += usize::from(entry.is_listed());
                listed_bytes += if entry.is_listed() { entry.bytes() } else { 0 };
                lost += usize::from(
                    self.table.bucket(entry.hash) != at
                        || regions != 1
                        || entry.stored_bytes > entry.raw_bytes
                        || !self.table.is_in_order(entry),
                );
            }
        }
        let regions: usize = self.regions.iter().map(Region::held_bytes).sum();
        let in_regions: usize = self.regions.iter().map(Region::entries).sum();
        let tables = self.held_bytes.wrapping_sub(regions);
        let tables_fit = self.held_bytes() <= self.held_bytes && self.reserved_bytes == tables;
        let raw_space = tables_fit
            && self.kept_raw() == (listed, listed_bytes)
            && EntryTable::bytes_for(0, self.table.places()) <= tables;
        let good = raw_space
            && (entries, raw, stored, pressed, lost)
                == (self.entries, self.raw_bytes, self.stored_bytes, self.pressed_entries, 0)
            && in_regions >= entries
            && tables <= self.held_bytes
            && self.held_bytes <= self.budget_bytes;
        if good {
            return String::new();
        }
        format!(
            "{entries} entries of {}, {raw} raw bytes of {}, {stored} stored of {}, {pressed} compressed of {}, {lost} \
             out of place, {listed} kept raw of {} in {listed_bytes} bytes of {}, {in_regions} in regions, {regions} \
             bytes of regions in {} of {}",
            self.entries,
            self.raw_bytes,
            self.stored_bytes,
            self.pressed_entries,
            self.table.listed(),
            self.table.listed_bytes(),
            self.held_bytes,
            self.budget_bytes
        )
    }
}
