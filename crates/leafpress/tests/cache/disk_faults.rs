//! Failing, read-failing and stalled devices under the disk tier.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use leafpress::store::Operation;

use crate::disk::{fill, found, on, store};
use crate::{key, noise};

#[test]
fn abandons_a_failing_device_and_continues_in_memory() {
    let store = store();
    let cache = on(&store, 64 << 20);
    fill(&cache, 0..30_000, 400);
    cache.settle().unwrap();
    store.fail_every(Operation::Write, 1);
    for n in 0..30_000 {
        cache.insert(&key(n), "new").unwrap();
    }
    fill(&cache, 40_000..70_000, 400);
    cache.settle().unwrap();
    let stats = cache.stats();
    let disk = stats.disk.clone().unwrap();
    assert!(disk.has_failed && disk.write_errors >= 8, "{disk:?}");
    for n in 0..30_000 {
        assert!(cache.get(&key(n)).unwrap().is_none_or(|value| value == b"new"), "{n}");
    }
    assert!(found(&cache, 40_000..70_000, 400) > 1000);
    assert!(stats.bytes_held <= stats.memory_bytes);
}

#[test]
fn reads_that_fail_are_misses() {
    let store = store();
    let cache = on(&store, 64 << 20);
    fill(&cache, 0..30_000, 400);
    cache.settle().unwrap();
    store.fail_every(Operation::Read, 10);
    store.short_read_every(17);
    let there = found(&cache, 0..30_000, 400);
    let disk = cache.stats().disk.unwrap();
    assert!(
        disk.read_errors > 1000 && there > 20_000 && there < 30_000,
        "{there} {disk:?}"
    );
    store.fail_every(Operation::Read, 0);
    store.short_read_every(0);
    let again = found(&cache, 0..30_000, 400);
    // A merge retries; a block that has failed once is readable.
    assert!(again > there && again > 27_000, "{again} after {there}");
}

#[test]
fn a_stalled_device_holds_up_no_read_of_memory_and_no_memory_is_exceeded() {
    let store = store();
    let cache = on(&store, 64 << 20);
    fill(&cache, 0..20_000, 400);
    cache.settle().unwrap();
    fill(&cache, 50_000..50_100, 400);
    store.set_latency(Operation::Write, Duration::from_secs(2));
    // A clock that stands still while the whole process is suspended.
    let (ticks, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in 0..10_000 {
                cache.insert(&key(n), &noise(n + 1, 500)).unwrap();
            }
        });
        scope.spawn(|| {
            // The bound is for a reader that panics.
            while !is_over.load(Ordering::Relaxed) && ticks.load(Ordering::Relaxed) < 30_000 {
                std::thread::sleep(Duration::from_millis(10));
                ticks.fetch_add(1, Ordering::Relaxed);
            }
        });
        let mut slowest = 0;
        while !writer.is_finished() {
            let began = ticks.load(Ordering::Relaxed);
            let _ = cache.get(&key(50_000 + fastrand::u64(..100))).unwrap();
            slowest = slowest.max(ticks.load(Ordering::Relaxed) - began);
        }
        is_over.store(true, Ordering::Relaxed);
        // A read in memory does not wait; one on disk waits for its own read, which is not slow. A write takes 200.
        assert!(slowest < 100, "{slowest} ticks of 10 ms");
    });
    let stats = cache.stats();
    assert!(stats.disk.as_ref().unwrap().dropped > 0, "{stats:?}");
    assert!(
        stats.peak_bytes <= stats.memory_bytes + stats.memory_bytes / 20 + (4 << 20),
        "{stats:?}"
    );
    store.set_latency(Operation::Write, Duration::ZERO);
    for n in 0..10_000 {
        assert!(
            cache
                .get(&key(n))
                .unwrap()
                .is_none_or(|value| value == noise(n + 1, 500)),
            "{n}"
        );
    }
}
