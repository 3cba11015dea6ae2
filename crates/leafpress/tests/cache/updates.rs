//! Atomic updates: a value that the cache still has is never updated from anything older.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use leafpress::cache::{CacheBuilder, CacheError, CacheUpdate, Disk, InsertOptions, ManualClock, RemovalCause};
use leafpress::store::{FaultyStore, MemoryStore, Operation};

use crate::{key, noise, small};

const THREADS: u64 = 4;
const COUNTERS: u64 = 50;

fn on_disk(bytes: u64) -> CacheBuilder {
    small().disk(Disk::store(Arc::new(MemoryStore::new(4096).unwrap()), bytes))
}

fn name(n: u64) -> String {
    format!("counter {n}")
}

fn count(value: &[u8]) -> u64 {
    u64::from_le_bytes(value.try_into().unwrap())
}

/// Threads increment counters, while `meanwhile` is at work. The sum that they reach.
fn count_up(cache: &leafpress::Cache, steps: u64, meanwhile: impl Fn() + Send + Sync) -> u64 {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let (stop, meanwhile) = (&stop, &meanwhile);
        scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                meanwhile();
            }
        });
        let threads: Vec<_> = (0..THREADS)
            .map(|id| {
                scope.spawn(move || {
                    for step in 0..steps {
                        let add = |old: Option<&[u8]>| CacheUpdate::Put((old.map_or(0, count) + 1).to_le_bytes());
                        cache.update_with(&name((step + id) % COUNTERS), add).unwrap();
                    }
                })
            })
            .collect();
        let counted: Vec<_> = threads.into_iter().map(thread::ScopedJoinHandle::join).collect();
        stop.store(true, Ordering::Relaxed);
        counted.into_iter().for_each(|joined| joined.unwrap());
    });
    (0..COUNTERS)
        .map(|n| cache.get_with(&name(n), count).unwrap().unwrap_or(0))
        .sum()
}

#[test]
fn counters_that_many_threads_increment_reach_their_sum() {
    let cache = small().build().unwrap();
    let reads = || assert!(cache.get(&name(0)).unwrap().is_none_or(|value| count(&value) > 0));
    assert_eq!(count_up(&cache, 5000, reads), THREADS * 5000);
    let stats = cache.stats();
    assert_eq!((stats.inserts, stats.evicted), (THREADS * 5000, 0));
}

#[test]
fn counters_that_go_to_disk_and_come_back_reach_their_sum() {
    let cache = on_disk(64 << 20).build().unwrap();
    let sum = count_up(&cache, 2000, || {
        cache.spill().unwrap();
        // Some are promoted unchanged.
        (0..COUNTERS)
            .step_by(3)
            .for_each(|n| _ = cache.contains_key(&name(n)).unwrap());
    });
    // On a busy machine nothing may have gone to disk before the threads ended.
    cache.spill().unwrap();
    let again = count_up(&cache, 100, thread::yield_now);
    let disk = cache.stats().disk.unwrap();
    if disk.dropped + disk.records_dropped + disk.left_out > 0 {
        println!("skipped: the disk was too slow to keep all records");
        return;
    }
    assert_eq!((sum, again), (THREADS * 2000, THREADS * 2100), "{disk:?}");
    assert!(disk.hits > 0 && disk.admitted > 0, "{disk:?}");
    cache.validate().unwrap();
}

/// Regardless of evictions: an inserted value is the old one of at most one update, or an updated value was lost.
fn no_fork(cache: &leafpress::Cache) {
    let fresh = AtomicU64::new(1);
    let seen = Mutex::new(HashSet::new());
    thread::scope(|scope| {
        for id in 0..THREADS {
            let (fresh, seen) = (&fresh, &seen);
            scope.spawn(move || {
                for step in 0..4000 {
                    let n = (step * 7 + id) % COUNTERS;
                    let new = fresh.fetch_add(1, Ordering::Relaxed).to_le_bytes();
                    let old = match step % 5 {
                        0 => cache.swap(&name(n), &new).unwrap(),
                        1 => cache.take(&name(n)).unwrap(),
                        _ => {
                            let mut old = None;
                            let update = |found: Option<&[u8]>| {
                                old = found.map(<[u8]>::to_vec);
                                CacheUpdate::Put(new)
                            };
                            cache.update_with(&name(n), update).unwrap();
                            old
                        }
                    };
                    if let Some(old) = old {
                        assert!(seen.lock().unwrap().insert(count(&old)), "{old:?} was updated twice");
                    }
                    // Other records that need the room.
                    cache.insert(&key(step * THREADS + id), &noise(step, 1500)).unwrap();
                }
            });
        }
    });
    assert!(seen.into_inner().unwrap().len() > 1000);
    cache.validate().unwrap();
}

#[test]
fn no_value_is_updated_twice_while_records_make_room() {
    no_fork(&small().build().unwrap());
}

#[test]
fn no_value_is_updated_twice_while_the_disk_is_written_around() {
    no_fork(&on_disk(8 << 20).build().unwrap());
}

#[test]
fn what_is_over_is_not_there_and_an_update_keeps_the_time_that_it_has() {
    let clock = Arc::new(ManualClock::new(Duration::from_secs(2_000_000_000)));
    for builder in [small(), on_disk(8 << 20)] {
        let builder = builder.clock(clock.clone()).default_ttl(Duration::from_secs(100));
        let cache = builder.build().unwrap();
        let minute = InsertOptions::ttl(Duration::from_secs(60));
        let again = || cache.spill().unwrap();
        let append = |key: &str| {
            let mut old = None;
            let update = |found: Option<&[u8]>| {
                old = found.map(<[u8]>::to_vec);
                CacheUpdate::Put([found.unwrap_or_default(), b"+"].concat())
            };
            cache.update_with(key, update).unwrap();
            old.map(|old| String::from_utf8(old).unwrap())
        };
        cache.insert_entry("kept", "a", minute).unwrap();
        cache.insert_entry("renewed", "a", minute).unwrap();
        cache.insert_entry("swapped", "a", minute).unwrap();
        again();
        clock.advance(Duration::from_secs(50));
        assert_eq!(append("kept").as_deref(), Some("a"));
        assert_eq!(append("new"), None);
        assert!(cache.compare_and_swap("kept", Some(b"a+"), Some(b"b")).unwrap());
        let renew = |found: Option<&[u8]>| CacheUpdate::PutWith(found.unwrap().to_vec(), minute);
        cache.update_with("renewed", renew).unwrap();
        assert_eq!(cache.swap("swapped", "b").unwrap().unwrap(), b"a");
        again();
        clock.advance(Duration::from_secs(20));
        // Its minute has passed, in memory or on disk.
        assert_eq!(cache.get("kept").unwrap(), None);
        assert!(!cache.compare_and_swap("kept", Some(b"b"), Some(b"c")).unwrap());
        assert_eq!((append("kept"), append("kept").as_deref()), (None, Some("+")));
        assert_eq!(append("renewed").as_deref(), Some("a"));
        assert_eq!(append("swapped").as_deref(), Some("b"));
        again();
        clock.advance(Duration::from_secs(45));
        assert_eq!(cache.get("renewed").unwrap(), None);
        assert_eq!(cache.take("renewed").unwrap(), None);
        assert_eq!(append("new").as_deref(), Some("+"));
        assert_eq!(cache.take("swapped").unwrap().unwrap(), b"b+");
        assert_eq!(cache.take("swapped").unwrap(), None);
        // The default, counted from their insertion.
        clock.advance(Duration::from_secs(56));
        assert_eq!(append("new"), None);
        assert_eq!(append("kept"), None);
        let wrong = InsertOptions::ttl(Duration::ZERO);
        let error = cache
            .update_with("kept", |_| CacheUpdate::PutWith("x", wrong))
            .unwrap_err();
        assert!(matches!(error, CacheError::Option { option: "ttl", .. }), "{error}");
        assert_eq!(cache.get("kept").unwrap().unwrap(), b"+");
    }
}

#[test]
fn an_update_that_leaves_a_record_is_a_use_of_it() {
    let clock = Arc::new(ManualClock::new(Duration::from_secs(2_000_000_000)));
    let cache = small()
        .clock(clock.clone())
        .time_to_idle(Duration::from_secs(10))
        .build()
        .unwrap();
    cache.insert("key", "a").unwrap();
    for _ in 0..5 {
        clock.advance(Duration::from_secs(6));
        let answer = cache.update_with("key", |found| {
            assert_eq!(found, Some(b"a".as_slice()));
            CacheUpdate::<&str>::Keep
        });
        assert_eq!(answer.unwrap(), CacheUpdate::Keep);
    }
    clock.advance(Duration::from_secs(11));
    assert_eq!(cache.take("key").unwrap(), None);
}

#[test]
fn the_listener_gets_each_old_value() {
    let notified = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&notified);
    let clock = Arc::new(ManualClock::new(Duration::from_secs(2_000_000_000)));
    let cache = small()
        .clock(clock.clone())
        .listener(move |_, value, cause| notes.lock().unwrap().push((value.to_vec(), cause)))
        .build()
        .unwrap();
    let take = || std::mem::take(&mut *notified.lock().unwrap());
    let put = |value: &'static str| cache.update_with("key", |_| CacheUpdate::Put(value)).unwrap();
    put("1");
    assert_eq!(take(), []);
    put("2");
    assert_eq!(take(), [(b"1".to_vec(), RemovalCause::Replaced)]);
    assert!(cache.compare_and_swap("key", Some(b"2"), Some(b"3")).unwrap());
    assert!(!cache.compare_and_swap("key", Some(b"2"), Some(b"4")).unwrap());
    assert_eq!(take(), [(b"2".to_vec(), RemovalCause::Replaced)]);
    assert_eq!(cache.take("key").unwrap().unwrap(), b"3");
    assert_eq!(take(), [(b"3".to_vec(), RemovalCause::Removed)]);
    cache
        .insert_entry("key", "5", InsertOptions::ttl(Duration::from_secs(5)))
        .unwrap();
    clock.advance(Duration::from_secs(6));
    put("6");
    assert_eq!(take(), [(b"5".to_vec(), RemovalCause::Expired)]);
    let stats = cache.stats();
    assert_eq!((stats.expired, stats.removes, stats.hits, stats.misses), (1, 1, 0, 0));
    assert_eq!(stats.inserts, 5);
    // A value that is not kept replaces the old one nevertheless.
    let long = vec![0; 1 << 20];
    cache.update_with("key", |_| CacheUpdate::Put(&long)).unwrap();
    assert_eq!(take(), [(b"6".to_vec(), RemovalCause::Replaced)]);
    assert_eq!((cache.get("key").unwrap(), cache.stats().too_large), (None, 1));
}

#[test]
fn an_update_wins_over_a_load() {
    let cache = small().build().unwrap();
    let loaded = cache.get_or_insert_with("key", || {
        let update = |old: Option<&[u8]>| {
            assert_eq!(old, None);
            CacheUpdate::Put("updated")
        };
        cache.update_with("key", update).unwrap();
        "loaded"
    });
    assert_eq!(loaded.unwrap(), b"loaded");
    assert_eq!(cache.get("key").unwrap().unwrap(), b"updated");
}

#[test]
fn what_was_taken_while_the_disk_could_not_be_read_does_not_come_back() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new(4096).unwrap()));
    let cache = small().disk(Disk::store(store.clone(), 8 << 20)).build().unwrap();
    for n in 0..400 {
        cache.insert(&key(n), &noise(n, 300)).unwrap();
    }
    cache.spill().unwrap();
    store.fail_every(Operation::Read, 1);
    let take = |n: u64| match n % 2 {
        0 => cache.take(&key(n)).unwrap().is_some(),
        _ => {
            let mut was_there = false;
            let remove = |old: Option<&[u8]>| {
                was_there = old.is_some();
                CacheUpdate::<Vec<u8>>::Remove
            };
            cache.update_with(&key(n), remove).unwrap();
            was_there
        }
    };
    let unread = (0..400).filter(|n| !take(*n)).count();
    store.fail_every(Operation::Read, 0);
    let back = (0..400).filter(|n| cache.get(&key(*n)).unwrap().is_some()).count();
    assert!(
        unread > 300 && back == 0,
        "{unread} could not be read, {back} came back"
    );
}

#[test]
fn an_update_to_a_value_that_is_not_kept_sees_what_came_in_between() {
    for has_disk in [false, true] {
        let cache = if has_disk { on_disk(16 << 20) } else { small() };
        let cache = cache.build().unwrap();
        let (huge, mut shown) = (vec![1; 1 << 20], Vec::new());
        cache
            .update_with("key", |found| {
                if shown.is_empty() {
                    cache.insert("key", "in between").unwrap();
                }
                shown.push(found.map(<[u8]>::to_vec));
                CacheUpdate::Put(&huge)
            })
            .unwrap();
        assert_eq!(shown, [None, Some(b"in between".to_vec())], "disk: {has_disk}");
        assert_eq!(cache.get("key").unwrap(), None, "what was there is out of date");
    }
}
