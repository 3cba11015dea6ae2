//! What it costs that a cache's disk tier is found again after a crash, and what is found: docs/experiments/036.
//!
//! `cargo run --release -p leafpress --example crash_cost -- DIRECTORY`, on a file system of 2 GiB and more.

use std::path::{Path, PathBuf};
use std::time::Instant;

use leafpress::Cache;
use leafpress::cache::Disk;

const MEMORY_BYTES: u64 = 64 << 20;
const DISK_BYTES: u64 = 1 << 30;
/// Those of 300 bytes, half of them noise, take two thirds of the disk.
const KEYS: u64 = 3_500_000;
const OPERATIONS: u64 = 4_000_000;
const THREADS: u64 = 2;
/// Keys that are looked for before and after.
const SAMPLE: u64 = 20_000;

fn open(path: &Path, recovers: bool) -> Cache {
    let disk = Disk::file(path, DISK_BYTES).recover_after_crash(recovers);
    let cache = Cache::builder().memory(MEMORY_BYTES).disk(disk).build();
    cache.expect("a cache in the directory")
}

fn key(n: u64) -> [u8; 16] {
    let mut key = *b"item:___00000000";
    key[8..].copy_from_slice(&n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
    key
}

fn value(n: u64, value: &mut [u8; 300]) {
    let mut rng = fastrand::Rng::with_seed(n);
    rng.fill(&mut value[..150]);
    value[150..].fill(b'-');
}

/// Calls `step` so often, in all threads together.
fn in_threads(operations: u64, step: impl Fn(&mut fastrand::Rng, &mut [u8; 300], u64) + Sync) -> f64 {
    let began = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let step = &step;
            scope.spawn(move || {
                let (mut rng, mut bytes) = (fastrand::Rng::with_seed(thread), [0; 300]);
                (0..operations / THREADS).for_each(|n| step(&mut rng, &mut bytes, n * THREADS + thread));
            });
        }
    });
    operations as f64 / began.elapsed().as_secs_f64()
}

fn put(cache: &Cache, n: u64, bytes: &mut [u8; 300]) {
    value(n, bytes);
    cache.insert(&key(n), bytes).expect("a put");
}

/// A key by how often it is asked for (Zipf's law with exponent 1, about), scattered over all.
fn popular(rng: &mut fastrand::Rng) -> u64 {
    let rank = (KEYS as f64).powf(rng.f64()) as u64;
    rank.wrapping_mul(0x2545_F491_4F6C_DD1D) % KEYS
}

/// Puts a second, of keys that are new and of keys that are there.
fn puts(path: &Path, recovers: bool) -> (f64, f64) {
    let _ = std::fs::remove_file(path);
    let cache = open(path, recovers);
    let new = in_threads(1_500_000, |_, bytes, n| put(&cache, n, bytes));
    let again = in_threads(1_500_000, |rng, bytes, _| put(&cache, rng.u64(..1_500_000), bytes));
    (new, again)
}

/// What was found of a sample: in memory, and in all.
fn sample(cache: &Cache) -> (Vec<bool>, Vec<bool>) {
    let keys = || (0..SAMPLE).map(|n| key(n.wrapping_mul(0x9E37_79B9) % KEYS));
    let in_memory = keys().map(|key| matches!(cache.get_in_memory_with(&key, |_| ()), Ok(Some(_))));
    let in_memory = in_memory.collect();
    let there = keys().map(|key| cache.contains_key(&key).expect("a read"));
    (in_memory, there.collect())
}

/// Reads by popularity that fill the cache, of which so many in a hundred write in their place; then what is found of what was on disk.
fn shares(path: &Path, updates_pct: u64) {
    let _ = std::fs::remove_file(path);
    let cache = open(path, true);
    in_threads(KEYS, |_, bytes, n| put(&cache, n, bytes));
    in_threads(OPERATIONS, |rng, bytes, _| {
        let n = popular(rng);
        let is_update = rng.u64(..100) < updates_pct;
        if is_update || !cache.contains_key(&key(n)).expect("a read") {
            put(&cache, n, bytes);
        }
    });
    let (in_memory, before) = sample(&cache);
    let used = cache.stats().disk.map_or(0, |disk| disk.used_bytes);
    drop(cache);
    let began = Instant::now();
    let cache = open(path, true);
    let ms = began.elapsed().as_secs_f64() * 1000.0;
    let (_, after) = sample(&cache);
    let count = |those: &dyn Fn(usize) -> bool| (0..SAMPLE as usize).filter(|at| those(*at)).count() as f64;
    let on_disk = count(&|at| before[at] && !in_memory[at]);
    let again = count(&|at| before[at] && !in_memory[at] && after[at]);
    let all = count(&|at| before[at]);
    let all_again = count(&|at| before[at] && after[at]);
    println!(
        "{updates_pct}% updates: {:.1}% of what was on disk only is found again, {:.1}% of all; opened in {ms:.0} ms, {} MiB on disk",
        100.0 * again / on_disk,
        100.0 * all_again / all,
        used >> 20
    );
}

fn main() {
    let directory = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let path = directory.join("crash_cost.cache");
    for round in 0..3 {
        for recovers in [round % 2 == 0, round % 2 == 1] {
            let (new, again) = puts(&path, recovers);
            println!(
                "recover_after_crash({recovers}): {new:.0} puts of new keys a second, {again:.0} of keys that are there"
            );
        }
    }
    for updates_pct in [0, 10, 50] {
        shares(&path, updates_pct);
    }
    for suffix in ["", ".notes", ".runs"] {
        let _ = std::fs::remove_file(directory.join(format!("crash_cost.cache{suffix}")));
    }
}
