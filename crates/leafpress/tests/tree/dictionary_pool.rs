//! Trees with similar records share a dictionary, and hold it once.

use leafpress::codec::DictionaryPool;
use leafpress::{Tree, TreeBuilder};

const RECORDS: u32 = 20_000;

fn builder(codec: &str, pool: &DictionaryPool) -> TreeBuilder {
    // The frame length is given: a chosen one would make another dictionary worth training.
    Tree::builder()
        .codec(codec.parse().unwrap())
        .frame_bytes(512)
        .dictionary_pool(pool.clone())
}

fn value(kind: &str, n: u32) -> Vec<u8> {
    let scattered = n.wrapping_mul(0x9e37_79b9);
    format!("{kind}{scattered:08x} leaves {kind}{:06} and frames {kind}", n % 977).into_bytes()
}

fn filled(builder: TreeBuilder, kind: &str) -> Tree {
    let tree = builder.build().unwrap();
    for n in 0..RECORDS {
        tree.insert(&n.to_be_bytes(), &value(kind, n)).unwrap();
    }
    tree.settle().unwrap();
    tree
}

fn is_right(tree: &Tree, kind: &str) {
    for n in 0..RECORDS {
        assert_eq!(tree.get(&n.to_be_bytes()).unwrap(), Some(value(kind, n)));
    }
    tree.validate().unwrap();
}

#[test]
fn a_second_tree_takes_the_firsts_dictionary() {
    for codec in ["lz4", "zstd:1"] {
        let pool = DictionaryPool::new();
        assert!(pool.is_empty());
        let first = filled(builder(codec, &pool), "the press holds ");
        assert_ne!(first.stats().dictionary_id, 0, "{codec}");
        let alone = first.stats().dictionary_bytes;
        assert_eq!((pool.len(), pool.held_bytes()), (1, alone), "{codec}");
        let second = filled(builder(codec, &pool), "the press holds ");
        assert_eq!(first.stats().dictionary_id, second.stats().dictionary_id, "{codec}");
        assert_eq!(pool.len(), 1, "{codec}");
        let parts = first.stats().dictionary_bytes + second.stats().dictionary_bytes;
        assert!(
            (pool.held_bytes()..=pool.held_bytes() + 1).contains(&parts),
            "{codec}: {parts}"
        );
        assert!(first.stats().dictionary_bytes < alone, "{codec}");
        drop(first);
        is_right(&second, "the press holds ");
        assert_eq!(second.stats().dictionary_bytes, pool.held_bytes(), "{codec}");
        drop(second);
        assert!(pool.is_empty(), "{codec}");
    }
}

#[test]
fn a_tree_of_other_records_or_of_another_codec_has_its_own() {
    let pool = DictionaryPool::new();
    let press = filled(builder("zstd:1", &pool), "the press holds ");
    let mill = filled(builder("zstd:1", &pool), "of all mills ");
    assert_ne!(press.stats().dictionary_id, mill.stats().dictionary_id);
    let lz4 = filled(builder("lz4", &pool), "the press holds ");
    assert_ne!(lz4.stats().dictionary_id, press.stats().dictionary_id);
    assert_eq!(pool.len(), 3);
    is_right(&press, "the press holds ");
    is_right(&mill, "of all mills ");
    is_right(&lz4, "the press holds ");
}

/// Warm and cold leaves have a dictionary each, both shared with other trees.
#[test]
fn temperatures_share_theirs() {
    let pool = DictionaryPool::new();
    let first = filled(builder("auto", &pool), "the press holds ");
    let shared = pool.len();
    assert!(shared > 0);
    // The codec is chosen by measured times: trees with different ones share nothing.
    let mut trees = (0..20).map(|_| filled(builder("auto", &pool), "the press holds "));
    let second = trees.find(|_| pool.len() == shared);
    let second = second.expect("a tree with the same codec");
    let parts = first.stats().dictionary_bytes + second.stats().dictionary_bytes;
    assert!(
        parts <= pool.held_bytes() + 2 * shared as u64,
        "{parts} of {}",
        pool.held_bytes()
    );
    is_right(&first, "the press holds ");
    is_right(&second, "the press holds ");
}
