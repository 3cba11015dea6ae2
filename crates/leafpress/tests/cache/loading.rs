//! Single-flight loading: other callers wait, and a write during the load wins.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use leafpress::Cache;
use leafpress::cache::{CacheUpdate, Clock, Disk, InsertOptions, LoadError, ManualClock, RemovalCause, SystemClock};
use leafpress::store::MemoryStore;

use crate::small;
use crate::tasks::{Yields, block_on};

#[test]
fn concurrent_misses_have_one_loader() {
    let cache = small().build().unwrap();
    let loads = AtomicUsize::new(0);
    thread::scope(|scope| {
        let start = Arc::new(Barrier::new(50));
        for _ in 0..50 {
            let (cache, loads, start) = (&cache, &loads, Arc::clone(&start));
            scope.spawn(move || {
                start.wait();
                let value = cache.get_or_insert_with("key", || {
                    loads.fetch_add(1, Ordering::SeqCst);
                    thread::sleep(Duration::from_millis(50));
                    "loaded"
                });
                assert_eq!(value.unwrap(), b"loaded");
            });
        }
    });
    assert_eq!(loads.into_inner(), 1);
    let stats = cache.stats();
    assert_eq!(stats.hits + stats.misses, 50, "one request each");
    assert_eq!(cache.get("key").unwrap().unwrap(), b"loaded");
}

#[test]
fn an_error_goes_to_all_waiters_and_the_next_caller_retries() {
    let cache = small().build().unwrap();
    let (begun, has_begun) = mpsc::channel();
    let (fail, may_fail) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let cache = &cache;
        let leader = scope.spawn(move || {
            cache.try_get_or_insert_with("key", || -> Result<Vec<u8>, String> {
                begun.send(()).unwrap();
                may_fail.recv().unwrap();
                Err("the database is away".to_owned())
            })
        });
        has_begun.recv().unwrap();
        // Tasks instead of threads: once one is polled, it is known to wait.
        let context = &mut Context::from_waker(Waker::noop());
        let mut waiting: Vec<_> = (0..7)
            .map(|_| Box::pin(cache.get_or_fetch("key", async { Err::<Vec<u8>, _>("a second load".to_owned()) })))
            .collect();
        for task in &mut waiting {
            assert!(task.as_mut().poll(context).is_pending());
        }
        fail.send(()).unwrap();
        let mut errors = vec![leader.join().unwrap().unwrap_err()];
        for mut task in waiting {
            let Poll::Ready(failed) = task.as_mut().poll(context) else {
                panic!("the load has ended")
            };
            errors.push(failed.unwrap_err());
        }
        for error in errors {
            assert_eq!(error.to_string(), "cannot load the value: the database is away");
            assert!(matches!(error, LoadError::Load(_)));
        }
    });
    assert!(cache.is_empty());
    assert_eq!(
        cache.try_get_or_insert_with("key", || Ok::<_, String>("2")).unwrap(),
        b"2"
    );
}

#[test]
fn after_a_panic_one_waiter_loads() {
    let cache = small().build().unwrap();
    let loads = AtomicUsize::new(0);
    let start = Barrier::new(8);
    let panicked: usize = thread::scope(|scope| {
        let load = || {
            start.wait();
            cache.get_or_insert_with("key", || {
                thread::sleep(Duration::from_millis(50));
                assert!(loads.fetch_add(1, Ordering::SeqCst) > 2, "a bug in the loader");
                "at last"
            })
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(load)).collect();
        let results = threads.into_iter().map(thread::ScopedJoinHandle::join);
        results
            .filter(|result| match result {
                Ok(value) => *value.as_ref().unwrap() != b"at last",
                Err(_) => true,
            })
            .count()
    });
    assert_eq!((panicked, loads.into_inner()), (3, 4));
}

#[test]
fn a_write_during_a_load_wins() {
    let cache = small().build().unwrap();
    let loaded = cache.get_or_insert_with("removed", || {
        assert!(!cache.remove("removed").unwrap());
        "old"
    });
    assert_eq!(
        loaded.unwrap(),
        b"old",
        "a caller from before the removal gets the loaded value"
    );
    assert_eq!(cache.get("removed").unwrap(), None);
    let loaded = cache.get_or_insert_with("inserted", || {
        cache.insert("inserted", "new").unwrap();
        "old"
    });
    assert_eq!(loaded.unwrap(), b"old");
    assert_eq!(cache.get("inserted").unwrap().unwrap(), b"new");
    cache
        .get_or_insert_with("cleared", || {
            cache.clear().unwrap();
            "old"
        })
        .unwrap();
    assert!(cache.is_empty());
    // And a load of another key in a load.
    let outer = cache.get_or_insert_with("outer", || cache.get_or_insert_with("inner", || "x").unwrap());
    assert_eq!(outer.unwrap(), b"x");
    assert_eq!(cache.len(), 2);
}

/// A write or removal of "key", and what the key has after it.
type Change = (&'static str, fn(&Cache), Option<&'static [u8]>);

const CHANGES: [Change; 13] = [
    ("insert", |cache| cache.insert("key", "new").unwrap(), Some(b"new")),
    (
        "insert_with",
        |cache| {
            let entry = InsertOptions::ttl(Duration::from_secs(60));
            cache.insert_entry("key", "new", entry).unwrap();
        },
        Some(b"new"),
    ),
    (
        "insert of a value that is not kept",
        |cache| cache.insert("key", &vec![1; 1 << 20]).unwrap(),
        None,
    ),
    ("remove", |cache| assert!(!cache.remove("key").unwrap()), None),
    ("take", |cache| assert_eq!(cache.take("key").unwrap(), None), None),
    (
        "insert and take",
        |cache| {
            cache.insert("key", "new").unwrap();
            assert_eq!(cache.take("key").unwrap().unwrap(), b"new");
        },
        None,
    ),
    (
        "swap",
        |cache| assert_eq!(cache.swap("key", "new").unwrap(), None),
        Some(b"new"),
    ),
    (
        "update_with Put",
        |cache| _ = cache.update_with("key", |_| CacheUpdate::Put("new")).unwrap(),
        Some(b"new"),
    ),
    (
        "update_with Put of a value that is not kept",
        |cache| {
            _ = cache
                .update_with("key", |_| CacheUpdate::Put(vec![1; 1 << 20]))
                .unwrap()
        },
        None,
    ),
    (
        "update_with Remove",
        |cache| _ = cache.update_with("key", |_| CacheUpdate::<&str>::Remove).unwrap(),
        None,
    ),
    (
        "compare_and_swap that inserts",
        |cache| assert!(cache.compare_and_swap("key", None, Some(b"new")).unwrap()),
        Some(b"new"),
    ),
    (
        "compare_and_swap that removes nothing",
        |cache| assert!(cache.compare_and_swap("key", None, None).unwrap()),
        None,
    ),
    ("clear", |cache| cache.clear().unwrap(), None),
];

#[test]
fn a_load_is_not_stored_after_any_write_or_removal() {
    for has_disk in [false, true] {
        for (name, change, after) in CHANGES {
            let cache = if has_disk {
                let store = Arc::new(MemoryStore::new(4096).unwrap());
                small().disk(Disk::store(store, 16 << 20)).build().unwrap()
            } else {
                small().build().unwrap()
            };
            let loaded = cache.get_or_insert_with("key", || {
                change(&cache);
                "old"
            });
            assert_eq!(loaded.unwrap(), b"old");
            let found = cache.get("key").unwrap();
            assert_eq!(found.as_deref(), after, "{name} in a loader, disk: {has_disk}");
            cache.clear().unwrap();
            // And in a future.
            let fetched = block_on(cache.get_or_fetch("key", async {
                Yields::default().await;
                change(&cache);
                Yields::default().await;
                Ok::<_, String>("old")
            }));
            assert_eq!(fetched.unwrap(), b"old");
            let found = cache.get("key").unwrap();
            assert_eq!(found.as_deref(), after, "{name} in a future, disk: {has_disk}");
        }
    }
}

#[test]
fn a_load_is_not_stored_after_what_was_on_disk_was_removed() {
    let store = Arc::new(MemoryStore::new(4096).unwrap());
    let cache = small().disk(Disk::store(store, 16 << 20)).build().unwrap();
    for (name, change, after) in CHANGES {
        cache.insert("key", "on disk").unwrap();
        cache.spill().unwrap();
        cache.remove("key").unwrap();
        let loaded = cache.get_or_insert_with("key", || {
            change(&cache);
            "old"
        });
        assert_eq!(loaded.unwrap(), b"old");
        assert_eq!(cache.get("key").unwrap().as_deref(), after, "{name}");
        // A load without a concurrent write is stored, although there is a tombstone.
        cache.remove("key").unwrap();
        assert_eq!(cache.get_or_insert_with("key", || "loaded").unwrap(), b"loaded");
        assert_eq!(cache.get("key").unwrap().unwrap(), b"loaded");
    }
}

#[test]
fn a_load_that_begins_while_an_insert_makes_room_does_not_replace_what_that_inserts() {
    let is_armed = Arc::new(AtomicBool::new(false));
    let (gap_tx, gap_rx) = mpsc::channel();
    let (loading_tx, loading_rx) = mpsc::channel();
    let (finish_tx, finish_rx) = mpsc::channel::<()>();
    let loading_rx = Mutex::new(loading_rx);
    let inserter = thread::current().id();
    let armed = Arc::clone(&is_armed);
    // During the insert's own eviction: it has begun, and has not written yet.
    let listener = move |_: &[u8], _: &[u8], _: RemovalCause| {
        if thread::current().id() == inserter && armed.swap(false, Ordering::SeqCst) {
            gap_tx.send(()).unwrap();
            loading_rx.lock().unwrap().recv().unwrap();
        }
    };
    let cache = Arc::new(small().listener(listener).build().unwrap());
    let others = Arc::clone(&cache);
    let other = thread::spawn(move || {
        gap_rx.recv().unwrap();
        others.get_or_insert_with("key", || {
            loading_tx.send(()).unwrap();
            finish_rx.recv().unwrap();
            "old"
        })
    });
    let new = crate::noise(1, 300 << 10);
    // Until the insert of this very key evicts, and not another thread.
    for n in 0.. {
        cache.insert(&crate::key(n), &crate::noise(n, 100_000)).unwrap();
        is_armed.store(true, Ordering::SeqCst);
        cache.insert("key", &new).unwrap();
        if !is_armed.swap(false, Ordering::SeqCst) {
            break;
        }
        cache.remove("key").unwrap();
    }
    assert_eq!(cache.get("key").unwrap().unwrap(), new);
    finish_tx.send(()).unwrap();
    assert_eq!(other.join().unwrap().unwrap(), b"old");
    assert!(
        cache.get("key").unwrap().unwrap() == new,
        "the load took the place of a later insert"
    );
}

#[test]
fn a_wait_on_the_thread_that_the_load_needs_ends() {
    let (done_tx, done_rx) = mpsc::channel();
    // If the wait were endless, only this thread would be lost.
    thread::spawn(move || {
        let cache = small().build().unwrap();
        let context = &mut Context::from_waker(Waker::noop());
        let mut task = pin!(cache.get_or_fetch("key", async {
            Yields::default().await;
            Ok::<_, String>("of the task")
        }));
        assert!(task.as_mut().poll(context).is_pending());
        // The runtime's only thread, in another task.
        let own = cache.get_or_insert_with("key", || "of the thread");
        assert_eq!(own.unwrap(), b"of the thread");
        let Poll::Ready(fetched) = task.poll(context) else {
            panic!("nothing is waited for")
        };
        assert_eq!(fetched.unwrap(), b"of the task");
        assert_eq!(
            cache.get("key").unwrap().unwrap(),
            b"of the thread",
            "the later load is kept"
        );
        // A loader that loads its own key.
        let outer = cache.get_or_insert_with("own", || cache.get_or_insert_with("own", || "inner").unwrap());
        assert_eq!(outer.unwrap(), b"inner");
        done_tx.send(()).unwrap();
    });
    let done = done_rx.recv_timeout(Duration::from_secs(600));
    assert_eq!(done, Ok(()), "waited for ever, or failed");
}

/// Counts wake-ups and references.
struct Counts(AtomicUsize);

impl Wake for Counts {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_task_that_no_longer_waits_leaves_nothing_behind() {
    let cache = small().build().unwrap();
    let context = &mut Context::from_waker(Waker::noop());
    let mut leader = Box::pin(cache.get_or_fetch("key", async {
        Yields::default().await;
        Ok::<_, String>("value")
    }));
    assert!(leader.as_mut().poll(context).is_pending());
    let counts = Arc::new(Counts(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&counts));
    let wait = || Box::pin(cache.get_or_fetch("key", async { Ok::<_, String>("not requested") }));
    for _ in 0..100 {
        let mut waiter = wait();
        assert!(waiter.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert!(waiter.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        drop(waiter);
    }
    assert_eq!(Arc::strong_count(&counts), 2, "wakers of cancelled tasks are kept");
    let mut stays: Vec<_> = (0..100).map(|_| wait()).collect();
    for waiter in &mut stays {
        assert!(waiter.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    assert!(leader.as_mut().poll(context).is_ready());
    assert_eq!(counts.0.load(Ordering::SeqCst), 100, "each that waits is woken, once");
    for waiter in &mut stays {
        assert!(matches!(waiter.as_mut().poll(context), Poll::Ready(Ok(value)) if value == b"value"));
    }
}

#[test]
fn a_miss_after_a_removal_does_not_get_a_value_loaded_before_it() {
    let cache = small().build().unwrap();
    cache
        .get_or_insert_with("key", || {
            cache.remove("key").unwrap();
            // It gets the key's new value, while the first load is still in progress.
            assert_eq!(cache.get_or_insert_with("key", || "new").unwrap(), b"new");
            "old"
        })
        .unwrap();
    assert_eq!(cache.get("key").unwrap().unwrap(), b"new");
}

#[test]
fn tasks_wait_for_one_that_loads() {
    let cache = small().build().unwrap();
    let loads = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| {
                let value = block_on(cache.get_or_fetch("key", async {
                    loads.fetch_add(1, Ordering::SeqCst);
                    for _ in 0..1000 {
                        Yields::default().await;
                    }
                    Ok::<_, String>("fetched")
                }));
                assert_eq!(value.unwrap(), b"fetched");
            });
        }
    });
    assert_eq!(loads.into_inner(), 1);
}

#[test]
fn a_task_that_is_dropped_leaves_the_load_to_another() {
    let cache = small().build().unwrap();
    let context = &mut Context::from_waker(Waker::noop());
    let mut first = Box::pin(cache.get_or_fetch("key", std::future::pending::<Result<Vec<u8>, String>>()));
    let mut second = Box::pin(cache.get_or_fetch("key", async { Ok::<_, String>("second") }));
    assert!(first.as_mut().poll(context).is_pending());
    assert!(second.as_mut().poll(context).is_pending(), "it waits for the first");
    drop(first);
    match second.as_mut().poll(context) {
        Poll::Ready(value) => assert_eq!(value.unwrap(), b"second"),
        Poll::Pending => panic!("no load is in progress"),
    }
    // A waiting task may be dropped as well.
    let mut first = Box::pin(cache.get_or_fetch("other", async {
        Yields::default().await;
        Err::<&str, _>("no".to_owned())
    }));
    let mut second = Box::pin(cache.get_or_fetch("other", async { Ok::<_, String>("x") }));
    assert!(first.as_mut().poll(context).is_pending() && second.as_mut().poll(context).is_pending());
    drop(second);
    assert!(matches!(
        first.as_mut().poll(context),
        Poll::Ready(Err(LoadError::Load(_)))
    ));
}

/// Returns a cache whose records live for 100 s and are loaded anew in the last 20 s.
fn that_refreshes(disk: Option<Disk>) -> (Cache, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(Duration::from_secs(1_900_000_000)));
    let mut builder = small()
        .clock(clock.clone())
        .default_ttl(Duration::from_secs(100))
        .refresh_ahead(Duration::from_secs(20));
    if let Some(disk) = disk {
        builder = builder.disk(disk);
    }
    (builder.build().unwrap(), clock)
}

#[test]
fn a_record_near_its_end_is_loaded_anew_by_one_caller_while_others_do_not_wait() {
    for in_task in [false, true] {
        let (cache, clock) = that_refreshes(None);
        let loads = AtomicUsize::new(0);
        let load = |value: &'static str| {
            let loader = || {
                loads.fetch_add(1, Ordering::SeqCst);
                // Nothing waits for this, or else the loop would not end.
                let task = pin!(cache.get_or_fetch("key", async { Ok::<_, String>("not fetched") }));
                let mut context = Context::from_waker(Waker::noop());
                let other = thread::scope(|scope| {
                    let other = scope.spawn(|| cache.get_or_insert_with("key", || "not loaded").unwrap());
                    other.join().unwrap()
                });
                assert_eq!(other, b"1");
                assert!(matches!(task.poll(&mut context), Poll::Ready(Ok(value)) if value == b"1"));
                assert_eq!(cache.get("key").unwrap().unwrap(), b"1");
                value
            };
            match in_task {
                false => cache.get_or_insert_with("key", loader).unwrap(),
                true => block_on(cache.get_or_fetch("key", async { Ok::<_, String>(loader()) })).unwrap(),
            }
        };
        cache.insert("key", "1").unwrap();
        clock.advance(Duration::from_secs(79));
        assert_eq!(load("not yet"), b"1");
        clock.advance(Duration::from_secs(2));
        // This loads nothing.
        assert_eq!(cache.get("key").unwrap().unwrap(), b"1");
        assert_eq!(loads.load(Ordering::SeqCst), 0);
        assert_eq!(load("2"), b"2");
        // It lives as long as any record that was inserted now.
        assert_eq!(cache.ttl("key").unwrap(), Some(Duration::from_secs(100)));
        clock.advance(Duration::from_secs(79));
        assert_eq!(load("not yet"), b"2");
        assert_eq!(loads.load(Ordering::SeqCst), 1);
        cache.validate().unwrap();
    }
}

#[test]
fn a_record_that_cannot_be_loaded_anew_serves_until_its_end() {
    let (cache, clock) = that_refreshes(None);
    let fail = || cache.try_get_or_insert_with("key", || Err::<&str, _>("the database is away"));
    cache.insert("key", "1").unwrap();
    clock.advance(Duration::from_secs(90));
    for _ in 0..3 {
        assert_eq!(fail().unwrap(), b"1");
    }
    assert_eq!(cache.ttl("key").unwrap(), Some(Duration::from_secs(10)));
    // A loader that panics leaves it as well.
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        cache.get_or_insert_with("key", || -> &str { panic!("as the test wants it") })
    }));
    assert!(panicked.is_err());
    assert_eq!(fail().unwrap(), b"1");
    clock.advance(Duration::from_secs(10));
    assert!(matches!(fail(), Err(LoadError::Load(_))));
    // One that expires or is removed meanwhile is not returned.
    for is_removed in [false, true] {
        cache.insert("key", "1").unwrap();
        clock.advance(Duration::from_secs(90));
        let failed = cache.try_get_or_insert_with("key", || {
            match is_removed {
                false => clock.advance(Duration::from_secs(11)),
                true => cache.invalidate("key").unwrap(),
            }
            Err::<&str, _>("the database is away")
        });
        assert!(matches!(failed, Err(LoadError::Load(_))), "{failed:?}");
    }
    // One whose new value cannot be stored is removed, as it is outdated.
    cache.insert("key", "1").unwrap();
    clock.advance(Duration::from_secs(90));
    let loaded = cache.try_get_or_insert_entry_with("key", || {
        Ok::<_, String>(("2", InsertOptions::ttl(Duration::from_micros(1))))
    });
    assert_eq!(loaded.unwrap(), b"2");
    assert_eq!(cache.get("key").unwrap(), None);
    // One of which the loader says that it is gone is removed.
    cache.insert("key", "1").unwrap();
    clock.advance(Duration::from_secs(90));
    let gone = cache.try_get_or_insert_option_with("key", || Ok::<_, String>(None::<&str>));
    assert_eq!(gone.unwrap(), None);
    assert_eq!(cache.get("key").unwrap(), None);
    // So is one whose new value is too long to be kept.
    cache.insert("key", "1").unwrap();
    clock.advance(Duration::from_secs(90));
    let long = vec![7; 1 << 20];
    assert_eq!(cache.get_or_insert_with("key", || long.clone()).unwrap(), long);
    assert_eq!(cache.get("key").unwrap(), None);
}

#[test]
fn a_write_while_a_record_is_loaded_anew_wins() {
    for spills in [false, true] {
        let store = Arc::new(MemoryStore::new(4096).unwrap());
        let (cache, clock) = that_refreshes(spills.then(|| Disk::store(store, 16 << 20)));
        type Write = fn(&Cache);
        let writes: [(Write, Option<&[u8]>); 5] = [
            (|_| (), Some(b"loaded")),
            (|cache| cache.insert("key", "written").unwrap(), Some(b"written")),
            (|cache| assert!(cache.remove("key").unwrap()), None),
            (|cache| cache.invalidate("key").unwrap(), None),
            (|cache| cache.clear().unwrap(), None),
        ];
        for (write, left) in writes {
            cache.insert("key", "old").unwrap();
            if spills {
                cache.spill().unwrap();
            }
            clock.advance(Duration::from_secs(90));
            let loaded = cache.get_or_insert_with("key", || {
                write(&cache);
                "loaded"
            });
            assert_eq!(loaded.unwrap(), b"loaded");
            assert_eq!(cache.get("key").unwrap().as_deref(), left);
            if spills {
                cache.spill().unwrap();
                assert_eq!(cache.get("key").unwrap().as_deref(), left);
            }
            cache.clear().unwrap();
        }
        cache.validate().unwrap();
    }
}

#[test]
fn an_old_value_serves_while_a_new_one_is_loaded() {
    let clock = Arc::new(ManualClock::new(Duration::from_secs(1_900_000_000)));
    let cache = small()
        .clock(clock.clone())
        .default_ttl(Duration::from_secs(10))
        .stale_while_revalidate(Duration::from_secs(30))
        .build()
        .unwrap();
    cache.insert("key", "old").unwrap();
    clock.advance(Duration::from_secs(20));
    assert_eq!(cache.get("key").unwrap(), None, "it has expired");
    cache.settle().unwrap();
    let loads = AtomicUsize::new(0);
    let load = |value: &'static str| {
        cache.get_or_insert_with("key", || {
            loads.fetch_add(1, Ordering::SeqCst);
            // Nothing waits for this, or else the loop would not end.
            for _ in 0..10 {
                let other = thread::scope(|scope| {
                    let request = scope.spawn(|| cache.get_or_insert_with("key", || "not loaded").unwrap());
                    request.join().unwrap()
                });
                assert_eq!(other, b"old");
            }
            let task = pin!(cache.get_or_fetch("key", async { Ok::<_, String>("not fetched") }));
            let mut context = Context::from_waker(Waker::noop());
            assert!(matches!(task.poll(&mut context), Poll::Ready(Ok(value)) if value == b"old"));
            value
        })
    };
    assert_eq!(load("new").unwrap(), b"new");
    assert_eq!((loads.load(Ordering::SeqCst), cache.stats().stale), (1, 11));
    assert_eq!(cache.get("key").unwrap().unwrap(), b"new");
    // A value whose load failed may be returned until it is too old for that.
    clock.advance(Duration::from_secs(39));
    let failed = cache.try_get_or_insert_with("key", || Err::<Vec<u8>, _>("away"));
    assert!(failed.is_err());
    clock.advance(Duration::from_secs(2));
    cache.settle().unwrap();
    assert!(cache.is_empty());
    assert_eq!(cache.stats().expired, 1);
}

#[test]
fn a_loader_sets_the_lifetime_of_its_value() {
    let clock = Arc::new(ManualClock::new(SystemClock::default().now()));
    let cache = small()
        .default_ttl(Duration::from_secs(5))
        .clock(clock.clone())
        .build()
        .unwrap();
    let long = InsertOptions::ttl(Duration::from_secs(100));
    let loaded = cache.try_get_or_insert_entry_with("thread", || Ok::<_, String>(("value", long)));
    assert_eq!(loaded.unwrap(), b"value");
    let fetched = pin!(cache.get_or_fetch_entry("task", async { Ok::<_, String>(("value", long)) }));
    let Poll::Ready(fetched) = fetched.poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("nothing waits")
    };
    assert_eq!(fetched.unwrap(), b"value");
    let default =
        cache.try_get_or_insert_entry_with("default", || Ok::<_, String>(("value", InsertOptions::default())));
    assert_eq!(default.unwrap(), b"value");
    clock.advance(Duration::from_secs(50));
    let is_there = ["thread", "task", "default"].map(|key| cache.contains_key(key).unwrap());
    assert_eq!(is_there, [true, true, false]);
    clock.advance(Duration::from_secs(51));
    assert!(!cache.contains_key("thread").unwrap() && !cache.contains_key("task").unwrap());
}

#[test]
fn what_cannot_be_stored_is_returned() {
    let cache = small().build().unwrap();
    let brief = InsertOptions::ttl(Duration::from_micros(1));
    let loaded = cache.try_get_or_insert_entry_with("key", || Ok::<_, String>(("value", brief)));
    assert_eq!(loaded.unwrap(), b"value", "a time to live out of bounds");
    assert_eq!(cache.get_or_insert_with("key", || "another").unwrap(), b"another");
    let fetched = block_on(cache.get_or_fetch_entry("task", async { Ok::<_, String>(("value", brief)) }));
    assert_eq!(fetched.unwrap(), b"value");
    let key = [b'k'; 1025];
    assert_eq!(
        cache.get_or_insert_with(&key, || "loaded").unwrap(),
        b"loaded",
        "a key that is too long"
    );
    let long = vec![0_u8; leafpress::cache::MAX_VALUE_BYTES + 1];
    let loaded = cache.get_or_insert_with("long", || &long[..]).unwrap();
    assert_eq!(loaded.len(), long.len(), "a value that is too long");
    assert!(!cache.contains_key("long").unwrap());
}
