//! Trees with interpolation indexes: under all changes, reads find exactly the records that are present.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use leafpress::codec::Codec;
use leafpress::{Tree, TreeBuilder};

const RECORDS: u64 = 12_000;

/// Leaves of some forty records, so that there are two levels of inner nodes.
fn builder() -> TreeBuilder {
    Tree::builder().codec(Codec::None).leaf_bytes(4096).landing_bytes(256)
}

fn value(n: u64, version: u64) -> Vec<u8> {
    let mut value = vec![n as u8; 90 + (n % 20) as usize];
    value[..8].copy_from_slice(&version.to_le_bytes());
    value
}

fn version(value: &[u8]) -> u64 {
    u64::from_le_bytes(*value.first_chunk().unwrap())
}

fn has_shortcuts(tree: &Tree) -> bool {
    tree.stats().interpolation_bytes > 0
}

/// Ids, four apart, so that there is room between them.
fn dense(n: u64) -> Vec<u8> {
    (4 * n).to_be_bytes().to_vec()
}

/// Ids after a common prefix.
fn prefixed(n: u64) -> Vec<u8> {
    [b"a prefix of more than eight bytes, ".as_slice(), &dense(n)].concat()
}

/// Random numbers with a suffix.
fn random(n: u64) -> Vec<u8> {
    let number = n
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .rotate_left(29)
        .wrapping_mul(0xBF58_476D_1CE4_E5B9);
    [&number.to_be_bytes()[..], &b"tail"[..(n % 5) as usize]].concat()
}

/// Keys with equal numbers: they end with zeros, or differ after the eighth byte.
fn alike(n: u64) -> Vec<u8> {
    let (number, kind) = (n / 6, n % 6);
    let number = (number * 512).to_be_bytes();
    match kind {
        0 => number[..7].to_vec(),
        1 => number.to_vec(),
        2 => [&number[..], &[0]].concat(),
        3 => [&number[..], &[0, 0]].concat(),
        4 => [&number[..], &[1]].concat(),
        _ => [&number[..7], &[1]].concat(),
    }
}

/// Ids in runs, with gaps of the same length.
fn clustered(n: u64) -> Vec<u8> {
    (4 * n + n / 1000 * 4000).to_be_bytes().to_vec()
}

/// Text, whose numbers are clustered so densely in a few places that no table can distinguish them.
fn text(n: u64) -> Vec<u8> {
    format!("user{n:08}").into_bytes()
}

fn same(tree: &Tree, map: &BTreeMap<Vec<u8>, Vec<u8>>, key: impl Fn(u64) -> Vec<u8>, at: &str) {
    tree.validate().expect(at);
    assert_eq!(tree.len(), map.len(), "{at}");
    let keys: Vec<_> = (0..RECORDS + RECORDS / 4).map(key).collect();
    for key in &keys {
        assert_eq!(
            tree.get(key).unwrap(),
            map.get(key).cloned(),
            "{at}: {}",
            key.escape_ascii()
        );
        assert_eq!(tree.contains_key(key).unwrap(), map.contains_key(key), "{at}");
    }
    for keys in keys.chunks(13) {
        let expected: Vec<_> = keys.iter().map(|key| map.get(key).cloned()).collect();
        assert!(tree.get_many(keys).unwrap() == expected, "{at}");
    }
}

/// Fills a tree, then changes it in ways that replace, split, merge and empty leaves, and compares it with a map.
fn changes(shards: usize, key: fn(u64) -> Vec<u8>, seed: u64) {
    let tree = builder().shards(shards).build().unwrap();
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut map = BTreeMap::new();
    let mut order: Vec<u64> = (0..RECORDS).collect();
    rng.shuffle(&mut order);
    let put = |map: &mut BTreeMap<_, _>, n: u64, version: u64| {
        let new = map.insert(key(n), value(n, version)).is_none();
        assert_eq!(tree.insert(&key(n), &value(n, version)).unwrap(), new);
    };
    for n in order {
        put(&mut map, n, 0);
    }
    tree.settle().unwrap();
    assert_eq!(has_shortcuts(&tree), key(0) != text(0), "{:?}", tree.stats());
    same(&tree, &map, key, "filled");
    for round in 1..=4 {
        for _ in 0..2000 {
            put(&mut map, rng.u64(..RECORDS + RECORDS / 4), round);
        }
        same(&tree, &map, key, "after puts");
        for _ in 0..6 {
            let first = rng.u64(300..RECORDS - 600);
            let gone = first..first + rng.u64(1..300);
            for n in gone.clone() {
                assert_eq!(tree.remove(&key(n)).unwrap(), map.remove(&key(n)).is_some());
            }
            // Immediately, before the table is rebuilt: leaves whose ranges have grown are replaced.
            for n in gone.step_by(50) {
                put(&mut map, n, round);
                put(&mut map, n + 1, round);
            }
            for n in first - 300..first + 600 {
                assert_eq!(
                    tree.get(&key(n)).unwrap(),
                    map.get(&key(n)).cloned(),
                    "after a run of removals"
                );
            }
        }
        // The first and the last leaves are removed too.
        for n in (0..100 * round).chain(RECORDS - 100 * round..RECORDS) {
            assert_eq!(tree.remove(&key(n)).unwrap(), map.remove(&key(n)).is_some());
        }
        same(&tree, &map, key, "after removals");
        match round {
            1 => tree.compact().unwrap(),
            2 => tree.settle().unwrap(),
            _ => {}
        }
        same(&tree, &map, key, "at the end of a round");
    }
}

#[test]
fn dense_keys_are_found_through_every_change() {
    changes(1, dense, 1);
    changes(2, dense, 2);
}

#[test]
fn keys_behind_a_prefix_are_found_through_every_change() {
    changes(1, prefixed, 3);
}

#[test]
fn random_keys_are_found_through_every_change() {
    changes(1, random, 4);
}

#[test]
fn keys_with_equal_numbers_are_distinguished_through_every_change() {
    changes(1, alike, 5);
}

#[test]
fn keys_with_gaps_are_found_through_every_change() {
    changes(1, clustered, 7);
}

#[test]
fn text_is_found_through_every_change() {
    changes(1, text, 6);
}

#[test]
fn a_table_is_dropped_with_its_leaves_and_rebuilt() {
    let tree = builder().build().unwrap();
    for round in 0..3 {
        for n in 0..RECORDS {
            tree.insert(&dense(n), &value(n, round)).unwrap();
        }
        tree.settle().unwrap();
        assert!(has_shortcuts(&tree));
        if round == 1 {
            for n in 0..RECORDS {
                assert!(tree.remove(&dense(n)).unwrap());
            }
        } else {
            tree.clear().unwrap();
        }
        assert_eq!(tree.get(&dense(RECORDS / 2)).unwrap(), None);
        tree.insert(&dense(7), &value(7, 9)).unwrap();
        tree.validate().unwrap();
        tree.settle().unwrap();
        assert!(!has_shortcuts(&tree), "one leaf needs none");
        assert_eq!(tree.get(&dense(7)).unwrap(), Some(value(7, 9)));
        tree.validate().unwrap();
    }
}

// Without the tree's own heap there is no defragmentation, and without dictionaries no upkeep task that could build
// tables.
#[cfg(feature = "node-heap")]
#[test]
fn a_growing_tree_builds_its_table_by_itself() {
    let tree = builder().build().unwrap();
    let mut n = 0;
    let start = std::time::Instant::now();
    while !has_shortcuts(&tree) {
        assert!(start.elapsed().as_secs() < 60, "{:?}", tree.stats());
        for _ in 0..500 {
            tree.insert(&dense(n), &value(n, 0)).unwrap();
            n += 1;
        }
    }
    tree.validate().unwrap();
}

/// A read through a table never returns a value older than one that its thread has seen or written, while leaves are
/// replaced, split, merged and moved.
#[test]
fn no_read_goes_back_in_time() {
    let factor: f64 = std::env::var("LEAFPRESS_STRESS")
        .ok()
        .and_then(|f| f.parse().ok())
        .unwrap_or(1.0);
    let steps = (60_000.0 * factor) as u64 + 2000;
    let tree = builder().build().unwrap();
    for n in 0..RECORDS {
        tree.insert(&dense(n), &value(n, 0)).unwrap();
    }
    tree.settle().unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|own| {
                let tree = &tree;
                scope.spawn(move || {
                    let mut rng = fastrand::Rng::with_seed(own);
                    for step in 1..=steps {
                        // Some keys are written often, so that their leaves are replaced; others between them, so that
                        // leaves split and merge.
                        let n = rng.u64(..if step % 2 == 0 { 200 } else { RECORDS }) / 2 * 2 + own;
                        tree.insert(&dense(n), &value(n, step)).unwrap();
                        let read = tree.get(&dense(n)).unwrap();
                        assert!(read == Some(value(n, step)), "a put that was done is not seen");
                        let mut between = dense(n);
                        between.push(own as u8);
                        if step % 3 == 0 {
                            tree.insert(&between, &value(n, step)).unwrap();
                            assert!(tree.contains_key(&between).unwrap());
                        } else {
                            tree.remove(&between).unwrap();
                            assert_eq!(tree.get(&between).unwrap(), None, "a removal that was done is not seen");
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                tree.compact().unwrap();
                tree.settle().unwrap();
            }
        });
        scope.spawn(|| {
            let mut seen = vec![0; RECORDS as usize];
            let mut rng = fastrand::Rng::with_seed(9);
            while !done.load(Ordering::Relaxed) {
                let among = if rng.bool() { 200 } else { RECORDS };
                let n = rng.u64(..among);
                let now = tree.get_with(&dense(n), version).unwrap().expect("keys stay");
                assert!(
                    now >= seen[n as usize],
                    "key {n} went back from {} to {now}",
                    seen[n as usize]
                );
                seen[n as usize] = now;
            }
        });
        let ends: Vec<_> = writers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        done.store(true, Ordering::Relaxed);
        assert!(ends.iter().all(Result::is_ok));
    });
    tree.validate().unwrap();
}
