//! Loaders that answer that there is no value, and the limit for waiting for another caller's load.

use std::pin::pin;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use leafpress::cache::{CacheError, Disk, LoadError, TypedCache};

use crate::disk::store;
use crate::small;
use crate::tasks::block_on;

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

/// Those who wait get the answer, unless they need a value: these load themselves.
#[test]
fn an_absence_is_the_answer_of_all_who_wait_and_accept_it() {
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
        let accepts = async { Absent::Ok(Some("not asked")) };
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
        let load = async { Ok::<_, String>("not asked") };
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
