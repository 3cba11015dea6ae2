//! Under continuous writes a tree holds little more than when it has settled, and resident memory agrees.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::resident_bytes;
use leafpress::Tree;

const VALUE_BYTES: usize = 128;

/// Duration of the writes: by then every leaf was replaced, more than once.
const WRITES: Duration = Duration::from_secs(3);

/// Different at every turn, and compressible like rows of a table.
fn fill(value: &mut Vec<u8>, key: u64, turn: u64) {
    value.clear();
    let state = ["active", "suspended", "closed"][(key ^ turn) as usize % 3];
    write!(
        value,
        "{{\"id\":{key},\"turn\":\"{:x}\",\"state\":\"{state}\",\"balance\":{}",
        turn.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        (key ^ turn).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40
    )
    .unwrap();
    value.resize(VALUE_BYTES, b' ');
}

/// Loads records, settles, and has two threads overwrite them. The memory held meanwhile must stay below the bound.
fn check(codec: &str, records: u64) {
    let before = resident_bytes();
    let tree = Tree::builder().codec(codec.parse().unwrap()).shards(8).build().unwrap();
    let mut value = Vec::new();
    for key in 0..records {
        fill(&mut value, key, key * 7 + 1);
        tree.insert(&key.to_be_bytes(), &value).unwrap();
    }
    tree.settle().unwrap();
    let settled = tree.stats().bytes_held;
    let most = settled + settled * 3 / 10 + (4 << 20);
    let stop = AtomicBool::new(false);
    let mut worst = (0, 0, tree.stats());
    thread::scope(|scope| {
        for thread in 0..2 {
            let (tree, stop) = (&tree, &stop);
            scope.spawn(move || {
                let mut value = Vec::new();
                let mut random = fastrand::Rng::with_seed(thread);
                let mut turn = 1;
                while !stop.load(Ordering::Relaxed) {
                    let key = random.u64(..records);
                    fill(&mut value, key, turn);
                    turn += 1;
                    tree.insert(&key.to_be_bytes(), &value).unwrap();
                }
            });
        }
        let end = Instant::now() + WRITES;
        while Instant::now() < end {
            thread::sleep(Duration::from_millis(20));
            let stats = tree.stats();
            let grown = resident_bytes().saturating_sub(before) as u64;
            if stats.bytes_held.max(grown) > worst.0.max(worst.1) {
                worst = (stats.bytes_held, grown, stats);
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    let (held, grown, stats) = worst;
    assert!(
        held.max(grown) <= most,
        "{codec}, {records} records: {settled} bytes were held when it had settled, then {held}, and {grown} were \
         resident: {stats:?}"
    );
}

#[test]
fn writers_do_not_make_a_tree_hold_much_more() {
    crate::alone("tree_under_writes::writers_do_not_make_a_tree_hold_much_more", || {
        for codec in ["none", "lz4", "zstd:1"] {
            for records in [50_000, 1_000_000] {
                check(codec, records);
            }
        }
    });
}
