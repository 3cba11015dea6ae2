//! Many threads at once: no stale value is returned, while records are evicted, expire and the budget changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use leafpress::cache::{CacheBuilder, Disk, InsertOptions, RawShare};
use leafpress::codec::Codec;
use leafpress::store::{FaultyStore, MemoryStore, Operation};

use crate::{key, noise, small};

const KEYS: u64 = 20_000;
/// The environment variable with the minimum duration in seconds, 3 by default.
const SECONDS: &str = "LEAFPRESS_TEST_SECONDS";

fn value(n: u64, version: u64) -> Vec<u8> {
    [
        version.to_le_bytes().as_slice(),
        &noise(n ^ version, 150 + (n % 7) as usize * 40),
    ]
    .concat()
}

fn version(n: u64, found: &[u8]) -> u64 {
    let version = u64::from_le_bytes(found[..8].try_into().unwrap());
    assert_eq!(found, value(n, version), "a torn value");
    version
}

/// Each key has one writer, so that a value older than the last version that its writer had finished is stale.
fn no_stale_value(builder: CacheBuilder) {
    let cache = builder.build().unwrap();
    let written: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for writer in 0..2 {
            let (cache, written, stop) = (&cache, &written, &stop);
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(writer);
                let mut version = 1;
                while !stop.load(Ordering::Relaxed) {
                    let n = rng.u64(..KEYS / 2) * 2 + writer;
                    version += 1;
                    match rng.u8(..10) {
                        // Nothing older may be found, and this version itself never exists.
                        0 => _ = cache.remove(&key(n)).unwrap(),
                        1 => {
                            let ttl = InsertOptions::ttl(Duration::from_secs(1));
                            cache.insert_entry(&key(n), &value(n, version), ttl).unwrap();
                        }
                        _ => cache.insert(&key(n), &value(n, version)).unwrap(),
                    }
                    written[n as usize].store(version, Ordering::SeqCst);
                }
            });
        }
        for reader in 0..2 {
            let (cache, written, stop) = (&cache, &written, &stop);
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(100 + reader);
                while !stop.load(Ordering::Relaxed) {
                    let n = rng.u64(..KEYS) * rng.u64(..KEYS) / KEYS;
                    let least = written[n as usize].load(Ordering::SeqCst);
                    let found = cache.get_with(&key(n), |found| version(n, found)).unwrap();
                    assert!(found.is_none_or(|found| found >= least), "{n}: {found:?} after {least}");
                }
            });
        }
        let began = Instant::now();
        let seconds = std::env::var(SECONDS).ok().and_then(|seconds| seconds.parse().ok());
        let least = Duration::from_secs(seconds.unwrap_or(3));
        for round in 0_u64.. {
            thread::sleep(Duration::from_millis(50));
            cache.set_memory((4 + round % 3) << 20).unwrap();
            // Independent of the speed of the machine.
            let is_enough = began.elapsed() > least && cache.stats().evicted > 0;
            if is_enough || began.elapsed() > least + Duration::from_secs(600) {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    let stats = cache.stats();
    println!(
        "{} reads, {} writes",
        stats.hits + stats.misses,
        stats.inserts + stats.removes
    );
    assert!(
        stats.evicted > 0 && stats.hits > 0 && stats.background_panics == 0,
        "{stats:?}"
    );
    cache.validate().unwrap();
}

#[test]
fn no_stale_value_of_lz4() {
    no_stale_value(small().codec(Codec::Lz4 { acceleration: 1 }));
}

#[test]
fn no_stale_value_of_onpair() {
    no_stale_value(small().codec(Codec::OnPair { bits: 12 }));
}

#[test]
fn no_stale_value_of_trial() {
    no_stale_value(small().codec("trial:memory".parse().unwrap()));
}

#[test]
fn no_stale_value_of_copies() {
    no_stale_value(small().share(RawShare::Fixed { raw_percent: 20 }));
}

#[test]
fn no_stale_value_of_auto() {
    no_stale_value(small().codec(Codec::Auto { level: 1 }));
}

#[test]
fn what_is_loaded_is_never_older_than_what_was_removed_before() {
    let cache = small().build().unwrap();
    let backend = AtomicU64::new(1);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let load = || backend.load(Ordering::SeqCst).to_le_bytes();
                    let found = cache.get_or_insert_with("key", load).unwrap();
                    assert_eq!(found.len(), 8);
                }
            });
        }
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(2) {
            // As in a look-aside cache next to a database.
            let now = backend.fetch_add(1, Ordering::SeqCst) + 1;
            cache.remove("key").unwrap();
            if let Some(found) = cache.get("key").unwrap() {
                assert!(
                    u64::from_le_bytes(found.try_into().unwrap()) >= now,
                    "a stale value after a removal"
                );
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// The ring wraps around many times, and occasionally nothing can be written.
#[test]
fn no_stale_value_with_a_disk() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new(4096).unwrap()));
    store.fail_every(Operation::Write, 20_011);
    store.fail_every(Operation::Read, 1009);
    store.short_read_every(5003);
    store.set_torn_writes(true);
    no_stale_value(small().disk(Disk::store(store, 4 << 20)));
}
