//! The interface of an ordered map: equivalent to `BTreeMap`, and atomic per key under concurrency.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use leafpress::{Tree, TreeError};
use proptest::prelude::*;

type Record = (Vec<u8>, Vec<u8>);

/// Small leaves, so that few records make many of them.
fn tree(codec: &str, shards: usize) -> Tree {
    let builder = Tree::builder().codec(codec.parse().unwrap());
    builder.leaf_bytes(1 << 10).shards(shards).build().unwrap()
}

fn records(tree: &Tree) -> Vec<Record> {
    tree.iter().collect::<Result<_, _>>().unwrap()
}

fn keys(range: leafpress::Range<'_>) -> Vec<String> {
    range
        .map(|record| String::from_utf8(record.unwrap().0).unwrap())
        .collect()
}

#[test]
fn keys_are_what_has_bytes() {
    let tree = tree("lz4", 1);
    assert!(tree.insert("b", "2").unwrap());
    assert!(tree.insert(b"a", &[1_u8; 3]).unwrap());
    assert!(tree.insert(&String::from("c"), &vec![7_u8]).unwrap());
    assert!(tree.insert(&1_u32.to_be_bytes(), "number").unwrap());
    assert_eq!(tree.get("a").unwrap().unwrap(), [1; 3]);
    assert_eq!(keys(tree.range("a".."b")), ["a"]);
    assert_eq!(keys(tree.range(b"a"..=b"b")), ["a", "b"]);
    assert_eq!(keys(tree.range(String::from("b")..)), ["b", "c"]);
    assert_eq!(tree.range(..).count(), 4);
    assert_eq!((&tree).into_iter().count(), 4);
    assert_eq!(tree.range(..="a").count(), 2);
    assert!(tree.contains_key("c").unwrap() && tree.remove("c").unwrap());
    assert_eq!(tree.get_with("b", <[u8]>::to_vec).unwrap().unwrap(), b"2");
}

#[test]
fn what_is_not_sorted_is_refused() {
    let tree = Tree::builder()
        .from_sorted((0..5_000_u32).map(|n| (n.to_be_bytes(), n.to_le_bytes())))
        .unwrap();
    assert_eq!(tree.len(), 5_000);
    assert_eq!(tree.last().unwrap().unwrap().1, 4_999_u32.to_le_bytes());
    tree.validate().unwrap();
    for wrong in [["a", "c", "b"], ["a", "b", "b"]] {
        let error = Tree::builder()
            .from_sorted(wrong.map(|key| (key, "value")))
            .unwrap_err();
        assert!(matches!(error, TreeError::Unsorted { index: 2 }), "{error}");
    }
}

#[derive(Debug, Clone)]
enum Step {
    Insert(Vec<u8>, Vec<u8>),
    Extend(Vec<Record>),
    Take(Vec<u8>),
    PopFirst,
    PopLast,
    GetOrInsert(Vec<u8>, Vec<u8>),
    /// Removes the records whose value has at most this first byte.
    Retain(u8),
    Prefix(Vec<u8>),
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    // Few byte values, the last two at the end of their range: prefixes share much.
    prop::collection::vec(prop::sample::select(vec![0_u8, b'a', b'b', 254, 255]), 0..4)
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    // Values above 2 KiB are stored as large ones.
    (any::<u8>(), prop_oneof![8 => 0_usize..200, 1 => 2_000_usize..3_000]).prop_map(|(byte, len)| vec![byte; len])
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (key(), value()).prop_map(|(key, value)| Step::Insert(key, value)),
        2 => prop::collection::vec((key(), value()), 0..30).prop_map(Step::Extend),
        3 => key().prop_map(Step::Take),
        2 => Just(Step::PopFirst),
        2 => Just(Step::PopLast),
        3 => (key(), value()).prop_map(|(key, value)| Step::GetOrInsert(key, value)),
        1 => (0_u8..60).prop_map(Step::Retain),
        2 => key().prop_map(Step::Prefix),
    ]
}

fn is_kept(value: &[u8], most: u8) -> bool {
    value.first().is_none_or(|first| *first > most)
}

fn apply(tree: &Tree, model: &mut BTreeMap<Vec<u8>, Vec<u8>>, step: Step) {
    match step {
        Step::Insert(key, value) => {
            assert_eq!(tree.insert(&key, &value).unwrap(), model.insert(key, value).is_none());
        }
        Step::Extend(records) => {
            let before = model.len();
            model.extend(records.iter().cloned());
            assert_eq!(tree.extend(records).unwrap(), (model.len() - before) as u64);
        }
        Step::Take(key) => assert_eq!(tree.take(&key).unwrap(), model.remove(&key)),
        Step::PopFirst => assert_eq!(tree.pop_first().unwrap(), model.pop_first()),
        Step::PopLast => assert_eq!(tree.pop_last().unwrap(), model.pop_last()),
        Step::GetOrInsert(key, value) => {
            let expected = model.entry(key.clone()).or_insert(value.clone());
            assert_eq!(&tree.get_or_insert_with(&key, || value).unwrap(), expected);
        }
        Step::Retain(most) => {
            let before = model.len();
            model.retain(|_, value| is_kept(value, most));
            let removed = tree.retain(|_, value| is_kept(value, most)).unwrap();
            assert_eq!(removed, (before - model.len()) as u64);
        }
        Step::Prefix(prefix) => {
            let found: Vec<Record> = tree.prefix(&prefix).collect::<Result<_, _>>().unwrap();
            let expected = model.iter().filter(|(key, _)| key.starts_with(&prefix));
            assert!(found.iter().map(|(key, value)| (key, value)).eq(expected), "{prefix:?}");
            let back: Vec<Record> = tree.prefix(&prefix).rev().collect::<Result<_, _>>().unwrap();
            assert!(back.iter().rev().eq(&found), "{prefix:?}");
        }
    }
    let owned = |record: Option<(&Vec<u8>, &Vec<u8>)>| record.map(|(key, value)| (key.clone(), value.clone()));
    assert_eq!(tree.first().unwrap(), owned(model.first_key_value()));
    assert_eq!(tree.last().unwrap(), owned(model.last_key_value()));
    assert_eq!(tree.len(), model.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn it_does_what_a_btree_map_does(
        steps in prop::collection::vec(step(), 1..80),
        codec in prop::sample::select(vec!["none", "lz4", "zstd:1"]),
        shards in 1_usize..4,
    ) {
        let tree = tree(codec, shards);
        let mut model = BTreeMap::new();
        for step in steps {
            apply(&tree, &mut model, step);
        }
        tree.validate().unwrap();
        prop_assert!(records(&tree).into_iter().eq(model));
    }
}

const THREADS: u64 = 4;
const KEYS: u64 = 3_000;

/// While one thread overwrites records, others pop them: a record is popped once, with its last value. A record that
/// the writer finds absent was popped with its last written value; one that it finds present was not popped.
#[test]
fn a_record_is_popped_once_with_its_last_value() {
    const FEW_KEYS: u64 = 8;
    let tree = tree("lz4", 2);
    let is_over = AtomicBool::new(false);
    let pop_all = || {
        let mut popped = Vec::new();
        loop {
            let ends = is_over.load(Ordering::Acquire);
            let record = if popped.len() % 2 == 0 {
                tree.pop_first()
            } else {
                tree.pop_last()
            };
            match record.unwrap() {
                Some((key, value)) => popped.push((number(&key), number(&value))),
                None if ends => return popped,
                None => std::hint::spin_loop(),
            }
        }
    };
    let (mut expected, mut popped) = std::thread::scope(|s| {
        let poppers = [(); 2].map(|()| s.spawn(pop_all));
        let mut expected = Vec::new();
        for version in 1..=40_000 {
            for key in 0..FEW_KEYS {
                let is_new = tree.insert(&key.to_be_bytes(), &u64::to_be_bytes(version)).unwrap();
                if is_new && version > 1 {
                    expected.push((key, version - 1));
                }
            }
        }
        is_over.store(true, Ordering::Release);
        expected.extend((0..FEW_KEYS).map(|key| (key, 40_000)));
        let popped: Vec<_> = poppers.into_iter().flat_map(|popper| popper.join().unwrap()).collect();
        (expected, popped)
    });
    expected.sort_unstable();
    popped.sort_unstable();
    assert!(popped == expected, "{} popped, {} gone", popped.len(), expected.len());
    assert!(tree.is_empty());
    tree.validate().unwrap();
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes.try_into().unwrap())
}

/// Of all threads that make a value for a key concurrently one wins, and all get its value.
#[test]
fn all_threads_get_the_value_that_was_stored() {
    let tree = tree("lz4", 2);
    let found: Vec<Vec<Vec<u8>>> = std::thread::scope(|s| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let tree = &tree;
                s.spawn(move || {
                    let get = |n: u64| tree.get_or_insert_with(&n.to_be_bytes(), || format!("{n} by {thread}"));
                    (0..KEYS).map(|n| get(n).unwrap()).collect()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for n in 0..KEYS {
        let stored = tree.get(&n.to_be_bytes()).unwrap().unwrap();
        for thread in &found {
            assert_eq!(thread[n as usize], stored, "{n}");
        }
    }
    assert_eq!(tree.len() as u64, KEYS);
}

/// A record that is written after `keep` saw it is not removed on account of its old value.
#[test]
fn retain_removes_only_what_it_was_shown() {
    for _ in 0..20 {
        let tree = tree("lz4", 1);
        for n in 0..KEYS {
            tree.insert(&n.to_be_bytes(), "old").unwrap();
        }
        std::thread::scope(|s| {
            s.spawn(|| {
                for n in (0..KEYS).rev() {
                    tree.insert(&n.to_be_bytes(), "new").unwrap();
                }
            });
            tree.retain(|_, value| value != b"old").unwrap();
        });
        // Every removed record was inserted again by its write.
        assert_eq!(tree.len() as u64, KEYS);
        assert!(records(&tree).iter().all(|(_, value)| value == b"new"));
    }
}
