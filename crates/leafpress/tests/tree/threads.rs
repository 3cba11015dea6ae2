//! Many threads on one tree: every value is whole and of its key, versions never decrease, scans miss no key that
//! stays, and nothing is lost when the threads have ended.
//!
//! The amount of work is fixed, not the time. `LEAFPRESS_STRESS=10` does ten times as much.

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::thread;

use crate::support::versioned::{key, value, version};
use leafpress::tree::DictionaryChoice;
use leafpress::{Codec, Layout, ShardBy, Tree, TreeBuilder};

const KEYS: u64 = 600;
const WRITERS: u64 = 3;

/// Keys that are overwritten but never removed.
fn permanent(n: u64) -> bool {
    n.is_multiple_of(5)
}

fn steps(base: usize) -> usize {
    let factor = std::env::var("LEAFPRESS_STRESS")
        .ok()
        .and_then(|f| f.parse().ok())
        .unwrap_or(1.0);
    ((base as f64 * factor) as usize).max(50)
}

/// Sets a flag when dropped, so that helpers stop even when a writer's assertion fails.
struct Done<'a>(&'a AtomicUsize);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn writer(tree: &Tree, id: u64, steps: usize) -> BTreeMap<u64, u64> {
    let mut rng = fastrand::Rng::with_seed(id);
    let mut present: BTreeMap<u64, u64> = (0..KEYS)
        .filter(|&n| n % WRITERS == id && permanent(n))
        .map(|n| (n, 0))
        .collect();
    for step in 1..=steps as u64 {
        // Only this writer writes this key, so its versions ascend.
        let n = rng.u64(..KEYS / WRITERS) * WRITERS + id;
        let here = present.contains_key(&n);
        match rng.u8(..10) {
            0..5 => {
                assert_eq!(tree.insert(&key(n), &value(n, step)).unwrap(), !here, "put {n}");
                present.insert(n, step);
            }
            5 => {
                assert_eq!(
                    tree.insert_if_absent(&key(n), &value(n, step)).unwrap(),
                    !here,
                    "insert {n}"
                );
                present.entry(n).or_insert(step);
            }
            6 => {
                assert_eq!(tree.replace(&key(n), &value(n, step)).unwrap(), here, "update {n}");
                present.entry(n).and_modify(|v| *v = step);
            }
            7 => {
                let got = tree.get(&key(n)).unwrap().map(|bytes| version(n, &bytes));
                assert_eq!(got, present.get(&n).copied(), "its own write of {n}");
            }
            _ if permanent(n) => {}
            _ => {
                assert_eq!(tree.remove(&key(n)).unwrap(), here, "remove {n}");
                present.remove(&n);
            }
        }
    }
    present
}

fn reader(tree: &Tree, seed: u64, running: &AtomicUsize) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut newest = vec![0; KEYS as usize];
    let mut buffer = Vec::new();
    while running.load(Ordering::SeqCst) > 0 {
        let n = rng.u64(..KEYS);
        let seen = match rng.u8(..4) {
            0 => tree.get(&key(n)).unwrap().map(|bytes| version(n, &bytes)),
            1 => tree.get_with(&key(n), |bytes| version(n, bytes)).unwrap(),
            2 => {
                let numbers: [u64; 11] = std::array::from_fn(|i| (n + i as u64 * 37) % KEYS);
                let values = tree.get_many(&numbers.map(key)).unwrap();
                let seen = numbers
                    .iter()
                    .zip(values)
                    .map(|(&n, value)| value.map(|bytes| version(n, &bytes)));
                for (&n, seen) in numbers.iter().zip(seen.clone()) {
                    assert!(seen.is_some() || !permanent(n), "key {n} vanished");
                }
                seen.clone().next().flatten()
            }
            _ => tree
                .get_into(&key(n), &mut buffer)
                .unwrap()
                .then(|| version(n, &buffer)),
        };
        assert!(seen.is_some() || !permanent(n), "key {n} vanished");
        if let Some(seen) = seen {
            let newest = &mut newest[n as usize];
            assert!(seen >= *newest, "key {n}: version {seen} after {newest}");
            *newest = seen;
        }
    }
}

/// Scans all or a part, forward, backward or from both ends, and checks it against the keys that stay.
fn scanner(tree: &Tree, seed: u64, running: &AtomicUsize) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let numbers: BTreeMap<Vec<u8>, u64> = (0..KEYS).map(|n| (key(n), n)).collect();
    let all: Vec<&Vec<u8>> = numbers.keys().collect();
    while running.load(Ordering::SeqCst) > 0 {
        let from = if rng.bool() { 0 } else { rng.usize(..all.len()) };
        let to = if rng.bool() {
            all.len() - 1
        } else {
            rng.usize(from..all.len())
        };
        let mut scan = tree.range(all[from].as_slice()..=all[to].as_slice());
        let turns = [0u64, u64::MAX, rng.u64(..)][rng.usize(..3)];
        let (mut front, mut back) = (Vec::new(), Vec::new());
        for step in 0.. {
            let from_back = turns >> (step % 64) & 1 == 1;
            let Some(record) = (if from_back { scan.next_back() } else { scan.next() }) else {
                break;
            };
            let (key, bytes) = record.unwrap();
            let n = *numbers.get(&key).expect("a key that was written");
            version(n, &bytes);
            if from_back { back.push(key) } else { front.push(key) }
        }
        front.extend(back.into_iter().rev());
        assert!(front.is_sorted_by(|a, b| a < b), "a scan's keys ascend, each once");
        let seen: std::collections::BTreeSet<_> = front.iter().collect();
        for key in &all[from..=to] {
            assert!(
                seen.contains(key) || !permanent(numbers[*key]),
                "a scan missed key {}",
                numbers[*key]
            );
        }
        assert!(front.first().is_none_or(|key| key >= all[from]));
        assert!(front.last().is_none_or(|key| key <= all[to]));
    }
}

fn stress(builder: TreeBuilder) {
    let tree = builder.build().unwrap();
    for n in (0..KEYS).filter(|&n| permanent(n)) {
        tree.insert(&key(n), &value(n, 0)).unwrap();
    }
    let running = AtomicUsize::new(WRITERS as usize);
    let expected: BTreeMap<Vec<u8>, u64> = thread::scope(|scope| {
        let (tree, running) = (&tree, &running);
        let writers: Vec<_> = (0..WRITERS)
            .map(|id| {
                scope.spawn(move || {
                    let _done = Done(running);
                    writer(tree, id, steps(4000))
                })
            })
            .collect();
        scope.spawn(move || reader(tree, 100, running));
        scope.spawn(move || reader(tree, 101, running));
        scope.spawn(move || scanner(tree, 200, running));
        scope.spawn(move || {
            while running.load(Ordering::SeqCst) > 0 {
                tree.compact().unwrap();
                let _ = tree.stats();
                tree.settle().unwrap();
                thread::yield_now();
            }
        });
        writers
            .into_iter()
            .flat_map(|writer| writer.join().unwrap())
            .map(|(n, version)| (key(n), value(n, version)))
            .map(|(key, value)| (key, u64::from_le_bytes(value[8..16].try_into().unwrap())))
            .collect()
    });
    tree.settle().unwrap();
    tree.validate().unwrap();
    assert_eq!(tree.len(), expected.len());
    let contents: BTreeMap<Vec<u8>, u64> = tree
        .range(..)
        .map(|record| record.unwrap())
        .map(|(key, value)| (key, u64::from_le_bytes(value[8..16].try_into().unwrap())))
        .collect();
    assert!(contents == expected, "the contents are not what the writers left");
    assert_eq!(tree.stats().records, expected.len() as u64);
}

fn small(codec: Codec) -> TreeBuilder {
    Tree::builder().codec(codec).leaf_bytes(1024).landing_bytes(128)
}

const LZ4: Codec = Codec::Lz4 { acceleration: 1 };

#[test]
fn none() {
    stress(small(Codec::None));
}

#[test]
fn lz4() {
    stress(small(LZ4));
}

#[test]
fn zstd_with_a_dictionary() {
    stress(small(Codec::Zstd { level: 1 }).dictionary(DictionaryChoice::Auto));
}

#[test]
fn no_landing_buffer() {
    stress(small(LZ4).landing_bytes(0));
}

#[test]
fn one_record_frames() {
    stress(small(LZ4).frame_bytes(1).landing_bytes(64));
}

#[test]
fn hashed() {
    stress(small(LZ4).layout(Layout::Hashed { sub_pages: 4 }));
}

#[test]
fn hash_shards() {
    stress(small(LZ4).shards(4));
}

#[test]
fn range_shards() {
    let boundaries = vec![b"b".to_vec(), b"b\x80".to_vec(), b"c".to_vec()];
    stress(small(LZ4).shards(4).shard_by(ShardBy::Range(boundaries)));
}

#[test]
fn background() {
    stress(
        small(LZ4)
            .landing_bytes(1024)
            .background_threads(2)
            .landing_compaction_pct(20),
    );
}

/// All threads race for the same few keys: each successful insert is matched by a remove, except for the remaining
/// keys.
#[test]
fn successes_balance() {
    const THREADS: usize = 4;
    let keys = 24;
    let tree = small(LZ4).build().unwrap();
    let balance: Vec<AtomicI64> = (0..keys).map(|_| AtomicI64::new(0)).collect();
    let start = Barrier::new(THREADS);
    thread::scope(|scope| {
        for id in 0..THREADS as u64 {
            let (tree, balance, start) = (&tree, &balance, &start);
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(id);
                start.wait();
                for step in 0..steps(4000) as u64 {
                    let n = rng.u64(..keys);
                    let change = match rng.u8(..4) {
                        0 => i64::from(tree.insert(&key(n), &value(n, step)).unwrap()),
                        1 => i64::from(tree.insert_if_absent(&key(n), &value(n, step)).unwrap()),
                        2 => -i64::from(tree.remove(&key(n)).unwrap()),
                        _ => {
                            tree.replace(&key(n), &value(n, step)).unwrap();
                            0
                        }
                    };
                    balance[n as usize].fetch_add(change, Ordering::SeqCst);
                }
            });
        }
    });
    for (n, balance) in balance.iter().enumerate() {
        let left = i64::from(tree.contains_key(&key(n as u64)).unwrap());
        assert_eq!(balance.load(Ordering::SeqCst), left, "key {n}");
    }
    tree.validate().unwrap();
    assert_eq!(tree.len(), tree.range(..).count());
}

/// `clear` concurrently with writers and scans: every record found is whole, and insertions after the last clear stay.
#[test]
fn clear_among_writers() {
    let tree = small(LZ4).landing_bytes(256).background_threads(1).build().unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let (tree, stop) = (&tree, &stop);
        let writers: Vec<_> = (0..2u64)
            .map(|id| {
                scope.spawn(move || {
                    let mut rng = fastrand::Rng::with_seed(id);
                    for step in 0..steps(3000) as u64 {
                        let n = rng.u64(..KEYS);
                        if rng.u8(..4) == 0 {
                            tree.remove(&key(n)).unwrap();
                        } else {
                            tree.insert(&key(n), &value(n, step)).unwrap();
                        }
                    }
                })
            })
            .collect();
        scope.spawn(move || {
            let numbers: BTreeMap<Vec<u8>, u64> = (0..KEYS).map(|n| (key(n), n)).collect();
            while !stop.load(Ordering::SeqCst) {
                let mut last = None;
                for record in tree.range(..) {
                    let (key, bytes) = record.unwrap();
                    version(numbers[&key], &bytes);
                    assert!(last.is_none_or(|last| last < key));
                    last = Some(key);
                }
            }
        });
        scope.spawn(move || {
            while !stop.load(Ordering::SeqCst) {
                tree.clear().unwrap();
                thread::yield_now();
            }
        });
        for writer in writers {
            let joined = writer.join();
            if joined.is_err() {
                stop.store(true, Ordering::SeqCst);
            }
            joined.unwrap();
        }
        stop.store(true, Ordering::SeqCst);
    });
    tree.settle().unwrap();
    tree.validate().unwrap();
    assert_eq!(tree.len(), tree.range(..).count());
    tree.clear().unwrap();
    tree.validate().unwrap();
    assert!(tree.is_empty());
    for n in 0..KEYS {
        assert!(tree.insert(&key(n), &value(n, 1)).unwrap());
    }
    assert_eq!(tree.len(), KEYS as usize);
    tree.validate().unwrap();
}
