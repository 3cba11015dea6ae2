//! Proptest strategies for configurations and operation sequences.

use std::ops::Bound;

use leafpress::Layout;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config as ProptestConfig, FileFailurePersistence};

use super::config::{Config, Dict};
use super::keys::KeyShape;
use super::model::Op;
use super::values::{Fill, Value};

/// Settings with `cases` cases, or `PROPTEST_CASES` if set. Counter-examples are stored next to the test file.
pub fn settings(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases: std::env::var("PROPTEST_CASES")
            .ok()
            .and_then(|n| n.parse().ok())
            .unwrap_or(cases),
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("proptest-regressions"))),
        max_shrink_iters: 4000,
        ..ProptestConfig::default()
    }
}

pub fn layouts() -> impl Strategy<Value = (Layout, Option<usize>)> {
    prop_oneof![
        Just((Layout::Ordered, None)),
        Just((Layout::Ordered, Some(1))),
        Just((Layout::Ordered, Some(256))),
        Just((Layout::Ordered, Some(1024))),
        Just((Layout::Hashed { sub_pages: 1 }, None)),
        Just((Layout::Hashed { sub_pages: 4 }, None)),
        Just((Layout::Hashed { sub_pages: 16 }, None)),
    ]
}

pub fn configs() -> impl Strategy<Value = Config> {
    (
        layouts(),
        prop_oneof![4 => Just(1024usize), 1 => Just(4096)],
        prop_oneof![Just(0usize), Just(64), Just(512), Just(4096)],
        prop_oneof![2 => Just((1, false)), 1 => Just((4, false)), 1 => Just((4, true))],
        prop_oneof![2 => Just(Dict::Off), 1 => Just(Dict::Auto), 1 => Just(Dict::Given)],
        prop_oneof![4 => Just(0usize), 1 => Just(1)],
        prop_oneof![3 => Just(1usize), 1 => Just(3)],
        any::<bool>(),
    )
        .prop_map(
            |(
                (layout, frame_bytes),
                leaf_bytes,
                landing_bytes,
                (shards, by_range),
                dictionary,
                background_threads,
                load_threads,
                by_caller,
            )| {
                Config {
                    layout,
                    frame_bytes,
                    leaf_bytes,
                    landing_bytes,
                    shards,
                    by_range,
                    dictionary,
                    background_threads,
                    load_threads,
                    by_caller,
                }
            },
        )
}

pub fn shapes() -> impl Strategy<Value = KeyShape> {
    proptest::sample::select(&KeyShape::ALL[..])
}

/// Numbers of few keys, so that operations use the same keys.
pub fn numbers() -> impl Strategy<Value = u16> {
    prop_oneof![3 => 0u16..40, 3 => 0u16..300, 1 => 0u16..2000]
}

pub fn fills() -> impl Strategy<Value = Fill> {
    prop_oneof![3 => Just(Fill::Text), 1 => Just(Fill::Same), 1 => Just(Fill::Noise)]
}

/// Values that fit in a leaf, many of one length.
pub fn small_values() -> impl Strategy<Value = Value> {
    value(prop_oneof![1 => Just(0u32), 1 => 1u32..9, 3 => Just(100), 3 => 0u32..300])
}

/// Values of all lengths up to 100 KiB, with emphasis on both sides of the 2 KiB limit.
pub fn values() -> impl Strategy<Value = Value> {
    value(prop_oneof![
        4 => Just(0u32),
        4 => 1u32..9,
        12 => Just(100),
        12 => 0u32..300,
        4 => 300u32..2040,
        4 => 2040u32..2060,
        4 => 2060u32..9000,
        1 => Just(100 << 10),
    ])
}

fn value(lens: impl Strategy<Value = u32>) -> impl Strategy<Value = Value> {
    (lens, fills(), any::<u16>()).prop_map(|(len, fill, seed)| Value { len, fill, seed })
}

pub fn bounds() -> impl Strategy<Value = Bound<u16>> {
    prop_oneof![
        2 => numbers().prop_map(Bound::Included),
        2 => numbers().prop_map(Bound::Excluded),
        1 => Just(Bound::Unbounded),
    ]
}

/// Long and short runs, of neighbours and with gaps that contain other keys.
pub fn extend() -> impl Strategy<Value = Op> {
    (
        numbers(),
        1u8..200,
        prop_oneof![2 => Just(1u8), 1 => 2u8..9],
        any::<bool>(),
        small_values(),
    )
        .prop_map(|(n, count, apart, sorted, value)| Op::Extend {
            n,
            count,
            apart,
            sorted,
            value,
        })
}

pub fn ops() -> impl Strategy<Value = Vec<Op>> {
    vec(op(), 1..150)
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        20 => (numbers(), values()).prop_map(|(n, v)| Op::Put(n, v)),
        6 => (numbers(), values()).prop_map(|(n, v)| Op::InsertIfAbsent(n, v)),
        6 => (numbers(), values()).prop_map(|(n, v)| Op::UpdateIfPresent(n, v)),
        4 => (numbers(), values()).prop_map(|(n, v)| Op::Swap(n, v)),
        6 => (numbers(), any::<bool>(), proptest::option::of(values()))
            .prop_map(|(n, is_expected, new)| Op::CompareAndSwap { n, is_expected, new }),
        6 => (numbers(), values()).prop_map(|(n, v)| Op::UpdateWith(n, v)),
        6 => numbers().prop_map(Op::Get),
        4 => numbers().prop_map(Op::GetInto),
        4 => numbers().prop_map(Op::GetWith),
        4 => (numbers(), 0u8..40, any::<u8>()).prop_map(|(n, c, a)| Op::GetMany(n, c, a)),
        4 => numbers().prop_map(Op::ContainsKey),
        10 => numbers().prop_map(Op::Remove),
        8 => (numbers(), 1u8..60, small_values()).prop_map(|(n, c, v)| Op::PutRun(n, c, v)),
        6 => (numbers(), 1u8..80).prop_map(|(n, c)| Op::RemoveRun(n, c)),
        8 => extend(),
        8 => (bounds(), bounds(), any::<u8>()).prop_map(|(l, h, t)| Op::Range(l, h, t)),
        6 => (bounds(), bounds(), 0u8..60).prop_map(|(l, h, n)| Op::RemoveRange(l, h, n)),
        4 => (1u8..60).prop_map(Op::Upkeep),
        2 => Just(Op::RequestTraining),
        1 => Just(Op::RequestCompaction),
        1 => Just(Op::FullScan),
        2 => Just(Op::Len),
        1 => Just(Op::Clear),
        3 => Just(Op::Compact),
        2 => Just(Op::Settle),
        4 => Just(Op::Validate),
    ]
}
