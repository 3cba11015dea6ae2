//! Interleavings of readers with threads that replace and free the nodes they read; freed nodes are overwritten. See
//! `tree.rs` for how to run them.

use crate::interleavings::{explore, filled, key, small, spawn};

/// A tree without landing buffers, so that every write replaces a leaf.
fn replacing() -> leafpress::TreeBuilder {
    small().landing_bytes(0)
}

#[test]
fn what_a_reader_finds_stays_while_others_replace_it() {
    explore(|| {
        let tree = filled(replacing(), 3);
        let writers = [5, 15].map(|n| {
            spawn(&tree, move |tree| {
                for byte in 1..4 {
                    tree.insert(&key(n), &[byte; 40]).unwrap();
                }
            })
        });
        let reader = spawn(&tree, |tree| {
            for n in [10, 20, 30] {
                assert_eq!(tree.get(&key(n)).unwrap(), Some(vec![n as u8 / 10; 96]));
            }
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        reader.join().unwrap();
        tree.validate().unwrap();
        assert_eq!(tree.stats().retired_bytes, 0);
    });
}

#[test]
fn a_value_in_hand_stays_while_its_reader_writes_as_well() {
    explore(|| {
        let tree = filled(replacing(), 2);
        let writer = spawn(&tree, |tree| {
            for byte in 3..6 {
                tree.insert(&key(20), &[byte; 96]).unwrap();
            }
        });
        let reader = spawn(&tree, |tree| {
            tree.get_with(&key(10), |value| {
                for byte in 3..5 {
                    tree.insert(&key(10), &[byte; 96]).unwrap();
                }
                // A nested operation has ended, and its retired nodes wait for this one.
                assert_eq!(value, [1; 96]);
            })
            .unwrap();
        });
        writer.join().unwrap();
        reader.join().unwrap();
        assert_eq!(tree.get(&key(10)).unwrap(), Some(vec![4; 96]));
        assert_eq!(tree.get(&key(20)).unwrap(), Some(vec![5; 96]));
        tree.validate().unwrap();
        assert_eq!(tree.stats().retired_bytes, 0);
    });
}

#[test]
fn a_scan_continues_over_leaves_that_are_freed_behind_it() {
    explore(|| {
        let tree = filled(replacing(), 14);
        let remover = spawn(&tree, |tree| {
            for n in 4..12 {
                tree.remove(&key(n * 10)).unwrap();
            }
        });
        let scanner = spawn(&tree, |tree| {
            let seen: Vec<_> = tree.range(..).map(|record| record.unwrap()).collect();
            for n in [1u32, 2, 3, 12, 13, 14] {
                assert!(
                    seen.contains(&(key(n * 10).to_vec(), vec![n as u8; 96])),
                    "{n} was there all the time"
                );
            }
        });
        remover.join().unwrap();
        scanner.join().unwrap();
        tree.validate().unwrap();
        assert_eq!(tree.stats().retired_bytes, 0);
    });
}

#[test]
fn leaves_cleared_during_reads_are_freed_by_the_last_reader() {
    explore(|| {
        let tree = filled(replacing(), 40);
        let readers = [10, 20].map(|n| {
            spawn(&tree, move |tree| {
                tree.get_with(&key(n), |value| {
                    // Long enough for the tree to be cleared meanwhile.
                    (0..100).for_each(|_| shuttle::thread::yield_now());
                    value.iter().all(|&byte| byte == n as u8 / 10)
                })
                .unwrap()
            })
        });
        let writer = spawn(&tree, |tree| tree.insert(&key(15), &[9; 40]).unwrap());
        tree.clear().unwrap();
        for reader in readers {
            assert_ne!(reader.join().unwrap(), Some(false));
        }
        writer.join().unwrap();
        // Everything is freed, except what the writer's thread may have in its own list, or have flushed past a reader
        // after the clearing.
        let retired = tree.stats().retired_bytes;
        assert!(retired <= 4096, "{retired} bytes are never freed");
        tree.settle().unwrap();
        assert_eq!(tree.stats().retired_bytes, 0);
    });
}
