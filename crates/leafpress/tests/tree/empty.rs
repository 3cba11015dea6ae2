//! The empty tree, before the first insertion and after `clear`, supports every operation.

use leafpress::{Layout, Tree, TreeStats};

fn trees() -> Vec<Tree> {
    vec![
        Tree::builder().build().unwrap(),
        Tree::builder().shards(16).build().unwrap(),
        Tree::builder().layout(Layout::Hashed { sub_pages: 4 }).build().unwrap(),
        Tree::builder().landing_bytes(0).background_threads(1).build().unwrap(),
    ]
}

fn is_empty(tree: &Tree) {
    assert_eq!(tree.len(), 0);
    assert!(tree.is_empty());
    for key in [b"".as_slice(), b"k", &[0xff; 100]] {
        assert_eq!(tree.get(key).unwrap(), None);
        assert!(!tree.contains_key(key).unwrap());
        assert!(!tree.remove(key).unwrap());
        assert!(!tree.replace(key, b"v").unwrap());
        assert!(!tree.get_into(key, &mut Vec::new()).unwrap());
        assert_eq!(tree.get_with(key, <[u8]>::len).unwrap(), None);
    }
    assert_eq!(tree.get_many::<&[u8]>(&[]).unwrap(), []);
    assert_eq!(
        tree.get_many(&[&b""[..], b"k", &[0xff; 100]]).unwrap(),
        [None, None, None]
    );
    assert_eq!(tree.range(..).count(), 0);
    assert_eq!(tree.range(..).rev().count(), 0);
    tree.compact().unwrap();
    tree.settle().unwrap();
    tree.validate().unwrap();
    let stats = tree.stats();
    assert_eq!((stats.records, stats.user_bytes, stats.large_value_bytes), (0, 0, 0));
    assert_eq!(stats.held_per_user_byte(), 0.0);
}

#[test]
fn a_new_tree_answers_everything() {
    for tree in trees() {
        is_empty(&tree);
    }
}

#[test]
fn clear_empties_and_the_tree_works_on() {
    for tree in trees() {
        tree.clear().unwrap();
        for round in 0..3u32 {
            for n in 0..2000u32 {
                assert!(tree.insert(&n.to_be_bytes(), &[round as u8; 100]).unwrap());
            }
            tree.insert(b"large", &vec![round as u8; 50_000]).unwrap();
            tree.clear().unwrap();
            is_empty(&tree);
        }
        assert!(tree.insert(b"", b"").unwrap());
        assert_eq!(tree.get(b"").unwrap().as_deref(), Some(b"".as_slice()));
        assert_eq!(tree.len(), 1);
    }
}

#[test]
fn the_ratio_of_no_user_bytes_is_zero() {
    assert_eq!(TreeStats::default().held_per_user_byte(), 0.0);
}

#[test]
fn a_record_without_a_byte_is_a_frame_of_its_own() {
    for codec in ["none", "lz4", "zstd:1"] {
        for landing_bytes in [0, 512] {
            let tree = Tree::builder()
                .codec(codec.parse().unwrap())
                .landing_bytes(landing_bytes)
                .build()
                .unwrap();
            tree.insert("", "").unwrap();
            tree.insert("bb", "1234").unwrap();
            for turn in 0..40 {
                let value = format!("{turn} wxyz").repeat(turn % 20);
                assert!(!tree.insert("bb", &value).unwrap());
                assert_eq!(tree.get("bb").unwrap().as_deref(), Some(value.as_bytes()), "{codec}");
                assert_eq!(tree.get("").unwrap().as_deref(), Some(&b""[..]), "{codec}");
            }
            tree.compact().unwrap();
            tree.validate().unwrap();
            assert_eq!(tree.len(), 2);
        }
    }
}
