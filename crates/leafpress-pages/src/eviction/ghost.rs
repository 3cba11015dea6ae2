//! The ghost queue: fingerprints of recently evicted pages.
//!
//! As in the S3-FIFO paper, section 4.2: a table of fingerprints with the time each entered, in buckets. Nothing is
//! removed by age; an entry that is too old does not count, and is the first to be overwritten.

/// Fingerprints per bucket.
const WAYS: usize = 8;

/// Minimum number of fingerprints in a table.
const MIN_ENTRIES: usize = 16 * WAYS;

#[derive(Debug, Clone, Copy, Default)]
struct GhostEntry {
    /// The upper half of the hash of a page's id.
    fingerprint: u32,
    /// The value of [`Ghost::now`] when it entered; 0 for an empty entry.
    entered: u32,
}

/// The fingerprints of the most recently evicted pages.
#[derive(Debug, Default)]
pub(crate) struct Ghost {
    /// Buckets of [`WAYS`]; their number is a power of two. A fingerprint's low bits select its bucket.
    entries: Vec<GhostEntry>,
    /// Number of evicted pages; never 0 once there is one.
    now: u32,
}

impl Ghost {
    /// Adds a page, and keeps the `capacity` - 1 pages evicted before it.
    pub(crate) fn insert(&mut self, hash: u64, capacity: usize) {
        self.fit(capacity);
        self.now = self.now.wrapping_add(1).max(1);
        let new = GhostEntry {
            fingerprint: fingerprint(hash),
            entered: self.now,
        };
        let now = self.now;
        if self.entries.is_empty() {
            // The allocation failed.
            return;
        }
        let bucket = self.bucket(new.fingerprint);
        let same = bucket
            .iter()
            .position(|entry| entry.entered != 0 && entry.fingerprint == new.fingerprint);
        let place = same.or_else(|| (0..WAYS).max_by_key(|&way| age(now, &bucket[way])));
        if let Some(place) = place {
            bucket[place] = new;
        }
    }

    /// Removes a page; returns true if it was among the last `capacity` evicted.
    pub(crate) fn take(&mut self, hash: u64, capacity: usize) -> bool {
        if self.entries.is_empty() {
            return false;
        }
        let (fingerprint, now) = (fingerprint(hash), self.now);
        let mut bucket = self.bucket(fingerprint).iter_mut();
        let Some(entry) = bucket.find(|entry| entry.entered != 0 && entry.fingerprint == fingerprint) else {
            return false;
        };
        let remembered = (age(now, entry) as usize) < capacity;
        *entry = GhostEntry::default();
        remembered
    }

    /// Memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<GhostEntry>()
    }

    fn bucket(&mut self, fingerprint: u32) -> &mut [GhostEntry] {
        let buckets = self.entries.len() / WAYS;
        let start = (fingerprint as usize & (buckets - 1)) * WAYS;
        &mut self.entries[start..start + WAYS]
    }

    /// Makes the table large enough that few buckets overflow, and at most four times as large as that.
    fn fit(&mut self, capacity: usize) {
        let wanted = (capacity + capacity / 4).next_power_of_two().max(MIN_ENTRIES);
        if self.entries.len() >= wanted && self.entries.len() / 4 < wanted {
            return;
        }
        let mut new = Vec::new();
        if new.try_reserve_exact(wanted).is_err() {
            // The old table is kept, at a lower accuracy.
            return;
        }
        new.resize(wanted, GhostEntry::default());
        let mut old = std::mem::replace(&mut self.entries, new);
        let now = self.now;
        // Oldest first, so that a bucket that overflows keeps its youngest entries.
        old.retain(|entry| entry.entered != 0);
        old.sort_unstable_by_key(|entry| std::cmp::Reverse(age(now, entry)));
        for entry in old {
            let bucket = self.bucket(entry.fingerprint);
            if let Some(place) = (0..WAYS).max_by_key(|&way| age(now, &bucket[way])) {
                bucket[place] = entry;
            }
        }
    }
}

fn fingerprint(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// Number of pages evicted since the entry; the maximum for an empty one.
fn age(now: u32, entry: &GhostEntry) -> u32 {
    if entry.entered == 0 {
        u32::MAX
    } else {
        now.wrapping_sub(entry.entered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembers_the_last_and_no_others() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut ghost = Ghost::default();
        let hashes: Vec<u64> = (0..20_000).map(|_| random.u64(..)).collect();
        for &hash in &hashes {
            ghost.insert(hash, 5_000);
        }
        let (old, last) = hashes.split_at(15_000);
        assert_eq!(old.iter().filter(|&&hash| ghost.take(hash, 5_000)).count(), 0);
        let kept = last.iter().filter(|&&hash| ghost.take(hash, 5_000)).count();
        assert!(kept > 4_850, "{kept}");
        assert_eq!(
            last.iter().filter(|&&hash| ghost.take(hash, 5_000)).count(),
            0,
            "they were taken"
        );
    }

    #[test]
    fn growing_and_shrinking_keep_what_fits() {
        let mut random = fastrand::Rng::with_seed(2);
        let mut ghost = Ghost::default();
        let hashes: Vec<u64> = (0..3_000).map(|_| random.u64(..)).collect();
        for (index, &hash) in hashes.iter().enumerate() {
            ghost.insert(hash, index + 1);
        }
        assert!(ghost.bytes() >= 3_000 * size_of::<GhostEntry>());
        ghost.insert(1 << 40, 100);
        assert!(ghost.bytes() <= 4 * 256 * size_of::<GhostEntry>());
        let kept = hashes[2_901..].iter().filter(|&&hash| ghost.take(hash, 100)).count();
        assert!(kept >= 97, "{kept}");
    }
}
