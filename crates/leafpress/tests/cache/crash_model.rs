//! A cache that is killed repeatedly and recovered by the next: each finds the values inserted last, by any of them.

use std::cell::Cell;
use std::path::Path;

use leafpress::Cache;
use leafpress::cache::Disk;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tempfile::TempDir;

use crate::model::{Checked, Op, op};

const DISK_BYTES: u64 = 4 << 20;
/// The table of stale epochs first, and then the files it describes: a log only grows, and checksums detect what was
/// overwritten since.
const FILES: [&str; 3] = ["cache.epochs", "cache.runs", "cache"];

/// How a cache ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// It is dropped, which leaves the same files as a killed process after its pending work.
    Dropped,
    /// The files are copied at one moment, whatever is in progress in the background.
    Killed,
    Closed,
}

#[derive(Debug, Clone)]
struct Life {
    memory_mb: u64,
    ops: Vec<Op>,
    end: End,
}

fn life() -> impl Strategy<Value = Life> {
    let end = prop_oneof![2 => Just(End::Dropped), 3 => Just(End::Killed), 2 => Just(End::Closed)];
    // Many spills, so that runs are merged.
    let op = prop_oneof![4 => op(), 1 => Just(Op::Spill)];
    let memory_mb = prop_oneof![3 => Just(4_u64), 1 => 5_u64..20];
    (memory_mb, vec(op, 1..50), end).prop_map(|(memory_mb, ops, end)| Life { memory_mb, ops, end })
}

fn open(directory: &Path, memory_mb: u64, checked: &Checked) -> Cache {
    let disk = Disk::file(directory.join("cache"), DISK_BYTES).recover_after_crash(true);
    checked.build(Cache::builder().memory(memory_mb << 20).disk(disk))
}

/// Copies the current files to a new directory.
fn copied(directory: &Path) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for name in FILES {
        std::fs::copy(directory.join(name), copy.path().join(name)).unwrap();
    }
    copy
}

/// Runs the lives one after the other; returns how many records were recovered after those that were not closed.
fn live(lives: &[Life]) -> usize {
    let (mut checked, mut directory) = (Checked::new(None), tempfile::tempdir().unwrap());
    let (mut there, mut was_killed) = (0, false);
    for life in lives {
        let cache = open(directory.path(), life.memory_mb, &checked);
        let found = checked.look(&cache);
        there += if was_killed { found } else { 0 };
        life.ops.iter().for_each(|op| checked.step(&cache, op));
        was_killed = life.end != End::Closed;
        match life.end {
            End::Dropped => drop(cache),
            End::Killed => directory = copied(directory.path()),
            End::Closed => cache.close().unwrap(),
        }
    }
    let cache = open(directory.path(), 4, &checked);
    checked.look(&cache);
    there
}

#[test]
fn what_a_killed_cache_leaves_is_what_was_put_in_last() {
    let config = ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let there = Cell::new(0);
    let run = TestRunner::new(config).run(&vec(life(), 2..7), |lives| {
        there.set(there.get() + live(&lives));
        Ok(())
    });
    run.unwrap();
    assert!(there.get() > 1000, "{} records were found in all", there.get());
}
