//! Shards by hash keep neighbouring keys together, so that a tree of many shards takes about the memory of a tree of
//! one.

use leafpress::tree::DictionaryChoice;
use leafpress::{Codec, Tree};

const RECORDS: u64 = 20_000;

/// Returns the bytes held for records whose neighbours are similar: sixteen have one random text.
fn held(shards: usize, key: impl Fn(u64) -> Vec<u8>) -> u64 {
    let tree = Tree::builder()
        .codec(Codec::Zstd { level: 1 })
        .dictionary(DictionaryChoice::Off)
        .shards(shards)
        .build()
        .unwrap();
    for n in 0..RECORDS {
        let mut rng = fastrand::Rng::with_seed(n / 16);
        let value: Vec<u8> = std::iter::repeat_with(|| rng.u8(..)).take(120).collect();
        tree.insert(&key(n), &value).unwrap();
    }
    tree.settle().unwrap();
    tree.stats().bytes_held
}

fn alike(key: impl Fn(u64) -> Vec<u8>) {
    let (one, eight) = (held(1, &key), held(8, &key));
    // This includes holes that are not closed yet. Without neighbours it would be several times as much.
    assert!(eight < one + one / 6, "{eight} bytes in eight shards, {one} in one");
}

#[test]
fn numbers() {
    alike(|n| n.to_be_bytes().to_vec());
}

#[test]
fn numbers_behind_a_prefix() {
    alike(|n| [b"record-", n.to_be_bytes().as_slice()].concat());
}
