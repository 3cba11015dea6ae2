//! Removal of ranges, prefixes, and of what a predicate selects.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use leafpress::Cache;
use leafpress::cache::{CacheError, Disk, InsertOptions, ManualClock, RemovalCause, TypedCache};
use leafpress::store::{MemoryStore, Operation};

use crate::disk::{on, store};
use crate::{noise, small};

/// Keys of ten users.
fn key(n: u64) -> String {
    format!("user:{}:{n:06}", n % 10)
}

fn fill(cache: &Cache, keys: std::ops::Range<u64>) {
    keys.for_each(|n| cache.insert(&key(n), &noise(n, 300)).unwrap());
}

/// Returns the numbers of the keys that are present, by single reads.
fn present(cache: &Cache, keys: std::ops::Range<u64>) -> Vec<u64> {
    let is_there = |n: &u64| match cache.get(&key(*n)).unwrap() {
        Some(value) => value == noise(*n, 300) || panic!("{n}: another's value"),
        None => false,
    };
    keys.filter(is_there).collect()
}

fn without_user(user: u64, keys: std::ops::Range<u64>) -> Vec<u64> {
    keys.filter(|n| n % 10 != user).collect()
}

#[test]
fn what_a_range_covers_is_removed_from_memory() {
    let cache = small().build().unwrap();
    fill(&cache, 0..1000);
    assert_eq!(cache.remove_prefix("user:3:").unwrap(), 100);
    assert_eq!(present(&cache, 0..1000), without_user(3, 0..1000));
    assert_eq!(cache.remove_prefix("user:3:").unwrap(), 0);
    assert_eq!(
        cache
            .remove_range("user:4:".to_owned()..="user:4:000504".to_owned())
            .unwrap(),
        51
    );
    assert_eq!(cache.remove_range("user:9:".."user:8:").unwrap(), 0);
    assert_eq!(cache.remove_prefix("nobody").unwrap(), 0);
    let mut calls = 0;
    let removed = cache.retain(|key, value| {
        calls += 1;
        assert_eq!(
            value,
            noise(
                key[7..].iter().fold(0, |n, digit| n * 10 + u64::from(digit - b'0')),
                300
            )
        );
        key.ends_with(b"5")
    });
    assert_eq!((removed.unwrap(), calls), (849 - 100, 849));
    let left: Vec<_> = (0..1000).filter(|n| n % 10 == 5).collect();
    assert_eq!(present(&cache, 0..1000), left);
    let stats = cache.stats();
    assert_eq!((stats.records, stats.removes), (100, 100 + 51 + 749));
    assert_eq!(cache.remove_range(..).unwrap(), 100);
    assert!(cache.is_empty());
    cache.validate().unwrap();
}

/// In both tiers: also with older records of the keys on disk, tombstones, and after a restart.
#[test]
fn what_was_removed_from_both_tiers_does_not_come_back() {
    let store = store();
    let mut cache = on(&store, 32 << 20);
    for round in 0..3 {
        fill(&cache, 0..2000);
        cache.spill().unwrap();
        // Some in memory only, some with an older record on disk, and some removed.
        fill(&cache, 1000..3000);
        (0..3000)
            .step_by(100)
            .for_each(|n| _ = cache.remove(&key(n + 4)).unwrap());
        let expected = if round == 1 { 300 - 30 } else { 300 };
        let user = 3 + round;
        assert_eq!(
            cache.remove_prefix(&format!("user:{user}:")).unwrap(),
            expected,
            "{round}"
        );
        let left = |n: &u64| n % 10 != user && n % 100 != 4;
        let left: Vec<_> = (0..3000).filter(left).collect();
        assert_eq!(present(&cache, 0..3000), left);
        cache.spill().unwrap();
        assert_eq!(cache.remove_prefix(&format!("user:{user}:")).unwrap(), 0);
        cache.close().unwrap();
        cache = on(&store, 32 << 20);
        assert_eq!(present(&cache, 0..3000), left);
        // By values, of which those on disk are read there.
        cache.spill().unwrap();
        fill(&cache, 0..500);
        let before = present(&cache, 0..3000).len() as u64;
        let removed = cache
            .retain(|key, value| key.len() == 13 && value[0].is_multiple_of(2))
            .unwrap();
        let even = |cache: &Cache| {
            let all = present(cache, 0..3000);
            assert!(all.iter().all(|n| noise(*n, 300)[0].is_multiple_of(2)));
            all.len() as u64
        };
        assert_eq!(even(&cache), before - removed);
        assert!(removed > 1000, "{removed}");
        cache.close().unwrap();
        cache = on(&store, 32 << 20);
        assert_eq!(even(&cache), before - removed);
        cache.validate().unwrap();
    }
}

/// More than a part of the walk holds, and more than memory does.
#[test]
fn a_range_much_larger_than_memory_is_removed() {
    let store = Arc::new(MemoryStore::new(4096).unwrap());
    let cache = small().disk(Disk::store(store, 64 << 20)).build().unwrap();
    fill(&cache, 0..60_000);
    cache.settle().unwrap();
    let removed = cache.remove_range("user:2:".."user:9:").unwrap();
    // A device may be so slow that records are dropped.
    assert!(removed > 20_000 && removed <= 42_000, "{removed}");
    let left = present(&cache, 0..60_000);
    assert!(
        left.len() > 9000 && left.iter().all(|n| n % 10 < 2 || n % 10 == 9),
        "{}",
        left.len()
    );
    cache.settle().unwrap();
    assert!(cache.bytes_held() <= 4 << 20, "{}", cache.bytes_held());
    assert_eq!(cache.remove_range("user:2:".."user:9:").unwrap(), 0);
    cache.validate().unwrap();
}

#[test]
fn what_cannot_be_read_during_the_removal_is_not_found_afterwards() {
    for every in [1, 3, 20] {
        let store = store();
        let cache = on(&store, 32 << 20);
        fill(&cache, 0..5000);
        cache.spill().unwrap();
        store.fail_every(Operation::Read, every);
        cache.remove_prefix("user:3:").unwrap();
        store.fail_every(Operation::Read, 0);
        assert!(present(&cache, 0..5000).iter().all(|n| n % 10 != 3));
        cache.close().unwrap();
        assert!(present(&on(&store, 32 << 20), 0..5000).iter().all(|n| n % 10 != 3));
    }
}

/// Readers that promote, writers of other keys, eviction: nothing of the range that was there comes back.
#[test]
fn removals_next_to_other_work_leave_nothing() {
    let cache = small().disk(Disk::store(store(), 32 << 20)).build().unwrap();
    let (stop, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for thread in 0..2 {
            let (cache, stop) = (&cache, &stop);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread);
                while !stop.load(Ordering::Relaxed) {
                    let n = random.u64(..4000);
                    cache.get(&key(n)).unwrap();
                    cache.insert(&format!("other:{n}"), &noise(n, 400)).unwrap();
                }
            });
        }
        let cache = &cache;
        for round in 0..8 {
            fill(cache, 0..4000);
            cache.spill().unwrap();
            let user = round % 10;
            cache.remove_prefix(&format!("user:{user}:")).unwrap();
            assert!(present(cache, 0..4000).iter().all(|n| n % 10 != user), "round {round}");
            let keeps = |key: &[u8], _: &[u8]| !key.starts_with(b"user:9");
            cache.retain(keeps).unwrap();
            assert!(
                present(cache, 0..4000).iter().all(|n| n % 10 != user && n % 10 != 9),
                "round {round}"
            );
            rounds.fetch_add(1, Ordering::Relaxed);
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(rounds.into_inner(), 8);
    cache.validate().unwrap();
}

/// A load that began before the removal does not store its value; one of another key does.
#[test]
fn loads_under_way_in_the_range_are_superseded() {
    for builder in [small(), small().disk(Disk::store(store(), 16 << 20))] {
        let cache = builder.build().unwrap();
        let (begun, has_begun) = mpsc::channel();
        let (end, ends) = mpsc::channel::<()>();
        let ends = Mutex::new(ends);
        thread::scope(|scope| {
            for name in ["user:1", "other:1"] {
                let (cache, begun, ends) = (&cache, begun.clone(), &ends);
                scope.spawn(move || {
                    let loaded = cache.get_or_insert_with(name, || {
                        begun.send(()).unwrap();
                        ends.lock().unwrap().recv().unwrap();
                        "loaded"
                    });
                    assert_eq!(loaded.unwrap(), b"loaded");
                });
            }
            (0..2).for_each(|_| has_begun.recv().unwrap());
            assert_eq!(cache.remove_prefix("user:").unwrap(), 0);
            (0..2).for_each(|_| end.send(()).unwrap());
        });
        assert_eq!(cache.get("user:1").unwrap(), None);
        assert_eq!(cache.get("other:1").unwrap().unwrap(), b"loaded");
        // A load that begins afterwards stores its value.
        cache.get_or_insert_with("user:1", || "new").unwrap();
        assert_eq!(cache.get("user:1").unwrap().unwrap(), b"new");
    }
}

/// What was written while the predicate ran is passed to it again.
#[test]
fn a_record_is_only_removed_with_a_value_that_was_refused() {
    let cache = small().disk(Disk::store(store(), 16 << 20)).build().unwrap();
    for (spills, new, stays) in [
        (false, "good", true),
        (true, "good", true),
        (false, "worse", false),
        (true, "worse", false),
    ] {
        cache.insert("key", "bad").unwrap();
        if spills {
            cache.spill().unwrap();
        }
        let mut passed = Vec::new();
        let removed = cache.retain(|key, value| {
            passed.push(value.to_vec());
            if passed.len() == 1 {
                cache.insert(key, new).unwrap();
            }
            value == b"good"
        });
        assert_eq!(removed.unwrap(), u64::from(!stays));
        assert_eq!(cache.get("key").unwrap().is_some(), stays);
        assert_eq!(passed, [b"bad".to_vec(), new.as_bytes().to_vec()]);
    }
}

#[test]
fn expired_records_are_not_counted_but_reach_the_listener() {
    let notified = Arc::new(Mutex::new(Vec::new()));
    let (clock, notifications) = (
        Arc::new(ManualClock::new(Duration::from_secs(2_000_000_000))),
        Arc::clone(&notified),
    );
    let cache = small()
        .clock(clock.clone())
        .stale_while_revalidate(Duration::from_secs(600))
        .listener(move |key, value, cause| {
            notifications
                .lock()
                .unwrap()
                .push((key.to_vec(), value.to_vec(), cause))
        })
        .build()
        .unwrap();
    cache.insert("user:1", "stays").unwrap();
    cache.insert("user:2", "goes").unwrap();
    let brief = InsertOptions::ttl(Duration::from_secs(5));
    cache.insert_entry("user:3", "over", brief).unwrap();
    clock.advance(Duration::from_secs(6));
    assert_eq!(cache.retain(|_, value| value == b"stays").unwrap(), 1);
    assert_eq!(cache.remove_range("user:2".."user:9").unwrap(), 0);
    let notified = std::mem::take(&mut *notified.lock().unwrap());
    let removed = |key: &str, value: &str, cause| (key.as_bytes().to_vec(), value.as_bytes().to_vec(), cause);
    let expected = [
        removed("user:2", "goes", RemovalCause::Removed),
        removed("user:3", "over", RemovalCause::Expired),
    ];
    assert_eq!(notified, expected);
    // It is not served as stale either.
    let context = &mut std::task::Context::from_waker(std::task::Waker::noop());
    let mut first = std::pin::pin!(cache.get_or_fetch("user:3", std::future::pending::<Result<&str, ()>>()));
    let mut second = std::pin::pin!(cache.get_or_fetch("user:3", std::future::pending::<Result<&str, ()>>()));
    assert!(first.as_mut().poll(context).is_pending() && second.as_mut().poll(context).is_pending());
}

#[test]
fn a_scan_does_not_count_as_reads() {
    const EACH: u64 = 1000;
    let cache = small().build().unwrap();
    let fill = |keys: std::ops::Range<u64>| keys.for_each(|n| cache.insert(&key(n), &noise(n, 100)).unwrap());
    fill(0..2 * EACH);
    let mut next = 2 * EACH;
    for _ in 0..40 {
        (0..EACH).for_each(|n| _ = cache.get(&key(n)).unwrap());
        assert!(cache.scan(..).count() > 1000);
        assert_eq!(cache.retain(|_, _| true).unwrap(), 0);
        fill(next..next + EACH);
        next += EACH;
    }
    let left = |keys: std::ops::Range<u64>| keys.filter(|n| cache.peek(&key(*n)).unwrap().is_some()).count();
    let (read, untouched) = (left(0..EACH), left(EACH..2 * EACH));
    assert!(read > 800 && untouched < 700, "{read} {untouched}");
}

#[test]
fn typed_records_are_selected_by_their_values() {
    let ages: TypedCache<String, u64> = TypedCache::new(small().build().unwrap());
    (0..100).for_each(|n| ages.insert(&format!("user {n}"), &n).unwrap());
    // Of another type: it does not decode.
    ages.cache()
        .insert(&[6, b'b', b'r', b'o', b'k', b'e', b'n'], &[255])
        .unwrap();
    let removed = ages.retain(|name, age| {
        assert_eq!(name, format!("user {age}"));
        age % 2 == 0
    });
    assert_eq!(removed.unwrap(), 51);
    assert_eq!(
        (
            ages.get(&"user 4".to_owned()).unwrap(),
            ages.get(&"user 5".to_owned()).unwrap()
        ),
        (Some(4), None)
    );
    assert_eq!(ages.cache().len(), 50);
    ages.cache().close().unwrap();
    assert!(matches!(ages.retain(|_, _| true), Err(CacheError::Closed)));
}
