//! Interleavings of two or three threads on one or two leaves, chosen by shuttle's random and PCT schedulers
//! (Burckhardt et al., ASPLOS 2010).
//!
//! ```text
//! RUSTFLAGS="--cfg shuttle" CARGO_TARGET_DIR=target/shuttle \
//!     cargo test --release -p leafpress --no-default-features --test shuttle tree::
//! ```
//! `SHUTTLE_ITERATIONS` sets how many schedules each scheduler tries (300). A failure prints the schedule to replay.

use leafpress::Upkeep;
use leafpress::tree::Update;

use crate::interleavings::{explore, filled, key, small, spawn};

#[test]
fn two_puts_of_one_key_leave_one_of_them() {
    for landing_bytes in [0, 64] {
        explore(move || {
            let tree = filled(small().landing_bytes(landing_bytes), 2);
            let puts = [b'a', b'b'].map(|byte| spawn(&tree, move |tree| tree.insert(&key(5), &[byte; 20]).unwrap()));
            let new = puts.map(|put| put.join().unwrap());
            assert!(new[0] != new[1], "exactly one of two puts of an absent key made it");
            let value = tree.get(&key(5)).unwrap().unwrap();
            assert!(value == [b'a'; 20] || value == [b'b'; 20]);
            assert_eq!(tree.len(), 3);
            tree.validate().unwrap();
        });
    }
}

#[test]
fn no_increment_is_lost_during_a_compaction() {
    for landing_bytes in [0, 64] {
        explore(move || {
            let tree = filled(small().landing_bytes(landing_bytes), 2);
            let compaction = spawn(&tree, |tree| tree.compact().unwrap());
            let counts = [1, 2].map(|_| {
                spawn(&tree, |tree| {
                    let add = |old: Option<&[u8]>| Update::Put([old.map_or(0, |old| old[0]) + 1; 40]);
                    tree.update_with(&key(5), add).unwrap()
                })
            });
            let seen = counts.map(|count| count.join().unwrap());
            compaction.join().unwrap();
            assert!(seen.contains(&Update::Put([1; 40])) && seen.contains(&Update::Put([2; 40])));
            assert_eq!(tree.get(&key(5)).unwrap(), Some(vec![2; 40]));
            tree.validate().unwrap();
        });
    }
}

#[test]
fn two_puts_to_one_leaf_both_stay() {
    for landing_bytes in [0, 64] {
        explore(move || {
            let tree = filled(small().landing_bytes(landing_bytes), 3);
            let puts = [5, 15].map(|n| {
                spawn(&tree, move |tree| {
                    assert!(tree.insert(&key(n), &[n as u8; 40]).unwrap())
                })
            });
            puts.into_iter().for_each(|put| put.join().unwrap());
            for n in [5u32, 15] {
                assert_eq!(tree.get(&key(n)).unwrap(), Some(vec![n as u8; 40]));
            }
            assert_eq!(tree.len(), 5);
            tree.validate().unwrap();
        });
    }
}

#[test]
fn inserts_have_one_winner() {
    explore(|| {
        let tree = filled(small(), 2);
        let inserts = [1u8, 2, 3].map(|n| spawn(&tree, move |tree| tree.insert_if_absent(&key(5), &[n; 30]).unwrap()));
        let won = inserts.map(|insert| insert.join().unwrap());
        assert_eq!(won.iter().filter(|&&won| won).count(), 1);
        let winner = won.iter().position(|&won| won).unwrap() as u8 + 1;
        assert_eq!(tree.get(&key(5)).unwrap(), Some(vec![winner; 30]));
        tree.validate().unwrap();
    });
}

#[test]
fn a_put_during_a_split_stays() {
    for landing_bytes in [0, 64] {
        explore(move || {
            let tree = filled(small().landing_bytes(landing_bytes), 10);
            let split = spawn(&tree, |tree| {
                for n in [41, 42, 43] {
                    tree.insert(&key(n), &[1; 96]).unwrap();
                }
            });
            let put = spawn(&tree, |tree| {
                tree.insert(&key(95), &[2; 96]).unwrap();
                tree.insert(&key(15), &[3; 96]).unwrap();
            });
            split.join().unwrap();
            put.join().unwrap();
            assert_eq!(tree.len(), 15);
            for (n, byte) in [(41, 1), (42, 1), (43, 1), (95, 2), (15, 3)] {
                assert_eq!(tree.get(&key(n)).unwrap(), Some(vec![byte; 96]), "{n}");
            }
            tree.validate().unwrap();
        });
    }
}

#[test]
fn a_batch_of_gets_during_a_split_and_a_compaction_finds_its_records() {
    explore(|| {
        let tree = filled(small().landing_bytes(256), 10);
        let compaction = spawn(&tree, |tree| tree.compact().unwrap());
        let split = spawn(&tree, |tree| {
            for n in [41, 42, 30] {
                tree.insert(&key(n), &[9; 96]).unwrap();
            }
        });
        let get = spawn(&tree, |tree| {
            let numbers = [10, 30, 40, 50, 90];
            for _ in 0..2 {
                let values = tree.get_many(&numbers.map(key)).unwrap();
                for (n, value) in numbers.into_iter().zip(values) {
                    let value = value.unwrap();
                    assert!(value == [(n / 10) as u8; 96] || n == 30 && value == [9; 96], "{n}");
                }
            }
        });
        compaction.join().unwrap();
        split.join().unwrap();
        get.join().unwrap();
        tree.validate().unwrap();
    });
}

#[test]
fn a_get_during_a_compaction_finds_its_record() {
    explore(|| {
        let tree = filled(small().landing_bytes(256), 6);
        let compaction = spawn(&tree, |tree| tree.compact().unwrap());
        let put = spawn(&tree, |tree| {
            tree.insert(&key(30), &[9; 50]).unwrap();
        });
        let get = spawn(&tree, |tree| {
            for _ in 0..2 {
                for n in [1u8, 4, 6] {
                    assert_eq!(tree.get(&key(u32::from(n) * 10)).unwrap(), Some(vec![n; 96]));
                }
                let value = tree.get(&key(30)).unwrap().unwrap();
                assert!(value == [3; 96] || value == [9; 50]);
            }
        });
        compaction.join().unwrap();
        put.join().unwrap();
        get.join().unwrap();
        assert_eq!(tree.get(&key(30)).unwrap(), Some(vec![9; 50]));
        tree.validate().unwrap();
    });
}

#[test]
fn a_get_during_a_split_finds_its_record() {
    explore(|| {
        let tree = filled(small(), 10);
        let split = spawn(&tree, |tree| {
            for n in [51, 52, 53] {
                tree.insert(&key(n), &[1; 96]).unwrap();
            }
        });
        let get = spawn(&tree, |tree| {
            for n in [1u8, 5, 6, 10] {
                assert_eq!(tree.get(&key(u32::from(n) * 10)).unwrap(), Some(vec![n; 96]));
            }
        });
        split.join().unwrap();
        get.join().unwrap();
        tree.validate().unwrap();
    });
}

#[test]
fn removes_during_a_merge_remove_once() {
    explore(|| {
        // Two leaves, which the removals empty; the records 10 and 200 stay.
        let tree = filled(small().landing_bytes(0), 20);
        let mut threads = Vec::new();
        for part in [[2u32, 4, 6, 8, 10, 12], [19, 17, 15, 13, 11, 12]] {
            threads.push(spawn(&tree, move |tree| {
                part.map(|n| usize::from(tree.remove(&key(n * 10)).unwrap()))
                    .iter()
                    .sum::<usize>()
            }));
        }
        let reader = spawn(&tree, |tree| {
            assert_eq!(tree.get(&key(10)).unwrap(), Some(vec![1; 96]));
            assert_eq!(tree.get(&key(200)).unwrap(), Some(vec![20; 96]));
        });
        let removed: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        reader.join().unwrap();
        assert_eq!(removed, 11, "key 12 is removed by one of them");
        assert_eq!(tree.len(), 9);
        assert_eq!(tree.range(..).count(), 9);
        tree.validate().unwrap();
    });
}

#[test]
fn a_put_during_a_merge_stays() {
    explore(|| {
        let tree = filled(small().landing_bytes(0), 20);
        let remove = spawn(&tree, |tree| {
            for n in 2..19 {
                assert!(tree.remove(&key(n * 10)).unwrap());
            }
        });
        let put = spawn(&tree, |tree| {
            for n in [55, 105, 155] {
                assert!(tree.insert(&key(n), &[n as u8; 96]).unwrap());
            }
        });
        remove.join().unwrap();
        put.join().unwrap();
        let left: Vec<_> = tree.range(..).map(|record| record.unwrap().0).collect();
        assert_eq!(left, [10, 55, 105, 155, 190, 200].map(|n| key(n).to_vec()));
        tree.validate().unwrap();
    });
}

#[test]
fn a_scan_during_a_split_sees_each_record_once_and_in_order() {
    for backward in [false, true] {
        explore(move || {
            let tree = filled(small().landing_bytes(0), 18);
            let split = spawn(&tree, |tree| {
                for n in [81, 82, 83, 31, 32] {
                    tree.insert(&key(n), &[1; 96]).unwrap();
                }
            });
            let scan = spawn(&tree, move |tree| {
                let keys = |record: Result<(Vec<u8>, Vec<u8>), leafpress::TreeError>| record.unwrap().0;
                let mut seen: Vec<_> = if backward {
                    tree.range(..).rev().map(keys).collect()
                } else {
                    tree.range(..).map(keys).collect()
                };
                if backward {
                    seen.reverse();
                }
                assert!(seen.is_sorted_by(|a, b| a < b), "{seen:?}");
                seen.retain(|key| key[3] % 10 == 0);
                assert_eq!(seen, (1..=18).map(|n| key(n * 10).to_vec()).collect::<Vec<_>>());
            });
            split.join().unwrap();
            scan.join().unwrap();
            tree.validate().unwrap();
        });
    }
}

#[test]
fn a_scan_during_a_merge_sees_the_remaining_records() {
    explore(|| {
        let tree = filled(small().landing_bytes(0), 20);
        let remove = spawn(&tree, |tree| {
            for n in (1..=20).filter(|n| n % 5 != 0) {
                tree.remove(&key(n * 10)).unwrap();
            }
        });
        let scan = spawn(&tree, |tree| {
            let mut seen: Vec<_> = tree.range(..).map(|record| record.unwrap().0).collect();
            assert!(seen.is_sorted_by(|a, b| a < b), "{seen:?}");
            seen.retain(|key| key[3] % 50 == 0);
            assert_eq!(seen, [50, 100, 150, 200].map(|n| key(n).to_vec()));
        });
        remove.join().unwrap();
        scan.join().unwrap();
        assert_eq!(tree.len(), 4);
        tree.validate().unwrap();
    });
}

#[test]
fn a_clear_during_puts_leaves_a_valid_tree() {
    explore(|| {
        let tree = filled(small(), 12);
        let clear = spawn(&tree, |tree| tree.clear().unwrap());
        let put = spawn(&tree, |tree| {
            for n in [5, 65, 66, 67] {
                tree.insert(&key(n), &[n as u8; 96]).unwrap();
            }
        });
        clear.join().unwrap();
        put.join().unwrap();
        tree.validate().unwrap();
        let left: Vec<_> = tree.range(..).map(|record| record.unwrap().0).collect();
        assert_eq!(left.len(), tree.len());
        for old in (1..=12).map(|n| key(n * 10).to_vec()) {
            assert!(!left.contains(&old), "a record put before the clear began outlived it");
        }
        tree.insert(&key(1), b"after").unwrap();
        assert_eq!(tree.get(&key(1)).unwrap().as_deref(), Some(b"after".as_slice()));
    });
}

#[test]
fn a_large_value_replaced_under_a_reader_is_whole() {
    explore(|| {
        let tree = filled(small(), 2);
        tree.insert(b"large", &[1; 3000]).unwrap();
        let put = spawn(&tree, |tree| {
            tree.insert(b"large", &[2; 4000]).unwrap();
            tree.compact().unwrap();
            tree.remove(b"large").unwrap();
        });
        let get = spawn(&tree, |tree| match tree.get(b"large").unwrap() {
            None => {}
            Some(value) => assert!(value == [1; 3000] || value == [2; 4000], "{} bytes", value.len()),
        });
        put.join().unwrap();
        get.join().unwrap();
        assert_eq!(tree.stats().large_value_bytes, 0);
        tree.validate().unwrap();
    });
}

#[test]
fn a_put_to_a_leaf_that_is_moved_stays() {
    for landed_before in [false, true] {
        explore(move || {
            let tree = filled(small().landing_bytes(256), 12);
            tree.compact().unwrap();
            if landed_before {
                tree.insert(&key(30), &[1; 20]).unwrap();
            }
            let sweep = spawn(&tree, |tree| {
                tree.defragment().unwrap();
                tree.defragment().unwrap();
            });
            let puts = [1u8, 2].map(|n| {
                spawn(&tree, move |tree| {
                    assert!(tree.insert(&key(u32::from(n)), &[n; 20]).unwrap());
                    assert!(tree.insert(&key(60 + u32::from(n)), &[n; 20]).unwrap());
                    assert!(tree.remove(&key(u32::from(n) * 40)).unwrap());
                })
            });
            puts.into_iter().for_each(|put| put.join().unwrap());
            sweep.join().unwrap();
            for n in [1u8, 2] {
                assert_eq!(tree.get(&key(u32::from(n))).unwrap(), Some(vec![n; 20]));
                assert_eq!(tree.get(&key(60 + u32::from(n))).unwrap(), Some(vec![n; 20]));
                assert_eq!(tree.get(&key(u32::from(n) * 40)).unwrap(), None);
            }
            let expected = if landed_before { vec![1; 20] } else { vec![3; 96] };
            assert_eq!(tree.get(&key(30)).unwrap(), Some(expected));
            assert_eq!(tree.len(), 14);
            tree.validate().unwrap();
        });
    }
}

#[test]
fn a_reader_never_goes_back_while_leaves_are_moved() {
    for compacts in [false, true] {
        explore(move || {
            let tree = filled(small().landing_bytes(256), 12);
            tree.compact().unwrap();
            // The landing buffer for the insertions exists beforehand.
            tree.insert(&key(40), &[4; 30]).unwrap();
            let sweep = spawn(&tree, move |tree| {
                if compacts {
                    tree.compact().unwrap();
                } else {
                    tree.defragment().unwrap();
                }
            });
            let put = spawn(&tree, |tree| {
                for version in 100..103 {
                    assert!(!tree.insert(&key(50), &[version; 30]).unwrap());
                }
            });
            // A get after a scan, and a scan after a get, see no older version; neighbouring keys are unaffected.
            let read = spawn(&tree, |tree| {
                let mut newest = 0;
                for turn in 0..4 {
                    let version = if turn % 2 == 0 {
                        let seen: Vec<_> = tree.range(..).map(|record| record.unwrap()).collect();
                        assert_eq!(seen.len(), 12);
                        seen[4].1[0]
                    } else {
                        tree.get(&key(50)).unwrap().unwrap()[0]
                    };
                    let version = if version == 5 { 1 } else { version };
                    assert!(version >= newest, "version {version} after {newest}");
                    newest = version;
                    assert_eq!(tree.get(&key(60)).unwrap(), Some(vec![6; 96]));
                }
            });
            sweep.join().unwrap();
            put.join().unwrap();
            read.join().unwrap();
            assert_eq!(tree.get(&key(50)).unwrap(), Some(vec![102; 30]));
            tree.validate().unwrap();
        });
    }
}

#[test]
fn splits_merges_and_a_clear_during_a_move_leave_a_valid_tree() {
    for clears in [false, true] {
        explore(move || {
            let tree = filled(small(), 20);
            let sweep = spawn(&tree, |tree| tree.defragment().unwrap());
            let write = spawn(&tree, |tree| {
                for n in [51, 52, 53] {
                    tree.insert(&key(n), &[1; 96]).unwrap();
                }
                for n in 9..20 {
                    tree.remove(&key(n * 10)).unwrap();
                }
                // Large values are moved with the leaf that points to them.
                tree.insert(&key(7), &[7; 3000]).unwrap();
            });
            let clear = clears.then(|| spawn(&tree, |tree| tree.clear().unwrap()));
            write.join().unwrap();
            sweep.join().unwrap();
            clear.into_iter().for_each(|clear| clear.join().unwrap());
            tree.validate().unwrap();
            let left: Vec<_> = tree.range(..).map(|record| record.unwrap().0).collect();
            assert_eq!(left.len(), tree.len());
            if !clears {
                let expected: Vec<_> = [7, 10, 20, 30, 40, 50, 51, 52, 53, 60, 70, 80, 200]
                    .map(|n| key(n).to_vec())
                    .into();
                assert_eq!(left, expected);
                assert_eq!(tree.get(&key(7)).unwrap(), Some(vec![7; 3000]));
            }
            tree.clear().unwrap();
            assert_eq!(tree.stats().large_value_bytes, 0);
        });
    }
}

#[test]
fn a_range_removed_during_puts_leaves_other_records() {
    for upkeep in [Upkeep::Threads, Upkeep::Caller] {
        for landing_bytes in [0, 256] {
            explore(move || {
                let tree = filled(small().landing_bytes(landing_bytes).upkeep(upkeep), 16);
                let range = spawn(&tree, |tree| {
                    let removed = tree.remove_range(key(40)..key(130), 6).unwrap();
                    assert_eq!(removed.records, 6);
                    tree.remove_range(key(40)..key(130), 100).unwrap().records + 6
                });
                let puts = spawn(&tree, |tree| {
                    tree.insert(&key(35), &[1; 96]).unwrap();
                    tree.insert(&key(125), &[2; 96]).unwrap();
                });
                let get = spawn(&tree, |tree| {
                    for n in [3u8, 13] {
                        assert_eq!(tree.get(&key(u32::from(n) * 10)).unwrap(), Some(vec![n; 96]));
                    }
                });
                let removed = range.join().unwrap();
                puts.join().unwrap();
                get.join().unwrap();
                let stays = u64::from(tree.contains_key(&key(125)).unwrap());
                assert_eq!(removed, 10 - stays);
                assert_eq!(tree.get(&key(35)).unwrap(), Some(vec![1; 96]));
                assert_eq!(tree.len() as u64, 18 - removed);
                tree.validate().unwrap();
            });
        }
    }
}
