//! Interleavings of threads on a tree with an interpolation index: see `tree.rs`.

use std::sync::Arc;

use crate::interleavings::{explore, filled, key, small, spawn};
use leafpress::Tree;

/// Returns a tree of seven leaves with an interpolation index. Without landing buffers every write rebuilds a leaf.
fn with_table(landing_bytes: usize) -> Arc<Tree> {
    let tree = filled(small().landing_bytes(landing_bytes), 60);
    tree.compact().unwrap();
    assert!(tree.stats().interpolation_bytes > 0);
    tree
}

/// Returns the first byte of a key's value.
fn version(tree: &Tree, n: u32) -> u8 {
    tree.get_with(&key(n), |value| value[0])
        .unwrap()
        .expect("the key stays")
}

fn put(tree: &Tree, n: u32, version: u8) {
    tree.insert(&key(n), &[version; 96]).unwrap();
}

/// Reads the versions of a key, 100 and above, which must not decrease.
fn read_on(tree: &Tree, n: u32, times: usize) {
    let mut seen = 0;
    for _ in 0..times {
        let now = match version(tree, n) {
            old if old < 100 => 1,
            new => new,
        };
        assert!(now >= seen, "{n} went back from {seen} to {now}");
        seen = now;
    }
}

fn reads_during_writes(landing_bytes: usize, change: fn(&Tree)) {
    explore(move || {
        let tree = with_table(landing_bytes);
        let writer = spawn(&tree, |tree| {
            for version_put in [100, 101] {
                put(tree, 300, version_put);
                assert_eq!(version(tree, 300), version_put, "a put that was done is not seen");
            }
        });
        let change = spawn(&tree, change);
        let reader = spawn(&tree, |tree| read_on(tree, 300, 3));
        [writer, change, reader]
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        assert_eq!(version(&tree, 300), 101);
        tree.validate().unwrap();
    });
}

#[test]
fn reads_during_writes_to_one_leaf_do_not_go_back() {
    for landing_bytes in [0, 256] {
        reads_during_writes(landing_bytes, |tree| {
            for version_put in [100, 101] {
                put(tree, 310, version_put);
                assert_eq!(version(tree, 310), version_put);
            }
        });
    }
}

#[test]
fn reads_during_writes_and_a_pass_over_all_leaves_do_not_go_back() {
    for landing_bytes in [0, 256] {
        reads_during_writes(landing_bytes, |tree| tree.compact().unwrap());
    }
}

#[test]
fn reads_during_writes_and_splits_do_not_go_back() {
    for landing_bytes in [0, 256] {
        reads_during_writes(landing_bytes, |tree| {
            for n in 301..305 {
                put(tree, n, 7);
                assert_eq!(version(tree, n), 7);
            }
        });
    }
}

#[test]
fn splits_and_merges_are_seen_through_the_table() {
    explore(|| {
        let tree = with_table(0);
        let splits = spawn(&tree, |tree| {
            for n in 301..307 {
                put(tree, n, 7);
                assert_eq!(version(tree, n), 7);
            }
        });
        let merges = spawn(&tree, |tree| {
            for n in (320..400).step_by(10) {
                assert!(tree.remove(&key(n)).unwrap());
                assert!(
                    !tree.contains_key(&key(n)).unwrap(),
                    "a removal that was done is not seen"
                );
            }
        });
        let reader = spawn(&tree, |tree| {
            for n in [300u32, 410, 310, 200] {
                assert_eq!(u32::from(version(tree, n)), n / 10);
            }
        });
        [splits, merges, reader]
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        tree.validate().unwrap();
    });
}

#[test]
fn nothing_is_found_in_a_tree_that_was_cleared() {
    explore(|| {
        let tree = with_table(0);
        let clear = spawn(&tree, |tree| {
            tree.clear().unwrap();
            assert_eq!(tree.get(&key(200)).unwrap(), None);
        });
        let writer = spawn(&tree, |tree| {
            put(tree, 300, 100);
            let read = tree.get_with(&key(300), |value| value[0]).unwrap();
            assert!(read.is_none_or(|read| read == 100));
        });
        let pass = spawn(&tree, |tree| tree.compact().unwrap());
        [clear, writer, pass]
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        tree.validate().unwrap();
    });
}
