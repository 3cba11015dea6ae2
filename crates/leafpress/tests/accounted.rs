//! The program's allocator accounts for a tree with upkeep by the caller: replaced and removed memory is freed at once,
//! and all memory when the tree is dropped.
//!
//! A separate program, for its allocator. Nodes come from that allocator only where they have no heap of their own:
//! `cargo test -p leafpress --no-default-features`.
#![cfg(not(feature = "node-heap"))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

use leafpress::{Tree, Upkeep};

/// The system's allocator, with a counter.
struct Counted;

static BYTES: AtomicI64 = AtomicI64::new(0);

// SAFETY: every call is forwarded to the system's allocator.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size() as i64, Relaxed);
        // SAFETY: the caller upholds the contract of `alloc`, which is that of the system allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size() as i64, Relaxed);
        // SAFETY: the block came from `alloc` with this layout, and thus from the system allocator.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

const RECORDS: u32 = 30_000;

fn tree(codec: &str) -> Tree {
    let builder = Tree::builder().codec(codec.parse().unwrap()).upkeep(Upkeep::Caller);
    builder.build().unwrap()
}

fn put(tree: &Tree, n: u32, round: u32) {
    let len = 40 + (n.wrapping_mul(2_654_435_761) >> 16) as usize % if n.is_multiple_of(50) { 6000 } else { 300 };
    let text = format!("Package: lib{n}\nRound: {round}\nSection: {}\n", n % 7);
    let value: Vec<u8> = text.bytes().cycle().take(len).collect();
    tree.insert(&n.to_be_bytes(), &value).unwrap();
}

fn tend_out(tree: &Tree) {
    while tree.run_upkeep(Duration::from_micros(500)).unwrap() || tree.is_training() {
        if tree.is_training() {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

/// Fills a tree, writes to it and empties it.
fn cycle(codec: &str, looks: bool) {
    let tree = tree(codec);
    let empty = BYTES.load(Relaxed);
    for n in 0..RECORDS {
        put(&tree, n, 0);
        if n % 500 == 0 {
            tree.run_upkeep(Duration::from_micros(500)).unwrap();
        }
    }
    tend_out(&tree);
    for n in (0..RECORDS).rev() {
        put(&tree, n, 1);
    }
    tend_out(&tree);
    if looks {
        let (counted, held) = (BYTES.load(Relaxed), tree.stats().bytes_held as i64);
        assert!(tree.stats().retired_bytes == 0);
        // The tables of a dictionary come partly from the C library's allocator, and the allocator's own rounding is
        // not counted.
        assert!(
            counted - empty < held + (64 << 10),
            "{codec}: {counted} counted, {held} held"
        );
        assert!(
            held * 9 / 10 < counted - empty + (512 << 10),
            "{codec}: {counted} counted, {held} held"
        );
    }
    for n in (0..RECORDS).step_by(2) {
        tree.remove(&n.to_be_bytes()).unwrap();
    }
    let removed = tree.remove_range(.., usize::MAX).unwrap();
    assert_eq!(removed.records, u64::from(RECORDS / 2));
    // The rest is a thread's scratchpad, a dictionary, and the interpolation index.
    let left = BYTES.load(Relaxed) - empty;
    assert!(left < 400 << 10, "{codec}: {left} bytes are left");
    tend_out(&tree);
}

/// Removes single records.
fn remove_at_once() {
    let tree = tree("lz4");
    for n in 0..RECORDS {
        put(&tree, n, 0);
    }
    tend_out(&tree);
    let place = |n: u32| n.wrapping_mul(2_654_435_761) % RECORDS;
    // The first removal creates the thread's scratchpad.
    for n in 0..100 {
        tree.remove_range(place(n).to_be_bytes()..=place(n).to_be_bytes(), 1)
            .unwrap();
    }
    let (begin, mut user_bytes) = (BYTES.load(Relaxed), 0);
    let mut before = begin;
    for n in 100..5000 {
        let key = place(n).to_be_bytes();
        let removed = tree.remove_range(key..=key, 1).unwrap();
        user_bytes += removed.key_and_value_bytes;
        let now = BYTES.load(Relaxed);
        // Frames of several records are recompressed, and may grow slightly.
        assert!(now <= before + 512, "removal {n}: {} bytes more", now - before);
        before = now;
    }
    let freed = begin - before;
    assert!(freed > 0 && user_bytes > 0, "{freed} of {user_bytes}");
}

/// Lets a tree grow to many times its size when a training has begun to collect samples; returns the maximum of
/// allocated bytes outside the tree.
fn most_of_a_training(steps: u32) -> i64 {
    let tree = tree("zstd:3");
    let empty = BYTES.load(Relaxed);
    for n in 0..3000 {
        put(&tree, n, 0);
    }
    for _ in 0..steps {
        tree.run_upkeep(Duration::ZERO).unwrap();
    }
    for n in 3000..RECORDS {
        put(&tree, n, 0);
    }
    let mut most = 0;
    while tree.run_upkeep(Duration::ZERO).unwrap() || tree.is_training() {
        most = most.max(BYTES.load(Relaxed) - empty - tree.bytes_held() as i64);
    }
    most
}

#[test]
fn what_is_removed_is_free_at_once_and_all_of_a_tree_when_it_is_dropped() {
    for steps in [5, 15, 25, 35, 50, 70, 90] {
        let most = most_of_a_training(steps);
        assert!(
            most < 2 << 20,
            "{most} bytes outside the tree, {steps} steps before it grew"
        );
    }

    for codec in ["none", "lz4", "zstd:3"] {
        // Allocates what the thread and the codec keep for good.
        cycle(codec, false);
        let before = BYTES.load(Relaxed);
        for round in 0..4 {
            cycle(codec, round == 0);
            let more = BYTES.load(Relaxed) - before;
            assert!(more.abs() < 8 << 10, "{codec}, round {round}: {more} bytes");
        }
    }
    remove_at_once();
}
