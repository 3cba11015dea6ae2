//! Every key shape under every layout: leaves of dense, scattered, nested, long and extreme keys split, merge and are
//! scanned correctly.

use crate::support::config::{Config, Dict};
use crate::support::keys::KeyShape;
use crate::support::model::{Op, check};
use crate::support::strategies::{bounds, extend, layouts, numbers, settings, small_values};
use leafpress::codec::Codec;
use proptest::collection::vec;
use proptest::prelude::*;

/// Grows and shrinks the tree by runs, with scans and point reads in between.
fn growth() -> impl Strategy<Value = Vec<Op>> {
    vec(
        prop_oneof![
            6 => (numbers(), 1u8..120, small_values()).prop_map(|(n, c, v)| Op::PutRun(n, c, v)),
            3 => extend(),
            5 => (numbers(), 1u8..120).prop_map(|(n, c)| Op::RemoveRun(n, c)),
            3 => numbers().prop_map(Op::Get),
            3 => (bounds(), bounds(), any::<u8>()).prop_map(|(l, h, t)| Op::Range(l, h, t)),
            2 => Just(Op::Validate),
            1 => Just(Op::Compact),
        ],
        1..40,
    )
}

macro_rules! shapes {
    ($($name:ident: $shape:expr;)*) => {
        proptest! {
            #![proptest_config(settings(32))]
            $(
                #[test]
                fn $name(
                    (layout, frame_bytes) in layouts(),
                    landing_bytes in prop_oneof![Just(0usize), Just(64), Just(512), Just(4096)],
                    ops in growth(),
                ) {
                    let config =
                        Config { layout, frame_bytes, landing_bytes, dictionary: Dict::Off, ..Config::default() };
                    let tree = config.build(Codec::Lz4 { acceleration: 1 }, $shape).expect("lz4 is compiled in");
                    check(&tree, $shape, &ops);
                }
            )*
        }
    };
}

shapes! {
    dense: KeyShape::Dense;
    scattered: KeyShape::Scattered;
    prefixed: KeyShape::Prefixed;
    short: KeyShape::Short;
    almost_dense: KeyShape::AlmostDense;
    one_byte: KeyShape::OneByte;
    long_prefix: KeyShape::LongPrefix;
    nested: KeyShape::Nested;
    extremes: KeyShape::Extremes;
    fields: KeyShape::Fields;
    mixed: KeyShape::Mixed;
}
