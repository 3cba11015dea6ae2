use crate::mem::LINE_BYTES;
use crate::mem::heap::*;

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
            // SAFETY: the block has `BLOCK_BYTES` bytes.
            unsafe { block.write_bytes(1, BLOCK_BYTES) };
            self.blocks.push((block, part));
        }
    }

    /// Allocates and frees a block repeatedly until pages are returned. Returns how often.
    fn churn(&self) -> usize {
        let resident = self.heap.free_bytes();
        for times in 1..=3 * BLOCKS {
            let (block, part) = self.heap.allocate(BLOCK_BYTES).unwrap();
            // SAFETY: the block was just allocated with this length and part.
            unsafe { self.heap.free(block, BLOCK_BYTES, part) };
            if self.heap.free_bytes() < resident / 2 {
                return times;
            }
        }
        panic!("{} bytes are free", self.heap.free_bytes());
    }

    fn free_all_but(&mut self, left: usize) {
        for (block, part) in self.blocks.drain(left..) {
            // SAFETY: the block is allocated, and was removed from the list.
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

#[test]
fn every_block_begins_sixteen_bytes_before_a_cache_line_and_is_counted_as_freed() {
    let heap = Heap::default();
    let mut rng = fastrand::Rng::with_seed(1);
    let mut blocks: Vec<(NonNull<u8>, usize, u8)> = Vec::new();
    for round in 0..20_000 {
        if blocks.len() > 300 || !blocks.is_empty() && rng.u8(..5) < 2 {
            let (block, bytes, part) = blocks.swap_remove(rng.usize(..blocks.len()));
            // SAFETY: the block is allocated, and was removed from the list.
            unsafe { heap.free(block, bytes, part) };
            continue;
        }
        let bits = rng.u32(5..17);
        let bytes = match round % 8 {
            // Sizes around the threshold above which blocks are mapped separately.
            0 => SYSTEM_BYTES - rng.usize(..40),
            1 => SYSTEM_BYTES + rng.usize(..40),
            _ => rng.usize(1..=1 << bits),
        };
        let (block, part) = heap.allocate(bytes).unwrap();
        assert_eq!(part == MAPPED, bytes >= SYSTEM_BYTES, "{bytes} bytes");
        if part != MAPPED {
            assert_eq!(block.addr().get() % LINE_BYTES, LINE_BYTES - 16, "{bytes} bytes");
        }
        // SAFETY: the block has `bytes` bytes.
        unsafe { block.write_bytes(1, bytes) };
        blocks.push((block, bytes, part));
    }
    for (block, bytes, part) in blocks {
        // SAFETY: the block is allocated, and the list is dropped.
        unsafe { heap.free(block, bytes, part) };
    }
    let used: usize = heap.made_parts().map(|part| part.lock().used).sum();
    assert_eq!(used, 0);
}

/// The sanitizer aborts a process that accesses a freed block.
#[cfg(leafpress_asan)]
#[test]
fn a_freed_block_that_is_read_is_found_out() {
    const FREED_BY: &str = "LEAFPRESS_TEST_FREED_BY";
    if let Ok(freed_by) = std::env::var(FREED_BY) {
        let heap = Heap::default();
        let (block, part) = heap.allocate(200).unwrap();
        let own = allocate_from(if freed_by == "another" { part + 1 } else { part });
        // SAFETY: the block was just allocated with this length and part.
        unsafe { heap.free(block, 200, part) };
        allocate_from(own);
        // SAFETY: this is a deliberate use after free, which the sanitizer has to report.
        let byte = unsafe { block.add(100).read_volatile() };
        println!("was read: {byte}");
        return;
    }
    for freed_by in ["its maker", "another"] {
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "mem::heap::tests::a_freed_block_that_is_read_is_found_out",
                "--nocapture",
            ])
            .env(FREED_BY, freed_by)
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&child.stderr);
        assert!(
            !child.status.success() && message.contains("use-after-poison"),
            "{freed_by}: {message}"
        );
    }
}
