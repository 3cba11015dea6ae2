//! Records of a few bytes reach the maximum number of records of a leaf and of a frame before the maximum of bytes.

use std::collections::BTreeSet;

use leafpress::codec::Codec;
use leafpress::tree::DictionaryChoice;
use leafpress::{Layout, Tree};

/// Keys of two and three bytes, so that they are not packed, spread over the key space.
fn keys() -> BTreeSet<Vec<u8>> {
    (0..4_500u32)
        .map(|n| {
            let bytes = n.wrapping_mul(0x9E37_79B1).to_be_bytes();
            bytes[..1 + (n % 7 + 1).min(2) as usize].to_vec()
        })
        .collect()
}

fn check(layout: Layout, frame_bytes: usize) {
    let tree = Tree::builder()
        .codec(Codec::None)
        .dictionary(DictionaryChoice::Off)
        .layout(layout)
        .leaf_bytes(32 << 10)
        .frame_bytes(frame_bytes)
        .landing_bytes(16 << 10)
        .build()
        .unwrap();
    let keys = keys();
    for key in &keys {
        tree.insert(key, &[]).unwrap();
    }
    tree.compact().unwrap();
    tree.validate().unwrap();
    assert_eq!(tree.len(), keys.len());
    let scanned: BTreeSet<Vec<u8>> = tree.range(..).map(|record| record.unwrap().0).collect();
    assert!(scanned == keys);
}

#[test]
fn in_frames_as_long_as_leaves() {
    check(Layout::Ordered, 32 << 10);
}

#[test]
fn in_few_sub_pages() {
    check(Layout::Hashed { sub_pages: 4 }, 1 << 10);
}

#[test]
fn in_many_sub_pages() {
    check(Layout::Hashed { sub_pages: 64 }, 1 << 10);
}
