//! Requested records stay, and others are evicted.

use leafpress::cache::Policy;
use leafpress::codec::Codec;

use crate::{key, noise, small};

/// Looks up a key, and inserts it on a miss; returns true on a hit.
fn request(cache: &leafpress::Cache, n: u64) -> bool {
    let is_hit = cache
        .get_with(&key(n), |found| assert_eq!(found, noise(n, 200)))
        .unwrap()
        .is_some();
    if !is_hit {
        cache.insert(&key(n), &noise(n, 200)).unwrap();
    }
    is_hit
}

#[test]
fn frequently_read_records_outlive_others() {
    let codecs = [
        Codec::None,
        Codec::Lz4 { acceleration: 1 },
        Codec::OnPair { bits: 12 },
        Codec::Auto { level: 1 },
    ];
    for codec in codecs {
        let cache = small().codec(codec).build().unwrap();
        let mut rng = fastrand::Rng::with_seed(3);
        let (mut requested, mut hits) = (0, 0);
        for n in 0..200_000 {
            // A thousand keys have half of the reads, and each of 150,000 others one.
            if rng.bool() {
                let is_hit = request(&cache, rng.u64(..1000));
                if n > 100_000 {
                    requested += 1;
                    hits += u32::from(is_hit);
                }
            } else {
                request(&cache, 1000 + n);
            }
        }
        assert!(hits * 100 > requested * 98, "{codec}: {hits} of {requested}");
        let stats = cache.stats();
        assert!(stats.evicted > 50_000 && stats.eviction_errors == 0, "{stats:?}");
        cache.validate().unwrap();
    }
}

#[test]
fn another_set_of_hot_keys_is_followed() {
    let cache = small().build().unwrap();
    let mut rng = fastrand::Rng::with_seed(4);
    for hot in 0..4 {
        let (mut requested, mut hits) = (0, 0);
        for n in 0..150_000_u64 {
            if rng.bool() {
                let is_hit = request(&cache, hot * 5000 + rng.u64(..5000));
                if n > 100_000 {
                    requested += 1;
                    hits += u32::from(is_hit);
                }
            } else {
                request(&cache, 1_000_000 * (hot + 1) + n);
            }
        }
        assert!(hits * 100 > requested * 90, "{hits} of {requested}");
    }
}

#[test]
fn records_and_counts_add_up() {
    let cache = small().build().unwrap();
    for n in 0..60_000 {
        cache.insert(&key(n), &noise(n, 200)).unwrap();
    }
    let removed = (0..60_000)
        .filter(|&n| n % 3 == 0 && cache.remove(&key(n)).unwrap())
        .count();
    // Nothing is evicted any more.
    cache.settle().unwrap();
    let stats = cache.stats();
    assert_eq!(stats.inserts, 60_000);
    assert_eq!(stats.records, stats.inserts - stats.evicted - removed as u64);
    assert_eq!(stats.records, cache.len() as u64);
    assert_eq!(stats.user_bytes, stats.records * 221);
    assert_eq!(stats.inserted_bytes, 60_000 * 221);
    let there = (0..60_000).filter(|&n| cache.contains_key(&key(n)).unwrap()).count();
    assert_eq!(there, cache.len());
    let after = cache.stats();
    assert_eq!((after.hits, after.misses), (there as u64, 60_000 - there as u64));
    assert!((after.hit_ratio() - there as f64 / 60_000.0).abs() < 1e-9);
    cache.clear().unwrap();
    assert!(cache.is_empty() && cache.get(&key(1)).unwrap().is_none());
    cache.validate().unwrap();
}

#[test]
fn each_policy_keeps_what_is_in_use() {
    let hits = Policy::ALL.map(|policy| {
        let cache = small().policy(policy).codec(Codec::None).build().unwrap();
        let mut rng = fastrand::Rng::with_seed(6);
        let mut hits = 0;
        for n in 0..150_000 {
            // 1,500 keys, scattered over all leaves, have half of the reads.
            if rng.bool() {
                hits += usize::from(request(&cache, rng.u64(..1500)) && n > 75_000);
            } else {
                request(&cache, 10_000 + n);
            }
        }
        cache.validate().unwrap();
        hits
    });
    // Of about 37,500. Nearly every leaf has a record in use, so that whole leaves are poor victims.
    let [s3_fifo, page] = hits;
    assert!(
        s3_fifo > 34_000 && (20_000..s3_fifo).contains(&page),
        "{s3_fifo} {page}"
    );
}
