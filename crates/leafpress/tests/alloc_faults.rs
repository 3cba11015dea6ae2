//! Out of memory, whichever allocation fails: the operation returns an error, the record is unchanged, and the tree
//! stays valid and usable.
//!
//! A separate program, for its allocator. Nodes come from that allocator only where they have no heap of their own:
//! `cargo test -p leafpress --no-default-features`.

#[path = "support/starving.rs"]
mod starving;
mod support;

use std::collections::BTreeMap;

use leafpress::codec::CodecError;
use leafpress::tree::{DictionaryChoice, Layout, TreeError};
use leafpress::{Codec, Tree};
use proptest::collection::vec;
use proptest::prelude::*;
#[cfg(not(feature = "node-heap"))]
use starving::starved_of_lines;
use starving::{refused, starved};
use support::model::same_contents;
use support::strategies::settings;

fn is_of_memory(error: &TreeError) -> bool {
    matches!(
        error,
        TreeError::OutOfMemory { .. } | TreeError::Codec(CodecError::OutOfMemory { .. })
    )
}

/// Returns the result of an operation; `None` where it had no memory. Panics for an error of another kind.
#[track_caller]
fn done<T>(result: Result<T, TreeError>) -> Option<T> {
    result.map_err(|error| assert!(is_of_memory(&error), "{error}")).ok()
}

fn tree(landing_bytes: usize) -> Tree {
    Tree::builder()
        .codec(Codec::Lz4 { acceleration: 1 })
        .dictionary(DictionaryChoice::Off)
        .leaf_bytes(1024)
        .landing_bytes(landing_bytes)
        .build()
        .unwrap()
}

#[test]
#[cfg(not(feature = "node-heap"))]
fn a_put_without_memory_leaves_the_old_record() {
    let tree = tree(0);
    for n in 0..200u16 {
        tree.insert(&n.to_be_bytes(), &[1; 60]).unwrap();
    }
    let before = refused();
    for n in 0..200u16 {
        match starved_of_lines(0, || tree.insert(&n.to_be_bytes(), &[2; 90])) {
            Err(TreeError::OutOfMemory { bytes }) => assert!(bytes > 0),
            other => panic!("{n}: {other:?}"),
        }
        assert_eq!(tree.get(&n.to_be_bytes()).unwrap(), Some(vec![1; 60]));
    }
    assert!(refused() >= before + 200);
    tree.validate().unwrap();
    assert!(!tree.insert(&7u16.to_be_bytes(), &[2; 90]).unwrap());
    assert_eq!(tree.get(&7u16.to_be_bytes()).unwrap(), Some(vec![2; 90]));
}

#[test]
fn a_large_value_without_memory_leaves_the_old_record() {
    let tree = tree(512);
    tree.insert(b"k", b"old").unwrap();
    for after in 0..12 {
        // The allocation of the value's block fails, or one in the leaf: the insertion is done, or has no effect.
        match starved(after, || tree.insert(b"k", &[3; 50_000])) {
            Ok(new) => {
                assert!(!new);
                tree.insert(b"k", b"old").unwrap();
            }
            Err(error) => {
                assert!(is_of_memory(&error), "{error}");
                assert_eq!(tree.get(b"k").unwrap().as_deref(), Some(b"old".as_slice()));
            }
        }
    }
    tree.insert(b"k", b"new").unwrap();
    tree.compact().unwrap();
    assert_eq!(
        tree.stats().large_value_bytes,
        0,
        "a block that was not inserted is freed"
    );
    tree.validate().unwrap();
}

#[test]
#[cfg(not(feature = "node-heap"))]
fn a_compaction_of_a_compact_tree_needs_no_node_memory() {
    let tree = tree(256);
    for n in 0..300u16 {
        tree.insert(&n.to_be_bytes(), &[1; 60]).unwrap();
    }
    tree.compact().unwrap();
    // Leaves that cannot be moved stay where they are, which is not an error.
    let before = refused();
    starved_of_lines(0, || tree.compact()).unwrap();
    assert!(refused() > before, "a leaf was to be moved");
    tree.validate().unwrap();
}

#[test]
#[cfg(not(feature = "node-heap"))]
fn reads_need_no_node_memory() {
    let tree = tree(256);
    for n in 0..300u16 {
        tree.insert(&n.to_be_bytes(), &n.to_be_bytes().repeat(30)).unwrap();
    }
    starved_of_lines(0, || {
        for n in 0..300u16 {
            assert_eq!(tree.get(&n.to_be_bytes()).unwrap(), Some(n.to_be_bytes().repeat(30)));
        }
        assert_eq!(tree.range(..).filter(|record| record.is_ok()).count(), 300);
    });
}

/// Whichever node's allocation is the first to fail: exactly the records before it are in the tree, in order.
#[test]
fn records_in_key_order_without_memory_are_taken_up_to_one() {
    let record = |n: u16| (n.to_be_bytes(), vec![n as u8; if n % 50 == 7 { 3000 } else { 60 }]);
    // Created in advance, since this needs memory too.
    let records: Vec<_> = (0..3000).map(record).collect();
    let mut taken = 0;
    for after in (0..60).chain([100, 200, 400, 1000, 3000, 100_000]) {
        for there in [0, 300] {
            let tree = tree(256);
            for n in 0..there {
                let (key, value) = record(n);
                tree.insert(&key, &value).unwrap();
            }
            let extended = starved(after, || {
                tree.extend(records[usize::from(there)..].iter().map(|(key, value)| (key, value)))
            });
            let len = tree.len() as u16;
            match extended {
                Ok(new) => assert_eq!(new, u64::from(3000 - there)),
                Err(error) => assert!(matches!(error, TreeError::OutOfMemory { .. }), "{error}"),
            }
            assert!(len >= there);
            taken = taken.max(len);
            tree.validate().unwrap();
            let map = (0..len).map(|n| (record(n).0.to_vec(), record(n).1)).collect();
            same_contents(&tree, &map, "without memory");
            tree.extend((0..3000).map(record)).unwrap();
            tree.validate().unwrap();
        }
    }
    assert_eq!(taken, 3000, "with enough of it");
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Put(u16, u8, u16),
    /// Inserts this many keys from the first on.
    PutRun(u16, u8),
    RemoveRun(u16),
    Remove(u16),
    Take(u16),
    Get(u16),
    GetMany(u16),
    Scan(u16, u8),
    ScanBack(u16, u8),
    First,
    Compact,
    Settle,
    Clear,
}

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Returns a key of one length, which leaves store as a number; or of several lengths, with much in common.
#[test]
fn a_removal_of_a_range_without_memory_reports_what_it_has_removed() {
    let mut failed = 0;
    for after in 0.. {
        let tree = tree(64);
        for n in 0..1000u16 {
            tree.insert(&n.to_be_bytes(), &[n as u8; 60]).unwrap();
        }
        let range = 10u16.to_be_bytes()..900u16.to_be_bytes();
        let (mut records, mut bytes, mut end) = (0, 0, None);
        let outcome = starved(after, || {
            tree.remove_range_with(range, |part| {
                records += part.records;
                bytes += part.key_and_value_bytes;
                if part.records > 0 {
                    // Two bytes at most, of which those after the end are zeros.
                    let mut key = [0; 2];
                    let up_to = part.up_to.unwrap_or(&[255; 2]);
                    key[..up_to.len().min(2)].copy_from_slice(&up_to[..up_to.len().min(2)]);
                    end = Some(u16::from_be_bytes(key));
                }
                Ok(())
            })
        });
        assert_eq!((1000 - tree.len() as u64, records * 62), (records, bytes));
        for n in 0..1000u16 {
            let is_gone = (10..900).contains(&n) && end.is_some_and(|end| n < end);
            assert_eq!(tree.contains_key(&n.to_be_bytes()).unwrap(), !is_gone, "{n}, {end:?}");
        }
        tree.validate().unwrap();
        if done(outcome).is_some() {
            assert_eq!(records, 890);
            break;
        }
        failed += usize::from(records > 0);
    }
    assert!(failed > 0);
}

fn key(n: u16, text: bool) -> Vec<u8> {
    match text {
        false => n.to_be_bytes().to_vec(),
        true => format!("user:{:03}:{}", n / 3, "profile".repeat(n as usize % 3)).into_bytes(),
    }
}

/// Returns a nearly incompressible value, or one that every codec compresses well.
fn value(n: u16, v: u8, len: u16) -> Vec<u8> {
    match v % 2 {
        0 => vec![v; len.into()],
        _ => (0..len)
            .map(|at| ((u32::from(at ^ n) * 0x9E37) >> 5) as u8 ^ v)
            .collect(),
    }
}

/// Executes a step with memory running out at allocation `after`, and applies its effect to the map.
fn apply(tree: &Tree, map: &mut Map, step: Step, text: bool, after: i64) {
    let key = |n| key(n, text);
    match step {
        Step::Put(n, v, len) => {
            let (key, value) = (key(n), value(n, v, len));
            if let Some(new) = done(starved(after, || tree.insert(&key, &value))) {
                assert_eq!(new, map.insert(key, value).is_none());
            }
        }
        Step::PutRun(n, v) => (n..(n + 40).min(300)).for_each(|n| apply(tree, map, Step::Put(n, v, 70), text, after)),
        Step::RemoveRun(n) => (n..(n + 60).min(300)).for_each(|n| apply(tree, map, Step::Remove(n), text, after)),
        Step::Remove(n) => {
            let key = key(n);
            if let Some(present) = done(starved(after, || tree.remove(&key))) {
                assert_eq!(present, map.remove(&key).is_some());
            }
        }
        Step::Take(n) => {
            let key = key(n);
            if let Some(taken) = done(starved(after, || tree.take(&key))) {
                assert_eq!(taken, map.remove(&key));
            }
        }
        Step::Get(n) => {
            let key = key(n);
            let got = starved(after, || (tree.get(&key), tree.contains_key(&key)));
            if let Some(got) = done(got.0) {
                assert_eq!(got.as_ref(), map.get(&key));
            }
            if let Some(is_there) = done(got.1) {
                assert_eq!(is_there, map.contains_key(&key));
            }
        }
        Step::GetMany(n) => {
            let keys: Vec<_> = (n..n + 20).map(key).collect();
            if let Some(values) = done(starved(after, || tree.get_many(&keys))) {
                assert!(
                    keys.iter()
                        .map(|key| map.get(key))
                        .eq(values.iter().map(Option::as_ref))
                );
            }
        }
        Step::Scan(n, limit) => {
            let from = key(n);
            let mut range = starved(after, || tree.range(from.as_slice()..));
            for (key, value) in map.range(from.clone()..).take(limit.into()) {
                match starved(after, || range.next()) {
                    Some(Ok(record)) => assert_eq!((&record.0, &record.1), (key, value)),
                    Some(Err(error)) => {
                        assert!(is_of_memory(&error), "{error}");
                        assert!(range.next().is_none());
                        break;
                    }
                    None => panic!("a record is missing"),
                }
            }
            let mut seen = 0;
            let visit = |_: &[u8], _: &[u8]| seen += 1;
            if let Some(visited) = done(starved(after, || tree.range(&from..).limit(limit.into()).visit(visit))) {
                assert_eq!((seen, visited), (visited, map.range(from..).take(limit.into()).count()));
            }
        }
        Step::ScanBack(n, limit) => {
            let to = key(n);
            let range = starved(after, || tree.range(..=to.as_slice()));
            let found = starved(after, || {
                range
                    .rev()
                    .take(limit.into())
                    .try_fold(0, |n, record| record.map(|_| n + 1))
            });
            if let Some(found) = done(found) {
                assert_eq!(found, map.range(..=to).take(limit.into()).count());
            }
        }
        Step::First => {
            if let Some(first) = done(starved(after, || tree.first())) {
                assert_eq!(
                    first,
                    map.first_key_value().map(|(key, value)| (key.clone(), value.clone()))
                );
            }
        }
        Step::Compact => _ = done(starved(after, || tree.compact())),
        Step::Settle => _ = done(starved(after, || tree.settle())),
        // A clear may fail part way: shards are cleared one by one. Here there is one.
        Step::Clear => {
            if done(starved(after, || tree.clear())).is_some() {
                map.clear();
            }
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<(Step, i64)>> {
    let n = || 0u16..300;
    let step = prop_oneof![
        10 => (n(), any::<u8>(), prop_oneof![9 => Just(60u16), 1 => Just(3000)])
            .prop_map(|(n, v, len)| Step::Put(n, v, len)),
        2 => (n(), any::<u8>()).prop_map(|(n, v)| Step::PutRun(n, v)),
        1 => n().prop_map(Step::RemoveRun),
        8 => n().prop_map(Step::Remove),
        2 => n().prop_map(Step::Take),
        3 => n().prop_map(Step::Get),
        1 => n().prop_map(Step::GetMany),
        1 => (n(), any::<u8>()).prop_map(|(n, limit)| Step::Scan(n, limit)),
        1 => (n(), any::<u8>()).prop_map(|(n, limit)| Step::ScanBack(n, limit)),
        1 => Just(Step::First),
        1 => Just(Step::Compact),
        1 => Just(Step::Settle),
        1 => Just(Step::Clear),
    ];
    vec(
        (step, prop_oneof![1 => Just(-1i64), 2 => 0i64..5, 2 => 5i64..40]),
        1..200,
    )
}

proptest! {
    #![proptest_config(settings(48))]

    /// Whichever allocation of an operation fails: an operation that returns an error has changed nothing, one that
    /// returns success is done.
    #[test]
    fn an_operation_without_memory_changes_nothing(
        codec in prop_oneof![
            1 => Just("none"), 2 => Just("lz4"), 2 => Just("zstd:1"), 1 => Just("deflate:1"), 2 => Just("onpair"),
        ],
        layout in prop_oneof![3 => Just(Layout::Ordered), 1 => Just(Layout::Hashed { sub_pages: 4 })],
        landing_bytes in prop_oneof![Just(0usize), Just(128), Just(512), Just(8192)],
        frame_bytes in prop_oneof![Just(1usize), Just(512)],
        text in any::<bool>(),
        steps in steps(),
    ) {
        let tree = Tree::builder()
            .codec(codec.parse().unwrap())
            .dictionary(DictionaryChoice::Off)
            .layout(layout)
            .leaf_bytes(1024)
            // Given, since trials of lengths start a thread, where a lack of memory need not be an error.
            .frame_bytes(frame_bytes)
            .landing_bytes(landing_bytes)
            .build()
            .unwrap();
        let mut map = Map::new();
        for n in 0..100u16 {
            tree.insert(&key(n, text), &[n as u8; 60]).unwrap();
            map.insert(key(n, text), vec![n as u8; 60]);
        }
        for (i, &(step, after)) in steps.iter().enumerate() {
            apply(&tree, &mut map, step, text, after);
            if i % 32 == 0 {
                tree.validate().unwrap();
            }
        }
        tree.validate().unwrap();
        same_contents(&tree, &map, "with memory again");
        tree.compact().unwrap();
        tree.validate().unwrap();
        same_contents(&tree, &map, "after a compaction");
        prop_assert_eq!(tree.stats().large_value_bytes > 0, map.values().any(|value| value.len() > 2048));
        let before = refused();
        starved(0, || drop(tree));
        prop_assert_eq!(refused(), before, "a tree that goes needs no memory");
    }
}
