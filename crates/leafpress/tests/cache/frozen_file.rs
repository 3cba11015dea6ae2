//! Files that an earlier build wrote when it closed a cache are read, for as long as their format has the same version.
//!
//! The images are sealed blocks of a whole file: `images/disk-VERSION-CODEC.sealed`. They are written once for each
//! version of the format. Where the version changes, the test says so, and `UPDATE_GOLDEN=1` writes images of the new
//! one; those of the old one are removed, since another version counts as empty.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use leafpress::Cache;
use leafpress::cache::{Disk, InsertOptions, ManualClock};
use leafpress::codec::Codec;
use leafpress::codec::sealed::{Sealer, unseal};

use crate::small;

/// The version of the images.
const VERSION: u32 = 4;
/// Where a file has the version of its format.
const VERSION_AT: usize = 24;
/// The codecs of the images' pages, each with a cache of another codec.
const IMAGES: [(Codec, Codec); 3] = [
    (Codec::None, Codec::OnPair { bits: 12 }),
    (Codec::Lz4 { acceleration: 1 }, Codec::Lz4 { acceleration: 1 }),
    (Codec::Zstd { level: 3 }, Codec::OnPairHuffman),
];
const DISK_BYTES: u64 = 4 << 20;
const RECORDS: u64 = 300;
/// When the images were written, since 1970.
const WRITTEN: Duration = Duration::from_secs(1_900_000_000);
const HOUR: Duration = Duration::from_secs(3600);

fn image(of_pages: Codec) -> PathBuf {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cache/images");
    directory.join(format!("disk-{VERSION}-{}.sealed", of_pages.family()))
}

fn key(n: u64) -> String {
    format!("item:{n:05}")
}

/// One value in 100 is stored outside the leaves of a tree.
fn value(n: u64, version: u64) -> Vec<u8> {
    let text = format!("{{\"id\":{n},\"name\":\"record {n}\",\"state\":\"active\",\"version\":{version}}}");
    text.repeat(if n % 100 == 42 { 50 } else { 1 }).into_bytes()
}

/// What is done with a record before the cache is closed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Stays,
    Expires,
    IsReplaced,
    IsRemoved,
    LosesItsTag,
}

fn fate(n: u64) -> Fate {
    match n % 10 {
        3 => Fate::Expires,
        5 => Fate::IsReplaced,
        7 => Fate::IsRemoved,
        9 => Fate::LosesItsTag,
        _ => Fate::Stays,
    }
}

/// Returns the value that a record has at this time after the image was written.
fn expected(n: u64, passed: Duration) -> Option<Vec<u8>> {
    match fate(n) {
        Fate::Stays => Some(value(n, 1)),
        Fate::Expires => (passed < HOUR).then(|| value(n, 1)),
        Fate::IsReplaced => Some(value(n, 2)),
        Fate::IsRemoved | Fate::LosesItsTag => None,
    }
}

fn open(file: &Path, (of_pages, of_leaves): (Codec, Codec), passed: Duration) -> Cache {
    let clock = Arc::new(ManualClock::new(WRITTEN + passed));
    let disk = Disk::file(file, DISK_BYTES).codec(of_pages);
    small().codec(of_leaves).clock(clock).disk(disk).build().unwrap()
}

/// Writes the file of a closed cache, and returns its bytes.
fn written(file: &Path, codecs: (Codec, Codec)) -> Vec<u8> {
    let cache = open(file, codecs, Duration::ZERO);
    for n in 0..RECORDS {
        let options = match fate(n) {
            Fate::Expires => InsertOptions::ttl(HOUR),
            Fate::LosesItsTag => InsertOptions::default().tag("tag"),
            _ => InsertOptions::default(),
        };
        cache.insert_entry(&key(n), &value(n, 1), options).unwrap();
    }
    // So that what follows is about records on disk.
    cache.spill().unwrap();
    for n in 0..RECORDS {
        match fate(n) {
            Fate::IsReplaced => cache.insert(&key(n), &value(n, 2)).unwrap(),
            Fate::IsRemoved => assert!(cache.remove(&key(n)).unwrap()),
            _ => {}
        }
    }
    cache.invalidate_tag("tag").unwrap();
    cache.close().unwrap();
    std::fs::read(file).unwrap()
}

/// Checks that the file has the records that [`written`] wrote.
fn check(file: &Path, codecs: (Codec, Codec)) {
    let bytes = std::fs::read(file).unwrap();
    for passed in [HOUR / 6, 2 * HOUR] {
        std::fs::write(file, &bytes).unwrap();
        let cache = open(file, codecs, passed);
        let records = cache.stats().disk.unwrap().records;
        assert!(records >= RECORDS * 7 / 10, "{codecs:?}: {records} records");
        for n in 0..RECORDS {
            let found = cache.get(&key(n)).unwrap();
            assert!(found == expected(n, passed), "{codecs:?}, {n}: {found:?}");
        }
        cache.validate().unwrap();
        // They are kept by another close, too.
        cache.close().unwrap();
        let cache = open(file, codecs, passed);
        let is_there = |n: &u64| cache.get(&key(*n)).unwrap() == expected(*n, passed);
        assert_eq!((0..RECORDS).filter(is_there).count() as u64, RECORDS, "{codecs:?}");
    }
}

#[test]
fn files_of_earlier_builds_are_read() {
    let directory = tempfile::tempdir().unwrap();
    for (at, codecs) in IMAGES.into_iter().enumerate() {
        let file = directory.path().join(format!("cache-{at}"));
        let fresh = written(&file, codecs);
        check(&file, codecs);
        let version = u32::from_le_bytes(*fresh[VERSION_AT..].first_chunk().unwrap());
        assert_eq!(
            version, VERSION,
            "the format has another version: change VERSION, and write images with UPDATE_GOLDEN=1"
        );
        let path = image(codecs.0);
        if !path.exists() && std::env::var_os("UPDATE_GOLDEN").is_some() {
            let sealer = Sealer::open(Codec::Zstd { level: 19 }).unwrap();
            std::fs::write(&path, sealer.seal(&fresh, None).unwrap()).unwrap();
        }
        let sealed = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let frozen = unseal(&sealed, &[], DISK_BYTES as usize).unwrap();
        assert_eq!(
            u32::from_le_bytes(*frozen[VERSION_AT..].first_chunk().unwrap()),
            VERSION
        );
        std::fs::write(&file, frozen).unwrap();
        check(&file, codecs);
    }
}
