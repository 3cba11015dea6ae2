//! Concurrent point operations are linearizable: histories of threads on a few keys are recorded and checked, while
//! neighbours are inserted and removed so that the keys' leaves split, merge and are compacted.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;

use crate::support::history::{Call, Event, is_linearizable};
use leafpress::tree::Update;
use leafpress::{Codec, Layout, Tree, TreeBuilder};

const THREADS: usize = 3;
const KEYS: u64 = 3;
/// Operations per thread in a round.
const STEPS: usize = 15;

fn rounds() -> u64 {
    let factor = std::env::var("LEAFPRESS_STRESS")
        .ok()
        .and_then(|f| f.parse().ok())
        .unwrap_or(1.0);
    (250.0 * factor) as u64 + 5
}

fn key(n: u64) -> [u8; 8] {
    // Leaves room for neighbours between the keys.
    (n * 1000).to_be_bytes()
}

fn value(number: u64) -> Vec<u8> {
    [number.to_le_bytes().as_slice(), &[number as u8; 60]].concat()
}

fn number(value: &[u8]) -> u64 {
    assert!(
        value.len() == 68 && value[8..].iter().all(|&byte| byte == value[0]),
        "a torn value"
    );
    u64::from_le_bytes(value[..8].try_into().unwrap())
}

fn call(tree: &Tree, key: &[u8], kind: u8, fresh: u64) -> Call {
    match kind {
        0..3 => Call::Put(fresh, tree.insert(key, &value(fresh)).unwrap()),
        3 => Call::Insert(fresh, tree.insert_if_absent(key, &value(fresh)).unwrap()),
        4 => Call::Update(fresh, tree.replace(key, &value(fresh)).unwrap()),
        5..7 => Call::Remove(tree.remove(key).unwrap()),
        7 => Call::Swap(
            Some(fresh),
            tree.swap(key, &value(fresh)).unwrap().as_deref().map(number),
        ),
        8 => Call::Swap(None, tree.take(key).unwrap().as_deref().map(number)),
        9 | 10 => {
            let expected = tree.get(key).unwrap();
            let new = (kind == 9).then(|| value(fresh));
            let done = tree.compare_and_swap(key, expected.as_deref(), new.as_deref()).unwrap();
            Call::CompareAndSwap(expected.as_deref().map(number), new.as_deref().map(number), done)
        }
        11 | 12 => {
            let mut seen = None;
            let update = |old: Option<&[u8]>| {
                seen = old.map(number);
                Update::Put(value(fresh))
            };
            tree.update_with(key, update).unwrap();
            Call::UpdateWith(fresh, seen)
        }
        13 => Call::Get(tree.get_many(&[key]).unwrap()[0].as_deref().map(number)),
        _ => Call::Get(tree.get_with(key, number).unwrap()),
    }
}

/// One round: the threads start together, and each key's history must be linearizable.
fn round(tree: &Tree, seed: u64, clock: &AtomicU64) {
    let before: Vec<_> = (0..KEYS).map(|n| tree.get_with(&key(n), number).unwrap()).collect();
    let history: Vec<Mutex<Vec<Event>>> = (0..KEYS).map(|_| Mutex::default()).collect();
    let start = Barrier::new(THREADS);
    thread::scope(|scope| {
        for id in 0..THREADS as u64 {
            let (history, start) = (&history, &start);
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(seed * 31 + id);
                let mut events = Vec::new();
                start.wait();
                for step in 0..STEPS as u64 {
                    let n = rng.u64(..KEYS);
                    let fresh = (seed << 20) + (id << 10) + step;
                    let begin = clock.fetch_add(1, Ordering::SeqCst);
                    let call = call(tree, &key(n), rng.u8(..17), fresh);
                    let end = clock.fetch_add(1, Ordering::SeqCst);
                    events.push((n, Event { begin, end, call }));
                }
                for (n, event) in events {
                    history[n as usize].lock().unwrap().push(event);
                }
            });
        }
    });
    for (n, events) in history.into_iter().enumerate() {
        let mut events = events.into_inner().unwrap();
        events.sort_by_key(|event| event.begin);
        assert!(
            is_linearizable(&events, before[n]),
            "round {seed}, key {n}, from {:?}: {events:#?}",
            before[n]
        );
    }
}

fn linearizable(builder: TreeBuilder) {
    let tree = builder.build().unwrap();
    let clock = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let (tree, stop) = (&tree, &stop);
        // Runs of neighbours are inserted and removed: the leaves of the shared keys split and merge.
        scope.spawn(move || {
            let mut rng = fastrand::Rng::with_seed(9);
            while !stop.load(Ordering::SeqCst) {
                let base = rng.u64(..KEYS) * 1000 + 1;
                for n in base..base + 40 {
                    tree.insert(&n.to_be_bytes(), &[7; 60]).unwrap();
                }
                if rng.bool() {
                    tree.compact().unwrap();
                }
                for n in base..base + 40 {
                    tree.remove(&n.to_be_bytes()).unwrap();
                }
            }
        });
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            (0..rounds()).for_each(|seed| round(tree, seed, &clock));
        }));
        stop.store(true, Ordering::SeqCst);
        checked.unwrap();
    });
    tree.validate().unwrap();
}

fn small() -> TreeBuilder {
    Tree::builder().codec(Codec::None).leaf_bytes(1024)
}

#[test]
fn landing_buffer() {
    linearizable(small().landing_bytes(256));
}

#[test]
fn no_landing_buffer() {
    linearizable(small().landing_bytes(0));
}

#[test]
fn lz4_in_the_background() {
    let lz4 = Codec::Lz4 { acceleration: 1 };
    linearizable(
        small()
            .codec(lz4)
            .landing_bytes(1024)
            .background_threads(1)
            .landing_compaction_pct(10),
    );
}

#[test]
fn cold_leaves_and_hot_records() {
    // Records in landing buffers do not become hot, so there are no landing buffers.
    let tree = small()
        .codec(Codec::Auto { level: 1 })
        .landing_bytes(0)
        .build()
        .unwrap();
    // Enough records for the tree to have temperatures.
    for n in 0..2000_u64 {
        tree.insert(&(u64::MAX - n).to_be_bytes(), &value(n)).unwrap();
    }
    for n in 0..KEYS {
        tree.insert(&key(n), &value(n)).unwrap();
    }
    tree.settle().unwrap();
    assert!(tree.stats().cold_leaves > 0);
    let clock = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let (tree, stop) = (&tree, &stop);
        // Leaves become warm by writes, and cold again, and records become hot by reads.
        scope.spawn(move || {
            while !stop.load(Ordering::SeqCst) {
                tree.settle().unwrap();
                for n in (0..KEYS).cycle().take(500) {
                    tree.get_with(&key(n), number).unwrap();
                }
            }
        });
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            (0..rounds()).for_each(|seed| round(tree, seed, &clock));
        }));
        stop.store(true, Ordering::SeqCst);
        checked.unwrap();
    });
    // Even if the round was very short.
    for n in (0..KEYS).cycle().take(3000) {
        tree.get_with(&key(n), number).unwrap();
    }
    let stats = tree.stats();
    assert!(stats.get_hot_hits > 0 && stats.leaves_cooled > 0, "{stats:?}");
    tree.validate().unwrap();
}

#[test]
fn hashed_and_sharded() {
    linearizable(
        small()
            .layout(Layout::Hashed { sub_pages: 4 })
            .shards(2)
            .landing_bytes(128),
    );
}

fn event(begin: u64, end: u64, call: Call) -> Event {
    Event { begin, end, call }
}

#[test]
fn the_checker_accepts_what_is_linearizable() {
    // Two overlapping insertions and a read between them that saw either value.
    for seen in [1, 2] {
        let events = [
            event(0, 5, Call::Put(1, seen == 1)),
            event(1, 6, Call::Put(2, seen == 2)),
            event(7, 8, Call::Get(Some(3 - seen))),
        ];
        assert!(is_linearizable(&events, None));
    }
}

#[test]
fn the_checker_refuses_a_stale_read() {
    let events = [
        event(0, 1, Call::Put(1, true)),
        event(2, 3, Call::Put(2, false)),
        event(4, 5, Call::Get(Some(1))),
    ];
    assert!(!is_linearizable(&events, None));
}

#[test]
fn the_checker_refuses_a_lost_update_and_two_winners() {
    let lost = [
        event(0, 3, Call::Put(1, true)),
        event(1, 2, Call::Get(Some(1))),
        event(4, 5, Call::Get(None)),
    ];
    assert!(!is_linearizable(&lost, None));
    let two_winners = [event(0, 3, Call::Insert(1, true)), event(1, 2, Call::Insert(2, true))];
    assert!(!is_linearizable(&two_winners, None));
    let both_saw_one = [
        event(0, 3, Call::UpdateWith(2, Some(1))),
        event(1, 2, Call::UpdateWith(3, Some(1))),
    ];
    assert!(!is_linearizable(&both_saw_one, Some(1)));
    let removed_twice = [event(0, 3, Call::Remove(true)), event(1, 2, Call::Remove(true))];
    assert!(!is_linearizable(&removed_twice, Some(1)));
}
