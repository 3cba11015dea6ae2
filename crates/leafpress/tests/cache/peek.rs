//! Reads without an effect, and times to live that are read and changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use leafpress::Cache;
use leafpress::cache::{CacheBuilder, CacheError, CacheStats, CacheUpdate, Clock, Disk, InsertOptions, ManualClock};
use leafpress::cache::{SystemClock, TypedCache};

use crate::disk::{fill, store};
use crate::{key, noise, small};

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

fn with_clock(builder: CacheBuilder) -> (Cache, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(SystemClock::default().now()));
    let cache = builder.clock(clock.clone()).build().unwrap();
    (cache, clock)
}

fn counts(stats: &CacheStats) -> [u64; 6] {
    [
        stats.hits,
        stats.misses,
        stats.disk_hits,
        stats.promoted,
        stats.inserts,
        stats.damaged,
    ]
}

#[test]
fn what_is_peeked_at_is_neither_counted_nor_promoted() {
    let cache = small().disk(Disk::store(store(), 16 << 20)).build().unwrap();
    fill(&cache, 0..100, 300);
    cache.spill().unwrap();
    fill(&cache, 100..200, 300);
    cache.remove(&key(7)).unwrap();
    cache.remove(&key(107)).unwrap();
    let before = cache.stats();
    for n in 0..200 {
        let expected = (n % 100 != 7).then(|| noise(n, 300));
        assert_eq!(cache.peek(&key(n)).unwrap(), expected);
        assert_eq!(cache.peek_with(&key(n), <[u8]>::len).unwrap(), expected.map(|_| 300));
        assert_eq!(cache.ttl(&key(n)).unwrap(), (n % 100 != 7).then_some(Duration::MAX));
    }
    assert_eq!(cache.peek("absent").unwrap(), None);
    assert_eq!(counts(&cache.stats()), counts(&before));
    for n in 0..100 {
        assert_eq!(cache.get_in_memory_with(&key(n), |_| ()).unwrap(), None, "{n}");
    }
}

/// Records that are peeked at leave as soon as those that are not read at all.
#[test]
fn what_is_peeked_at_does_not_stay_longer() {
    const EACH: u64 = 1000;
    let cache = small().build().unwrap();
    fill(&cache, 0..3 * EACH, 100);
    let mut next = 3 * EACH;
    for _ in 0..40 {
        for n in 0..EACH {
            cache.get(&key(n)).unwrap();
            cache.peek(&key(EACH + n)).unwrap();
        }
        fill(&cache, next..next + 1000, 100);
        next += 1000;
    }
    let left = |keys: std::ops::Range<u64>| keys.filter(|n| cache.peek(&key(*n)).unwrap().is_some()).count();
    let [read, peeked, untouched] = [0, 1, 2].map(|set| left(set * EACH..(set + 1) * EACH));
    assert!(
        read > 800 && peeked < 700 && peeked.abs_diff(untouched) < 200,
        "{read} {peeked} {untouched}"
    );
}

#[test]
fn peeking_does_not_put_off_the_end_of_an_idle_record() {
    for disk in [false, true] {
        let builder = small().time_to_idle(80 * SECOND);
        let (cache, clock) = with_clock(if disk {
            builder.disk(Disk::store(store(), 16 << 20))
        } else {
            builder
        });
        cache.insert("peeked", "1").unwrap();
        cache.insert("read", "2").unwrap();
        if disk {
            cache.spill().unwrap();
        }
        clock.advance(60 * SECOND);
        assert!(cache.peek("peeked").unwrap().is_some() && cache.get("read").unwrap().is_some());
        clock.advance(30 * SECOND);
        // The read may be queued.
        assert_eq!(cache.peek("peeked").unwrap(), None);
        assert_eq!(cache.peek("read").unwrap().unwrap(), b"2");
        assert_eq!(cache.ttl("read").unwrap(), Some(Duration::MAX));
    }
}

#[test]
fn times_are_exact_to_the_millisecond() {
    let (cache, clock) = with_clock(small());
    for (ms, offset_us) in [(1, 0), (5, 0), (5, 700), (1000, 0), (1001, 999)] {
        clock.set(Duration::from_millis(2_000_000_000_000) + Duration::from_micros(offset_us));
        let ttl = Duration::from_millis(ms);
        cache.insert_entry("key", "value", InsertOptions::ttl(ttl)).unwrap();
        let left = cache.ttl("key").unwrap().unwrap();
        assert!(left <= ttl && left + MS > ttl, "{left:?} of {ttl:?}");
        clock.advance(left - Duration::from_nanos(1));
        assert!(cache.get("key").unwrap().is_some() && cache.ttl("key").unwrap().is_some());
        clock.advance(Duration::from_nanos(1));
        assert_eq!((cache.ttl("key").unwrap(), cache.get("key").unwrap()), (None, None));
    }
    // What is late by the clock's own precision is not late by the record's.
    let (cache, clock) = with_clock(small().default_ttl(MS).stale_while_revalidate(MS));
    cache.insert("key", "value").unwrap();
    clock.advance(MS);
    assert_eq!(cache.get("key").unwrap(), None);
}

#[test]
fn a_lifetime_is_changed_in_both_tiers_and_over_a_restart() {
    let (store, clock) = (store(), Arc::new(ManualClock::new(SystemClock::default().now())));
    let open = || {
        let disk = Disk::store(store.clone(), 16 << 20);
        small().clock(clock.clone()).disk(disk).build().unwrap()
    };
    let cache = open();
    let spilled = |cache: Cache, how: u32| match how {
        0 => cache,
        1 => {
            cache.spill().unwrap();
            cache
        }
        _ => {
            cache.close().unwrap();
            open()
        }
    };
    let mut cache = cache;
    for (before, after) in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 2), (1, 2)] {
        for (n, name) in (0..).zip(["shorter", "longer", "none", "first"]) {
            if name == "first" {
                cache.insert(name, &noise(n, 200)).unwrap();
            } else {
                let entry = InsertOptions::ttl(60 * SECOND);
                cache.insert_entry(name, &noise(n, 200), entry).unwrap();
            }
        }
        cache = spilled(cache, before);
        let inserts = cache.stats().inserts;
        assert!(cache.expire("shorter", Some(10 * SECOND)).unwrap());
        assert!(cache.expire("longer", Some(600 * SECOND)).unwrap());
        assert!(cache.expire("none", None).unwrap());
        assert!(cache.expire("first", Some(20 * SECOND)).unwrap());
        assert!(!cache.expire("absent", None).unwrap());
        assert_eq!(cache.stats().inserts, inserts);
        cache = spilled(cache, after);
        let ttl = |key| cache.ttl(key).unwrap().unwrap();
        assert!(ttl("shorter") <= 10 * SECOND && ttl("longer") > 599 * SECOND && ttl("none") == Duration::MAX);
        for (n, name) in (0..).zip(["shorter", "longer", "none", "first"]) {
            assert_eq!(cache.peek(name).unwrap().unwrap(), noise(n, 200));
        }
        clock.advance(15 * SECOND);
        assert_eq!(cache.get("shorter").unwrap(), None);
        assert!(!cache.expire("shorter", Some(SECOND)).unwrap(), "it has expired");
        assert!(cache.get("first").unwrap().is_some());
        clock.advance(50 * SECOND);
        let left = ["shorter", "longer", "none", "first"].map(|key| cache.get(key).unwrap().is_some());
        assert_eq!(left, [false, true, true, false]);
        cache = spilled(cache, after);
        assert_eq!(cache.get("shorter").unwrap(), None);
    }
    cache.validate().unwrap();
}

#[test]
fn a_lifetime_out_of_bounds_is_refused_and_nothing_changes() {
    let (cache, clock) = with_clock(small());
    cache.insert("key", "value").unwrap();
    let too_long = Duration::from_secs(11 * 366 * 24 * 3600);
    for ttl in [Duration::ZERO, Duration::from_micros(999), too_long] {
        let refused = cache.expire("key", Some(ttl));
        assert!(
            matches!(&refused, Err(CacheError::Option { option: "ttl", reason }) if reason.contains("1 ms")),
            "{refused:?}"
        );
        assert!(cache.insert_entry("key", "new", InsertOptions::ttl(ttl)).is_err());
    }
    let refused = small().time_to_idle(10 * MS).build().unwrap_err();
    assert!(
        matches!(
            refused,
            CacheError::Option {
                option: "time_to_idle",
                ..
            }
        ),
        "{refused}"
    );
    clock.advance(1000 * SECOND);
    assert_eq!(cache.get("key").unwrap().unwrap(), b"value");
}

/// A change of the lifetime does not bring back the value that it found.
#[test]
fn a_lifetime_changed_meanwhile_undoes_no_write() {
    let cache = small().disk(Disk::store(store(), 16 << 20)).build().unwrap();
    let (written, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for thread in 0..2 {
            let (cache, stop) = (&cache, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let ttl = (thread == 0).then_some(1000 * SECOND);
                    cache.expire("key", ttl).unwrap();
                }
            });
        }
        for version in 1..3000_u64 {
            match version % 10 {
                0 => {
                    cache.remove("key").unwrap();
                    assert_eq!(cache.get("key").unwrap(), None);
                    continue;
                }
                1 => cache.spill().unwrap(),
                2 => {
                    _ = cache
                        .update_with("key", |_| CacheUpdate::Put(version.to_le_bytes()))
                        .unwrap()
                }
                _ => cache.insert("key", &version.to_le_bytes()).unwrap(),
            }
            if version % 10 != 1 {
                written.store(version, Ordering::Relaxed);
            }
            if version % 10 > 1 {
                assert_eq!(cache.get("key").unwrap().unwrap(), version.to_le_bytes());
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(written.into_inner(), 2999);
    assert_eq!(cache.get("key").unwrap().unwrap(), 2999_u64.to_le_bytes());
}

#[test]
fn long_values_and_listeners_are_left_alone() {
    let notified = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&notified);
    let builder = Cache::builder().memory(16 << 20).listener(move |_, _, _| {
        counter.fetch_add(1, Ordering::SeqCst);
    });
    let (cache, _clock) = with_clock(builder);
    for len in [0, 1, 5000, 1 << 20] {
        cache.insert("key", &noise(3, len)).unwrap();
        notified.store(0, Ordering::SeqCst);
        assert!(cache.expire("key", Some(9 * SECOND)).unwrap());
        assert_eq!(cache.peek("key").unwrap().unwrap(), noise(3, len));
        assert_eq!(cache.peek_with("key", <[u8]>::len).unwrap(), Some(len));
        assert!(cache.ttl("key").unwrap().unwrap() <= 9 * SECOND);
        assert_eq!(notified.load(Ordering::SeqCst), 0);
    }
}

#[test]
fn typed_records_have_lifetimes_too() {
    let (cache, clock) = with_clock(small());
    let users: TypedCache<str, String> = TypedCache::new(cache);
    users.insert("ada", &"Ada".to_owned()).unwrap();
    assert_eq!(users.peek("ada").unwrap().as_deref(), Some("Ada"));
    assert_eq!(users.ttl("ada").unwrap(), Some(Duration::MAX));
    assert!(users.clone().expire("ada", Some(5 * MS)).unwrap());
    clock.advance(5 * MS);
    assert_eq!((users.peek("ada").unwrap(), users.ttl("ada").unwrap()), (None, None));
    assert_eq!(users.cache().stats().hits, 0);
}
