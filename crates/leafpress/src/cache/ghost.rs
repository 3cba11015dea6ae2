//! The ghost queue: fingerprints of recently evicted keys, so that a key that returns is known to be in use.
//!
//! A key's line is chosen by its hash. Each line is a ring in which the newest fingerprint overwrites the oldest. The
//! table grows with the number of records held; then each line is duplicated, since it is not known which of its keys
//! belong to which half.

use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::TryGrow;

/// Fingerprints per line, which together with the ring's position fill a cache line.
const CELLS: usize = 31;
/// Minimum fingerprints for every two records held; up to twice as many just after the table has grown.
const CELLS_PER_TWO_RECORDS: usize = 2;

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line {
    next: u16,
    /// 0 marks an empty cell.
    cells: [u16; CELLS],
}

const EMPTY: Line = Line {
    next: 0,
    cells: [0; CELLS],
};

/// The table. Empty, it remembers nothing.
#[derive(Default)]
pub(super) struct Ghost {
    /// The number of lines is a power of two, or 0.
    lines: Vec<Line>,
}

impl Ghost {
    fn place(&self, hash: u64) -> Option<(usize, u16)> {
        // The tree takes shards and fingerprints from the same bits, so the hash is mixed once more.
        let mixed = hash.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let index = (mixed >> 20) as usize & self.lines.len().checked_sub(1)?;
        Some((index, ((mixed >> 48) as u16).max(1)))
    }

    /// Adds an evicted key.
    pub(super) fn add(&mut self, hash: u64) {
        let Some((index, fingerprint)) = self.place(hash) else {
            return;
        };
        let line = &mut self.lines[index];
        line.cells[usize::from(line.next)] = fingerprint;
        line.next = (line.next + 1) % CELLS as u16;
    }

    /// Removes the key's fingerprint; returns true if it was present.
    pub(super) fn take(&mut self, hash: u64) -> bool {
        let Some((index, fingerprint)) = self.place(hash) else {
            return false;
        };
        let cells = &mut self.lines[index].cells;
        let found = cells.iter().position(|cell| *cell == fingerprint);
        if let Some(at) = found {
            cells[at] = 0;
        }
        found.is_some()
    }

    /// Resizes the table for `records` records, within `most_bytes`.
    pub(super) fn fit(&mut self, records: usize, most_bytes: usize) -> Result<(), OutOfMemory> {
        let wanted = (records * CELLS_PER_TWO_RECORDS / 2)
            .div_ceil(CELLS)
            .next_power_of_two();
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

    pub(super) fn held_bytes(&self) -> u64 {
        (self.lines.capacity() * size_of::<Line>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(key: u64) -> u64 {
        rapidhash::v3::rapidhash_v3(&key.to_le_bytes())
    }

    #[test]
    fn what_left_is_known_once_and_what_did_not_is_not() {
        let mut ghost = Ghost::default();
        ghost.add(1);
        assert!(!ghost.take(1), "an empty table remembers nothing");
        ghost.fit(10_000, usize::MAX).unwrap();
        (0..1000).for_each(|key| ghost.add(hash(key)));
        let known = |ghost: &mut Ghost, keys: std::ops::Range<u64>| keys.filter(|&key| ghost.take(hash(key))).count();
        assert!(known(&mut ghost, 1000..11_000) < 30);
        assert!(known(&mut ghost, 0..1000) > 970);
        assert!(known(&mut ghost, 0..1000) < 10);
    }

    #[test]
    fn it_remembers_the_newest_and_what_it_knew_when_it_grows() {
        let mut ghost = Ghost::default();
        ghost.fit(1000, usize::MAX).unwrap();
        (0..5000).for_each(|key| ghost.add(hash(key)));
        ghost.fit(4000, usize::MAX).unwrap();
        let known = |ghost: &mut Ghost, keys: std::ops::Range<u64>| keys.filter(|&key| ghost.take(hash(key))).count();
        assert!(known(&mut ghost, 4600..5000) > 390);
        assert!(known(&mut ghost, 0..1500) < 10);
        let bytes = ghost.held_bytes();
        ghost.fit(1_000_000, 100_000).unwrap();
        assert!(ghost.held_bytes() > bytes && ghost.held_bytes() <= 100_000);
    }
}
