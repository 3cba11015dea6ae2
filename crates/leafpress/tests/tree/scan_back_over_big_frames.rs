//! A reverse scan continues past a single frame that fills a whole batch.

use leafpress::codec::Codec;
use leafpress::tree::DictionaryChoice;
use leafpress::{Layout, Tree};

/// Returns the keys of the tree in descending order.
fn backwards(tree: &Tree) -> Vec<Vec<u8>> {
    tree.range(..).rev().map(|record| record.unwrap().0).collect()
}

fn tree(frame_bytes: usize) -> Tree {
    Tree::builder()
        .codec(Codec::None)
        .dictionary(DictionaryChoice::Off)
        .layout(Layout::Ordered)
        .leaf_bytes(32 << 10)
        .frame_bytes(frame_bytes)
        .build()
        .unwrap()
}

#[test]
fn frames_of_one_value_as_large_as_a_batch() {
    let tree = tree(1);
    let value = vec![7; 4 << 20];
    for key in [b"a", b"b", b"c"] {
        tree.insert(key, &value).unwrap();
    }
    tree.compact().unwrap();
    assert_eq!(backwards(&tree), [b"c", b"b", b"a"]);
}

#[test]
fn frames_of_as_many_records_as_a_batch() {
    let tree = tree(8 << 10);
    let keys: Vec<Vec<u8>> = (0..4000u32).map(|n| n.to_be_bytes().to_vec()).collect();
    for key in &keys {
        tree.insert(key, &[]).unwrap();
    }
    tree.compact().unwrap();
    tree.validate().unwrap();
    let mut seen = backwards(&tree);
    seen.reverse();
    assert!(seen == keys);
}
