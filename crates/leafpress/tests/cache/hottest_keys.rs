//! What another cache can begin with: the keys that are read most, and the dictionary.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use leafpress::Cache;
use leafpress::cache::{CacheBuilder, CacheError, Disk, InsertOptions, ManualClock};

use crate::disk::{fill, store};
use crate::{key, noise, small};

fn hottest(cache: &Cache, most: usize) -> BTreeSet<Vec<u8>> {
    let keys = cache.hottest_keys(most).unwrap();
    let all = keys.len();
    let keys: BTreeSet<_> = keys.into_iter().collect();
    assert_eq!(keys.len(), all, "a key was returned twice");
    keys
}

#[test]
fn keys_that_were_read_come_first_and_others_only_after_them() {
    let clock = Arc::new(ManualClock::default());
    let disk = Disk::store(store(), 16 << 20);
    let cache = small().clock(clock.clone()).disk(disk).build().unwrap();
    fill(&cache, 0..1_000, 100);
    let brief = InsertOptions::ttl(Duration::from_secs(1));
    cache.insert_entry("brief", "value", brief).unwrap();
    // A record that was just written has no mark that it was read until its leaf is compacted.
    cache.settle().unwrap();
    for n in (0..1_000).step_by(10) {
        assert!(cache.get(&key(n)).unwrap().is_some());
    }
    cache.get("brief").unwrap();
    cache.remove(&key(500)).unwrap();
    clock.advance(Duration::from_secs(2));
    let read: BTreeSet<_> = (0..1_000)
        .step_by(10)
        .filter(|n| *n != 500)
        .map(key)
        .map(Vec::from)
        .collect();
    let before = cache.stats();
    let missing: Vec<_> = read.difference(&hottest(&cache, 99)).cloned().collect();
    assert!(
        missing.len() <= 30,
        "{} of 99 keys that were read: {missing:?}",
        missing.len()
    );
    for most in [1, 2, 10, 60] {
        let some = hottest(&cache, most);
        assert!(some.len() == most && some.is_subset(&read), "{some:?}");
    }
    let all = hottest(&cache, usize::MAX);
    assert!(all.len() == 999 && all.is_superset(&read));
    assert!(hottest(&cache, 0).is_empty());
    let after = cache.stats();
    assert_eq!(
        (after.hits, after.misses, after.records),
        (before.hits, before.misses, before.records)
    );

    // Another cache has them from the beginning.
    let other = small().build().unwrap();
    for key in cache.hottest_keys(99).unwrap() {
        assert_eq!(cache.ttl(&key).unwrap(), Some(Duration::MAX));
        other.insert(&key, &cache.peek(&key).unwrap().unwrap()).unwrap();
    }
    let warm = read.iter().filter(|key| other.contains_key(key).unwrap()).count();
    assert!(warm >= 69 && other.len() == 99, "{warm} of {}", other.len());
    cache.close().unwrap();
    assert!(matches!(cache.hottest_keys(1), Err(CacheError::Closed)));
}

#[test]
fn records_that_stay_through_evictions_are_the_hottest() {
    let cache = small().build().unwrap();
    for round in 0..40 {
        fill(&cache, round * 1_000..round * 1_000 + 1_000, 400);
        for n in 0..50 {
            if cache.get(&key(n)).unwrap().is_none() {
                cache.insert(&key(n), &noise(n, 400)).unwrap();
            }
        }
    }
    let wanted: BTreeSet<_> = (0..50).map(key).map(Vec::from).collect();
    let found = hottest(&cache, 50);
    let missing = wanted.difference(&found).count();
    assert!(
        missing <= 5,
        "{missing} of 50 keys that were read in each round are not among the hottest 50"
    );
}

#[test]
fn the_first_records_are_compressed_with_the_dictionary_of_another_cache() {
    let document = |n: u64| {
        let (user, hits) = (n * 7_919 % 1_000_000, n * 31 % 977);
        format!("{{\"user\":{user},\"locale\":\"en-US\",\"roles\":[\"editor\",\"viewer\"],\"hits\":{hits}}}")
    };
    let of_codec = |codec: &str| Cache::builder().memory(16 << 20).codec(codec.parse().unwrap());
    // With other codecs it depends on measured times whether there is a dictionary.
    let old = of_codec("onpair").build().unwrap();
    assert!(old.dictionary().unwrap().is_none());
    for n in 0..20_000 {
        old.insert(&key(n), &document(n)).unwrap();
    }
    old.settle().unwrap();
    let dictionary = old.dictionary().unwrap().unwrap();
    let begun = |builder: CacheBuilder| {
        let cache = builder.build().unwrap();
        for n in 0..500 {
            cache.insert(&key(n), &document(100_000 + n)).unwrap();
        }
        for n in 0..500 {
            assert_eq!(cache.get(&key(n)).unwrap(), Some(document(100_000 + n).into_bytes()));
        }
        cache.stats().tree
    };
    let without = begun(of_codec("onpair"));
    assert_eq!(without.dictionary_id, 0);
    for codec in ["onpair", "trial:memory"] {
        let with = begun(of_codec(codec).initial_dictionary(dictionary.clone()));
        assert_eq!(with.dictionary_id, dictionary.id(), "{codec}");
        assert!(
            with.leaf_bytes * 2 < without.leaf_bytes,
            "{codec}: {with:?}\nwithout it {without:?}"
        );
    }
}
