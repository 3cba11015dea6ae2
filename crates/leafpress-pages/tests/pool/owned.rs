//! A guard that borrows nothing keeps its page, regardless of changes to the page and the pool.

use std::sync::Arc;
use std::thread;

use leafpress_pages::PagePool;
use leafpress_pages::pool::{OwnedPageGuard, PoolStats, RawShare};

use crate::support::{TestStore, page};

const LEN: usize = 4096;
const PAGES: u64 = 2000;

/// Room for an eighth of the pages, some of them compressed.
fn pool() -> PagePool {
    let store = TestStore::new((0..PAGES).map(|id| page(id, 0, LEN, 30)), LEN, true);
    PagePool::builder(store)
        .memory(1 << 20)
        .codec("lz4".parse().unwrap())
        .share(RawShare::Fixed { raw_percent: 50 })
        .build()
        .unwrap()
}

fn guards(pool: &PagePool) -> Vec<(u64, OwnedPageGuard)> {
    // More pages than a thread has slots, including compressed ones.
    (0..PAGES).for_each(|id| drop(pool.get(id).unwrap()));
    let ids = (0..PAGES).rev().step_by(7).take(60);
    ids.map(|id| (id, pool.get_owned(id).unwrap())).collect()
}

fn check(guards: &[(u64, OwnedPageGuard)]) {
    for (id, guard) in guards {
        assert!(**guard == *page(*id, 0, LEN, 30), "page {id} in hand has changed");
    }
}

#[test]
fn a_page_in_hand_stays_as_it_was() {
    let pool = pool();
    let guards = guards(&pool);
    let copies = |stats: PoolStats| stats.pinned_copy_bytes;
    assert!(copies(pool.stats()) > 0, "none of a compressed page");
    for (id, _) in &guards {
        pool.write(*id, &page(*id, 1, LEN, 30)).unwrap();
    }
    (0..PAGES).for_each(|id| drop(pool.get(id).unwrap()));
    check(&guards);
    // They are released by other threads than those that got them.
    thread::scope(|scope| {
        scope.spawn(move || drop(guards));
    });
    assert_eq!(copies(pool.stats()), 0);
    for id in 0..PAGES {
        pool.remove(id).unwrap();
    }
}

#[test]
fn a_page_in_hand_outlives_its_pool() {
    let pool = pool();
    let guards = Arc::new(guards(&pool));
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let guards = Arc::clone(&guards);
            thread::spawn(move || (0..20).for_each(|_| check(&guards)))
        })
        .collect();
    drop(pool);
    check(&guards);
    readers.into_iter().for_each(|reader| reader.join().unwrap());
    drop(guards);
}
