//! A flush that returns Ok is truthful, even on a device that loses the data of a failed sync, as Linux does.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use crate::support::{page, version_of};
use leafpress_pages::PagePool;
use leafpress_pages::pool::{PoolError, RawShare};
use leafpress_pages::store::{PageId, PageStore};
use proptest::prelude::*;

const LEN: usize = 4096;
const PAGES: PageId = 50;

/// Versions of pages; [`None`] for a removed one.
type Pages = HashMap<PageId, Option<Vec<u8>>>;

/// Writes go to a cache. A failed sync reports the error once, and drops a part of the cache.
#[derive(Default)]
struct Device {
    cache: Pages,
    platter: Pages,
    /// If set, the next sync fails and loses one in this many pages of the cache.
    fail_next_sync: Option<u64>,
}

#[derive(Default)]
struct Shared {
    device: Mutex<Device>,
    /// Called during the next sync, before its outcome is known.
    in_sync: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

#[derive(Clone, Default)]
struct Store(Arc<Shared>);

impl Store {
    fn fail_next_sync(&self) {
        self.0.device.lock().unwrap().fail_next_sync = Some(1);
    }

    fn in_next_sync(&self, work: impl FnOnce() + Send + 'static) {
        *self.0.in_sync.lock().unwrap() = Some(Box::new(work));
    }

    /// The version in durable storage.
    fn lasting(&self, id: PageId) -> Option<u64> {
        let device = self.0.device.lock().unwrap();
        Some(version_of(id, device.platter.get(&id)?.as_ref()?))
    }

    fn builder(&self) -> leafpress_pages::pool::PoolBuilder {
        PagePool::builder(self.clone())
            .memory(100 << 10)
            .share(RawShare::Fixed { raw_percent: 100 })
            .background_threads(0)
    }
}

impl PageStore for Store {
    fn len(&self) -> u64 {
        10 * PAGES
    }

    fn max_page_bytes(&self) -> usize {
        LEN
    }

    fn has_one_length(&self) -> bool {
        true
    }

    fn page_bytes(&self, page: PageId) -> io::Result<usize> {
        let device = self.0.device.lock().unwrap();
        let newest = device.cache.get(&page).or_else(|| device.platter.get(&page));
        match newest {
            Some(None) => Err(io::ErrorKind::NotFound.into()),
            _ => Ok(LEN),
        }
    }

    fn read(&self, id: PageId, into: &mut [u8]) -> io::Result<()> {
        let device = self.0.device.lock().unwrap();
        match device.cache.get(&id).or_else(|| device.platter.get(&id)) {
            Some(bytes) => into.copy_from_slice(bytes.as_ref().ok_or(io::ErrorKind::NotFound)?),
            None => into.copy_from_slice(&page(id, 0, LEN, 30)),
        }
        Ok(())
    }

    fn write(&self, id: PageId, bytes: &[u8]) -> io::Result<()> {
        self.0.device.lock().unwrap().cache.insert(id, Some(bytes.to_vec()));
        Ok(())
    }

    fn remove(&self, id: PageId) -> io::Result<()> {
        self.0.device.lock().unwrap().cache.insert(id, None);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let in_sync = self.0.in_sync.lock().unwrap().take();
        if let Some(work) = in_sync {
            work();
        }
        let device = &mut *self.0.device.lock().unwrap();
        let failed = device.fail_next_sync.take();
        let kept = device
            .cache
            .drain()
            .filter(|(id, _)| failed.is_none_or(|every| id % every != 0));
        device.platter.extend(kept);
        match failed {
            Some(_) => Err(io::Error::from_raw_os_error(libc::EIO)),
            None => Ok(()),
        }
    }
}

fn update(pool: &PagePool, id: PageId, version: u64) {
    pool.write(id, &page(id, version, LEN, 30)).unwrap();
}

/// Gets enough pages to evict all others.
fn push_out(pool: &PagePool) {
    let leave = pool.stats().raw_evictions + 3 * PAGES;
    (PAGES..10 * PAGES).cycle().find(|&id| {
        pool.get(id).unwrap();
        pool.stats().raw_evictions > leave
    });
}

fn is_a_failed_sync(flushed: Result<(), PoolError>) {
    assert!(matches!(flushed, Err(PoolError::Sync { .. })), "{flushed:?}");
}

#[test]
fn what_is_still_in_the_pool_is_written_again() {
    let store = Store::default();
    let pool = store.builder().build().unwrap();
    update(&pool, 3, 7);
    store.fail_next_sync();
    is_a_failed_sync(pool.flush());
    assert_eq!((pool.stats().sync_errors, pool.stats().lost_pages), (1, 0));
    assert_eq!(version_of(3, &pool.get(3).unwrap()), 7);
    pool.flush().unwrap();
    assert_eq!(store.lasting(3), Some(7));
    // But not a second time.
    let written = pool.stats().write_backs;
    pool.flush().unwrap();
    assert_eq!(pool.stats().write_backs, written);
}

#[test]
fn what_has_left_the_pool_is_not_forgotten() {
    let store = Store::default();
    let pool = store.builder().build().unwrap();
    update(&pool, 3, 7);
    update(&pool, 4, 7);
    push_out(&pool);
    store.fail_next_sync();
    is_a_failed_sync(pool.flush());
    for _ in 0..3 {
        let error = pool.flush().unwrap_err();
        assert!(
            matches!(
                error,
                PoolError::Lost {
                    page: Some(3),
                    pages: 2,
                    or_more: false,
                    ..
                }
            ),
            "{error:?}"
        );
        assert!(
            error
                .to_string()
                .starts_with("2 pages, the first of them 3, may be lost since a sync failed: ")
        );
        assert_eq!(pool.stats().lost_pages, 2);
    }
    // A page that is written again is fine, and a discarded one is not reported.
    update(&pool, 3, 8);
    assert!(matches!(
        pool.flush(),
        Err(PoolError::Lost {
            page: Some(4),
            pages: 1,
            ..
        })
    ));
    assert!(pool.discard(4));
    pool.flush().unwrap();
    assert_eq!(store.lasting(3), Some(8));
    assert_eq!(pool.stats().lost_pages, 0);
}

/// A page that was evicted and synced is not affected by a later failed sync.
#[test]
fn a_later_failure_concerns_no_earlier_page() {
    let store = Store::default();
    let pool = store.builder().build().unwrap();
    update(&pool, 3, 7);
    update(&pool, 4, 7);
    pool.flush().unwrap();
    push_out(&pool);
    for _ in 0..3 {
        store.fail_next_sync();
        is_a_failed_sync(pool.flush());
        pool.flush().unwrap();
    }
    assert_eq!(store.lasting(3), Some(7));
}

#[test]
fn a_second_flush_at_the_same_time_knows_of_the_first_ones_failure() {
    let store = Store::default();
    let pool = Arc::new(store.builder().build().unwrap());
    update(&pool, 3, 7);
    store.fail_next_sync();
    let begun = Arc::new((Mutex::new(false), Condvar::new()));
    let (of_sync, of_pool) = (begun.clone(), pool.clone());
    store.in_next_sync(move || {
        let second = thread::spawn(move || {
            *of_sync.0.lock().unwrap() = true;
            of_sync.1.notify_all();
            of_pool.flush()
        });
        SECOND.lock().unwrap().replace(second);
        let (begun, changed) = &*begun;
        drop(changed.wait_while(begun.lock().unwrap(), |begun| !*begun).unwrap());
        // It proceeds as far as it can before this sync ends.
        thread::sleep(std::time::Duration::from_millis(50));
    });
    static SECOND: Mutex<Option<thread::JoinHandle<Result<(), PoolError>>>> = Mutex::new(None);
    is_a_failed_sync(pool.flush());
    let second = SECOND.lock().unwrap().take().unwrap().join().unwrap();
    assert!(
        second.is_err() || store.lasting(3) == Some(7),
        "the flush returned Ok, and page 3 is not durable"
    );
}

/// A page written during a sync that fails may be among the lost ones.
#[test]
fn what_leaves_during_a_failing_sync_is_not_forgotten() {
    let store = Store::default();
    let pool = Arc::new(store.builder().build().unwrap());
    update(&pool, 3, 7);
    let of_pool = pool.clone();
    store.fail_next_sync();
    store.in_next_sync(move || {
        update(&of_pool, 5, 7);
        push_out(&of_pool);
        update(&of_pool, 6, 7);
    });
    is_a_failed_sync(pool.flush());
    assert!(matches!(
        pool.flush(),
        Err(PoolError::Lost {
            page: Some(3),
            pages: 2,
            ..
        })
    ));
    update(&pool, 3, 8);
    update(&pool, 5, 8);
    pool.flush().unwrap();
    assert_eq!([3, 5, 6].map(|id| store.lasting(id)), [Some(8), Some(8), Some(7)]);
}

#[test]
fn what_leaves_during_a_sync_that_works_waits_for_the_next() {
    let store = Store::default();
    let pool = Arc::new(store.builder().build().unwrap());
    let of_pool = pool.clone();
    store.in_next_sync(move || {
        update(&of_pool, 5, 7);
        push_out(&of_pool);
    });
    pool.flush().unwrap();
    store.fail_next_sync();
    is_a_failed_sync(pool.flush());
    // Here it is durable, which the pool cannot know.
    assert!(matches!(
        pool.flush(),
        Err(PoolError::Lost {
            page: Some(5),
            pages: 1,
            ..
        })
    ));
}

#[test]
fn compressed_pages_are_written_again() {
    let store = Store::default();
    let pool = store
        .builder()
        .share(RawShare::Fixed { raw_percent: 40 })
        .promote_after_hits(63)
        .build()
        .unwrap();
    for id in 0..15 {
        update(&pool, id, 7);
    }
    (PAGES..PAGES + 9).for_each(|id| drop(pool.get(id).unwrap()));
    let stats = pool.stats();
    assert!(stats.compressed_pages > 5 && stats.write_backs > 5, "{stats:?}");
    store.fail_next_sync();
    is_a_failed_sync(pool.flush());
    assert_eq!(pool.stats().lost_pages, 0, "{:?}", pool.stats());
    // New pages must not evict pages that have to be written.
    (PAGES..10 * PAGES).for_each(|id| drop(pool.get(id).unwrap()));
    pool.flush().unwrap();
    for id in 0..15 {
        assert_eq!(store.lasting(id), Some(7), "page {id}");
    }
    (PAGES..10 * PAGES).for_each(|id| drop(pool.get(id).unwrap()));
    assert!(pool.stats().compressed_evictions > 0, "clean again, they leave");
}

#[test]
fn removals_are_not_forgotten() {
    let store = Store::default();
    let pool = store.builder().build().unwrap();
    update(&pool, 3, 7);
    pool.flush().unwrap();
    pool.remove(3).unwrap();
    store.fail_next_sync();
    is_a_failed_sync(pool.flush());
    assert_eq!(store.lasting(3), Some(7), "it is back");
    assert!(matches!(
        pool.flush(),
        Err(PoolError::Lost {
            page: Some(3),
            pages: 1,
            ..
        })
    ));
    pool.remove(3).unwrap();
    pool.flush().unwrap();
    assert_eq!(store.lasting(3), None);
}

/// More pages than a small pool records individually.
#[test]
fn too_many_to_be_noted_are_not_forgotten_either() {
    let store = Store::default();
    let pool = store.builder().build().unwrap();
    for id in 0..100 {
        update(&pool, id, 1);
    }
    push_out(&pool);
    store.fail_next_sync();
    is_a_failed_sync(pool.flush());
    for id in 0..100 {
        update(&pool, id, 2);
    }
    let error = pool.flush().unwrap_err();
    assert!(matches!(error, PoolError::Lost { or_more: true, .. }), "{error:?}");
    assert!(
        error.to_string().starts_with("pages may be lost since a sync failed: "),
        "{error}"
    );
    assert!(pool.stats().table_bytes < 100 << 10);
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Update(PageId),
    Remove(PageId),
    Get(PageId),
    Flush,
    /// A flush whose sync loses one in this many pages.
    Fail(u64),
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// After a flush that returned Ok all updates and removals are durable, whatever failed before.
    #[test]
    fn a_flush_that_succeeds_is_complete(
        raw_percent in prop_oneof![Just(100u8), Just(40)],
        steps in proptest::collection::vec(
            prop_oneof![
                10 => (0..PAGES).prop_map(Step::Update),
                2 => (0..PAGES).prop_map(Step::Remove),
                10 => (PAGES..3 * PAGES).prop_map(Step::Get),
                1 => Just(Step::Flush),
                1 => (1..4u64).prop_map(Step::Fail),
            ],
            1..300,
        ),
    ) {
        let store = Store::default();
        let pool = store.builder().share(RawShare::Fixed { raw_percent }).build().unwrap();
        let mut newest: HashMap<PageId, Option<u64>> = HashMap::new();
        for (version, step) in (1..).zip(steps) {
            match step {
                Step::Update(id) => {
                    update(&pool, id, version);
                    newest.insert(id, Some(version));
                }
                Step::Remove(id) => {
                    pool.remove(id).unwrap();
                    newest.insert(id, None);
                }
                Step::Get(id) => drop(pool.get(id).unwrap()),
                Step::Fail(every) => {
                    store.0.device.lock().unwrap().fail_next_sync = Some(every);
                    is_a_failed_sync(pool.flush());
                }
                Step::Flush => loop {
                    match pool.flush() {
                        Ok(()) => break,
                        Err(PoolError::Lost { page: Some(id), .. }) => match newest[&id] {
                            Some(version) => update(&pool, id, version),
                            None => pool.remove(id).unwrap(),
                        },
                        Err(error) => panic!("{error}"),
                    }
                },
            }
            if let Step::Flush = step {
                for (&id, &version) in &newest {
                    prop_assert_eq!(store.lasting(id), version, "page {}", id);
                }
            }
        }
    }
}
