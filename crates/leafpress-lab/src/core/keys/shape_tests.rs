use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

fn key(shape: KeyShape, id: u64, seed: u64, key_bytes: usize) -> Vec<u8> {
    let mut key = b"left over".to_vec();
    shape.write(id, seed, key_bytes, &mut key);
    key
}

/// Bounds of a key's length, which the documentation of the shapes names.
fn lengths(shape: KeyShape, key_bytes: usize) -> std::ops::RangeInclusive<usize> {
    match shape {
        KeyShape::Dense | KeyShape::Scattered => key_bytes..=key_bytes,
        KeyShape::Text => 22..=48,
        KeyShape::Uuid => 36..=36,
        KeyShape::Path => 57..=80,
    }
}

proptest! {
    #[test]
    fn keys_of_a_run_differ_and_have_their_lengths(
        shape in prop::sample::select(KeyShape::ALL.to_vec()),
        first in 0..1_u64 << 47,
        seed: u64,
        key_bytes in 8_usize..40,
    ) {
        let keys: HashSet<_> = (first..first + 500).map(|id| key(shape, id, seed, key_bytes)).collect();
        prop_assert_eq!(keys.len(), 500);
        for key in keys {
            prop_assert!(lengths(shape, key_bytes).contains(&key.len()), "{}", key.escape_ascii());
        }
    }

    #[test]
    fn keys_far_apart_differ(
        shape in prop::sample::select(KeyShape::ALL.to_vec()), one in 0..1_u64 << 48, other in 0..1_u64 << 48, seed: u64
    ) {
        prop_assume!(one != other);
        prop_assert_ne!(key(shape, one, seed, 8), key(shape, other, seed, 8));
    }

    #[test]
    fn dense_keys_keep_the_order_of_their_numbers(one: u32, other: u32, key_bytes in 4_usize..40) {
        let shape = KeyShape::Dense;
        prop_assert!(shape.keeps_order());
        let [one_key, other_key] = [one, other].map(|number| key(shape, number.into(), 1, key_bytes));
        prop_assert_eq!(one.cmp(&other), one_key.cmp(&other_key));
    }

    #[test]
    fn the_bijection_stays_below_2_to_the_48(id in 0..1_u64 << 48, seed: u64) {
        prop_assert!(scatter_48(id, seed) < 1 << 48);
    }

    #[test]
    fn a_set_is_sorted_and_holds_every_key(
        shape in prop::sample::select(KeyShape::ALL.to_vec()), count in 1_u64..300, seed: u64
    ) {
        let set = shape.keys(count, seed, 8);
        prop_assert_eq!(set.len(), count);
        prop_assert!((1..count).all(|id| set.get(id - 1) < set.get(id)));
        for id in 0..count {
            prop_assert!(set.find(&key(shape, id, seed, 8), 0).is_some());
        }
    }
}

/// Samples of the shapes; a change of these changes every figure measured with them.
#[test]
fn keys_look_as_documented() {
    let shown = |shape: KeyShape| {
        let keys = (0..3).map(|id| key(shape, id, 1, 8).escape_ascii().to_string());
        keys.collect::<Vec<_>>()
    };
    let seen: Vec<_> = KeyShape::ALL
        .into_iter()
        .map(|shape| (shape.to_string(), shown(shape)))
        .collect();
    let golden = include_str!("shape_golden.txt");
    let text: String = seen
        .iter()
        .map(|(shape, keys)| format!("{shape}\n  {}\n", keys.join("\n  ")))
        .collect();
    assert_eq!(text, golden);
}

#[test]
fn uuids_are_of_version_4() {
    for id in 0..200 {
        let uuid = String::from_utf8(key(KeyShape::Uuid, id, 7, 8)).unwrap();
        let groups: Vec<_> = uuid.split('-').map(str::len).collect();
        assert_eq!(groups, [8, 4, 4, 4, 12], "{uuid}");
        assert_eq!(uuid.as_bytes()[14], b'4', "{uuid}");
        assert!(matches!(uuid.as_bytes()[19], b'8' | b'9' | b'a' | b'b'), "{uuid}");
        assert!(
            uuid.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit()),
            "{uuid}"
        );
    }
}

#[test]
fn names_round_trip() {
    for shape in KeyShape::ALL {
        assert_eq!(shape.to_string().parse::<KeyShape>().unwrap(), shape);
    }
    let message = "words".parse::<KeyShape>().unwrap_err().to_string();
    assert!(
        message.starts_with("key-shape: unknown shape `words`") && message.contains("scattered"),
        "{message}"
    );
    assert!(
        KeyShape::Scattered
            .validate(7)
            .unwrap_err()
            .to_string()
            .starts_with("key-bytes: 7")
    );
    KeyShape::Dense.validate(4).unwrap();
}
