//! A leaf without records does not keep pointing to a dictionary that is retired.

use leafpress::codec::Codec;
use leafpress::{ShardBy, Tree};

/// Inserts records of one kind that have much in common, in the first shard.
fn fill(tree: &Tree, kind: &str) {
    for n in 0..10_000u32 {
        let value = format!(
            "{kind}-{n:08x} the {kind} record {kind}{kind} numbered {}",
            n.wrapping_mul(0x9E37_79B1)
        );
        tree.insert(format!("a{n:08}").as_bytes(), value.as_bytes()).unwrap();
    }
}

#[test]
fn an_empty_shard_outlives_the_dictionary_of_its_time() {
    let tree = Tree::builder()
        .codec(Codec::Lz4 { acceleration: 1 })
        .shards(2)
        .shard_by(ShardBy::Range(vec![b"m".to_vec()]))
        .build()
        .unwrap();
    fill(&tree, "first kind of content");
    tree.settle().unwrap();
    tree.compact().unwrap();
    let first = tree.stats().dictionary_id;
    assert_ne!(first, 0);
    tree.clear().unwrap();
    fill(&tree, "QUITE-ANOTHER/SORT.OF.DATA");
    tree.settle().unwrap();
    tree.compact().unwrap();
    assert_ne!(tree.stats().dictionary_id, first);
    tree.validate().unwrap();
    tree.insert(b"z", b"first kind of content-00000001").unwrap();
    assert_eq!(tree.get(b"z").unwrap().unwrap(), b"first kind of content-00000001");
    tree.validate().unwrap();
}
