//! Batched reads: order, count, errors for one of the keys, and nested calls.

use std::sync::Arc;

use crate::support::engine::RunLength;
use leafpress::Tree;
use leafpress::codec::CodecError;
use leafpress::tree::{DictionaryChoice, TreeError};

fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

fn value(n: u32) -> Vec<u8> {
    vec![n as u8; 20 + n as usize % 200]
}

/// Even keys below `2 * records` are present, so that every leaf, level and part of a call is covered.
fn filled(shards: usize, records: u32) -> Tree {
    let tree = Tree::builder().shards(shards).leaf_bytes(4096).build().unwrap();
    for n in 0..records {
        tree.insert(&key(2 * n), &value(2 * n)).unwrap();
    }
    tree
}

#[test]
fn values_come_in_the_order_of_the_keys_whatever_their_number() {
    for (shards, records) in [(1, 0), (1, 1), (1, 20), (8, 300), (3, 20_000)] {
        let tree = filled(shards, records);
        let mut rng = fastrand::Rng::with_seed(u64::from(records));
        for count in (0..40).chain([100, 1000]) {
            // Some keys are absent, and some are repeated.
            let numbers: Vec<u32> = (0..count).map(|_| rng.u32(..2 * records + 2)).collect();
            let keys: Vec<_> = numbers.iter().map(|&n| key(n)).collect();
            let expected: Vec<_> = numbers
                .iter()
                .map(|&n| (n < 2 * records && n % 2 == 0).then(|| value(n)))
                .collect();
            assert!(tree.get_many(&keys).unwrap() == expected, "{count} keys of {records}");
            let mut seen = Vec::new();
            tree.get_many_with(&keys, |index, value| {
                assert_eq!(index, seen.len());
                seen.push(value.map(<[u8]>::to_vec));
            })
            .unwrap();
            assert!(seen == expected, "{count} keys of {records}");
        }
    }
}

#[test]
fn every_key_counts_as_a_read() {
    let tree = filled(2, 1000);
    let keys: Vec<_> = (0..1000).map(key).collect();
    let before = tree.stats();
    tree.get_many(&keys).unwrap();
    let after = tree.stats();
    assert_eq!(after.gets - before.gets, 1000);
    assert!(after.get_frames_decoded + after.get_landing_hits > before.get_frames_decoded + before.get_landing_hits);
}

#[test]
fn keys_of_any_kind_and_large_values_are_read() {
    let tree = Tree::builder().build().unwrap();
    let large = vec![7; 100_000];
    for (key, value) in [
        ("", &b"of no key"[..]),
        ("a", b""),
        ("large", &large),
        (&"k".repeat(1024), b"long"),
    ] {
        tree.insert(key.as_bytes(), value).unwrap();
    }
    let keys = [
        String::new(),
        "a".into(),
        "large".into(),
        "k".repeat(1024),
        "k".repeat(1025),
        "b".into(),
    ];
    let values = tree.get_many(&keys).unwrap();
    let lengths: Vec<_> = values.iter().map(|value| value.as_ref().map(Vec::len)).collect();
    assert_eq!(lengths, [Some(9), Some(0), Some(100_000), Some(4), None, None]);
    assert!(values[2].as_ref() == Some(&large));
}

#[test]
fn a_call_may_be_made_within_a_call() {
    let tree = filled(2, 5000);
    let keys: Vec<_> = (0..50).map(|n| key(200 * n)).collect();
    tree.get_many_with(&keys, |index, found| {
        let n = 200 * index as u32;
        let others = tree.get_many(&[key(n + 2), key(n + 1)]).unwrap();
        assert_eq!(others, [Some(value(n + 2)), None]);
        tree.insert(&key(n + 1), b"odd").unwrap();
        tree.remove(&key(n + 1)).unwrap();
        assert_eq!(tree.get(&key(n + 4)).unwrap(), Some(value(n + 4)));
        assert!(
            found == Some(value(n).as_slice()),
            "the nested calls have their own buffers"
        );
    })
    .unwrap();
    tree.validate().unwrap();
}

#[test]
fn a_value_that_cannot_be_decoded_takes_no_other_with_it() {
    let engine = Arc::new(RunLength::default());
    let tree = Tree::builder()
        .frame_bytes(512)
        .engine(engine.clone())
        .dictionary(DictionaryChoice::Off)
        .build()
        .unwrap();
    for n in 0..1000 {
        tree.insert(&key(n), &[n as u8; 100]).unwrap();
    }
    tree.compact().unwrap();
    let keys: Vec<_> = (0..20).map(|n| key(n * 50)).collect();
    // Every other one is read from the landing buffer, without decoding.
    for index in (1..20).step_by(2) {
        tree.insert(&key(index * 50), &[(index * 50) as u8; 100]).unwrap();
    }
    for failing in 0..10 {
        engine.faults.fail_decompress(failing);
        let mut read = Vec::new();
        let result = tree.get_many_with(&keys, |index, value| {
            assert_eq!(value, Some(&[(index * 50) as u8; 100][..]));
            read.push(index as u32);
        });
        assert!(
            matches!(result, Err(TreeError::Codec(CodecError::Failed { codec: "rle", .. }))),
            "{result:?}"
        );
        assert!(tree.get_many(&keys).is_err());
        engine.faults.clear();
        let expected: Vec<_> = (0..20).filter(|&index| index % 2 == 1 || index / 2 < failing).collect();
        assert_eq!(read, expected);
    }
    assert_eq!(tree.get_many(&keys).unwrap().iter().flatten().count(), 20);
}
