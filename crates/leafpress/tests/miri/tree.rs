//! The node code under Miri: small trees of codec `none`, every layout and key form, and a few runs of two or three
//! threads.
//!
//! ```text
//! cargo +nightly miri test -p leafpress --no-default-features --test miri tree::
//! ```
//! Miri cannot run C code: the node heap is disabled and no other codec is used. The same tests run natively within a
//! moment.

use std::collections::BTreeMap;
use std::thread;

use leafpress::tree::DictionaryChoice;
use leafpress::{Codec, Layout, Tree, TreeBuilder};

fn small() -> TreeBuilder {
    Tree::builder()
        .codec(Codec::None)
        .dictionary(DictionaryChoice::Off)
        .leaf_bytes(1024)
        .landing_bytes(128)
}

fn same(tree: &Tree, map: &BTreeMap<Vec<u8>, Vec<u8>>) {
    tree.validate().unwrap();
    assert_eq!(tree.len(), map.len());
    for (key, value) in map {
        assert!(tree.get(key).unwrap().as_ref() == Some(value), "{key:02x?}");
    }
    let keys: Vec<_> = map.keys().take(20).collect();
    assert!(
        tree.get_many(&keys)
            .unwrap()
            .iter()
            .map(Option::as_ref)
            .eq(keys.iter().map(|&key| map.get(key)))
    );
    let forward: BTreeMap<_, _> = tree.range(..).map(|record| record.unwrap()).collect();
    assert!(forward == *map);
    let backward = tree.range(..).rev().map(|record| record.unwrap().0);
    assert!(backward.eq(map.keys().rev().cloned()));
}

/// Inserts, overwrites, removes and compacts: splits and merges of the leaves, inline and large values.
fn exercise(tree: &Tree, key: impl Fn(u64) -> Vec<u8>) {
    let mut map = BTreeMap::new();
    let mut put = |n: u64, len: usize| {
        let value = vec![n as u8; len];
        assert_eq!(
            tree.insert(&key(n), &value).unwrap(),
            map.insert(key(n), value).is_none()
        );
    };
    for n in 0..50 {
        put(n * 7 % 50, (n % 5) as usize * 20);
    }
    put(3, 2500);
    put(3, 2600);
    put(4, 2049);
    put(4, 2048);
    for n in (0..50).step_by(3) {
        put(n, 33);
    }
    same(tree, &map);
    // Natively a background thread does this.
    #[cfg(miri)]
    tree.defragment().unwrap();
    same(tree, &map);
    tree.compact().unwrap();
    same(tree, &map);
    for n in (0..50).filter(|n| n % 4 != 0) {
        assert!(tree.remove(&key(n)).unwrap());
        map.remove(&key(n));
    }
    assert!(!tree.replace(&key(1), b"no").unwrap());
    assert!(!tree.insert_if_absent(&key(4), b"no").unwrap());
    same(tree, &map);
    for n in (0..50).step_by(4) {
        assert!(tree.remove(&key(n)).unwrap());
    }
    same(tree, &BTreeMap::new());
    tree.insert(&key(1), b"once more").unwrap();
    tree.clear().unwrap();
    same(tree, &BTreeMap::new());
}

fn integer(n: u64) -> Vec<u8> {
    n.to_be_bytes().to_vec()
}

fn scattered(n: u64) -> Vec<u8> {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().to_vec()
}

/// Keys of many lengths: the empty one, prefixes of one another, common prefixes of more than eight bytes.
fn text(n: u64) -> Vec<u8> {
    match n % 3 {
        0 => vec![b'a'; n as usize],
        1 => format!("a common prefix, then {n}").into_bytes(),
        _ => vec![0xff, n as u8],
    }
}

#[test]
fn integer_keys() {
    exercise(&small().build().unwrap(), integer);
}

#[test]
fn scattered_keys() {
    exercise(&small().build().unwrap(), scattered);
}

#[test]
fn text_keys() {
    exercise(&small().build().unwrap(), text);
}

#[test]
fn one_record_frames() {
    exercise(&small().frame_bytes(1).build().unwrap(), integer);
    exercise(&small().frame_bytes(1).build().unwrap(), text);
}

#[test]
fn values_replaced_by_values_as_long() {
    for key in [integer, text] {
        let tree = small().frame_bytes(1).build().unwrap();
        let mut map = BTreeMap::new();
        for n in 0..90u64 {
            // One of the values is a large one.
            let (key, len) = (key(n % 9), if n % 9 == 4 { 2100 } else { 20 });
            let value = vec![n as u8; len];
            assert_eq!(tree.insert(&key, &value).unwrap(), map.insert(key, value).is_none());
        }
        same(&tree, &map);
    }
}

#[test]
fn hashed_sub_pages() {
    let hashed = || small().layout(Layout::Hashed { sub_pages: 4 });
    exercise(&hashed().build().unwrap(), integer);
    exercise(&hashed().build().unwrap(), text);
}

#[test]
fn no_landing_buffer_and_shards() {
    exercise(&small().landing_bytes(0).shards(3).build().unwrap(), text);
}

#[test]
fn long_keys() {
    exercise(&small().build().unwrap(), |n| [vec![b'k'; 900], integer(n)].concat());
}

#[test]
fn a_scan_from_both_ends_outlives_changes() {
    let tree = small().build().unwrap();
    for n in 0..40 {
        tree.insert(&integer(n), &[n as u8; 50]).unwrap();
    }
    let mut scan = tree.range(integer(5).as_slice()..integer(35).as_slice());
    assert_eq!(scan.next().unwrap().unwrap().0, integer(5));
    assert_eq!(scan.next_back().unwrap().unwrap().0, integer(34));
    for n in 0..40 {
        tree.remove(&integer(n)).unwrap();
    }
    // Every record that is still returned existed at some time during the scan.
    for record in scan {
        let (key, value) = record.unwrap();
        let n = u64::from_be_bytes(key.try_into().unwrap());
        assert!((6..34).contains(&n) && value == [n as u8; 50]);
    }
    // Dropped half way, when the tree's records are removed already.
    drop(tree.range(..));
}

#[test]
fn writers_readers_and_a_scan() {
    let tree = small().landing_bytes(64).build().unwrap();
    for n in 0..20 {
        tree.insert(&integer(n * 2), &[n as u8; 40]).unwrap();
    }
    thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..20 {
                tree.insert(&integer(n * 2 + 1), &[n as u8; 40]).unwrap();
                tree.remove(&integer((n * 7 % 20) * 2 + 1)).unwrap();
            }
        });
        scope.spawn(|| {
            for n in 0..20 {
                assert_eq!(tree.get(&integer(n * 2)).unwrap(), Some(vec![n as u8; 40]));
                #[cfg(miri)]
                if n % 5 == 0 {
                    tree.defragment().unwrap();
                }
            }
            tree.compact().unwrap();
        });
        scope.spawn(|| {
            let even = tree.range(..).filter(|record| record.as_ref().unwrap().0[7] % 2 == 0);
            assert_eq!(even.count(), 20);
        });
    });
    tree.validate().unwrap();
}

#[test]
fn two_writers_and_a_clear() {
    let tree = small().build().unwrap();
    thread::scope(|scope| {
        for id in 0..2u64 {
            let tree = &tree;
            scope.spawn(move || {
                for n in 0..15 {
                    tree.insert(&integer(n * 2 + id), &[id as u8; 60]).unwrap();
                    if n % 3 == 0 {
                        tree.remove(&integer(n * 2 + id)).unwrap();
                    }
                }
            });
        }
        scope.spawn(|| tree.clear().unwrap());
    });
    tree.validate().unwrap();
    assert_eq!(tree.len(), tree.range(..).count());
}

#[test]
fn background_threads_start_work_and_stop() {
    let tree = small()
        .landing_bytes(512)
        .background_threads(1)
        .landing_compaction_pct(10)
        .build()
        .unwrap();
    for n in 0..20 {
        tree.insert(&integer(n), &[n as u8; 40]).unwrap();
    }
    tree.settle().unwrap();
    for n in 0..20 {
        assert_eq!(tree.get(&integer(n)).unwrap(), Some(vec![n as u8; 40]));
    }
    tree.validate().unwrap();
}
