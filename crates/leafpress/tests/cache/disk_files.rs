//! A disk tier's file: ownership, refusal of foreign files, reopening, damage.

use std::sync::Arc;
use std::time::{Duration, Instant};

use leafpress::Cache;
use leafpress::cache::{CacheError, Disk, InsertOptions};
use leafpress::store::MemoryStore;

use crate::disk::{fill, found, on, store};
use crate::{key, noise, small};

fn refused(disk: Disk) -> CacheError {
    small().disk(disk).build().unwrap_err()
}

#[test]
fn rejects_unusable_disks_with_a_reason() {
    let error = refused(Disk::store(store(), 1 << 20));
    assert!(matches!(error, CacheError::Option { option: "disk", .. }), "{error}");
    let error = refused(Disk::store(Arc::new(MemoryStore::new(8192).unwrap()), 64 << 20));
    assert!(error.to_string().contains("8192"), "{error}");
    let error = refused(Disk::file("/nowhere/at/all", 64 << 20));
    assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
}

/// A refused file is unchanged in its bytes and its length.
#[test]
fn rejects_files_of_other_data_and_keeps_them_unchanged() {
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
        assert!(!directory.path().join("thesis.txt.epochs").exists() && !directory.path().join("link.runs").exists());
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
fn rejects_a_store_of_other_data_and_keeps_it_unchanged() {
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
fn rejects_paths_that_are_not_files() {
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
fn closes_everything_while_others_work() {
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
