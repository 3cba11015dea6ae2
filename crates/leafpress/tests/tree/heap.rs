//! The tree's heap: leaves are moved under concurrent readers, scans and writers, and unused memory is returned.
//!
//! The amount of work is fixed, not the time. `LEAFPRESS_STRESS=10` does ten times as much.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::versioned::{key, value, version};
use leafpress::{Codec, Layout, Tree, TreeBuilder};

const KEYS: u64 = 4000;
const WRITERS: u64 = 2;

fn rounds(base: u64) -> u64 {
    let factor = std::env::var("LEAFPRESS_STRESS")
        .ok()
        .and_then(|f| f.parse().ok())
        .unwrap_or(1.0);
    ((base as f64 * factor) as u64).max(2)
}

/// Sets a flag when dropped, so that helpers stop even when an assertion fails.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Every fourth key is inserted and removed repeatedly.
fn permanent(n: u64) -> bool {
    !n.is_multiple_of(4)
}

/// Writes a few keys in every pass over the leaves, so that most leaves are moved and few compacted.
fn writer(tree: &Tree, id: u64, done: &AtomicBool, written: &[AtomicU64]) -> BTreeMap<u64, u64> {
    let mut rng = fastrand::Rng::with_seed(id);
    let mut present: BTreeMap<u64, u64> = (0..KEYS).filter(|n| n % WRITERS == id).map(|n| (n, 0)).collect();
    for step in 1.. {
        let n = rng.u64(..KEYS / WRITERS) * WRITERS + id;
        if permanent(n) || rng.bool() {
            let new = tree.insert(&key(n), &value(n, step)).unwrap();
            assert_eq!(new, present.insert(n, step).is_none(), "put {n}");
            written[n as usize].store(step, Ordering::SeqCst);
        } else {
            let removed = tree.remove(&key(n)).unwrap();
            assert_eq!(removed, present.remove(&n).is_some(), "remove {n}");
        }
        if step % 16 == 0 {
            thread::yield_now();
        }
        if done.load(Ordering::SeqCst) {
            break;
        }
    }
    present
}

/// A read sees every value written before it began, or a newer one; the same holds for values seen by earlier reads or
/// scans.
fn reader(tree: &Tree, seed: u64, done: &AtomicBool, written: &[AtomicU64]) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let numbers: BTreeMap<Vec<u8>, u64> = (0..KEYS).map(|n| (key(n), n)).collect();
    let mut newest = vec![0; KEYS as usize];
    while !done.load(Ordering::SeqCst) {
        let n = rng.u64(..KEYS);
        let least = newest[n as usize].max(written[n as usize].load(Ordering::SeqCst));
        match tree.get(&key(n)).unwrap().map(|bytes| version(n, &bytes)) {
            Some(seen) => {
                assert!(seen >= least, "key {n}: version {seen} after {least}");
                newest[n as usize] = seen;
            }
            None => assert!(!permanent(n), "key {n} vanished"),
        }
        if rng.u8(..16) > 0 {
            continue;
        }
        let mut last: Option<Vec<u8>> = None;
        for record in tree.range(key(n).as_slice()..).take(200) {
            let (key, bytes) = record.unwrap();
            let n = *numbers.get(&key).expect("a key that was written");
            let seen = version(n, &bytes);
            assert!(seen >= newest[n as usize], "key {n}: a scan went back");
            newest[n as usize] = seen;
            if let Some(last) = &last {
                assert!(*last < key, "a scan's keys ascend");
                let missed = numbers
                    .range(last.clone()..key.clone())
                    .skip(1)
                    .find(|(_, n)| permanent(**n));
                assert_eq!(missed, None, "a scan missed a key");
            }
            last = Some(key);
        }
    }
}

fn moved_among_threads(builder: TreeBuilder) {
    let tree = builder.leaf_bytes(1024).landing_bytes(256).build().unwrap();
    for n in 0..KEYS {
        tree.insert(&key(n), &value(n, 0)).unwrap();
    }
    let done = AtomicBool::new(false);
    let written: Vec<_> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    let expected: BTreeMap<u64, u64> = thread::scope(|scope| {
        let (tree, done, written) = (&tree, &done, &written);
        let writers: Vec<_> = (0..WRITERS)
            .map(|id| {
                scope.spawn(move || {
                    let _done = Done(done);
                    writer(tree, id, done, written)
                })
            })
            .collect();
        for seed in [100, 101] {
            scope.spawn(move || {
                let _done = Done(done);
                reader(tree, seed, done, written);
            });
        }
        scope.spawn(move || {
            let _done = Done(done);
            for _ in 0..rounds(12) {
                // Compacts leaves that were written to, and moves the others; then all are moved, if holes are left.
                tree.compact().unwrap();
                tree.settle().unwrap();
            }
        });
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    tree.validate().unwrap();
    assert_eq!(tree.len(), expected.len());
    let contents: BTreeMap<Vec<u8>, Vec<u8>> = tree.range(..).map(|record| record.unwrap()).collect();
    let expected: BTreeMap<_, _> = expected.into_iter().map(|(n, step)| (key(n), value(n, step))).collect();
    assert!(contents == expected, "the contents are not what the writers left");
}

#[test]
fn moved_none() {
    moved_among_threads(Tree::builder().codec(Codec::None));
}

#[test]
fn moved_lz4_in_shards() {
    moved_among_threads(Tree::builder().codec(Codec::Lz4 { acceleration: 1 }).shards(3));
}

#[test]
fn moved_zstd() {
    moved_among_threads(Tree::builder().codec(Codec::Zstd { level: 1 }));
}

#[test]
fn moved_hashed_with_compactors() {
    moved_among_threads(
        Tree::builder()
            .codec(Codec::Lz4 { acceleration: 1 })
            .layout(Layout::Hashed { sub_pages: 4 })
            .background_threads(1)
            .landing_compaction_pct(50),
    );
}

#[test]
fn a_cleared_tree_holds_little() {
    const THREADS: u64 = 12;
    let tree = Tree::builder().codec(Codec::None).build().unwrap();
    let empty = tree.stats();
    for round in 0..3 {
        let (start, turn) = (Barrier::new(THREADS as usize), Mutex::new(()));
        thread::scope(|scope| {
            for id in 0..THREADS {
                let (tree, start, turn) = (&tree, &start, &turn);
                scope.spawn(move || {
                    start.wait();
                    for n in (id..3000).step_by(THREADS as usize) {
                        let len = if n % 100 == 0 { 200_000 } else { 200 };
                        tree.insert(&(n as u32).to_be_bytes(), &vec![n as u8; len]).unwrap();
                    }
                    // A thread's unflushed garbage cannot be reclaimed by another thread, nor by itself while many are
                    // active.
                    start.wait();
                    let _turn = turn.lock().unwrap();
                    tree.settle().unwrap();
                });
            }
        });
        if round > 0 {
            // All leaves are then in one part of the heap.
            tree.compact().unwrap();
        }
        tree.validate().unwrap();
        tree.clear().unwrap();
        tree.settle().unwrap();
        let stats = tree.stats();
        assert!(stats.retired_bytes < 64 << 10, "{stats:?}");
        assert_eq!(stats.large_value_bytes, 0, "{stats:?}");
        // The rest is the heap's tables, ten times some kilobytes, and a few pages in each part.
        let more = stats.bytes_held - empty.bytes_held;
        assert!(
            more < 256 << 10,
            "round {round}: {more} bytes more than when it was empty: {stats:?}"
        );
    }
}

#[test]
fn memory_freed_by_other_threads_is_returned() {
    let tree = Tree::builder().codec(Codec::None).build().unwrap();
    let empty = tree.stats().bytes_held;
    let records = || (0..20_000u32).map(|n| (n.to_be_bytes(), vec![n as u8; if n % 500 == 0 { 100_000 } else { 200 }]));
    for round in 0..3 {
        // Each thread allocates from a part of its own: all nodes that a thread replaces or removes here were allocated
        // by another one.
        for turn in 0..3 {
            thread::scope(|scope| {
                scope.spawn(|| {
                    for (key, value) in records() {
                        if turn < 2 {
                            tree.insert(&key, &value).unwrap();
                        } else {
                            assert!(tree.remove(&key).unwrap());
                        }
                    }
                });
            });
            tree.validate().unwrap();
        }
        tree.settle().unwrap();
        let stats = tree.stats();
        let more = stats.bytes_held - empty;
        assert!(
            more < 256 << 10,
            "round {round}: {more} bytes more than when it was empty: {stats:?}"
        );
    }
}

#[test]
fn memory_filled_by_a_compaction_is_returned() {
    let tree = Tree::builder().codec(Codec::None).build().unwrap();
    let empty = tree.stats().bytes_held;
    // Too little for a part of the heap to return pages by itself.
    for n in 0..3000u32 {
        tree.insert(&n.to_be_bytes(), &[n as u8; 200]).unwrap();
    }
    tree.compact().unwrap();
    tree.clear().unwrap();
    tree.settle().unwrap();
    let more = tree.stats().bytes_held - empty;
    assert!(more < 128 << 10, "{more} bytes more than when it was empty");
}

#[test]
fn a_small_tree_keeps_few_pages_that_nothing_uses() {
    let tree = Tree::builder().codec(Codec::Zstd { level: 1 }).build().unwrap();
    // Some values are large ones, allocated among the leaves, as inner nodes are.
    let value = |n: u32| vec![n as u8; if n.is_multiple_of(2500) { 3000 + n as usize } else { 48 }];
    for n in 0..20_000u32 {
        tree.insert(&n.to_be_bytes(), &value(n)).unwrap();
    }
    tree.settle().unwrap();
    let stats = tree.stats();
    assert!(stats.large_value_bytes > 0 && stats.inner_nodes > 0, "{stats:?}");
    assert!(stats.free_bytes < 40 << 10, "{stats:?}");
    tree.validate().unwrap();
    for n in 0..20_000u32 {
        assert!(tree.get(&n.to_be_bytes()).unwrap() == Some(value(n)), "value {n}");
    }
}

/// No pass is made while leaves are replaced faster than it would move them; it must be made eventually.
#[test]
fn holes_go_once_writers_calm_down() {
    const KEYS: u32 = 20_000;
    let tree = Tree::builder().codec(Codec::None).build().unwrap();
    let put = |n: u32, round: u64| tree.insert(&n.to_be_bytes(), &[round as u8; 200]).unwrap();
    (0..KEYS).for_each(|n| assert!(put(n, 0)));
    tree.settle().unwrap();
    thread::scope(|scope| {
        for seed in 0..2 {
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(seed);
                for round in 0..rounds(20) * u64::from(KEYS) {
                    put(rng.u32(..KEYS), round);
                }
            });
        }
    });
    // Nothing calls `settle`. Occasional insertions, because writers trigger the defragmentation.
    let deadline = Instant::now() + Duration::from_secs(600);
    for n in (0..KEYS).cycle().step_by(7) {
        let stats = tree.stats();
        if stats.free_bytes < stats.bytes_held / 16 {
            break;
        }
        assert!(Instant::now() < deadline, "{stats:?}");
        thread::sleep(Duration::from_millis(20));
        put(n, 0);
    }
    tree.validate().unwrap();
}
