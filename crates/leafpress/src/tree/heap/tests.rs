use super::*;

const BLOCK_BYTES: usize = 8 << 10;
const BLOCKS: usize = 512;
const ALL_BYTES: u64 = (BLOCKS * BLOCK_BYTES) as u64;

/// A heap with blocks that were written to.
struct Filled {
    heap: Heap,
    blocks: Vec<(NonNull<u8>, u8)>,
}

impl Filled {
    fn new() -> Self {
        let mut filled = Self {
            heap: Heap::default(),
            blocks: Vec::new(),
        };
        filled.fill();
        filled
    }

    fn fill(&mut self) {
        while self.blocks.len() < BLOCKS {
            let (block, part) = self.heap.allocate(BLOCK_BYTES).unwrap();
            // SAFETY: the block is as long.
            unsafe { block.write_bytes(1, BLOCK_BYTES) };
            self.blocks.push((block, part));
        }
    }

    /// Allocates and frees a block again and again, until pages go. Returns how often.
    fn churn(&self) -> usize {
        let resident = self.heap.free_bytes();
        for times in 1..=3 * BLOCKS {
            let (block, part) = self.heap.allocate(BLOCK_BYTES).unwrap();
            // SAFETY: it was just allocated.
            unsafe { self.heap.free(block, BLOCK_BYTES, part) };
            if self.heap.free_bytes() < resident / 2 {
                return times;
            }
        }
        panic!("{} bytes are free", self.heap.free_bytes());
    }

    fn free_all_but(&mut self, left: usize) {
        for (block, part) in self.blocks.drain(left..) {
            // SAFETY: it is allocated, and taken out of the list.
            unsafe { self.heap.free(block, BLOCK_BYTES, part) };
        }
    }
}

#[test]
fn pages_that_come_and_go_stay() {
    let mut filled = Filled::new();
    for _ in 0..20 {
        filled.free_all_but(BLOCKS / 3);
        let free = filled.heap.free_bytes();
        assert!(free > ALL_BYTES / 2, "{free} bytes are free");
        filled.fill();
    }
}

#[test]
fn pages_that_are_not_needed_for_long_go() {
    let mut filled = Filled::new();
    filled.free_all_but(BLOCKS / 3);
    assert!(filled.churn() >= 2 * BLOCKS);
    let free = filled.heap.free_bytes();
    assert!(free < ALL_BYTES / 16, "{free} bytes are free");
}

#[test]
fn pages_go_at_once_when_next_to_nothing_is_left() {
    let mut filled = Filled::new();
    filled.free_all_but(BLOCKS / 16);
    let free = filled.heap.free_bytes();
    assert!(free < ALL_BYTES / 8, "{free} bytes are free");
}

#[test]
fn what_was_allocated_before_pages_went_does_not_count() {
    let mut filled = Filled::new();
    filled.free_all_but(BLOCKS / 3);
    filled.churn();
    filled.free_all_but(BLOCKS / 8);
    let free = filled.heap.free_bytes();
    assert!(free > ALL_BYTES / 8, "{free} bytes are free");
}
