//! Where each request goes: fio's `rw=randread:N`, to the letter.
//!
//! fio (io_u.c, `get_next_offset`) counts requests; every N-th goes to a random block, the others to where the one
//! before ended, and from the file's end to its start. So one in N is at a random place and N - 1 follow it: N = 9 is
//! 8/9 sequential. A random block is drawn evenly; if it was visited already, the next one that was not is taken
//! instead (fio's random map), until all were: then the map starts anew.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::core::keys::below;

/// Above this number of blocks there is no map: it would exceed 16 MiB, and a repeated block is unlikely.
const MAX_MAP_BLOCKS: u64 = 1 << 27;

/// The next block, and whether it was drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) block: u64,
    pub(super) random: bool,
}

/// Places in a file of some blocks.
#[derive(Debug)]
pub(super) struct Places {
    blocks: u64,
    /// fio's N; `None` never draws.
    run_blocks: Option<u64>,
    /// Requests until the next draw.
    left: u64,
    /// The block after the last one.
    next: u64,
    visited: Option<Map>,
    random: Xoshiro256PlusPlus,
}

impl Places {
    /// Places in `blocks` blocks, at least one.
    pub(super) fn new(blocks: u64, run_blocks: Option<u64>, seed: u64) -> Self {
        let blocks = blocks.max(1);
        let run_blocks = run_blocks.map(|run| run.max(1));
        Self {
            blocks,
            run_blocks,
            left: run_blocks.unwrap_or(u64::MAX),
            next: 0,
            visited: (run_blocks.is_some() && blocks <= MAX_MAP_BLOCKS).then(|| Map::new(blocks)),
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    /// The place of the next request.
    pub(super) fn next(&mut self) -> Place {
        self.left -= 1;
        let random = self.left == 0;
        let block = if random {
            self.left = self.run_blocks.unwrap_or(u64::MAX);
            self.draw()
        } else if self.next < self.blocks {
            self.next
        } else {
            0
        };
        if let Some(map) = &mut self.visited {
            map.visit(block);
        }
        self.next = block + 1;
        Place { block, random }
    }

    fn draw(&mut self) -> u64 {
        let block = below(self.random.next_u64(), self.blocks);
        match &mut self.visited {
            None => block,
            Some(map) => map.free_from(block).unwrap_or_else(|| {
                map.clear();
                block
            }),
        }
    }
}

/// A bit for each block.
#[derive(Debug)]
struct Map {
    words: Vec<u64>,
    blocks: u64,
    free: u64,
}

impl Map {
    fn new(blocks: u64) -> Self {
        Self {
            words: vec![0; blocks.div_ceil(64) as usize],
            blocks,
            free: blocks,
        }
    }

    fn visit(&mut self, block: u64) {
        let (word, bit) = ((block / 64) as usize, 1 << (block % 64));
        self.free -= u64::from(self.words[word] & bit == 0);
        self.words[word] |= bit;
    }

    fn clear(&mut self) {
        self.words.fill(0);
        self.free = self.blocks;
    }

    /// The first block from `block` on, around the end, that was not visited.
    fn free_from(&self, block: u64) -> Option<u64> {
        if self.free == 0 {
            return None;
        }
        let (first, shift) = ((block / 64) as usize, block % 64);
        let words = self.words.len();
        // Wraps around, ending with the first word's lower half.
        for step in 0..=words {
            let at = (first + step) % words;
            let hidden = if step == 0 { (1 << shift) - 1 } else { 0 };
            let free = !(self.words[at] | hidden);
            let found = at as u64 * 64 + u64::from(free.trailing_zeros());
            if free != 0 && found < self.blocks {
                return Some(found);
            }
        }
        None
    }
}

#[cfg(test)]
#[path = "request_order_tests.rs"]
mod tests;
