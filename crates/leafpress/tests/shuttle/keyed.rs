//! Interleavings on leaves whose blocks hold a record each, with its key: a search decodes keys, and a compaction
//! copies blocks. Keys have several lengths, without which a leaf packs them.

use std::sync::Arc;

use leafpress::tree::{DictionaryChoice, Update};
use leafpress::{Tree, TreeBuilder};

use crate::interleavings::{explore, small, spawn};
use crate::onpair::{ONPAIR, dictionary, key, value, version};

fn keyed() -> TreeBuilder {
    small()
        .codec(ONPAIR)
        .dictionary(DictionaryChoice::Given(dictionary()))
        .keys_in_blocks(true)
}

/// Returns a tree of `records` records, numbers 10, 20, ..., in version 1; a leaf holds about 16 of them.
fn filled(builder: TreeBuilder, records: u32) -> Arc<Tree> {
    let tree = builder.build().unwrap();
    for n in (10..=records * 10).step_by(10) {
        tree.insert(&key(n), &value(n, 1)).unwrap();
    }
    let stats = tree.stats();
    assert!(stats.engine.compress_calls > 0 && stats.frames <= stats.records);
    Arc::new(tree)
}

fn version_of(tree: &Tree, n: u32) -> Option<u8> {
    let found = tree.get(&key(n)).unwrap();
    found.map(|found| version(n, &found))
}

/// Returns the numbers of the records, in the order of a scan from one end or the other.
fn numbers(tree: &Tree, backward: bool) -> Vec<u32> {
    let number = |record: Result<(Vec<u8>, Vec<u8>), leafpress::TreeError>| {
        let (found, held) = record.unwrap();
        let n = std::str::from_utf8(&found[5..9]).unwrap().parse().unwrap();
        assert_eq!(found, key(n));
        version(n, &held);
        n
    };
    if backward {
        let mut numbers: Vec<_> = tree.range(..).rev().map(number).collect();
        numbers.reverse();
        numbers
    } else {
        tree.range(..).map(number).collect()
    }
}

#[test]
fn two_writers_and_a_compaction_lose_no_write() {
    for landing_bytes in [0, 64, 256] {
        explore(move || {
            let tree = filled(keyed().landing_bytes(landing_bytes), 6);
            let compaction = spawn(&tree, |tree| tree.compact().unwrap());
            let writers = [1, 2].map(|writer| {
                spawn(&tree, move |tree| {
                    assert!(tree.insert(&key(30 + writer), &value(30 + writer, 2)).unwrap());
                    assert!(!tree.insert(&key(40), &value(40, 10 + writer as u8)).unwrap());
                    assert!(tree.remove(&key(10 * writer)).unwrap());
                })
            });
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            compaction.join().unwrap();
            assert!(matches!(version_of(&tree, 40), Some(11 | 12)));
            assert_eq!(numbers(&tree, false), [30, 31, 32, 40, 50, 60]);
            assert!([30, 50, 60].iter().all(|&n| version_of(&tree, n) == Some(1)));
            tree.validate().unwrap();
        });
    }
}

#[test]
fn no_increment_is_lost_during_a_compaction() {
    for landing_bytes in [0, 64] {
        explore(move || {
            let tree = filled(keyed().landing_bytes(landing_bytes), 3);
            let compaction = spawn(&tree, |tree| tree.compact().unwrap());
            let counts = [1, 2].map(|_| {
                spawn(&tree, |tree| {
                    let add = |old: Option<&[u8]>| Update::Put(value(20, old.map_or(0, |old| version(20, old)) + 1));
                    tree.update_with(&key(20), add).unwrap();
                })
            });
            counts.into_iter().for_each(|count| count.join().unwrap());
            compaction.join().unwrap();
            assert_eq!(version_of(&tree, 20), Some(3));
            tree.validate().unwrap();
        });
    }
}

#[test]
fn a_reader_never_goes_back_while_blocks_are_copied() {
    for compacts in [false, true] {
        explore(move || {
            let tree = filled(keyed().landing_bytes(256), 12);
            tree.compact().unwrap();
            let sweep = spawn(&tree, move |tree| {
                if compacts {
                    tree.compact().unwrap();
                } else {
                    tree.defragment().unwrap();
                }
            });
            let put = spawn(&tree, |tree| {
                for version in 100..103 {
                    assert!(!tree.insert(&key(50), &value(50, version)).unwrap());
                }
            });
            let read = spawn(&tree, |tree| {
                let mut newest = 0;
                for turn in 0..4 {
                    let found = if turn % 2 == 0 {
                        let (_, found) = tree.range(key(50).as_slice()..).next().unwrap().unwrap();
                        version(50, &found)
                    } else {
                        version_of(tree, 50).unwrap()
                    };
                    assert!(found >= newest, "version {found} after {newest}");
                    newest = found;
                    assert_eq!(version_of(tree, 60), Some(1));
                    assert_eq!(version_of(tree, 55), None);
                }
            });
            sweep.join().unwrap();
            put.join().unwrap();
            read.join().unwrap();
            assert_eq!(version_of(&tree, 50), Some(102));
            tree.validate().unwrap();
        });
    }
}

#[test]
fn reads_and_a_write_during_a_split_find_their_records() {
    for landing_bytes in [0, 64] {
        explore(move || {
            let tree = filled(keyed().landing_bytes(landing_bytes), 14);
            let split = spawn(&tree, |tree| {
                for n in 71..76 {
                    tree.insert(&key(n), &value(n, 2)).unwrap();
                }
            });
            let put = spawn(&tree, |tree| {
                assert!(tree.insert(&key(15), &value(15, 3)).unwrap());
                assert!(!tree.insert(&key(140), &value(140, 3)).unwrap());
            });
            let get = spawn(&tree, |tree| {
                let wanted = [10, 70, 80, 130];
                assert!(wanted.iter().all(|&n| version_of(tree, n) == Some(1)));
                let found = tree.get_many(&wanted.map(key)).unwrap();
                for (n, found) in wanted.into_iter().zip(found) {
                    assert_eq!(version(n, &found.unwrap()), 1);
                }
            });
            split.join().unwrap();
            put.join().unwrap();
            get.join().unwrap();
            assert_eq!(tree.len(), 20);
            assert!((71..76).all(|n| version_of(&tree, n) == Some(2)));
            assert!([15, 140].iter().all(|&n| version_of(&tree, n) == Some(3)));
            assert!(numbers(&tree, true).is_sorted());
            tree.validate().unwrap();
        });
    }
}

#[test]
fn removals_and_a_put_during_a_merge_stay() {
    explore(|| {
        // Two leaves.
        let tree = filled(keyed().landing_bytes(0), 24);
        let remove = spawn(&tree, |tree| {
            for n in 2..24 {
                assert!(tree.remove(&key(n * 10)).unwrap());
            }
        });
        let put = spawn(&tree, |tree| {
            for n in [55, 125, 185] {
                assert!(tree.insert(&key(n), &value(n, 2)).unwrap());
            }
        });
        let read = spawn(&tree, |tree| {
            assert!([10, 240].iter().all(|&n| version_of(tree, n) == Some(1)));
        });
        remove.join().unwrap();
        put.join().unwrap();
        read.join().unwrap();
        assert_eq!(numbers(&tree, false), [10, 55, 125, 185, 240]);
        tree.validate().unwrap();
    });
}

#[test]
fn a_scan_during_a_split_and_a_compaction_sees_each_record_once_and_in_order() {
    for backward in [false, true] {
        explore(move || {
            let tree = filled(keyed().landing_bytes(64), 20);
            let compaction = spawn(&tree, |tree| tree.compact().unwrap());
            let split = spawn(&tree, |tree| {
                for n in [101, 102, 103, 31, 32] {
                    tree.insert(&key(n), &value(n, 2)).unwrap();
                }
            });
            let scan = spawn(&tree, move |tree| {
                let mut seen = numbers(tree, backward);
                assert!(seen.is_sorted_by(|a, b| a < b), "{seen:?}");
                seen.retain(|n| n % 10 == 0);
                assert_eq!(seen, (1..=20).map(|n| n * 10).collect::<Vec<_>>());
            });
            compaction.join().unwrap();
            split.join().unwrap();
            scan.join().unwrap();
            tree.validate().unwrap();
        });
    }
}
