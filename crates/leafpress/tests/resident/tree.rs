//! `bytes_held` is accurate: it agrees with the growth of resident memory within a twentieth.

use std::io::Write;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::keys::mix;
use crate::resident_bytes;
use leafpress::{Tree, TreeBuilder, Upkeep};

const RECORDS: u64 = 1_000_000;

/// A record's value: 128 bytes with parts in common with others.
fn fill(value: &mut Vec<u8>, n: u64) {
    let key = mix(n);
    value.clear();
    let state = ["active", "suspended", "closed"][key as usize % 3];
    write!(
        value,
        "{{\"id\":{n},\"account\":\"{key:016x}\",\"state\":\"{state}\",\"balance\":{}",
        key >> 40
    )
    .unwrap();
    value.resize(128, b' ');
}

fn builder(codec: &str) -> TreeBuilder {
    Tree::builder().codec(codec.parse().unwrap())
}

/// Loads a tree of `records` realistic records: 128 bytes with parts in common.
fn load(codec: &str, records: u64) -> Tree {
    load_into(builder(codec), records)
}

fn load_into(builder: TreeBuilder, records: u64) -> Tree {
    let tree = builder.build().unwrap();
    let mut value = Vec::new();
    for n in 0..records {
        // Random, so that leaves are of all sizes. With evenly distributed keys all leaves would grow in step, and at
        // the wrong moment every allocator holds the room they have just outgrown.
        let key = mix(n);
        fill(&mut value, n);
        tree.insert(&key.to_be_bytes(), &value).unwrap();
    }
    tree.settle().unwrap();
    tree
}

#[test]
fn bytes_held_agrees_with_resident_growth() {
    crate::alone("tree::bytes_held_agrees_with_resident_growth", measured);
}

fn measured() {
    for codec in ["none", "lz4", "zstd:1", "trial", "auto"] {
        // A first tree makes the allocations for the life of the process: thread contexts, allocator tables, code
        // pages.
        drop(load(codec, 20_000));
        let before = resident_bytes();
        let tree = load(codec, RECORDS);
        let grown = resident_bytes() - before;
        let stats = tree.stats();
        assert_eq!(stats.records, RECORDS);
        let off = (grown as f64 / stats.bytes_held as f64 - 1.0).abs();
        assert!(
            off < 0.05,
            "{codec}: held {}, resident growth {grown}: {stats:?}",
            stats.bytes_held
        );
        drop(tree);
        let left = resident_bytes().saturating_sub(before);
        assert!(
            left < grown / 10,
            "{codec}: {left} of {grown} stay when the tree is gone"
        );
    }
}

/// As with a million records, where the memory that does not grow with the tree is negligible.
#[test]
fn bytes_held_agrees_with_resident_growth_where_records_are_few() {
    crate::alone(
        "tree::bytes_held_agrees_with_resident_growth_where_records_are_few",
        || {
            for codec in ["none", "lz4", "zstd:1", "auto"] {
                for (records, len) in [(200_000, 8), (300_000, 120)] {
                    let load = || {
                        let tree = builder(codec).build().unwrap();
                        let mut value = Vec::new();
                        for n in 0..records {
                            fill(&mut value, n);
                            tree.insert(&mix(n).to_be_bytes(), &value[..len]).unwrap();
                        }
                        tree.settle().unwrap();
                        tree
                    };
                    drop(load());
                    let before = resident_bytes();
                    let tree = load();
                    let (grown, held) = (resident_bytes() - before, tree.bytes_held() as usize);
                    let apart = grown.abs_diff(held);
                    assert!(
                        apart < held / 20 + (1 << 20),
                        "{codec}, {records} records: held {held}, resident growth {grown}: {:?}",
                        tree.stats()
                    );
                }
            }
        },
    );
}

#[test]
fn what_is_cleared_goes_back_to_the_system() {
    crate::alone("tree::what_is_cleared_goes_back_to_the_system", || {
        for (codec, tending) in [
            ("none", Upkeep::Threads),
            ("lz4", Upkeep::Threads),
            ("lz4", Upkeep::Caller),
            ("zstd:1", Upkeep::Threads),
            ("auto", Upkeep::Threads),
        ] {
            let load = |records| load_into(builder(codec).upkeep(tending), records);
            drop(load(20_000));
            let before = resident_bytes();
            let tree = load(RECORDS / 4);
            let (loaded, grown) = (tree.bytes_held(), resident_bytes() - before);
            tree.clear().unwrap();
            let held = tree.bytes_held();
            // A training leaves up to a megabyte in the program's allocator, and may end only after the clear.
            let limit = grown / 10 + (1 << 20);
            let (end, mut left) = (Instant::now() + Duration::from_secs(600), usize::MAX);
            while left >= limit && Instant::now() < end {
                left = resident_bytes().saturating_sub(before);
                thread::sleep(Duration::from_millis(10));
            }
            assert!(
                held < loaded / 20 + tree.stats().dictionary_bytes && left < limit,
                "{codec}: of {loaded} bytes {held} are held, of {grown} {left} resident: {:?}",
                tree.stats()
            );
            tree.insert("key", "value").unwrap();
            tree.validate().unwrap();
        }
    });
}

#[test]
fn threads_that_wait_hold_nothing_uncounted() {
    crate::alone("tree::threads_that_wait_hold_nothing_uncounted", || {
        ["none", "lz4", "zstd:1"]
            .into_iter()
            .for_each(measured_with_waiting_threads);
    });
}

/// Many threads load a tree together and then wait.
fn measured_with_waiting_threads(codec: &str) {
    const THREADS: u64 = 64;
    let trees = [(); 2].map(|()| Tree::builder().codec(codec.parse().unwrap()).build().unwrap());
    let turn = Barrier::new(THREADS as usize + 1);
    let mut results = Vec::new();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (trees, turn) = (&trees, &turn);
            scope.spawn(move || {
                // The first tree makes each thread's allocations for the process: its stack, its allocator's arena, the
                // codec's contexts.
                for tree in trees {
                    let mut value = Vec::new();
                    for n in (0..20_000).filter(|n| n % THREADS == thread) {
                        fill(&mut value, n);
                        tree.insert(&mix(n).to_be_bytes(), &value).unwrap();
                    }
                    // Loaded; measured.
                    turn.wait();
                    turn.wait();
                }
            });
        }
        let mut before = 0;
        for tree in &trees {
            turn.wait();
            let loaded = tree.stats();
            // Idle threads return their buffers in time.
            let end = Instant::now() + Duration::from_secs(600);
            while tree.stats().thread_bytes >= loaded.thread_bytes / 2 && Instant::now() < end {
                thread::sleep(Duration::from_millis(100));
            }
            let (stats, now) = (tree.stats(), resident_bytes());
            results.push((stats, loaded.thread_bytes, now.saturating_sub(before)));
            before = now;
            turn.wait();
        }
    });
    let (stats, thread_bytes_loaded, grown) = results.pop().unwrap();
    // Training leaves half a megabyte in the program's allocator, which is significant for a small tree.
    let is_trained = stats.dictionary_bytes > 0;
    // Each thread has an arena of the C library, which takes whole pages.
    let by_pages = (THREADS * 2 * 4096) as f64;
    let apart = (grown as f64 - stats.bytes_held as f64).abs();
    assert!(
        is_trained || apart < 0.10 * stats.bytes_held as f64 + by_pages,
        "{codec}: resident growth {grown}: {stats:?}"
    );
    assert!(
        stats.thread_bytes < thread_bytes_loaded / 2,
        "{codec}: {thread_bytes_loaded} bytes while they loaded, then {}",
        stats.thread_bytes
    );
}

#[test]
fn a_moving_hot_set_holds_no_more_than_reported() {
    crate::alone("tree::a_moving_hot_set_holds_no_more_than_reported", hot_set_moves);
}

fn hot_set_moves() {
    const KEYS: u64 = 200_000;
    drop(load("auto", 20_000));
    let before = resident_bytes();
    let tree = load("auto", KEYS);
    let settled = tree.stats().bytes_held;
    let mut random = fastrand::Rng::with_seed(5);
    let mut value = Vec::new();
    for round in 0..6 {
        let until = Instant::now() + Duration::from_millis(1500);
        while Instant::now() < until {
            for _ in 0..1000 {
                // Nine in ten are of a hundredth of the keys, a different one in each round.
                let n = if random.u32(0..10) > 0 {
                    round * KEYS / 6 + random.u64(0..KEYS / 100)
                } else {
                    random.u64(0..KEYS)
                };
                fill(&mut value, n);
                let found = tree.get_with(&mix(n).to_be_bytes(), |found| found == value);
                assert_eq!(found.unwrap(), Some(true));
            }
            let (grown, stats) = (resident_bytes().saturating_sub(before), tree.stats());
            let most = stats.bytes_held + stats.bytes_held / 10 + (8 << 20);
            assert!(grown as u64 <= most, "{grown}: {stats:?}");
            // Warm leaves and the hot records, and memory awaiting reclamation.
            assert!(stats.bytes_held < settled * 3, "{settled}: {stats:?}");
        }
        let stats = tree.stats();
        assert!(stats.get_hot_hits > 0, "{stats:?}");
    }
    tree.validate().unwrap();
}
