//! `bytes_held` is what the process really uses: it agrees with the growth of resident memory within a tenth.

use std::io::Write;

use crate::resident_bytes;
use leafpress::Tree;

/// SplitMix64's finaliser (Steele, Lea, Flood, OOPSLA 2014): one to one, and without order.
fn scattered(n: u64) -> u64 {
    let mut z = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

const RECORDS: u64 = 1_000_000;

/// A tree of `records` records as they come in life: 128 bytes that have something in common.
fn load(codec: &str, records: u64) -> Tree {
    let tree = Tree::builder().codec(codec.parse().unwrap()).build().unwrap();
    let mut value = Vec::new();
    for n in 0..records {
        // Scattered at random, so that leaves are of all sizes. Evenly scattered keys would have all leaves grow in step, and at the
        // wrong moment every allocator holds the room they have just outgrown.
        let key = scattered(n);
        value.clear();
        let state = ["active", "suspended", "closed"][key as usize % 3];
        write!(
            value,
            "{{\"id\":{n},\"account\":\"{key:016x}\",\"state\":\"{state}\",\"balance\":{}",
            key >> 40
        )
        .unwrap();
        value.resize(128, b' ');
        tree.insert(&key.to_be_bytes(), &value).unwrap();
    }
    tree.settle().unwrap();
    tree
}

#[test]
fn bytes_held_agrees_with_resident_growth() {
    crate::alone("tree::bytes_held_agrees_with_resident_growth", measured);
}

fn measured() {
    for codec in ["none", "lz4", "zstd:1"] {
        // A first tree makes what stays for the process's life: thread contexts, allocator tables, code pages.
        drop(load(codec, 20_000));
        let before = resident_bytes();
        let tree = load(codec, RECORDS);
        let grown = resident_bytes() - before;
        let stats = tree.stats();
        assert_eq!(stats.records, RECORDS);
        let off = (grown as f64 / stats.bytes_held as f64 - 1.0).abs();
        assert!(
            off < 0.10,
            "{codec}: held {}, resident growth {grown}: {stats:?}",
            stats.bytes_held
        );
        drop(tree);
        let left = resident_bytes().saturating_sub(before);
        assert!(
            left < grown / 10,
            "{codec}: {left} of {grown} stay when the tree is gone"
        );
    }
}
