//! Temperatures of leaves and records follow the reads, and all results stay correct.

use std::time::{Duration, Instant};

use leafpress::codec::CodecError;
use leafpress::tree::{TemperatureRule, TreeError};
use leafpress::{Codec, Layout, Tree};

const RECORDS: u64 = 4000;

fn key(n: u64) -> Vec<u8> {
    format!("/pool/main/section-{:02}/record-{n:08}", n % 17).into_bytes()
}

fn value(n: u64) -> Vec<u8> {
    let state = ["active", "suspended", "closed"][n as usize % 3];
    format!(
        "{{\"id\":{n},\"state\":\"{state}\",\"hash\":\"{:016x}\"}}",
        n.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    )
    .repeat(4)
    .into_bytes()
}

fn loaded(codec: &str, slowdown_pct: u32) -> Tree {
    let builder = Tree::builder()
        .codec(codec.parse().unwrap())
        .temperature_rule(TemperatureRule::Costs { slowdown_pct });
    let tree = builder.build().unwrap();
    for n in 0..RECORDS {
        tree.insert(&key(n * 7919 % RECORDS), &value(n * 7919 % RECORDS))
            .unwrap();
    }
    tree.settle().unwrap();
    tree
}

fn is_right(tree: &Tree) {
    for n in 0..RECORDS {
        assert_eq!(tree.get(&key(n)).unwrap(), Some(value(n)), "{n}");
    }
    assert_eq!(tree.iter().count() as u64, RECORDS);
    tree.validate().unwrap();
}

/// By the paper's rule a leaf among many that is read far more is warm, and no record is hot.
#[test]
fn by_deviation_the_leaves_that_are_read_most_are_warm() {
    for rule in ["deviation:1", "deviation:auto"] {
        read_most_are_warm(rule.parse().unwrap());
    }
}

fn read_most_are_warm(rule: TemperatureRule) {
    let tree = Tree::builder()
        .codec("auto".parse().unwrap())
        .temperature_rule(rule)
        .leaf_bytes(4 << 10)
        .build()
        .unwrap();
    for n in 0..RECORDS {
        tree.insert(&key(n), &value(n)).unwrap();
    }
    tree.settle().unwrap();
    let leaves = tree.stats().leaves;
    assert_eq!(tree.stats().cold_leaves, leaves);
    // Neighbouring keys.
    let read: Vec<u64> = (0..200).map(|n| n * 17).collect();
    let until = Instant::now() + Duration::from_secs(600);
    loop {
        for &n in &read {
            assert_eq!(tree.get(&key(n)).unwrap(), Some(value(n)));
        }
        let stats = tree.stats();
        if stats.warm_leaves > 0 {
            assert!(stats.warm_leaves * 4 < leaves, "{stats:?}");
            assert_eq!(stats.hot_records, 0);
            break;
        }
        assert!(Instant::now() < until, "{stats:?}");
    }
    is_right(&tree);
}

#[test]
fn what_is_not_read_is_cold_and_holds_less() {
    let (tree, lz4) = (loaded("auto", 50), loaded("lz4", 50));
    let (stats, warm) = (tree.stats(), lz4.stats());
    assert_eq!((stats.warm_leaves, stats.cold_leaves), (0, stats.leaves), "{stats:?}");
    assert!(stats.leaf_bytes * 10 < warm.leaf_bytes * 9, "{stats:?} {warm:?}");
    assert_eq!((warm.warm_leaves, warm.cold_leaves), (warm.leaves, 0));
    assert!(
        stats.temperature_reason.contains("cold"),
        "{}",
        stats.temperature_reason
    );
    assert!(warm.temperature_reason.is_empty());
    is_right(&tree);
}

#[test]
fn what_is_read_much_is_warm() {
    let tree = loaded("auto", 0);
    // Neighbouring keys, so whole leaves, and more of them than may be hot.
    let keys: Vec<_> = (0..5)
        .flat_map(|section| tree.prefix(&format!("/pool/main/section-{section:02}")))
        .map(|record| record.unwrap().0)
        .collect();
    let read = || {
        for key in (0..40).flat_map(|_| &keys) {
            assert!(tree.get_with(key, <[u8]>::is_empty).unwrap().is_some());
        }
    };
    read();
    tree.settle().unwrap();
    let stats = tree.stats();
    assert!(stats.leaves_warmed > 0 && stats.warm_leaves > 0, "{stats:?}");
    assert!(stats.cold_leaves > stats.leaves / 2, "{stats:?}");
    is_right(&tree);
}

#[test]
fn what_is_written_is_warm_and_becomes_cold_again() {
    let tree = loaded("auto", 50);
    for n in (0..RECORDS).step_by(3) {
        assert!(!tree.insert(&key(n), &value(n + 1)).unwrap());
    }
    let stats = tree.stats();
    assert!(stats.warm_leaves > 0, "{stats:?}");
    tree.settle().unwrap();
    let stats = tree.stats();
    assert_eq!(stats.cold_leaves, stats.leaves, "{stats:?}");
    for n in 0..RECORDS {
        let expected = value(if n % 3 == 0 { n + 1 } else { n });
        assert_eq!(tree.get(&key(n)).unwrap(), Some(expected), "{n}");
    }
    tree.validate().unwrap();
}

#[test]
fn hot_records_are_those_of_the_tree() {
    let tree = loaded("auto", 50);
    let hot: Vec<u64> = (0..20).map(|n| n * 199).collect();
    let read = |expected: &dyn Fn(u64) -> Option<Vec<u8>>| {
        for n in hot.iter().cycle().take(4000) {
            assert_eq!(tree.get(&key(*n)).unwrap(), expected(*n), "{n}");
        }
        let keys: Vec<_> = hot.iter().map(|n| key(*n)).collect();
        let values = tree.get_many(&keys).unwrap();
        assert_eq!(values, hot.iter().map(|n| expected(*n)).collect::<Vec<_>>());
    };
    let until = Instant::now() + Duration::from_secs(600);
    let stats = loop {
        read(&|n| Some(value(n)));
        let stats = tree.stats();
        if stats.get_hot_hits > 2000 && stats.hot_records >= 15 {
            break stats;
        }
        // Read counts are halved periodically, which matters on a busy machine.
        assert!(Instant::now() < until, "{stats:?}");
    };
    assert!(
        stats.hot_bytes > 0 && stats.hot_bytes <= stats.user_bytes / 8,
        "{stats:?}"
    );
    for n in &hot {
        assert!(!tree.insert(&key(*n), &value(n + 1)).unwrap());
    }
    read(&|n| Some(value(n + 1)));
    for n in &hot {
        assert!(tree.replace(&key(*n), &value(n + 2)).unwrap());
        assert_eq!(tree.get(&key(*n)).unwrap(), Some(value(n + 2)));
        assert_eq!(tree.take(&key(*n)).unwrap(), Some(value(n + 2)));
    }
    read(&|_| None);
    for n in &hot {
        assert!(tree.insert(&key(*n), &value(*n)).unwrap());
    }
    read(&|n| Some(value(n)));
    tree.clear().unwrap();
    read(&|_| None);
    tree.validate().unwrap();
}

#[test]
fn hot_records_of_a_removed_range_go() {
    let tree = loaded("auto", 50);
    let hot: Vec<u64> = (0..20).map(|n| n * 199).collect();
    let until = Instant::now() + Duration::from_secs(600);
    while tree.stats().hot_records < 15 {
        for n in hot.iter().cycle().take(4000) {
            assert_eq!(tree.get(&key(*n)).unwrap(), Some(value(*n)));
        }
        assert!(Instant::now() < until, "{:?}", tree.stats());
    }
    // All leaves but the first and the last lie within the range.
    let mut keys: Vec<_> = (0..RECORDS).map(key).collect();
    keys.sort_unstable();
    let (from, to) = (keys[1].clone(), keys[keys.len() - 1].clone());
    let removed = tree.remove_range(from.clone()..to.clone(), usize::MAX).unwrap();
    assert_eq!(removed.records, RECORDS - 2);
    for n in hot {
        let stays = !(&from..&to).contains(&&key(n));
        assert_eq!(tree.get(&key(n)).unwrap(), stays.then(|| value(n)), "{n}");
    }
    tree.validate().unwrap();
}

#[test]
fn an_idle_tree_has_no_hot_records_in_the_end() {
    let tree = loaded("auto", 50);
    for n in (0..20).cycle().take(2000) {
        assert_eq!(tree.get(&key(n)).unwrap(), Some(value(n)));
    }
    assert!(tree.stats().hot_records > 0);
    let until = Instant::now() + Duration::from_secs(600);
    while tree.stats().hot_records > 0 {
        assert!(Instant::now() < until, "{:?}", tree.stats());
        std::thread::sleep(Duration::from_millis(100));
    }
    is_right(&tree);
}

#[test]
fn options_without_temperature_are_rejected() {
    let auto = Codec::Auto { level: 3 };
    assert_eq!(auto, "auto".parse().unwrap());
    assert_eq!(auto.to_string(), "auto");
    assert_eq!("auto:zstd:9".parse::<Codec>().unwrap().to_string(), "auto:zstd:9");
    // Naming the default level of `auto` explicitly gives another codec value.
    assert_eq!(auto, "auto:zstd:3".parse().unwrap());
    for wrong in ["auto:", "auto:lz4", "auto:zstd:0", "auto:auto", "auto:zstd"] {
        assert!(wrong.parse::<Codec>().is_err(), "{wrong}");
    }
    let hashed = Tree::builder()
        .codec(auto)
        .layout(Layout::Hashed { sub_pages: 4 })
        .build();
    assert!(
        matches!(hashed, Err(TreeError::Option { option: "layout", .. })),
        "{hashed:?}"
    );
    for (text, rule) in [
        ("costs", TemperatureRule::Costs { slowdown_pct: 50 }),
        ("costs:0", TemperatureRule::Costs { slowdown_pct: 0 }),
        ("deviation", TemperatureRule::Deviation { factor: 3.0 }),
        ("deviation:-0.5", TemperatureRule::Deviation { factor: -0.5 }),
        (
            "deviation:auto",
            TemperatureRule::AdaptiveDeviation { slowdown_pct: 50 },
        ),
        (
            "deviation:auto:5",
            TemperatureRule::AdaptiveDeviation { slowdown_pct: 5 },
        ),
    ] {
        let parsed: TemperatureRule = text.parse().unwrap();
        assert_eq!(parsed, rule);
        assert_eq!(parsed.to_string().parse::<TemperatureRule>().unwrap(), rule);
    }
    for wrong in [
        "",
        "cost",
        "costs:1001",
        "costs:-1",
        "deviation:x",
        "deviation:NaN",
        "deviation:2000",
        "deviation:auto:",
        "deviation:auto:1001",
    ] {
        assert!(wrong.parse::<TemperatureRule>().is_err(), "{wrong}");
    }
    let patient = Tree::builder()
        .temperature_rule(TemperatureRule::Costs { slowdown_pct: 1001 })
        .build();
    assert!(
        matches!(
            patient,
            Err(TreeError::Option {
                option: "temperature_rule",
                ..
            })
        ),
        "{patient:?}"
    );
    let opened = auto.open(&leafpress::codec::EngineOptions::default());
    assert!(matches!(opened, Err(CodecError::Unavailable { .. })));
}
