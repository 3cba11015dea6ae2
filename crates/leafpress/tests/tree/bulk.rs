//! Records in key order: the tree is equal to one with individual insertions, its leaves are full, and its landing
//! buffers empty.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use leafpress::codec::Codec;
use leafpress::tree::{DictionaryChoice, MAX_KEY_BYTES, MAX_VALUE_BYTES, TreeBuilder};
use leafpress::{Layout, ShardBy, Tree, TreeError};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::config::{CODECS, Config, Dict};
use crate::support::engine::RunLength;
use crate::support::keys::{KeyShape, mix};
use crate::support::model::{same_contents, same_statistics};
use crate::support::strategies::{configs, settings, shapes, small_values, values};
use crate::support::values::{Fill, Value};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Small leaves, so that few records make many of them.
fn builder(codec: &str) -> TreeBuilder {
    Tree::builder().codec(codec.parse().unwrap()).leaf_bytes(1 << 10)
}

fn key(n: u64) -> Vec<u8> {
    format!("item/{n:08}").into_bytes()
}

fn value(n: u64) -> Vec<u8> {
    let (len, seed) = (60 + (mix(n) % 60) as u32, n as u16);
    let fill = Fill::Text;
    Value { len, fill, seed }.bytes()
}

fn records(numbers: impl IntoIterator<Item = u64>) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    numbers.into_iter().map(|n| (key(n), value(n)))
}

fn check(tree: &Tree, map: &Map) {
    tree.validate().unwrap();
    same_contents(tree, map, "loaded");
    same_statistics(tree, map);
}

proptest! {
    #![proptest_config(settings(96))]

    #[test]
    fn a_tree_of_sorted_records_is_that_of_the_same_inserts(
        config in configs(),
        codec in prop::sample::select(&CODECS[..]),
        shape in shapes(),
        runs in vec((any::<u16>(), 1_u16..400, small_values()), 0..5),
        others in vec((any::<u16>(), values()), 0..8),
    ) {
        let mut map = Map::new();
        for (first, count, value) in runs {
            for n in 0..count {
                let seed = value.seed.wrapping_add(n);
                map.insert(shape.key(first.wrapping_add(n)), Value { seed, ..value }.bytes());
            }
        }
        map.extend(others.into_iter().map(|(n, value)| (shape.key(n), value.bytes())));
        if let Some(tree) = config.build_by(codec, shape, |builder| builder.from_sorted(&map)) {
            let stats = tree.stats();
            prop_assert_eq!(stats.bulk_loaded, map.len() as u64);
            prop_assert_eq!((stats.landing_buffers, stats.fg_sync_compactions), (0, 0));
            check(&tree, &map);
            // The tree works like any other afterwards.
            for n in 0..40 {
                let (key, value) = (shape.key(n * 37), n.to_be_bytes().repeat(20));
                tree.insert(&key, &value).unwrap();
                map.insert(key, value);
            }
            tree.compact().unwrap();
            check(&tree, &map);
        }
    }

    #[test]
    fn runs_join_what_is_there(
        config in configs(),
        codec in prop::sample::select(&CODECS[..3]),
        shape in shapes(),
        loads in vec((0_u16..2000, 1_u16..300, prop_oneof![Just(1_u16), 2_u16..40], values()), 1..6),
    ) {
        let Some(tree) = config.build(codec, shape) else { return Ok(()) };
        let mut map = Map::new();
        for (first, count, apart, value) in loads {
            // Large values in one position are enough.
            let small = Value { len: value.len.min(200), ..value };
            let mut run: Vec<_> = (0..count)
                .map(|n| {
                    let seed = value.seed.wrapping_add(n);
                    let like = if n == count / 2 { value } else { small };
                    (shape.key(first.wrapping_add(n * apart)), Value { seed, ..like }.bytes())
                })
                .collect();
            run.sort();
            let before = map.len();
            map.extend(run.iter().cloned());
            prop_assert_eq!(tree.extend(run).unwrap(), (map.len() - before) as u64);
            tree.validate().unwrap();
        }
        check(&tree, &map);
    }
}

#[test]
fn leaves_are_full() {
    for (codec, shards) in [("none", 1), ("lz4", 1), ("zstd:1", 1), ("lz4", 4)] {
        let tree = Tree::builder().codec(codec.parse().unwrap()).shards(shards);
        let tree = tree.from_sorted(records(0..40_000)).unwrap();
        let stats = tree.stats();
        // The last leaf of a shard holds the rest, and no other one has room for another record.
        let least = stats.user_bytes / (16 << 10);
        assert!(
            (least..=least * 101 / 100 + shards as u64).contains(&stats.leaves),
            "{codec}: {stats:?}"
        );
        assert_eq!(stats.bulk_loaded, 40_000);
    }
}

#[test]
fn few_records_are_a_tree_too() {
    for count in [0, 1, 2, 17] {
        let tree = Tree::from_sorted(records(0..count)).unwrap();
        check(&tree, &records(0..count).collect());
    }
}

#[test]
fn rejects_invalid_records_by_their_index() {
    for builder in [
        Tree::builder(),
        Tree::builder().shards(3),
        Tree::builder().load_threads(3),
    ] {
        for count in [0, 5, 60_000] {
            let with = |last: (Vec<u8>, Vec<u8>)| builder.clone().from_sorted(records(0..count).chain([last]));
            if count > 0 {
                for again in [key(0), key(count - 1)] {
                    let error = with((again, value(1))).unwrap_err();
                    assert!(
                        matches!(error, TreeError::Unsorted { index } if index as u64 == count),
                        "{error}"
                    );
                }
            }
            let too_long = vec![b'z'; MAX_KEY_BYTES + 1];
            assert!(
                matches!(with((too_long, value(1))).unwrap_err(), TreeError::KeyTooLong { len } if len > MAX_KEY_BYTES)
            );
            let too_long = vec![0; MAX_VALUE_BYTES + 1];
            assert!(matches!(
                with((key(count), too_long)).unwrap_err(),
                TreeError::ValueTooLong { .. }
            ));
        }
    }
}

/// If `extend` fails for a record, all records before it are in the tree.
#[test]
fn records_before_a_wrong_one_are_taken() {
    for shards in [1, 4] {
        for count in [3, 40, 4000] {
            let tree = builder("lz4").shards(shards).build().unwrap();
            let wrong = (vec![0; MAX_KEY_BYTES + 1], value(0));
            let error = tree.extend(records(0..count).chain([wrong]).chain(records(count..2 * count)));
            assert!(matches!(error, Err(TreeError::KeyTooLong { .. })));
            check(&tree, &records(0..count).collect());
        }
    }
}

#[test]
fn the_later_of_two_records_counts() {
    let tree = builder("zstd:1").shards(2).build().unwrap();
    let twice = (0..3000).flat_map(|n| [(key(n), value(n)), (key(n), value(n + 1))]);
    assert_eq!(tree.extend(twice).unwrap(), 3000);
    let again = records(0..3000).chain((0..3000).map(|n| (key(n), value(n + 2))));
    assert_eq!(tree.extend(again).unwrap(), 0);
    check(&tree, &(0..3000).map(|n| (key(n), value(n + 2))).collect());
}

/// A run after the last record, before the first, or between two neighbours makes leaves of its own, whether or not
/// landing buffers have entries there. One with others in between does not.
#[test]
fn runs_go_where_no_others_are() {
    for (codec, layout) in [
        ("none", Layout::Ordered),
        ("lz4", Layout::Ordered),
        ("zstd:1", Layout::Ordered),
        ("deflate:1", Layout::Hashed { sub_pages: 4 }),
    ] {
        for landed in [false, true] {
            let tree = builder(codec).layout(layout).build().unwrap();
            let mut map = Map::new();
            let mut extend = |numbers: Vec<u64>, bulk: bool| {
                let (before, count) = (tree.stats(), numbers.len() as u64);
                map.extend(records(numbers.iter().copied()));
                assert_eq!(tree.extend(records(numbers)).unwrap(), count);
                let after = tree.stats();
                assert_eq!(
                    after.bulk_loaded - before.bulk_loaded,
                    if bulk { count } else { 0 },
                    "{codec}"
                );
                assert_eq!(after.puts - before.puts, count);
                if landed {
                    for n in [12_000, 1, 55_555] {
                        let n = n + after.puts;
                        tree.insert(&key(n), &value(n)).unwrap();
                        map.insert(key(n), value(n));
                    }
                }
                check(&tree, &map);
            };
            extend((20_000..20_400).collect(), true);
            extend((40_000..40_400).collect(), true);
            extend((30_000..30_400).collect(), true);
            extend((10_000..10_400).collect(), true);
            extend((20_400..20_800).collect(), true);
            extend((19_600..20_000).collect(), true);
            // Ten records between each two existing ones are too few bytes for a leaf.
            extend((0..400).map(|n| 5_000_000 + n * 1000).collect(), true);
            extend((0..1600).map(|n| 5_000_000 + n * 250 + 1).collect(), false);
            // Too few records.
            extend((35_000..35_003).collect(), false);
        }
    }
}

/// The first records train the dictionary, so that nothing is compressed twice.
#[test]
fn each_record_is_compressed_once_with_the_dictionary() {
    for (codec, threads) in [("lz4", 1), ("zstd:1", 1), ("lz4", 3)] {
        let builder = Tree::builder().codec(codec.parse().unwrap()).load_threads(threads);
        let tree = builder.from_sorted(records(0..100_000)).unwrap();
        tree.settle().unwrap();
        let stats = tree.stats();
        assert_ne!(stats.dictionary_id, 0, "{codec}");
        // Evaluating dictionaries compresses a part of the samples, which are at most a fifth of these records.
        let compressed = stats.engine.compress_bytes_in;
        assert!(
            compressed < stats.user_bytes * 3 / 2,
            "{codec}: {compressed} of {}",
            stats.user_bytes
        );
        assert_eq!(stats.landing_buffers, 0);
        tree.validate().unwrap();
    }
}

#[test]
fn an_empty_tree_trains_from_what_extends_it() {
    let tree = Tree::builder()
        .codec(Codec::Zstd { level: 1 })
        .shards(2)
        .build()
        .unwrap();
    assert_eq!(tree.extend(records(0..20_000)).unwrap(), 20_000);
    assert_ne!(tree.stats().dictionary_id, 0);
    // The next run uses it.
    assert_eq!(tree.extend(records(30_000..50_000)).unwrap(), 20_000);
    check(&tree, &records((0..20_000).chain(30_000..50_000)).collect());
    let without = builder("lz4").dictionary(DictionaryChoice::Off);
    assert_eq!(
        without.from_sorted(records(0..20_000)).unwrap().stats().dictionary_id,
        0
    );
}

/// If the codec fails, only the record concerned is rejected, and no other record with it.
#[test]
fn a_codec_that_fails_leaves_the_records_before() {
    for after in [0, 1, 2, 30, 100, 900, 1500] {
        let engine = Arc::new(RunLength::default());
        let tree = builder("lz4").engine(engine.clone()).dictionary(DictionaryChoice::Off);
        let tree = tree.build().unwrap();
        let same = |n: u64| (key(n), vec![n as u8; 90]);
        engine.faults.fail_compress(after);
        let extended = tree.extend((0..2000).map(same));
        let raised = engine.faults.raised();
        engine.faults.clear();
        assert!(matches!(extended, Err(TreeError::Codec(_))), "{extended:?}");
        assert!(raised > 0);
        let there = tree.len() as u64;
        assert!(there < 2000);
        check(&tree, &(0..there).map(same).collect());
        tree.extend((0..2000).map(same)).unwrap();
        check(&tree, &(0..2000).map(same).collect());
        // After a single failure the records are inserted one by one.
        let tree = builder("lz4").engine(engine.clone()).dictionary(DictionaryChoice::Off);
        let tree = tree.build().unwrap();
        engine.faults.fail_one_compress(after);
        let extended = tree.extend((0..2000).map(same));
        engine.faults.clear();
        assert_eq!(extended.unwrap(), 2000);
        check(&tree, &(0..2000).map(same).collect());
    }
}

/// The caller's iterator may panic: its records until then are in the tree or not, and the tree is valid.
#[test]
fn an_iterator_that_panics_leaves_a_whole_tree() {
    for threads in [1, 3] {
        let tree = builder("lz4").load_threads(threads).build().unwrap();
        let extend = || tree.extend(records(0..60_000).inspect(|(k, _)| assert!(k < &key(50_000), "as planned")));
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(extend));
        std::panic::set_hook(hook);
        assert!(panicked.is_err());
        let there = tree.len() as u64;
        check(&tree, &records(0..there).collect());
        tree.extend(records(0..60_000)).unwrap();
        check(&tree, &records(0..60_000).collect());
    }
}

/// Readers see each record from its insertion on, in order and with its own value, and writers lose nothing, while runs
/// are loaded in between.
#[test]
fn readers_and_writers_go_on_meanwhile() {
    const RUNS: u64 = 12;
    const RUN: u64 = 3000;
    const STEP: u64 = 10_000;
    for (codec, shards, threads) in [("lz4", 1, 1), ("zstd:1", 1, 3), ("none", 4, 2)] {
        // A dictionary is trained and applied concurrently as well.
        let tree = builder(codec).shards(shards).load_threads(threads).build().unwrap();
        tree.extend(records((0..RUNS).map(|run| run * STEP))).unwrap();
        let (is_over, loaded) = (AtomicBool::new(false), AtomicU64::new(0));
        let own = |writer: u64, n: u64| format!("item/{:08}+{writer}", n * 37 % (RUNS * STEP)).into_bytes();
        std::thread::scope(|scope| {
            let reader = || {
                let mut turns = 0;
                while !is_over.load(Ordering::Acquire) || turns < 2 {
                    turns += 1;
                    let runs = loaded.load(Ordering::Acquire);
                    for n in (0..runs * RUN).step_by(97) {
                        let n = n / RUN * STEP + n % RUN;
                        assert_eq!(tree.get(&key(n)).unwrap(), Some(value(n)), "{n}");
                    }
                    let keys: Vec<_> = tree.iter().map(|record| record.unwrap().0).collect();
                    assert!(keys.is_sorted_by(|a, b| a < b));
                    assert!(keys.len() as u64 >= RUNS.max(runs * RUN));
                }
            };
            let writer = |writer: u64| {
                let mut n = 0;
                while !is_over.load(Ordering::Acquire) {
                    tree.insert(&own(writer, n), &value(n)).unwrap();
                    if n % 3 == 0 {
                        assert!(tree.remove(&own(writer, n)).unwrap());
                    }
                    n += 1;
                }
            };
            let threads = [scope.spawn(reader), scope.spawn(move || writer(1))];
            // Not in order: some runs come before existing records.
            for run in 0..RUNS {
                tree.extend(records(run * STEP..run * STEP + RUN)).unwrap();
                loaded.store(run + 1, Ordering::Release);
                if run == RUNS / 2 {
                    tree.compact().unwrap();
                }
            }
            is_over.store(true, Ordering::Release);
            for thread in threads {
                thread.join().unwrap();
            }
        });
        tree.validate().unwrap();
        for n in (0..RUNS).flat_map(|run| run * STEP..run * STEP + RUN) {
            assert_eq!(tree.get(&key(n)).unwrap(), Some(value(n)), "{n}");
        }
    }
}

/// Threads extend the same tree with runs of alternating records.
#[test]
fn threads_extend_one_tree() {
    for shards in [1, 3] {
        let tree = builder("lz4").shards(shards).load_threads(2).build().unwrap();
        let new: u64 = std::thread::scope(|scope| {
            let extend = |thread: u64| {
                let tree = &tree;
                scope.spawn(move || {
                    let runs = (0..20).map(|run| (run * 4 + thread) * 1000);
                    runs.map(|from| tree.extend(records(from..from + 1010)).unwrap())
                        .sum::<u64>()
                })
            };
            let threads = [0, 1, 2, 3].map(extend);
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(new, 80_010);
        check(&tree, &records(0..80_010).collect());
    }
}

#[test]
fn range_shards_get_their_own() {
    let boundaries = vec![key(1000), key(1001), key(30_000)];
    let builder = builder("lz4").shards(4).shard_by(ShardBy::Range(boundaries));
    let tree = builder.from_sorted(records(0..40_000)).unwrap();
    check(&tree, &records(0..40_000).collect());
}

#[test]
fn large_values_are_loaded() {
    let large = |n: u64| {
        let len = [10, 2048, 2049, 5000, 70_000, 300_000][(n % 6) as usize];
        let (fill, seed) = (Fill::Text, n as u16);
        (key(n), Value { len, fill, seed }.bytes())
    };
    for codec in ["none", "lz4", "zstd:1"] {
        let tree = Tree::builder().codec(codec.parse().unwrap());
        let tree = tree.from_sorted((0..300).map(large)).unwrap();
        check(&tree, &(0..300).map(large).collect());
        tree.extend((400..600).map(large)).unwrap();
        tree.clear().unwrap();
        tree.settle().unwrap();
        assert_eq!(tree.stats().large_value_bytes, 0);
    }
    let without = Config {
        dictionary: Dict::Off,
        ..Config::default()
    };
    let tree = without.build(Codec::None, KeyShape::Dense).unwrap();
    assert!(matches!(
        tree.extend((0..10).map(large).chain([(vec![], vec![0; MAX_VALUE_BYTES + 1])])),
        Err(TreeError::ValueTooLong { .. })
    ));
    check(&tree, &(0..10).map(large).collect());
}
