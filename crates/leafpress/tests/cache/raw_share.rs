//! Uncompressed copies of the most read records: they are found, never stale, within the memory, and their share
//! follows the costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use leafpress::Cache;
use leafpress::cache::{CacheBuilder, CacheError, CacheUpdate, InsertOptions, ManualClock, RawShare};

use crate::small;

const READ_MOST: u64 = 50;

fn fixed(raw_percent: u8) -> CacheBuilder {
    small().share(RawShare::Fixed { raw_percent })
}

fn key(n: u64) -> String {
    format!("user:{n:06}")
}

fn value(n: u64, version: u64) -> String {
    format!("{{\"id\":{n},\"version\":{version},\"name\":\"somebody\",\"state\":\"active\"}}")
}

fn fill(cache: &Cache, records: u64) {
    for n in 0..records {
        cache.insert(&key(n), &value(n, 0)).unwrap();
    }
    cache.settle().unwrap();
}

/// Reads the first keys until all of them are copied or were read often.
fn heat(cache: &Cache) {
    for _ in 0..2000 {
        for n in 0..READ_MOST {
            cache.get_with(&key(n), |_| ()).unwrap();
        }
        if cache.stats().tree.hot_records >= READ_MOST {
            break;
        }
    }
    let stats = cache.stats();
    assert!(stats.tree.hot_records > READ_MOST / 2, "{stats:?}");
}

#[test]
fn the_most_read_records_are_copied_and_found() {
    let cache = fixed(10).build().unwrap();
    fill(&cache, 2000);
    heat(&cache);
    let before = cache.stats();
    for n in 0..2000 {
        assert_eq!(cache.get(&key(n)).unwrap(), Some(value(n, 0).into_bytes()), "{n}");
    }
    let keys: Vec<_> = (0..READ_MOST).map(key).collect();
    let found = cache.get_many(&keys).unwrap();
    assert!(found.iter().all(Option::is_some));
    let after = cache.stats();
    assert!(
        after.tree.get_hot_hits >= before.tree.get_hot_hits + READ_MOST,
        "{after:?}"
    );
    assert_eq!(
        after.raw_share_bytes,
        4 * (1 << 20) / 10,
        "a tenth of 4 MiB, rounded down"
    );
    assert!(after.tree.hot_bytes <= after.raw_share_bytes + (64 << 10), "{after:?}");
}

#[test]
fn a_copied_record_follows_every_write() {
    let clock = Arc::new(ManualClock::new(Duration::from_secs(1_900_000_000)));
    let cache = fixed(10).clock(clock.clone()).build().unwrap();
    fill(&cache, 2000);
    heat(&cache);
    let get = |n: u64| {
        cache
            .get(&key(n))
            .unwrap()
            .map(|found| String::from_utf8(found).unwrap())
    };
    for version in 1..100 {
        cache.insert(&key(1), &value(1, version)).unwrap();
        assert_eq!(get(1), Some(value(1, version)));
    }
    cache.remove(&key(2)).unwrap();
    assert_eq!(get(2), None);
    assert!(cache.take(&key(3)).unwrap().is_some());
    assert_eq!(get(3), None);
    cache.update_with(&key(4), |_| CacheUpdate::Put(value(4, 1))).unwrap();
    assert_eq!(get(4), Some(value(4, 1)));
    cache.update_with(&key(5), |_| CacheUpdate::<&[u8]>::Remove).unwrap();
    assert_eq!(get(5), None);
    assert!(
        cache
            .compare_and_swap(&key(6), Some(value(6, 0).as_bytes()), Some(value(6, 1).as_bytes()))
            .unwrap()
    );
    assert_eq!(get(6), Some(value(6, 1)));
    cache
        .insert_entry(&key(7), &value(7, 1), InsertOptions::ttl(Duration::from_secs(60)))
        .unwrap();
    assert_eq!(get(7), Some(value(7, 1)));
    clock.advance(Duration::from_secs(61));
    assert_eq!(get(7), None);
    let long = "long".repeat(50_000);
    cache.insert(&key(8), &long).unwrap();
    assert_eq!(get(8), Some(long));
    cache.clear().unwrap();
    assert!((0..2000).all(|n| get(n).is_none()));
    assert_eq!(cache.stats().tree.hot_records, 0);
    cache.validate().unwrap();
}

#[test]
fn a_record_that_is_read_and_written_stays_copied() {
    let cache = fixed(10).build().unwrap();
    fill(&cache, 2000);
    heat(&cache);
    let before = cache.stats().tree.get_hot_hits;
    // Fewer writes than a landing buffer has room for, so that the leaf is not compacted.
    for version in 1..4 {
        cache.insert(&key(9), &value(9, version)).unwrap();
        assert_eq!(cache.get(&key(9)).unwrap(), Some(value(9, version).into_bytes()));
    }
    assert!(cache.stats().tree.get_hot_hits >= before + 2);
}

#[test]
fn copies_are_within_the_memory_and_leave_with_it() {
    let cache = small()
        .memory(8 << 20)
        .share(RawShare::Fixed { raw_percent: 75 })
        .build()
        .unwrap();
    let is_within = |cache: &Cache| {
        let stats = cache.stats();
        assert!(stats.bytes_held <= stats.memory_bytes, "{stats:?}");
    };
    for n in 0..200_000 {
        cache.insert(&key(n), &value(n, 0)).unwrap();
        for near in 0..4 {
            cache.get_with(&key(n.saturating_sub(near * 97)), |_| ()).unwrap();
        }
        if n % 10_000 == 0 {
            is_within(&cache);
        }
    }
    let before = cache.stats();
    assert!(before.tree.hot_bytes > 1 << 20, "{before:?}");
    cache.set_memory(4 << 20).unwrap();
    is_within(&cache);
    let after = cache.stats();
    assert_eq!(after.raw_share_bytes, 3 << 20);
    assert!(after.tree.hot_bytes <= after.raw_share_bytes + (64 << 10), "{after:?}");
    cache.validate().unwrap();
}

#[test]
fn without_a_share_nothing_is_copied() {
    let cache = fixed(0).build().unwrap();
    fill(&cache, 2000);
    (0..100_000).for_each(|n| _ = cache.get_with(&key(n % 10), |_| ()).unwrap());
    let stats = cache.stats();
    assert_eq!((stats.raw_share_bytes, stats.tree.hot_bytes), (0, 0));
    assert!(stats.raw_share_reason.is_empty());
    let refused = fixed(76).build();
    assert!(matches!(refused, Err(CacheError::Option { option: "share", .. })));
}

/// Reads with a skew and inserts what was not found, until the share is what is awaited. The records are several times
/// what the memory holds: the keys that come back after their eviction tell what room is worth.
fn until(cache: &Cache, awaited: impl Fn(u64) -> bool) {
    let mut random = fastrand::Rng::with_seed(7);
    let limit = Instant::now() + Duration::from_secs(600);
    loop {
        for _ in 0..20_000 {
            let n = (random.f64().powi(4) * 400_000.0) as u64;
            if cache.get_with(&key(n), |_| ()).unwrap().is_none() {
                cache.insert(&key(n), &value(n, 0)).unwrap();
            }
        }
        let stats = cache.stats();
        if awaited(stats.raw_share_bytes) && !stats.raw_share_reason.is_empty() {
            break;
        }
        assert!(Instant::now() < limit, "{stats}");
    }
}

#[test]
fn the_share_grows_where_misses_are_cheap_and_shrinks_where_they_are_expensive() {
    let least = (4 << 20) / 64;
    // The cost would decide about the codec too, and copies are worth nothing where leaves are read as fast.
    let small = || small().codec("zstd:1".parse().unwrap());
    let cheap = small().miss_cost(Duration::ZERO).build().unwrap();
    until(&cheap, |share| share > 8 * least);
    assert!(cheap.stats().raw_share_reason.contains("a miss costs 0.0 us"));
    let expensive = small().miss_cost(Duration::from_secs(10)).build().unwrap();
    until(&expensive, |share| share == least);
}

#[test]
fn loads_are_timed() {
    let cache = small().build().unwrap();
    let limit = Instant::now() + Duration::from_secs(600);
    let mut n = 0;
    loop {
        for _ in 0..2000 {
            n += 1;
            cache.get_or_insert_with(&key(n), || value(n, 0)).unwrap();
            (0..20).for_each(|n| _ = cache.get_with(&key(n), |_| ()).unwrap());
            cache.get_or_insert_with(&key(n % 20), || value(n % 20, 0)).unwrap();
        }
        let stats = cache.stats();
        if stats.raw_share_reason.contains("a miss costs") {
            break;
        }
        assert!(Instant::now() < limit, "{stats}");
    }
}

#[test]
fn what_is_removed_while_the_cache_is_cleared_stays_removed() {
    let cache = fixed(10).build().unwrap();
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for worker in 0..2_u64 {
            let (cache, done) = (&cache, &done);
            scope.spawn(move || {
                for round in 0..300 {
                    // The worker's own keys, of leaves that other keys share.
                    let key = key(worker + 2 * (round % 50));
                    cache.insert(&key, &value(worker, round)).unwrap();
                    for _ in 0..30 {
                        let found = cache.get(&key).unwrap();
                        assert!(found.is_none_or(|found| found == value(worker, round).into_bytes()));
                    }
                    cache.remove(&key).unwrap();
                    assert_eq!(cache.get(&key).unwrap(), None, "round {round}");
                }
                done.fetch_add(1, Ordering::SeqCst);
            });
        }
        while done.load(Ordering::SeqCst) < 2 {
            cache.clear().unwrap();
        }
    });
    cache.validate().unwrap();
}

#[test]
fn the_cost_of_a_miss_decides_what_memory_is_worth_to_the_codec() {
    // Without a cost, 100 us are assumed.
    for (cost, worth) in [
        (Some(1), "0.7 ns"),
        (Some(50), "35.0 ns"),
        (Some(10_000), "7000.0 ns"),
        (None, "70.0 ns"),
    ] {
        let mut builder = Cache::builder().memory(16 << 20);
        if let Some(cost) = cost {
            builder = builder.miss_cost(Duration::from_micros(cost));
        }
        let cache = builder.build().unwrap();
        for n in 0..20_000_u64 {
            let value = format!(
                "{{\"user\":{n},\"name\":\"user {n}\",\"roles\":[\"editor\",\"viewer\"],\"seen\":{}}}",
                n * 7
            );
            cache.insert(&key(n), &value).unwrap();
        }
        cache.settle().unwrap();
        let reason = cache.stats().tree.limits_reason;
        let expected = format!("; assumed: 1% of memory saves {worth} per read, ");
        assert!(reason.contains(&expected), "{cost:?} us: {reason}");
    }
}
