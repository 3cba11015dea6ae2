//! Frames have their target length: a frame that is cut too early compresses less.

use leafpress::{Codec, Tree};

const FRAME_BYTES: u64 = 512;

#[test]
fn short_records_fill_their_frames() {
    const VALUE_BYTES: usize = 36;
    let tree = Tree::builder()
        .codec(Codec::Zstd { level: 1 })
        .frame_bytes(FRAME_BYTES as usize)
        .dictionary(leafpress::tree::DictionaryChoice::Off)
        .build()
        .unwrap();
    for n in 0..20_000u64 {
        let value = format!("{n:08} and {:024x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        tree.insert(&n.to_be_bytes(), &value.as_bytes()[..VALUE_BYTES]).unwrap();
    }
    tree.settle().unwrap();
    let stats = tree.stats();
    // These keys are packed, and not in the frames.
    let raw_bytes = stats.user_bytes - 8 * stats.records;
    let mean = raw_bytes / stats.frames;
    assert!(
        (FRAME_BYTES * 95 / 100..FRAME_BYTES * 5 / 4).contains(&mean),
        "frames hold {mean} bytes: {stats:?}"
    );
}

#[test]
fn frames_of_empty_values_hold_many_but_not_all() {
    let tree = Tree::builder().codec(Codec::Zstd { level: 1 }).build().unwrap();
    for n in 0..4000u64 {
        tree.insert(&n.to_be_bytes(), b"").unwrap();
    }
    tree.compact().unwrap();
    tree.validate().unwrap();
    let stats = tree.stats();
    assert!(stats.frames >= stats.records / 1024, "{stats:?}");
    assert_eq!(tree.range(..).count(), 4000);
}
