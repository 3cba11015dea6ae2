//! Limits: keys and values that are too long are rejected without an effect, the longest valid ones work, and each
//! builder option out of its bounds is rejected with its name and the allowed values.

use std::ops::Bound;

use leafpress::codec::Codec;
use leafpress::tree::{DictionaryChoice, MAX_KEY_BYTES, MAX_VALUE_BYTES, TreeError};
use leafpress::{Dictionary, Layout, ShardBy, Tree, TreeBuilder};

fn tree() -> Tree {
    Tree::builder().build().unwrap()
}

#[test]
fn a_key_past_the_limit_is_refused() {
    let tree = tree();
    let key = vec![b'k'; MAX_KEY_BYTES + 1];
    for result in [
        tree.insert(&key, b"v"),
        tree.insert_if_absent(&key, b"v"),
        tree.replace(&key, b"v"),
    ] {
        match result {
            Err(TreeError::KeyTooLong { len }) => assert_eq!(len, MAX_KEY_BYTES + 1),
            other => panic!("{other:?}"),
        }
    }
    assert!(tree.is_empty());
    tree.validate().unwrap();
}

#[test]
fn a_key_past_the_limit_is_never_found() {
    let tree = tree();
    let key = vec![b'k'; MAX_KEY_BYTES + 1];
    tree.insert(&key[1..], b"v").unwrap();
    // Such a key cannot be in the tree: both absent and rejected are correct results.
    assert!(matches!(tree.get(&key), Ok(None) | Err(TreeError::KeyTooLong { .. })));
    assert!(matches!(
        tree.contains_key(&key),
        Ok(false) | Err(TreeError::KeyTooLong { .. })
    ));
    assert!(matches!(
        tree.remove(&key),
        Ok(false) | Err(TreeError::KeyTooLong { .. })
    ));
    assert_eq!(tree.len(), 1);
}

#[test]
fn a_key_of_the_limit_works() {
    let tree = tree();
    let keys: Vec<_> = (0..50u8)
        .map(|last| [vec![b'k'; MAX_KEY_BYTES - 1], vec![last]].concat())
        .collect();
    for key in &keys {
        assert!(tree.insert(key, &key[..100]).unwrap());
    }
    tree.validate().unwrap();
    for key in &keys {
        assert_eq!(tree.get(key).unwrap().as_deref(), Some(&key[..100]));
    }
    assert!(tree.range(..).map(|record| record.unwrap().0).eq(keys));
}

#[test]
fn range_bounds_may_be_longer_than_keys() {
    let tree = tree();
    let key = vec![0x80; MAX_KEY_BYTES];
    tree.insert(&key, b"v").unwrap();
    let longer = vec![0x80; MAX_KEY_BYTES + 1];
    let lower = (Bound::Included(longer.as_slice()), Bound::Unbounded);
    let upper = (Bound::Unbounded, Bound::Excluded(longer.as_slice()));
    assert_eq!(tree.range(lower).count(), 0);
    assert_eq!(tree.range(upper).count(), 1);
    assert_eq!(tree.range(lower).rev().count(), 0);
    assert_eq!(tree.range(upper).rev().count(), 1);
}

#[test]
fn an_inverted_range_is_empty() {
    let tree = tree();
    for key in [b"a", b"b", b"c"] {
        tree.insert(key, b"v").unwrap();
    }
    let (a, b, c) = (b"a".as_slice(), b"b".as_slice(), b"c".as_slice());
    assert_eq!(tree.range((Bound::Included(c), Bound::Included(a))).count(), 0);
    assert_eq!(tree.range((Bound::Excluded(b), Bound::Excluded(b))).count(), 0);
    assert_eq!(tree.range((Bound::Included(b), Bound::Excluded(b))).count(), 0);
    assert_eq!(tree.range((Bound::Included(b), Bound::Included(b))).count(), 1);
}

#[test]
fn a_value_past_the_limit_is_refused_and_the_old_one_kept() {
    let tree = tree();
    tree.insert(b"k", b"old").unwrap();
    let value = vec![0; MAX_VALUE_BYTES + 1];
    for result in [
        tree.insert(b"k", &value),
        tree.replace(b"k", &value),
        tree.insert_if_absent(b"other", &value),
    ] {
        match result {
            Err(TreeError::ValueTooLong { len }) => assert_eq!(len, MAX_VALUE_BYTES + 1),
            other => panic!("{:?}", other.map_err(|e| e.to_string())),
        }
    }
    assert_eq!(tree.get(b"k").unwrap().as_deref(), Some(b"old".as_slice()));
    assert_eq!(tree.len(), 1);
    tree.validate().unwrap();
}

#[test]
fn a_value_of_the_limit_makes_the_round_trip() {
    for codec in [Codec::None, Codec::Lz4 { acceleration: 1 }, Codec::Zstd { level: 1 }] {
        let tree = Tree::builder().codec(codec).build().unwrap();
        let mut value: Vec<u8> = (0..MAX_VALUE_BYTES / 4)
            .flat_map(|i| (i as u32 / 3).to_le_bytes())
            .collect();
        tree.insert(b"big", &value).unwrap();
        tree.insert(b"small", b"small value").unwrap();
        assert!(tree.get_with(b"big", |read| read == value).unwrap().unwrap(), "{codec}");
        // Replaced by one of the same length, then by a small one: the large block is freed.
        value[MAX_VALUE_BYTES / 2] ^= 1;
        assert!(!tree.insert(b"big", &value).unwrap());
        assert!(tree.get(b"big").unwrap().unwrap() == value, "{codec}");
        tree.validate().unwrap();
        assert!(!tree.insert(b"big", b"no more").unwrap());
        tree.compact().unwrap();
        tree.settle().unwrap();
        assert_eq!(tree.get(b"big").unwrap().as_deref(), Some(b"no more".as_slice()));
        assert_eq!(tree.get(b"small").unwrap().as_deref(), Some(b"small value".as_slice()));
        assert_eq!(tree.stats().large_value_bytes, 0, "{codec}");
        tree.validate().unwrap();
    }
}

/// Asserts that the builder is rejected for `option`, and that the reason contains each of `allowed`.
fn refused(builder: TreeBuilder, option: &str, allowed: &[&str]) {
    match builder.build() {
        Err(error @ TreeError::Option { option: named, .. }) => {
            assert_eq!(named, option);
            let message = error.to_string();
            assert!(message.starts_with(option), "{message}");
            for word in allowed {
                assert!(message.contains(word), "{option}: {message:?} does not say {word:?}");
            }
        }
        other => panic!("{option}: {other:?}"),
    }
}

fn accepted(builder: TreeBuilder) {
    let shown = format!("{builder:?}");
    if let Err(error) = builder.build() {
        panic!("{shown}: {error}");
    }
}

#[test]
fn leaf_bytes_is_bounded() {
    refused(Tree::builder().leaf_bytes(0), "leaf_bytes", &["1024", "32768"]);
    refused(Tree::builder().leaf_bytes(1023), "leaf_bytes", &["1024", "1023"]);
    refused(
        Tree::builder().leaf_bytes((32 << 10) + 1),
        "leaf_bytes",
        &["32768", "32769"],
    );
    refused(Tree::builder().leaf_bytes(usize::MAX), "leaf_bytes", &["32768"]);
    accepted(Tree::builder().leaf_bytes(1024));
    accepted(Tree::builder().leaf_bytes(32 << 10));
}

#[test]
fn frame_bytes_is_bounded_by_the_leaf() {
    refused(Tree::builder().frame_bytes(0), "frame_bytes", &["1"]);
    refused(
        Tree::builder().leaf_bytes(2048).frame_bytes(2049),
        "frame_bytes",
        &["2048", "2049"],
    );
    accepted(Tree::builder().frame_bytes(1));
    accepted(Tree::builder().frame_bytes(2048).leaf_bytes(2048));
}

#[test]
fn hashed_sub_pages_are_bounded() {
    refused(
        Tree::builder().layout(Layout::Hashed { sub_pages: 0 }),
        "layout",
        &["64"],
    );
    refused(
        Tree::builder().layout(Layout::Hashed { sub_pages: 65 }),
        "layout",
        &["64", "65"],
    );
    accepted(Tree::builder().layout(Layout::Hashed { sub_pages: 1 }));
    accepted(Tree::builder().layout(Layout::Hashed { sub_pages: 64 }));
}

#[test]
fn landing_bytes_is_bounded() {
    refused(
        Tree::builder().landing_bytes((16 << 10) + 1),
        "landing_bytes",
        &["16384", "16385"],
    );
    accepted(Tree::builder().landing_bytes(0));
    accepted(Tree::builder().landing_bytes(16 << 10));
}

#[test]
fn shards_are_bounded() {
    refused(Tree::builder().shards(0), "shards", &["1024"]);
    refused(Tree::builder().shards(1025), "shards", &["1024", "1025"]);
    accepted(Tree::builder().shards(1));
    accepted(Tree::builder().shards(1024));
}

#[test]
fn range_boundaries_fit_the_shards_and_ascend() {
    let by = |keys: &[&str]| ShardBy::Range(keys.iter().map(|key| key.as_bytes().to_vec()).collect());
    refused(Tree::builder().shards(3).shard_by(by(&["m"])), "shard_by", &["2"]);
    refused(Tree::builder().shards(2).shard_by(by(&["m", "s"])), "shard_by", &["1"]);
    refused(
        Tree::builder().shards(3).shard_by(by(&["s", "m"])),
        "shard_by",
        &["ascend"],
    );
    refused(
        Tree::builder().shards(3).shard_by(by(&["m", "m"])),
        "shard_by",
        &["ascend"],
    );
    accepted(Tree::builder().shards(1).shard_by(by(&[])));
    accepted(Tree::builder().shards(3).shard_by(by(&["m", "s"])));
}

#[test]
fn dictionary_bytes_is_bounded() {
    refused(
        Tree::builder().dictionary_bytes(1023),
        "dictionary_bytes",
        &["1024", "1048576"],
    );
    refused(
        Tree::builder().dictionary_bytes((1 << 20) + 1),
        "dictionary_bytes",
        &["1048576", "1048577"],
    );
    accepted(Tree::builder().dictionary_bytes(1 << 10));
    accepted(Tree::builder().dictionary_bytes(1 << 20));
}

#[test]
fn background_options_are_bounded() {
    refused(
        Tree::builder().background_threads(65),
        "background_threads",
        &["64", "65"],
    );
    accepted(Tree::builder().background_threads(2));
    refused(
        Tree::builder().landing_compaction_pct(0),
        "landing_compaction_pct",
        &["1", "100"],
    );
    refused(
        Tree::builder().landing_compaction_pct(101),
        "landing_compaction_pct",
        &["100", "101"],
    );
    accepted(Tree::builder().landing_compaction_pct(100));
    let family = |name: &str| Tree::builder().background_codec(Some(name.into()));
    refused(family("brotli"), "background_codec", &["brotli", "lz4", "zstd"]);
    for name in ["none", "lz4", "zstd", "deflate", "zlib", "qpl"] {
        accepted(family(name));
    }
}

#[test]
fn accepts_an_empty_dictionary() {
    let empty = DictionaryChoice::Given(Dictionary::from_bytes(1, Vec::new()));
    let tree = Tree::builder().dictionary(empty).build().unwrap();
    tree.insert(b"k", b"v").unwrap();
    tree.compact().unwrap();
    assert_eq!(tree.get(b"k").unwrap().as_deref(), Some(b"v".as_slice()));
}

/// Zstandard accepts any bytes as a dictionary, except those that begin with the magic number of its dictionaries and
/// are not valid ones.
#[test]
fn rejects_a_dictionary_that_the_codec_refuses() {
    let mut malformed = vec![0x37, 0xa4, 0x30, 0xec];
    malformed.resize(1000, 0xff);
    let given = |codec: &str| {
        Tree::builder()
            .codec(codec.parse().unwrap())
            .dictionary(DictionaryChoice::Given(Dictionary::from_bytes(1, malformed.as_slice())))
    };
    refused(given("zstd:1"), "dictionary", &["zstd", "malformed"]);
    accepted(given("lz4"));
    accepted(given("deflate:1"));
}
