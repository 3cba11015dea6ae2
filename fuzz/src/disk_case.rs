//! The image of a closed cache, damaged, and opened by the next cache.
//!
//! With checksums, the next cache finds the last records, or nothing. Without them it may find anything, since wrong
//! bytes that have the right checksum are valid; but it neither fails nor exceeds its memory.

use std::sync::{Arc, OnceLock};

use leafpress::Cache;
use leafpress::Codec;
use leafpress::cache::{Disk, fuzz};
use leafpress::store::{MemoryStore, PageStore};
use libfuzzer_sys::arbitrary::{Result, Unstructured};

pub(crate) const BLOCK_BYTES: usize = 4096;
pub(crate) const DISK_BYTES: u64 = 4 << 20;
pub(crate) const MEMORY_BYTES: u64 = 4 << 20;
pub(crate) const RECORDS: u64 = 1500;

pub(crate) fn key(n: u64) -> Vec<u8> {
    format!("key {n:06}").into_bytes()
}

/// Returns a value: some are long, and half of the bytes are compressible.
pub(crate) fn value(n: u64, version: u64) -> Vec<u8> {
    let len = match n % 50 {
        0 => 9000,
        1..10 => 900,
        _ => 150,
    };
    let noise = (0..len / 2).map(|at: u64| ((n * 7919 + at * at * 31 + version) >> 3) as u8);
    noise.chain((0..len / 2).map(|_| b'x')).collect()
}

fn disk(store: Arc<MemoryStore>, codec: Codec) -> Disk {
    // The header that identifies the store's owner may be damaged.
    Disk::store(store, DISK_BYTES).codec(codec).overwrite(true)
}

fn open(store: Arc<MemoryStore>, codec: Codec) -> Cache {
    let builder = Cache::builder().memory(MEMORY_BYTES).codec(Codec::None);
    builder
        .disk(disk(store, codec))
        .build()
        .expect("damage does not prevent opening")
}

/// The written blocks of a closed cache.
type Image = Vec<(u64, Box<[u8]>)>;

fn image_of(store: &MemoryStore) -> Image {
    let read = |page| {
        let mut bytes = vec![0; store.page_bytes(page).ok()?].into_boxed_slice();
        store.read(page, &mut bytes).ok()?;
        Some((page, bytes))
    };
    (0..store.len()).filter_map(read).collect()
}

/// The images of a cache and of its successor.
struct Images {
    first: Image,
    second: Image,
}

fn images(ignores: bool, codec: Codec) -> Images {
    fuzz::ignore_checksums(ignores);
    let store = Arc::new(MemoryStore::new(BLOCK_BYTES).expect("a length"));
    let fill = |version| {
        let cache = open(store.clone(), codec);
        (0..RECORDS).for_each(|n| cache.insert(&key(n), &value(n, version)).expect("room"));
        cache.close().expect("a store that works");
        image_of(&store)
    };
    Images {
        first: fill(1),
        second: fill(2),
    }
}

fn images_of(ignores: bool, is_packed: bool) -> (&'static Images, Codec) {
    static IMAGES: [OnceLock<Images>; 4] = [const { OnceLock::new() }; 4];
    let codec = if is_packed {
        Codec::Zstd { level: 1 }
    } else {
        Codec::None
    };
    let index = usize::from(ignores) * 2 + usize::from(is_packed);
    (IMAGES[index].get_or_init(|| images(ignores, codec)), codec)
}

/// Applies one damage to an image.
fn damage(u: &mut Unstructured<'_>, image: &mut Image, older: &Image) -> Result<()> {
    let last = image.len() - 1;
    // The structures that locate all others are at both ends.
    let at = match u.int_in_range(0..=3)? {
        0 => 0,
        1 => last - u.int_in_range(0..=last.min(40))?,
        _ => u.int_in_range(0..=last)?,
    };
    match u.int_in_range(0..=6)? {
        0 => {
            let byte = u.int_in_range(0..=BLOCK_BYTES - 1)?;
            image[at].1[byte] ^= 1 << u.int_in_range(0..=7)?;
        }
        1 => {
            let byte = u.int_in_range(0..=200)?;
            image[at].1[byte] = u.arbitrary()?;
        }
        2 => {
            let byte = 4 * u.int_in_range(0..=60)?;
            let number: u32 = u.arbitrary()?;
            image[at].1[byte..byte + 4].copy_from_slice(&number.to_le_bytes());
        }
        3 => image[at].1.fill(u.arbitrary()?),
        4 => {
            let from = u.int_in_range(0..=last)?;
            image[at].1 = image[from].1.clone();
        }
        5 => {
            let from = u.int_in_range(0..=older.len() - 1)?;
            image[at].1 = older[from].1.clone();
        }
        _ => image.truncate(at.max(1)),
    }
    Ok(())
}

/// Damages a cache's image as the input determines, opens it, and checks its content.
pub fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let (ignores, is_packed, is_older) = (u.arbitrary()?, u.arbitrary()?, u.ratio(1, 8)?);
    let (images, codec) = images_of(ignores, is_packed);
    fuzz::ignore_checksums(ignores);
    let (base, other, version) = if is_older {
        (&images.first, &images.second, 1)
    } else {
        (&images.second, &images.first, 2)
    };
    let mut image = base.clone();
    for _ in 0..u.int_in_range(1..=24)? {
        damage(u, &mut image, other)?;
    }
    let store = Arc::new(MemoryStore::new(BLOCK_BYTES).expect("a length"));
    for (page, bytes) in &image {
        store.write(*page, bytes).expect("room");
    }
    let is_right = |n: u64, version: u64, found: &[u8]| {
        assert!(ignores || found == value(n, version), "key {n} has another value");
    };
    let cache = open(store.clone(), codec);
    for n in (0..RECORDS).step_by(7) {
        cache
            .get_with(&key(n), |found| is_right(n, version, found))
            .expect("memory");
    }
    for n in (0..RECORDS).step_by(3) {
        cache.insert(&key(n), &value(n, 3)).expect("room");
        let _ = cache.remove(&key(n + 1)).expect("room");
    }
    cache.settle().expect("a store that works");
    let held = cache.stats().bytes_held;
    assert!(held <= MEMORY_BYTES * 3 / 2, "{held} bytes are held");
    cache.close().expect("a store that works");
    let cache = open(store, codec);
    for n in 0..RECORDS {
        let is_there = cache.get_with(&key(n), |found| match n % 3 {
            0 => is_right(n, 3, found),
            1 => assert!(ignores, "key {n} was removed"),
            _ => is_right(n, version, found),
        });
        is_there.expect("memory");
    }
    Ok(())
}
