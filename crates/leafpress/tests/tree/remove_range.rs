//! Removing and counting ranges of records.

use std::collections::BTreeMap;
use std::ops::Bound;

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

/// Keys of one length, or text of several.
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
    fn a_range_is_counted_and_goes_and_nothing_else(
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
fn writers_beside_a_removal_lose_nothing() {
    let tree = Tree::builder().leaf_bytes(1024).build().unwrap();
    std::thread::scope(|scope| {
        let writers = (0..2_u32).map(|thread| {
            let tree = &tree;
            scope.spawn(move || {
                for round in 0..20_u32 {
                    for n in 0..500_u32 {
                        // Keys of the range come and go; those beside it stay.
                        tree.insert(&[b"a".as_slice(), &(n * 2 + thread).to_be_bytes()].concat(), &[7; 50])
                            .unwrap();
                        let beside = [b"b".as_slice(), &(n * 2 + thread).to_be_bytes()].concat();
                        tree.insert(&beside, &round.to_be_bytes()).unwrap();
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
