//! The fuzz target `leaf` on cases that are not guided by coverage, and corruption of every byte of a few leaves.

#![allow(dead_code)] // The shared modules contain more than is used here.

#[path = "../../../tests/support/config.rs"]
mod config;
#[path = "../../../tests/support/damage.rs"]
mod damage;
#[path = "../../../tests/support/hostile.rs"]
mod hostile;
#[path = "../../../tests/support/keys.rs"]
mod keys;
#[path = "../../../tests/support/leaf.rs"]
mod leaf;
#[path = "../../../tests/support/leaf_reader.rs"]
mod leaf_reader;
#[path = "../../../tests/support/model.rs"]
mod model;
#[path = "../../../tests/support/strategies.rs"]
mod strategies;
#[path = "../../../tests/support/values.rs"]
mod values;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::tree::fuzz::tests::damage::Damage;
use crate::tree::fuzz::tests::keys::KeyShape;
use crate::tree::fuzz::tests::leaf::{Case, Coder, Keys, Round, Run, check};
use crate::tree::fuzz::tests::values::{Fill, Value};
use crate::{Codec, Layout};

fn layouts() -> impl Strategy<Value = (Layout, usize)> {
    prop_oneof![
        3 => Just((Layout::Ordered, 1)),
        2 => Just((Layout::Ordered, 64)),
        3 => Just((Layout::Ordered, 256)),
        2 => Just((Layout::Ordered, 1024)),
        1 => Just((Layout::Hashed { sub_pages: 1 }, 1024)),
        2 => Just((Layout::Hashed { sub_pages: 4 }, 1024)),
        1 => Just((Layout::Hashed { sub_pages: 64 }, 1024)),
    ]
}

fn coders() -> impl Strategy<Value = Coder> {
    prop_oneof![
        3 => Just(Coder::Numbers),
        1 => Just(Coder::Codec(Codec::None)),
        1 => Just(Coder::Codec(Codec::Lz4 { acceleration: 1 })),
        1 => Just(Coder::Codec(Codec::Zstd { level: 1 })),
        1 => Just(Coder::Codec(Codec::OnPair { bits: 12 })),
        1 => Just(Coder::Codec(Codec::Deflate { level: 1 })),
    ]
}

fn key_makers() -> impl Strategy<Value = Keys> {
    let prefixes = prop_oneof![
        3 => vec(any::<u8>(), 0..4),
        1 => vec(Just(b'p'), 100..1017),
    ];
    // Steps of every width, so that packed keys have every width.
    let steps = (0u32..64, 1u64..4).prop_map(|(bits, factor)| factor << bits);
    let bases = prop_oneof![Just(0u64), Just(u64::MAX), any::<u64>()];
    prop_oneof![
        strategies::shapes().prop_map(Keys::Shape),
        (prefixes, 0u8..9, bases, steps).prop_map(|(prefix, bytes, base, step)| Keys::Numbers {
            prefix,
            bytes,
            base,
            step
        }),
    ]
}

fn values() -> impl Strategy<Value = Value> {
    let lens = prop_oneof![1 => Just(0u32), 2 => 1u32..9, 3 => Just(40), 3 => 0u32..300, 1 => 2040u32..2060];
    (lens, strategies::fills(), any::<u16>()).prop_map(|(len, fill, seed)| Value { len, fill, seed })
}

fn runs(most: u16) -> impl Strategy<Value = Run> {
    let longer = prop_oneof![3 => Just(0u16), 2 => 1u16..20, 1 => 20u16..600];
    (strategies::numbers(), 1..most, values(), longer).prop_map(|(first, count, value, longer)| Run {
        first,
        count,
        value,
        longer,
    })
}

fn rounds() -> impl Strategy<Value = Round> {
    (vec(runs(20), 0..4), vec(runs(40), 0..3), any::<bool>()).prop_map(|(puts, removes, anew)| Round {
        puts,
        removes,
        anew,
    })
}

fn free_keys() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![Just(0u8), Just(b'a'), Just(0xff), any::<u8>()], 0..12)
}

fn damages() -> impl Strategy<Value = Damage> {
    let places = || prop_oneof![3 => 0u16..40, 1 => any::<u16>()];
    let bytes = || vec(prop_oneof![0u8..12, any::<u8>()], 1..40);
    prop_oneof![
        4 => (places(), any::<u8>()).prop_map(|(at, mask)| Damage::Flip(at, mask)),
        4 => (places(), bytes()).prop_map(|(at, bytes)| Damage::Splice(at, bytes)),
        2 => any::<u16>().prop_map(Damage::Cut),
        1 => bytes().prop_map(Damage::Extend),
        1 => Just(Damage::Refuse),
    ]
}

fn cases() -> impl Strategy<Value = Case> {
    let leaf_bytes = prop_oneof![2 => Just(1024usize), 2 => Just(8192), 1 => Just(32 << 10)];
    let options = (layouts(), leaf_bytes, coders(), any::<bool>(), any::<bool>());
    let records = (key_makers(), vec(runs(120), 0..4), vec((free_keys(), values()), 0..3));
    let queries = (
        vec(rounds(), 0..4),
        vec(free_keys(), 0..8),
        vec((any::<u16>(), damages()), 0..8),
    );
    (options, records, queries).prop_map(
        |(
            ((layout, frame_bytes), leaf_bytes, coder, dictionary, keyed),
            (keys, runs, others),
            (rounds, probes, damages),
        )| {
            Case {
                layout,
                leaf_bytes,
                frame_bytes,
                coder,
                dictionary,
                keyed,
                keys,
                runs,
                others,
                rounds,
                probes,
                damages,
            }
        },
    )
}

proptest! {
    #![proptest_config(strategies::settings(300))]

    #[test]
    #[cfg_attr(miri, ignore = "codecs in C, which Miri does not run")]
    fn a_leaf_reads_back_what_was_pressed(case in cases()) {
        check(&case);
    }
}

/// A leaf of few records with keys of this shape.
fn small((layout, frame_bytes, keyed): (Layout, usize, bool), shape: KeyShape) -> Case {
    let value = |len, seed| Value {
        len,
        fill: Fill::Text,
        seed,
    };
    let run = |first, count, len, longer| Run {
        first,
        count,
        value: value(len, first),
        longer,
    };
    Case {
        layout,
        leaf_bytes: 4096,
        frame_bytes,
        coder: Coder::Numbers,
        dictionary: false,
        keyed,
        keys: Keys::Shape(shape),
        runs: vec![run(0, 8, 3, 5), run(20, 1, 2049, 0)],
        others: Vec::new(),
        rounds: vec![
            Round {
                puts: vec![run(3, 2, 9, 0), run(30, 2, 0, 0)],
                removes: vec![run(6, 1, 0, 0)],
                anew: false,
            },
            Round {
                puts: vec![run(20, 1, 30, 0), run(9, 1, 2050, 0)],
                removes: vec![run(0, 2, 0, 0)],
                anew: true,
            },
        ],
        probes: vec![b"account:".to_vec(), b"user:".to_vec(), vec![0; 8], vec![0; 7]],
        damages: Vec::new(),
    }
}

/// Layouts, frame bytes, and whether blocks hold the keys.
const FORMS: [(Layout, usize, bool); 5] = [
    (Layout::Ordered, 1, false),
    (Layout::Ordered, 1, true),
    (Layout::Ordered, 128, false),
    (Layout::Hashed { sub_pages: 1 }, 1024, false),
    (Layout::Hashed { sub_pages: 3 }, 1024, false),
];
const SHAPES: [KeyShape; 6] = [
    KeyShape::Dense,
    KeyShape::Prefixed,
    KeyShape::Nested,
    KeyShape::Extremes,
    KeyShape::AlmostDense,
    KeyShape::Fields,
];

#[test]
fn every_form_reads_back_and_survives_corruption_of_any_byte() {
    // Miri takes a second for what otherwise takes a millisecond.
    let (shapes, frames, bytes, masks) = match cfg!(miri) {
        true => (&SHAPES[1..2], 1, 2, 1),
        false => (&SHAPES[..], 5, 120, 8),
    };
    for form in FORMS {
        for shape in shapes {
            let mut case = small(form, *shape);
            for frame in 0..frames {
                for at in 0..bytes {
                    case.damages.push((frame, Damage::Cut(at)));
                    let flips = (0..masks).map(|bit| Damage::Flip(at, 1 << bit));
                    case.damages.extend(flips.map(|flip| (frame, flip)));
                    case.damages.push((frame, Damage::Splice(at, vec![0xff, 0xff, 0xff])));
                }
                case.damages.push((frame, Damage::Extend(vec![0])));
                case.damages.push((frame, Damage::Refuse));
            }
            check(&case);
        }
    }
}

/// As many records as a leaf may have, and one more.
#[test]
#[cfg_attr(miri, ignore = "thousands of records")]
fn leaves_as_full_as_they_may_be_read_back() {
    for form in FORMS {
        for count in [4096, 4097] {
            let mut case = small(form, KeyShape::Short);
            case.leaf_bytes = 32 << 10;
            case.runs = vec![Run {
                first: 0,
                count,
                value: Value {
                    len: 1,
                    fill: Fill::Noise,
                    seed: 1,
                },
                longer: 0,
            }];
            case.rounds.truncate(1);
            check(&case);
        }
    }
}
