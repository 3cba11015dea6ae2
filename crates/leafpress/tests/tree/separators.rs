//! The descent to a leaf finds every key, whatever its separators: common prefixes of every length, separators that are
//! equal in their first eight bytes, keys shorter than the common prefix of others, nodes with the maximum number of
//! children.

use leafpress::tree::DictionaryChoice;
use leafpress::{Codec, Tree};

/// Builds a tree of small leaves with three levels from these keys, inserted in this order.
fn tree_of(keys: &[Vec<u8>]) -> Tree {
    let tree = Tree::builder()
        .codec(Codec::None)
        .dictionary(DictionaryChoice::Off)
        .leaf_bytes(1024)
        .landing_bytes(64)
        .build()
        .unwrap();
    for key in keys {
        tree.insert(key, &[7; 200]).unwrap();
    }
    tree.validate().unwrap();
    tree
}

/// Checks gets, absent neighbours and scans from every key on.
fn check(mut keys: Vec<Vec<u8>>) {
    let tree = tree_of(&keys);
    keys.sort();
    keys.dedup();
    assert_eq!(tree.len(), keys.len());
    for (index, key) in keys.iter().enumerate() {
        assert!(tree.get(key).unwrap().is_some(), "{key:02x?}");
        for absent in [[key.as_slice(), &[0]].concat(), key[..key.len() - 1].to_vec()] {
            let there = keys.binary_search(&absent).is_ok();
            assert_eq!(tree.get(&absent).unwrap().is_some(), there, "{absent:02x?}");
        }
        let next = tree.range([key.as_slice(), &[0]].concat().as_slice()..).next();
        assert_eq!(next.map(|record| record.unwrap().0).as_ref(), keys.get(index + 1));
        let before = tree.range(..key.as_slice()).next_back();
        let expected = index.checked_sub(1).map(|before| &keys[before]);
        assert_eq!(before.map(|record| record.unwrap().0).as_ref(), expected);
    }
}

/// Returns the numbers below `count` in an order with large distances.
fn scattered(count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(move |index| index * 7919 % count)
}

const RECORDS: u64 = 3000;

#[test]
fn prefixes_of_every_length() {
    for prefix in 0..=12 {
        for width in [2, 4, 8] {
            let key = |n: u64| [vec![0x61; prefix], n.to_be_bytes()[8 - width..].to_vec()].concat();
            check(scattered(RECORDS).map(key).collect());
        }
    }
}

#[test]
fn keys_that_are_equal_for_long() {
    let key = |n: u64| [&[(n % 3) as u8; 3][..], &[0; 17], &n.to_be_bytes()[6..]].concat();
    check(scattered(RECORDS).map(key).collect());
}

#[test]
fn the_greatest_heads_there_are() {
    let key = |n: u64| [&[0xFF; 9][..], &[n as u8; 1], &(n >> 8).to_be_bytes()[7..], &[0xFF; 8]].concat();
    check(scattered(RECORDS).map(key).collect());
    let key = |n: u64| (u64::MAX - n).to_be_bytes().to_vec();
    check(scattered(RECORDS).map(key).collect());
}

#[test]
fn keys_of_every_length() {
    let key = |n: u64| vec![(n % 5) as u8 * 60; 1 + (n / 5) as usize];
    check(scattered(RECORDS).map(key).collect());
    let key = |n: u64| n.to_string().into_bytes();
    check((0..RECORDS).map(key).collect());
}
