//! Loaders that answer that there is no value, and the limit for waiting for another caller's load.

use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use leafpress::Cache;
use leafpress::cache::{CacheError, CacheUpdate, Disk, InsertOptions, LoadError, ManualClock, TypedCache};

use crate::disk::store;
use crate::tasks::block_on;
use crate::{key, noise, small};

type Absent = Result<Option<&'static str>, String>;

#[test]
fn an_absence_is_not_stored() {
    for builder in [small(), small().disk(Disk::store(store(), 16 << 20))] {
        let cache = builder.build().unwrap();
        for _ in 0..2 {
            let absent = cache.try_get_or_insert_option_with("key", || Absent::Ok(None));
            assert_eq!(absent.unwrap(), None);
            let absent = block_on(cache.get_or_fetch_option("key", async { Absent::Ok(None) }));
            assert_eq!(absent.unwrap(), None);
            assert_eq!(cache.get("key").unwrap(), None);
        }
        assert_eq!((cache.stats().inserts, cache.len()), (0, 0));
        let failed = cache.try_get_or_insert_option_with("key", || Absent::Err("away".to_owned()));
        assert!(matches!(failed, Err(LoadError::Load(error)) if *error == "away"));
        let loaded = cache.try_get_or_insert_option_with("key", || Absent::Ok(Some("value")));
        assert_eq!(loaded.unwrap().as_deref(), Some(&b"value"[..]));
        let again = cache.try_get_or_insert_option_with("key", || -> Absent { unreachable!("it is there") });
        assert_eq!(again.unwrap().as_deref(), Some(&b"value"[..]));
        let loaded = block_on(cache.get_or_fetch_option("another", async { Absent::Ok(Some("value")) }));
        assert_eq!(loaded.unwrap().as_deref(), Some(&b"value"[..]));
        assert_eq!(cache.get("another").unwrap().unwrap(), b"value");
    }
}

#[test]
fn a_remembered_absence_needs_no_loader_until_it_expires() {
    let clock = Arc::new(ManualClock::new(Duration::from_secs(2_000_000_000)));
    for builder in [small(), small().disk(Disk::store(store(), 16 << 20))] {
        let builder = builder.clock(clock.clone()).absent_ttl(Duration::from_secs(5));
        let cache = builder.build().unwrap();
        let unreachable_load = || -> Absent { unreachable!("it is known") };
        for round in 0..3 {
            let absent = cache.try_get_or_insert_option_with("key", || Absent::Ok(None));
            assert_eq!(absent.unwrap(), None);
            clock.advance(Duration::from_secs(4));
            for _ in 0..3 {
                assert_eq!(
                    cache.try_get_or_insert_option_with("key", unreachable_load).unwrap(),
                    None
                );
                let fetched = block_on(cache.get_or_fetch_option("key", async { unreachable_load() }));
                assert_eq!(fetched.unwrap(), None);
                assert_eq!(cache.get("key").unwrap(), None);
            }
            assert_eq!(cache.stats().known_absent, 6 * (round + 1));
            clock.advance(Duration::from_secs(2));
        }
        assert_eq!((cache.stats().inserts, cache.len()), (0, 0));
        // A loader that needs a value is called.
        block_on(cache.get_or_fetch_option("key", async { Absent::Ok(None) })).unwrap();
        let loaded = cache.try_get_or_insert_with("key", || Ok::<_, String>("value"));
        assert_eq!(loaded.unwrap(), b"value");
        assert_eq!(cache.get("key").unwrap().unwrap(), b"value");
        cache.validate().unwrap();
    }
}

#[test]
fn a_write_or_removal_ends_a_remembered_absence() {
    type Change = fn(&Cache);
    let changes: [(&str, Change, Option<&[u8]>); 9] = [
        ("insert", |cache| cache.insert("key", "new").unwrap(), Some(b"new")),
        ("swap", |cache| _ = cache.swap("key", "new").unwrap(), Some(b"new")),
        (
            "update",
            |cache| _ = cache.update_with("key", |_| CacheUpdate::Put("new")).unwrap(),
            Some(b"new"),
        ),
        ("remove", |cache| _ = cache.remove("key").unwrap(), None),
        ("invalidate", |cache| cache.invalidate("key").unwrap(), None),
        ("take", |cache| _ = cache.take("key").unwrap(), None),
        ("remove_prefix", |cache| _ = cache.remove_prefix("k").unwrap(), None),
        ("clear", |cache| cache.clear().unwrap(), None),
        (
            "insert, too large",
            |cache| cache.insert("key", &noise(1, 1 << 20)).unwrap(),
            None,
        ),
    ];
    for builder in [small, || small().disk(Disk::store(store(), 16 << 20))] {
        let cache = builder().absent_ttl(Duration::from_secs(3600)).build().unwrap();
        for (name, change, value) in changes {
            cache.remove("key").unwrap();
            let absent = cache.try_get_or_insert_option_with("key", || Absent::Ok(None));
            assert_eq!(absent.unwrap(), None);
            change(&cache);
            assert_eq!(cache.get("key").unwrap().as_deref(), value, "{name}");
            let loaded = cache.try_get_or_insert_option_with("key", || Absent::Ok(Some("loaded")));
            assert_eq!(loaded.unwrap().as_deref(), Some(value.unwrap_or(b"loaded")), "{name}");
        }
    }
}

/// The loader's answer may be outdated.
#[test]
fn an_absence_is_not_remembered_if_the_key_was_written_or_removed_meanwhile() {
    let cache = small().absent_ttl(Duration::from_secs(3600)).build().unwrap();
    for change in [
        (|cache: &Cache| cache.insert("key", "new").unwrap()) as fn(&Cache),
        |cache| _ = cache.remove("key").unwrap(),
        |cache| cache.clear().unwrap(),
    ] {
        let absent = cache.try_get_or_insert_option_with("key", || {
            change(&cache);
            Absent::Ok(None)
        });
        assert_eq!(absent.unwrap(), None);
        cache.remove("key").unwrap();
        let loaded = cache.try_get_or_insert_option_with("key", || Absent::Ok(Some("loaded")));
        assert_eq!(loaded.unwrap().as_deref(), Some(&b"loaded"[..]));
        cache.remove("key").unwrap();
    }
}

#[test]
fn remembered_absences_take_a_bounded_part_of_the_memory() {
    const KEYS: u64 = 20_000;
    let clock = Arc::new(ManualClock::new(Duration::from_secs(2_000_000_000)));
    let builder = Cache::builder().memory(64 << 20).clock(clock.clone());
    let cache = builder.absent_ttl(Duration::from_secs(5)).build().unwrap();
    let (mut calls, empty) = (0, cache.bytes_held());
    for _ in 0..2 {
        for n in 0..KEYS {
            let absent = cache.try_get_or_insert_option_with(&key(n), || {
                calls += 1;
                Absent::Ok(None)
            });
            assert_eq!(absent.unwrap(), None);
        }
    }
    let remembered = 2 * KEYS - calls;
    let held = cache.bytes_held() - empty;
    assert_eq!(cache.stats().known_absent, remembered);
    assert!((8_000..10_500).contains(&remembered), "{remembered}");
    // Upkeep may take some memory meanwhile.
    assert!(held > 50 * remembered && held <= (1 << 20) + (256 << 10), "{held}");
    clock.advance(Duration::from_secs(6));
    // Upkeep forgets them.
    let began = Instant::now();
    while cache.bytes_held() > empty + held / 2 && began.elapsed() < Duration::from_secs(60) {
        thread::sleep(Duration::from_millis(10));
    }
    let left = cache.bytes_held().saturating_sub(empty);
    assert!(left <= held / 2, "{left} of {held}");
    for refused in [
        small().absent_ttl(Duration::ZERO),
        small().stale_if_error(Duration::ZERO),
        small().ttl_jitter(91),
    ] {
        assert!(matches!(refused.build(), Err(CacheError::Option { .. })));
    }
}

#[test]
fn a_load_that_fails_may_answer_with_an_expired_value() {
    let clock = Arc::new(ManualClock::new(Duration::from_secs(2_000_000_000)));
    let second = Duration::from_secs(1);
    let builder = small()
        .clock(clock.clone())
        .default_ttl(10 * second)
        .stale_if_error(100 * second);
    let cache = builder.build().unwrap();
    cache.insert("key", "old").unwrap();
    clock.advance(11 * second);
    let fails = || Err::<&str, _>("away".to_owned());
    for count in 1..4 {
        let stale = cache.try_get_or_insert_with("key", fails);
        assert_eq!(stale.unwrap(), b"old");
        let stale = block_on(cache.get_or_fetch_option("key", async { Absent::Err("away".to_owned()) }));
        assert_eq!(stale.unwrap().unwrap(), b"old");
        assert_eq!(cache.get("key").unwrap(), None);
        assert_eq!(cache.stats().stale, 2 * count);
        // Upkeep leaves it.
        cache.settle().unwrap();
    }
    // Nobody gets it instead of a load.
    let loaded = cache.try_get_or_insert_with("key", || Ok::<_, String>("new"));
    assert_eq!(loaded.unwrap(), b"new");
    clock.advance(111 * second);
    let failed = cache.try_get_or_insert_with("key", fails);
    assert!(matches!(failed, Err(LoadError::Load(error)) if *error == "away"));
    let failed = cache.try_get_or_insert_with("never there", fails);
    assert!(matches!(failed, Err(LoadError::Load(_))));
}

#[test]
fn times_to_live_differ_by_the_jitter() {
    let clock = Arc::new(ManualClock::new(Duration::from_secs(2_000_000_000)));
    let second = Duration::from_secs(1);
    let builder = small().clock(clock).default_ttl(1000 * second).ttl_jitter(20);
    let cache = builder.build().unwrap();
    let mut left = Vec::new();
    for n in 0..1000 {
        match n % 3 {
            0 => cache.insert(&key(n), "value").unwrap(),
            1 => cache
                .insert_entry(&key(n), "value", InsertOptions::ttl(1000 * second))
                .unwrap(),
            _ => _ = cache.update_with(&key(n), |_| CacheUpdate::Put("value")).unwrap(),
        }
        left.push(cache.ttl(&key(n)).unwrap().unwrap().as_secs_f64());
    }
    assert!(left.iter().all(|left| (799.9..=1000.0).contains(left)));
    let mean = left.iter().sum::<f64>() / left.len() as f64;
    assert!((mean - 900.0).abs() < 10.0, "{mean}");
    left.sort_by(f64::total_cmp);
    left.dedup();
    assert!(left.len() > 900, "{}", left.len());
    cache.expire(&key(1), Some(1000 * second)).unwrap();
    assert_eq!(cache.ttl(&key(1)).unwrap(), Some(1000 * second));
}

/// Waiting callers get the answer, unless they need a value: these load themselves.
#[test]
fn all_waiters_that_accept_it_get_an_absence() {
    let cache = small().build().unwrap();
    let (begun, has_begun) = mpsc::channel();
    let (end, ends) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let cache = &cache;
        let leader = scope.spawn(move || {
            cache.try_get_or_insert_option_with("key", || {
                begun.send(()).unwrap();
                ends.recv().unwrap();
                Absent::Ok(None)
            })
        });
        has_begun.recv().unwrap();
        let context = &mut Context::from_waker(Waker::noop());
        let accepts = async { Absent::Ok(Some("not called")) };
        let mut accepts = pin!(cache.get_or_fetch_option("key", accepts));
        let mut needs = pin!(cache.get_or_fetch("key", async { Ok::<_, String>("its own") }));
        assert!(accepts.as_mut().poll(context).is_pending() && needs.as_mut().poll(context).is_pending());
        end.send(()).unwrap();
        assert_eq!(leader.join().unwrap().unwrap(), None);
        let Poll::Ready(Ok(absent)) = accepts.as_mut().poll(context) else {
            panic!("the load has ended")
        };
        assert_eq!(absent, None);
        let Poll::Ready(Ok(own)) = needs.as_mut().poll(context) else {
            panic!("nothing to wait for")
        };
        assert_eq!(own, b"its own");
    });
    assert_eq!(cache.get("key").unwrap().unwrap(), b"its own");
}

#[test]
fn what_is_written_during_a_load_that_finds_nothing_stays() {
    let cache = small().build().unwrap();
    let absent = cache.try_get_or_insert_option_with("key", || {
        cache.insert("key", "written").unwrap();
        Absent::Ok(None)
    });
    assert_eq!(absent.unwrap(), None);
    assert_eq!(cache.get("key").unwrap().unwrap(), b"written");
}

#[test]
fn a_thread_waits_no_longer_than_the_limit_for_another_ones_load() {
    let limit = Duration::from_millis(20);
    let cache = small().load_wait(limit).build().unwrap();
    let (begun, has_begun) = mpsc::channel();
    let (end, ends) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let cache = &cache;
        let leader = scope.spawn(move || {
            cache.get_or_insert_with("key", || {
                begun.send(()).unwrap();
                ends.recv().unwrap();
                "slow"
            })
        });
        has_begun.recv().unwrap();
        for _ in 0..2 {
            let began = Instant::now();
            let waited = cache.get_or_insert_with("key", || -> &str { unreachable!("another one loads") });
            assert!(matches!(waited, Err(CacheError::LoadWait { waited }) if waited == limit));
            assert!(began.elapsed() >= limit);
            let waited = cache.try_get_or_insert_option_with("key", || -> Absent { unreachable!("another one loads") });
            assert!(matches!(waited, Err(LoadError::Cache(CacheError::LoadWait { .. }))));
        }
        // A task's wait is its runtime's.
        let context = &mut Context::from_waker(Waker::noop());
        let load = async { Ok::<_, String>("not called") };
        let mut task = pin!(cache.get_or_fetch("key", load));
        assert!(task.as_mut().poll(context).is_pending());
        end.send(()).unwrap();
        // The load went on.
        assert_eq!(leader.join().unwrap().unwrap(), b"slow");
        assert!(matches!(task.as_mut().poll(context), Poll::Ready(Ok(value)) if value == b"slow"));
    });
    assert_eq!(cache.get("key").unwrap().unwrap(), b"slow");
    let refused = small().load_wait(Duration::ZERO).build();
    assert!(matches!(
        refused,
        Err(CacheError::Option {
            option: "load_wait",
            ..
        })
    ));
}

/// With a limit too, a wait ends with the load.
#[test]
fn a_load_that_ends_in_time_is_shared() {
    let cache = small().load_wait(Duration::from_secs(3600)).build().unwrap();
    let (begun, has_begun) = mpsc::channel();
    thread::scope(|scope| {
        let cache = &cache;
        let leader = scope.spawn(move || {
            cache.get_or_insert_with("key", || {
                begun.send(()).unwrap();
                thread::sleep(Duration::from_millis(50));
                "loaded"
            })
        });
        has_begun.recv().unwrap();
        // It waits, or finds the value.
        let value = cache.get_or_insert_with("key", || -> &str { unreachable!("another one loads") });
        assert_eq!(value.unwrap(), b"loaded");
        assert_eq!(leader.join().unwrap().unwrap(), b"loaded");
    });
}

#[test]
fn typed_loaders_may_find_nothing_too() {
    let users: TypedCache<u64, String> = TypedCache::new(small().build().unwrap());
    let absent = users.try_get_or_insert_option_with(&1, || Ok::<_, String>(None));
    assert_eq!(absent.unwrap(), None);
    let failed = users.try_get_or_insert_option_with(&1, || Err::<Option<String>, _>("away"));
    assert!(matches!(failed, Err(LoadError::Load(error)) if *error == "away"));
    for _ in 0..2 {
        let ada = users.try_get_or_insert_option_with(&1, || Ok::<_, String>(Some("Ada".to_owned())));
        assert_eq!(ada.unwrap().as_deref(), Some("Ada"));
    }
    assert_eq!(users.cache().stats().inserts, 1);
}
