//! Allocation failures in any allocation: a pool's operation returns the error, and its contents are unchanged.
//!
//! A separate program because of its allocator. Only the texts of a store's errors still need memory.

#[path = "../../leafpress/tests/support/starving.rs"]
mod starving;
#[path = "pool/support.rs"]
mod support;

use std::collections::BTreeMap;

use leafpress_pages::PagePool;
use leafpress_pages::pool::{PolicyKind, PoolError, RawShare};
use leafpress_pages::store::{AutoOnOff, FileStore, MemoryStore, PageId, PageRead, PageStore, PageWrite};
use proptest::collection::vec;
use proptest::prelude::*;
use starving::{refused, starved};
use support::{page, version_of};

const LEN: usize = 4096;
const PAGES: PageId = 300;

/// Returns true if an operation succeeded; panics for an error other than out of memory.
#[track_caller]
fn done<T>(result: Result<T, PoolError>) -> Option<T> {
    match result {
        Ok(done) => Some(done),
        // Without memory for one more frame and for the list of victims, everything seems pinned.
        Err(PoolError::OutOfMemory { .. } | PoolError::PoolFull { .. } | PoolError::Codec(_)) => None,
        Err(error) => panic!("{error}"),
    }
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Get(PageId),
    Update(PageId),
    Remove(PageId),
    Discard(PageId),
    Prefetch(PageId),
    Flush,
    Resize(usize),
}

fn check(pool: &PagePool, model: &BTreeMap<PageId, u64>) {
    for id in 0..2 * PAGES {
        match (pool.get(id), model.get(&id)) {
            (Ok(bytes), Some(&version)) => assert_eq!(version_of(id, &bytes), version, "page {id}"),
            (Err(PoolError::NotFound { .. }), None) => {}
            (got, expected) => panic!("page {id}: {got:?}, expected {expected:?}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(36))]

    #[test]
    fn an_operation_without_memory_changes_nothing(
        policy in prop_oneof![Just(PolicyKind::Clock), Just(PolicyKind::Lru), Just(PolicyKind::S3Fifo)],
        share in prop_oneof![
            Just(RawShare::Fixed { raw_percent: 100 }),
            Just(RawShare::Fixed { raw_percent: 40 }),
            Just(RawShare::Adaptive),
        ],
        steps in vec((
            prop_oneof![
                10 => (0..PAGES).prop_map(Step::Get),
                10 => (0..2 * PAGES).prop_map(Step::Update),
                2 => (0..2 * PAGES).prop_map(Step::Remove),
                1 => (0..2 * PAGES).prop_map(Step::Discard),
                2 => (0..PAGES).prop_map(Step::Prefetch),
                1 => Just(Step::Flush),
                1 => (150usize..1200).prop_map(Step::Resize),
            ],
            prop_oneof![1 => Just(-1i64), 2 => 0i64..4],
        ), 1..600),
    ) {
        let store = MemoryStore::from_pages((0..PAGES).map(|id| page(id, 0, LEN, 30))).unwrap();
        let pool = PagePool::builder(store)
            .memory(1 << 20)
            .policy(policy)
            .share(share)
            .promote_after_hits(2)
            .background_threads(0)
            .build()
            .unwrap();
        let mut model: BTreeMap<PageId, u64> = (0..PAGES).map(|id| (id, 0)).collect();
        for (version, &(step, after)) in (1..).zip(&steps) {
            match step {
                // The store's error for an absent page has a text.
                Step::Get(id) => if let Some(&version) = model.get(&id) {
                    let got = starved(after, || pool.get(id));
                    if let Some(bytes) = done(got) {
                        prop_assert_eq!(version_of(id, &bytes), version);
                    }
                },
                Step::Update(id) => {
                    let bytes = page(id, version, LEN, 30);
                    if done(starved(after, || pool.write(id, &bytes))).is_some() {
                        model.insert(id, version);
                    }
                }
                Step::Remove(id) => if done(starved(after, || pool.remove(id))).is_some() {
                    model.remove(&id);
                },
                Step::Discard(id) => if starved(after, || pool.discard(id)) {
                    // The store's version may be newer than at the last flush.
                    match pool.get(id) {
                        Ok(bytes) => { model.insert(id, version_of(id, &bytes)); }
                        Err(_) => { model.remove(&id); }
                    }
                },
                Step::Prefetch(id) => {
                    let pages: Vec<PageId> = (id..PAGES.min(id + 80)).filter(|id| model.contains_key(id)).collect();
                    done(starved(after, || pool.prefetch(&pages)));
                }
                Step::Flush => {
                    done(starved(after, || pool.flush()));
                }
                Step::Resize(kib) => { done(starved(after, || pool.set_memory(kib << 10))); }
            }
        }
        pool.set_memory(1 << 20).unwrap();
        check(&pool, &model);
        pool.flush().unwrap();
        let mut bytes = [0; LEN];
        for (&id, &version) in &model {
            pool.store().read(id, &mut bytes).unwrap();
            prop_assert_eq!(version_of(id, &bytes), version);
        }
        let stats = pool.stats();
        prop_assert_eq!((stats.pinned_pages, stats.pinned_copy_bytes), (0, 0));
    }
}

/// A compressed page is decoded into memory of the reader's own.
#[test]
fn a_hit_on_a_compressed_page_without_memory_is_an_error() {
    let store = MemoryStore::from_pages((0..PAGES).map(|id| page(id, 0, LEN, 30))).unwrap();
    let pool = PagePool::builder(store)
        .memory(1 << 20)
        .share(RawShare::Fixed { raw_percent: 20 })
        .promote_after_hits(63)
        .background_threads(0)
        .build()
        .unwrap();
    (0..PAGES).for_each(|id| drop(pool.get(id).unwrap()));
    assert!(pool.stats().compressed_pages > 100);
    let hits = pool.stats().compressed_hits;
    let without = (0..PAGES).filter(|&id| match starved(0, || pool.get(id)) {
        Ok(bytes) => version_of(id, &bytes) != 0,
        Err(PoolError::OutOfMemory { bytes }) => bytes == LEN,
        Err(error) => panic!("{error}"),
    });
    assert!(without.count() > 100);
    assert!(refused() > 100);
    (0..PAGES).for_each(|id| assert_eq!(version_of(id, &pool.get(id).unwrap()), 0));
    assert!(pool.stats().compressed_hits > hits + 100);
}

/// Unsynced evicted pages are recorded; one that is removed then is updated in place, even if the table of them is
/// full.
#[test]
fn removing_a_page_that_left_unsynced_needs_no_memory() {
    let store = MemoryStore::from_pages((0..PAGES).map(|id| page(id, 0, LEN, 30))).unwrap();
    let pool = PagePool::builder(store)
        .memory(96 << 10)
        .share(RawShare::Fixed { raw_percent: 100 })
        .background_threads(0)
        .build()
        .unwrap();
    // At most the number of pages that the pool records individually with its budget.
    for id in 0..60 {
        pool.write(id, &page(id, 1, LEN, 30)).unwrap();
        // It is evicted, and written.
        pool.prefetch(&(id + 1..id + 1 + 100).collect::<Vec<_>>()).unwrap();
        starved(0, || pool.remove(id)).unwrap();
    }
    pool.flush().unwrap();
    assert!((0..60).all(|id| matches!(pool.get(id), Err(PoolError::NotFound { .. }))));
}

/// A thread whose first call is made without memory can use the pool nevertheless.
#[test]
fn a_thread_without_memory_of_its_own_reads_raw_pages() {
    let store = MemoryStore::from_pages((0..PAGES).map(|id| page(id, 0, LEN, 30))).unwrap();
    let pool = PagePool::builder(store).background_threads(0).build().unwrap();
    let held = pool.get(7).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            starved(0, || drop(pool.get(7).unwrap()));
            assert_eq!(version_of(7, &pool.get(7).unwrap()), 0);
        });
    });
    assert_eq!((version_of(7, &held), pool.stats().raw_hits), (0, 2));
}

/// Without memory for its lists a batch is executed page by page.
#[test]
fn batches_of_a_file_need_no_memory_but_for_copies() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for io_uring in [AutoOnOff::Off, AutoOnOff::Auto] {
        let options = FileStore::options().direct(AutoOnOff::Off).io_uring(io_uring);
        let store = options
            .create(directory.path().join(format!("{io_uring:?}")), LEN)
            .unwrap();
        // First with memory: a growing file allocates for the state of its new pages.
        for after in -1..8 {
            let pages: Vec<_> = (0..40).map(|id| page(id, (after + 1) as u64, LEN, 30)).collect();
            let mut writes: Vec<PageWrite<'_>> = (0..)
                .zip(&pages)
                .map(|(page, bytes)| PageWrite {
                    page,
                    bytes,
                    result: Err(std::io::ErrorKind::Other.into()),
                })
                .collect();
            starved(after, || store.write_batch(&mut writes));
            assert!(writes.iter().all(|write| write.result.is_ok()), "{after}");
            let mut buffers = vec![vec![0; LEN]; pages.len()];
            let mut reads: Vec<PageRead<'_>> = (0..)
                .zip(&mut buffers)
                .map(|(page, into)| PageRead {
                    page,
                    into,
                    result: Err(std::io::ErrorKind::Other.into()),
                })
                .collect();
            starved(after, || store.read_batch(&mut reads));
            assert!(reads.iter().all(|read| read.result.is_ok()), "{after}");
            assert!(buffers == pages, "{after}");
        }
    }
}
