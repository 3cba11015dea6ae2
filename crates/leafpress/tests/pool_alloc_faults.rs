//! Memory that runs out, whichever allocation it is refused to: a pool's operation says so, and what it held it still holds.
//!
//! A program of its own, for its allocator. Only the texts of a store's errors still need memory.

#[path = "pool/support.rs"]
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;

use leafpress::PagePool;
use leafpress::pool::{MemoryStore, PageId, PolicyKind, PoolError, Share};
use proptest::collection::vec;
use proptest::prelude::*;
use support::{page, version_of};

const LEN: usize = 4096;
const PAGES: PageId = 300;

thread_local! {
    /// Allocations of this thread that succeed before all fail; negative: none fails.
    static LEFT: Cell<i64> = const { Cell::new(-1) };
    static REFUSED: Cell<u64> = const { Cell::new(0) };
}

struct Failing;

// SAFETY: everything is passed to the system's allocator; refusing is allowed.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let left = LEFT.get();
        if left == 0 {
            REFUSED.set(REFUSED.get() + 1);
            return std::ptr::null_mut();
        }
        LEFT.set(left - i64::from(left > 0));
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `alloc`, which is the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Failing = Failing;

/// Runs `work` with allocations failing from number `after` on.
fn starved<T>(after: i64, work: impl FnOnce() -> T) -> T {
    LEFT.set(after);
    let result = work();
    LEFT.set(-1);
    result
}

/// Whether an operation was done; panics for an error that is not one of memory.
#[track_caller]
fn done<T>(result: Result<T, PoolError>) -> Option<T> {
    match result {
        Ok(done) => Some(done),
        // Where there is no memory for one more frame nor for the list of victims, everything seems pinned.
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
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn an_operation_without_memory_changes_nothing(
        policy in prop_oneof![Just(PolicyKind::Clock), Just(PolicyKind::Lru), Just(PolicyKind::S3Fifo)],
        raw_percent in prop_oneof![Just(100u8), Just(40)],
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
            .budget_bytes(1 << 20)
            .policy(policy)
            .share(Share::Fixed { raw_percent })
            .restore_after(2)
            .background_threads(0)
            .build()
            .unwrap();
        let mut model: BTreeMap<PageId, u64> = (0..PAGES).map(|id| (id, 0)).collect();
        for (version, &(step, after)) in (1..).zip(&steps) {
            match step {
                // The store's error for a page that is not there has a text.
                Step::Get(id) => if let Some(&version) = model.get(&id) {
                    let got = starved(after, || pool.get(id));
                    if let Some(bytes) = done(got) {
                        prop_assert_eq!(version_of(id, &bytes), version);
                    }
                },
                Step::Update(id) => {
                    let bytes = page(id, version, LEN, 30);
                    if done(starved(after, || pool.update(id, &bytes))).is_some() {
                        model.insert(id, version);
                    }
                }
                Step::Remove(id) => if done(starved(after, || pool.remove(id))).is_some() {
                    model.remove(&id);
                },
                Step::Discard(id) => if starved(after, || pool.discard(id)) {
                    // What the store has may be newer than at the last flush.
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
                Step::Resize(kib) => { done(starved(after, || pool.resize(kib << 10))); }
            }
        }
        pool.resize(1 << 20).unwrap();
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
        .budget_bytes(1 << 20)
        .share(Share::Fixed { raw_percent: 20 })
        .restore_after(63)
        .background_threads(0)
        .build()
        .unwrap();
    (0..PAGES).for_each(|id| drop(pool.get(id).unwrap()));
    assert!(pool.stats().compressed_pages > 100);
    let hits = pool.stats().compressed_hits;
    let refused = (0..PAGES).filter(|&id| match starved(0, || pool.get(id)) {
        Ok(bytes) => version_of(id, &bytes) != 0,
        Err(PoolError::OutOfMemory { bytes }) => bytes == LEN,
        Err(error) => panic!("{error}"),
    });
    assert!(refused.count() > 100);
    assert!(REFUSED.get() > 100);
    (0..PAGES).for_each(|id| assert_eq!(version_of(id, &pool.get(id).unwrap()), 0));
    assert!(pool.stats().compressed_hits > hits + 100);
}

/// A thread that comes first when there is no memory uses the pool all the same.
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
