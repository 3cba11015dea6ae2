//! Many threads on one pool: none sees a wrong byte, a page that changes under a pin, or a version older than one seen
//! before.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::support::{TestStore, page, version_of};
use leafpress_pages::PagePool;
use leafpress_pages::pool::{PolicyKind, PoolError, RawShare};
use leafpress_pages::store::PageId;

const PAGES: PageId = 400;
const LEN: usize = 4096;
const REMOVED: u64 = u64::MAX;

/// The newest version of every page; `seen` grows with what readers may rely on.
struct Truth {
    /// Held while a page is changed.
    locks: Vec<Mutex<u64>>,
    seen: Vec<AtomicU64>,
}

fn hammer(policy: PolicyKind, share: RawShare, codec: &str, writers: usize, readers: usize, background_threads: usize) {
    let store = TestStore::new((0..PAGES).map(|id| page(id, 0, LEN, id as usize % 70)), LEN, true);
    let pool = PagePool::builder(store.clone())
        .memory(600 << 10)
        .codec(codec.parse().unwrap())
        .share(share)
        .policy(policy)
        .promote_after_hits(2)
        .background_threads(background_threads)
        .build()
        .unwrap();
    let truth = Truth {
        locks: (0..PAGES).map(|_| Mutex::new(0)).collect(),
        seen: (0..PAGES).map(|_| AtomicU64::new(0)).collect(),
    };
    let stop = AtomicBool::new(false);
    let (pool, truth, stop) = (&pool, &truth, &stop);
    let pick = |random: &mut fastrand::Rng| match random.u32(0..10) {
        0..7 => random.u64(0..PAGES / 10),
        _ => random.u64(0..PAGES),
    };
    std::thread::scope(|scope| {
        for seed in 0..writers {
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed as u64);
                while !stop.load(Ordering::Relaxed) {
                    let id = pick(&mut random);
                    let mut version = truth.locks[id as usize].lock().unwrap();
                    if random.u32(0..20) == 0 {
                        // Readers may find it or not until it exists again.
                        truth.seen[id as usize].store(REMOVED, Ordering::SeqCst);
                        pool.remove(id).unwrap();
                        assert!(matches!(pool.get(id), Err(PoolError::NotFound { .. })));
                    }
                    *version += 1;
                    pool.write(id, &page(id, *version, LEN, random.usize(0..100))).unwrap();
                    truth.seen[id as usize].store(*version, Ordering::SeqCst);
                }
            });
        }
        for seed in 0..readers {
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(1000 + seed as u64);
                let mut held = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let id = pick(&mut random);
                    let least = truth.seen[id as usize].load(Ordering::SeqCst);
                    match pool.get(id) {
                        Ok(bytes) => {
                            let version = version_of(id, &bytes);
                            assert!(least == REMOVED || version >= least, "{version} after {least}");
                            held.push((id, version, bytes));
                        }
                        Err(PoolError::NotFound { .. }) => {
                            let now = truth.seen[id as usize].load(Ordering::SeqCst);
                            assert!(least == REMOVED || now != least, "page {id} is gone");
                        }
                        Err(error) => panic!("{error}"),
                    }
                    if random.u32(0..50) == 0 {
                        let first = random.u64(0..PAGES);
                        let pages: Vec<PageId> = (first..first + 8).collect();
                        pool.prefetch(&pages).unwrap();
                    }
                    if held.len() > 12 || random.u32(0..4) == 0 {
                        let mut drop_some = random.usize(0..=held.len());
                        held.retain(|(id, version, bytes)| {
                            assert_eq!(version_of(*id, bytes), *version, "a page changed under a pin");
                            drop_some = drop_some.saturating_sub(1);
                            drop_some > 0
                        });
                    }
                }
            });
        }
        scope.spawn(move || {
            let mut random = fastrand::Rng::with_seed(7);
            while !stop.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(3));
                match random.u32(0..3) {
                    0 => pool.flush().unwrap(),
                    1 => pool.set_memory(random.usize(500..900) << 10).unwrap(),
                    _ => {
                        pool.stats();
                    }
                }
            }
        });
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(700) {
            std::thread::sleep(Duration::from_millis(20));
        }
        stop.store(true, Ordering::Relaxed);
    });
    let stats = pool.stats();
    assert_eq!(stats.pinned_copy_bytes, 0);
    pool.flush().unwrap();
    for id in 0..PAGES {
        let version = *truth.locks[id as usize].lock().unwrap();
        assert_eq!(version_of(id, &pool.get(id).unwrap()), version);
        assert_eq!(
            version_of(id, &store.page(id).unwrap()),
            version,
            "page {id} in the store"
        );
    }
    assert_eq!(store.overlaps(), 0, "two operations at once on one page");
    assert!(stats.misses > 0 && stats.updates > 0);
}

#[test]
fn readers_and_writers() {
    for policy in PolicyKind::ALL {
        for (share, codec) in [
            (RawShare::Fixed { raw_percent: 40 }, "lz4"),
            (RawShare::Fixed { raw_percent: 5 }, "zstd:1"),
        ] {
            hammer(policy, share, codec, 2, 3, 1);
        }
    }
}

#[test]
fn more_threads_than_there_is_room_for() {
    hammer(PolicyKind::Clock, RawShare::Fixed { raw_percent: 20 }, "lz4", 2, 6, 2);
    hammer(PolicyKind::Clock, RawShare::Fixed { raw_percent: 100 }, "none", 2, 4, 0);
}

#[test]
fn share_that_moves() {
    hammer(PolicyKind::Clock, RawShare::Adaptive, "lz4", 1, 3, 1);
}
