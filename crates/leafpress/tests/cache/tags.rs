//! Tags of records, and their invalidation in memory and on disk.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use leafpress::Cache;
use leafpress::cache::{CacheError, CacheUpdate, Disk, InsertOptions, MAX_TAGS, ManualClock, RemovalCause};
use leafpress::store::MemoryStore;

use crate::disk::store;
use crate::tasks::block_on;
use crate::{key, noise, small};

fn tagged(tag: &str) -> InsertOptions {
    InsertOptions::default().tag(tag)
}

/// The tag of every tenth record is the same.
fn tag(n: u64) -> String {
    format!("tag:{}", n % 10)
}

fn fill(cache: &Cache, keys: std::ops::Range<u64>) {
    for n in keys {
        cache
            .insert_entry(&key(n), &noise(n, 300), tagged(&tag(n)).tag("all"))
            .unwrap();
    }
}

fn is_there(cache: &Cache, n: u64) -> bool {
    let found = cache.get(&key(n)).unwrap();
    assert!(found.as_ref().is_none_or(|found| *found == noise(n, 300)), "{n}");
    found.is_some()
}

/// A value that was made before an invalidation and is inserted after it is not found, whatever was inserted meanwhile.
#[test]
fn a_value_is_as_old_as_the_moment_from_which_it_was_made() {
    let clock = Arc::new(ManualClock::new(Duration::from_secs(2_000_000_000)));
    for builder in [small(), small().disk(Disk::store(store(), 16 << 20))] {
        let cache = builder.clock(clock.clone()).build().unwrap();
        let began = cache.moment();
        let old = tagged("tag").since(began);
        cache.insert_entry("before", "1", old).unwrap();
        assert!(cache.get("before").unwrap().is_some());
        cache.invalidate_tag("other").unwrap();
        cache.insert_entry("not its tag", "1", old).unwrap();
        cache.invalidate_tag("tag").unwrap();
        let answer = cache.update_with("updated", |_| CacheUpdate::PutWith("1", old));
        answer.unwrap();
        cache.insert_entry("after", "new", tagged("tag")).unwrap();
        cache.insert_entry("after", "old", old).unwrap();
        let loaded = cache.try_get_or_insert_entry_with("loaded", || Ok::<_, CacheError>(("1", old)));
        assert_eq!(loaded.unwrap(), b"1");
        for key in ["before", "not its tag", "updated", "after", "loaded"] {
            assert_eq!(cache.get(key).unwrap(), None, "{key}");
        }
        // Without tags it has no effect, nor with a moment after the invalidation.
        cache
            .insert_entry("plain", "1", InsertOptions::default().since(began))
            .unwrap();
        cache
            .insert_entry("later", "1", tagged("tag").since(cache.moment()))
            .unwrap();
        assert!(cache.get("plain").unwrap().is_some() && cache.get("later").unwrap().is_some());
    }
}

/// With and without a disk tier. The clock stands still: what is inserted in the same moment is valid nevertheless.
#[test]
fn records_with_an_invalidated_tag_are_absent_and_others_are_not() {
    let clock = Arc::new(ManualClock::new(Duration::from_secs(2_000_000_000)));
    for builder in [small(), small().disk(Disk::store(store(), 16 << 20))] {
        let cache = builder.clock(clock.clone()).build().unwrap();
        fill(&cache, 0..1000);
        cache.insert("plain", "value").unwrap();
        cache.invalidate_tag("nobody has it").unwrap();
        assert!((0..1000).all(|n| is_there(&cache, n)));
        cache.invalidate_tag("tag:3").unwrap();
        for n in 0..1000 {
            let name = key(n);
            assert_eq!(is_there(&cache, n), n % 10 != 3, "{n}");
            assert_eq!(cache.contains_key(&name).unwrap(), n % 10 != 3);
            assert_eq!(cache.peek(&name).unwrap().is_some(), n % 10 != 3);
            assert_eq!(cache.ttl(&name).unwrap().is_some(), n % 10 != 3);
            assert_eq!(block_on(cache.get_async(&name)).unwrap().is_some(), n % 10 != 3);
        }
        let names: Vec<_> = (0..1000).map(key).collect();
        assert_eq!(cache.get_many(&names).unwrap().iter().flatten().count(), 900);
        assert_eq!(cache.prefix("item:").count(), 900);
        assert_eq!(cache.scan(..).map(Result::unwrap).count(), 901);
        assert!(!cache.remove(&key(13)).unwrap() && cache.take(&key(23)).unwrap().is_none());
        // Inserted again at once.
        fill(&cache, 0..100);
        assert!((0..100).all(|n| is_there(&cache, n)));
        cache.invalidate_tag("all").unwrap();
        assert!((0..1000).all(|n| !is_there(&cache, n)));
        assert_eq!(cache.get("plain").unwrap().unwrap(), b"value");
        // Nothing is left of them.
        cache.settle().unwrap();
        assert_eq!(cache.len(), 1);
        cache.validate().unwrap();
    }
}

#[test]
fn records_on_disk_are_invalidated_too() {
    let cache = small().disk(Disk::store(store(), 64 << 20)).build().unwrap();
    fill(&cache, 0..15_000);
    cache.settle().unwrap();
    cache.invalidate_tag("tag:3").unwrap();
    let there = (0..15_000).filter(|n| is_there(&cache, *n)).count();
    assert_eq!(there, 13_500);
    assert!((0..15_000).filter(|n| n % 10 == 3).all(|n| !is_there(&cache, n)));
    let names: Vec<_> = (0..15_000).map(key).collect();
    assert_eq!(cache.get_many(&names).unwrap().iter().flatten().count(), 13_500);
    assert_eq!(cache.scan(..).map(Result::unwrap).count(), 13_500);
    // Promoted records have their tags.
    cache.invalidate_tag("all").unwrap();
    assert!((0..15_000).step_by(7).all(|n| !is_there(&cache, n)));
    cache.validate().unwrap();
}

#[test]
fn invalidations_outlast_a_close() {
    let memory = Arc::new(MemoryStore::new(4096).unwrap());
    let open = |bytes: u64| {
        let disk = Disk::store(memory.clone(), 16 << 20);
        Cache::builder().memory(bytes).disk(disk).build().unwrap()
    };
    let cache = open(8 << 20);
    fill(&cache, 0..10_000);
    cache.spill().unwrap();
    cache.invalidate_tag("tag:3").unwrap();
    fill(&cache, 0..100);
    cache.close().unwrap();
    let is_left = |n: u64| n % 10 != 3 || n < 100;
    let cache = open(8 << 20);
    assert!((0..10_000).all(|n| is_there(&cache, n) == is_left(n)));
    cache.invalidate_tag("tag:4").unwrap();
    cache.close().unwrap();
    // With more memory the table stays; with too little for it, no record with a tag does.
    let cache = open(16 << 20);
    assert!((0..10_000).all(|n| is_there(&cache, n) == (is_left(n) && n % 10 != 4)));
    cache.close().unwrap();
    let cache = open(4 << 20);
    assert!((0..10_000).all(|n| !is_there(&cache, n)));
    fill(&cache, 0..100);
    assert!((0..100).all(|n| is_there(&cache, n)));
}

/// After a crash it is not known which tags were invalidated.
#[cfg(target_os = "linux")]
#[test]
fn no_record_with_a_tag_outlasts_a_crash() {
    let directory = tempfile::tempdir().unwrap();
    let open = || {
        let disk = Disk::file(directory.path().join("cache"), 16 << 20).recover_after_crash(true);
        small().disk(disk).build().unwrap()
    };
    let cache = open();
    fill(&cache, 0..5000);
    for n in 5000..10_000 {
        cache.insert(&key(n), &noise(n, 300)).unwrap();
    }
    cache.spill().unwrap();
    // A dropped cache leaves the same files as a killed one.
    drop(cache);
    let cache = open();
    assert!((0..5000).all(|n| !is_there(&cache, n)));
    let plain = (5000..10_000).filter(|n| is_there(&cache, *n)).count();
    assert!(plain > 4000, "{plain}");
    fill(&cache, 0..100);
    assert!((0..100).all(|n| is_there(&cache, n)));
    // It is known again from now on.
    cache.invalidate_tag("tag:1").unwrap();
    cache.close().unwrap();
    let cache = open();
    assert!((0..100).all(|n| is_there(&cache, n) == (n % 10 != 1)));
}

#[test]
fn an_update_keeps_the_tags_and_a_replacement_does_not() {
    let cache = small().build().unwrap();
    let names = ["put", "expire", "insert", "swap", "put with others"];
    for name in names {
        cache.insert_entry(name, "1", tagged("tag")).unwrap();
    }
    cache.update_with("put", |_| CacheUpdate::Put("2")).unwrap();
    cache.expire("expire", Some(Duration::from_secs(100))).unwrap();
    cache.insert("insert", "2").unwrap();
    cache.swap("swap", "2").unwrap();
    let other = || CacheUpdate::PutWith("2", tagged("another"));
    cache.update_with("put with others", |_| other()).unwrap();
    cache.invalidate_tag("tag").unwrap();
    let there = |name: &str| cache.get(name).unwrap().is_some();
    assert_eq!(names.map(there), [false, false, true, true, true]);
    cache.invalidate_tag("another").unwrap();
    assert_eq!(names.map(there), [false, false, true, true, false]);
    // An update after the invalidation finds nothing, and what it puts has no tag.
    let seen = cache.update_with("put", |found| match found {
        None => CacheUpdate::Put("3"),
        Some(_) => CacheUpdate::Keep,
    });
    assert!(matches!(seen, Ok(CacheUpdate::Put("3"))));
    cache.invalidate_tag("tag").unwrap();
    assert!(there("put"));
}

#[test]
fn more_tags_than_may_be_are_refused() {
    let cache = small().build().unwrap();
    let mut options = InsertOptions::default();
    for n in 0..MAX_TAGS {
        options = options.tag(format!("tag {n}")).tag(format!("tag {n}"));
    }
    cache.insert_entry("key", "value", options).unwrap();
    let refused = cache.insert_entry("key", "another", options.tag("one more"));
    assert!(matches!(refused, Err(CacheError::Option { option: "tags", .. })));
    assert_eq!(cache.get("key").unwrap().unwrap(), b"value");
    cache.invalidate_tag(format!("tag {}", MAX_TAGS - 1)).unwrap();
    assert_eq!(cache.get("key").unwrap(), None);
    cache.close().unwrap();
    assert!(matches!(cache.invalidate_tag("tag"), Err(CacheError::Closed)));
}

/// What a load read before the invalidation may be outdated.
#[test]
fn a_load_across_an_invalidation_is_invalid_and_its_waiters_load_again() {
    let cache = small().build().unwrap();
    let (begun, has_begun) = mpsc::channel();
    let (end, ends) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let cache = &cache;
        let leader = scope.spawn(move || {
            cache.try_get_or_insert_entry_with("key", || {
                begun.send(()).unwrap();
                ends.recv().unwrap();
                Ok::<_, String>(("old", tagged("tag")))
            })
        });
        has_begun.recv().unwrap();
        cache.invalidate_tag("tag").unwrap();
        let load = async { Ok::<_, String>(("new", tagged("tag"))) };
        let mut waits = Box::pin(cache.get_or_fetch_entry("key", load));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(waits.as_mut().poll(&mut context).is_pending());
        end.send(()).unwrap();
        assert_eq!(leader.join().unwrap().unwrap(), b"old");
        assert_eq!(block_on(waits).unwrap(), b"new");
    });
    assert_eq!(cache.get("key").unwrap().unwrap(), b"new");
    cache.invalidate_tag("tag").unwrap();
    assert_eq!(cache.get("key").unwrap(), None);
}

#[test]
fn neither_a_stale_value_nor_an_absence_is_served_instead() {
    let minute = Duration::from_secs(60);
    let cache = small()
        .default_ttl(minute)
        .stale_if_error(minute)
        .stale_while_revalidate(minute)
        .build()
        .unwrap();
    cache.insert_entry("key", "old", tagged("tag")).unwrap();
    cache.invalidate_tag("tag").unwrap();
    let failed = cache.try_get_or_insert_with("key", || Err::<&str, _>("away".to_owned()));
    assert!(failed.is_err());
    assert_eq!(cache.stats().stale, 0);
}

#[test]
fn the_listener_gets_invalidated_records_once() {
    let (notified, receiver) = mpsc::channel();
    let listener = move |key: &[u8], value: &[u8], cause| notified.send((key.to_vec(), value.to_vec(), cause)).unwrap();
    let cache = small().listener(listener).build().unwrap();
    fill(&cache, 0..100);
    cache.invalidate_tag("tag:3").unwrap();
    cache.settle().unwrap();
    drop(cache);
    let notified: Vec<_> = receiver.iter().collect();
    assert_eq!(notified.len(), 10);
    assert!(notified.iter().all(|(_, _, cause)| *cause == RemovalCause::Expired));
}

/// A reader never sees a value that was inserted before an invalidation that had returned.
#[test]
fn threads_see_no_value_after_its_tag_was_invalidated() {
    let cache = small().disk(Disk::store(store(), 16 << 20)).build().unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    for n in 1000..1300 {
                        cache.insert_entry(&key(n), &noise(n, 300), tagged("noise")).unwrap();
                        let _ = cache.get(&key(n)).unwrap();
                    }
                    cache.invalidate_tag("noise").unwrap();
                }
            });
        }
        for round in 0..2000_u64 {
            let name = key(round % 50);
            cache
                .insert_entry(&name, &round.to_le_bytes(), tagged("round"))
                .unwrap();
            if let Some(found) = cache.get(&name).unwrap() {
                assert_eq!(found, round.to_le_bytes());
            }
            cache.invalidate_tag("round").unwrap();
            assert_eq!(cache.get(&name).unwrap(), None, "{round}");
        }
        is_over.store(true, Ordering::SeqCst);
    });
    cache.validate().unwrap();
}

#[test]
fn many_invalidations_take_bounded_memory() {
    let cache = small().build().unwrap();
    fill(&cache, 0..1000);
    cache.settle().unwrap();
    let before = cache.bytes_held();
    for n in 0..100_000 {
        cache.invalidate_tag(format!("user:{n}")).unwrap();
    }
    // A 256th of the memory, and what upkeep takes meanwhile; an entry of 16 bytes for each tag would be 1.6 MB.
    assert!(
        cache.bytes_held() <= before + (512 << 10),
        "{}",
        cache.bytes_held() - before
    );
    // The oldest are kept as bounds for all records of their sets.
    assert!((0..1000).all(|n| !is_there(&cache, n)));
    fill(&cache, 0..1000);
    assert!((0..1000).all(|n| is_there(&cache, n)));
}
