//! Interleavings of two or three threads on a pool of a few pages, chosen by shuttle's random and PCT schedulers
//! (Burckhardt et al., ASPLOS 2010).
//!
//! ```text
//! RUSTFLAGS="--cfg shuttle" CARGO_TARGET_DIR=target/shuttle \
//!     cargo test --release -p leafpress --no-default-features --test shuttle pool::
//! ```
//! `SHUTTLE_ITERATIONS` sets how many schedules each scheduler tries (300). A failure prints the schedule to replay.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use crate::explore::explore;
use leafpress::store::{PageId, PageStore};
use leafpress_pages::PagePool;
use leafpress_pages::pool::{PolicyKind, PoolError, RawShare};
use shuttle::sync::Mutex;
use shuttle::thread;

/// Two pages share a run of frames; a pool of the minimum size holds fourteen.
const LEN: usize = 10 << 10;
const PAGES: PageId = 16;
const NO_PAGE: u64 = u64::MAX;

/// Returns a page of a version; it is so little compressible that a segment of the compressed space holds two.
fn page(id: PageId, version: u64) -> Vec<u8> {
    let mut bytes = vec![id as u8; LEN];
    fastrand::Rng::with_seed(id << 32 | version).fill(&mut bytes[16..LEN * 3 / 4]);
    bytes[..8].copy_from_slice(&id.to_le_bytes());
    bytes[8..16].copy_from_slice(&version.to_le_bytes());
    bytes
}

fn version_of(id: PageId, bytes: &[u8]) -> u64 {
    let version = u64::from_le_bytes(bytes[8..16].try_into().unwrap());
    assert!(*bytes == page(id, version), "page {id}: a wrong byte");
    version
}

/// Pages in memory, with operations that can be preempted.
#[derive(Default)]
struct Store {
    pages: Mutex<BTreeMap<PageId, Vec<u8>>>,
    busy: Mutex<BTreeSet<PageId>>,
    reads: AtomicU64,
}

impl Store {
    fn alone<R>(&self, page: PageId, work: impl FnOnce(&mut BTreeMap<PageId, Vec<u8>>) -> R) -> R {
        assert!(
            self.busy.lock().unwrap().insert(page),
            "two operations at once on page {page}"
        );
        let done = work(&mut self.pages.lock().unwrap());
        assert!(self.busy.lock().unwrap().remove(&page));
        done
    }

    fn version(&self, id: PageId) -> u64 {
        self.pages
            .lock()
            .unwrap()
            .get(&id)
            .map_or(NO_PAGE, |bytes| version_of(id, bytes))
    }
}

impl PageStore for Store {
    fn len(&self) -> u64 {
        PAGES
    }

    fn max_page_bytes(&self) -> usize {
        LEN
    }

    fn has_one_length(&self) -> bool {
        true
    }

    fn page_bytes(&self, page: PageId) -> io::Result<usize> {
        let pages = self.pages.lock().unwrap();
        pages.get(&page).map(Vec::len).ok_or(io::ErrorKind::NotFound.into())
    }

    fn read(&self, page: PageId, into: &mut [u8]) -> io::Result<()> {
        self.reads.fetch_add(1, SeqCst);
        self.alone(page, |pages| {
            into.copy_from_slice(pages.get(&page).ok_or(io::ErrorKind::NotFound)?);
            Ok(())
        })
    }

    fn write(&self, page: PageId, bytes: &[u8]) -> io::Result<()> {
        self.alone(page, |pages| pages.insert(page, bytes.to_vec()));
        Ok(())
    }

    fn remove(&self, page: PageId) -> io::Result<()> {
        self.alone(page, |pages| pages.remove(&page));
        Ok(())
    }
}

/// A pool, its store, and the newest versions.
struct World {
    store: Arc<Store>,
    pool: PagePool,
    newest: [AtomicU64; PAGES as usize],
}

impl World {
    /// Creates a pool in which the pages `loaded` were read, in this order.
    fn new(policy: PolicyKind, raw_percent: u8, loaded: impl IntoIterator<Item = PageId>) -> Arc<Self> {
        let store = Arc::new(Store::default());
        *store.pages.lock().unwrap() = (0..PAGES).map(|id| (id, page(id, 0))).collect();
        let pool = PagePool::builder(store.clone())
            .memory((64 << 10) + 8 * LEN)
            .share(RawShare::Fixed { raw_percent })
            .policy(policy)
            .promote_after_hits(1)
            .background_threads(0)
            .build()
            .unwrap();
        let world = Self {
            store,
            pool,
            newest: [const { AtomicU64::new(0) }; PAGES as usize],
        };
        loaded.into_iter().for_each(|id| world.get(id));
        Arc::new(world)
    }

    fn newest(&self, id: PageId) -> u64 {
        self.newest[id as usize].load(SeqCst)
    }

    /// Gets a page that no thread removes, and checks that it is whole, and not older than the newest version before
    /// the call.
    fn get(&self, id: PageId) {
        let least = self.newest(id);
        let bytes = self.pool.get(id).unwrap();
        let version = version_of(id, &bytes);
        assert!(version >= least, "page {id}: version {version} after {least}");
        thread::yield_now();
        assert_eq!(version_of(id, &bytes), version, "a page changed under a pin");
    }

    /// Updates a page that no other thread updates.
    fn update(&self, id: PageId, version: u64) {
        self.pool.write(id, &page(id, version)).unwrap();
        self.newest[id as usize].store(version, SeqCst);
    }

    /// Removes a page that no other thread changes.
    fn remove(&self, id: PageId) {
        self.newest[id as usize].store(0, SeqCst);
        self.pool.remove(id).unwrap();
    }

    /// Flushes, and checks that the store then has the versions from before the call.
    fn flush(&self) {
        let before: Vec<_> = (0..PAGES).map(|id| self.newest(id)).collect();
        self.pool.flush().unwrap();
        for (id, before) in (0..PAGES).zip(before) {
            let stored = self.store.version(id);
            assert!(
                stored == NO_PAGE || stored >= before,
                "page {id}: {stored} after {before}"
            );
        }
    }

    /// Checks at the end that the pool has the newest versions, that `gone` are absent, and that nothing has leaked.
    fn end(&self, gone: &[PageId]) {
        self.pool.flush().unwrap();
        for id in (0..PAGES).filter(|id| !gone.contains(id)) {
            assert_eq!(self.store.version(id), self.newest(id), "page {id} in the store");
            self.get(id);
        }
        for &id in gone {
            assert_eq!(self.store.version(id), NO_PAGE);
            assert!(matches!(self.pool.get(id), Err(PoolError::NotFound { .. })));
        }
        let stats = self.pool.stats();
        assert!(stats.bytes_held <= stats.budget_bytes, "{stats:?}");
        assert_eq!((stats.pinned_pages, stats.pinned_copy_bytes), (0, 0), "{stats:?}");
        for id in 0..PAGES {
            self.pool.remove(id).unwrap();
        }
        let stats = self.pool.stats();
        let compressed = (
            stats.compressed_pages,
            stats.compressed_bytes,
            stats.compressed_raw_bytes,
        );
        assert_eq!(compressed, (0, 0, 0), "{stats:?}");
        // Every frame can be allocated again: by pages that are read from the store, since a page that is found
        // compressed needs none.
        *self.store.pages.lock().unwrap() = (0..PAGES).map(|id| (id, page(id, 1))).collect();
        let mut pins = Vec::new();
        let full = (0..PAGES).find_map(|id| self.pool.get(id).map(|pin| pins.push(pin)).err());
        assert!(matches!(full, Some(PoolError::PoolFull { .. })), "{full:?}");
        let stats = self.pool.stats();
        let raw_pins = pins.len() - stats.pinned_copy_bytes / LEN;
        assert_eq!(stats.raw_space_bytes, raw_pins * LEN, "{stats:?}");
        assert_eq!(
            (stats.pinned_pages, stats.compressed_pages),
            (raw_pins as u64, 0),
            "{stats:?}"
        );
    }
}

fn spawn(world: &Arc<World>, work: impl FnOnce(&World) + Send + 'static) -> thread::JoinHandle<()> {
    let world = world.clone();
    thread::spawn(move || work(&world))
}

fn join<const N: usize>(threads: [thread::JoinHandle<()>; N]) {
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn a_pin_during_evictions() {
    for (policy, raw_percent) in [(PolicyKind::Clock, 50), (PolicyKind::Lru, 100), (PolicyKind::S3Fifo, 0)] {
        explore(move || {
            let world = World::new(policy, raw_percent, 0..12);
            join([
                spawn(&world, |world| {
                    let held = world.pool.get(7).unwrap();
                    world.get(6);
                    world.get(0);
                    assert_eq!(version_of(7, &held), 0);
                }),
                spawn(&world, |world| (12..PAGES).for_each(|id| world.get(id))),
                spawn(&world, |world| [7, 6, 5, 7].into_iter().for_each(|id| world.get(id))),
            ]);
            world.end(&[]);
        });
    }
}

#[test]
fn an_update_during_a_read_and_evictions() {
    for raw_percent in [50, 100] {
        explore(move || {
            let world = World::new(PolicyKind::Clock, raw_percent, 0..8);
            join([
                spawn(&world, |world| (1..4).for_each(|version| world.update(7, version))),
                spawn(&world, |world| (0..4).for_each(|_| world.get(7))),
                spawn(&world, |world| (0..PAGES).for_each(|id| world.get(id))),
            ]);
            world.end(&[]);
        });
    }
}

#[test]
fn a_removal_during_a_load_and_write_back() {
    for raw_percent in [50, 100] {
        explore(move || {
            let world = World::new(PolicyKind::Clock, raw_percent, []);
            world.update(1, 1);
            world.update(2, 1);
            join([
                spawn(&world, |world| {
                    world.remove(1);
                    assert!(matches!(world.pool.get(1), Err(PoolError::NotFound { .. })));
                    world.remove(3);
                    world.remove(2);
                    world.update(2, 7);
                }),
                spawn(&world, |world| {
                    for id in [3, 1, 2, 3] {
                        match world.pool.get(id) {
                            Ok(bytes) => drop(version_of(id, &bytes)),
                            Err(error) => assert!(matches!(error, PoolError::NotFound { .. }), "{error}"),
                        }
                    }
                }),
                spawn(&world, |world| {
                    (4..PAGES).for_each(|id| world.get(id));
                    world.pool.flush().unwrap();
                }),
            ]);
            world.end(&[1, 3]);
        });
    }
}

#[test]
fn two_loads_of_one_page_read_it_once() {
    explore(|| {
        let world = World::new(PolicyKind::Clock, 100, []);
        join([5, 5, 6].map(|first| {
            spawn(&world, move |world| {
                world.get(first);
                world.get(11 - first);
            })
        }));
        assert_eq!(world.store.reads.load(SeqCst), 2);
        assert_eq!(world.pool.stats().misses, 2);
        world.end(&[]);
    });
}

#[test]
fn a_restoration_during_reclamation() {
    for policy in PolicyKind::ALL {
        explore(move || {
            let world = World::new(policy, 50, 0..14);
            assert!(world.pool.stats().compressed_pages > 1);
            let again = |world: &World| (4..8).chain(4..8).for_each(|id| world.get(id));
            join([
                spawn(&world, again),
                spawn(&world, again),
                spawn(&world, |world| {
                    (13..PAGES).for_each(|id| world.get(id));
                    world.update(4, 1);
                }),
            ]);
            world.end(&[]);
        });
    }
}

#[test]
fn a_flush_during_updates() {
    explore(|| {
        let world = World::new(PolicyKind::Clock, 50, 0..3);
        (0..4).for_each(|id| world.update(id, 1));
        join([
            spawn(&world, |world| {
                (0..4).rev().for_each(|id| world.update(id, 2));
                world.flush();
            }),
            spawn(&world, |world| {
                world.flush();
                world.flush();
            }),
            spawn(&world, |world| (4..13).for_each(|id| world.get(id))),
        ]);
        world.end(&[]);
    });
}

#[test]
fn a_prefetch_during_a_get_and_an_update() {
    explore(|| {
        let world = World::new(PolicyKind::Clock, 50, []);
        join([
            spawn(&world, |world| {
                world.pool.prefetch(&[1, 2, 3, 1, 99]).unwrap();
            }),
            spawn(&world, |world| [2, 1, 3].into_iter().for_each(|id| world.get(id))),
            spawn(&world, |world| {
                world.update(3, 1);
                world.update(1, 1);
            }),
        ]);
        world.end(&[]);
    });
}

/// A smaller budget moves pages together while other threads access them.
#[test]
fn a_smaller_budget_during_gets_and_a_flush() {
    explore(|| {
        let world = World::new(PolicyKind::Clock, 80, []);
        world.pool.set_memory(400 << 10).unwrap();
        (0..PAGES).for_each(|id| world.get(id));
        (0..4).for_each(|id| world.update(id, 1));
        join([
            spawn(&world, |world| world.pool.set_memory((64 << 10) + 8 * LEN).unwrap()),
            spawn(&world, |world| [1, 5, 11, 3].into_iter().for_each(|id| world.get(id))),
            spawn(&world, |world| {
                world.flush();
                world.update(6, 1);
            }),
        ]);
        world.end(&[]);
    });
}
