//! Atomic updates: no thread's update is lost, whatever the tree does meanwhile.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use leafpress::tree::{MAX_KEY_BYTES, Update};
use leafpress::{Codec, Tree, TreeBuilder, TreeError};

const THREADS: u64 = 4;

/// Returns a counter of `len` bytes, all of which encode its value.
fn counter(n: u64, len: usize) -> Vec<u8> {
    n.to_le_bytes().into_iter().cycle().take(len).collect()
}

fn count(value: &[u8]) -> u64 {
    let n = u64::from_le_bytes(value[..8].try_into().unwrap());
    assert!(value == counter(n, value.len()), "a torn value");
    n
}

/// Threads increment a few counters, by both methods, while their leaves are compacted and neighbours are inserted and
/// removed.
fn counts_exactly(builder: TreeBuilder, len: usize, steps: u64) {
    let tree = builder.leaf_bytes(4096).build().unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let (tree, stop) = (&tree, &stop);
        scope.spawn(move || {
            for round in 0_u64.. {
                for n in 0..50_u64 {
                    let key = (n * 7 % 50 * 100 + 1).to_be_bytes();
                    match (n + round) % 3 {
                        0 => _ = tree.remove(&key).unwrap(),
                        _ => _ = tree.insert(&key, &counter(n, 100)).unwrap(),
                    }
                }
                tree.compact().unwrap();
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let counting: Vec<_> = (0..THREADS)
            .map(|id| {
                scope.spawn(move || {
                    for step in 0..steps {
                        let key = ((step + id) % 3 * 1000).to_be_bytes();
                        if step % 2 == 0 {
                            let add = |old: Option<&[u8]>| Update::Put(counter(old.map_or(0, count) + 1, len));
                            tree.update_with(&key, add).unwrap();
                            continue;
                        }
                        loop {
                            let old = tree.get(&key).unwrap();
                            let new = counter(old.as_deref().map_or(0, count) + 1, len);
                            if tree.compare_and_swap(&key, old.as_deref(), Some(&new)).unwrap() {
                                break;
                            }
                        }
                    }
                })
            })
            .collect();
        let counted: Vec<_> = counting.into_iter().map(thread::ScopedJoinHandle::join).collect();
        stop.store(true, Ordering::Relaxed);
        counted.into_iter().for_each(|joined| joined.unwrap());
    });
    let sum: u64 = (0..3_u64)
        .map(|n| tree.get_with(&(n * 1000).to_be_bytes(), count).unwrap().unwrap())
        .sum();
    assert_eq!(sum, THREADS * steps);
    tree.validate().unwrap();
}

#[test]
fn counters_that_many_threads_increment_reach_their_sum() {
    counts_exactly(Tree::builder().codec(Codec::None), 8, 2000);
    counts_exactly(Tree::builder().codec(Codec::Lz4 { acceleration: 1 }), 64, 2000);
    counts_exactly(
        Tree::builder().codec(Codec::Zstd { level: 1 }).landing_bytes(0),
        64,
        500,
    );
    counts_exactly(Tree::builder().codec(Codec::Auto { level: 1 }), 64, 2000);
    // Long values are nodes of their own.
    counts_exactly(Tree::builder().codec(Codec::Lz4 { acceleration: 1 }), 5000, 500);
}

#[test]
fn concurrent_swaps_return_distinct_values() {
    let tree = Tree::builder().build().unwrap();
    let seen: Vec<u64> = thread::scope(|scope| {
        let tree = &tree;
        let threads: Vec<_> = (0..THREADS)
            .map(|id| {
                scope.spawn(move || -> Vec<u64> {
                    (0..500)
                        .filter_map(|step| {
                            let value = counter(id * 500 + step, 8);
                            let old = match step % 5 {
                                0 => tree.take("key"),
                                _ => tree.swap("key", &value),
                            };
                            old.unwrap().as_deref().map(count)
                        })
                        .collect()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let last = tree.get_with("key", count).unwrap();
    let mut all: Vec<u64> = seen.into_iter().chain(last).collect();
    all.sort_unstable();
    // Every inserted value was returned once, or is present.
    let put = (0..THREADS * 500).filter(|n| n % 5 != 0);
    assert!(all.iter().copied().eq(put), "{all:?}");
}

#[test]
fn an_update_is_called_again_when_another_was_faster() {
    let tree = Tree::builder().build().unwrap();
    tree.insert("key", "0").unwrap();
    let calls = Cell::new(0);
    // The closure may use the tree, since no lock is held: the value it was called with is then stale.
    let answer = tree.update_with("key", |old| {
        calls.set(calls.get() + 1);
        if calls.get() == 1 {
            tree.insert("key", "1").unwrap();
        }
        Update::Put([old.unwrap(), b"+"].concat())
    });
    assert_eq!(answer.unwrap(), Update::Put(b"1+".to_vec()));
    assert_eq!(calls.get(), 2);
    assert_eq!(tree.get("key").unwrap().unwrap(), b"1+");
    // Likewise when the key is removed or inserted meanwhile.
    let answer = tree.update_with("key", |old| {
        if old.is_some() {
            tree.remove("key").unwrap();
            return Update::Remove;
        }
        Update::Put(b"new".to_vec())
    });
    assert_eq!(answer.unwrap(), Update::Put(b"new".to_vec()));
    let answer: Result<Update<&str>, _> = tree.update_with("other", |old| {
        tree.insert("other", "").unwrap();
        if old.is_some() { Update::Keep } else { Update::Put("x") }
    });
    assert_eq!(answer.unwrap(), Update::Keep);
    assert_eq!(tree.get("other").unwrap().unwrap(), b"");
}

#[test]
fn nothing_and_an_empty_value_are_two_things() {
    let tree = Tree::builder().build().unwrap();
    assert!(tree.compare_and_swap("key", None, None).unwrap());
    assert!(!tree.compare_and_swap("key", Some(b""), None).unwrap());
    assert!(!tree.compare_and_swap("key", Some(b""), Some(b"x")).unwrap());
    assert!(tree.compare_and_swap("key", None, Some(b"")).unwrap());
    assert!(!tree.compare_and_swap("key", None, None).unwrap());
    assert_eq!(tree.swap("key", "x").unwrap().unwrap(), b"");
    assert_eq!(tree.len(), 1);
    assert_eq!(
        tree.update_with("key", |_| None::<Vec<u8>>.into()).unwrap(),
        Update::Remove
    );
    assert_eq!((tree.len(), tree.take("key").unwrap()), (0, None));
}

#[test]
fn what_is_too_long_is_refused() {
    let tree = Tree::builder().build().unwrap();
    let key = [0; MAX_KEY_BYTES + 1];
    assert!(matches!(
        tree.swap(&key, "x").unwrap_err(),
        TreeError::KeyTooLong { .. }
    ));
    assert!(matches!(
        tree.compare_and_swap(&key, None, Some(b"x")).unwrap_err(),
        TreeError::KeyTooLong { .. }
    ));
    assert!(tree.compare_and_swap(&key, None, None).unwrap());
    assert!(matches!(
        tree.update_with(&key, |_| Update::Put("x")).unwrap_err(),
        TreeError::KeyTooLong { .. }
    ));
    assert_eq!(
        tree.update_with(&key, |_| Update::<&str>::Remove).unwrap(),
        Update::Remove
    );
    assert!(tree.is_empty());
}
