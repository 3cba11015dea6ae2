//! The budget bounds the memory held, whatever is inserted and however it is changed.

use std::sync::Barrier;
use std::thread;

use leafpress::Cache;
use leafpress::codec::Codec;

use crate::keys::mix;
use crate::{key, noise};

/// Allowed excess at any moment, for threads' work in progress: half of the allowance of the process.
fn bound(memory: u64) -> u64 {
    memory + memory / 20 + (4 << 20)
}

#[test]
fn it_is_kept_for_records_of_all_lengths() {
    for codec in ["none", "lz4", "zstd:1", "onpair", "auto"] {
        let memory = 16 << 20;
        let cache = Cache::builder()
            .memory(memory)
            .codec(codec.parse().unwrap())
            .build()
            .unwrap();
        for n in 0..60_000 {
            let len = match mix(n) % 100 {
                0 => 100_000,
                1..4 => 3000,
                4..30 => 1000,
                _ => 50,
            };
            cache.insert(&key(n), &noise(n, len)).unwrap();
            if n % 1000 == 0 {
                let stats = cache.stats();
                assert!(stats.bytes_held <= bound(memory), "{codec}, {n}: {stats:?}");
            }
        }
        let stats = cache.stats();
        assert!(
            stats.evicted > 10_000 && stats.peak_bytes <= bound(memory),
            "{codec}: {stats:?}"
        );
        // The budget is used.
        assert!(stats.bytes_held > memory * 8 / 10, "{codec}: {stats:?}");
        cache.validate().unwrap();
    }
}

#[test]
fn it_can_be_changed_at_any_time() {
    let cache = Cache::builder()
        .memory(64 << 20)
        .codec(Codec::Lz4 { acceleration: 1 })
        .build()
        .unwrap();
    for n in 0..200_000 {
        cache.insert(&key(n), &noise(n, 200)).unwrap();
    }
    let full = cache.len();
    assert!(full > 150_000, "{full}");
    for megabytes in [32, 8, 4, 48, 16] {
        let memory = megabytes << 20;
        cache.set_memory(memory).unwrap();
        let stats = cache.stats();
        assert!(stats.bytes_held <= memory, "{} of {memory}", stats.bytes_held);
        for n in 0..50_000 {
            cache.insert(&key(n), &noise(n, 200)).unwrap();
        }
        let held = cache.stats().bytes_held;
        assert!(held <= bound(memory), "{held} of {memory}");
        for n in 0..200_000 {
            cache
                .get_with(&key(n), |found| assert_eq!(found, noise(n, 200)))
                .unwrap();
        }
    }
    cache.validate().unwrap();
}

/// Memory retired by threads, and their write buffers, are part of the budget, which their number must not use up.
#[test]
fn it_is_kept_by_many_threads() {
    const THREADS: u64 = 64;
    const INSERTS: u64 = 800;
    let memory = 4 << 20;
    let cache = Cache::builder()
        .memory(memory)
        .codec("zstd:1".parse().unwrap())
        .build()
        .unwrap();
    let (ready, done) = (Barrier::new(THREADS as usize), Barrier::new(THREADS as usize + 1));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (cache, ready, done) = (&cache, &ready, &done);
            scope.spawn(move || {
                // All at once, so that none reuses the number of one that has exited.
                ready.wait();
                for n in 0..INSERTS {
                    cache.insert(&mix(thread * INSERTS + n).to_be_bytes(), &[7; 3]).unwrap();
                }
                done.wait();
                // Each thread holds its buffers as long as it lives.
                done.wait();
            });
        }
        done.wait();
        let (stats, held) = (cache.stats(), cache.bytes_held());
        done.wait();
        assert!(held.max(stats.peak_bytes) <= memory + memory / 4, "{held}: {stats:?}");
        // Most is for records, of which few or none had to be evicted.
        assert!(
            stats.tree.retired_bytes + stats.tree.thread_bytes < memory / 4,
            "{stats:?}"
        );
        assert_eq!(stats.records, THREADS * INSERTS, "{stats:?}");
    });
    cache.validate().unwrap();
}
