//! The pool under Miri: its frames, its log, its entries and its index, with one thread and with several.
//!
//! ```text
//! cargo +nightly miri test -p leafpress --no-default-features --test miri pool::
//! ```
//! Miri cannot run C code: run-length coding replaces LZ4. The same tests run natively within a moment.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;

use leafpress::store::{MemoryStore, PageId};
use leafpress_pages::PagePool;
use leafpress_pages::pool::{PolicyKind, PoolBuilder, PoolError, RawShare};

const LEN: usize = 4096;

/// Returns a page with its id at its beginning, its middle and its end; an eighth of it is incompressible.
fn page(id: PageId, version: u64) -> Vec<u8> {
    let mut bytes = vec![id as u8; LEN];
    fastrand::Rng::with_seed(id ^ version << 32).fill(&mut bytes[16..16 + LEN / 8]);
    for at in [0, LEN / 2, LEN - 16] {
        bytes[at..at + 8].copy_from_slice(&id.to_le_bytes());
        bytes[at + 8..at + 16].copy_from_slice(&version.to_le_bytes());
    }
    bytes
}

#[track_caller]
fn version_of(id: PageId, bytes: &[u8]) -> u64 {
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    assert_eq!(bytes.len(), LEN);
    for at in [0, LEN / 2, LEN - 16] {
        assert_eq!((word(at), word(at + 8)), (id, word(8)));
    }
    word(8)
}

fn pool(pages: u64, policy: PolicyKind, raw_percent: u8) -> PagePool {
    builder(pages)
        .policy(policy)
        .share(RawShare::Fixed { raw_percent })
        .build()
        .unwrap()
}

/// Room for some twenty pages.
fn builder(pages: u64) -> PoolBuilder {
    PagePool::builder(MemoryStore::from_pages((0..pages).map(|id| page(id, 0))).unwrap())
        .memory(128 << 10)
        .codec("lz4".parse().unwrap())
        .promote_after_hits(2)
        .background_threads(0)
}

fn stored(pool: &PagePool, id: PageId) -> Option<u64> {
    let mut bytes = vec![0; LEN];
    pool.store().read(id, &mut bytes).ok()?;
    Some(version_of(id, &bytes))
}

#[test]
fn pages_come_change_and_go() {
    for (policy, raw_percent) in [(PolicyKind::Clock, 40), (PolicyKind::S3Fifo, 100)] {
        let pool = pool(40, policy, raw_percent);
        let mut versions = [Some(0); 40];
        let held = pool.get(3).unwrap();
        for turn in 0..24_u64 {
            let id = turn * 7 % 40;
            match turn % 5 {
                0 => {
                    pool.write(id, &page(id, turn)).unwrap();
                    versions[id as usize] = Some(turn);
                }
                1 if turn % 3 == 0 => {
                    pool.remove(id).unwrap();
                    versions[id as usize] = None;
                }
                2 => {
                    pool.prefetch(&[id, id + 1, 999]).unwrap();
                }
                _ => match pool.get(id % 12) {
                    Ok(bytes) => assert_eq!(Some(version_of(id % 12, &bytes)), versions[id as usize % 12]),
                    Err(error) => assert!(matches!(error, PoolError::NotFound { .. }), "{error}"),
                },
            }
        }
        assert_eq!(version_of(3, &held), 0);
        drop(held);
        pool.set_memory(100 << 10).unwrap();
        pool.flush().unwrap();
        for id in (0..40).filter(|id| versions[*id as usize] != Some(0)) {
            assert_eq!(stored(&pool, id), versions[id as usize]);
        }
        let stats = pool.stats();
        assert!(raw_percent == 100 || stats.compressions > 0, "{stats:?}");
    }
}

#[test]
fn many_lengths() {
    let pages = (0..24_usize).map(|id| vec![id as u8; 512 + id * 977 % 9000]);
    let pool = PagePool::builder(MemoryStore::from_pages(pages).unwrap())
        .memory(150 << 10)
        .codec("lz4".parse().unwrap())
        .share(RawShare::Fixed { raw_percent: 60 })
        .background_threads(0)
        .build()
        .unwrap();
    for turn in 0..30_usize {
        let id = turn * 11 % 24;
        let bytes = pool.get(id as PageId).unwrap();
        assert!(*bytes == vec![id as u8; 512 + id * 977 % 9000]);
    }
}

#[test]
fn readers_a_writer_and_a_remover() {
    for raw_percent in [20, 100] {
        let pool = pool(30, PolicyKind::Clock, raw_percent);
        let newest = [const { AtomicU64::new(0) }; 30];
        thread::scope(|scope| {
            scope.spawn(|| {
                for turn in 1..12_u64 {
                    let id = turn % 5;
                    pool.write(id, &page(id, turn)).unwrap();
                    newest[id as usize].store(turn, SeqCst);
                }
                pool.flush().unwrap();
            });
            scope.spawn(|| {
                for turn in 0..5 {
                    pool.remove(20 + turn % 5).unwrap();
                    pool.write(20 + turn % 5, &page(20 + turn % 5, turn)).unwrap();
                }
            });
            for seed in 0..2 {
                let (pool, newest) = (&pool, &newest);
                scope.spawn(move || {
                    for turn in 0..12_u64 {
                        let id = (turn * 3 + seed) % if turn % 2 == 0 { 5 } else { 20 };
                        let least = newest[id as usize].load(SeqCst);
                        assert!(version_of(id, &pool.get(id).unwrap()) >= least);
                    }
                });
            }
        });
        pool.flush().unwrap();
        for id in 0..5 {
            assert_eq!(stored(&pool, id), Some(newest[id as usize].load(SeqCst)));
        }
        assert_eq!(pool.stats().pinned_copy_bytes, 0);
    }
}

/// The table of entries grows while other threads search it.
#[test]
fn the_table_grows_while_it_is_searched() {
    const SHORT: usize = 64;
    let pool = PagePool::builder(MemoryStore::from_pages((0..12_u32).map(|_| [7; SHORT])).unwrap())
        .memory(128 << 10)
        .codec("none".parse().unwrap())
        .background_threads(0)
        .build()
        .unwrap();
    for id in 0..6 {
        pool.get(id).unwrap();
    }
    thread::scope(|scope| {
        scope.spawn(|| (6..12).for_each(|id| assert_eq!(*pool.get(id).unwrap(), [7; SHORT])));
        scope.spawn(|| {
            for _ in 0..6 {
                pool.stats();
                thread::yield_now();
            }
        });
    });
}

#[test]
fn a_thread_of_its_own() {
    let pool = builder(10)
        .background_threads(1)
        .share(RawShare::Fixed { raw_percent: 50 })
        .build()
        .unwrap();
    for id in 0..10 {
        assert_eq!(version_of(id, &pool.get(id).unwrap()), 0);
    }
    pool.write(3, &page(3, 1)).unwrap();
    drop(pool);
}
