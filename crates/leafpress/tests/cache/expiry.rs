//! Records expire: they are not returned after their time, and leave without being asked for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use leafpress::Cache;
use leafpress::cache::{Clock, Entry, ManualClock, SystemClock};

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
    cache.insert_with("short", "1", Entry::ttl(10 * SECOND)).unwrap();
    cache.insert_with("long", "2", Entry::ttl(1000 * SECOND)).unwrap();
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
    assert!(!cache.remove("long").unwrap(), "it is over");
    assert_eq!(cache.stats().expired, 2);
    assert_eq!(cache.len(), 1);
}

#[test]
fn writing_again_gives_a_record_another_time() {
    let (cache, clock) = with_clock();
    cache.insert_with("key", "1", Entry::ttl(10 * SECOND)).unwrap();
    clock.advance(9 * SECOND);
    cache.insert_with("key", "2", Entry::ttl(10 * SECOND)).unwrap();
    clock.advance(9 * SECOND);
    assert_eq!(cache.get("key").unwrap().unwrap(), b"2");
    cache.insert("key", "3").unwrap();
    clock.advance(1_000_000 * SECOND);
    assert_eq!(cache.get("key").unwrap().unwrap(), b"3");
}

#[test]
fn the_default_is_for_those_that_say_nothing() {
    let clock = Arc::new(ManualClock::new(SystemClock::default().now()));
    let cache = small().clock(clock.clone()).default_ttl(60 * SECOND).build().unwrap();
    cache.insert("default", "1").unwrap();
    cache.insert_with("own", "2", Entry::ttl(600 * SECOND)).unwrap();
    cache.get_or_insert_with("loaded", || "3").unwrap();
    clock.advance(60 * SECOND);
    assert_eq!(cache.get("default").unwrap(), None);
    assert_eq!(cache.get("own").unwrap().unwrap(), b"2");
    // It is loaded anew.
    assert_eq!(cache.get_or_insert_with("loaded", || "4").unwrap(), b"4");
}

#[test]
fn a_clock_that_is_set_back_harms_nothing() {
    let (cache, clock) = with_clock();
    let now = clock.now();
    cache.insert_with("key", "1", Entry::ttl(10 * SECOND)).unwrap();
    clock.set(now - 1000 * SECOND);
    assert_eq!(cache.get("key").unwrap().unwrap(), b"1");
    cache.insert_with("earlier", "2", Entry::ttl(10 * SECOND)).unwrap();
    clock.set(now + 11 * SECOND);
    assert_eq!((cache.get("key").unwrap(), cache.get("earlier").unwrap()), (None, None));
    // Before there was time.
    clock.set(Duration::ZERO);
    cache.insert_with("key", "3", Entry::ttl(10 * SECOND)).unwrap();
    cache.get("key").unwrap();
}

#[test]
fn what_is_over_leaves_without_being_asked_for() {
    let (cache, clock) = with_clock();
    for n in 0..5000 {
        let ttl = if n % 2 == 0 { 10 } else { 10_000 };
        cache
            .insert_with(&key(n), &noise(n, 100), Entry::ttl(ttl * SECOND))
            .unwrap();
    }
    assert_eq!(cache.len(), 5000);
    clock.advance(20 * SECOND);
    // The cache's own thread looks for it.
    let began = Instant::now();
    while cache.len() > 2500 {
        assert!(began.elapsed() < Duration::from_secs(60), "{} are left", cache.len());
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
            .insert_with(&key(n), &noise(n, 400), Entry::ttl(10 * SECOND))
            .unwrap();
        assert!(cache.get(&key(n)).unwrap().is_some());
    }
    clock.advance(20 * SECOND);
    // Beside what is over there is room for these, and not for more.
    for n in 3000..7000 {
        cache.insert(&key(n), &noise(n, 400)).unwrap();
    }
    cache.settle().unwrap();
    assert_eq!(cache.len(), 4000);
}
