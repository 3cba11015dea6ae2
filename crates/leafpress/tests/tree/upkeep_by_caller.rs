//! A tree with upkeep by the caller.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::engine::RunLength;
use leafpress::codec::{CodecError, Engine};
use leafpress::{Codec, Dictionary, DictionaryChoice, Tree, TreeError, Upkeep};

fn record(n: u32) -> (Vec<u8>, Vec<u8>) {
    let value = format!(
        "Package: lib{n}\nVersion: {}.{}\nSection: libs\nMaintainer: someone{}@example.org\nSize: {}\n",
        n % 17,
        n % 5,
        n.wrapping_mul(2_654_435_761) % 1000,
        n * 37
    );
    (n.to_be_bytes().to_vec(), value.into_bytes())
}

fn filled(codec: &str, records: u32) -> Tree {
    let tree = Tree::builder()
        .codec(codec.parse().unwrap())
        .upkeep(Upkeep::Caller)
        .build()
        .unwrap();
    for n in 0..records {
        let (key, value) = record(n);
        tree.insert(&key, &value).unwrap();
    }
    tree
}

/// Runs the upkeep until a running training and its consequences are complete.
fn run_out(tree: &Tree) {
    let end = Instant::now() + Duration::from_secs(600);
    while tree.run_upkeep(Duration::from_micros(200)).unwrap() || tree.is_training() {
        assert!(Instant::now() < end, "the upkeep does not end");
        if tree.is_training() {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

fn check(tree: &Tree, records: u32) {
    tree.validate().unwrap();
    assert_eq!(tree.len(), records as usize);
    let mut expected = (0..records).map(record);
    for found in tree {
        assert_eq!(Some(found.unwrap()), expected.next());
    }
    assert_eq!(expected.next(), None);
}

#[test]
fn a_dictionary_is_trained_and_leaves_are_compressed_with_it() {
    for codec in ["lz4", "zstd:3"] {
        let tree = filled(codec, 30_000);
        let before = tree.stats();
        assert_eq!(before.dictionary_id, 0, "no upkeep was run");
        run_out(&tree);
        let after = tree.stats();
        assert_ne!(after.dictionary_id, 0);
        assert!(
            after.bytes_held * 10 < before.bytes_held * 9,
            "{codec}: {before:?} {after:?}"
        );
        check(&tree, 30_000);
        // A requested training finds nothing better.
        assert!(tree.request_training());
        run_out(&tree);
        check(&tree, 30_000);
        assert!(!tree.run_upkeep(Duration::from_secs(1)).unwrap());
    }
}

#[test]
fn settling_does_all_that_is_due() {
    let tree = filled("zstd:1", 20_000);
    tree.settle().unwrap();
    let stats = tree.stats();
    assert_ne!(stats.dictionary_id, 0);
    assert_eq!(stats.landing_buffers, 0);
    assert!(!tree.is_training());
    check(&tree, 20_000);
}

#[test]
fn a_requested_compaction_follows_a_training() {
    let tree = filled("zstd:1", 20_000);
    assert!(tree.request_compaction() && tree.is_compacting());
    let mut written = 20_000;
    while tree.is_compacting() {
        // Writers go on meanwhile.
        let (key, value) = record(written);
        tree.insert(&key, &value).unwrap();
        written += 1;
        tree.run_upkeep(Duration::from_millis(2)).unwrap();
    }
    assert_ne!(tree.stats().dictionary_id, 0, "it was trained before");
    run_out(&tree);
    check(&tree, written);
    for n in (0..written).step_by(20) {
        let (key, value) = record(n);
        tree.insert(&key, &value).unwrap();
    }
    assert!(tree.stats().landing_buffers > 0);
    // Without the wait for idle writers.
    assert!(tree.request_compaction());
    run_out(&tree);
    assert_eq!(tree.stats().landing_buffers, 0);
    assert!(!tree.is_compacting());
    check(&tree, written);
}

#[test]
fn threads_compact_on_request_too() {
    let tree = Tree::builder().codec("lz4".parse().unwrap()).build().unwrap();
    for n in 0..20_000 {
        let (key, value) = record(n);
        tree.insert(&key, &value).unwrap();
    }
    assert!(tree.request_compaction());
    let end = Instant::now() + Duration::from_secs(600);
    while tree.is_compacting() {
        assert!(Instant::now() < end, "{:?}", tree.stats());
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(tree.stats().landing_buffers, 0);
    check(&tree, 20_000);
}

#[test]
fn landing_buffers_are_compacted_when_writers_are_idle() {
    let tree = filled("lz4", 20_000);
    run_out(&tree);
    for n in (0..20_000).step_by(20) {
        let (key, value) = record(n);
        tree.insert(&key, &value).unwrap();
    }
    assert!(tree.stats().landing_buffers > 0);
    let end = Instant::now() + Duration::from_secs(600);
    while tree.stats().landing_buffers > 0 {
        assert!(Instant::now() < end, "{:?}", tree.stats());
        std::thread::sleep(Duration::from_millis(20));
        run_out(&tree);
    }
    check(&tree, 20_000);
}

#[test]
fn a_training_that_runs_does_not_hold_up_the_end() {
    // On a busy machine any single drop may be delayed; a drop that waits for the training is slow each time.
    let mut took = Vec::new();
    while took.iter().all(|drop| *drop >= Duration::from_millis(500)) {
        assert!(took.len() < 10, "{took:?}");
        let tree = filled("zstd:19", 60_000);
        while !tree.is_training() {
            let more = tree.run_upkeep(Duration::from_micros(500)).unwrap();
            assert!(more || tree.is_training(), "a training is due");
        }
        let begin = Instant::now();
        drop(tree);
        took.push(begin.elapsed());
    }
}

#[test]
fn what_is_replaced_is_freed_at_once() {
    let tree = filled("lz4", 10_000);
    for n in 0..10_000 {
        let (key, mut value) = record(n);
        value.push(b'!');
        tree.insert(&key, &value).unwrap();
        if n % 1000 == 0 {
            assert_eq!(tree.stats().retired_bytes, 0);
        }
    }
    for n in 0..10_000_u32 {
        tree.remove(&n.to_be_bytes()).unwrap();
    }
    assert_eq!(tree.stats().retired_bytes, 0);
}

#[test]
fn what_cannot_be_tended_in_steps_is_refused() {
    let refused = |builder: leafpress::TreeBuilder, name: &str| match builder.upkeep(Upkeep::Caller).build() {
        Err(TreeError::Option { option, .. }) => assert_eq!(option, name),
        other => panic!("{other:?}"),
    };
    refused(Tree::builder().background_threads(1), "background_threads");
    refused(Tree::builder().codec("auto".parse().unwrap()), "upkeep");
    let lz4 = Tree::builder().codec("lz4".parse().unwrap());
    let tree = lz4.dictionary(DictionaryChoice::Off).frame_bytes(1);
    let tree = tree.upkeep(Upkeep::Caller).build().unwrap();
    assert!(!tree.request_training());
    let plain = Tree::builder().codec(Codec::None).build().unwrap();
    assert!(!plain.request_training());
    assert!(!plain.run_upkeep(Duration::MAX).unwrap(), "its upkeep runs on threads");
}

/// An engine that panics on the training's thread while enabled.
#[derive(Debug, Default)]
struct PanicsInTraining {
    engine: RunLength,
    panics: AtomicBool,
}

impl Engine for PanicsInTraining {
    fn codec(&self) -> Codec {
        self.engine.codec()
    }

    fn compress(&self, raw: &[u8], dictionary: Option<&Dictionary>, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        let is_training = leafpress_base::sync::threads::current_name() == "leafpress-train";
        assert!(
            !is_training || !self.panics.load(Ordering::SeqCst),
            "requested by the test"
        );
        self.engine.compress(raw, dictionary, out)
    }

    fn decompress(&self, block: &[u8], dictionary: Option<&Dictionary>, raw: &mut [u8]) -> Result<(), CodecError> {
        self.engine.decompress(block, dictionary, raw)
    }
}

#[test]
fn a_panic_in_training_is_reported_and_the_tree_stays_usable() {
    let engine = Arc::new(PanicsInTraining::default());
    engine.panics.store(true, Ordering::SeqCst);
    let builder = Tree::builder().engine(engine.clone()).upkeep(Upkeep::Caller);
    let tree = builder.build().unwrap();
    for n in 0..5000 {
        let (key, value) = record(n);
        tree.insert(&key, &value).unwrap();
    }
    run_out(&tree);
    assert_eq!(tree.stats().bg_panics, 1);
    let limits = tree.stats().limits_reason;
    check(&tree, 5000);
    engine.panics.store(false, Ordering::SeqCst);
    assert!(tree.request_training());
    run_out(&tree);
    assert_eq!(tree.stats().bg_panics, 1);
    assert_ne!(tree.stats().limits_reason, limits, "lengths were tried");
    check(&tree, 5000);
}

#[test]
fn an_error_of_a_step_is_returned_and_other_due_work_is_done() {
    let engine = Arc::new(RunLength::default());
    let builder = Tree::builder().engine(engine.clone()).upkeep(Upkeep::Caller);
    let tree = builder.build().unwrap();
    for n in 0..5000 {
        let (key, value) = record(n);
        tree.insert(&key, &value).unwrap();
    }
    engine.faults.fail_compress(0);
    assert!(tree.request_training());
    let end = Instant::now() + Duration::from_secs(600);
    let mut errors = 0;
    loop {
        match tree.run_upkeep(Duration::ZERO) {
            Ok(more) if !more && !tree.is_training() => break,
            Ok(_) => {}
            Err(error) => {
                assert!(matches!(error, TreeError::Codec(_)), "{error}");
                errors += 1;
            }
        }
        assert!(Instant::now() < end);
    }
    assert!(errors > 0);
    engine.faults.clear();
    run_out(&tree);
    check(&tree, 5000);
}

#[test]
fn bytes_held_is_returned_without_a_visit_of_all_leaves() {
    let tree = filled("lz4", 5000);
    assert_eq!(tree.bytes_held(), tree.stats().bytes_held);
    run_out(&tree);
    assert_eq!(tree.bytes_held(), tree.stats().bytes_held);
}
