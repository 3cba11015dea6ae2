//! A thread may use a pool until its very end: from the destructors of its thread-local values.

use std::sync::LazyLock;
use std::thread;

use leafpress_pages::PagePool;
use leafpress_pages::pool::RawShare;
use leafpress_pages::store::MemoryStore;

const LEN: usize = 4096;
const THREADS: u64 = 200;

static POOL: LazyLock<PagePool> = LazyLock::new(|| {
    let pages = (0..1000_u64).map(|id| id.to_le_bytes().repeat(LEN / 8));
    PagePool::builder(MemoryStore::from_pages(pages).unwrap())
        .memory(1 << 20)
        .share(RawShare::Fixed { raw_percent: 50 })
        .build()
        .unwrap()
});

/// Pages that a thread changes when it exits.
struct WriteBehind(u64);

impl Drop for WriteBehind {
    fn drop(&mut self) {
        let held = POOL.get(999).unwrap();
        POOL.write(self.0, &[self.0 as u8; LEN]).unwrap();
        // Enough pages to evict others.
        for id in 200..900 {
            assert_eq!(POOL.get(id).unwrap()[..8], id.to_le_bytes());
        }
        assert_eq!(POOL.get(self.0).unwrap()[9], self.0 as u8);
        assert_eq!(held[..8], 999_u64.to_le_bytes());
        POOL.flush().unwrap();
    }
}

thread_local! {
    static BEHIND: std::cell::RefCell<Option<WriteBehind>> = const { std::cell::RefCell::new(None) };
}

#[test]
fn a_thread_may_use_a_pool_as_it_ends() {
    for id in 0..THREADS {
        thread::spawn(move || {
            // Initialised first, and so destroyed last.
            BEHIND.with(|behind| behind.replace(Some(WriteBehind(id))));
            POOL.get(999).unwrap();
        })
        .join()
        .unwrap();
    }
    for id in 0..THREADS {
        assert!(*POOL.get(id).unwrap() == [id as u8; LEN]);
    }
    let stats = POOL.stats();
    assert_eq!((stats.pinned_pages, stats.updates), (0, THREADS), "{stats:?}");
    // Resources of exited threads are reused by later ones.
    assert!(stats.table_bytes < 200 << 10, "{stats:?}");
}
