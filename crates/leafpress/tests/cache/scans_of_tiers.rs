//! Scans of both tiers return the records in memory and on disk, each key once, in order, with its current value.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use leafpress::Cache;
use leafpress::cache::{CacheError, CacheScan, Disk, InsertOptions, ManualClock};
use leafpress::store::{FaultyStore, MemoryStore, Operation, PageStore};

use crate::{key, noise, small};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn store() -> Arc<FaultyStore<MemoryStore>> {
    Arc::new(FaultyStore::new(MemoryStore::new(4096).unwrap()))
}

fn on_disk() -> Cache {
    small().disk(Disk::store(store(), 64 << 20)).build().unwrap()
}

/// Inserts records, most of which are evicted from memory.
fn fill(cache: &Cache, keys: std::ops::Range<u64>, len: usize) -> Model {
    let mut model = Model::new();
    for n in keys {
        cache.insert(&key(n), &noise(n, len)).unwrap();
        model.insert(key(n).into_bytes(), noise(n, len));
    }
    model
}

fn all(scan: CacheScan<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    scan.map(Result::unwrap).collect()
}

/// Asserts that scans of all kinds return the model's records.
fn assert_scans(cache: &Cache, model: &Model) {
    let expected: Vec<_> = model.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    let seen = all(cache.scan(..));
    assert_eq!(seen.len(), expected.len());
    assert!(seen == expected, "the records differ");
    let mut seen = all(cache.scan(..).backwards());
    seen.reverse();
    assert!(seen == expected, "the records differ backwards");
    let keys = all(cache.scan(..).keys_only()).into_iter();
    assert!(
        keys.eq(model.keys().map(|key| (key.clone(), Vec::new()))),
        "the keys differ"
    );
}

#[test]
fn a_scan_sees_both_tiers_in_order_and_moves_nothing() {
    let cache = on_disk();
    let model = fill(&cache, 0..30_000, 400);
    // Records are in all places: runs, waiting batches, and memory.
    let before = cache.stats();
    assert!(
        before.records < 20_000 && before.disk.as_ref().unwrap().runs > 1,
        "{before:?}"
    );
    assert_scans(&cache, &model);
    cache.settle().unwrap();
    let settled = cache.stats().disk.unwrap();
    assert_scans(&cache, &model);
    let after = cache.stats();
    assert_eq!((after.hits, after.misses), (before.hits, before.misses));
    // The upkeep may still evict.
    assert_eq!(after.promoted, before.promoted);
    assert!(after.records <= before.records, "{after:?}");
    // Each block is read a few times, not once per record. Only what leaves memory during a scan is looked up.
    let disk = after.disk.unwrap();
    let has_left = disk.admitted + disk.clean > settled.admitted + settled.clean;
    assert!(
        disk.lookups == settled.lookups || has_left,
        "{disk:?} after {settled:?}"
    );
}

#[test]
fn a_scan_keeps_to_its_range_from_either_end() {
    let cache = on_disk();
    let model = fill(&cache, 0..20_000, 400);
    let keys: Vec<_> = model.keys().cloned().collect();
    for (low, high) in [(0, 1), (5, 5), (100, 12_000), (9_999, 19_999), (19_999, 19_999)] {
        let (from, to) = (&keys[low], &keys[high]);
        let half_open =
            |scan: CacheScan<'_>| -> Vec<Vec<u8>> { all(scan).into_iter().map(|record| record.0).collect() };
        assert!(half_open(cache.scan(from..to)) == keys[low..high], "{low}..{high}");
        assert!(half_open(cache.scan(from..=to)) == keys[low..=high], "{low}..={high}");
        let mut reversed = keys[low..=high].to_vec();
        reversed.reverse();
        assert!(
            half_open(cache.scan(from..=to).backwards()) == reversed,
            "{low}..={high} backwards"
        );
        reversed.remove(0);
        assert!(
            half_open(cache.scan(from..to).backwards()) == reversed,
            "{low}..{high} backwards"
        );
    }
    assert_eq!(cache.scan("z"..).count(), 0);
    assert_eq!(cache.scan(.."a").backwards().count(), 0);
    let none = cache.scan("z".."a").count();
    assert_eq!(none, 0);
}

#[test]
fn a_scan_passes_over_what_was_removed_replaced_or_has_expired() {
    let clock = Arc::new(ManualClock::new(Duration::from_secs(2_000_000_000)));
    let disk = Disk::store(store(), 64 << 20);
    let cache = small().clock(clock.clone()).disk(disk).build().unwrap();
    let mut model = fill(&cache, 0..20_000, 400);
    for n in 20_000..30_000 {
        let entry = InsertOptions::ttl(Duration::from_secs(if n % 2 == 0 { 10 } else { 1000 }));
        cache.insert_entry(&key(n), &noise(n, 400), entry).unwrap();
        if n % 2 == 1 {
            model.insert(key(n).into_bytes(), noise(n, 400));
        }
    }
    cache.settle().unwrap();
    for n in (0..20_000).step_by(3) {
        cache.insert(&key(n), "new").unwrap();
        model.insert(key(n).into_bytes(), b"new".to_vec());
        cache.remove(&key(n + 1)).unwrap();
        model.remove(key(n + 1).as_bytes());
    }
    clock.advance(Duration::from_secs(20));
    assert_scans(&cache, &model);
    // Tombstones and new values are evicted too.
    model.extend(fill(&cache, 100_000..120_000, 400));
    assert_scans(&cache, &model);
    cache.settle().unwrap();
    assert_scans(&cache, &model);
    cache.clear().unwrap();
    assert_scans(&cache, &Model::new());
}

#[test]
fn a_scan_sees_what_an_earlier_cache_left_on_disk() {
    let directory = tempfile::tempdir().unwrap();
    let open = || {
        let disk = Disk::file(directory.path().join("cache"), 64 << 20);
        small().disk(disk).build().unwrap()
    };
    let cache = open();
    fill(&cache, 0..5_000, 400);
    let left = all(cache.scan(..));
    cache.close().unwrap();
    let cache = open();
    assert!(all(cache.scan(..)) == left);
    assert!(!left.is_empty());
}

#[test]
fn without_a_disk_tier_a_scan_sees_memory_in_several_parts() {
    let cache = Cache::builder().memory(64 << 20).build().unwrap();
    let mut model = Model::new();
    for n in 0..100_000 {
        cache.insert(&key(n), &n.to_string()).unwrap();
        model.insert(key(n).into_bytes(), n.to_string().into_bytes());
    }
    assert_eq!(cache.len(), model.len());
    assert_scans(&cache, &model);
}

#[test]
fn a_scan_goes_on_from_its_position_in_its_own_cache_only() {
    let (cache, other) = (on_disk(), on_disk());
    let model = fill(&cache, 0..20_000, 400);
    let mut position = cache.scan(..).into_position();
    let mut seen = Vec::new();
    loop {
        let mut scan = cache.resume_scan(position).unwrap();
        let before = seen.len();
        seen.extend(scan.by_ref().take(777).map(Result::unwrap));
        position = scan.into_position();
        if seen.len() == before {
            break;
        }
    }
    assert!(seen.into_iter().eq(model));
    let refused = other.resume_scan(position).unwrap_err();
    assert!(
        matches!(refused, CacheError::Option { option: "position", .. }),
        "{refused}"
    );
}

#[test]
fn a_scan_sees_changes_after_a_part_was_read_ahead() {
    let cache = on_disk();
    let model = fill(&cache, 0..20_000, 400);
    cache.settle().unwrap();
    let keys: Vec<_> = model.keys().cloned().collect();
    let mut scan = cache.scan(..);
    assert!(scan.next().unwrap().unwrap().0 == keys[0]);
    // Its part extends at least to here.
    cache.insert(&keys[1], "new").unwrap();
    cache.remove(&keys[2]).unwrap();
    cache.insert(&keys[3], "newer").unwrap();
    // All of it is evicted again.
    fill(&cache, 100_000..130_000, 400);
    let next: Vec<_> = scan.take(2).map(Result::unwrap).collect();
    assert_eq!(next[0], (keys[1].clone(), b"new".to_vec()));
    assert_eq!(next[1], (keys[3].clone(), b"newer".to_vec()));
}

#[test]
fn what_cannot_be_read_is_not_there_and_nothing_older_in_its_place() {
    let store = store();
    let disk = Disk::store(Arc::clone(&store) as Arc<_>, 64 << 20);
    let cache = small().disk(disk).build().unwrap();
    let mut model = fill(&cache, 0..20_000, 400);
    cache.settle().unwrap();
    for n in 0..20_000 {
        cache.insert(&key(n), &noise(n + 1_000_000, 400)).unwrap();
        model.insert(key(n).into_bytes(), noise(n + 1_000_000, 400));
    }
    cache.settle().unwrap();
    let assert_new = || {
        let mut records = 0;
        for record in cache.scan(..) {
            let (key, value) = record.unwrap();
            assert!(model[&key] == value, "an old value");
            records += 1;
        }
        records
    };
    for every in [1, 2, 10] {
        store.fail_every(Operation::Read, every);
        assert_new();
    }
    store.fail_every(Operation::Read, 0);
    assert_scans(&cache, &model);
    // Every fifth block of the store, old ones and new ones.
    for block in (1..store.len()).step_by(5) {
        store.write(block, &[0x5a; 4096]).unwrap();
    }
    let there = assert_new();
    assert!(there > 1000 && there < 20_000, "{there}");
    let disk = cache.stats().disk.unwrap();
    assert!(disk.read_errors > 0 && disk.damaged > 0, "{disk:?}");
}

/// Sets a flag when a test ends, also by a panic, so that the threads that wait for it end too.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn keys_that_stay_are_seen_once_while_records_move_between_the_tiers() {
    const STAY: u64 = 6_000;
    let cache = small().disk(Disk::store(store(), 256 << 20)).build().unwrap();
    let (is_over, round) = (AtomicBool::new(false), AtomicU64::new(0));
    let value = |n: u64, round: u64| [&round.to_le_bytes()[..], &noise(n, 300)].concat();
    for n in 0..STAY {
        cache.insert(&key(n), &value(n, 0)).unwrap();
    }
    let scans = std::thread::scope(|scope| {
        let _at_end = SetAtEnd(&is_over);
        // Replaces every fourth key, promotes others to memory, and evicts those in between.
        scope.spawn(|| {
            for turn in 1.. {
                for n in (0..STAY).step_by(4) {
                    cache.insert(&key(n), &value(n, turn)).unwrap();
                    cache.get(&key(n + turn % 4)).unwrap();
                    cache
                        .insert(&key(STAY + turn * STAY % 20_000 + n), &noise(n, 600))
                        .unwrap();
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                }
                round.store(turn, Ordering::SeqCst);
            }
        });
        (0..6)
            .map(|turn| {
                let mut seen = BTreeMap::new();
                let mut scan = cache.scan(..);
                if turn % 2 == 1 {
                    scan = scan.backwards();
                }
                loop {
                    let at_least = round.load(Ordering::SeqCst);
                    let Some(record) = scan.next() else { break };
                    let (key, value) = record.unwrap();
                    let written = value.first_chunk().map(|round| u64::from_le_bytes(*round));
                    if value.len() == 308 && written.unwrap() > 0 {
                        assert!(written.unwrap() >= at_least, "a value that was replaced");
                    }
                    assert!(seen.insert(key, ()).is_none(), "a key twice");
                }
                seen
            })
            .collect::<Vec<BTreeMap<Vec<u8>, ()>>>()
    });
    // Records dropped because of a slow device do not come back: those present now were present all the time.
    for n in 0..STAY {
        if cache.get(&key(n)).unwrap().is_some() {
            for (turn, seen) in scans.iter().enumerate() {
                assert!(seen.contains_key(key(n).as_bytes()), "scan {turn} has not seen {n}");
            }
        }
    }
}
