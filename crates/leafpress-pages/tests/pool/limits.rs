//! Behaviour at a pool's limits: all pages pinned, a failing store, invalid settings and pages.

use std::io;
use std::time::{Duration, Instant};

use crate::support::{TestStore, page, version_of};
use leafpress_pages::PagePool;
use leafpress_pages::pool::{PolicyKind, PoolBuilder, PoolError, RawShare};
use leafpress_pages::store::{FaultyStore, MemoryStore, Operation, PageId, PageStore};

const LEN: usize = 4096;

fn store(pages: u64) -> TestStore {
    TestStore::new((0..pages).map(|id| page(id, 0, LEN, 30)), LEN, true)
}

fn builder(store: &TestStore) -> PoolBuilder {
    PagePool::builder(store.clone()).memory(500 << 10)
}

#[test]
fn everything_pinned_is_an_error_at_once() {
    for policy in PolicyKind::ALL {
        for share in [
            RawShare::Adaptive,
            RawShare::Fixed { raw_percent: 100 },
            RawShare::Fixed { raw_percent: 10 },
        ] {
            let store = store(500);
            let pool = builder(&store).policy(policy).share(share).build().unwrap();
            let mut pins = Vec::new();
            let full = (0..500).find_map(|id| match pool.get(id) {
                Ok(pin) => {
                    pins.push((id, pin));
                    None
                }
                Err(error) => Some(error),
            });
            let full = full.expect("500 pages do not fit");
            assert!(
                matches!(full, PoolError::PoolFull { page, .. } if page == pins.len() as u64),
                "{full}"
            );
            assert!(full.to_string().contains("pinned"), "{full}");
            // Most of the budget is in use.
            assert!(pins.len() > 100, "{policy} {share}: {}", pins.len());
            assert!(matches!(
                pool.write(3, &page(3, 1, LEN, 30)),
                Err(PoolError::PoolFull { .. })
            ));
            let start = Instant::now();
            assert!(matches!(pool.get(499), Err(PoolError::PoolFull { .. })));
            assert!(start.elapsed() < Duration::from_secs(600));
            for (id, pin) in &pins {
                assert_eq!(version_of(*id, pin), 0);
            }
            let stats = pool.stats();
            assert!(stats.bytes_held - stats.pinned_copy_bytes <= stats.budget_bytes);
            assert_eq!(stats.pinned_pages, pins.len() as u64);
            pins.truncate(pins.len() - 1);
            assert_eq!(version_of(499, &pool.get(499).unwrap()), 0);
        }
    }
}

#[test]
fn pages_that_cannot_be_written_stay() {
    let store = store(400);
    let pool = builder(&store)
        .share(RawShare::Fixed { raw_percent: 50 })
        .background_threads(0)
        .build()
        .unwrap();
    store.fail_writes(true);
    for id in 0..20 {
        pool.write(id, &page(id, 1, LEN, 30)).unwrap();
    }
    // Clean pages are evicted instead of them.
    for id in 20..400 {
        assert_eq!(version_of(id, &pool.get(id).unwrap()), 0);
    }
    let error = pool.flush().unwrap_err();
    assert_eq!(error.to_string(), "cannot write page 0: the device is gone");
    // With more of them than there is room for, the store's error is returned, and still nothing is lost.
    let mut updated = 20;
    let error = loop {
        match pool.write(updated, &page(updated, 1, LEN, 30)) {
            Ok(()) => updated += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, PoolError::Store { operation: "write", .. }), "{error}");
    assert!(updated > 60, "{updated}");
    assert!(pool.stats().write_errors > 0);
    for id in 0..updated {
        assert_eq!(version_of(id, &pool.get(id).unwrap()), 1);
    }
    store.fail_writes(false);
    pool.write(updated, &page(updated, 1, LEN, 30)).unwrap();
    pool.flush().unwrap();
    for id in 0..=updated {
        assert_eq!(version_of(id, &store.page(id).unwrap()), 1);
    }
    let written = store.writes();
    pool.flush().unwrap();
    drop(pool);
    assert_eq!(store.writes(), written, "clean pages are not written again");
}

#[test]
fn reads_that_fail_leave_nothing_behind() {
    let store = store(50);
    let pool = builder(&store).build().unwrap();
    store.fail_reads(true);
    let error = pool.get(7).unwrap_err();
    assert_eq!(error.to_string(), "cannot read page 7: the device is gone");
    assert!(pool.prefetch(&[1, 2, 3]).is_err());
    store.fail_reads(false);
    assert_eq!(version_of(7, &pool.get(7).unwrap()), 0);
    assert_eq!(pool.prefetch(&[1, 2, 3, 7, 999]).unwrap(), 3);
    let reads = store.reads();
    for id in 1..4 {
        assert_eq!(version_of(id, &pool.get(id).unwrap()), 0);
    }
    assert_eq!(store.reads(), reads, "prefetched");
    assert_eq!(pool.stats().prefetched, 3);
    assert!(matches!(pool.get(50), Err(PoolError::NotFound { page: 50 })));
}

#[test]
fn removals_that_fail_keep_the_page() {
    let store = store(50);
    let pool = builder(&store).build().unwrap();
    pool.write(5, &page(5, 3, LEN, 30)).unwrap();
    store.fail_removes(true);
    assert_eq!(
        pool.remove(5).unwrap_err().to_string(),
        "cannot remove page 5: the device is gone"
    );
    assert_eq!(version_of(5, &pool.get(5).unwrap()), 3);
    store.fail_removes(false);
    pool.remove(5).unwrap();
    assert!(matches!(pool.get(5), Err(PoolError::NotFound { page: 5 })));
    pool.remove(5).unwrap();
    drop(pool);
    assert!(store.page(5).is_none(), "a removed page is not written back");
}

#[test]
fn cold_pages_are_compressed_and_hot_ones_restored() {
    let store = store(300);
    let pool = builder(&store)
        .memory(600 << 10)
        .share(RawShare::Fixed { raw_percent: 30 })
        .promote_after_hits(3)
        .build()
        .unwrap();
    for id in 0..300 {
        pool.get(id).unwrap();
    }
    let stats = pool.stats();
    assert!(stats.compressions > 200 && stats.compressed_pages > 100, "{stats:?}");
    assert!(
        stats.ratio > 2.0 && stats.compressed_raw_bytes > 2 * stats.compressed_bytes,
        "{stats:?}"
    );
    let reads = store.reads();
    let compressed = 200;
    for _ in 0..2 {
        assert_eq!(version_of(compressed, &pool.get(compressed).unwrap()), 0);
    }
    assert_eq!(pool.stats().restorations, 0);
    for _ in 0..8 {
        assert_eq!(version_of(compressed, &pool.get(compressed).unwrap()), 0);
    }
    let stats = pool.stats();
    assert_eq!((stats.restorations, store.reads()), (1, reads), "{stats:?}");
    assert!(stats.raw_hits >= 5, "{stats:?}");
}

/// If all raw pages are pinned, a popular compressed page is returned as a copy: nothing is evicted to make it raw.
#[test]
fn no_page_leaves_to_restore_another() {
    let store = store(300);
    let pool = builder(&store)
        .memory(600 << 10)
        .share(RawShare::Fixed { raw_percent: 30 })
        .promote_after_hits(3)
        .background_threads(0)
        .build()
        .unwrap();
    for id in 0..300 {
        pool.get(id).unwrap();
    }
    let mut raw_pins = Vec::new();
    for id in 200..300 {
        let raw_hits = pool.stats().raw_hits;
        let pin = pool.get(id).unwrap();
        if pool.stats().raw_hits > raw_hits {
            raw_pins.push(pin);
        }
    }
    let before = pool.stats();
    assert_eq!(before.raw_pages, raw_pins.len() as u64);
    for id in 200..300 {
        for _ in 0..4 {
            assert_eq!(version_of(id, &pool.get(id).unwrap()), 0);
        }
    }
    let after = pool.stats();
    assert_eq!(
        (after.restorations, after.compressed_pages, after.compressed_evictions),
        (
            before.restorations,
            before.compressed_pages,
            before.compressed_evictions
        )
    );
    drop(raw_pins);
    for _ in 0..4 {
        pool.get(200).unwrap();
    }
    assert_eq!(pool.stats().restorations, before.restorations + 1);
}

#[test]
fn pages_that_do_not_shrink_are_not_kept_compressed() {
    let store = TestStore::new((0..300).map(|id| page(id, 0, LEN, 100)), LEN, true);
    let pool = builder(&store)
        .share(RawShare::Fixed { raw_percent: 50 })
        .build()
        .unwrap();
    for id in 0..300 {
        pool.get(id).unwrap();
    }
    let stats = pool.stats();
    assert_eq!((stats.compressions, stats.compressed_pages), (0, 0));
    assert!(stats.incompressible > 100);
}

#[test]
fn the_raw_space_follows_its_share_without_threads_of_the_pool() {
    let slow = FaultyStore::new(store(4_000));
    slow.set_latency(Operation::Read, Duration::from_micros(200));
    let pool = PagePool::builder(slow)
        .memory(2 << 20)
        .codec("lz4".parse().unwrap())
        .share(RawShare::Adaptive)
        .background_threads(0)
        .build()
        .unwrap();
    let mut next = 0_u64;
    let mut get = || {
        next = next
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        pool.get((next >> 33) % 4_000).unwrap();
    };
    // Reading is so expensive that the pool wants most of its pages compressed.
    let decided = (0..100).any(|_| {
        (0..500).for_each(|_| get());
        pool.stats().raw_percent < 25.0
    });
    assert!(decided, "{:?}", pool.stats());
    (0..3_000).for_each(|_| get());
    let stats = pool.stats();
    assert!(stats.raw_space_bytes <= stats.budget_bytes / 3, "{stats:?}");
}

#[test]
fn settings_out_of_their_bounds() {
    let message = |builder: PoolBuilder| builder.build().unwrap_err().to_string();
    let store = store(10);
    assert_eq!(
        message(builder(&store).memory(1000)),
        "memory: 1000 is too little for pages of up to 4096 bytes; give at least 98304"
    );
    assert_eq!(
        message(builder(&store).promote_after_hits(0)),
        "promote_after_hits: 0 is not within 1 to 63"
    );
    assert_eq!(
        message(builder(&store).promote_after_hits(64)),
        "promote_after_hits: 64 is not within 1 to 63"
    );
    assert_eq!(
        message(builder(&store).background_threads(65)),
        "background_threads: 65 are more than 64"
    );
    let share = RawShare::Fixed { raw_percent: 101 };
    assert_eq!(
        message(builder(&store).share(share)),
        "share: 101 percent are more than 100"
    );
    let pool = builder(&store).build().unwrap();
    assert!(pool.set_memory(10).is_err());
    for len in [0, LEN - 1, LEN + 1, 2 << 20] {
        let error = pool.write(1, &vec![0; len]).unwrap_err();
        assert!(matches!(error, PoolError::PageLength { page: 1, .. }), "{error}");
    }
}

#[test]
fn shares_and_policies_have_names() {
    for share in [
        RawShare::Adaptive,
        RawShare::Fixed { raw_percent: 0 },
        RawShare::Fixed { raw_percent: 100 },
    ] {
        assert_eq!(share.to_string().parse(), Ok(share));
    }
    for bad in ["", "fixed", "fixed:", "fixed:101", "fixed:+5", "fixed:1.5", "Adaptive"] {
        assert!(bad.parse::<RawShare>().is_err(), "{bad}");
    }
    for policy in PolicyKind::ALL {
        assert_eq!(policy.to_string().parse(), Ok(policy));
    }
    let error = "arc".parse::<PolicyKind>().unwrap_err();
    assert_eq!(error.to_string(), "unknown policy \"arc\": it is clock, lru or s3-fifo");
}

#[test]
fn many_lengths_of_pages() {
    let pages = (0..200).map(|id| page(id, 0, 512 + (id as usize * 7919) % 60_000, 30));
    let pool = PagePool::builder(MemoryStore::from_pages(pages).unwrap())
        .memory(2 << 20)
        .share(RawShare::Fixed { raw_percent: 50 })
        .build()
        .unwrap();
    let mut random = fastrand::Rng::with_seed(3);
    for round in 0..3 {
        for _ in 0..400 {
            let id = random.u64(0..200);
            assert_eq!(version_of(id, &pool.get(id).unwrap()), 0);
            let stats = pool.stats();
            assert!(
                stats.bytes_held - stats.pinned_copy_bytes <= stats.budget_bytes,
                "{round} {id}: {stats:?}"
            );
        }
    }
    assert!(pool.stats().compressed_hits > 0);
}

/// A store that reports wrong lengths cannot cause writes outside of a page's memory.
#[test]
fn lengths_that_a_store_makes_up() {
    struct Liar;
    impl PageStore for Liar {
        fn len(&self) -> u64 {
            10
        }
        fn max_page_bytes(&self) -> usize {
            LEN
        }
        fn has_one_length(&self) -> bool {
            true
        }
        fn page_bytes(&self, page: PageId) -> io::Result<usize> {
            Ok([0, LEN, 3 * LEN][page as usize % 3])
        }
        fn read(&self, page: PageId, into: &mut [u8]) -> io::Result<()> {
            into.fill(page as u8);
            Ok(())
        }
        fn write(&self, _: PageId, _: &[u8]) -> io::Result<()> {
            Ok(())
        }
        fn remove(&self, _: PageId) -> io::Result<()> {
            Ok(())
        }
    }
    let pool = PagePool::builder(Liar).memory(500 << 10).build().unwrap();
    for (page, len) in [(0, 0), (2, 3 * LEN)] {
        assert!(matches!(pool.get(page), Err(PoolError::PageLength { .. })));
        let error = pool.write(page, &vec![1; len]).unwrap_err();
        assert!(matches!(error, PoolError::PageLength { .. }), "{error}");
    }
    assert!(*pool.get(1).unwrap() == [1; LEN]);
}

#[test]
fn pages_of_some_bytes_that_do_not_shrink_are_not_kept_compressed() {
    let pages = (0..4000_u64).map(|page| page.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes()[..5].to_vec());
    let pool = PagePool::builder(MemoryStore::from_pages(pages).unwrap())
        .memory(128 << 10)
        .share(RawShare::Fixed { raw_percent: 50 })
        .build()
        .unwrap();
    for page in 0..4000 {
        assert_eq!(pool.get(page).unwrap().len(), 5);
    }
    let stats = pool.stats();
    assert!(stats.incompressible > 0, "{stats:?}");
    assert_eq!((stats.compressions, stats.compressed_pages), (0, 0), "{stats:?}");
}

/// Removals are recorded until the next sync. Pages are evicted for these records, even if they could not be written
/// when they were added.
#[test]
fn notes_of_what_was_removed_stay_within_the_budget() {
    let store = store(500);
    let pool = builder(&store).background_threads(0).build().unwrap();
    store.fail_writes(true);
    let first = (0..400).find(|&id| pool.write(id, &page(id, 1, LEN, 30)).is_err());
    let first = first.expect("400 pages do not fit, and none can be written");
    // Exactly the memory held: nothing is left for tables to grow.
    let held = pool.stats().bytes_held;
    pool.set_memory(held).unwrap();
    store.fail_writes(false);
    for id in first..500 {
        pool.remove(id).unwrap();
        let stats = pool.stats();
        assert!(stats.bytes_held <= held, "after {id}: {stats:?}");
    }
}
