//! Handles of one cache, and closing it while they are used.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use leafpress::Cache;
use leafpress::cache::{CacheError, CacheUpdate, Disk, InsertOptions, LoadError, ManualClock};
use leafpress::store::Operation;

use crate::disk::{fill, found, on, store};
use crate::tasks::block_on;
use crate::{key, noise, small};

fn is_closed<T>(result: Result<T, CacheError>) -> bool {
    matches!(result, Err(CacheError::Closed))
}

#[test]
fn a_clone_is_another_handle_of_the_same_cache() {
    let cache = small().build().unwrap();
    let other = cache.clone();
    cache.insert("key", "value").unwrap();
    assert_eq!(other.get("key").unwrap().unwrap(), b"value");
    drop(cache);
    other.insert("another", "value").unwrap();
    assert_eq!(other.len(), 2);
    assert!(!other.is_closed());
    // Handles move into threads.
    let handles = (0..4).map(|n| {
        let cache = other.clone();
        thread::spawn(move || cache.insert(&key(n), "value").unwrap())
    });
    handles
        .collect::<Vec<_>>()
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    assert_eq!(other.len(), 6);
}

/// With and without a disk tier.
#[test]
fn every_operation_of_a_closed_cache_fails() {
    for builder in [small(), small().disk(Disk::store(store(), 16 << 20))] {
        let cache = builder.build().unwrap();
        fill(&cache, 0..1000, 100);
        let (other, mut range, mut scan) = (cache.clone(), cache.range(..), cache.scan(..));
        assert!(range.next().unwrap().is_ok() && scan.next().unwrap().is_ok());
        other.close().unwrap();
        other.close().unwrap();
        cache.close().unwrap();
        assert!(cache.is_closed() && other.is_closed());
        // What was under way does not look complete.
        assert!(range.any(is_closed) && range.next().is_none());
        assert!(scan.any(is_closed) && scan.next().is_none());

        let brief = InsertOptions::ttl(Duration::from_secs(5));
        let key = &key(0);
        let load = || -> &str { unreachable!("it is closed") };
        let mut buffer = b"left".to_vec();
        for (name, is_refused) in [
            ("get", is_closed(cache.get(key))),
            ("get_into", is_closed(cache.get_into(key, &mut buffer))),
            ("get_many", is_closed(cache.get_many(&[key]))),
            ("get_async", is_closed(block_on(cache.get_async(key)))),
            ("get_many_async", is_closed(block_on(cache.get_many_async(&[key])))),
            ("get_in_memory_with", is_closed(cache.get_in_memory_with(key, |_| ()))),
            ("contains_key", is_closed(cache.contains_key(key))),
            ("insert", is_closed(cache.insert(key, "value"))),
            ("insert, long", is_closed(cache.insert(key, &noise(1, 300_000)))),
            ("insert_entry", is_closed(cache.insert_entry(key, "value", brief))),
            ("remove", is_closed(cache.remove(key))),
            ("remove, absent", is_closed(cache.remove("absent"))),
            ("invalidate", is_closed(cache.invalidate(key))),
            ("swap", is_closed(cache.swap(key, "value"))),
            ("take", is_closed(cache.take(key))),
            (
                "update_with",
                is_closed(cache.update_with(key, |_| CacheUpdate::<&str>::Keep)),
            ),
            (
                "compare_and_swap",
                is_closed(cache.compare_and_swap(key, None, Some(b"value"))),
            ),
            ("get_or_insert_with", is_closed(cache.get_or_insert_with(key, load))),
            ("peek", is_closed(cache.peek(key))),
            ("ttl", is_closed(cache.ttl(key))),
            ("expire", is_closed(cache.expire(key, None))),
            ("remove_prefix", is_closed(cache.remove_prefix("item"))),
            ("retain", is_closed(cache.retain(|_, _| true))),
            ("clear", is_closed(cache.clear())),
            ("settle", is_closed(cache.settle())),
            ("set_memory", is_closed(cache.set_memory(8 << 20))),
        ] {
            assert!(is_refused, "{name}");
        }
        let fetched = block_on(cache.get_or_fetch(key, async { Ok::<&str, ()>("loaded") }));
        assert!(matches!(fetched, Err(LoadError::Cache(CacheError::Closed))));
        let items: Vec<_> = cache.range(..).collect();
        assert!(items.len() == 1 && items.into_iter().all(is_closed));
        let items: Vec<_> = cache.scan(..).backwards().collect();
        assert!(items.len() == 1 && items.into_iter().all(is_closed));
        assert_eq!(cache.len(), 0);
        cache.validate().unwrap();
        assert!(cache.stats().bytes_held < 300_000, "{}", cache.bytes_held());
    }
}

/// The file is free although handles of the closed cache are left.
#[test]
fn the_next_cache_may_be_opened_as_soon_as_one_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cache");
    let open = || small().disk(Disk::file(&path, 16 << 20)).build();
    let first = open().unwrap();
    fill(&first, 0..5000, 100);
    assert!(matches!(open(), Err(CacheError::Disk { .. })), "it is in use");
    first.close().unwrap();
    let second = open().unwrap();
    assert_eq!(found(&second, 0..5000, 100), 5000);
    assert!(is_closed(first.get(&key(1))));
    // The end of the first does not unlock the file of the second.
    drop(first);
    assert!(matches!(open(), Err(CacheError::Disk { .. })), "it is in use");
    second.close().unwrap();
    assert_eq!(found(&open().unwrap(), 0..5000, 100), 5000);
}

#[test]
fn concurrent_closes_have_the_same_result() {
    let store = store();
    let cache = on(&store, 16 << 20);
    fill(&cache, 0..5000, 100);
    store.fail_every(Operation::Write, 1);
    thread::scope(|scope| {
        let closing: Vec<_> = (0..4).map(|_| scope.spawn(|| cache.clone().close())).collect();
        for thread in closing {
            assert!(matches!(thread.join().unwrap(), Err(CacheError::Disk { .. })));
        }
    });
    assert!(matches!(cache.close(), Err(CacheError::Disk { .. })));
    assert!(is_closed(cache.get(&key(1))) && is_closed(cache.insert("key", "value")) && cache.is_empty());
    store.fail_every(Operation::Write, 0);
    assert_eq!(found(&on(&store, 16 << 20), 0..5000, 100), 0);
}

const KEYS: u64 = 4000;
const REMOVED: u64 = 1 << 63;

fn value(n: u64, version: u64) -> Vec<u8> {
    [version.to_le_bytes().as_slice(), &noise(n ^ version << 20, 100)].concat()
}

/// Writes keys of its own until the cache is closed, and records in `completed` what has returned.
fn write_until_closed(cache: &Cache, writer: u64, writers: u64, completed: &[AtomicU64], writes: &AtomicU64) {
    let mut rng = fastrand::Rng::with_seed(writer);
    for version in 2.. {
        let n = rng.u64(..KEYS / writers) * writers + writer;
        let (key, value) = (key(n), value(n, version));
        let result = match rng.u8(..8) {
            0 => cache.remove(&key).map(|_| REMOVED),
            1 => cache.invalidate(&key).map(|()| REMOVED),
            2 => cache.swap(&key, &value).map(|_| version),
            3 => cache.update_with(&key, |_| CacheUpdate::Put(&value)).map(|_| version),
            // Inside a read, where a writer is admitted without waiting for others.
            4 => match cache.get_with(&self::key(writer), |_| cache.insert(&key, &value)) {
                Ok(Some(inserted)) => inserted.map(|()| version),
                Ok(None) => continue,
                Err(error) => Err(error),
            },
            // If the load is superseded or refused, nothing changes.
            5 => match cache.remove(&key) {
                Ok(_) => {
                    completed[n as usize].store(REMOVED | version, Ordering::SeqCst);
                    let loaded = cache.get_or_insert_with(&key, || value.clone());
                    loaded.map(|_| REMOVED | version)
                }
                refused => refused.map(|_| REMOVED),
            },
            _ => cache.insert(&key, &value).map(|()| version),
        };
        match result {
            Ok(state) => completed[n as usize].store(state, Ordering::SeqCst),
            Err(CacheError::Closed) => return,
            Err(error) => panic!("{error}"),
        }
        writes.fetch_add(1, Ordering::SeqCst);
    }
}

/// A completed write is not undone by what an older record on disk says, and a removed key does not come back.
fn nothing_older_is_kept(open: &dyn Fn() -> Cache) {
    const WRITERS: u64 = 3;
    let mut kept = 0;
    for round in 0..6 {
        let cache = open();
        cache.clear().unwrap();
        let completed: Vec<_> = (0..KEYS).map(|_| AtomicU64::new(1)).collect();
        for n in 0..KEYS {
            cache.insert(&key(n), &value(n, 1)).unwrap();
        }
        cache.spill().unwrap();
        let writes = AtomicU64::new(0);
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (cache, completed, writes) = (cache.clone(), &completed, &writes);
                scope.spawn(move || write_until_closed(&cache, writer, WRITERS, completed, writes));
            }
            // What is read meanwhile comes back from the disk.
            let cache = &cache;
            scope.spawn(move || (0..).find(|n| is_closed(cache.get(&key(n % KEYS)))));
            while writes.load(Ordering::SeqCst) < round * 1000 {
                thread::yield_now();
            }
            cache.close().unwrap();
        });
        let next = open();
        for (n, state) in (0..).zip(&completed) {
            let state = state.load(Ordering::SeqCst);
            let Some(found) = next.get(&key(n)).unwrap() else {
                continue;
            };
            let version = u64::from_le_bytes(found[..8].try_into().unwrap());
            assert_eq!(found, value(n, version));
            // A load stores the version of the removal before it.
            assert!(
                version == state || REMOVED | version == state && state != REMOVED,
                "{n}: {version} {state:x}"
            );
            kept += 1;
        }
        next.validate().unwrap();
    }
    // A device may be so slow that records are dropped.
    assert!(kept > KEYS, "{kept} in all");
}

#[test]
fn nothing_older_is_kept_than_a_write_that_returned() {
    let store = store();
    nothing_older_is_kept(&|| on(&store, 32 << 20));
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_older_is_kept_with_recovery() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cache");
    let disk = || Disk::file(&path, 32 << 20).recover_after_crash(true);
    nothing_older_is_kept(&|| small().disk(disk()).build().unwrap());
}

#[test]
fn clearing_a_closing_cache_empties_it_or_fails() {
    for round in 0..20 {
        let store = store();
        let cache = on(&store, 16 << 20);
        fill(&cache, 0..2000, 100);
        let cleared = thread::scope(|scope| {
            let clearing = scope.spawn(|| cache.clear());
            // Other orders of the two.
            (0..round * 50).for_each(|_| thread::yield_now());
            cache.close().unwrap();
            clearing.join().unwrap()
        });
        let kept = found(&on(&store, 16 << 20), 0..2000, 100);
        match cleared {
            Ok(()) => assert_eq!(kept, 0),
            Err(CacheError::Closed) => assert!(kept > 0),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn the_last_handle_closes_a_cache_that_is_kept_on_drop() {
    let store = store();
    let open = |keeps| {
        let disk = Disk::store(store.clone(), 16 << 20).keep_on_drop(keeps);
        small().disk(disk).build().unwrap()
    };
    let cache = open(true);
    fill(&cache, 0..2000, 100);
    let other = cache.clone();
    drop(cache);
    fill(&other, 2000..3000, 100);
    drop(other);
    let cache = open(true);
    assert_eq!(found(&cache, 0..3000, 100), 3000);
    // It is closed only once.
    cache.close().unwrap();
    drop(cache);
    let cache = open(false);
    assert_eq!(found(&cache, 0..3000, 100), 3000);
    drop(cache);
    assert_eq!(found(&open(true), 0..3000, 100), 0);
}

#[test]
fn a_cache_that_is_kept_on_drop_may_be_dropped_by_its_own_thread() {
    let (store, clock) = (store(), Arc::new(ManualClock::new(Duration::from_secs(2_000_000_000))));
    let slot: Arc<Mutex<Option<Cache>>> = Arc::default();
    let (inner, (done, is_done)) = (Arc::clone(&slot), mpsc::channel());
    let cache = small()
        .clock(clock.clone())
        .disk(Disk::store(store.clone(), 16 << 20).keep_on_drop(true))
        .listener(move |_, _, _| {
            // No other thread looks up the expired record.
            drop(inner.lock().unwrap().take());
            let _ = done.send(());
        })
        .build()
        .unwrap();
    fill(&cache, 0..1000, 100);
    let brief = InsertOptions::ttl(Duration::from_secs(1));
    cache.insert_entry("brief", "value", brief).unwrap();
    *slot.lock().unwrap() = Some(cache);
    clock.advance(Duration::from_secs(2));
    is_done.recv_timeout(Duration::from_secs(600)).unwrap();
    assert_eq!(found(&on(&store, 16 << 20), 0..1000, 100), 1000);
}
