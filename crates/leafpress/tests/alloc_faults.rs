//! Memory that runs out: the operation reports it, the record is as it was, the tree stays whole and works on.
//!
//! Node memory must come from the program's allocator for this: `cargo test -p leafpress --no-default-features`.
#![cfg(not(feature = "node-heap"))]

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;

use leafpress::tree::{DictionaryChoice, Error};
use leafpress::{Codec, Tree};
use proptest::collection::vec;
use proptest::prelude::*;
use support::model::same_contents;
use support::strategies::settings;

thread_local! {
    /// Node allocations of this thread that succeed before all fail; negative: none fails.
    static LEFT: Cell<i64> = const { Cell::new(-1) };
    static REFUSED: Cell<u64> = const { Cell::new(0) };
}

struct Failing;

/// Nodes are the allocations aligned to a cache line; byte strings and the rest of the program are not refused.
const NODE_ALIGN: usize = 64;

// SAFETY: everything is passed to the system's allocator; refusing is allowed.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() == NODE_ALIGN {
            let left = LEFT.get();
            if left == 0 {
                REFUSED.set(REFUSED.get() + 1);
                return std::ptr::null_mut();
            }
            LEFT.set(left - i64::from(left > 0));
        }
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `alloc`, which is the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Failing = Failing;

/// Runs `work` with node allocations failing from number `after` on.
fn starved<T>(after: i64, work: impl FnOnce() -> T) -> T {
    LEFT.set(after);
    let result = work();
    LEFT.set(-1);
    result
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
fn a_put_without_memory_leaves_the_old_record() {
    let tree = tree(0);
    for n in 0..200u16 {
        tree.insert(&n.to_be_bytes(), &[1; 60]).unwrap();
    }
    let before = REFUSED.get();
    for n in 0..200u16 {
        match starved(0, || tree.insert(&n.to_be_bytes(), &[2; 90])) {
            Err(Error::OutOfMemory { bytes }) => assert!(bytes > 0),
            other => panic!("{n}: {other:?}"),
        }
        assert_eq!(tree.get(&n.to_be_bytes()).unwrap(), Some(vec![1; 60]));
    }
    assert!(REFUSED.get() >= before + 200);
    tree.validate().unwrap();
    assert!(!tree.insert(&7u16.to_be_bytes(), &[2; 90]).unwrap());
    assert_eq!(tree.get(&7u16.to_be_bytes()).unwrap(), Some(vec![2; 90]));
}

#[test]
fn a_large_value_without_memory_leaves_the_old_record() {
    let tree = tree(512);
    tree.insert(b"k", b"old").unwrap();
    for after in 0..2 {
        // Refused at the value's block, or where the leaf takes it in: done, or not at all.
        match starved(after, || tree.insert(b"k", &[3; 50_000])) {
            Ok(new) => assert!(!new),
            Err(error) => {
                assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
                assert_eq!(tree.get(b"k").unwrap().as_deref(), Some(b"old".as_slice()));
            }
        }
    }
    tree.insert(b"k", b"new").unwrap();
    tree.compact().unwrap();
    assert_eq!(
        tree.stats().large_value_bytes,
        0,
        "a block that was not taken in is freed"
    );
    tree.validate().unwrap();
}

#[test]
fn a_compaction_of_a_compact_tree_needs_no_node_memory() {
    let tree = tree(256);
    for n in 0..300u16 {
        tree.insert(&n.to_be_bytes(), &[1; 60]).unwrap();
    }
    tree.compact().unwrap();
    // Leaves would be moved: those that cannot stay where they are, which is no error.
    let before = REFUSED.get();
    starved(0, || tree.compact()).unwrap();
    assert!(REFUSED.get() > before, "a leaf was to be moved");
    tree.validate().unwrap();
}

#[test]
fn reads_need_no_node_memory() {
    let tree = tree(256);
    for n in 0..300u16 {
        tree.insert(&n.to_be_bytes(), &n.to_be_bytes().repeat(30)).unwrap();
    }
    starved(0, || {
        for n in 0..300u16 {
            assert_eq!(tree.get(&n.to_be_bytes()).unwrap(), Some(n.to_be_bytes().repeat(30)));
        }
        assert_eq!(tree.range(..).filter(|record| record.is_ok()).count(), 300);
    });
}

/// Whichever node's allocation is the first to fail: what came before is in the tree, in order, and nothing else.
#[test]
fn records_in_key_order_without_memory_are_taken_up_to_one() {
    let record = |n: u16| (n.to_be_bytes(), vec![n as u8; if n % 50 == 7 { 3000 } else { 60 }]);
    let mut taken = 0;
    for after in (0..60).chain([100, 200, 400]) {
        for there in [0, 300] {
            let tree = tree(256);
            for n in 0..there {
                let (key, value) = record(n);
                tree.insert(&key, &value).unwrap();
            }
            let extended = starved(after, || tree.extend((there..3000).map(record)));
            let len = tree.len() as u16;
            match extended {
                Ok(new) => assert_eq!(new, u64::from(3000 - there)),
                Err(error) => assert!(matches!(error, Error::OutOfMemory { .. }), "{error}"),
            }
            assert!(len >= there);
            taken = taken.max(len);
            tree.validate().unwrap();
            let map = (0..len).map(|n| (record(n).0.to_vec(), record(n).1)).collect();
            same_contents(&tree, &map, "without memory");
            tree.extend((0..3000).map(record)).unwrap();
            tree.validate().unwrap();
        }
        let built = starved(after, || {
            let builder = Tree::builder().leaf_bytes(1024).dictionary(DictionaryChoice::Off);
            builder.from_sorted((0..3000).map(record))
        });
        assert!(matches!(built, Ok(_) | Err(Error::OutOfMemory { .. })));
    }
    assert_eq!(taken, 3000, "with enough of it");
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Put(u16, u8, u16),
    Remove(u16),
    Compact,
    Clear,
}

proptest! {
    #![proptest_config(settings(64))]

    /// Whichever node allocation of an operation fails: an operation that reports it changed nothing, one that reports
    /// success is done.
    #[test]
    fn an_operation_without_memory_changes_nothing(
        landing_bytes in prop_oneof![Just(0usize), Just(128), Just(512)],
        steps in vec((
            prop_oneof![
                10 => (0u16..200, any::<u8>(), prop_oneof![9 => Just(60u16), 1 => Just(3000)])
                    .prop_map(|(n, v, len)| Step::Put(n, v, len)),
                8 => (0u16..200).prop_map(Step::Remove),
                1 => Just(Step::Compact),
                1 => Just(Step::Clear),
            ],
            prop_oneof![1 => Just(-1i64), 2 => 0i64..5],
        ), 1..250),
    ) {
        let tree = tree(landing_bytes);
        let mut map = BTreeMap::new();
        for n in 0..100u16 {
            tree.insert(&n.to_be_bytes(), &[n as u8; 60]).unwrap();
            map.insert(n.to_be_bytes().to_vec(), vec![n as u8; 60]);
        }
        for (i, &(step, after)) in steps.iter().enumerate() {
            match step {
                Step::Put(n, v, len) => {
                    let value = vec![v; len.into()];
                    if let Ok(new) = starved(after, || tree.insert(&n.to_be_bytes(), &value)) {
                        assert_eq!(new, map.insert(n.to_be_bytes().to_vec(), value).is_none());
                    }
                }
                Step::Remove(n) => {
                    if let Ok(present) = starved(after, || tree.remove(&n.to_be_bytes())) {
                        assert_eq!(present, map.remove(n.to_be_bytes().as_slice()).is_some());
                    }
                }
                Step::Compact => drop(starved(after, || tree.compact())),
                Step::Clear => {
                    // A clear may fail part way: shards are cleared one by one. Here there is one.
                    if starved(after, || tree.clear()).is_ok() {
                        map.clear();
                    }
                }
            }
            if i % 32 == 0 {
                tree.validate().unwrap();
            }
        }
        tree.validate().unwrap();
        same_contents(&tree, &map, "with memory again");
        tree.compact().unwrap();
        tree.validate().unwrap();
        same_contents(&tree, &map, "after a compaction");
    }
}
