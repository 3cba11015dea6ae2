//! `bytes_held` is what the process really uses: it agrees with the growth of resident memory within a tenth.
//!
//! One test only: anything else running in this process would grow it too.
#![cfg(target_os = "linux")]

use leafpress::tree::DictionaryChoice;
use leafpress::{Codec, Tree};

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// SplitMix64's finaliser (Steele, Lea, Flood, OOPSLA 2014): one to one, and without order.
fn scattered(n: u64) -> u64 {
    let mut z = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[test]
fn bytes_held_agrees_with_resident_growth() {
    const RECORDS: u64 = 1_000_000;
    // A first tree makes what stays for the process's life: thread contexts, allocator tables, code pages.
    let warm = Tree::builder()
        .codec(Codec::None)
        .dictionary(DictionaryChoice::Off)
        .build()
        .unwrap();
    for n in 0..2000u64 {
        warm.put(&n.to_be_bytes(), &[7; 128]).unwrap();
    }
    warm.settle();

    let before = resident_bytes();
    let tree = Tree::builder()
        .codec(Codec::None)
        .dictionary(DictionaryChoice::Off)
        .build()
        .unwrap();
    let mut value = [0u8; 128];
    for n in 0..RECORDS {
        // Scattered at random, so that leaves are of all sizes as they are in life. Evenly scattered keys would have all leaves
        // grow in step, and at the wrong moment every allocator holds the room they have just outgrown.
        let key = scattered(n);
        value[..8].copy_from_slice(&n.to_be_bytes());
        tree.put(&key.to_be_bytes(), &value).unwrap();
    }
    tree.settle();
    let grown = resident_bytes() - before;
    let stats = tree.stats();
    assert_eq!(stats.records, RECORDS);
    let off = (grown as f64 / stats.bytes_held as f64 - 1.0).abs();
    assert!(
        off < 0.10,
        "held {}, resident growth {grown}: {stats:?}",
        stats.bytes_held
    );
}
