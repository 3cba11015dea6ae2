//! Accesses to entries that are being moved, which takes only some nanoseconds in a running pool.

use std::thread;
use std::time::Duration;

use super::entry::CLAIMED;
use super::{PagePool, RawShare};
use crate::store::{MemoryStore, PageId};

const LEN: usize = 4096;

fn pool() -> PagePool {
    let pages = (0..1000_u32).map(|id| id.to_le_bytes().repeat(LEN / 4));
    PagePool::builder(MemoryStore::from_pages(pages).unwrap())
        .memory(500 << 10)
        .share(RawShare::Fixed { raw_percent: 100 })
        .background_threads(0)
        .build()
        .unwrap()
}

fn entry_of(pool: &PagePool, page: PageId) -> u32 {
    let (hash, shard) = pool.core.shard(page);
    shard.lock().get(hash, page, &pool.core.entries).unwrap()
}

#[test]
fn a_page_that_is_moved_as_victims_are_chosen_can_leave_later() {
    let pool = pool();
    pool.get(0).unwrap();
    let entry = pool.core.entries.at(entry_of(&pool, 0));
    entry.set(CLAIMED);
    for id in 1..300 {
        pool.get(id).unwrap();
    }
    entry.clear(CLAIMED);
    for id in 300..900 {
        pool.get(id).unwrap();
    }
    let misses = pool.stats().misses;
    pool.get(0).unwrap();
    assert_eq!(pool.stats().misses, misses + 1, "it was passed over for ever");
}

#[test]
fn a_flush_writes_a_page_that_is_being_moved() {
    let pool = pool();
    pool.write(7, &[1; LEN]).unwrap();
    let entry = pool.core.entries.at(entry_of(&pool, 7));
    entry.set(CLAIMED);
    thread::scope(|scope| {
        let flush = scope.spawn(|| pool.flush().unwrap());
        thread::sleep(Duration::from_millis(50));
        entry.clear(CLAIMED);
        flush.join().unwrap();
    });
    let mut stored = [0; LEN];
    pool.store().read(7, &mut stored).unwrap();
    assert!(stored == [1; LEN]);
}
