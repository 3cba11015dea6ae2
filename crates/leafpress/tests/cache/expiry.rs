//! Expired records are not returned, and are removed without being looked up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use leafpress::Cache;
use leafpress::cache::{CacheUpdate, Clock, Disk, InsertOptions, ManualClock, SystemClock};

use crate::{key, noise, small};

const SECOND: Duration = Duration::from_secs(1);

fn with_clock() -> (Cache, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(SystemClock::default().now()));
    let cache = small().clock(clock.clone()).build().unwrap();
    (cache, clock)
}

#[test]
fn a_record_is_there_until_its_time() {
    let (cache, clock) = with_clock();
    cache
        .insert_entry("short", "1", InsertOptions::ttl(10 * SECOND))
        .unwrap();
    cache
        .insert_entry("long", "2", InsertOptions::ttl(1000 * SECOND))
        .unwrap();
    cache.insert("for ever", "3").unwrap();
    clock.advance(SECOND * 9);
    assert_eq!(cache.get("short").unwrap().unwrap(), b"1");
    clock.advance(SECOND);
    assert_eq!(cache.get("short").unwrap(), None);
    assert!(!cache.contains_key("short").unwrap());
    assert_eq!(cache.get("long").unwrap().unwrap(), b"2");
    clock.advance(SECOND * 1000);
    assert_eq!(
        cache.range(..).map(|record| record.unwrap().0).collect::<Vec<_>>(),
        [b"for ever"]
    );
    assert!(!cache.remove("long").unwrap(), "it has expired");
    assert_eq!(cache.stats().expired, 2);
    assert_eq!(cache.len(), 1);
}

#[test]
fn writing_again_gives_a_record_another_time() {
    let (cache, clock) = with_clock();
    cache.insert_entry("key", "1", InsertOptions::ttl(10 * SECOND)).unwrap();
    clock.advance(9 * SECOND);
    cache.insert_entry("key", "2", InsertOptions::ttl(10 * SECOND)).unwrap();
    clock.advance(9 * SECOND);
    assert_eq!(cache.get("key").unwrap().unwrap(), b"2");
    cache.insert("key", "3").unwrap();
    clock.advance(1_000_000 * SECOND);
    assert_eq!(cache.get("key").unwrap().unwrap(), b"3");
}

#[test]
fn the_default_ttl_applies_to_records_without_one() {
    let clock = Arc::new(ManualClock::new(SystemClock::default().now()));
    let cache = small().clock(clock.clone()).default_ttl(60 * SECOND).build().unwrap();
    cache.insert("default", "1").unwrap();
    cache
        .insert_entry("own", "2", InsertOptions::ttl(600 * SECOND))
        .unwrap();
    cache.get_or_insert_with("loaded", || "3").unwrap();
    clock.advance(60 * SECOND);
    assert_eq!(cache.get("default").unwrap(), None);
    assert_eq!(cache.get("own").unwrap().unwrap(), b"2");
    // It is loaded again.
    assert_eq!(cache.get_or_insert_with("loaded", || "4").unwrap(), b"4");
}

#[test]
fn a_clock_that_is_set_back_harms_nothing() {
    let (cache, clock) = with_clock();
    let now = clock.now();
    cache.insert_entry("key", "1", InsertOptions::ttl(10 * SECOND)).unwrap();
    clock.set(now - 1000 * SECOND);
    assert_eq!(cache.get("key").unwrap().unwrap(), b"1");
    cache
        .insert_entry("earlier", "2", InsertOptions::ttl(10 * SECOND))
        .unwrap();
    clock.set(now + 11 * SECOND);
    assert_eq!((cache.get("key").unwrap(), cache.get("earlier").unwrap()), (None, None));
    // Before the epoch.
    clock.set(Duration::ZERO);
    cache.insert_entry("key", "3", InsertOptions::ttl(10 * SECOND)).unwrap();
    cache.get("key").unwrap();
}

#[test]
fn removes_expired_records_without_reads() {
    let (cache, clock) = with_clock();
    for n in 0..5000 {
        let ttl = if n % 2 == 0 { 10 } else { 10_000 };
        cache
            .insert_entry(&key(n), &noise(n, 100), InsertOptions::ttl(ttl * SECOND))
            .unwrap();
    }
    assert_eq!(cache.len(), 5000);
    clock.advance(20 * SECOND);
    // The background thread removes it.
    let began = Instant::now();
    while cache.len() > 2500 {
        assert!(began.elapsed() < Duration::from_secs(600), "{} are left", cache.len());
        std::thread::sleep(Duration::from_millis(20));
    }
    let stats = cache.stats();
    assert_eq!((stats.records, stats.expired, stats.evicted), (2500, 2500, 0));
    for n in 0..5000 {
        assert_eq!(cache.get(&key(n)).unwrap(), (n % 2 == 1).then(|| noise(n, 100)));
    }
    cache.validate().unwrap();
}

#[test]
fn what_is_over_makes_room_before_what_is_not() {
    let (cache, clock) = with_clock();
    for n in 0..3000 {
        cache
            .insert_entry(&key(n), &noise(n, 400), InsertOptions::ttl(10 * SECOND))
            .unwrap();
        assert!(cache.get(&key(n)).unwrap().is_some());
    }
    clock.advance(20 * SECOND);
    // There is room for these in addition to the expired records, but not for more.
    for n in 3000..7000 {
        cache.insert(&key(n), &noise(n, 400)).unwrap();
    }
    cache.settle().unwrap();
    assert_eq!(cache.len(), 4000);
}

/// Returns a cache with a time to idle of 80 s, and its clock.
fn that_idles(disk: Option<Disk>) -> (Cache, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(SystemClock::default().now()));
    let mut builder = small().clock(clock.clone()).time_to_idle(80 * SECOND);
    if let Some(disk) = disk {
        builder = builder.disk(disk);
    }
    (builder.build().unwrap(), clock)
}

#[test]
fn what_is_read_lives_on_and_what_is_not_goes() {
    let (cache, clock) = that_idles(None);
    for n in 0..1000 {
        cache.insert(&key(n), &noise(n, 100)).unwrap();
    }
    cache
        .insert_entry("its time comes", "1", InsertOptions::ttl(200 * SECOND))
        .unwrap();
    // By each method of reading; a scan or a miss does not count as a use.
    for round in 0..40 {
        clock.advance(7 * SECOND);
        assert_eq!(cache.get(&key(0)).unwrap(), Some(noise(0, 100)), "{round}");
        assert!(cache.contains_key(&key(1)).unwrap(), "{round}");
        assert_eq!(cache.get_many(&[key(5000), key(2)]).unwrap()[1], Some(noise(2, 100)));
        assert_eq!(cache.get_or_insert_with(&key(3), || "other").unwrap(), noise(3, 100));
        assert_eq!(cache.get("its time comes").unwrap().is_some(), round < 28);
        for record in cache.range(..) {
            record.unwrap();
        }
    }
    cache.settle().unwrap();
    for n in 0..1000 {
        assert_eq!(cache.get(&key(n)).unwrap().is_some(), n < 4, "{n}");
    }
    clock.advance(80 * SECOND);
    assert!((0..4).all(|n| cache.get(&key(n)).unwrap().is_none()));
    cache.validate().unwrap();
}

/// Inserts a record that expires if it is not used for this long, whatever the cache's own time.
fn insert_that_idles(cache: &Cache, key: &str, to_idle: Duration) {
    let entry = InsertOptions::default().time_to_idle(to_idle);
    cache.insert_entry(key, "1", entry).unwrap();
}

fn is_there(cache: &Cache, key: &str) -> bool {
    cache.peek(key).unwrap().is_some()
}

#[test]
fn each_record_may_have_its_own_time_to_idle() {
    let (without, clock) = with_clock();
    let (with, clock_with) = that_idles(None);
    for (cache, clock, is_default) in [(without, clock, false), (with, clock_with, true)] {
        for key in ["get", "unread", "many", "load", "kept", "updated"] {
            insert_that_idles(&cache, key, 40 * SECOND);
        }
        insert_that_idles(&cache, "never", Duration::MAX);
        insert_that_idles(&cache, "twice as long", 160 * SECOND);
        cache.insert("by default", "1").unwrap();
        for round in 0..10 {
            clock.advance(20 * SECOND);
            assert!(cache.get("get").unwrap().is_some(), "{round}");
            assert!(cache.get_many(&["many"]).unwrap()[0].is_some(), "{round}");
            assert_eq!(cache.get_or_insert_with("load", || "2").unwrap(), b"1", "{round}");
            let kept = cache.update_with("kept", |found| {
                assert!(found.is_some(), "{round}");
                CacheUpdate::<&str>::Keep
            });
            kept.unwrap();
            // The record keeps its own time.
            let updated = cache.update_with("updated", |found| {
                assert!(found.is_some(), "{round}");
                CacheUpdate::Put("3")
            });
            updated.unwrap();
            assert!(cache.expire("updated", Some(1000 * SECOND)).unwrap());
            assert_eq!(is_there(&cache, "unread"), round == 0);
            assert_eq!(is_there(&cache, "twice as long"), round < 7);
            assert_eq!(is_there(&cache, "by default"), !is_default || round < 3);
        }
        clock.advance(40 * SECOND);
        cache.settle().unwrap();
        for key in ["get", "many", "load", "kept", "updated"] {
            assert!(!is_there(&cache, key), "{key}");
        }
        clock.advance(1_000_000 * SECOND);
        assert!(is_there(&cache, "never"));
        // An insertion without a time has the cache's again.
        insert_that_idles(&cache, "again", SECOND);
        cache.insert("again", "2").unwrap();
        clock.advance(2 * SECOND);
        assert!(is_there(&cache, "again"));
        cache.validate().unwrap();
    }
}

/// The first read to be noted may be one of several keys, in memory or from disk.
#[test]
fn reads_of_several_keys_are_noted_from_the_first_on() {
    for is_spilled in [false, true] {
        let (mut builder, clock) = (small(), Arc::new(ManualClock::new(SystemClock::default().now())));
        if is_spilled {
            let store = Arc::new(leafpress::store::MemoryStore::new(4096).unwrap());
            builder = builder.disk(Disk::store(store, 16 << 20));
        }
        let cache = builder.clock(clock.clone()).build().unwrap();
        let keys = ["one", "two", "three"];
        keys.iter().for_each(|key| insert_that_idles(&cache, key, 40 * SECOND));
        if is_spilled {
            cache.spill().unwrap();
        }
        for round in 0..3 {
            clock.advance(30 * SECOND);
            let found = cache.get_many(&keys).unwrap();
            assert!(found.iter().all(Option::is_some), "{round}: {found:?}");
        }
        clock.advance(40 * SECOND);
        assert!(cache.get_many(&keys).unwrap().iter().all(Option::is_none));
    }
}

#[test]
fn a_record_keeps_its_own_time_to_idle_over_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cache");
    let clock = Arc::new(ManualClock::new(SystemClock::default().now()));
    let open = || {
        let disk = Disk::file(&path, 16 << 20).keep_on_drop(true);
        small().clock(clock.clone()).disk(disk).build().unwrap()
    };
    let cache = open();
    insert_that_idles(&cache, "read", 40 * SECOND);
    insert_that_idles(&cache, "unread", 40 * SECOND);
    cache.close().unwrap();
    drop(cache);
    let cache = open();
    for round in 0..4 {
        clock.advance(20 * SECOND);
        assert!(cache.get("read").unwrap().is_some(), "{round}");
    }
    assert!(!is_there(&cache, "unread"));
    clock.advance(40 * SECOND);
    assert!(!is_there(&cache, "read"));
}

#[test]
fn a_record_may_have_no_time_to_live_though_the_cache_has_a_default() {
    let clock = Arc::new(ManualClock::new(SystemClock::default().now()));
    let builder = small().clock(clock.clone()).default_ttl(10 * SECOND);
    let cache = builder.build().unwrap();
    cache
        .insert_entry("stays", "1", InsertOptions::ttl(Duration::MAX))
        .unwrap();
    cache.insert("goes", "1").unwrap();
    assert_eq!(cache.ttl("stays").unwrap(), Some(Duration::MAX));
    clock.advance(11 * SECOND);
    assert!(is_there(&cache, "stays") && !is_there(&cache, "goes"));
    assert!(cache.expire("stays", Some(10 * SECOND)).unwrap());
    assert!(cache.expire("stays", Some(Duration::MAX)).unwrap());
    clock.advance(11 * SECOND);
    assert_eq!(cache.ttl("stays").unwrap(), Some(Duration::MAX));
}

#[test]
fn a_time_to_idle_goes_with_a_record_to_disk() {
    // A file's device may be too slow, and evicted records are then dropped.
    let store = Arc::new(leafpress::store::MemoryStore::new(4096).unwrap());
    let (cache, clock) = that_idles(Some(Disk::store(store, 32 << 20)));
    for n in 0..20_000 {
        cache.insert(&key(n), &noise(n, 400)).unwrap();
    }
    cache.settle().unwrap();
    for _ in 0..20 {
        clock.advance(20 * SECOND);
        for n in 0..100 {
            let found = cache.get(&key(n)).unwrap();
            assert!(found == Some(noise(n, 400)), "{n}: {:?}", cache.stats());
        }
        // These evict the others to disk again.
        for n in 50_000..60_000 {
            cache.insert(&key(n), &noise(n, 400)).unwrap();
        }
    }
    assert!(cache.stats().promoted > 100);
    assert!((100..20_000).all(|n| cache.get(&key(n)).unwrap().is_none()));
    clock.advance(80 * SECOND);
    assert!((0..100).all(|n| cache.get(&key(n)).unwrap().is_none()));
}

/// Queued reads are applied by writing records, which no validation sees half done.
#[test]
fn a_cache_is_valid_while_reads_are_applied() {
    let (cache, clock) = that_idles(None);
    for n in 0..1000 {
        cache.insert(&key(n), &noise(n, 100)).unwrap();
    }
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                // Longer than the part of the time to idle in which a read updates no record.
                clock.advance(20 * SECOND);
                (0..1000).for_each(|n| assert!(cache.get(&key(n)).unwrap().is_some(), "{n}"));
                cache.settle().unwrap();
            }
        });
        let validated = (0..200).try_for_each(|_| cache.validate());
        is_done.store(true, Ordering::Relaxed);
        validated.unwrap();
    });
}

#[test]
fn any_time_that_a_clock_shows_will_do() {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    // A clock that was never set, one without a battery, and some of the next centuries.
    for years in [0, 1, 30, 54, 56, 89, 90, 131, 500] {
        let clock = Arc::new(ManualClock::new(years * YEAR));
        let store = Arc::new(leafpress::store::MemoryStore::new(4096).unwrap());
        let disk = Disk::store(store, 16 << 20);
        let cache = small().clock(clock.clone()).disk(disk).build().unwrap();
        cache
            .insert_entry("short", "1", InsertOptions::ttl(10 * SECOND))
            .unwrap();
        cache.insert_entry("long", "2", InsertOptions::ttl(9 * YEAR)).unwrap();
        clock.advance(9 * SECOND);
        assert_eq!(cache.get("short").unwrap().as_deref(), Some(&b"1"[..]), "{years}");
        cache.spill().unwrap();
        assert_eq!(cache.get("short").unwrap().as_deref(), Some(&b"1"[..]), "{years}");
        clock.advance(SECOND);
        assert_eq!(cache.get("short").unwrap(), None, "{years}");
        clock.advance(8 * YEAR);
        assert_eq!(cache.get("long").unwrap().as_deref(), Some(&b"2"[..]), "{years}");
        clock.advance(YEAR);
        assert_eq!(cache.get("long").unwrap(), None, "{years}");
    }
}
