//! Interleavings of threads that load a value with threads that change it. See `tree.rs` for how to run them.

use std::time::Duration;

use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::thread;

use crate::explore::explore;
use leafpress::Cache;
use leafpress::cache::{CacheUpdate, Disk, RawShare};
use leafpress::codec::Codec;
use leafpress::store::MemoryStore;

fn cache() -> Arc<Cache> {
    Arc::new(Cache::builder().memory(8 << 20).codec(Codec::None).build().unwrap())
}

fn number(value: &[u8]) -> u64 {
    u64::from_le_bytes(value.try_into().unwrap())
}

/// Starts two threads that load the key.
fn loaders(cache: &Arc<Cache>, backend: &Arc<AtomicU64>) -> Vec<thread::JoinHandle<u64>> {
    let start = |_| {
        let (cache, backend) = (Arc::clone(cache), Arc::clone(backend));
        thread::spawn(move || {
            let value = cache.get_or_insert_with("key", || backend.load(Ordering::SeqCst).to_le_bytes());
            number(&value.unwrap())
        })
    };
    (0..2).map(start).collect()
}

#[test]
fn a_removal_wins_over_a_load() {
    explore(|| {
        let (cache, backend) = (cache(), Arc::new(AtomicU64::new(1)));
        let loaders = loaders(&cache, &backend);
        backend.store(2, Ordering::SeqCst);
        cache.remove("key").unwrap();
        // A value that was loaded before must be gone, and must not reappear.
        let found = |cache: &Cache| cache.get_with("key", number).unwrap();
        assert!(found(&cache).is_none_or(|found| found == 2));
        loaders
            .into_iter()
            .for_each(|loader| assert!(loader.join().unwrap() > 0));
        assert!(found(&cache).is_none_or(|found| found == 2));
    });
}

/// As before, while the record that the loaders find is to be loaded anew.
#[test]
fn a_write_and_a_removal_win_over_a_load_that_replaces_a_record() {
    let hour = Duration::from_secs(3600);
    for removes in [false, true] {
        explore(move || {
            let builder = Cache::builder().memory(8 << 20).codec(Codec::None);
            let builder = builder.default_ttl(hour).refresh_ahead(hour);
            let (cache, backend) = (Arc::new(builder.build().unwrap()), Arc::new(AtomicU64::new(1)));
            cache.insert("key", &1_u64.to_le_bytes()).unwrap();
            let loaders = loaders(&cache, &backend);
            backend.store(2, Ordering::SeqCst);
            match removes {
                false => cache.insert("key", &2_u64.to_le_bytes()).unwrap(),
                true => _ = cache.remove("key").unwrap(),
            }
            let found = |cache: &Cache| cache.get_with("key", number).unwrap();
            let is_new = |found: Option<u64>| found == Some(2) || removes && found.is_none();
            assert!(is_new(found(&cache)));
            loaders
                .into_iter()
                .for_each(|loader| assert!(loader.join().unwrap() > 0));
            assert!(is_new(found(&cache)));
        });
    }
}

#[test]
fn a_removal_that_finds_nothing_and_an_insert_win_over_a_load() {
    /// A change of the key, which was applied to the backend before.
    type Change = fn(&Cache);
    let changes: [Change; 4] = [
        |cache| assert!(cache.take("key").unwrap().is_none_or(|found| number(&found) > 0)),
        |cache| _ = cache.update_with("key", |_| CacheUpdate::<&[u8]>::Remove).unwrap(),
        |cache| {
            // Repeated until the key is absent.
            while !cache.compare_and_swap("key", None, None).unwrap() {
                cache.remove("key").unwrap();
            }
        },
        |cache| cache.insert("key", &2_u64.to_le_bytes()).unwrap(),
    ];
    for change in changes {
        explore(move || {
            let (cache, backend) = (cache(), Arc::new(AtomicU64::new(1)));
            let loader = {
                let (cache, backend) = (Arc::clone(&cache), Arc::clone(&backend));
                thread::spawn(move || {
                    let load = || backend.load(Ordering::SeqCst).to_le_bytes();
                    number(&cache.get_or_insert_with("key", load).unwrap())
                })
            };
            backend.store(2, Ordering::SeqCst);
            change(&cache);
            let is_right = || {
                let found = cache.get_with("key", number).unwrap();
                found.is_none_or(|found| found == 2)
            };
            assert!(is_right());
            assert!(loader.join().unwrap() > 0);
            assert!(is_right());
        });
    }
}

#[test]
fn all_threads_that_miss_get_the_value_loaded_by_one() {
    explore(|| {
        let (cache, loads) = (cache(), Arc::new(AtomicU64::new(0)));
        let loaders: Vec<_> = (0..3)
            .map(|_| {
                let (cache, loads) = (Arc::clone(&cache), Arc::clone(&loads));
                thread::spawn(move || {
                    let value =
                        cache.get_or_insert_with("key", || (loads.fetch_add(1, Ordering::SeqCst) + 7).to_le_bytes());
                    number(&value.unwrap())
                })
            })
            .collect();
        for loader in loaders {
            assert_eq!(loader.join().unwrap(), 7);
        }
        assert_eq!(loads.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn a_failed_load_lets_a_waiting_thread_load() {
    explore(|| {
        let cache = cache();
        let fails = {
            let cache = Arc::clone(&cache);
            thread::spawn(move || cache.try_get_or_insert_with("key", || Err::<Vec<u8>, _>("no")).is_ok())
        };
        let works = {
            let cache = Arc::clone(&cache);
            thread::spawn(move || {
                cache
                    .try_get_or_insert_with("key", || Ok::<_, u32>(b"x".to_vec()))
                    .unwrap()
            })
        };
        fails.join().unwrap();
        // An error of another type than the caller's own must not reach it.
        assert_eq!(works.join().unwrap(), b"x");
    });
}

/// Returns a cache whose records are all on disk: `key` with 1, and others.
fn on_disk() -> Arc<Cache> {
    let store = std::sync::Arc::new(MemoryStore::new(4096).unwrap());
    let disk = Disk::store(store, 4 << 20).codec(Codec::None);
    let builder = Cache::builder().memory(8 << 20).codec(Codec::None).disk(disk);
    let cache = builder.build().unwrap();
    for key in ["a", "key", "z"] {
        cache.insert(key, &1_u64.to_le_bytes()).unwrap();
    }
    cache.spill().unwrap();
    Arc::new(cache)
}

#[test]
fn what_comes_back_from_disk_is_not_what_was_replaced_meanwhile() {
    explore(|| {
        let cache = on_disk();
        let written = Arc::new(AtomicU64::new(1));
        let spiller = {
            let cache = Arc::clone(&cache);
            thread::spawn(move || (0..2).for_each(|_| cache.spill().unwrap()))
        };
        let reader = {
            let (cache, written) = (Arc::clone(&cache), Arc::clone(&written));
            thread::spawn(move || {
                for _ in 0..3 {
                    let least = written.load(Ordering::SeqCst);
                    let found = cache.get_with("key", number).unwrap();
                    assert!(found.is_none_or(|found| found >= least), "{found:?} after {least}");
                }
            })
        };
        for version in 2..4_u64 {
            cache.insert("key", &version.to_le_bytes()).unwrap();
            written.store(version, Ordering::SeqCst);
        }
        reader.join().unwrap();
        spiller.join().unwrap();
        assert_eq!(cache.get_with("key", number).unwrap(), Some(3));
        cache.validate().unwrap();
    });
}

#[test]
fn what_was_removed_does_not_come_back_from_disk() {
    explore(|| {
        let cache = on_disk();
        let others: Vec<_> = (0..2)
            .map(|n| {
                let cache = Arc::clone(&cache);
                thread::spawn(move || {
                    if n == 0 {
                        let _ = cache.get_with("key", number).unwrap();
                    }
                    cache.spill().unwrap();
                    let _ = cache.get_with("key", number).unwrap();
                })
            })
            .collect();
        cache.remove("key").unwrap();
        assert_eq!(cache.get_with("key", number).unwrap(), None);
        cache.insert("key", &2_u64.to_le_bytes()).unwrap();
        cache.remove("key").unwrap();
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(cache.get_with("key", number).unwrap(), None);
        cache.spill().unwrap();
        assert_eq!(cache.get_with("key", number).unwrap(), None);
        assert_eq!(cache.get_with("a", number).unwrap(), Some(1));
    });
}

fn add_one(old: Option<&[u8]>) -> CacheUpdate<[u8; 8]> {
    CacheUpdate::Put((old.map_or(0, number) + 1).to_le_bytes())
}

#[test]
fn no_increment_is_lost_while_a_counter_is_written_to_disk() {
    explore(|| {
        let cache = on_disk();
        let spiller = {
            let cache = Arc::clone(&cache);
            thread::spawn(move || {
                cache.spill().unwrap();
                let _ = cache.get_with("key", number).unwrap();
                cache.spill().unwrap();
            })
        };
        let counter = {
            let cache = Arc::clone(&cache);
            thread::spawn(move || (0..2).for_each(|_| _ = cache.update_with("key", add_one).unwrap()))
        };
        cache.update_with("key", add_one).unwrap();
        counter.join().unwrap();
        spiller.join().unwrap();
        assert_eq!(cache.get_with("key", number).unwrap(), Some(4));
        cache.validate().unwrap();
    });
}

#[test]
fn a_value_is_taken_once_while_it_is_written_to_disk() {
    explore(|| {
        let cache = on_disk();
        let spiller = {
            let cache = Arc::clone(&cache);
            thread::spawn(move || (0..2).for_each(|_| cache.spill().unwrap()))
        };
        let taker = {
            let cache = Arc::clone(&cache);
            thread::spawn(move || cache.take("key").unwrap())
        };
        let taken = [cache.take("key").unwrap(), taker.join().unwrap()];
        spiller.join().unwrap();
        assert_eq!(taken.iter().flatten().count(), 1, "{taken:?}");
        assert_eq!(cache.get_with("key", number).unwrap(), None);
        cache.spill().unwrap();
        assert_eq!(cache.get_with("key", number).unwrap(), None);
    });
}

#[test]
fn no_load_replaces_what_an_update_made() {
    explore(|| {
        let cache = cache();
        let loader = {
            let cache = Arc::clone(&cache);
            thread::spawn(move || number(&cache.get_or_insert_with("key", || 10_u64.to_le_bytes()).unwrap()))
        };
        let mut old = None;
        let update = |found: Option<&[u8]>| {
            old = found.map(number);
            CacheUpdate::Put(20_u64.to_le_bytes())
        };
        cache.update_with("key", update).unwrap();
        let loaded = loader.join().unwrap();
        assert!(loaded == 10 || loaded == 20 && old.is_none());
        assert_eq!(cache.get_with("key", number).unwrap(), Some(20));
    });
}

#[test]
fn a_copy_is_never_older_than_a_write() {
    explore(|| {
        let builder = Cache::builder().memory(8 << 20).codec(Codec::None);
        let cache = Arc::new(builder.share(RawShare::Fixed { raw_percent: 5 }).build().unwrap());
        cache.insert("key", &1_u64.to_le_bytes()).unwrap();
        cache.settle().unwrap();
        // One read in 64 copies its record.
        (0..64).for_each(|_| assert_eq!(cache.get_with("key", number).unwrap(), Some(1)));
        assert_eq!(cache.stats().tree.hot_records, 1);
        let done = Arc::new(AtomicU64::new(1));
        let threads: Vec<_> = (0..3)
            .map(|thread| {
                let (cache, done) = (Arc::clone(&cache), Arc::clone(&done));
                thread::spawn(move || {
                    if thread == 0 {
                        for version in 2..4_u64 {
                            cache.insert("key", &version.to_le_bytes()).unwrap();
                            done.store(version, Ordering::SeqCst);
                        }
                        return;
                    }
                    let mut last = 0;
                    for _ in 0..3 {
                        let least = done.load(Ordering::SeqCst).max(last);
                        last = cache.get_with("key", number).unwrap().unwrap();
                        assert!(last >= least, "{last} after {least}");
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(cache.get_with("key", number).unwrap(), Some(3));
    });
}
