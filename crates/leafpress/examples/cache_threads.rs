//! Memory held by a cache, and growth of the process, while many threads insert: docs/experiments/040.
//!
//! `cargo run --release -p leafpress --example cache_threads -- [THREADS [MEMORY_MIB [CODEC [VALUE_BYTES [SECONDS
//! [DISK_FILE]]]]]]`. Each run is a separate process: memory that an allocator keeps for ended threads would otherwise
//! count for the next run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use leafpress::Cache;
use leafpress::cache::Disk;

/// Returns the resident anonymous memory of the process in bytes.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status
        .lines()
        .find(|line| line.starts_with("RssAnon:"))
        .expect("Linux 4.5");
    line.split_whitespace()
        .nth(1)
        .expect("a number")
        .parse::<usize>()
        .expect("a number")
        << 10
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Inserts incompressible values of at most `value_bytes` under random keys until `stop` is set.
fn insert_until(stop: &AtomicBool, cache: &Cache, seed: u64, value_bytes: usize) {
    let mut random = fastrand::Rng::with_seed(seed);
    let noise: Vec<u8> = (0..value_bytes + 4096).map(|_| random.u8(..)).collect();
    while !stop.load(Ordering::Relaxed) {
        let key = random.u64(..).to_be_bytes();
        let value = &noise[random.usize(..4096)..][..random.usize(..=value_bytes)];
        cache.insert(&key, value).expect("memory");
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: usize| {
        arguments
            .get(at)
            .map_or(default, |text| text.parse().expect("a number"))
    };
    let (threads, memory_mib) = (number(0, 64), number(1, 8));
    let codec = arguments.get(2).map_or("zstd:1", String::as_str);
    let (value_bytes, seconds) = (number(3, 3), number(4, 10));
    let disk = arguments.get(5);

    let (stop, begun) = (AtomicBool::new(false), OnceLock::<Cache>::new());
    let ready = Barrier::new(threads + 1);
    thread::scope(|scope| {
        for seed in 0..threads as u64 {
            let (stop, begun, ready) = (&stop, &begun, &ready);
            scope.spawn(move || {
                // Touches the main thread's stack before anything is measured.
                std::hint::black_box([1_u8; 128 << 10]);
                ready.wait();
                insert_until(stop, begun.wait(), seed, value_bytes);
            });
        }
        ready.wait();
        let before = resident_bytes();
        let mut builder = Cache::builder()
            .memory((memory_mib as u64) << 20)
            .codec(codec.parse().expect("a codec"));
        if let Some(path) = disk {
            builder = builder.disk(Disk::file(path, (16 * memory_mib as u64) << 20));
        }
        let cache = begun.get_or_init(|| builder.build().expect("a cache"));
        let (mut held, mut grown) = (0, 0);
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(seconds as u64) {
            held = held.max(cache.bytes_held());
            grown = grown.max(resident_bytes().saturating_sub(before));
            thread::sleep(Duration::from_millis(2));
        }
        let stats = cache.stats();
        stop.store(true, Ordering::Relaxed);
        println!(
            "{threads} threads, {memory_mib} MiB, {codec}, values to {value_bytes} bytes, disk {}: held at most {:.1} \
             MiB, process grew by {:.1} MiB (of {:.1}), {} records, {} inserts",
            disk.is_some(),
            mib(held),
            mib(grown as u64),
            memory_mib as f64 * 1.05 + 8.0,
            stats.records,
            stats.inserts
        );
        let tree = &stats.tree;
        println!(
            "at the end: leaves {:.1}, landing {:.1}, retired {:.1}, free {:.1}, threads {:.1}, dictionaries {:.1}, \
             fixed {:.1}, eviction {:.1}; {:?}",
            mib(tree.leaf_bytes),
            mib(tree.landing_bytes),
            mib(tree.retired_bytes),
            mib(tree.free_bytes),
            mib(tree.thread_bytes),
            mib(tree.dictionary_bytes),
            mib(tree.fixed_bytes),
            mib(stats.eviction_bytes),
            (stats.evicted, stats.leaves_visited, tree.leaves),
        );
    });
}
