//! Recent access frequencies of keys: a count-min sketch with periodic halving (TinyLFU: Einziger, Friedman, Manes,
//! "TinyLFU: A Highly Efficient Cache Admission Policy", ACM ToS 2017).
//!
//! A key's counters share one cache line, so that counting costs one cache miss. Only the smallest of them are
//! incremented (conservative update).

/// Counters per line.
const LINE: usize = 64;
/// Counters per key.
const WAYS: usize = 4;
/// Counters per expected entry.
const COUNTERS_PER_ENTRY: usize = 8;
/// All counters are halved after this many counts per expected entry.
const SAMPLE_PER_ENTRY: usize = 16;

#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Line([u8; LINE]);

/// Counters by key hash, up to 255, halved periodically.
#[derive(Debug, Default)]
pub(crate) struct Sketch {
    lines: Vec<Line>,
    counts: usize,
    sample: usize,
}

impl Sketch {
    /// Returns the memory of a sketch for this number of entries, in bytes.
    pub(crate) fn bytes_for(entries: usize) -> usize {
        Self::lines_for(entries) * LINE
    }

    fn lines_for(entries: usize) -> usize {
        (entries * COUNTERS_PER_ENTRY).div_ceil(LINE).next_power_of_two()
    }

    /// Returns an empty sketch for this number of entries; [`None`] if there is no memory.
    pub(crate) fn new(entries: usize) -> Option<Self> {
        let len = Self::lines_for(entries);
        let mut lines = Vec::new();
        lines.try_reserve_exact(len).ok()?;
        lines.resize(len, Line([0; LINE]));
        Some(Self {
            lines,
            counts: 0,
            sample: entries.max(LINE) * SAMPLE_PER_ENTRY,
        })
    }

    /// Grows the sketch to at least this number of entries, and keeps the counts; returns true on success.
    pub(crate) fn grow(&mut self, entries: usize) -> bool {
        let (old, new) = (self.lines.len(), Self::lines_for(entries));
        if self.lines.try_reserve_exact(new.saturating_sub(old)).is_err() {
            return false;
        }
        // The number of lines is a power of two, so a key's new line is a copy of its old one.
        while self.lines.len() < new && old > 0 {
            self.lines.extend_from_within(..old);
        }
        self.sample = entries.max(LINE) * SAMPLE_PER_ENTRY;
        true
    }

    fn places(&self, hash: u64) -> (usize, [usize; WAYS]) {
        // The low bits select a shard and a bucket too, so the hash is mixed once more.
        let mixed = hash.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let line = (mixed >> 32) as usize & (self.lines.len() - 1);
        // Each way has a quarter of the line, so that a key's counters are distinct.
        let way = |n: usize| n * (LINE / WAYS) + ((mixed >> (n * 4)) as usize & (LINE / WAYS - 1));
        (line, [way(0), way(1), way(2), way(3)])
    }

    /// Returns the approximate recent frequency of the key.
    pub(crate) fn get(&self, hash: u64) -> u8 {
        if self.lines.is_empty() {
            return 0;
        }
        let (line, ways) = self.places(hash);
        let line = &self.lines[line].0;
        ways.iter().map(|&way| line[way]).min().unwrap_or(0)
    }

    /// Counts the key; returns its approximate recent frequency, including this access.
    pub(crate) fn add(&mut self, hash: u64) -> u8 {
        if self.lines.is_empty() {
            return 0;
        }
        let (line, ways) = self.places(hash);
        let line = &mut self.lines[line].0;
        let least = ways.iter().map(|&way| line[way]).min().unwrap_or(0);
        for way in ways {
            if line[way] == least {
                line[way] = least.saturating_add(1);
            }
        }
        self.counts += 1;
        if self.counts >= self.sample {
            self.counts /= 2;
            self.lines
                .iter_mut()
                .flat_map(|line| &mut line.0)
                .for_each(|count| *count /= 2);
        }
        least.saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(key: u64) -> u64 {
        rapidhash::v3::rapidhash_v3(&key.to_le_bytes())
    }

    #[test]
    fn counts_are_never_too_low_and_seldom_too_high() {
        let mut sketch = Sketch::new(1000).unwrap();
        for key in 0..1000 {
            for _ in 0..key % 8 {
                sketch.add(hash(key));
            }
        }
        assert!((0..1000).all(|key| u64::from(sketch.get(hash(key))) >= key % 8));
        let high = (0..1000)
            .filter(|&key| u64::from(sketch.get(hash(key))) > key % 8 + 1)
            .count();
        assert!(high < 50, "{high}");
    }

    #[test]
    fn a_sketch_that_grows_keeps_its_counts() {
        let mut sketch = Sketch::new(100).unwrap();
        for key in 0..100 {
            for _ in 0..key % 8 {
                sketch.add(hash(key));
            }
        }
        let before: Vec<u8> = (0..100).map(|key| sketch.get(hash(key))).collect();
        for entries in [150, 200, 5000] {
            assert!(sketch.grow(entries));
            assert_eq!(sketch.lines.len() * LINE, Sketch::bytes_for(entries));
            assert!((0..100).all(|key| sketch.get(hash(key)) == before[key as usize]));
        }
    }

    #[test]
    fn forgets_keys_that_are_not_requested() {
        let mut sketch = Sketch::new(64).unwrap();
        for _ in 0..200 {
            sketch.add(hash(1));
        }
        for key in 0..20_000 {
            sketch.add(hash(key + 2));
        }
        assert!(sketch.get(hash(1)) < 20, "{}", sketch.get(hash(1)));
    }
}
