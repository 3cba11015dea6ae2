//! Memory follows the records: removing them frees it, by merging leaves, without a `compact` or a restart.

use std::thread;
use std::time::{Duration, Instant};

use crate::support::keys::mix;
use crate::support::values::{Fill, Value};
use leafpress::{Codec, Layout, Tree};

const RECORDS: u64 = 8_000;

fn trees() -> Vec<Tree> {
    let builder = || Tree::builder().codec(Codec::Lz4 { acceleration: 1 });
    vec![
        builder().build().unwrap(),
        builder().codec(Codec::None).build().unwrap(),
        builder().leaf_bytes(1024).landing_bytes(0).build().unwrap(),
        builder()
            .leaf_bytes(4096)
            .landing_bytes(1024)
            .shards(4)
            .build()
            .unwrap(),
        builder().layout(Layout::Hashed { sub_pages: 4 }).build().unwrap(),
    ]
}

fn fill(tree: &Tree) {
    for n in 0..RECORDS {
        // One value in a thousand is a large one.
        let value = Value {
            len: if n % 1000 == 0 { 5000 } else { 100 },
            fill: Fill::Text,
            seed: n as u16,
        };
        assert!(tree.insert(&mix(n).to_be_bytes(), &value.bytes()).unwrap());
    }
}

/// Bytes of garbage that may wait for the next operations to collect it: a bound that does not grow with the tree.
const RETIRED_BYTES: u64 = 1 << 20;

/// What pages of the heap and counters of threads may hold besides: a bound that does not grow with the tree either.
const KEPT_BYTES: u64 = 32 << 10;

/// Returns the bytes held, without the dictionary, which a tree keeps, and a bounded amount of garbage.
fn held(tree: &Tree) -> u64 {
    tree.settle().unwrap();
    tree.validate().unwrap();
    let stats = tree.stats();
    assert!(stats.retired_bytes < RETIRED_BYTES, "{stats:?}");
    stats.bytes_held - stats.retired_bytes - stats.dictionary_bytes
}

/// Checks that next to nothing of a full tree's memory is held, once the garbage of preempted threads is collected too.
fn returned(tree: &Tree, empty: u64, full: u64) {
    let start = Instant::now();
    loop {
        let left = held(tree);
        // A dictionary may stay.
        let stats = tree.stats();
        if left.saturating_sub(empty + stats.dictionary_bytes) < KEPT_BYTES + full / 20 {
            return;
        }
        let waited = start.elapsed();
        assert!(
            waited < Duration::from_secs(600),
            "empty {empty}, full {full}, drained {left} after {waited:?}: {stats:?}"
        );
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn removing_everything_returns_the_memory() {
    for tree in trees() {
        let empty = held(&tree);
        for round in 0..3u64 {
            fill(&tree);
            let full = held(&tree);
            assert!(full > 10 * empty, "{tree:?} was not filled: {full} of {empty}");
            for i in 0..RECORDS {
                // Another order in each round: ascending numbers are random keys; reversed; by stride.
                let n = [i, RECORDS - 1 - i, i * 7919 % RECORDS][round as usize];
                assert!(tree.remove(&mix(n).to_be_bytes()).unwrap(), "{n}");
            }
            assert_eq!(tree.len(), 0);
            assert_eq!(tree.stats().large_value_bytes, 0);
            returned(&tree, empty, full);
        }
    }
}

#[test]
fn clearing_returns_the_memory() {
    for tree in trees() {
        let empty = held(&tree);
        fill(&tree);
        let full = held(&tree);
        tree.clear().unwrap();
        returned(&tree, empty, full);
    }
}

#[test]
fn a_tenth_of_the_records_holds_about_a_tenth_of_the_memory() {
    for tree in trees() {
        fill(&tree);
        tree.settle().unwrap();
        let full = tree.stats();
        for n in (0..RECORDS).filter(|n| n % 10 != 0) {
            assert!(tree.remove(&mix(n).to_be_bytes()).unwrap());
        }
        tree.settle().unwrap();
        tree.validate().unwrap();
        let left = tree.stats();
        assert_eq!(left.records, RECORDS / 10);
        assert!(
            left.leaves <= full.leaves / 2,
            "leaves were not merged: {full:?}, then {left:?}"
        );
        let tree_bytes = |s: &leafpress::TreeStats| s.leaf_bytes + s.landing_bytes + s.inner_bytes;
        assert!(
            tree_bytes(&left) <= tree_bytes(&full) / 3,
            "{} of {} bytes are held for a tenth of the records",
            tree_bytes(&left),
            tree_bytes(&full)
        );
    }
}
