//! A store of the caller's own that panics.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cache::{Cache, Disk};
use leafpress_base::store::{MemoryStore, PageStore, PageWrite};

/// Panics after each batch that it has written.
struct Panics {
    inner: MemoryStore,
    panics: AtomicU64,
}

impl PageStore for Panics {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn page_bytes(&self, page: u64) -> io::Result<usize> {
        self.inner.page_bytes(page)
    }

    fn max_page_bytes(&self) -> usize {
        self.inner.max_page_bytes()
    }

    fn read(&self, page: u64, into: &mut [u8]) -> io::Result<()> {
        self.inner.read(page, into)
    }

    fn write(&self, page: u64, bytes: &[u8]) -> io::Result<()> {
        self.inner.write(page, bytes)
    }

    fn remove(&self, page: u64) -> io::Result<()> {
        self.inner.remove(page)
    }

    fn write_batch(&self, writes: &mut [PageWrite<'_>]) {
        self.inner.write_batch(writes);
        self.panics.fetch_add(1, Ordering::SeqCst);
        panic!("the store panics");
    }
}

#[test]
fn positions_that_a_panic_has_used_are_not_used_again() {
    let store = Arc::new(Panics {
        inner: MemoryStore::new(4096).unwrap(),
        panics: AtomicU64::new(0),
    });
    let disk = Disk::store(Arc::clone(&store) as Arc<dyn PageStore>, 8 << 20);
    let cache = Cache::builder().memory(4 << 20).disk(disk).build().unwrap();
    let tier = Arc::clone(cache.core.disk.as_ref().unwrap());
    let before = tier.writer.lock().head;
    cache.insert("key", &[1; 100]).unwrap();
    // Written by this thread or by the writer thread.
    let _ = catch_unwind(AssertUnwindSafe(|| cache.core.spill(&tier)));
    let panics = loop {
        // A write that panics has ended when its lock is free.
        let writer = tier.writer.lock();
        match store.panics.load(Ordering::SeqCst) {
            0 => drop(writer),
            panics => break panics * tier.device.blocks <= writer.head - before,
        }
        std::thread::yield_now();
    };
    assert!(
        panics,
        "a run reuses the position of one whose pages were partially written"
    );
}
