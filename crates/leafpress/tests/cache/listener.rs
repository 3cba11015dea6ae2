//! A listener is called once for each removed record, with its value and the cause.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use leafpress::cache::{CacheUpdate, Disk, InsertOptions, ManualClock, RemovalCause};
use leafpress::store::MemoryStore;

use crate::{key, noise, small};

type Notified = Arc<Mutex<Vec<(Vec<u8>, Vec<u8>, RemovalCause)>>>;

fn notified(builder: leafpress::cache::CacheBuilder) -> (leafpress::Cache, Notified) {
    let notified = Notified::default();
    let notes = Arc::clone(&notified);
    let cache = builder
        .listener(move |key, value, cause| notes.lock().unwrap().push((key.to_vec(), value.to_vec(), cause)))
        .build()
        .unwrap();
    (cache, notified)
}

fn take(notified: &Notified) -> Vec<(String, String, RemovalCause)> {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let notified = std::mem::take(&mut *notified.lock().unwrap());
    notified
        .into_iter()
        .map(|(key, value, cause)| (text(key), text(value), cause))
        .collect()
}

#[test]
fn notifies_of_each_cause() {
    let clock = Arc::new(ManualClock::new(Duration::from_secs(2_000_000_000)));
    let (cache, notified) = notified(small().clock(clock.clone()));
    cache.insert("a", "1").unwrap();
    assert_eq!(take(&notified), []);
    cache.insert("a", "2").unwrap();
    assert_eq!(take(&notified), [("a".into(), "1".into(), RemovalCause::Replaced)]);
    assert!(cache.remove("a").unwrap() && !cache.remove("a").unwrap());
    assert_eq!(take(&notified), [("a".into(), "2".into(), RemovalCause::Removed)]);
    cache
        .insert_entry("b", "3", InsertOptions::ttl(Duration::from_secs(5)))
        .unwrap();
    cache
        .insert_entry("c", "4", InsertOptions::ttl(Duration::from_secs(5)))
        .unwrap();
    clock.advance(Duration::from_secs(6));
    assert_eq!(cache.get("b").unwrap(), None);
    assert!(take(&notified).contains(&("b".into(), "3".into(), RemovalCause::Expired)));
    // A value that is not kept replaces one nevertheless.
    cache.insert("d", "5").unwrap();
    cache.insert("d", &vec![0; 1 << 20]).unwrap();
    assert!(take(&notified).contains(&("d".into(), "5".into(), RemovalCause::Replaced)));
}

#[test]
fn reports_each_evicted_record_once_with_its_value() {
    let (cache, notified) = notified(small());
    for n in 0..40_000 {
        // Some have a value record of their own.
        let len = if n % 100 == 0 { 5000 } else { 150 };
        cache.insert(&key(n), &noise(n, len)).unwrap();
    }
    // The background thread may evict more, or be about to call the listener: the contents and the calls are compared
    // at a moment between evictions.
    let began = Instant::now();
    let (absent, gone) = loop {
        cache.settle().unwrap();
        let evicted = cache.stats().evicted;
        let absent: Vec<_> = (0..40_000).filter(|n| !cache.contains_key(&key(*n)).unwrap()).collect();
        let gone = notified.lock().unwrap().clone();
        if gone.len() as u64 == evicted && cache.stats().evicted == evicted {
            break (absent, gone);
        }
        assert!(
            began.elapsed() < Duration::from_secs(600),
            "{} of {evicted}",
            gone.len()
        );
    };
    let of: HashMap<_, _> = (0..40_000).map(|n| (key(n).into_bytes(), n)).collect();
    let mut notified = Vec::new();
    for (key, value, cause) in gone {
        assert_eq!(cause, RemovalCause::Evicted);
        let n = of[&key];
        assert_eq!(value, noise(n, value.len()));
        notified.push(n);
    }
    notified.sort_unstable();
    assert!(notified.len() > 10_000);
    // Each once.
    assert_eq!(notified, absent);
}

#[test]
fn a_listener_may_use_the_cache() {
    let slot: Arc<Mutex<Option<Arc<leafpress::Cache>>>> = Arc::default();
    let inner = Arc::clone(&slot);
    let cache = small()
        .listener(move |key, _, cause| {
            let cache = inner.lock().unwrap().clone();
            if let (Some(cache), false) = (cache, key.starts_with(b"last")) {
                cache.insert(&format!("last {cause:?}"), key).unwrap();
            }
        })
        .build()
        .unwrap();
    let cache = Arc::new(cache);
    *slot.lock().unwrap() = Some(Arc::clone(&cache));
    cache.insert("a", "1").unwrap();
    cache.insert("a", "2").unwrap();
    assert_eq!(cache.get("last Replaced").unwrap().unwrap(), b"a");
    // By the inserting thread and by the background thread.
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let cache = &cache;
            scope.spawn(move || (0..20_000).for_each(|n| cache.insert(&key(2 * n + thread), &noise(n, 150)).unwrap()));
        }
    });
    assert!(
        cache
            .get("last Evicted")
            .unwrap()
            .is_some_and(|last| last.starts_with(b"item:"))
    );
    // It holds the cache.
    *slot.lock().unwrap() = None;
}

/// Room for a long value is made before its insertion: not under the lock that keeps writers from a load in progress.
#[test]
fn a_listener_may_use_the_cache_while_a_long_value_is_loaded() {
    let slot: Arc<Mutex<Option<Arc<leafpress::Cache>>>> = Arc::default();
    let inner = Arc::clone(&slot);
    let cache = small()
        .listener(move |key, _, cause| {
            let cache = inner.lock().unwrap().clone();
            if let (Some(cache), RemovalCause::Evicted) = (cache, cause) {
                cache.remove(key).unwrap();
            }
        })
        .build()
        .unwrap();
    let cache = Arc::new(cache);
    *slot.lock().unwrap() = Some(Arc::clone(&cache));
    for n in 0..20_000 {
        cache.insert(&key(n), &noise(n, 150)).unwrap();
    }
    let (done, is_done) = std::sync::mpsc::channel();
    let loader = Arc::clone(&cache);
    std::thread::spawn(move || {
        for n in 0..60 {
            let value = loader
                .get_or_insert_with(&format!("long {n}"), || noise(n, 200_000))
                .unwrap();
            assert_eq!(value.len(), 200_000);
        }
        done.send(()).unwrap();
    });
    is_done.recv_timeout(std::time::Duration::from_secs(600)).unwrap();
    *slot.lock().unwrap() = None;
}

#[test]
fn the_last_owner_of_the_cache_may_be_its_own_thread() {
    let clock = Arc::new(ManualClock::new(Duration::from_secs(2_000_000_000)));
    let slot: Arc<Mutex<Option<Arc<leafpress::Cache>>>> = Arc::default();
    let (inner, (done, is_done)) = (Arc::clone(&slot), std::sync::mpsc::channel());
    let cache = small()
        .clock(clock.clone())
        .listener(move |_, _, _| {
            // No other thread looks up the expired record.
            let last = inner.lock().unwrap().take();
            drop(last);
            let _ = done.send(());
        })
        .build()
        .unwrap();
    cache
        .insert_entry("key", "value", InsertOptions::ttl(Duration::from_secs(1)))
        .unwrap();
    *slot.lock().unwrap() = Some(Arc::new(cache));
    clock.advance(Duration::from_secs(2));
    is_done.recv_timeout(Duration::from_secs(600)).unwrap();
}

#[test]
fn expired_records_are_reported_as_expired_by_any_replacement() {
    let clock = Arc::new(ManualClock::new(Duration::from_secs(2_000_000_000)));
    let (cache, notified) = notified(small().clock(clock.clone()));
    let brief = || InsertOptions::ttl(Duration::from_secs(5));
    let keys = ["insert", "swap", "update", "too large", "load", "remove", "take"];
    for key in keys {
        cache.insert_entry(key, "old", brief()).unwrap();
    }
    clock.advance(Duration::from_secs(6));
    cache.insert("insert", "new").unwrap();
    assert_eq!(cache.swap("swap", "new").unwrap(), None);
    cache
        .update_with("update", |found| {
            assert_eq!(found, None);
            CacheUpdate::Put("new")
        })
        .unwrap();
    cache.insert("too large", &vec![0; 1 << 20]).unwrap();
    cache.get_or_insert_with("load", || "new").unwrap();
    assert!(!cache.remove("remove").unwrap());
    assert_eq!(cache.take("take").unwrap(), None);
    let mut notified = take(&notified);
    notified.sort_unstable_by_key(|(key, ..)| keys.iter().position(|known| known == key));
    let expired = keys.map(|key| (key.to_owned(), "old".to_owned(), RemovalCause::Expired));
    assert_eq!(notified, expired);
    assert_eq!(cache.stats().expired, keys.len() as u64);
}

#[test]
fn with_a_disk_a_rejected_value_reports_what_it_replaces() {
    let store = Arc::new(MemoryStore::new(4096).unwrap());
    let (cache, notified) = notified(small().disk(Disk::store(store, 16 << 20)));
    cache.insert("in memory", "1").unwrap();
    cache.insert("on disk", "2").unwrap();
    cache.spill().unwrap();
    cache.insert("in memory", "3").unwrap();
    take(&notified);
    for key in ["in memory", "on disk", "nowhere"] {
        cache.insert(key, &vec![0; 1 << 20]).unwrap();
    }
    let replaced = |key: &str, value: &str| (key.to_owned(), value.to_owned(), RemovalCause::Replaced);
    assert_eq!(take(&notified), [replaced("in memory", "3"), replaced("on disk", "2")]);
}

#[test]
fn a_listener_that_panics_stops_nothing() {
    let calls = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&calls);
    let clock = Arc::new(ManualClock::new(Duration::from_secs(2_000_000_000)));
    let listener = move |_: &[u8], _: &[u8], _: RemovalCause| {
        counted.fetch_add(1, Ordering::SeqCst);
        panic!("a bug in the listener");
    };
    let cache = small().clock(clock.clone()).listener(listener).build().unwrap();
    for n in 0..40 {
        let entry = InsertOptions::ttl(Duration::from_secs(5));
        cache.insert_entry(&key(n), "old", entry).unwrap();
        cache.insert_entry(&key(n), "new", entry).unwrap();
    }
    assert_eq!(calls.load(Ordering::SeqCst), 40);
    // The background thread calls panicking listeners as well, more often than it would survive panics of its own.
    clock.advance(Duration::from_secs(6));
    cache.settle().unwrap();
    let began = Instant::now();
    while calls.load(Ordering::SeqCst) < 80 && began.elapsed() < Duration::from_secs(600) {
        std::thread::yield_now();
    }
    let stats = cache.stats();
    assert_eq!((stats.listener_panics, calls.load(Ordering::SeqCst)), (80, 80));
    assert_eq!((stats.background_panics, stats.background_threads_ended), (0, 0));
    cache.settle().unwrap();
}

#[test]
fn calls_for_one_key_do_not_overlap() {
    let (entered_tx, entered_rx) = mpsc::channel();
    let (leave_tx, leave_rx) = mpsc::channel::<()>();
    let leave_rx = Mutex::new(leave_rx);
    let (inside, notified) = (AtomicU64::new(0), Notified::default());
    let notes = Arc::clone(&notified);
    let listener = move |key: &[u8], value: &[u8], cause| {
        if key == b"key" {
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two calls at a time");
            if value == b"0" {
                entered_tx.send(()).unwrap();
                leave_rx.lock().unwrap().recv_timeout(Duration::from_secs(600)).unwrap();
            }
            inside.fetch_sub(1, Ordering::SeqCst);
        }
        notes.lock().unwrap().push((key.to_vec(), value.to_vec(), cause));
    };
    let cache = small().listener(listener).build().unwrap();
    cache.insert("key", "0").unwrap();
    cache.insert("other", "0").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| cache.insert("key", "1").unwrap());
        entered_rx.recv().unwrap();
        // During the first call of the listener: other keys are not blocked, and neither are writers of this one.
        cache.insert("other", "1").unwrap();
        assert_eq!(take(&notified), [("other".into(), "0".into(), RemovalCause::Replaced)]);
        cache.insert("key", "2").unwrap();
        cache.insert("key", "3").unwrap();
        assert_eq!(take(&notified), []);
        leave_tx.send(()).unwrap();
    });
    let values: Vec<String> = take(&notified).into_iter().map(|(_, value, _)| value).collect();
    assert_eq!(values, ["0", "1", "2"]);
    assert_eq!(cache.stats().listener_panics, 0);
}
