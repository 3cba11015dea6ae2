use std::ptr::NonNull;

use super::{CLASSES, HEADER_BYTES, STEP_BYTES, Tlsf, class_of};

const LEVELS: usize = 12;

/// Regions of the tests' own, which outlive the heap.
struct Regions {
    heap: Tlsf<LEVELS>,
    regions: Vec<NonNull<[u8]>>,
    _memory: Vec<Vec<u64>>,
}

impl Regions {
    fn new(lengths: &[usize]) -> Self {
        let mut memory: Vec<Vec<u64>> = lengths.iter().map(|bytes| vec![0; bytes / 8]).collect();
        let regions: Vec<_> = memory
            .iter_mut()
            .map(|words| {
                let bytes = words.len() * 8;
                NonNull::slice_from_raw_parts(NonNull::from(words.as_mut_slice()).cast::<u8>(), bytes)
            })
            .collect();
        let mut heap = Tlsf::default();
        for &region in &regions {
            // SAFETY: the memory is only used through the heap, and outlives it.
            unsafe { heap.add_region(region) }.unwrap();
        }
        Self {
            heap,
            regions,
            _memory: memory,
        }
    }

    /// The lengths of the free blocks of each region, without the bytes that the lists use.
    fn unused(&self) -> Vec<Vec<usize>> {
        let of_region = |&region| {
            // SAFETY: the region was added to the heap, which is not changed meanwhile.
            let blocks = unsafe { self.heap.unused_in(region) };
            blocks.map(|block| block.len()).collect()
        };
        self.regions.iter().map(of_region).collect()
    }

    fn free(&mut self, block: NonNull<u8>) {
        // SAFETY: the tests free each block once.
        unsafe { self.heap.free(block) };
    }
}

#[test]
fn what_is_freed_becomes_one_block_again() {
    let mut regions = Regions::new(&[20_000]);
    let whole = regions.unused();
    let blocks: Vec<_> = (1..=20).map(|step| regions.heap.allocate(step * 37).unwrap()).collect();
    assert_ne!(regions.unused(), whole);
    // Every other one first, so that blocks merge with one before, one behind, and both.
    let (even, odd): (Vec<_>, Vec<_>) = blocks.into_iter().enumerate().partition(|(at, _)| at % 2 == 0);
    for (_, block) in even.into_iter().chain(odd) {
        regions.free(block);
    }
    assert_eq!(regions.unused(), whole);
}

#[test]
fn regions_are_not_merged() {
    let mut regions = Regions::new(&[4096, 4096]);
    let blocks: Vec<_> = std::iter::from_fn(|| regions.heap.allocate(100)).collect();
    assert!(blocks.len() >= 2 * (4096 - 3 * STEP_BYTES) / (100 + HEADER_BYTES + STEP_BYTES));
    for block in blocks {
        regions.free(block);
    }
    assert!(regions.unused().iter().all(|blocks| blocks.len() == 1));
    assert!(regions.heap.allocate(4096).is_none());
}

#[test]
fn a_region_that_is_too_short_or_too_long_is_refused() {
    let mut heap = Tlsf::<2>::default();
    let mut memory = vec![0_u64; 64];
    let start = NonNull::from(memory.as_mut_slice()).cast::<u8>();
    for bytes in [0, 1, STEP_BYTES, 8 * STEP_BYTES] {
        // SAFETY: the memory is not used otherwise.
        let added = unsafe { heap.add_region(NonNull::slice_from_raw_parts(start, bytes)) };
        assert!(added.is_none(), "{bytes} bytes");
    }
    assert!(heap.allocate(1).is_none());
}

#[test]
fn more_than_there_can_be_is_refused() {
    let mut regions = Regions::new(&[20_000]);
    for bytes in [
        20_000,
        STEP_BYTES << LEVELS,
        usize::MAX / 2,
        usize::MAX / 8 * 3,
        usize::MAX - HEADER_BYTES,
        usize::MAX,
    ] {
        assert!(regions.heap.allocate(bytes).is_none(), "{bytes} bytes");
    }
}

#[test]
fn classes_are_ordered_by_size() {
    let classes: Vec<_> = (1..4096).map(|steps| class_of(steps * STEP_BYTES)).collect();
    assert!(classes.is_sorted());
    assert_eq!(class_of(STEP_BYTES), (0, 0));
    assert!(classes.iter().all(|&(_, class)| class < CLASSES));
}

/// Blocks of random sizes keep their contents, do not overlap, and all their room is found again.
#[test]
fn random_operations() {
    let rounds = if cfg!(miri) { 200 } else { 20_000 };
    for seed in 0..if cfg!(miri) { 1 } else { 10 } {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut regions = Regions::new(&[3_000, 30_000, 60_000]);
        let whole = regions.unused();
        let mut blocks: Vec<(NonNull<u8>, usize, u8)> = Vec::new();
        for round in 0..rounds {
            let frees = rng.u32(..100) < if round % 2_000 < 1_000 { 30 } else { 70 };
            if frees && !blocks.is_empty() {
                let (block, bytes, mark) = blocks.swap_remove(rng.usize(..blocks.len()));
                // SAFETY: the block has `bytes` bytes, and is in use.
                let contents = unsafe { std::slice::from_raw_parts(block.as_ptr(), bytes) };
                assert!(contents.iter().all(|&byte| byte == mark), "seed {seed}, round {round}");
                regions.free(block);
                continue;
            }
            let bits = rng.u32(1..13);
            let bytes = rng.usize(0..1 << bits);
            let longest = regions.unused().into_iter().flatten().max();
            let Some(block) = regions.heap.allocate(bytes) else {
                // A block is not found in the class that it would have to be searched in.
                let wanted = bytes + HEADER_BYTES + STEP_BYTES;
                let longest = longest.map_or(0, |unused| unused + STEP_BYTES);
                assert!(
                    longest < wanted + wanted / CLASSES,
                    "{longest} bytes are free, seed {seed}, round {round}"
                );
                continue;
            };
            assert_eq!(block.addr().get() % STEP_BYTES, HEADER_BYTES);
            let mark = rng.u8(..);
            // SAFETY: the block has `bytes` bytes.
            unsafe { block.write_bytes(mark, bytes) };
            blocks.push((block, bytes, mark));
        }
        for (block, ..) in blocks {
            regions.free(block);
        }
        assert_eq!(regions.unused(), whole, "seed {seed}");
    }
}
