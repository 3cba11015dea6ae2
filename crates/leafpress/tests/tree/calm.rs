//! Landing buffers are compacted once writers are idle.

use std::thread;
use std::time::{Duration, Instant};

use crate::support::keys::mix;
use leafpress::Tree;

const RECORDS: u64 = 20_000;

/// The keys are inserted in random order, so that most leaves have a landing buffer.
fn filled(codec: &str) -> Tree {
    let tree = Tree::builder().codec(codec.parse().unwrap()).build().unwrap();
    (0..RECORDS).for_each(|n| assert!(put(&tree, n)));
    tree
}

fn value(n: u64) -> Vec<u8> {
    format!("record {n} of {RECORDS}, said again: record {n} of {RECORDS}").into_bytes()
}

fn put(tree: &Tree, n: u64) -> bool {
    tree.insert(&mix(n).to_be_bytes(), &value(n)).unwrap()
}

fn has_all(tree: &Tree) {
    for n in 0..RECORDS {
        assert_eq!(tree.get(&mix(n).to_be_bytes()).unwrap(), Some(value(n)), "{n}");
    }
    tree.validate().unwrap();
}

#[test]
fn a_tree_that_is_left_alone_has_next_to_no_landing_buffers_after_a_while() {
    for codec in ["none", "lz4", "zstd:1"] {
        let tree = filled(codec);
        let start = Instant::now();
        loop {
            let stats = tree.stats();
            // Fewer are not worth a pass.
            if stats.landing_bytes * 64 < stats.bytes_held {
                break;
            }
            assert!(start.elapsed() < Duration::from_secs(600), "{codec}: {stats:?}");
            thread::sleep(Duration::from_millis(20));
        }
        has_all(&tree);
    }
}

#[test]
fn settling_compacts_landing_buffers() {
    let tree = filled("lz4");
    tree.settle().unwrap();
    assert_eq!(tree.stats().landing_buffers, 0);
    assert_eq!(tree.stats().landing_bytes, 0);
    has_all(&tree);
}

#[test]
fn a_few_landing_buffers_do_not_start_a_pass() {
    let tree = filled("lz4");
    tree.settle().unwrap();
    assert!(!put(&tree, 0));
    tree.settle().unwrap();
    assert_eq!(tree.stats().landing_buffers, 1);
    has_all(&tree);
}

/// Writers have ended, so that landing buffers are compacted while the tree is validated.
#[test]
fn a_tree_that_is_being_compacted_validates() {
    let tree = Tree::builder().codec("lz4".parse().unwrap()).build().unwrap();
    let mut rng = fastrand::Rng::with_seed(5);
    for _ in 0..60_000 {
        tree.insert(&rng.u32(..100_000).to_be_bytes(), &[rng.u8(..); 100])
            .unwrap();
    }
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(1500) {
        tree.validate().unwrap();
    }
}
