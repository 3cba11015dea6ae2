//! Estimated hit ratios of other sizes, compared with caches of these sizes.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use leafpress::Cache;
use leafpress::cache::{Advice, CacheBuilder, Disk};

use crate::{key, noise};

const MIB: u64 = 1 << 20;
const KEYS: u64 = 50_000;
const VALUE_BYTES: usize = 400;

fn builder(memory_mib: u64) -> CacheBuilder {
    Cache::builder().memory(memory_mib * MIB).codec(leafpress::Codec::None)
}

/// Reads keys of which the low ones are read most, and inserts those that are absent. Returns the share of hits in the
/// second half, in memory and in both tiers.
fn played(cache: &Cache, reads: u64) -> (f64, f64) {
    let mut rng = fastrand::Rng::with_seed(7);
    let mut before = cache.stats();
    for at in 0..reads {
        if at == reads / 2 {
            cache.settle().unwrap();
            before = cache.stats();
        }
        // Over six doublings of the number of keys, each is as often read as the next.
        let among = KEYS >> rng.u32(..6);
        let n = rng.u64(..among);
        if let Some(value) = cache.get(&key(n)).unwrap() {
            assert!(value == noise(n, VALUE_BYTES), "{n}: another's value");
        } else {
            cache.insert(&key(n), &noise(n, VALUE_BYTES)).unwrap();
        }
    }
    let after = cache.stats();
    let (hits, disk_hits) = (after.hits - before.hits, after.disk_hits - before.disk_hits);
    let all = (hits + after.misses - before.misses) as f64;
    ((hits - disk_hits) as f64 / all, hits as f64 / all)
}

fn advice(cache: &Cache) -> Advice {
    cache.advice().unwrap().expect("sampled keys were read")
}

#[test]
fn estimates_are_what_caches_of_these_sizes_have() {
    let cache = builder(8).advice(true).build().unwrap();
    let (now, _) = played(&cache, 400_000);
    let advice = advice(&cache);
    println!("{advice}");
    assert!((advice.hit_ratio(8 * MIB) - now).abs() < 0.06, "{advice} {now}");
    assert!(cache.stats().bytes_held <= 8 * MIB);
    for memory_mib in [4, 16, 32] {
        let (measured, _) = played(&builder(memory_mib).build().unwrap(), 400_000);
        let estimated = advice.hit_ratio(memory_mib * MIB);
        println!("{memory_mib} MiB: {estimated:.3} estimated, {measured:.3} measured");
        // A sample of 512 keys.
        assert!(
            (estimated - measured).abs() < 0.08,
            "{memory_mib} MiB: {estimated} {measured}"
        );
    }
    // All keys take 22 MB.
    let enough = advice.memory_for(advice.hit_ratio(16 * MIB)).unwrap();
    assert!(enough > 15 * MIB && enough < 17 * MIB, "{enough}");
    assert_eq!(advice.memory_for(1.0 + 1e-9), None);
}

#[test]
fn estimates_of_a_disk_tier_are_what_one_answers() {
    let cache = builder(8).advice(true).build().unwrap();
    played(&cache, 300_000);
    let advice = advice(&cache);
    let directory = tempfile::tempdir().unwrap();
    for disk_mib in [8, 32] {
        let disk = Disk::file(directory.path().join(disk_mib.to_string()), disk_mib * MIB);
        let with_disk = builder(8).disk(disk).build().unwrap();
        let (_, measured) = played(&with_disk, 300_000);
        let estimated = advice.hit_ratio_with_disk(8 * MIB, disk_mib * MIB);
        println!("{disk_mib} MiB of disk: {estimated:.3} estimated, {measured:.3} measured");
        assert!(estimated > advice.hit_ratio(8 * MIB), "{advice}");
        // A part of the disk has copies of records that are in memory, or that were replaced.
        assert!(
            estimated - measured < 0.15 && measured - estimated < 0.08,
            "{estimated} {measured}"
        );
    }
}

fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("it is in memory"),
    }
}

/// Whatever reads a key, the sample has it.
#[test]
fn all_reads_are_sampled() {
    type Read = fn(&Cache, &[String]);
    let reads: [Read; 6] = [
        |cache, keys| keys.iter().for_each(|key| assert!(cache.get(key).unwrap().is_some())),
        |cache, keys| assert!(cache.get_many(keys).unwrap().iter().all(Option::is_some)),
        |cache, keys| {
            let found = keys
                .iter()
                .map(|key| cache.get_in_memory_with(key, <[u8]>::len).unwrap());
            assert!(found.into_iter().all(|found| found.is_some()));
        },
        |cache, keys| {
            keys.iter()
                .for_each(|key| assert!(now(cache.get_async(key)).unwrap().is_some()));
        },
        |cache, keys| assert!(now(cache.get_many_async(keys)).unwrap().iter().all(Option::is_some)),
        |cache, keys| {
            for key in keys {
                cache.get_or_insert_with(key, || -> &str { unreachable!() }).unwrap();
            }
        },
    ];
    let keys: Vec<String> = (0..2000).map(key).collect();
    let directory = tempfile::tempdir().unwrap();
    for (at, read) in reads.into_iter().enumerate() {
        for has_disk in [false, true] {
            let builder = builder(8).advice(true);
            let cache = match has_disk {
                false => builder.build(),
                true => builder
                    .disk(Disk::file(directory.path().join(at.to_string()), 8 * MIB))
                    .build(),
            };
            let cache = cache.unwrap();
            keys.iter().for_each(|key| cache.insert(key, "a value").unwrap());
            assert!(cache.advice().unwrap().is_none(), "nothing was read");
            read(&cache, &keys);
            let advice = advice(&cache);
            assert_eq!(advice.reads, 2000, "{at} {has_disk}");
            // All keys were written before they were read, and fit.
            assert!(advice.hit_ratio(8 * MIB) > 0.99, "{at} {has_disk}: {advice}");
            // One in 32.
            assert!(advice.sampled_keys > 30 && advice.sampled_keys < 120, "{advice}");
        }
    }
}

#[test]
fn without_the_option_advice_is_absent() {
    let cache = builder(8).build().unwrap();
    played(&cache, 1000);
    assert!(cache.advice().unwrap().is_none());
    let closed = builder(8).advice(true).build().unwrap();
    closed.close().unwrap();
    assert!(closed.advice().is_err());
}

/// Threads that read and write the same keys leave each other's samples out, and lose nothing else.
#[test]
fn many_threads_are_sampled() {
    let cache = builder(8).advice(true).build().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| played(&cache, 50_000));
        }
    });
    let advice = advice(&cache);
    // Earlier reads count half.
    assert!(advice.reads > 50_000 && advice.reads <= 200_000, "{advice}");
    let all = advice.hit_ratio(64 * MIB);
    assert!(advice.hit_ratio(4 * MIB) < all && all <= 1.0, "{advice}");
}
