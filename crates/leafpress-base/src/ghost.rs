//! The ghost queue of an eviction policy: fingerprints of recently evicted keys, so that a key that returns is known to
//! be in use (S3-FIFO: Yang et al., SOSP 2023).
//!
//! A key's line is chosen by its hash. Each line is a ring in which the newest fingerprint overwrites the oldest. The
//! table grows with the number of keys held; then each line is duplicated, since it is not known which of its keys
//! belong to which half.

use crate::mem::OutOfMemory;
use crate::mem::room::TryGrow;

/// Fingerprints per line, which together with the ring's position fill a cache line.
const CELLS: usize = 31;

/// Lines of which [`Ghost::known_keys`] counts the keys.
const SAMPLED_LINES: usize = 256;

#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Line {
    /// The cell that is overwritten next.
    next: u16,
    /// 0 marks an empty cell.
    cells: [u16; CELLS],
}

const EMPTY: Line = Line {
    next: 0,
    cells: [0; CELLS],
};

/// The fingerprints of the most recently evicted keys. Without lines, it remembers nothing.
#[derive(Debug, Default)]
pub struct Ghost {
    /// The number of lines is a power of two, or 0.
    lines: Vec<Line>,
}

impl Ghost {
    fn place(&self, hash: u64) -> Option<(usize, u16)> {
        // Shards and fingerprints elsewhere are taken from the same bits, so the hash is mixed once more.
        let mixed = hash.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let index = (mixed >> 20) as usize & self.lines.len().checked_sub(1)?;
        Some((index, ((mixed >> 48) as u16).max(1)))
    }

    /// Adds an evicted key.
    pub fn add(&mut self, hash: u64) {
        let Some((index, fingerprint)) = self.place(hash) else {
            return;
        };
        let line = &mut self.lines[index];
        line.cells[usize::from(line.next)] = fingerprint;
        line.next = (line.next + 1) % CELLS as u16;
    }

    /// Removes a key; returns true if it was present, and among about the last `keys` that were added. Up to 31 keys
    /// the number is exact.
    pub fn take(&mut self, hash: u64, keys: usize) -> bool {
        let Some((index, fingerprint)) = self.place(hash) else {
            return false;
        };
        let lines = self.lines.len();
        let line = &mut self.lines[index];
        let Some(at) = line.cells.iter().position(|cell| *cell == fingerprint) else {
            return false;
        };
        line.cells[at] = 0;
        // The number of keys added to the line since.
        let age = (usize::from(line.next) + CELLS - 1 - at) % CELLS;
        // The keys are spread evenly over the lines.
        age * lines < keys
    }

    /// Grows the table to remember at least about `keys` keys, and up to twice as many, as far as `most_bytes` allow.
    pub fn fit(&mut self, keys: usize, most_bytes: usize) -> Result<(), OutOfMemory> {
        let wanted = keys.div_ceil(CELLS);
        while self.lines.len() < wanted && (self.lines.len() * 2).max(1) * size_of::<Line>() <= most_bytes {
            let lines = self.lines.len();
            self.lines.try_room(lines.max(1))?;
            if lines == 0 {
                self.lines.push(EMPTY);
            } else {
                self.lines.extend_from_within(..);
            }
        }
        Ok(())
    }

    /// Returns about how many keys are present, from a sample of the lines.
    pub fn known_keys(&self) -> usize {
        let step = (self.lines.len() / SAMPLED_LINES).max(1);
        let lines = self.lines.iter().step_by(step);
        let known: usize = lines
            .clone()
            .map(|line| line.cells.iter().filter(|cell| **cell != 0).count())
            .sum();
        known * self.lines.len() / lines.len().max(1)
    }

    /// Returns the memory held, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.lines.capacity() * size_of::<Line>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: usize = usize::MAX;

    fn hashes(keys: usize) -> Vec<u64> {
        let mut random = fastrand::Rng::with_seed(1);
        (0..keys).map(|_| random.u64(..)).collect()
    }

    /// The number of keys present, which are removed.
    fn known(ghost: &mut Ghost, hashes: &[u64], keys: usize) -> usize {
        hashes.iter().filter(|&&hash| ghost.take(hash, keys)).count()
    }

    #[test]
    fn what_left_is_known_once_and_what_did_not_is_not() {
        let hashes = hashes(11_000);
        let (left, others) = hashes.split_at(1000);
        let mut ghost = Ghost::default();
        ghost.add(1);
        assert!(!ghost.take(1, ALL), "an empty table remembers nothing");
        ghost.fit(10_000, ALL).unwrap();
        left.iter().for_each(|&hash| ghost.add(hash));
        assert!(known(&mut ghost, others, ALL) < 30);
        assert!(known(&mut ghost, left, ALL) > 970);
        assert!(known(&mut ghost, left, ALL) < 10);
    }

    #[test]
    fn it_remembers_the_newest_and_what_it_knew_when_it_grows() {
        let hashes = hashes(5000);
        let mut ghost = Ghost::default();
        ghost.fit(1000, ALL).unwrap();
        hashes.iter().for_each(|&hash| ghost.add(hash));
        ghost.fit(4000, ALL).unwrap();
        assert!(known(&mut ghost, &hashes[4600..], ALL) > 390);
        assert!(known(&mut ghost, &hashes[..1500], ALL) < 10);
        let bytes = ghost.held_bytes();
        ghost.fit(1_000_000, 100_000).unwrap();
        assert!(ghost.held_bytes() > bytes && ghost.held_bytes() <= 100_000);
    }

    #[test]
    fn only_the_last_added_hashes_are_present() {
        let mut ghost = Ghost::default();
        ghost.fit(20, ALL).unwrap();
        let few = hashes(100);
        few.iter().for_each(|&hash| ghost.add(hash));
        assert_eq!(known(&mut ghost, &few[..80], 20), 0);
        assert_eq!(known(&mut ghost, &few[80..], 20), 20);

        let mut ghost = Ghost::default();
        ghost.fit(6000, ALL).unwrap();
        let many = hashes(20_000);
        many.iter().for_each(|&hash| ghost.add(hash));
        assert!(known(&mut ghost, &many[..10_000], 5000) < 20);
        assert!(known(&mut ghost, &many[16_500..], 5000) > 3400);
    }
}
