//! Which operations are run, on which keys.

use super::*;
use crate::bench::{Law, Operation, Pin, Ratios, Ycsb};

/// PiBench repeats 256 operations drawn once; with 1% of inserts it never inserts.
#[test]
fn one_percent_of_inserts_are_run() {
    let mut options = options(1000, 50_000, 2);
    options.ratios = Ratios {
        read: 0.99,
        insert: 0.01,
        ..Ratios::NONE
    };
    let outcome = outcome(&options);
    let inserts = outcome.of(Operation::Insert);
    // Binomial: 500 expected, deviation 22.
    assert!((400..600).contains(&inserts.completed), "{inserts:?}");
    assert_eq!(inserts.succeeded, inserts.completed);
    assert_eq!(outcome.total().completed, 50_000);
}

/// PiBench's threads insert the same ids.
#[test]
fn inserts_of_two_threads_all_succeed() {
    let mut options = options(101, 20_001, 2);
    options.ratios = Ratios {
        insert: 1.0,
        ..Ratios::NONE
    };
    let inserts = outcome(&options).of(Operation::Insert);
    assert_eq!((inserts.completed, inserts.succeeded), (20_001, 20_001));
}

/// PiBench writes the prefix into the buffer of the first thread only.
#[test]
fn the_prefix_is_on_every_key_of_every_thread() {
    let mut options = options(1001, 5000, 3);
    (options.key_prefix, options.key_size) = ("user/".into(), 12);
    options.ratios = Ratios {
        read: 0.2,
        insert: 0.2,
        update: 0.2,
        remove: 0.2,
        scan: 0.2,
        ..Ratios::NONE
    };
    let (index, report) = run_on(Faulty::default(), &options);
    report.unwrap();
    let keys = index.keys.lock().unwrap();
    assert!(keys.len() >= 6, "three threads loaded and three ran: {}", keys.len());
    for key in keys.values().flatten() {
        assert!(
            key.starts_with(b"user/\0\0\0\0") && key.len() == 17,
            "{}",
            key.escape_ascii()
        );
    }
}

/// PiBench loads the ids 0 to N - 1 and draws 1 to N.
#[test]
fn every_read_finds_its_key() {
    let mut options = options(3, 10_000, 2);
    for law in [Law::Uniform, Law::SelfSimilar, Law::Zipfian, Law::Latest, Law::HotSet] {
        options.law = law;
        let reads = outcome(&options).of(Operation::Read);
        assert_eq!((reads.completed, reads.succeeded), (10_000, 10_000), "{law:?}");
    }
}

/// And with inserts going on, on several threads.
#[test]
fn reads_concurrent_with_inserts_find_their_keys() {
    let mut options = options(50, 40_000, 3);
    options.ratios = Ratios {
        read: 0.5,
        insert: 0.5,
        ..Ratios::NONE
    };
    for law in [Law::Uniform, Law::Latest] {
        options.law = law;
        let total = outcome(&options).total();
        assert_eq!((total.completed, total.succeeded), (40_000, 40_000), "{law:?}");
    }
}

/// Each YCSB workload on each index of ours, with pinned threads and background compaction: nothing fails, nothing is
/// lost.
#[test]
fn ycsb_runs_on_every_index() {
    for name in [
        "leafpress:zstd:1",
        "btreemap",
        "skiplist",
        "treeindex",
        "masstree",
        "hashmap",
    ] {
        for workload in Ycsb::ALL {
            let mut options = options(500, 4001, 2);
            options.input = name.parse().unwrap();
            options.tree = "background_threads=1".parse().unwrap();
            options.pin = Pin::Spread;
            options.value_size = 100;
            options.set_ycsb(workload);
            if workload == Ycsb::E && name == "hashmap" {
                assert!(options.validate().is_err());
                continue;
            }
            let report = run(&options, None, &AtomicBool::new(false), &mut |_| {}).unwrap();
            let outcome = &report.outcomes[0];
            let total = outcome.total();
            assert_eq!(total.completed, 4001, "{name} {workload}");
            // `SkipMap::insert` takes the old entry out before the new one is in: a concurrent read or update misses
            // it.
            if name != "skiplist"
                || outcome.of(Operation::Update).completed + outcome.of(Operation::ReadModifyWrite).completed == 0
            {
                assert_eq!(total.succeeded, 4001, "{name} {workload}");
            }
            assert_eq!(
                outcome.scan_errors.scans, 0,
                "{name} {workload}: {:?}",
                outcome.scan_errors
            );
        }
    }
}
