//! Changes of frame and leaf lengths during operation, and the choice of lengths.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::collection::vec;
use proptest::prelude::*;

use super::{ConfiguredLengths, MemoryWorth, Prices, Sizing, Tried};
use crate::tree::compact::settings::Settings;
use crate::tree::upkeep::defragment::PassKind;
use crate::tree::{DictionaryChoice, TreeBuilder};
use crate::{Codec, Tree};

const LZ4: Codec = Codec::Lz4 { acceleration: 1 };
const ZSTD: Codec = Codec::Zstd { level: 1 };

#[derive(Debug, Clone)]
enum Op {
    Put(u16, u16),
    PutRun(u16, u8, u16),
    Remove(u16),
    RemoveRun(u16, u8),
    Lengths(usize, usize),
    Sweep(PassKind),
    Train,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let lens = || prop_oneof![3 => 0u16..200, 2 => 200u16..1500, 1 => 2000u16..2300];
    let op = prop_oneof![
        10 => (0u16..400, lens()).prop_map(|(n, len)| Op::Put(n, len)),
        4 => (0u16..400, 1u8..60, lens()).prop_map(|(n, count, len)| Op::PutRun(n, count, len)),
        4 => (0u16..400).prop_map(Op::Remove),
        2 => (0u16..400, 1u8..80).prop_map(|(n, count)| Op::RemoveRun(n, count)),
        4 => (0usize..6, 0usize..3).prop_map(|(frame, leaf)| Op::Lengths(frame, leaf)),
        1 => Just(Op::Sweep(PassKind::Anew)),
        1 => Just(Op::Sweep(PassKind::Landed)),
        1 => Just(Op::Train),
    ];
    vec(op, 1..60)
}

/// Returns a key of one length, or text with much in common.
fn key(text: bool, n: u16) -> Vec<u8> {
    match text {
        true => format!("pool/main/{}/{:x}/{n}.deb", n % 7, n.wrapping_mul(31)).into_bytes(),
        false => u64::from(n).to_be_bytes().to_vec(),
    }
}

fn value(n: u16, len: u16) -> Vec<u8> {
    let text = format!("Package: {n}\nSection: {}\nSize: {len}\n", n % 5);
    text.bytes().cycle().take(usize::from(len)).collect()
}

fn builder(codec: Codec, landing_bytes: usize) -> TreeBuilder {
    Tree::builder().codec(codec).landing_bytes(landing_bytes)
}

fn set_lengths(tree: &Tree, frame: usize, leaf: usize) {
    let leaf_bytes = [1 << 10, 4 << 10, 32 << 10][leaf];
    let frame_bytes = [1, 64, 512, 1 << 10, 4 << 10, 8 << 10][frame].min(leaf_bytes);
    let settings = Settings {
        leaf_bytes,
        frame_bytes,
        ..tree.core.settings.now()
    };
    tree.core.settings.set(&settings);
}

fn check_all(tree: &Tree, map: &BTreeMap<Vec<u8>, Vec<u8>>) {
    tree.validate().unwrap();
    for (key, value) in map {
        assert_eq!(tree.get(key).unwrap().as_ref(), Some(value));
    }
    let records = tree.iter().map(Result::unwrap);
    assert!(records.eq(map.iter().map(|(key, value)| (key.clone(), value.clone()))));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    #[cfg_attr(miri, ignore = "codecs in C, which Miri does not run")]
    fn every_record_is_there_whatever_the_lengths_become(
        codec in prop_oneof![Just(LZ4), Just(ZSTD), Just(Codec::None), Just(Codec::Deflate { level: 1 })],
        landing_bytes in prop_oneof![Just(0usize), Just(512), Just(4096)],
        text in any::<bool>(),
        ops in ops(),
    ) {
        let tree = builder(codec, landing_bytes).leaf_bytes(1 << 10).build().unwrap();
        let mut map = BTreeMap::new();
        for op in ops {
            let checks = matches!(op, Op::Lengths(..) | Op::Sweep(_) | Op::Train);
            match op {
                Op::Put(n, len) => {
                    tree.insert(&key(text, n), &value(n, len)).unwrap();
                    map.insert(key(text, n), value(n, len));
                }
                Op::PutRun(first, count, len) => for n in first..first + u16::from(count) {
                    tree.insert(&key(text, n), &value(n, len)).unwrap();
                    map.insert(key(text, n), value(n, len));
                },
                Op::Remove(n) => {
                    prop_assert_eq!(tree.remove(&key(text, n)).unwrap(), map.remove(&key(text, n)).is_some());
                }
                Op::RemoveRun(first, count) => for n in first..first + u16::from(count) {
                    prop_assert_eq!(tree.remove(&key(text, n)).unwrap(), map.remove(&key(text, n)).is_some());
                },
                Op::Lengths(frame, leaf) => set_lengths(&tree, frame, leaf),
                Op::Sweep(kind) => tree.core.sweep(kind).unwrap(),
                Op::Train => drop(tree.core.train_dictionary().unwrap()),
            }
            if checks {
                check_all(&tree, &map);
            }
        }
        check_all(&tree, &map);
    }
}

/// A value that was compressed on its own is in a landing buffer when the leaf's frames become longer.
#[test]
#[cfg_attr(miri, ignore = "codecs in C, which Miri does not run")]
fn values_compressed_in_landing_buffers_survive_longer_frames() {
    for text in [false, true] {
        let tree = builder(LZ4, 4096).build().unwrap();
        for n in 0..60 {
            tree.insert(&key(text, n), &value(n, 700)).unwrap();
        }
        for n in 0..60 {
            set_lengths(&tree, if n % 2 == 0 { 0 } else { 4 }, 2);
            tree.insert(&key(text, n), &value(n, 701 + n)).unwrap();
        }
        tree.core.sweep(PassKind::Anew).unwrap();
        check_all(&tree, &(0..60).map(|n| (key(text, n), value(n, 701 + n))).collect());
        let stats = tree.stats();
        assert!(stats.frames < stats.records / 2, "frames of several records: {stats:?}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "codecs in C, which Miri does not run")]
fn lengths_change_while_threads_write_and_read() {
    const KEYS: u16 = 600;
    let tree = builder(LZ4, 512).leaf_bytes(4 << 10).build().unwrap();
    for n in 0..KEYS {
        tree.insert(&key(true, n), &value(n, 300)).unwrap();
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let tree = &tree;
                scope.spawn(move || {
                    for round in 0..6 {
                        for n in (writer..KEYS).step_by(2) {
                            tree.insert(&key(true, n), &value(n, 300 + round)).unwrap();
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for n in 0..KEYS {
                    let found = tree.get(&key(true, n)).unwrap().unwrap();
                    assert_eq!(found, value(n, found.len() as u16));
                }
            }
        });
        for turn in 0.. {
            set_lengths(&tree, turn % 6, turn % 3);
            tree.core.sweep(PassKind::Anew).unwrap();
            if writers.iter().all(|writer| writer.is_finished()) {
                break;
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    check_all(&tree, &(0..KEYS).map(|n| (key(true, n), value(n, 305))).collect());
}

/// Inserts values that have much in common with their neighbours and little with others.
fn families(tree: &Tree) {
    for n in 0..2000u16 {
        let mut rng = fastrand::Rng::with_seed(u64::from(n / 8));
        let mut text: String = std::iter::repeat_with(|| rng.alphanumeric()).take(800).collect();
        text.push_str(&n.to_string());
        tree.insert(&format!("pool/{n:05}"), &text).unwrap();
    }
    tree.settle().unwrap();
}

#[test]
#[cfg_attr(miri, ignore = "codecs in C, which Miri does not run")]
fn neighbours_that_are_alike_share_frames() {
    for codec in [LZ4, ZSTD] {
        for dictionary in [DictionaryChoice::Auto, DictionaryChoice::Off] {
            let tree = builder(codec, 512).dictionary(dictionary).build().unwrap();
            families(&tree);
            let stats = tree.stats();
            assert!(stats.frame_limit_bytes >= 2048, "{}: {}", codec, stats.limits_reason);
            assert!(stats.held_per_user_byte() < 0.7, "{stats:?}");
            assert!(stats.limits_reason.contains("records"), "{}", stats.limits_reason);
            tree.validate().unwrap();
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "codecs in C, which Miri does not run")]
fn keeps_configured_lengths() {
    let tree = builder(LZ4, 512).frame_bytes(700).leaf_bytes(9000).build().unwrap();
    families(&tree);
    let stats = tree.stats();
    assert_eq!((stats.frame_limit_bytes, stats.leaf_limit_bytes), (700, 9000));
    assert_eq!(stats.limits_reason, "given by the caller");
    let tree = builder(LZ4, 512).leaf_bytes(9000).build().unwrap();
    families(&tree);
    let stats = tree.stats();
    assert_eq!(stats.leaf_limit_bytes, 9000);
    assert!(stats.frame_limit_bytes > 700, "{}", stats.limits_reason);
    let tree = builder(Codec::None, 512).build().unwrap();
    families(&tree);
    assert_eq!(tree.stats().frame_limit_bytes, 1, "{}", tree.stats().limits_reason);
}

/// Where neighbours have nothing in common, longer frames save nothing: the codec's default is kept.
#[test]
#[cfg_attr(miri, ignore = "codecs in C, which Miri does not run")]
fn records_that_do_not_compress_stay_alone() {
    let tree = builder(LZ4, 512).build().unwrap();
    let mut rng = fastrand::Rng::with_seed(7);
    for n in 0..2000u64 {
        let noise: Vec<u8> = std::iter::repeat_with(|| rng.u8(..)).take(300).collect();
        tree.insert(&n.to_be_bytes(), &noise).unwrap();
    }
    tree.settle().unwrap();
    let stats = tree.stats();
    assert!(stats.limits_reason.contains("records"), "{}", stats.limits_reason);
    assert_eq!(
        (stats.frame_limit_bytes, stats.frames),
        (1, stats.records),
        "{}",
        stats.limits_reason
    );
}

/// A dictionary cannot hold what a run of neighbours has in common, with which short records are compressed to a
/// fraction.
#[test]
#[cfg_attr(miri, ignore = "codecs in C, which Miri does not run")]
fn short_records_that_are_nearly_the_same_share_frames() {
    let tree = builder(LZ4, 512).build().unwrap();
    for n in 0..6000u64 {
        let mut rng = fastrand::Rng::with_seed(n / 16);
        let common: String = std::iter::repeat_with(|| rng.alphanumeric()).take(140).collect();
        tree.insert(&n.to_be_bytes(), format!("{common}{n:06}").as_bytes())
            .unwrap();
    }
    tree.settle().unwrap();
    let stats = tree.stats();
    assert!(stats.frame_limit_bytes >= 512, "{}", stats.limits_reason);
    assert!(stats.held_per_user_byte() < 0.5, "{stats:?}");
}

/// Short records that have little in common keep the codec's default frames, and get them back after longer records
/// were replaced by them.
#[test]
#[cfg_attr(miri, ignore = "codecs in C, which Miri does not run")]
fn short_records_keep_the_codecs_own_frames() {
    let tree = builder(LZ4, 512).build().unwrap();
    families(&tree);
    assert!(tree.stats().frame_limit_bytes > 1);
    tree.clear().unwrap();
    let mut rng = fastrand::Rng::with_seed(5);
    for n in 0..4000u16 {
        let text: String = std::iter::repeat_with(|| rng.alphanumeric()).take(120).collect();
        tree.insert(&key(false, n), text.as_bytes()).unwrap();
    }
    tree.settle().unwrap();
    tree.compact().unwrap();
    let stats = tree.stats();
    assert_eq!(
        (stats.frame_limit_bytes, stats.leaf_limit_bytes),
        (1, 16 << 10),
        "{}",
        stats.limits_reason
    );
    assert_eq!(stats.frames, stats.records);
    tree.validate().unwrap();
}

#[test]
fn the_cheapest_codec_of_a_cache_has_the_least_mean_time_of_an_access() {
    let given = ConfiguredLengths {
        frame_bytes: None,
        leaf_bytes: None,
        inline_value_bytes: 1 << 10,
        sub_pages: 0,
        keys_in_blocks: None,
    };
    let (_, settings) = Sizing::new(LZ4, LZ4, given);
    let tried = |codec, bytes_per_record, read_ns, write_ns| Tried {
        codec,
        settings,
        bytes_per_record,
        read_ns,
        write_ns,
    };
    let (fast, small) = (tried(LZ4, 160.0, 150.0, 800.0), tried(ZSTD, 100.0, 700.0, 4_000.0));
    // A miss costs 1 to 1,000 us; 1% more records save 0.07% of the misses.
    for miss_us in [1.0, 10.0, 50.0, 200.0, 1_000.0] {
        let memory_ns = 0.07 * 1_000.0 * miss_us;
        let mean_ns = |tried: &Tried| {
            let misses_ns = memory_ns * tried.bytes_per_record.ln();
            tried.access_ns(0.25) + misses_ns
        };
        for current in [&fast, &small] {
            let worth = MemoryWorth {
                memory_ns,
                writes_per_read: 0.25,
            };
            let prices = Prices::in_cache(worth, current);
            let is_fast = fast.price(prices) < small.price(prices);
            assert_eq!(
                is_fast,
                mean_ns(&fast) < mean_ns(&small),
                "{miss_us} us, {}",
                current.codec
            );
        }
    }
}
