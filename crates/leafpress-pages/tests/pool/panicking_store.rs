//! A store that panics ends no thread of its pool, and leaves no page for which others would wait.

use std::io;
use std::panic::panic_any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{page, version_of};
use leafpress_pages::PagePool;
use leafpress_pages::pool::{PoolError, RawShare};
use leafpress_pages::store::{MemoryStore, PageId, PageStore};

const LEN: usize = 4096;

/// The payload of a panic, which panics again when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !thread::panicking() {
            panic!("a panic's own panic");
        }
    }
}

/// Pages in memory; if enabled, a write by a worker thread panics, and so does a sync by any thread.
struct Panicking {
    pages: MemoryStore,
    panics: AtomicBool,
    panicked: AtomicU64,
    /// Pages written by worker threads.
    written: AtomicU64,
}

impl Panicking {
    fn new(pages: PageId) -> Self {
        Self {
            pages: MemoryStore::from_pages((0..pages).map(|id| page(id, 0, LEN, 30))).unwrap(),
            panics: AtomicBool::new(true),
            panicked: AtomicU64::new(0),
            written: AtomicU64::new(0),
        }
    }

    fn perhaps(&self) {
        if self.panics.load(SeqCst) {
            self.panicked.fetch_add(1, SeqCst);
            panic_any(Bomb);
        }
    }
}

impl PageStore for Panicking {
    fn len(&self) -> u64 {
        self.pages.len()
    }

    fn max_page_bytes(&self) -> usize {
        LEN
    }

    fn page_bytes(&self, page: PageId) -> io::Result<usize> {
        self.pages.page_bytes(page)
    }

    fn read(&self, page: PageId, into: &mut [u8]) -> io::Result<()> {
        self.pages.read(page, into)
    }

    fn write(&self, page: PageId, bytes: &[u8]) -> io::Result<()> {
        if leafpress_base::sync::threads::current_name() == "leafpress-sweep" {
            self.perhaps();
            self.written.fetch_add(1, SeqCst);
        }
        self.pages.write(page, bytes)
    }

    fn remove(&self, page: PageId) -> io::Result<()> {
        self.pages.remove(page)
    }

    fn sync(&self) -> io::Result<()> {
        self.perhaps();
        Ok(())
    }
}

/// Changes pages until `done`.
fn change_until(pool: &PagePool, version: &mut u64, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(
            start.elapsed() < Duration::from_secs(600),
            "no thread of the pool works: {:?}",
            pool.stats()
        );
        *version += 1;
        for id in 0..400 {
            pool.write(id, &page(id, *version, LEN, 30)).unwrap();
        }
    }
}

#[test]
fn a_store_that_panics_ends_no_thread_of_the_pool() {
    let store = Arc::new(Panicking::new(400));
    let pool = PagePool::builder(store.clone())
        .memory(500 << 10)
        .share(RawShare::Fixed { raw_percent: 100 })
        .background_threads(2)
        .build()
        .unwrap();
    let mut version = 0;
    // More than there are threads. The pool counts an error after the panic was caught.
    change_until(&pool, &mut version, || pool.stats().write_errors > 5);
    assert!(store.panicked.load(SeqCst) > 5);
    store.panics.store(false, SeqCst);
    change_until(&pool, &mut version, || store.written.load(SeqCst) > 50);
    // No page is left busy or pinned by a write that panicked.
    pool.flush().unwrap();
    let mut bytes = [0; LEN];
    for id in 0..400 {
        store.pages.read(id, &mut bytes).unwrap();
        assert_eq!(version_of(id, &bytes), version);
    }
    let stats = pool.stats();
    assert_eq!(
        (stats.pinned_pages, stats.worker_panics, stats.workers_ended),
        (0, 0, 0),
        "{stats:?}"
    );
}

#[test]
fn a_sync_that_panics_has_failed() {
    let store = Arc::new(Panicking::new(400));
    let pool = PagePool::builder(store.clone()).build().unwrap();
    pool.write(3, &page(3, 1, LEN, 30)).unwrap();
    assert!(matches!(pool.flush(), Err(PoolError::Sync { .. })));
    store.panics.store(false, SeqCst);
    pool.flush().unwrap();
    assert_eq!(pool.stats().write_backs, 2);
}
