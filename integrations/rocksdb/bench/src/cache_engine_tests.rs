use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use leafpress_lab::cache::conformance;
use tempfile::TempDir;

use super::*;

const MIB: u64 = 1 << 20;

fn settings(directory: &TempDir, disk_bytes: u64, ttl: Option<Duration>) -> Settings {
    Settings {
        capacity_bytes: 2 * MIB,
        record_bytes: 250.0,
        ttl,
        miss_cost: Duration::ZERO,
        disk: Some(DiskOptions {
            bytes: disk_bytes,
            path: directory.path().join("cache.disk"),
        }),
    }
}

/// Does something with a new cache of each kind.
fn each(disk_bytes: u64, ttl: Option<Duration>, check: impl Fn(&str, &dyn Engine, &Path)) {
    for added in &ENGINES {
        let directory = TempDir::new().unwrap();
        let settings = settings(&directory, disk_bytes, ttl);
        let cache = (added.make)(&settings).unwrap();
        check(added.name, cache.as_ref(), &settings.disk.as_ref().unwrap().directory());
    }
}

#[test]
fn values_come_back_as_they_were_put() {
    each(8 * MIB, None, |name, cache, _| {
        conformance::values_come_back_as_they_were_put(name, cache);
    });
}

#[test]
fn a_record_expires() {
    let ttl = Duration::from_secs(1);
    each(8 * MIB, Some(ttl), |name, cache, _| {
        conformance::a_record_expires(name, cache, ttl)
    });
}

#[test]
fn readers_never_go_back_while_files_are_dropped() {
    each(4 * MIB, None, |name, cache, _| {
        conformance::readers_never_go_back(name, cache, 150_000);
        let disk = cache.standing().disk.unwrap();
        assert!(
            disk.written_bytes > 4 * MIB && disk.evicted_bytes > 20 * MIB,
            "{name}: {disk:?}"
        );
    });
}

fn bytes_of_files(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).unwrap().flatten();
    // A file may be gone meanwhile.
    entries.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum()
}

#[test]
fn what_does_not_fit_the_disk_is_forgotten_and_the_rest_comes_from_it() {
    each(8 * MIB, None, |name, cache, directory| {
        const RECORDS: u64 = 32 * MIB / 1024;
        // No two alike, and nothing that compresses.
        let value = |number: u64| {
            let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let bytes = std::iter::repeat_with(move || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state.to_le_bytes()
            });
            bytes.take(128).flatten().collect::<Vec<u8>>()
        };
        let over = AtomicBool::new(false);
        let most = std::thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                let mut most = 0;
                while !over.load(Ordering::Relaxed) {
                    most = most.max(bytes_of_files(directory));
                    std::thread::sleep(Duration::from_millis(2));
                }
                most
            });
            for number in 0..RECORDS {
                cache.insert(&number.to_be_bytes(), &value(number)).unwrap();
            }
            over.store(true, Ordering::Relaxed);
            watcher.join().unwrap()
        });
        assert!(most > 4 * MIB, "{name}: {most} bytes of 8 MiB");
        // RocksDB removes files in the background, some time after they were too many.
        while bytes_of_files(directory) > 8 * MIB {
            std::thread::sleep(Duration::from_millis(2));
        }
        let mut found = Vec::new();
        let there = (0..RECORDS).filter(|number| {
            let there = cache.get(&number.to_be_bytes(), &mut found).unwrap();
            assert!(!there || found == value(*number), "{name}: {number}");
            there
        });
        let there = there.count() as u64;
        let bounds = 3 * MIB / 1024..=8 * MIB / 1024;
        assert!(bounds.contains(&there), "{name}: {there} records of 1 KiB in 8 MiB");
        let hits = cache.standing().disk.unwrap().hits;
        // A block of 4 KiB is read once for the three or four records that begin in it.
        assert!(hits > there / 6 && hits < there / 2, "{name}: {hits} of {there}");
    });
}

#[test]
fn memory_and_disk_are_shared_out_within_their_bounds() {
    for (memory, disk) in [
        (0, 4 * MIB),
        (8 * MIB, 64 * MIB),
        (64 * MIB, 1 << 30),
        (1 << 36, 1 << 43),
    ] {
        for behind in [Behind::Nothing, Behind::Leafpress] {
            let sizes = Sizes::new(memory, disk, behind);
            let sum = 2 * sizes.memtable + sizes.block_cache + sizes.secondary_cache;
            assert_eq!(sum, memory.max(MIB), "{sizes:?}");
            assert!(sizes.files + sizes.merge + sizes.memtable <= disk, "{sizes:?}");
            assert_eq!(sizes.secondary_cache == 0, behind == Behind::Nothing, "{sizes:?}");
        }
    }
}

#[test]
fn reports_unusable_settings() {
    let directory = TempDir::new().unwrap();
    let mut settings = settings(&directory, MIB, None);
    let refusal = |settings: &Settings| {
        let made = (ENGINES[0].make)(settings).err();
        made.expect("it cannot be made").to_string()
    };
    fs::create_dir(settings.disk.as_ref().unwrap().directory()).unwrap();
    assert!(refusal(&settings).contains("exists"), "{}", refusal(&settings));
    settings.disk = None;
    assert!(refusal(&settings).contains("disk"), "{}", refusal(&settings));
}
