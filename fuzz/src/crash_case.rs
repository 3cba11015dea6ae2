//! The files of a killed cache, its data file and two more, each truncated, damaged or from another moment, and opened
//! by the next.
//!
//! With checksums, the next cache finds the last value of each key, or nothing. With checksums ignored it may find
//! anything, but it neither fails nor exceeds its memory.

use std::path::Path;
use std::sync::OnceLock;

use leafpress::cache::{Disk, fuzz};
use leafpress::{Cache, Codec};
use libfuzzer_sys::arbitrary::{Result, Unstructured};

use crate::crash_log::{self, HEADER_BYTES};
use crate::disk_case::{BLOCK_BYTES, DISK_BYTES, MEMORY_BYTES, RECORDS, key, value};
use crate::peak;

const NAMES: [&str; 3] = ["cache", "cache.epochs", "cache.runs"];
const NOTES: usize = 1;
const RUNS: usize = 2;
/// The moments at which the files were copied. The cache was closed at the third one and killed at the others.
const MOMENTS: usize = 4;
const CLOSED: usize = 2;
/// Memory of the program itself while a cache opens, in addition to twice the cache's memory: threads, buffers of
/// files.
const OPENING_BYTES: usize = 2 << 20;

/// The last version of each key.
type Last = Vec<Option<u64>>;

/// The files of an ended cache, and its content.
struct Moment {
    files: [Vec<u8>; 3],
    last: Last,
}

fn open(directory: &Path, codec: Codec) -> Cache {
    let disk = Disk::file(directory.join(NAMES[0]), DISK_BYTES)
        .codec(codec)
        .recover_after_crash(true)
        // The header that identifies the file's owner may be damaged.
        .overwrite(true);
    let builder = Cache::builder().memory(MEMORY_BYTES).codec(Codec::None).disk(disk);
    builder.build().expect("damage does not prevent opening")
}

/// Returns a temporary directory, in memory if possible.
fn directory() -> tempfile::TempDir {
    let shared = Path::new("/dev/shm");
    let at = if shared.is_dir() {
        shared.to_owned()
    } else {
        std::env::temp_dir()
    };
    tempfile::tempdir_in(at).expect("a directory")
}

fn moments(ignores: bool, codec: Codec) -> Vec<Moment> {
    fuzz::ignore_checksums(ignores);
    let directory = directory();
    let mut last = vec![None; RECORDS as usize];
    let moment = |round| {
        let cache = open(directory.path(), codec);
        let mut put = |n: u64, version: Option<u64>| {
            match version {
                Some(version) => cache.insert(&key(n), &value(n, version)).expect("room"),
                None => _ = cache.remove(&key(n)).expect("room"),
            }
            last[n as usize] = version;
        };
        let of = |part, rest| (0..RECORDS).filter(move |n| n % part == rest);
        of(if round == 0 { 1 } else { 7 }, round).for_each(|n| put(n, Some(100 * round + 8)));
        cache.spill().expect("a store that works");
        // These changes are in the notes, and not on disk.
        of(11, round).for_each(|n| put(n, Some(100 * round + 16)));
        of(13, round).for_each(|n| put(n, None));
        if round as usize == CLOSED {
            cache.close().expect("a store that works");
        } else {
            drop(cache);
        }
        Moment {
            files: NAMES.map(|name| std::fs::read(directory.path().join(name)).expect("a file")),
            last: last.clone(),
        }
    };
    (0..MOMENTS as u64).map(moment).collect()
}

fn moments_of(ignores: bool, is_packed: bool) -> (&'static [Moment], Codec) {
    static MADE: [OnceLock<Vec<Moment>>; 4] = [const { OnceLock::new() }; 4];
    let codec = if is_packed {
        Codec::Zstd { level: 1 }
    } else {
        Codec::None
    };
    let index = usize::from(ignores) * 2 + usize::from(is_packed);
    (MADE[index].get_or_init(|| moments(ignores, codec)), codec)
}

/// Returns an offset in a file: the start of a structure, or any other.
fn place(u: &mut Unstructured<'_>, file: usize, bytes: &[u8]) -> Result<usize> {
    let most = bytes.len().saturating_sub(1);
    let starts = match file {
        RUNS => crash_log::entries(bytes),
        // The header, what counts of the log, and the first words of the table.
        NOTES => vec![0, HEADER_BYTES, HEADER_BYTES + 4],
        _ => vec![0, u.int_in_range(0..=most / BLOCK_BYTES)? * BLOCK_BYTES],
    };
    let at = if u.ratio(3, 4)? {
        u.choose(&starts)? + u.int_in_range(0..=120)?
    } else {
        u.int_in_range(0..=most)?
    };
    Ok(at.min(most))
}

/// Returns a typical number: small, large, or near an existing one.
fn number(u: &mut Unstructured<'_>, there: u32) -> Result<u32> {
    Ok(match u.int_in_range(0..=3)? {
        0 => u.int_in_range(0..=70)?,
        1 => *u.choose(&[u32::MAX, u32::MAX - 1, 1 << 31, 1 << 24, 1 << 28, 1 << 16, 4096])?,
        2 => there.wrapping_add_signed(u.int_in_range(-3..=3)?),
        _ => u.arbitrary()?,
    })
}

/// Applies one damage that a checksum detects.
fn spoil(u: &mut Unstructured<'_>, file: usize, bytes: &mut Vec<u8>) -> Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let at = place(u, file, bytes)?;
    let end = (at + 512).min(bytes.len());
    match u.int_in_range(0..=5)? {
        0 => bytes[at] ^= 1 << u.int_in_range(0..=7)?,
        1 => bytes[at] = u.arbitrary()?,
        2 => bytes[at..end].fill(u.arbitrary()?),
        3 => {
            let from = place(u, file, bytes)?.min(bytes.len() - (end - at));
            bytes.copy_within(from..from + (end - at), at);
        }
        4 => bytes.truncate(at),
        _ => {
            let more = u.int_in_range(1..=5000)?;
            bytes.resize(bytes.len() + more, u.arbitrary()?);
        }
    }
    Ok(())
}

/// Applies one damage that may be valid, for a run that ignores checksums.
fn forge(u: &mut Unstructured<'_>, files: &mut [Vec<u8>; 3], file: usize) -> Result<()> {
    let [_, notes, runs] = files;
    if file == RUNS && u.arbitrary()? {
        return crash_log::change(u, runs, notes);
    }
    let bytes = &mut files[file];
    if bytes.len() < 8 {
        return Ok(());
    }
    let at = place(u, file, bytes)?.min(bytes.len() - 8);
    let there = u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    bytes[at..at + 4].copy_from_slice(&number(u, there)?.to_le_bytes());
    if u.ratio(1, 4)? {
        bytes[at + 4..at + 8].copy_from_slice(&number(u, 0)?.to_le_bytes());
    }
    Ok(())
}

/// Files of one moment or several, damaged.
struct Left {
    files: [Vec<u8>; 3],
    missing: [bool; 3],
    /// The latest moment of any file.
    latest: usize,
}

fn left(u: &mut Unstructured<'_>, moments: &[Moment], ignores: bool) -> Result<Left> {
    let base = u.int_in_range(0..=MOMENTS - 1)?;
    let mut of = [base; 3];
    for of in &mut of {
        if u.ratio(1, 6)? {
            *of = u.int_in_range(0..=MOMENTS - 1)?;
        }
    }
    let mut latest = of.into_iter().max().unwrap_or(base);
    let mut files = [0, 1, 2].map(|file| moments[of[file]].files[file].clone());
    for _ in 0..u.int_in_range(0..=12)? {
        let file = u.int_in_range(0..=2)?;
        if ignores && u.arbitrary()? {
            forge(u, &mut files, file)?;
        } else if file != NOTES && u.ratio(1, 5)? {
            // The check of a word of the notes depends on its offset, but not on its moment.
            let other = u.int_in_range(0..=MOMENTS - 1)?;
            let (bytes, from) = (&mut files[file], &moments[other].files[file]);
            let at = place(u, file, bytes)? / BLOCK_BYTES * BLOCK_BYTES;
            let end = (at + BLOCK_BYTES).min(bytes.len()).min(from.len());
            if at < end {
                bytes[at..end].copy_from_slice(&from[at..end]);
                latest = latest.max(other);
            }
        } else {
            spoil(u, file, &mut files[file])?;
        }
    }
    let missing = [u.ratio(1, 60)?, u.ratio(1, 40)?, u.ratio(1, 40)?];
    Ok(Left { files, missing, latest })
}

impl Left {
    fn write(&self, directory: &Path) {
        let files = NAMES.iter().zip(&self.files).zip(self.missing);
        for ((name, bytes), _) in files.filter(|(_, is_missing)| !is_missing) {
            std::fs::write(directory.join(name), bytes).expect("room");
        }
    }

    /// Returns the moment of a file's header.
    fn moment_of(&self, file: usize, moments: &[Moment]) -> Option<usize> {
        let bytes = self.files[file].get(..HEADER_BYTES).filter(|_| !self.missing[file])?;
        moments
            .iter()
            .position(|moment| moment.files[file].get(..HEADER_BYTES) == Some(bytes))
    }

    /// Returns the earliest moment whose values may be found; [`None`] if nothing may be.
    fn earliest(&self, moments: &[Moment]) -> Option<usize> {
        match self.moment_of(0, moments)? {
            // The file of a closed cache needs the notes only for the records that they exclude.
            CLOSED => Some(CLOSED),
            killed => self
                .moment_of(NOTES, moments)
                .filter(|noted| (killed..=killed + 1).contains(noted)),
        }
    }
}

/// Damages the files of caches as the input determines, opens them, and checks their content.
pub fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let (ignores, is_packed) = (u.arbitrary()?, u.arbitrary()?);
    let (moments, codec) = moments_of(ignores, is_packed);
    fuzz::ignore_checksums(ignores);
    let left = left(u, moments, ignores)?;
    let closes_then = u.arbitrary()?;
    let directory = directory();
    left.write(directory.path());
    let may_be = match left.earliest(moments) {
        Some(earliest) => moments.get(earliest..=left.latest.max(earliest)).unwrap_or_default(),
        None => &[],
    };
    let was_there = |n: u64, found: &[u8]| {
        let is = |last: &Last| last[n as usize].is_some_and(|version| found == value(n, version));
        assert!(
            ignores || may_be.iter().any(|moment| is(&moment.last)),
            "key {n} has another value"
        );
    };
    let (cache, bytes) = peak::of(|| open(directory.path(), codec));
    assert!(
        bytes <= 2 * MEMORY_BYTES as usize + OPENING_BYTES,
        "{bytes} bytes were held while it opened"
    );
    for n in 0..RECORDS {
        cache.get_with(&key(n), |found| was_there(n, found)).expect("memory");
    }
    for n in (0..RECORDS).step_by(3) {
        cache.insert(&key(n), &value(n, 9000)).expect("room");
        let _ = cache.remove(&key(n + 1)).expect("room");
    }
    cache.spill().expect("a store that works");
    cache.settle().expect("a store that works");
    let held = cache.stats().bytes_held;
    assert!(held <= MEMORY_BYTES * 3 / 2, "{held} bytes are held");
    if closes_then {
        cache.close().expect("a store that works");
    } else {
        drop(cache);
    }
    let cache = open(directory.path(), codec);
    for n in 0..RECORDS {
        let found = cache.get_with(&key(n), |found| match n % 3 {
            0 => assert!(
                ignores || found == value(n, 9000),
                "key {n} has another value than it was given"
            ),
            1 => assert!(ignores, "key {n} was removed"),
            _ => was_there(n, found),
        });
        found.expect("memory");
    }
    Ok(())
}
