//! Looking at a shard's entries: samples of them, faults for tests, and whether the books are right.

use super::super::entry::Entry;
use super::super::region::Region;
use super::Shard;

impl Shard {
    /// Some entries of a family, pinned, from a random place on, until their raw bytes are enough.
    pub(in crate::victim) fn sample(&mut self, family: u8, mut raw_bytes: usize, out: &mut Vec<Entry>) {
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
    pub(in crate::victim) fn flip(&mut self, key: &[u8], hash: u64, bit: usize) -> bool {
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
    pub(in crate::victim) fn faults(&self) -> String {
        let (mut entries, mut raw, mut stored, mut pressed, mut lost) = (0, 0, 0, 0, 0);
        let (mut listed, mut listed_bytes) = (0, 0);
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
                // SAFETY: as above.
                let bytes = unsafe { entry.bytes() };
                listed += usize::from(header.is_listed());
                listed_bytes += if header.is_listed() { bytes } else { 0 };
                lost += usize::from(
                    self.bucket(header.hash) != at
                        || regions != 1
                        || header.stored_bytes > header.raw_bytes
                        || !self.raw.is_in_order(entry),
                );
            }
        }
        let regions: usize = self.regions.iter().map(Region::held_bytes).sum();
        let in_regions: usize = self.regions.iter().map(|region| region.entries).sum();
        let tables = self.held_bytes.wrapping_sub(regions);
        let raw_space =
            self.raw.len() == listed && self.raw.held_bytes() == listed_bytes && self.raw.table_bytes() <= tables;
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
            "{entries} entries of {}, {raw} raw bytes of {}, {stored} stored of {}, {pressed} compressed of {}, {lost} out of place, \
             {listed} kept raw of {} in {listed_bytes} bytes of {}, {in_regions} in regions, {regions} bytes of regions in {} of {}",
            self.entries,
            self.raw_bytes,
            self.stored_bytes,
            self.pressed_entries,
            self.raw.len(),
            self.raw.held_bytes(),
            self.held_bytes,
            self.budget_bytes
        )
    }
}
