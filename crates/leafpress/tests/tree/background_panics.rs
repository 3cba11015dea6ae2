//! Engines that panic in the background threads of a tree: no call waits for ever, no record is lost, the statistics
//! count the panics, and `settle` fails once a thread has ended.

#[path = "../support/panicking.rs"]
mod panicking;

use std::sync::Arc;

use leafpress::{DictionaryChoice, Tree, TreeError, TreeStats};
use panicking::{Panicking, block, in_time};

fn tree(thread: &'static str, panics: u64) -> Tree {
    Tree::builder()
        .engine(Arc::new(Panicking::new("zstd:1", thread, panics)))
        .dictionary(DictionaryChoice::Auto)
        .background_threads(2)
        .landing_compaction_pct(10)
        .landing_bytes(2048)
        .build()
        .unwrap()
}

fn fill_tree(tree: &Tree, records: std::ops::Range<u32>) {
    for n in records {
        tree.insert(&n.to_be_bytes(), &block(n)[..100]).unwrap();
    }
}

fn holds(tree: &Tree, records: std::ops::Range<u32>) {
    tree.validate().unwrap();
    for n in records {
        assert_eq!(tree.get(&n.to_be_bytes()).unwrap().unwrap(), &block(n)[..100]);
    }
}

#[test]
fn a_tree_goes_on_compacting_after_panics() {
    let tree = tree("leafpress-bg", 3);
    let mut records = 0;
    // On a busy machine writers may compact nearly all leaves themselves.
    let mut fill_until = |enough: &dyn Fn(&TreeStats) -> bool| loop {
        fill_tree(&tree, records..records + 5000);
        records += 5000;
        in_time(|| tree.settle()).unwrap();
        let stats = tree.stats();
        if enough(&stats) {
            break stats;
        }
        assert!(records < 1_000_000, "{stats:?}");
    };
    let before = fill_until(&|stats| stats.bg_panics >= 3);
    fill_until(&|stats| stats.bg_compactions > before.bg_compactions);
    let stats = tree.stats();
    assert_eq!((stats.bg_panics, stats.bg_threads_ended), (3, 0), "{stats:?}");
    holds(&tree, 0..records);
}

#[test]
fn a_tree_reports_ended_compaction_threads() {
    let tree = tree("leafpress-bg", u64::MAX);
    let mut records = 0;
    while tree.stats().bg_threads_ended < 2 {
        assert!(records < 1_000_000, "{:?}", tree.stats());
        fill_tree(&tree, records..records + 1000);
        records += 1000;
    }
    let settled = in_time(|| tree.settle());
    assert!(matches!(&settled, Err(TreeError::Background { reason }) if reason.contains("a bug of the engine")));
    fill_tree(&tree, records..records + 1000);
    assert!(in_time(|| tree.settle()).is_err());
    holds(&tree, 0..records + 1000);
}

#[test]
fn a_tree_trains_and_tidies_after_panics() {
    let tree = tree("leafpress-upkeep", 2);
    fill_tree(&tree, 0..3000);
    in_time(|| tree.settle()).unwrap();
    assert!(tree.stats().bg_panics > 0, "{:?}", tree.stats());
    fill_tree(&tree, 3000..60_000);
    in_time(|| tree.settle()).unwrap();
    let stats = tree.stats();
    assert_eq!((stats.bg_panics, stats.bg_threads_ended), (2, 0));
    assert!(stats.dictionary_id > 0, "{stats:?}");
    holds(&tree, 0..60_000);
}
