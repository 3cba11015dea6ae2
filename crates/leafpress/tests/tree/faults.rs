//! A codec that fails: the error is reported, the record is unchanged, and the tree stays valid and usable.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::engine::RunLength;
use crate::support::model::same_contents;
use crate::support::strategies::settings;
use leafpress::codec::CodecError;
use leafpress::tree::{DictionaryChoice, TreeError};
use leafpress::{Layout, Tree, TreeBuilder};
use proptest::collection::vec;
use proptest::prelude::*;

/// Frames of several records: values are inserted uncompressed into the landing buffer, and compressed by the
/// compaction.
fn frames() -> TreeBuilder {
    Tree::builder().frame_bytes(512)
}

fn faulty(builder: TreeBuilder) -> (Arc<RunLength>, Tree) {
    let engine = Arc::new(RunLength::default());
    let tree = builder
        .engine(engine.clone())
        .dictionary(DictionaryChoice::Off)
        .build()
        .unwrap();
    (engine, tree)
}

fn is_the_fault<T: std::fmt::Debug>(result: Result<T, TreeError>) {
    match result {
        Err(TreeError::Codec(CodecError::Failed { codec: "rle", .. })) => {}
        other => panic!("{other:?}"),
    }
}

/// Values of repeated bytes: frames are compressible, so that they are stored compressed.
fn value(n: u32) -> Vec<u8> {
    vec![n as u8; 100]
}

fn fill(tree: &Tree, keys: u32) {
    for n in 0..keys {
        tree.insert(&n.to_be_bytes(), &value(n)).unwrap();
    }
    tree.compact().unwrap();
}

#[test]
fn a_read_that_cannot_decode_reports_it_and_the_next_one_succeeds() {
    let (engine, tree) = faulty(frames());
    fill(&tree, 1000);
    engine.faults.fail_decompress(0);
    is_the_fault(tree.get(&5u32.to_be_bytes()));
    is_the_fault(tree.get_into(&5u32.to_be_bytes(), &mut Vec::new()));
    is_the_fault(tree.get_with(&5u32.to_be_bytes(), <[u8]>::len));
    is_the_fault(tree.range(..).collect::<Result<Vec<_>, _>>());
    is_the_fault(tree.range(..).rev().collect::<Result<Vec<_>, _>>());
    engine.faults.clear();
    assert_eq!(tree.get(&5u32.to_be_bytes()).unwrap(), Some(value(5)));
    assert_eq!(tree.range(..).count(), 1000);
    tree.validate().unwrap();
}

#[test]
fn a_put_that_cannot_press_leaves_the_old_record() {
    let (engine, tree) = faulty(frames().landing_bytes(0));
    fill(&tree, 1000);
    for n in 0..1000u32 {
        engine.faults.fail_compress(0);
        is_the_fault(tree.insert(&n.to_be_bytes(), b"new"));
        is_the_fault(tree.replace(&n.to_be_bytes(), b"new"));
        is_the_fault(tree.insert_if_absent(&(n + 5000).to_be_bytes(), &value(n)));
        engine.faults.clear();
        assert_eq!(tree.get(&n.to_be_bytes()).unwrap(), Some(value(n)), "{n}");
        assert_eq!(tree.get(&(n + 5000).to_be_bytes()).unwrap(), None, "{n}");
    }
    assert_eq!(tree.len(), 1000);
    tree.validate().unwrap();
    assert!(!tree.insert(&7u32.to_be_bytes(), b"new").unwrap());
    assert_eq!(
        tree.get(&7u32.to_be_bytes()).unwrap().as_deref(),
        Some(b"new".as_slice())
    );
    assert!(tree.stats().fg_sync_compaction_errors > 0);
}

#[test]
fn values_of_one_record_frames_are_compressed_before_they_are_appended() {
    for landing_bytes in [0, 512] {
        let (engine, tree) = faulty(Tree::builder().frame_bytes(1).landing_bytes(landing_bytes));
        fill(&tree, 300);
        for n in 0..300u32 {
            engine.faults.fail_compress(0);
            is_the_fault(tree.insert(&n.to_be_bytes(), &value(n + 1)));
            engine.faults.clear();
            assert_eq!(tree.get(&n.to_be_bytes()).unwrap(), Some(value(n)), "{n}");
        }
        assert!(!tree.insert(&7u32.to_be_bytes(), b"new").unwrap());
        tree.validate().unwrap();
    }
}

#[test]
fn a_large_value_that_cannot_be_pressed_leaves_the_old_one() {
    let (engine, tree) = faulty(frames());
    let old = vec![1; 10_000];
    tree.insert(b"large", &old).unwrap();
    tree.insert(b"small", b"old").unwrap();
    engine.faults.fail_compress(0);
    is_the_fault(tree.insert(b"large", &vec![2; 20_000]));
    is_the_fault(tree.insert(b"small", &vec![2; 20_000]));
    is_the_fault(tree.insert(b"fresh", &vec![2; 20_000]));
    engine.faults.clear();
    assert!(tree.get(b"large").unwrap().unwrap() == old);
    assert_eq!(tree.get(b"small").unwrap().as_deref(), Some(b"old".as_slice()));
    assert_eq!(tree.len(), 2);
    engine.faults.fail_decompress(0);
    is_the_fault(tree.get(b"large"));
    engine.faults.clear();
    assert!(tree.insert(b"fresh", &vec![2; 20_000]).unwrap());
    tree.validate().unwrap();
}

#[test]
fn a_failed_compaction_keeps_what_was_in_the_landing_buffers() {
    let (engine, tree) = faulty(frames().landing_bytes(4096));
    fill(&tree, 500);
    for n in 0..20u32 {
        tree.insert(&(n * 25).to_be_bytes(), b"landed").unwrap();
    }
    engine.faults.fail_compress(0);
    is_the_fault(tree.compact());
    tree.validate().unwrap();
    engine.faults.clear();
    for n in 0..500u32 {
        let expected = if n % 25 == 0 { b"landed".to_vec() } else { value(n) };
        assert_eq!(tree.get(&n.to_be_bytes()).unwrap(), Some(expected), "{n}");
    }
    tree.compact().unwrap();
    assert_eq!(tree.stats().landing_buffers, 0);
    tree.validate().unwrap();
}

#[test]
fn a_leaf_that_cannot_be_compacted_does_not_keep_others_from_it() {
    let (engine, tree) = faulty(frames().landing_bytes(4096));
    fill(&tree, 2000);
    for n in 0..40u32 {
        tree.insert(&(n * 50).to_be_bytes(), b"landed").unwrap();
    }
    let before = tree.stats().landing_buffers;
    assert!(before > 4, "{before} buffers");
    engine.faults.fail_one_compress(1);
    is_the_fault(tree.compact());
    assert_eq!(tree.stats().landing_buffers, 1);
    tree.validate().unwrap();
    for n in 0..40u32 {
        assert_eq!(
            tree.get(&(n * 50).to_be_bytes()).unwrap(),
            Some(b"landed".to_vec()),
            "{n}"
        );
    }
}

#[test]
fn background_failures_are_counted_and_lose_nothing() {
    let builder = frames()
        .landing_bytes(2048)
        .background_threads(2)
        .landing_compaction_pct(10);
    let (engine, tree) = faulty(builder);
    fill(&tree, 500);
    tree.settle().unwrap();
    let mut expected: Vec<_> = (0..500u32).map(value).collect();
    engine.faults.fail_compress(0);
    // A background thread skips a leaf that a writer has latched: it gets as many attempts as it needs, with full
    // buffers that are not queued any more being emptied for it.
    for (round, n) in (0..500u32).cycle().enumerate() {
        if round % 500 == 499 {
            engine.faults.clear();
            tree.compact().unwrap();
            engine.faults.fail_compress(0);
        }
        if tree.insert(&n.to_be_bytes(), &[9; 60]).is_ok() {
            expected[n as usize] = vec![9; 60];
        }
        tree.settle().unwrap();
        if tree.stats().bg_errors > 0 {
            break;
        }
    }
    assert!(engine.faults.raised() > 0);
    engine.faults.clear();
    for (n, expected) in (0u32..).zip(&expected) {
        assert_eq!(tree.get(&n.to_be_bytes()).unwrap().as_ref(), Some(expected), "{n}");
    }
    tree.compact().unwrap();
    tree.validate().unwrap();
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Put(u16, u8),
    Large(u16, u8),
    Remove(u16),
    Compact,
    Get(u16),
    Scan,
}

/// Calls that succeed before one fails.
#[derive(Debug, Clone, Copy)]
enum Fault {
    None,
    Compress(u32),
    Decompress(u32),
}

fn steps() -> impl Strategy<Value = Vec<(Step, Fault)>> {
    let step = prop_oneof![
        10 => (0u16..200, any::<u8>()).prop_map(|(n, v)| Step::Put(n, v)),
        1 => (0u16..200, any::<u8>()).prop_map(|(n, v)| Step::Large(n, v)),
        6 => (0u16..200).prop_map(Step::Remove),
        1 => Just(Step::Compact),
        2 => (0u16..200).prop_map(Step::Get),
        1 => Just(Step::Scan),
    ];
    let fault = prop_oneof![
        2 => Just(Fault::None),
        1 => (0u32..5).prop_map(Fault::Compress),
        1 => (0u32..5).prop_map(Fault::Decompress),
    ];
    vec((step, fault), 1..250)
}

proptest! {
    #![proptest_config(settings(64))]

    /// Any engine call of any operation may fail: an operation that returns an error has changed nothing, one that
    /// returns success is done.
    #[test]
    fn an_operation_that_fails_changes_nothing(
        landing_bytes in prop_oneof![Just(0usize), Just(128), Just(512)],
        layout in prop_oneof![Just(Layout::Ordered), Just(Layout::Hashed { sub_pages: 4 })],
        frame_bytes in prop_oneof![Just(1usize), Just(256), Just(1024)],
        steps in steps(),
    ) {
        let builder = Tree::builder().leaf_bytes(1024).landing_bytes(landing_bytes);
        let builder = builder.layout(layout).frame_bytes(frame_bytes);
        let (engine, tree) = faulty(builder);
        let mut map = BTreeMap::new();
        for n in 0..100u16 {
            tree.insert(&n.to_be_bytes(), &[n as u8; 60]).unwrap();
            map.insert(n.to_be_bytes().to_vec(), vec![n as u8; 60]);
        }
        for (i, &(step, fault)) in steps.iter().enumerate() {
            match fault {
                Fault::None => {}
                Fault::Compress(after) => engine.faults.fail_compress(after),
                Fault::Decompress(after) => engine.faults.fail_decompress(after),
            }
            apply(&tree, &mut map, step);
            engine.faults.clear();
            if i % 32 == 0 {
                tree.validate().unwrap();
            }
        }
        tree.validate().unwrap();
        same_contents(&tree, &map, "with the faults cleared");
        tree.compact().unwrap();
        tree.validate().unwrap();
        same_contents(&tree, &map, "after a compaction");
    }
}

fn apply(tree: &Tree, map: &mut BTreeMap<Vec<u8>, Vec<u8>>, step: Step) {
    match step {
        Step::Put(n, v) => put(tree, map, n, vec![v; 60]),
        Step::Large(n, v) => put(tree, map, n, vec![v; 3000]),
        Step::Remove(n) => {
            if let Ok(present) = tree.remove(&n.to_be_bytes()) {
                assert_eq!(present, map.remove(n.to_be_bytes().as_slice()).is_some());
            }
        }
        Step::Compact => drop(tree.compact()),
        Step::Get(n) => {
            if let Ok(value) = tree.get(&n.to_be_bytes()) {
                assert_eq!(value.as_ref(), map.get(n.to_be_bytes().as_slice()));
            }
        }
        Step::Scan => {
            // Up to an error, a scan is a prefix of the expected records.
            for (got, expected) in tree.range(..).map_while(Result::ok).zip(map.iter()) {
                assert_eq!((&got.0, &got.1), expected);
            }
        }
    }
}

fn put(tree: &Tree, map: &mut BTreeMap<Vec<u8>, Vec<u8>>, n: u16, value: Vec<u8>) {
    if let Ok(new) = tree.insert(&n.to_be_bytes(), &value) {
        assert_eq!(new, map.insert(n.to_be_bytes().to_vec(), value).is_none());
    }
}
