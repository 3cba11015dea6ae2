//! Frames that decode to wrong bytes: every operation returns a result or an error, and no other frame's record is
//! lost.

use crate::support::hostile::{Fault, Options, Plan, Step, check};
use crate::support::keys::KeyShape;
use crate::support::strategies::{settings, shapes};
use leafpress::Layout;
use proptest::collection::vec;
use proptest::prelude::*;

fn faults() -> impl Strategy<Value = Fault> {
    prop_oneof![
        4 => (0u16..600, any::<u8>()).prop_map(|(at, mask)| Fault::Flip(at, mask)),
        4 => (0u16..600, vec(any::<u8>(), 1..40)).prop_map(|(at, bytes)| Fault::Splice(at, bytes)),
        4 => (0u16..600).prop_map(Fault::Other),
        4 => vec(prop_oneof![0u8..12, any::<u8>()], 1..40).prop_map(Fault::BeforeValues),
        1 => any::<i8>().prop_map(Fault::Length),
        1 => Just(Fault::Refused),
    ]
}

fn plans() -> impl Strategy<Value = Plan> {
    (faults(), 0u8..8, 1u8..4).prop_map(|(fault, after, one_in)| Plan { fault, after, one_in })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let number = || 0u16..300;
    let len = || prop_oneof![4 => Just(40u16), 2 => 0u16..100, 1 => 2040u16..2060];
    let step = prop_oneof![
        4 => (number(), 1u8..60, len()).prop_map(|(first, count, len)| Step::Put { first, count, len }),
        1 => (number(), len()).prop_map(|(n, len)| Step::Insert(n, len)),
        1 => (number(), len()).prop_map(|(n, len)| Step::Update(n, len)),
        3 => (number(), 1u8..40).prop_map(|(first, count)| Step::Remove { first, count }),
        1 => number().prop_map(Step::Get),
        1 => number().prop_map(Step::Contains),
        2 => (number(), any::<bool>()).prop_map(|(from, back)| Step::Scan { from, back }),
        1 => Just(Step::Compact),
        1 => Just(Step::Settle),
        1 => Just(Step::Validate),
        1 => Just(Step::Stats),
        3 => plans().prop_map(|plan| Step::Plan(Some(plan))),
        2 => Just(Step::Plan(None)),
    ];
    vec(step, 1..60)
}

fn options() -> impl Strategy<Value = Options> {
    let layouts = prop_oneof![
        3 => Just(Layout::Ordered),
        1 => Just(Layout::Hashed { sub_pages: 1 }),
        1 => Just(Layout::Hashed { sub_pages: 4 }),
    ];
    let frame_bytes = prop_oneof![Just(1usize), Just(256), Just(1024)];
    let landing_bytes = prop_oneof![Just(0usize), Just(512), Just(4096)];
    (
        layouts,
        frame_bytes,
        any::<bool>(),
        landing_bytes,
        shapes(),
        any::<bool>(),
    )
        .prop_map(
            |(layout, frame_bytes, keyed, landing_bytes, shape, has_temperatures)| Options {
                layout,
                frame_bytes,
                keyed,
                landing_bytes,
                shape,
                has_temperatures,
            },
        )
}

proptest! {
    #![proptest_config(settings(200))]

    #[test]
    fn wrong_bytes_harm_only_their_own_frame(options in options(), steps in steps()) {
        check(options, &steps);
    }
}

/// Corrupts the last keys of half of all frames: the bytes before their values are those of `entry`. Only one in 256
/// has the matching fingerprint and is accepted: found by search, with `n` at the end.
fn wrong_last_keys(layout: Layout, keyed: bool, entry: impl Fn(u8) -> Vec<u8>) {
    let options = Options {
        layout,
        frame_bytes: if keyed { 1 } else { 256 },
        keyed,
        landing_bytes: 0,
        shape: KeyShape::Fields,
        has_temperatures: false,
    };
    let put = |number, len| Step::Put {
        first: number,
        count: 1,
        len,
    };
    for n in 0..=255 {
        let plan = Plan {
            fault: Fault::BeforeValues(entry(n)),
            after: 0,
            one_in: 2,
        };
        // Keys of two lengths, so that they are stored in the frames.
        let mut steps: Vec<Step> = (0..100).step_by(2).map(|number| put(number, 60)).collect();
        steps.push(Step::Plan(Some(plan)));
        steps.extend((0..100).step_by(6).map(|number| put(number, 50)));
        check(options, &steps);
    }
}

#[test]
fn a_key_beyond_its_leaf_is_not_kept() {
    // The bytes shared with the frame's base, the length of the rest, and the rest.
    let in_frame = |shared, rest: &'static [u8]| move |n| [&[shared, rest.len() as u8 + 1], rest, &[n]].concat();
    for shared in 0..=2 {
        wrong_last_keys(Layout::Ordered, false, in_frame(shared, b"~~~"));
        wrong_last_keys(Layout::Ordered, false, in_frame(shared, b"~~~~~~~"));
    }
    wrong_last_keys(Layout::Hashed { sub_pages: 2 }, false, in_frame(0, b"~~~~"));
    wrong_last_keys(Layout::Hashed { sub_pages: 2 }, false, in_frame(0, b"~~~~~~~~"));
    for len in 1..8 {
        wrong_last_keys(Layout::Ordered, true, |n| [&[b'~'; 8][..len], &[n]].concat());
        wrong_last_keys(Layout::Ordered, true, |n| [&[b' '; 8][..len], &[n]].concat());
    }
}
