//! Reads of several keys in one call, in a cache with a disk tier.

use std::sync::Arc;
use std::time::Duration;

use leafpress::Cache;
use leafpress::cache::{Disk, InsertOptions, ManualClock};
use leafpress::store::Operation;

use crate::disk::{Store, fill, on, store};
use crate::{key, noise, small};

const RECORDS: u64 = 30_000;

/// A cache most of whose records are on disk.
fn filled(store: &Arc<Store>) -> Cache {
    let cache = on(store, 64 << 20);
    fill(&cache, 0..RECORDS, 400);
    cache.settle().unwrap();
    cache
}

fn names(numbers: impl IntoIterator<Item = u64>) -> Vec<String> {
    numbers.into_iter().map(key).collect()
}

#[test]
fn keys_on_disk_are_read_by_one_batch_for_each_64() {
    let store = store();
    let cache = filled(&store);
    // So few that what their promotion displaces is not written meanwhile.
    let numbers = || (0..192).map(|n| n * 100);
    let (before, disk_before) = (store.counters(), cache.stats().disk.unwrap());
    let values = cache.get_many(&names(numbers())).unwrap();
    for (n, value) in numbers().zip(values) {
        assert_eq!(value, Some(noise(n, 400)), "{n}");
    }
    let (after, disk) = (store.counters(), cache.stats().disk.unwrap());
    let hits = disk.hits - disk_before.hits;
    assert!(hits > 100, "{disk:?}");
    let (batches, reads) = (after.read_batches - before.read_batches, after.reads - before.reads);
    assert!(batches >= 3, "{batches}");
    // A merge of runs reads batches as well.
    if after.write_batches == before.write_batches {
        assert_eq!(batches, 3);
        // Few keys need another page than the first: how few depends on the seed of the tier's hashes.
        assert!(reads as f64 <= hits as f64 * 1.3, "{reads} reads for {hits} hits");
    }
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.misses), (192, 0));
}

#[test]
fn answers_are_in_the_order_of_the_keys_whichever_tier_they_come_from() {
    let store = store();
    let clock = Arc::new(ManualClock::new(Duration::from_secs(2_000_000_000)));
    let disk = Disk::store(store.clone(), 64 << 20);
    let cache = small().clock(clock.clone()).disk(disk).build().unwrap();
    for n in 0..RECORDS {
        let options = match n % 7 {
            0 => InsertOptions::ttl(Duration::from_secs(2)),
            _ => InsertOptions::default(),
        };
        cache.insert_entry(&key(n), &noise(n, 400), options).unwrap();
    }
    cache.settle().unwrap();
    for n in (0..RECORDS).step_by(5) {
        cache.insert(&key(n), "new").unwrap();
    }
    for n in (1..RECORDS).step_by(5) {
        cache.remove(&key(n)).unwrap();
    }
    clock.advance(Duration::from_secs(3));
    let expected = |n: u64| match n {
        _ if n >= RECORDS || n % 5 == 1 => None,
        _ if n.is_multiple_of(5) => Some(b"new".to_vec()),
        _ if n.is_multiple_of(7) => None,
        _ => Some(noise(n, 400)),
    };
    let mut random = fastrand::Rng::with_seed(1);
    for count in [0, 1, 2, 63, 64, 65, 500] {
        for _ in 0..20 {
            // With repetitions and absent keys.
            let numbers: Vec<u64> = (0..count).map(|_| random.u64(..RECORDS + RECORDS / 10)).collect();
            let mut seen = Vec::new();
            let keys = names(numbers.iter().copied());
            cache
                .get_many_with(&keys, |index, value| seen.push((index, value.map(<[u8]>::to_vec))))
                .unwrap();
            let wanted: Vec<_> = numbers.iter().map(|n| expected(*n)).enumerate().collect();
            assert!(seen == wanted, "{count} keys");
        }
    }
    cache.validate().unwrap();
}

#[test]
fn a_batch_that_fails_is_read_key_by_key() {
    let store = store();
    let cache = filled(&store);
    let keys = names(0..2000);
    store.fail_every(Operation::Read, 50);
    let values = cache.get_many(&keys).unwrap();
    store.fail_every(Operation::Read, 0);
    let mut missing = 0;
    for (n, value) in (0..).zip(values) {
        match value {
            Some(value) => assert_eq!(value, noise(n, 400), "{n}"),
            None => missing += 1,
        }
    }
    // Those whose page could not be read alone either.
    assert!(missing > 0 && missing < 100, "{missing} missing");
}

#[test]
fn long_values_on_disk_are_read_in_batches_of_bounded_size() {
    let store = store();
    let cache = on(&store, 256 << 20);
    let len = |n: u64| 1000 + (n as usize % 4) * 40_000;
    for n in 0..300 {
        cache.insert(&key(n), &noise(n, len(n))).unwrap();
        // The writer keeps up.
        cache.settle().unwrap();
    }
    let values = cache.get_many(&names(0..300)).unwrap();
    let mut missing = 0;
    for (n, value) in (0..).zip(values) {
        match value {
            Some(value) => assert!(value == noise(n, len(n)), "{n}"),
            None => missing += 1,
        }
    }
    // What promotions displace is lost where the device is slower than they are.
    let disk = cache.stats().disk.unwrap();
    assert!(
        missing <= disk.dropped && disk.hits > 100,
        "{missing} missing, {disk:?}"
    );
}
