//! Records that leave memory are spilled to disk, and are promoted from there.

use std::sync::Arc;
use std::time::{Duration, Instant};

use leafpress::Cache;
use leafpress::cache::{CacheError, Disk, InsertOptions, ManualClock};
use leafpress::store::{FaultyStore, MemoryStore, Operation};

use crate::{key, noise, small};

type Store = FaultyStore<MemoryStore>;

fn store() -> Arc<Store> {
    Arc::new(FaultyStore::new(MemoryStore::new(4096).unwrap()))
}

fn on(store: &Arc<Store>, bytes: u64) -> Cache {
    small().disk(Disk::store(store.clone(), bytes)).build().unwrap()
}

fn fill(cache: &Cache, keys: std::ops::Range<u64>, len: usize) {
    for n in keys {
        cache.insert(&key(n), &noise(n, len)).unwrap();
    }
}

/// Returns the number of keys whose value is found, and compares each value.
fn found(cache: &Cache, keys: std::ops::Range<u64>, len: usize) -> u64 {
    let is_there = |n: &u64| match cache.get(&key(*n)).unwrap() {
        Some(value) => value == noise(*n, len) || panic!("{n}: another's value"),
        None => false,
    };
    keys.filter(is_there).count() as u64
}

#[test]
fn what_leaves_memory_is_found_on_disk_by_one_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cache");
    let cache = small().disk(Disk::file(&path, 64 << 20)).build().unwrap();
    fill(&cache, 0..60_000, 400);
    cache.settle().unwrap();
    let dropped = cache.stats().disk.unwrap().dropped;
    if dropped > 0 {
        println!("skipped: the device was too slow for {dropped} records");
        return;
    }
    assert_eq!(found(&cache, 0..60_000, 400), 60_000);
    let stats = cache.stats();
    let disk = stats.disk.clone().unwrap();
    assert!(disk.hits > 40_000 && stats.promoted > 30_000, "{disk:?}");
    assert!(disk.blocks_read as f64 <= disk.hits as f64 * 1.05, "{disk:?}");
    // Incompressible bytes; each is written about as often as runs grow by a step, and once more if a range is split
    // early.
    assert!(disk.write_amplification() < 5.5, "{disk:?}");
    assert!(
        disk.index_bytes as f64 <= 1.9 * disk.records as f64 + 20_000.0,
        "{disk:?}"
    );
    assert!(path.metadata().unwrap().len() <= 64 << 20);
    // Clean records are not written again.
    let written = disk.written_bytes;
    assert_eq!(found(&cache, 0..60_000, 400), 60_000);
    let again = cache.stats().disk.unwrap();
    assert!(again.written_bytes - written < written / 20, "{again:?}");
    assert!(again.clean > 40_000);
    assert_eq!(cache.get("nobody").unwrap(), None);
    cache.validate().unwrap();
}

#[test]
fn what_was_replaced_or_removed_does_not_come_back_from_disk() {
    let store = store();
    let cache = on(&store, 64 << 20);
    fill(&cache, 0..30_000, 400);
    cache.settle().unwrap();
    for n in (0..30_000).step_by(3) {
        cache.insert(&key(n), "new").unwrap();
        assert!(cache.remove(&key(n + 1)).unwrap());
        assert!(!cache.remove(&key(n + 1)).unwrap());
    }
    // Both leave memory, and runs are merged.
    fill(&cache, 100_000..130_000, 400);
    cache.settle().unwrap();
    for n in (0..30_000).step_by(3) {
        assert_eq!(cache.get(&key(n)).unwrap().as_deref(), Some(&b"new"[..]), "{n}");
        assert_eq!(cache.get(&key(n + 1)).unwrap(), None, "{n}");
        assert_eq!(cache.get(&key(n + 2)).unwrap(), Some(noise(n + 2, 400)), "{n}");
    }
}

#[test]
fn what_is_oldest_makes_room_on_disk() {
    let store = store();
    let cache = on(&store, 16 << 20);
    fill(&cache, 0..200_000, 400);
    cache.settle().unwrap();
    let disk = cache.stats().disk.unwrap();
    assert!(disk.runs_dropped > 0 && disk.used_bytes <= 16 << 20, "{disk:?}");
    assert!(disk.used_bytes > 10 << 20, "{disk:?}");
    let late = found(&cache, 180_000..200_000, 400);
    assert!(late > 18_000, "{late} of the last 20,000");
}

#[test]
fn long_values_are_found_too_and_too_long_ones_are_not_kept() {
    let store = store();
    let cache = on(&store, 64 << 20);
    let len = |n: u64| 1000 << (n % 9);
    for n in 0..400 {
        cache.insert(&key(n), &noise(n, len(n))).unwrap();
    }
    cache.settle().unwrap();
    let is_there = |n: &u64| match cache.get(&key(*n)).unwrap() {
        Some(value) => value == noise(*n, len(*n)) || panic!("{n}"),
        None => false,
    };
    let gone: Vec<u64> = (0..400).filter(|n| !is_there(n)).collect();
    // Records longer than a 32nd of the memory are not kept on disk.
    let short = gone.iter().filter(|n| len(**n) <= 128 << 10).count();
    let dropped = cache.stats().disk.unwrap().dropped;
    assert!(gone.len() as u64 <= dropped, "{} of {dropped}", gone.len());
    if short > 0 {
        println!("skipped: the device was too slow for {short} records");
    }
}

#[test]
fn time_goes_on_on_disk() {
    let clock = Arc::new(ManualClock::new(Duration::from_secs(1_900_000_000)));
    let disk = Disk::store(store(), 64 << 20);
    let cache = small().clock(clock.clone()).disk(disk).build().unwrap();
    for n in 0..30_000 {
        let ttl = InsertOptions::ttl(Duration::from_secs(if n % 2 == 0 { 10 } else { 1000 }));
        cache.insert_entry(&key(n), &noise(n, 400), ttl).unwrap();
    }
    cache.settle().unwrap();
    clock.advance(Duration::from_secs(11));
    for n in 0..30_000 {
        let there = cache.get(&key(n)).unwrap();
        assert_eq!(there, (n % 2 == 1).then(|| noise(n, 400)), "{n}");
    }
}

#[test]
fn a_cleared_cache_has_nothing_on_disk() {
    let store = store();
    let cache = on(&store, 64 << 20);
    fill(&cache, 0..30_000, 400);
    cache.clear().unwrap();
    assert_eq!(found(&cache, 0..30_000, 400), 0);
    fill(&cache, 0..30_000, 300);
    cache.settle().unwrap();
    assert_eq!(found(&cache, 0..30_000, 300), 30_000);
}

#[test]
fn a_device_that_fails_is_given_up_and_memory_goes_on() {
    let store = store();
    let cache = on(&store, 64 << 20);
    fill(&cache, 0..30_000, 400);
    cache.settle().unwrap();
    store.fail_every(Operation::Write, 1);
    for n in 0..30_000 {
        cache.insert(&key(n), "new").unwrap();
    }
    fill(&cache, 40_000..70_000, 400);
    cache.settle().unwrap();
    let stats = cache.stats();
    let disk = stats.disk.clone().unwrap();
    assert!(disk.has_failed && disk.write_errors >= 8, "{disk:?}");
    for n in 0..30_000 {
        assert!(cache.get(&key(n)).unwrap().is_none_or(|value| value == b"new"), "{n}");
    }
    assert!(found(&cache, 40_000..70_000, 400) > 1000);
    assert!(stats.bytes_held <= stats.memory_bytes);
}

#[test]
fn reads_that_fail_are_misses() {
    let store = store();
    let cache = on(&store, 64 << 20);
    fill(&cache, 0..30_000, 400);
    cache.settle().unwrap();
    store.fail_every(Operation::Read, 10);
    store.short_read_every(17);
    let there = found(&cache, 0..30_000, 400);
    let disk = cache.stats().disk.unwrap();
    assert!(
        disk.read_errors > 1000 && there > 20_000 && there < 30_000,
        "{there} {disk:?}"
    );
    store.fail_every(Operation::Read, 0);
    store.short_read_every(0);
    let again = found(&cache, 0..30_000, 400);
    // A merge retries; a block that has failed once is readable.
    assert!(again > there && again > 27_000, "{again} after {there}");
}

#[test]
fn a_stalled_device_holds_up_no_read_of_memory_and_no_memory_is_exceeded() {
    let store = store();
    let cache = on(&store, 64 << 20);
    fill(&cache, 0..20_000, 400);
    cache.settle().unwrap();
    fill(&cache, 50_000..50_100, 400);
    store.set_latency(Operation::Write, Duration::from_secs(2));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in 0..10_000 {
                cache.insert(&key(n), &noise(n + 1, 500)).unwrap();
            }
        });
        let mut slowest = Duration::ZERO;
        while !writer.is_finished() {
            let began = Instant::now();
            let _ = cache.get(&key(50_000 + fastrand::u64(..100))).unwrap();
            slowest = slowest.max(began.elapsed());
        }
        // A read in memory does not wait; one on disk waits for its own read, which is not slow.
        assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    });
    let stats = cache.stats();
    assert!(
        stats.peak_bytes <= stats.memory_bytes + stats.memory_bytes / 20 + (4 << 20),
        "{stats:?}"
    );
    store.set_latency(Operation::Write, Duration::ZERO);
    for n in 0..10_000 {
        assert!(
            cache
                .get(&key(n))
                .unwrap()
                .is_none_or(|value| value == noise(n + 1, 500)),
            "{n}"
        );
    }
}

#[test]
fn no_more_is_written_than_may_be() {
    let store = store();
    let disk = Disk::store(store.clone(), 64 << 20).write_limit(1 << 20);
    let cache = small().disk(disk).build().unwrap();
    let began = Instant::now();
    fill(&cache, 0..30_000, 400);
    cache.settle().unwrap();
    fill(&cache, 0..30_000, 300);
    cache.settle().unwrap();
    let disk = cache.stats().disk.unwrap();
    // What was admitted before the limit was exceeded is written nevertheless.
    let most = (began.elapsed().as_secs_f64() + 1.0) * f64::from(1 << 20) + f64::from(4 << 20);
    assert!(disk.dropped > 10_000 && disk.written_bytes as f64 <= most, "{disk:?}");
    // Dropped records do not expose older ones.
    for n in 0..30_000 {
        let value = cache.get(&key(n)).unwrap();
        assert!(value.is_none_or(|value| value == noise(n, 300)), "{n}");
    }
}

fn refused(disk: Disk) -> CacheError {
    small().disk(disk).build().unwrap_err()
}

#[test]
fn what_cannot_be_a_disk_says_why() {
    let error = refused(Disk::store(store(), 1 << 20));
    assert!(matches!(error, CacheError::Option { option: "disk", .. }), "{error}");
    let error = refused(Disk::store(Arc::new(MemoryStore::new(8192).unwrap()), 64 << 20));
    assert!(error.to_string().contains("8192"), "{error}");
    let error = refused(Disk::file("/nowhere/at/all", 64 << 20));
    assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
}

/// A refused file is unchanged in its bytes and its length.
#[test]
fn what_no_cache_wrote_is_refused_and_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("thesis.txt");
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let texts = [
        b"x".to_vec(),
        b"precious data\n".repeat(1000),
        vec![0; 4096],
        b"SQLite format 3\0".repeat(4096),
        // Almost the magic.
        b"checksumleafpress cachE\0".repeat(300),
    ];
    for text in &texts {
        std::fs::write(&path, text).unwrap();
        for (place, recovers) in [(&path, false), (&path, true), (&link, false), (&link, true)] {
            let recovers = recovers && cfg!(target_os = "linux");
            let error = refused(Disk::file(place, 64 << 20).recover_after_crash(recovers));
            assert!(
                matches!(&error, CacheError::NotACache { place: reported } if *reported == place.display().to_string()),
                "{error}"
            );
            assert!(error.to_string().contains("overwrite"), "{error}");
            assert_eq!(std::fs::read(&path).unwrap(), *text);
        }
        assert!(!directory.path().join("thesis.txt.notes").exists() && !directory.path().join("link.runs").exists());
        // Invalid options change nothing either.
        refused(Disk::file(&path, 1 << 10).overwrite(true));
        assert_eq!(std::fs::read(&path).unwrap(), *text);
    }
    for text in &texts[1..3] {
        std::fs::write(&path, text).unwrap();
        let disk = || Disk::file(&path, 64 << 20);
        let cache = small().disk(disk().overwrite(true)).build().unwrap();
        fill(&cache, 0..10_000, 400);
        cache.close().unwrap();
        // It is a cache's now, which is accepted with or without the option.
        for overwrites in [true, false] {
            let cache = small().disk(disk().overwrite(overwrites)).build().unwrap();
            // A device may be so slow that records are dropped.
            assert!(found(&cache, 0..10_000, 400) > 0);
            cache.close().unwrap();
        }
    }
}

#[test]
fn a_store_that_no_cache_wrote_is_refused_and_left_as_it_is() {
    use leafpress::store::PageStore;

    let pages: [(u64, Vec<u8>); 3] = [(0, vec![7; 4096]), (3, vec![7; 4096]), (0, vec![0; 4096])];
    for (page, bytes) in pages {
        let store = store();
        store.write(page, &bytes).unwrap();
        let error = refused(Disk::store(store.clone(), 64 << 20));
        assert!(matches!(error, CacheError::NotACache { .. }), "{error}");
        let mut read = vec![1; 4096];
        store.read(page, &mut read).unwrap();
        assert_eq!(read, bytes);
        drop(
            small()
                .disk(Disk::store(store.clone(), 64 << 20).overwrite(true))
                .build()
                .unwrap(),
        );
        drop(on(&store, 64 << 20));
    }
}

/// In whatever state a cache left its file, the next recognizes it as a cache's.
#[test]
fn what_a_cache_left_is_known_to_be_one_whatever_ended_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cache");
    let disk = || Disk::file(&path, 16 << 20);
    let opens: [&dyn Fn() -> Disk; 4] = [
        &disk,
        &|| disk().recover_after_crash(cfg!(target_os = "linux")),
        &|| Disk::file(&path, 8 << 20),
        &|| disk().codec(leafpress::Codec::None),
    ];
    for (round, open) in opens.iter().cycle().take(12).enumerate() {
        let cache = small().disk(open()).build().unwrap();
        if round % 3 > 0 {
            fill(&cache, 0..10_000, 400);
        }
        if round % 2 == 0 {
            cache.close().unwrap();
        }
    }
    // A file that ends within a block is truncated, if it is a cache's.
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 100]).unwrap();
    drop(small().disk(disk()).build().unwrap());
    // An empty file is accepted.
    std::fs::write(&path, "").unwrap();
    drop(small().disk(disk()).build().unwrap());
}

#[test]
fn a_cache_is_for_its_owner_alone() {
    use std::os::unix::fs::MetadataExt;

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cache");
    let disk = Disk::file(&path, 16 << 20).recover_after_crash(cfg!(target_os = "linux"));
    let cache = small().disk(disk).build().unwrap();
    fill(&cache, 0..10_000, 400);
    cache.settle().unwrap();
    let mut files = 0;
    for entry in directory.path().read_dir().unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().mode();
        assert_eq!(mode & 0o077, 0, "{:?} has mode {mode:o}", entry.file_name());
        files += 1;
    }
    assert_eq!(files, if cfg!(target_os = "linux") { 3 } else { 1 });
}

#[test]
fn what_is_no_file_is_refused_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let error = refused(Disk::file(directory.path(), 64 << 20).overwrite(true));
    assert!(matches!(error, CacheError::Disk { .. }), "{error}");
    let error = refused(Disk::file("/dev/null", 64 << 20).overwrite(true)).to_string();
    assert!(error.contains("character device"), "{error}");
    let path = directory.path().join("dangling");
    std::os::unix::fs::symlink(directory.path().join("nobody"), &path).unwrap();
    let error = refused(Disk::file(&path, 64 << 20));
    assert!(matches!(error, CacheError::Disk { .. }), "{error}");
    assert!(!directory.path().join("nobody").exists());
}

fn file(path: &std::path::Path) -> Cache {
    small().disk(Disk::file(path, 64 << 20)).build().unwrap()
}

#[test]
fn a_cache_that_was_closed_is_there_again_and_what_was_in_use_comes_back() {
    // A file's device may be so slow that records are dropped.
    let store = store();
    let cache = on(&store, 64 << 20);
    fill(&cache, 0..30_000, 400);
    for n in (0..30_000).step_by(3) {
        cache.insert(&key(n), "new").unwrap();
        cache.remove(&key(n + 1)).unwrap();
    }
    // In use: read more than once.
    for _ in 0..4 {
        assert_eq!(found(&cache, 10_001..10_002, 400), 1);
        (20_000..20_600)
            .filter(|n| n % 3 == 2)
            .for_each(|n| _ = cache.get(&key(n)).unwrap().unwrap());
    }
    cache.close().unwrap();
    for round in 0..3 {
        let cache = on(&store, 64 << 20);
        let began = Instant::now();
        while cache.stats().promoted < 100 && began.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(cache.stats().promoted >= 100, "round {round}: {:?}", cache.stats());
        for n in (0..30_000).step_by(3) {
            assert_eq!(cache.get(&key(n)).unwrap().as_deref(), Some(&b"new"[..]), "{n}");
            assert_eq!(cache.get(&key(n + 1)).unwrap(), None, "{n}");
            assert_eq!(cache.get(&key(n + 2)).unwrap(), Some(noise(n + 2, 400)), "{n}");
        }
        cache.validate().unwrap();
        cache.close().unwrap();
    }
}

#[test]
fn a_cache_that_was_not_closed_begins_empty() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cache");
    let cache = file(&path);
    fill(&cache, 0..10_000, 400);
    cache.close().unwrap();
    let cache = file(&path);
    fill(&cache, 0..10_000, 300);
    drop(cache);
    let cache = file(&path);
    assert_eq!(cache.stats().disk.unwrap().records, 0);
    assert_eq!(found(&cache, 0..10_000, 300), 0);
}

/// Two caches on one file would destroy each other's contents.
#[test]
fn a_file_is_one_caches_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cache");
    let cache = file(&path);
    fill(&cache, 0..10_000, 400);
    let error = refused(Disk::file(&path, 64 << 20)).to_string();
    assert!(error.contains("in use"), "{error}");
    cache.close().unwrap();
    let cache = file(&path);
    assert!(cache.stats().disk.unwrap().records > 0);
}

/// A cache that does not restore a file's contents leaves nothing of them to the next.
#[test]
fn what_another_passed_over_is_not_there_for_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cache");
    let cache = file(&path);
    fill(&cache, 0..10_000, 400);
    cache.close().unwrap();
    let other = small().disk(Disk::file(&path, 32 << 20)).build().unwrap();
    other.insert(&key(1), "new").unwrap();
    drop(other);
    let cache = file(&path);
    assert_eq!(cache.stats().disk.unwrap().records, 0);
    assert_eq!(cache.get(&key(1)).unwrap(), None);
}

/// The index of the disk has a limit of its own; a cache with less memory than the last drops some runs.
#[test]
fn what_is_known_of_the_disk_stays_within_half_of_the_memory() {
    let store = store();
    let open = |memory: u64| {
        let disk = Disk::store(store.clone(), 512 << 20);
        Cache::builder().memory(memory).disk(disk).build().unwrap()
    };
    let cache = open(16 << 20);
    for n in 0..2_500_000_u64 {
        cache.insert(&n.to_be_bytes(), &[n as u8; 8]).unwrap();
    }
    cache.close().unwrap();
    let cache = open(4 << 20);
    let disk = cache.stats().disk.unwrap();
    assert!(disk.index_bytes <= 2 << 20 && disk.records > 500_000, "{disk:?}");
    let found = (0..2_500_000_u64)
        .step_by(50)
        .filter(|n| match cache.get(&n.to_be_bytes()).unwrap() {
            Some(value) => value == [*n as u8; 8] || panic!("{n}"),
            None => false,
        });
    assert!(found.count() > 10_000);
    assert!(cache.stats().bytes_held <= 4 << 20);
}

#[test]
fn another_size_or_codec_begins_empty() {
    let store = store();
    let disk = |bytes| Disk::store(store.clone(), bytes);
    let records = |disk: Disk| {
        let cache = small().disk(disk).build().unwrap();
        let records = cache.stats().disk.unwrap().records;
        fill(&cache, 0..10_000, 400);
        cache.close().unwrap();
        records
    };
    assert_eq!(records(disk(64 << 20)), 0);
    assert!(records(disk(64 << 20)) > 9000);
    assert_eq!(records(disk(32 << 20)), 0);
    assert_eq!(records(disk(32 << 20).codec(leafpress::Codec::None)), 0);
}

/// Whatever byte of a closed cache's file is damaged, no wrong value is returned.
#[test]
fn a_damaged_file_has_what_is_right_or_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cache");
    // The damage may be in the magic.
    let disk = |path: &std::path::Path| Disk::file(path, 4 << 20).overwrite(true);
    let open = |path: &std::path::Path| small().disk(disk(path)).build().unwrap();
    let cache = open(&path);
    fill(&cache, 0..3000, 400);
    cache.close().unwrap();
    let image = std::fs::read(&path).unwrap();
    let mut rng = fastrand::Rng::with_seed(7);
    let (mut some, mut none) = (0, 0);
    for round in 0..60 {
        let mut bytes = image.clone();
        match round % 4 {
            0 => bytes[rng.usize(..4096)] ^= 1 << rng.u8(..8),
            1 => (0..1 + rng.usize(..200)).for_each(|_| bytes[rng.usize(..image.len())] ^= 1 << rng.u8(..8)),
            2 => bytes.truncate(rng.usize(..image.len())),
            _ => {
                // Blocks that are exchanged.
                let block = |n: usize| n * 4096..(n + 1) * 4096;
                let blocks = image.len() / 4096;
                for _ in 0..1 + rng.usize(..20) {
                    let (from, to) = (rng.usize(..blocks), rng.usize(..blocks));
                    bytes.copy_within(block(from), to * 4096);
                }
            }
        }
        std::fs::write(&path, &bytes).unwrap();
        let cache = open(&path);
        let there = found(&cache, 0..3000, 400);
        some += u64::from(there > 0);
        none += u64::from(there == 0);
        fill(&cache, 5000..6000, 200);
        cache.settle().unwrap();
        found(&cache, 5000..6000, 200);
    }
    assert!(some > 5 && none > 5, "{some} {none}");
}

/// The cache's own threads may hold a leaf at that moment.
#[test]
fn all_is_closed_whoever_is_at_work() {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..250 {
                    let store = Arc::new(MemoryStore::new(4096).unwrap());
                    let disk = Disk::store(store, 4 << 20).codec(leafpress::Codec::None);
                    let cache = small().codec(leafpress::Codec::None).disk(disk).build().unwrap();
                    cache
                        .insert_entry("expires", "1", InsertOptions::ttl(Duration::from_secs(1000)))
                        .unwrap();
                    for n in 0..1500 {
                        cache.insert(&key(n), &[7; 300]).unwrap();
                    }
                    cache.close().unwrap();
                }
            });
        }
    });
}

#[test]
fn what_it_holds_is_told_in_words() {
    let cache = on(&store(), 32 << 20);
    fill(&cache, 0..30_000, 400);
    cache.settle().unwrap();
    found(&cache, 0..30_000, 400);
    let words = cache.stats().to_string();
    let begins: Vec<&str> = words.lines().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(begins, ["memory", "reads", "left", "form", "disk"], "{words}");
    assert!(
        words.contains("of 4.0 MiB held") && words.contains("reads: 30000, "),
        "{words}"
    );
    // There were no misses.
    let parts: Vec<f64> = words
        .lines()
        .nth(1)
        .unwrap()
        .split(['%', ' '])
        .filter_map(|word| word.parse().ok())
        .collect();
    assert!(parts[1] > 50.0 && (parts[0] + parts[1] - 100.0).abs() < 0.2, "{words}");
}

#[test]
fn a_disk_that_is_half_full_drops_nothing() {
    for records in [20_000, 28_000, 36_000] {
        let cache = on(&store(), 32 << 20);
        // In small steps, like a busy writer: every merge may be the one that takes too long.
        for from in (0..records).step_by(1000) {
            fill(&cache, from..from + 1000, 400);
            cache.settle().unwrap();
        }
        let disk = cache.stats().disk.unwrap();
        assert_eq!((disk.runs_dropped, disk.left_out), (0, 0), "{records}: {disk:?}");
        assert!(disk.used_bytes < 20 << 20, "{disk:?}");
        assert_eq!(found(&cache, 0..records, 400), records);
    }
}

/// Increasing keys fill leaf after leaf, and the records in the first ones are dropped.
#[test]
fn keys_that_rise_for_ever_leave_no_leaves_behind() {
    let disk = || Disk::store(store(), 4 << 20).codec(leafpress::Codec::None);
    let cache = small().codec(leafpress::Codec::None).disk(disk()).build().unwrap();
    let key = |n: u64| n.to_be_bytes();
    for n in 0..80_000 {
        cache.insert(&key(n), &noise(n, 500)).unwrap();
    }
    cache.settle().unwrap();
    let disk = cache.stats().disk.unwrap();
    assert!(disk.runs_dropped > 100 && disk.super_leaves < 160, "{disk:?}");
    let late = (75_000..80_000).filter(|n| match cache.get(&key(*n)).unwrap() {
        Some(value) => value == noise(*n, 500) || panic!("{n}: another's value"),
        None => false,
    });
    assert!(late.count() > 2000);
}

/// All 16-byte keys with this prefix collide with rapidhash's public constants.
#[test]
fn whoever_chooses_the_keys_cannot_choose_where_they_are_on_disk() {
    let cache = on(&store(), 64 << 20);
    let key = |n: u64| [&0x8bb8_4b93_962e_acc9_u64.to_le_bytes()[..], &n.to_be_bytes()].concat();
    for n in 0..30_000 {
        cache.insert(&key(n), &noise(n, 400)).unwrap();
    }
    cache.settle().unwrap();
    let before = cache.stats().disk.unwrap();
    for n in 0..2000 {
        assert_eq!(cache.get(&key(1 << 40 | n)).unwrap(), None);
    }
    let after = cache.stats().disk.unwrap();
    let (lookups, reads) = (after.lookups - before.lookups, after.blocks_read - before.blocks_read);
    assert!(
        reads < lookups / 4,
        "{reads} pages were read in {lookups} lookups for what is not there"
    );
}

/// Without times to live, the records in memory are those that a scan returns.
#[test]
fn tombstones_are_not_counted() {
    let store = store();
    let cache = on(&store, 64 << 20);
    fill(&cache, 0..2000, 100);
    cache.spill().unwrap();
    assert!(cache.is_empty());
    for n in 0..2000 {
        match n % 3 {
            0 => assert!(cache.remove(&key(n)).unwrap()),
            1 => assert!(cache.take(&key(n)).unwrap().is_some()),
            _ => cache.invalidate(&key(n)).unwrap(),
        }
    }
    let stats = cache.stats();
    assert_eq!(
        (cache.len(), cache.is_empty(), stats.records),
        (0, true, 0),
        "{stats:?}"
    );
    assert_eq!((cache.range(..).count(), stats.tombstones), (0, 2000));
    let mut random = fastrand::Rng::with_seed(1);
    for round in 0..4000 {
        let key = key(random.u64(..2500));
        match random.u8(..7) {
            0..3 => cache.insert(&key, &noise(round, 100)).unwrap(),
            3 => drop(cache.remove(&key).unwrap()),
            4 => drop(cache.take(&key).unwrap()),
            5 => drop(cache.get(&key).unwrap()),
            _ => drop(cache.compare_and_swap(&key, None, Some(b"put")).unwrap()),
        }
        if round % 1000 == 500 {
            // Tombstones are spilled with the records.
            cache.spill().unwrap();
        }
        if round % 500 == 0 {
            assert_eq!(cache.len(), cache.range(..).count(), "{round}");
        }
    }
    cache.settle().unwrap();
    assert_eq!(cache.len(), cache.range(..).count());
    assert!(cache.stats().tombstones > 0);
    cache.clear().unwrap();
    let stats = cache.stats();
    assert_eq!((cache.len(), stats.records, stats.tombstones), (0, 0, 0));
    cache.insert("key", "value").unwrap();
    assert_eq!((cache.len(), cache.stats().records), (1, 1));
}

#[test]
fn what_is_removed_is_not_brought_back_first() {
    let store = store();
    let cache = on(&store, 64 << 20);
    fill(&cache, 0..3000, 400);
    cache.spill().unwrap();
    let before = cache.stats();
    for n in 0..1000 {
        assert!(cache.remove(&key(n)).unwrap());
        assert!(!cache.remove(&key(n)).unwrap());
    }
    let removed = cache.stats();
    assert_eq!((removed.promoted, removed.records), (before.promoted, 0));
    let blocks_read = |stats: &leafpress::cache::CacheStats| stats.disk.as_ref().unwrap().blocks_read;
    // One read each to find out that it was present, and none for those that are known to be absent.
    assert!(blocks_read(&removed) - blocks_read(&before) <= 1100, "{removed:?}");
    for n in 1000..2000 {
        cache.invalidate(&key(n)).unwrap();
    }
    assert_eq!(blocks_read(&cache.stats()), blocks_read(&removed));
    assert_eq!(found(&cache, 0..3000, 400), 1000);
    cache.spill().unwrap();
    assert_eq!(found(&cache, 0..3000, 400), 1000);
}
