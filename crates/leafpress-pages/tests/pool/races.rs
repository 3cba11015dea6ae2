//! Races between two threads: each in the order of events in which it once failed.

use std::io;
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::Duration;

use crate::support::{TestStore, page, version_of};
use leafpress_pages::PagePool;
use leafpress_pages::pool::{PoolBuilder, PoolError, RawShare};
use leafpress_pages::store::{PageId, PageRead, PageStore};

const LEN: usize = 4096;

/// A store that calls back on a write, and delays batches of reads until allowed.
#[derive(Clone)]
struct Interrupted {
    store: TestStore,
    hooks: Arc<Hooks>,
}

#[derive(Default)]
struct Hooks {
    on_write: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    on_remove: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    on_batch: Mutex<Option<mpsc::Sender<()>>>,
    may_read: Mutex<bool>,
    changed: Condvar,
}

impl Interrupted {
    fn new(pages: u64) -> Self {
        Self {
            store: TestStore::new((0..pages).map(|id| page(id, 0, LEN, 30)), LEN, true),
            hooks: Arc::default(),
        }
    }

    fn pool(&self) -> PoolBuilder {
        PagePool::builder(self.clone())
            .memory(500 << 10)
            .share(RawShare::Fixed { raw_percent: 100 })
            .background_threads(0)
    }
}

impl PageStore for Interrupted {
    fn len(&self) -> u64 {
        self.store.len()
    }

    fn max_page_bytes(&self) -> usize {
        self.store.max_page_bytes()
    }

    fn has_one_length(&self) -> bool {
        self.store.has_one_length()
    }

    fn page_bytes(&self, page: PageId) -> io::Result<usize> {
        self.store.page_bytes(page)
    }

    fn read(&self, page: PageId, into: &mut [u8]) -> io::Result<()> {
        self.store.read(page, into)
    }

    fn read_batch(&self, reads: &mut [PageRead<'_>]) {
        if let Some(sender) = self.hooks.on_batch.lock().unwrap().take() {
            sender.send(()).unwrap();
        }
        let mut may_read = self.hooks.may_read.lock().unwrap();
        while !*may_read {
            may_read = self.hooks.changed.wait(may_read).unwrap();
        }
        for read in reads {
            read.result = self.store.read(read.page, read.into);
        }
    }

    fn write(&self, page: PageId, bytes: &[u8]) -> io::Result<()> {
        let hook = self.hooks.on_write.lock().unwrap().take();
        if let Some(hook) = hook {
            hook();
        }
        self.store.write(page, bytes)
    }

    fn remove(&self, page: PageId) -> io::Result<()> {
        let hook = self.hooks.on_remove.lock().unwrap().take();
        if let Some(hook) = hook {
            hook();
        }
        self.store.remove(page)
    }
}

/// The newer version is written in a part that the flush has already passed; the older one, which was there before the
/// flush, is not written any more.
#[test]
fn a_flush_writes_pages_that_are_updated_meanwhile() {
    let store = Interrupted::new(10);
    let pool = Arc::new(store.pool().build().unwrap());
    pool.get(0).unwrap();
    for id in [1, 2] {
        pool.write(id, &page(id, 1, LEN, 30)).unwrap();
    }
    let weak = Arc::downgrade(&pool);
    *store.hooks.on_write.lock().unwrap() = Some(Box::new(move || {
        let pool = weak.upgrade().unwrap();
        pool.remove(0).unwrap();
        pool.write(2, &page(2, 2, LEN, 30)).unwrap();
    }));
    pool.flush().unwrap();
    assert_eq!(version_of(1, &store.store.page(1).unwrap()), 1);
    assert!(version_of(2, &store.store.page(2).unwrap()) >= 1);
}

/// The second update gets the entry that the page had when its removal began.
#[test]
fn updates_during_a_removal_come_after_it() {
    let store = Interrupted::new(10);
    let pool = Arc::new(store.pool().build().unwrap());
    pool.get(1).unwrap();
    let weak = Arc::downgrade(&pool);
    *store.hooks.on_remove.lock().unwrap() = Some(Box::new(move || {
        let pool = weak.upgrade().unwrap();
        for version in [1, 2] {
            pool.write(1, &page(1, version, LEN, 30)).unwrap();
        }
    }));
    pool.remove(1).unwrap();
    assert_eq!(version_of(1, &pool.get(1).unwrap()), 2);
    pool.flush().unwrap();
    assert_eq!(version_of(1, &store.store.page(1).unwrap()), 2);
}

/// No thread waits for ever for an operation that did not end.
#[test]
fn a_store_that_panics_has_failed() {
    let store = Interrupted::new(10);
    let pool = store.pool().build().unwrap();
    fn fail() {
        panic!("a bug of the store");
    }
    let panics = || Some(Box::new(fail) as Box<dyn FnOnce() + Send>);
    pool.write(1, &page(1, 1, LEN, 30)).unwrap();
    *store.hooks.on_write.lock().unwrap() = panics();
    assert_eq!(
        pool.flush().unwrap_err().to_string(),
        "cannot write page 1: the store panicked"
    );
    *store.hooks.on_remove.lock().unwrap() = panics();
    assert_eq!(
        pool.remove(1).unwrap_err().to_string(),
        "cannot remove page 1: the store panicked"
    );
    assert_eq!(version_of(1, &pool.get(1).unwrap()), 1);
    pool.flush().unwrap();
    assert_eq!(version_of(1, &store.store.page(1).unwrap()), 1);
    pool.remove(1).unwrap();
}

/// Pages that are being loaded do not make the pool report that everything is pinned.
#[test]
fn a_get_waits_for_room_that_others_read_into() {
    let store = Interrupted::new(100);
    let pool = store.pool().memory(100 << 10).build().unwrap();
    let (sender, receiver) = mpsc::channel();
    *store.hooks.on_batch.lock().unwrap() = Some(sender);
    std::thread::scope(|scope| {
        let pages: Vec<PageId> = (0..60).collect();
        let pool = &pool;
        let prefetch = scope.spawn(move || pool.prefetch(&pages).unwrap());
        receiver.recv().unwrap();
        let get = scope.spawn(|| pool.get(70).map(|bytes| version_of(70, &bytes)));
        std::thread::sleep(Duration::from_millis(50));
        *store.hooks.may_read.lock().unwrap() = true;
        store.hooks.changed.notify_all();
        assert!(prefetch.join().unwrap() > 0);
        assert_eq!(get.join().unwrap().unwrap(), 0);
    });
}

/// Pages held temporarily by the pool itself do not count as pinned.
#[test]
fn victims_are_not_counted_as_pinned() {
    let store = Interrupted::new(400);
    let pool = store.pool().build().unwrap();
    let held = pool.get(399).unwrap();
    for id in 0..300 {
        pool.get(id).unwrap();
        assert_eq!(pool.stats().pinned_pages, 1);
    }
    drop(held);
}

/// Pages being written by a flush or another thread do not count as pinned.
#[test]
fn pages_that_are_written_are_not_counted_as_pinned() {
    let store = Interrupted::new(400);
    let pool = store.pool().build().unwrap();
    let stats_during_a_write = |work: &(dyn Fn() + Sync)| {
        let (sender, receiver) = mpsc::channel();
        let (let_go, may_go) = mpsc::channel::<()>();
        *store.hooks.on_write.lock().unwrap() = Some(Box::new(move || {
            sender.send(()).unwrap();
            may_go.recv().unwrap();
        }));
        std::thread::scope(|scope| {
            scope.spawn(work);
            receiver.recv().unwrap();
            let stats = pool.stats();
            let_go.send(()).unwrap();
            stats
        })
    };
    pool.write(0, &page(0, 1, LEN, 30)).unwrap();
    assert_eq!(stats_during_a_write(&|| pool.flush().unwrap()).pinned_pages, 0);
    // A dirty page among those evicted for others.
    pool.write(0, &page(0, 2, LEN, 30)).unwrap();
    let reads = || (1..400).for_each(|id| assert_eq!(version_of(id, &pool.get(id).unwrap()), 0));
    assert_eq!(stats_during_a_write(&reads).pinned_pages, 0);
}

/// A held page cannot be evicted: that is determined once, not for every pinned page.
#[test]
fn everything_held_is_found_out_soon() {
    const PAGES: u64 = 6000;
    let pages = (0..PAGES).map(|id| page(id, 0, 512, 30));
    let pool = PagePool::builder(TestStore::new(pages, 512, true))
        .memory(2 << 20)
        .share(RawShare::Fixed { raw_percent: 100 })
        .background_threads(0)
        .build()
        .unwrap();
    pool.get(0).unwrap();
    let mut pins = vec![pool.get(0).unwrap()];
    pins.extend((1..PAGES).map_while(|id| pool.get(id).ok()));
    assert!(pins.len() > 2000, "{}", pins.len());
    let sweeps = pool.stats().sweeps;
    assert!(matches!(pool.get(PAGES - 1), Err(PoolError::PoolFull { .. })));
    assert!(pool.stats().sweeps - sweeps < 10);
}

/// Pages being written by a flush do not make the pool report that it is full.
#[test]
fn a_get_waits_for_pages_that_a_flush_writes() {
    let store = Interrupted::new(100);
    let pool = store.pool().memory(100 << 10).build().unwrap();
    for id in 0..60 {
        pool.write(id, &page(id, 1, LEN, 30)).unwrap();
    }
    let (sender, receiver) = mpsc::channel();
    let (let_go, may_go) = mpsc::channel::<()>();
    *store.hooks.on_write.lock().unwrap() = Some(Box::new(move || {
        sender.send(()).unwrap();
        may_go.recv().unwrap();
    }));
    std::thread::scope(|scope| {
        let flush = scope.spawn(|| pool.flush().unwrap());
        receiver.recv().unwrap();
        let get = scope.spawn(|| pool.get(70).map(|bytes| version_of(70, &bytes)));
        std::thread::sleep(Duration::from_millis(50));
        let_go.send(()).unwrap();
        flush.join().unwrap();
        assert_eq!(get.join().unwrap().unwrap(), 0);
    });
}

/// Versions being written by a flush do not make the pool report that it is full, while only newer versions of the same
/// pages could be evicted.
#[test]
fn updates_wait_for_older_versions_that_a_flush_writes() {
    const WRITTEN: u64 = 40;
    let store = Interrupted::new(WRITTEN);
    let pool = store.pool().memory(300 << 10).build().unwrap();
    let update_all = |version| (0..WRITTEN).try_for_each(|id| pool.write(id, &page(id, version, LEN, 30)));
    update_all(1).unwrap();
    let (sender, receiver) = mpsc::channel();
    let (let_go, may_go) = mpsc::channel::<()>();
    *store.hooks.on_write.lock().unwrap() = Some(Box::new(move || {
        sender.send(()).unwrap();
        may_go.recv().unwrap();
    }));
    std::thread::scope(|scope| {
        let flush = scope.spawn(|| pool.flush().unwrap());
        receiver.recv().unwrap();
        let updates = scope.spawn(|| update_all(2));
        std::thread::sleep(Duration::from_millis(50));
        let_go.send(()).unwrap();
        flush.join().unwrap();
        updates.join().unwrap().unwrap();
    });
    pool.flush().unwrap();
    for id in 0..WRITTEN {
        assert_eq!(version_of(id, &store.store.page(id).unwrap()), 2);
    }
}
