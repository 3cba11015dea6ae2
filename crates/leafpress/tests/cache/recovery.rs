//! Crash recovery of the disk tier: a dropped cache leaves the same files as a killed one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use leafpress::Cache;
use leafpress::cache::{CacheError, CacheUpdate, Disk, InsertOptions, ManualClock};
use leafpress::codec::Codec;

use crate::{key, noise, small};

const FILES: [&str; 3] = ["cache", "cache.epochs", "cache.runs"];
const MB: u64 = 1 << 20;

fn disk(directory: &Path) -> Disk {
    Disk::file(directory.join("cache"), 8 * MB).recover_after_crash(true)
}

fn open(directory: &Path) -> Cache {
    small().disk(disk(directory)).build().unwrap()
}

fn value(n: u64, version: u64) -> Vec<u8> {
    let mut value = noise(n * 1009 + version, 300);
    value[..8].copy_from_slice(&version.to_le_bytes());
    value
}

fn fill(cache: &Cache, keys: impl IntoIterator<Item = u64>, version: u64) {
    for n in keys {
        cache.insert(&key(n), &value(n, version)).unwrap();
    }
}

/// Returns the version of each key's value, and checks its bytes.
fn versions(cache: &Cache, keys: std::ops::Range<u64>) -> Vec<Option<u64>> {
    let version = |n| {
        let found = cache.get(&key(n)).unwrap()?;
        let version = u64::from_le_bytes(found[..8].try_into().unwrap());
        assert!(found == value(n, version), "{n}: not a written value");
        Some(version)
    };
    keys.map(version).collect()
}

/// Returns how many keys have a value, which must have the version that `last` returns.
fn found(cache: &Cache, keys: std::ops::Range<u64>, last: impl Fn(u64) -> Option<u64>) -> u64 {
    let versions = versions(cache, keys.clone());
    for (n, version) in keys.zip(&versions) {
        assert!(version.is_none() || *version == last(n), "{n}: {version:?}");
    }
    versions.iter().flatten().count() as u64
}

fn read(directory: &Path) -> Vec<Vec<u8>> {
    let read = |name| std::fs::read(directory.join(name)).unwrap();
    FILES.into_iter().map(read).collect()
}

fn write(directory: &Path, files: &[Vec<u8>]) {
    for (name, bytes) in FILES.into_iter().zip(files) {
        std::fs::write(directory.join(name), bytes).unwrap();
    }
}

fn recovered(cache: &Cache) -> u64 {
    cache.stats().disk.unwrap().recovered_records
}

#[test]
fn what_was_on_disk_is_found_again_and_what_was_replaced_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let cache = open(directory.path());
    fill(&cache, 0..4000, 1);
    cache.spill().unwrap();
    fill(&cache, (0..4000).filter(|n| n % 40 == 0), 2);
    (0..4000).filter(|n| n % 40 == 1).for_each(|n| {
        cache.remove(&key(n)).unwrap();
    });
    for n in (0..4000).filter(|n| n % 40 == 2) {
        let put = |_: Option<&[u8]>| CacheUpdate::Put(value(n, 3));
        cache.update_with(&key(n), put).unwrap();
        assert!(
            cache
                .compare_and_swap(&key(n + 1), Some(&value(n + 1, 1)), None)
                .unwrap()
        );
    }
    drop(cache);
    let last = |n: u64| match n % 40 {
        0 => Some(2),
        1 | 3 => None,
        2 => Some(3),
        _ => Some(1),
    };
    // And again after each crash.
    for round in 0..4 {
        let cache = open(directory.path());
        assert!(recovered(&cache) > 0);
        let there = found(&cache, 0..4000, last);
        assert!(there > 3000, "{there} in round {round}");
        assert!(cache.stats().disk.unwrap().is_recoverable);
    }
}

#[test]
fn what_is_written_after_a_crash_outlives_the_next_and_merges_leave_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    for round in 1..=6 {
        let cache = open(directory.path());
        let before = versions(&cache, 0..3000);
        for (n, version) in (0..3000).zip(&before) {
            // Each round writes another sixth.
            let newest = (1..round).filter(|written| written % 6 == n % 6).max();
            assert!(
                version.is_none() || *version == newest.or(Some(0)),
                "{n}: {version:?} in round {round}"
            );
        }
        if round == 1 {
            fill(&cache, 0..3000, 0);
        } else {
            let there = before.iter().flatten().count();
            assert!(there > 1000, "{there} in round {round}");
        }
        fill(&cache, (0..3000).filter(|n| n % 6 == round % 6), round);
        cache.spill().unwrap();
        // Other keys, so that there is something to merge.
        for other in 0..4 {
            fill(&cache, (10_000 * round + 500 * other..).take(500), 0);
            cache.spill().unwrap();
        }
    }
}

#[test]
fn a_close_and_a_crash_may_follow_each_other_in_any_order() {
    for closes in 0..16_u32 {
        let directory = tempfile::tempdir().unwrap();
        let mut last = vec![None; 1200];
        for round in 0..5 {
            let cache = open(directory.path());
            let there = found(&cache, 0..1200, |n| last[n as usize]);
            assert!(round == 0 || there > 500, "{there} in round {round} of {closes:b}");
            for n in (0..1200).filter(|n| round == 0 || n % 31 == round) {
                fill(&cache, [n], round);
                last[n as usize] = Some(round);
            }
            cache.spill().unwrap();
            for n in (0..1200).filter(|n| n % 37 == round) {
                cache.remove(&key(n)).unwrap();
                last[n as usize] = None;
            }
            if closes >> round & 1 == 1 {
                cache.close().unwrap();
            }
        }
    }
}

#[test]
fn a_cleared_cache_stays_cleared() {
    let directory = tempfile::tempdir().unwrap();
    let cache = open(directory.path());
    fill(&cache, 0..2000, 1);
    cache.spill().unwrap();
    cache.clear().unwrap();
    fill(&cache, 5000..6000, 1);
    cache.spill().unwrap();
    drop(cache);
    let cache = open(directory.path());
    assert_eq!(found(&cache, 0..2000, |_| None), 0);
    assert!(found(&cache, 5000..6000, |_| Some(1)) > 900);
}

#[test]
fn time_goes_on_over_a_crash_and_a_short_life_does_not_bring_back_a_long_one() {
    let directory = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(Duration::from_secs(2_000_000_000)));
    let open = || {
        small()
            .disk(disk(directory.path()))
            .clock(clock.clone())
            .build()
            .unwrap()
    };
    let cache = open();
    fill(&cache, 0..1000, 1);
    cache.spill().unwrap();
    for n in 0..1000 {
        let entry = InsertOptions::ttl(Duration::from_secs(if n % 2 == 0 { 100 } else { 1000 }));
        cache.insert_entry(&key(n), &value(n, 2), entry).unwrap();
    }
    cache.spill().unwrap();
    drop(cache);
    clock.advance(Duration::from_secs(500));
    let cache = open();
    let there = found(&cache, 0..1000, |n| (n % 2 == 1).then_some(2));
    assert!(there > 400, "{there}");
}

#[test]
fn another_codec_or_size_or_a_tier_without_epochs_begins_empty() {
    let directory = tempfile::tempdir().unwrap();
    let plain = || Disk::file(directory.path().join("cache"), 8 * MB);
    let others: [&dyn Fn() -> Disk; 3] = [
        &|| disk(directory.path()).codec(Codec::None),
        &|| Disk::file(directory.path().join("cache"), 9 * MB).recover_after_crash(true),
        &plain,
    ];
    for (other, closes) in others.into_iter().flat_map(|other| [(other, false), (other, true)]) {
        let cache = open(directory.path());
        fill(&cache, 0..1000, 1);
        cache.spill().unwrap();
        if closes {
            cache.close().unwrap();
        } else {
            drop(cache);
        }
        let cache = small().disk(other()).build().unwrap();
        assert_eq!(found(&cache, 0..1000, |_| None), 0);
        fill(&cache, 0..1000, 2);
        cache.close().unwrap();
        let cache = open(directory.path());
        assert_eq!(found(&cache, 0..1000, |_| None), 0);
    }
}

/// With more or less memory the table of stale epochs is larger or smaller.
#[test]
fn another_memory_finds_it_again_too() {
    let directory = tempfile::tempdir().unwrap();
    let open = |memory_mb: u64| {
        let cache = Cache::builder().memory(memory_mb << 20).disk(disk(directory.path()));
        cache.build().unwrap()
    };
    let cache = open(4);
    fill(&cache, 0..4000, 1);
    cache.spill().unwrap();
    fill(&cache, (0..4000).filter(|n| n % 20 == 0), 2);
    drop(cache);
    for memory_mb in [64, 16, 4, 32, 4] {
        let cache = open(memory_mb);
        let there = found(&cache, 0..4000, |n| Some(if n % 20 == 0 { 2 } else { 1 }));
        assert!(there > 3000, "{there} with {memory_mb} MiB");
        assert!(cache.stats().bytes_held <= memory_mb << 20);
    }
}

/// Files of three moments: after a crash, after another, and after a close.
fn three_moments(directory: &Path) -> [Vec<Vec<u8>>; 3] {
    let mut moments = Vec::new();
    for round in 0..3 {
        let cache = open(directory);
        fill(&cache, (0..1500).filter(|n| round == 0 || n % 10 == round), round);
        cache.spill().unwrap();
        fill(&cache, (0..1500).filter(|n| n % 100 == 50 + round), 10 + round);
        if round == 2 {
            cache.close().unwrap();
        } else {
            drop(cache);
        }
        moments.push(read(directory));
    }
    moments.try_into().unwrap()
}

/// The last version of a key at a moment.
fn last_at(moment: u64, n: u64) -> u64 {
    let mut last = 0;
    for round in 0..=moment {
        if round > 0 && n % 10 == round {
            last = round;
        }
        if n % 100 == 50 + round {
            last = 10 + round;
        }
    }
    last
}

#[test]
fn files_of_different_moments_are_right_or_empty() {
    let directory = tempfile::tempdir().unwrap();
    let moments = three_moments(directory.path());
    let mut empty = 0;
    for choice in 0..27_usize {
        let of = [choice % 3, choice / 3 % 3, choice / 9];
        let files: Vec<Vec<u8>> = of
            .into_iter()
            .zip(0..)
            .map(|(moment, file)| moments[moment][file].clone())
            .collect();
        write(directory.path(), &files);
        let cache = open(directory.path());
        // The store and the table determine the moment: a log contains the list of runs only.
        let latest = of[0].max(of[1]) as u64;
        let there = found(&cache, 0..1500, |n| Some(last_at(latest, n)));
        empty += u64::from(there == 0);
        assert!(of != [latest as usize; 3] || there > 1000, "{there} of {of:?}");
    }
    assert!(empty > 10, "{empty}");
}

/// Opens files that may be damaged, and works with them.
fn look(directory: &Path, moment: u64) -> u64 {
    let cache = open(directory);
    let there = found(&cache, 0..1500, |n| Some(last_at(moment, n)));
    fill(&cache, 3000..3200, 1);
    cache.spill().unwrap();
    found(&cache, 3000..3200, |_| Some(1));
    there
}

#[test]
fn damaged_side_files_are_right_or_empty() {
    let directory = tempfile::tempdir().unwrap();
    let moments = three_moments(directory.path());
    let mut rng = fastrand::Rng::with_seed(11);
    let (mut some, mut none) = (0, 0);
    let rounds = if cfg!(debug_assertions) { 240 } else { 2000 };
    for round in 0..rounds {
        let mut files = moments[1].clone();
        let file = &mut files[1 + round % 2];
        let len = file.len();
        match round / 2 % 6 {
            // The header; then any position; then the end, where committed entries are.
            0 => file[rng.usize(..120)] ^= rng.u8(1..),
            1 => file[rng.usize(4096..len)] ^= rng.u8(1..),
            2 => file[len - 1 - rng.usize(..len.min(300))] ^= rng.u8(1..),
            3 => file.truncate(rng.usize(..len)),
            4 => {
                let from = rng.usize(..len / 512) * 512;
                file[from..(from + 512).min(len)].fill(0);
            }
            _ => {
                let (from, to) = (rng.usize(..len / 512) * 512, rng.usize(..len / 512) * 512);
                let end = (from + 512).min(len).min(from + len - to);
                file.copy_within(from..end, to);
            }
        }
        write(directory.path(), &files);
        let there = look(directory.path(), 1);
        some += u64::from(there > 0);
        none += u64::from(there == 0);
    }
    assert!(none > rounds as u64 / 4, "{some} {none}");
    for missing in [1, 2] {
        write(directory.path(), &moments[1]);
        std::fs::remove_file(directory.path().join(FILES[missing])).unwrap();
        assert_eq!(look(directory.path(), 1), 0);
    }
    // A closed tier needs its table only for what was there before the last crash.
    write(directory.path(), &moments[2]);
    std::fs::remove_file(directory.path().join(FILES[1])).unwrap();
    std::fs::remove_file(directory.path().join(FILES[2])).unwrap();
    look(directory.path(), 2);
}

/// The length of a log is bounded, whatever is written, and a rewritten log has the same contents.
#[test]
fn the_log_of_runs_does_not_grow_for_ever() {
    let directory = tempfile::tempdir().unwrap();
    let cache = small().disk(Disk::file(directory.path().join("cache"), 16 * MB).recover_after_crash(true));
    let cache = cache.build().unwrap();
    let mut longest = 0;
    for round in 0..40 {
        fill(&cache, (0..2000).map(|n| n * 7 % 5000 + round % 5), round);
        cache.spill().unwrap();
        let bytes = directory.path().join("cache.runs").metadata().unwrap().len();
        longest = longest.max(bytes);
    }
    let disk = cache.stats().disk.unwrap();
    assert!(longest < 2 * MB && disk.is_recoverable, "{longest} bytes, {disk:?}");
}

fn refused(disk: Disk) -> CacheError {
    small().disk(disk).build().unwrap_err()
}

#[test]
fn rejects_unrecoverable_disks_with_a_reason() {
    let store = Arc::new(leafpress::store::MemoryStore::new(4096).unwrap());
    let error = refused(Disk::store(store, 8 * MB).recover_after_crash(true));
    assert!(
        matches!(
            &error,
            CacheError::Option {
                option: "recover_after_crash",
                ..
            }
        ),
        "{error}"
    );
    // The side files cannot be created: one of their names is a directory's.
    let directory = tempfile::tempdir().unwrap();
    let path: PathBuf = directory.path().join("cache.runs.new");
    std::fs::create_dir(&path).unwrap();
    let error = refused(disk(directory.path()));
    assert!(
        matches!(&error, CacheError::Disk { reason } if reason.contains("cache.runs.new")),
        "{error}"
    );
    std::fs::remove_dir(&path).unwrap();
    drop(open(directory.path()));
}

/// A log that cannot be written any more is given up, and the cache continues; then nothing is recovered after a crash.
#[test]
fn a_log_that_cannot_be_written_costs_what_would_be_found_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let new = directory.path().join("cache.runs.new");
    // A directory's name prevents a new log.
    let block = || std::fs::create_dir(&new).unwrap();
    let cache = open(directory.path());
    fill(&cache, 0..3000, 1);
    cache.spill().unwrap();
    block();
    // Until the log has to be rewritten.
    for round in 2..400 {
        fill(&cache, 0..1000, round);
        cache.spill().unwrap();
        if !cache.stats().disk.unwrap().is_recoverable {
            break;
        }
    }
    let disk = cache.stats().disk.unwrap();
    assert!(
        disk.log_errors == 1 && disk.last_error.contains("log of runs") && !disk.has_failed,
        "{disk:?}"
    );
    fill(&cache, 0..1000, 777);
    cache.spill().unwrap();
    assert!(found(&cache, 0..1000, |_| Some(777)) > 900);
    drop(cache);
    std::fs::remove_dir(&new).unwrap();
    let cache = open(directory.path());
    assert_eq!(found(&cache, 0..3000, |_| None), 0);
    // Once closed, it is restored nevertheless.
    fill(&cache, 0..1000, 1);
    cache.close().unwrap();
    assert!(found(&open(directory.path()), 0..1000, |_| Some(1)) > 900);
}

/// Links and files of others under the names of the side files are not written through, and are kept.
#[test]
fn links_in_the_place_of_side_files_lead_nowhere() {
    let directory = tempfile::tempdir().unwrap();
    let victim = directory.path().join("victim");
    std::fs::write(&victim, "precious").unwrap();
    let names = ["cache.epochs.new", "cache.runs.new", "cache.epochs", "cache.runs"];
    for closes in [false, true] {
        for name in names {
            let link = directory.path().join(name);
            let _ = std::fs::remove_file(&link);
            std::os::unix::fs::symlink(&victim, &link).unwrap();
            let cache = open(directory.path());
            fill(&cache, 0..2000, 1);
            cache.spill().unwrap();
            assert!(cache.stats().disk.unwrap().is_recoverable);
            if closes {
                cache.close().unwrap();
            } else {
                drop(cache);
            }
            assert_eq!(std::fs::read(&victim).unwrap(), b"precious", "{name}");
            assert!(
                names.iter().all(|name| !directory.path().join(name).is_symlink()),
                "{name}"
            );
        }
    }
}

/// Opening a pipe without a writer would block.
#[test]
fn pipes_in_the_place_of_side_files_are_not_waited_for() {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;

    for name in ["cache.epochs", "cache.runs", "cache.epochs.new", "cache.runs.new"] {
        for closes in [false, true] {
            let directory = tempfile::tempdir().unwrap();
            let cache = open(directory.path());
            fill(&cache, 0..1000, 1);
            cache.spill().unwrap();
            if closes {
                cache.close().unwrap();
            } else {
                drop(cache);
            }
            let path = directory.path().join(name);
            let _ = std::fs::remove_file(&path);
            let path = CString::new(path.as_os_str().as_bytes()).unwrap();
            // SAFETY: the path is a C string.
            assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
            let cache = open(directory.path());
            found(&cache, 0..1000, |_| Some(1));
            assert!(cache.stats().disk.unwrap().is_recoverable);
        }
    }
}

/// Leaves without runs are removed, in memory and in the log at once.
#[test]
fn what_has_keys_that_rise_for_ever_is_found_again() {
    let directory = tempfile::tempdir().unwrap();
    let disk = || {
        let disk = Disk::file(directory.path().join("cache"), 4 * MB).codec(Codec::None);
        disk.recover_after_crash(true)
    };
    let key = |n: u64| n.to_be_bytes();
    let mut fewest = usize::MAX;
    for round in 0..3 {
        let cache = small().codec(Codec::None).disk(disk()).build().unwrap();
        let last = 40_000 * round;
        if round > 0 {
            let there = (last - 5000..last).filter(|n| match cache.get(&key(*n)).unwrap() {
                Some(found) => found == value(*n, 1) || panic!("{n}: another's value"),
                None => false,
            });
            fewest = fewest.min(there.count());
        }
        for n in last..last + 40_000 {
            cache.insert(&key(n), &value(n, 1)).unwrap();
            if n % 2_000 == 1_999 {
                // Before evictions have to wait for the disk, which drop records where it is slow.
                cache.spill().unwrap();
            }
        }
        let disk = cache.stats().disk.unwrap();
        assert!(disk.is_recoverable && disk.super_leaves < 160, "{disk:?}");
        assert_eq!(disk.dropped, 0, "{disk:?}");
    }
    assert!(fewest > 1000, "{fewest} of 5000");
}
