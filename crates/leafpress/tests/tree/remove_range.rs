//! Removing and counting ranges of records.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};

use leafpress::tree::Upkeep;
use leafpress::{Layout, Tree};
use proptest::collection::vec;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Op {
    Put(u16, u16),
    PutRun(u16, u8, u16),
    Remove(u16),
    RemoveRange(Bound<u16>, Bound<u16>, usize),
}

fn bound() -> impl Strategy<Value = Bound<u16>> {
    prop_oneof![
        4 => (0u16..600).prop_map(Bound::Included),
        4 => (0u16..600).prop_map(Bound::Excluded),
        1 => Just(Bound::Unbounded),
    ]
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let lens = || prop_oneof![6 => 0u16..200, 2 => 200u16..1500, 1 => 2000u16..9000];
    let limit = prop_oneof![2 => 0usize..10, 3 => 10usize..300, 1 => Just(usize::MAX)];
    let op = prop_oneof![
        6 => (0u16..600, lens()).prop_map(|(n, len)| Op::Put(n, len)),
        6 => (0u16..600, 1u8..200, lens()).prop_map(|(n, count, len)| Op::PutRun(n, count, len)),
        3 => (0u16..600).prop_map(Op::Remove),
        6 => (bound(), bound(), limit).prop_map(|(from, to, limit)| Op::RemoveRange(from, to, limit)),
    ];
    vec(op, 1..50)
}

/// Keys of one length, or text of several lengths.
fn key(text: bool, n: u16) -> Vec<u8> {
    match text {
        true => format!("{:03}{}", n, "/pool/main".repeat(usize::from(n % 5))).into_bytes(),
        false => u64::from(n).to_be_bytes().to_vec(),
    }
}

fn value(n: u16, len: u16) -> Vec<u8> {
    let text = format!("Package: {n}\nSection: {}\nSize: {len}\n", n % 5);
    text.bytes().cycle().take(usize::from(len)).collect()
}

fn bounds(text: bool, (from, to): (Bound<u16>, Bound<u16>)) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    (from.map(|n| key(text, n)), to.map(|n| key(text, n)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn exactly_a_range_is_counted_and_removed(
        codec in prop_oneof![Just("lz4"), Just("zstd:1"), Just("none")],
        sub_pages in prop_oneof![3 => Just(0usize), 1 => Just(4)],
        shards in prop_oneof![3 => Just(1usize), 1 => Just(3)],
        landing in prop_oneof![Just(None), Just(Some(0usize)), Just(Some(4096))],
        text in any::<bool>(),
        ops in ops(),
    ) {
        let mut builder = Tree::builder().codec(codec.parse().unwrap()).leaf_bytes(1 << 10).shards(shards);
        if sub_pages > 0 {
            builder = builder.layout(Layout::Hashed { sub_pages });
        }
        if let Some(bytes) = landing {
            builder = builder.landing_bytes(bytes);
        }
        let tree = builder.build().unwrap();
        let mut map = BTreeMap::new();
        for op in ops {
            match op {
                Op::Put(n, len) => {
                    tree.insert(&key(text, n), &value(n, len)).unwrap();
                    map.insert(key(text, n), value(n, len));
                }
                Op::PutRun(first, count, len) => for n in first..first + u16::from(count) {
                    tree.insert(&key(text, n), &value(n, len)).unwrap();
                    map.insert(key(text, n), value(n, len));
                },
                Op::Remove(n) => {
                    prop_assert_eq!(tree.remove(&key(text, n)).unwrap(), map.remove(&key(text, n)).is_some());
                }
                Op::RemoveRange(from, to, limit) => {
                    let range = bounds(text, (from, to));
                    let in_range = |key: &Vec<u8>| {
                        (match &range.0 {
                            Bound::Included(from) => from <= key,
                            Bound::Excluded(from) => from < key,
                            Bound::Unbounded => true,
                        }) && (match &range.1 {
                            Bound::Included(to) => key <= to,
                            Bound::Excluded(to) => key < to,
                            Bound::Unbounded => true,
                        })
                    };
                    let there = map.keys().filter(|key| in_range(key)).count();
                    prop_assert_eq!(tree.count(range.clone()).unwrap(), there as u64);
                    let removed = tree.remove_range(range.clone(), limit).unwrap();
                    prop_assert_eq!(removed.records as usize, there.min(limit));
                    prop_assert_eq!(removed.is_done, there <= limit);
                    let mut bytes = 0;
                    let mut gone = 0;
                    map.retain(|key, value| {
                        let stays = !in_range(key) || tree.contains_key(key).unwrap();
                        if !stays {
                            gone += 1;
                            bytes += key.len() + value.len();
                        }
                        stays
                    });
                    prop_assert_eq!((removed.records, removed.key_and_value_bytes), (gone, bytes as u64));
                }
            }
            prop_assert_eq!(tree.len(), map.len());
        }
        tree.validate().unwrap();
        let records: Vec<_> = tree.iter().map(Result::unwrap).collect();
        prop_assert!(records.into_iter().eq(map));
    }
}

#[test]
fn a_removed_range_gives_its_memory_back() {
    let tree = Tree::builder().build().unwrap();
    let empty = tree.stats();
    for n in 0..50_000_u32 {
        tree.insert(&n.to_be_bytes(), &[n as u8; 100]).unwrap();
    }
    let mut removed = 0;
    loop {
        let step = tree
            .remove_range(0_u32.to_be_bytes()..40_000_u32.to_be_bytes(), 500)
            .unwrap();
        assert!(step.records <= 500);
        assert_eq!(step.key_and_value_bytes, step.records * 104);
        removed += step.records;
        if step.is_done {
            break;
        }
    }
    assert_eq!((removed, tree.len()), (40_000, 10_000));
    let rest = tree.remove_range(.., usize::MAX).unwrap();
    assert_eq!((rest.records, rest.is_done), (10_000, true));
    assert!(tree.is_empty());
    let stats = tree.stats();
    assert!(stats.leaves <= empty.leaves + 1, "{stats:?}");
    assert_eq!(stats.user_bytes, 0);
}

#[test]
fn writers_during_a_removal_lose_nothing() {
    let tree = Tree::builder().leaf_bytes(1024).build().unwrap();
    std::thread::scope(|scope| {
        let writers = (0..2_u32).map(|thread| {
            let tree = &tree;
            scope.spawn(move || {
                for round in 0..20_u32 {
                    for n in 0..500_u32 {
                        // Keys of the range are inserted and removed; those outside stay.
                        tree.insert(&[b"a".as_slice(), &(n * 2 + thread).to_be_bytes()].concat(), &[7; 50])
                            .unwrap();
                        let outside = [b"b".as_slice(), &(n * 2 + thread).to_be_bytes()].concat();
                        tree.insert(&outside, &round.to_be_bytes()).unwrap();
                    }
                }
            })
        });
        let writers: Vec<_> = writers.collect();
        while writers.iter().any(|writer| !writer.is_finished()) {
            tree.remove_range("a".."b", 100).unwrap();
        }
    });
    while !tree.remove_range("a".."b", 64).unwrap().is_done {}
    tree.validate().unwrap();
    assert_eq!(tree.len(), 1000);
    for record in &tree {
        assert_eq!(record.unwrap().1, 19_u32.to_be_bytes());
    }
}

/// Number of keys of [`inner_nodes`]: enough leaves for changes in three levels of inner nodes, and values of each
/// kind.
const MANY: u32 = 24_000;

fn long_value(n: u32) -> Vec<u8> {
    let len = if n.is_multiple_of(97) { 3000 } else { 90 };
    n.to_be_bytes().into_iter().cycle().take(len).collect()
}

/// Returns a tree of thousands of leaves, hundreds of which have landing buffers, and the equivalent map.
fn inner_nodes(landing: Option<usize>) -> (Tree, BTreeMap<Vec<u8>, Vec<u8>>) {
    let mut map: BTreeMap<_, _> = (0..MANY).map(|n| (n.to_be_bytes().to_vec(), long_value(n))).collect();
    let mut builder = Tree::builder().codec("none".parse().unwrap()).leaf_bytes(1 << 10);
    if let Some(bytes) = landing {
        builder = builder.landing_bytes(bytes);
    }
    let tree = builder.build().unwrap();
    tree.extend(map.iter()).unwrap();
    for n in (0..MANY).step_by(113) {
        for n in [n, n + 1] {
            let (key, value) = (n.to_be_bytes().to_vec(), long_value(97 * (n % 2) + 1));
            tree.insert(&key, &value).unwrap();
            map.insert(key, value);
        }
        tree.remove(&(n + 2).to_be_bytes()).unwrap();
        map.remove((n + 2).to_be_bytes().as_slice());
    }
    tree.settle().unwrap();
    (tree, map)
}

/// Stops the readers when dropped, also if a check fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    /// Removes ranges over many leaves and inner nodes, while readers scan the tree.
    #[test]
    fn ranges_of_many_leaves_are_removed_during_reads(
        landing in prop_oneof![Just(None), Just(Some(4096))],
        ranges in vec((0..MANY, prop_oneof![2 => 1..500u32, 2 => 500..9000u32, 1 => Just(MANY)], any::<bool>()), 1..12),
    ) {
        let (tree, mut map) = inner_nodes(landing);
        let stays: Vec<u32> = (0..MANY)
            .filter(|n| !ranges.iter().any(|(from, len, _)| (*from..from.saturating_add(*len)).contains(n)))
            .filter(|n| map.contains_key(n.to_be_bytes().as_slice()))
            .collect();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..2).map(|reader| {
                let (tree, map, stays, is_over) = (&tree, map.clone(), &stays, &is_over);
                scope.spawn(move || while !is_over.load(Ordering::Relaxed) {
                    if reader == 0 {
                        for n in stays.iter().step_by(7) {
                            let value = tree.get(&n.to_be_bytes()).unwrap();
                            assert_eq!(value.as_ref(), map.get(n.to_be_bytes().as_slice()));
                        }
                        continue;
                    }
                    let mut at = 0;
                    for record in tree {
                        let (key, value) = record.unwrap();
                        assert_eq!(Some(&value), map.get(&key));
                        if stays.get(at).is_some_and(|stays| stays.to_be_bytes() == key.as_slice()) {
                            at += 1;
                        }
                    }
                    assert_eq!(at, stays.len(), "a scan misses a record that stays");
                })
            }).collect();
            let ends = Ends(&is_over);
            for (from, len, in_parts) in &ranges {
                let range = from.to_be_bytes().to_vec()..from.saturating_add(*len).to_be_bytes().to_vec();
                let going: Vec<_> = map.range(range.clone()).map(|(key, value)| (key.clone(), value.len())).collect();
                assert_eq!(tree.count(range.clone()).unwrap(), going.len() as u64);
                let (mut records, mut bytes) = (0, 0);
                loop {
                    let removed = tree.remove_range(range.clone(), if *in_parts { 700 } else { usize::MAX }).unwrap();
                    records += removed.records;
                    bytes += removed.key_and_value_bytes;
                    if removed.is_done {
                        break;
                    }
                    assert_eq!(removed.records, 700);
                }
                assert_eq!(records, going.len() as u64);
                assert_eq!(bytes, going.iter().map(|(key, value)| (key.len() + value) as u64).sum::<u64>());
                for (key, _) in going {
                    assert!(!tree.contains_key(&key).unwrap());
                    map.remove(&key);
                }
            }
            drop(ends);
            for reader in readers {
                reader.join().unwrap();
            }
        });
        tree.validate().unwrap();
        let stats = tree.stats();
        assert_eq!(stats.user_bytes, map.iter().map(|(key, value)| (key.len() + value.len()) as u64).sum::<u64>());
        assert_eq!(tree.len(), map.len());
        // Records that are inserted where leaves were removed are found.
        for n in (0..MANY).step_by(11) {
            tree.insert(&n.to_be_bytes(), b"anew").unwrap();
            map.insert(n.to_be_bytes().to_vec(), b"anew".to_vec());
        }
        tree.validate().unwrap();
        assert!(tree.iter().map(Result::unwrap).eq(map));
        tree.remove_range(.., usize::MAX).unwrap();
        assert_eq!((tree.len(), tree.stats().large_value_bytes, tree.stats().user_bytes), (0, 0, 0));
        tree.validate().unwrap();
    }
}

#[test]
fn writers_on_either_side_of_many_leaves_that_go_lose_nothing() {
    let (tree, _) = inner_nodes(None);
    let (from, to) = (MANY / 4, MANY / 4 * 3);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|side| {
                let tree = &tree;
                scope.spawn(move || {
                    for round in 0..20_u32 {
                        for distance in 0..300 {
                            // The nearest keys outside, in the leaves that take over the range, and some inside.
                            let (stays, comes_and_goes) = match side {
                                0 => (from - 1 - distance, from + distance),
                                _ => (to + distance, to - 1 - distance),
                            };
                            tree.insert(&stays.to_be_bytes(), &round.to_be_bytes()).unwrap();
                            tree.insert(&comes_and_goes.to_be_bytes(), &[7; 50]).unwrap();
                        }
                    }
                })
            })
            .collect();
        while writers.iter().any(|writer| !writer.is_finished()) {
            tree.remove_range(from.to_be_bytes()..to.to_be_bytes(), usize::MAX)
                .unwrap();
        }
        for writer in writers {
            writer.join().unwrap();
        }
    });
    tree.remove_range(from.to_be_bytes()..to.to_be_bytes(), usize::MAX)
        .unwrap();
    tree.validate().unwrap();
    assert_eq!(tree.count(from.to_be_bytes()..to.to_be_bytes()).unwrap(), 0);
    for n in (from - 300..from).chain(to..to + 300) {
        assert_eq!(
            tree.get(&n.to_be_bytes()).unwrap().as_deref(),
            Some(&19_u32.to_be_bytes()[..])
        );
    }
}

#[test]
fn leaves_that_go_whole_are_not_decoded() {
    // Also where nothing is below the range, so that each leaf in turn is the tree's first.
    for (from, to) in [(5_000, 15_000), (1, 15_000), (5_000, 20_000), (1, 20_000)] {
        let tree = Tree::builder().upkeep(Upkeep::Caller).build().unwrap();
        let text = |n: u32| format!("Package: {n}\nSection: {}\n", n % 7).repeat(3);
        for n in 1..20_000_u32 {
            tree.insert(&n.to_be_bytes(), text(n).as_bytes()).unwrap();
        }
        let before = tree.stats();
        let removed = tree
            .remove_range(u32::to_be_bytes(from)..u32::to_be_bytes(to), usize::MAX)
            .unwrap();
        assert_eq!(removed.records, u64::from(to - from));
        let after = tree.stats();
        let decoded = after.engine.decompress_bytes_out - before.engine.decompress_bytes_out;
        // The leaves at the ends of the range, and neighbours that these were merged with.
        let leaf_bytes = before.user_bytes / before.leaves;
        assert!(before.leaves > 50 && decoded < 8 * leaf_bytes, "{before:?} {after:?}");
        tree.validate().unwrap();
    }
}
