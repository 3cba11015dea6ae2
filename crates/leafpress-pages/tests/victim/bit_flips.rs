//! Bit flips in the blocks of a victim cache: the lookup is a miss, the flip is counted, and no wrong byte is returned.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use leafpress_codec::{Codec, CodecError, Dictionary, Engine, EngineOptions};
use leafpress_pages::victim::{Insertion, OnHit, RawShare, VictimCache};

const BLOCK_BYTES: usize = 3000;

fn text(seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let words = (0..BLOCK_BYTES / 10).map(|_| format!("customer-{:03}:active;", random.u16(0..1000)));
    let mut bytes = words.collect::<String>().into_bytes();
    bytes.truncate(BLOCK_BYTES);
    bytes
}

fn noise(seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..BLOCK_BYTES).map(|_| random.u8(..)).collect()
}

/// The address of a block, and its length.
#[derive(Debug, Clone, Copy)]
struct At {
    address: usize,
    bytes: usize,
}

impl At {
    fn of(bytes: &[u8]) -> Self {
        Self {
            address: bytes.as_ptr().expose_provenance(),
            bytes: bytes.len(),
        }
    }

    /// Flips a bit.
    ///
    /// # Safety
    /// The block must still be stored there, without concurrent readers.
    unsafe fn flip(self, bit: usize) {
        let bit = bit % (self.bytes * 8);
        let byte = std::ptr::with_exposed_provenance_mut::<u8>(self.address + bit / 8);
        // SAFETY: the byte belongs to the block, and the caller guarantees that no other thread accesses it.
        unsafe { byte.write_volatile(byte.read_volatile() ^ 1 << (bit % 8)) }
    }
}

/// An engine that records the address of the last block that it decoded.
#[derive(Debug)]
struct AddressRecorder {
    engine: Arc<dyn Engine>,
    last: Mutex<Option<At>>,
    decoded: AtomicU64,
}

impl Engine for AddressRecorder {
    fn codec(&self) -> Codec {
        self.engine.codec()
    }

    fn supports_dictionary(&self) -> bool {
        self.engine.supports_dictionary()
    }

    fn compress(&self, raw: &[u8], dictionary: Option<&Dictionary>, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        self.engine.compress(raw, dictionary, out)
    }

    fn decompress(&self, block: &[u8], dictionary: Option<&Dictionary>, raw: &mut [u8]) -> Result<(), CodecError> {
        *self.last.lock().unwrap() = Some(At::of(block));
        self.decoded.fetch_add(1, SeqCst);
        self.engine.decompress(block, dictionary, raw)
    }
}

fn cache(codec: &str) -> (VictimCache, Arc<AddressRecorder>) {
    let codec: Codec = codec.parse().unwrap();
    let engine = Arc::new(AddressRecorder {
        engine: codec.open(&EngineOptions::default()).unwrap(),
        last: Mutex::new(None),
        decoded: AtomicU64::new(0),
    });
    // Blocks are not moved: there is room for all, and none is made raw because of its lookups.
    let cache = VictimCache::builder()
        .memory(8 << 20)
        .engine(engine.clone())
        .dictionary_bytes(0)
        .share(RawShare::Fixed { raw_percent: 0 })
        .build()
        .unwrap();
    (cache, engine)
}

/// Checks that the block under `key`, the `flipped`th with a flipped bit, is detected.
fn is_found_out(cache: &VictimCache, key: &[u8], on_hit: OnHit, flipped: u64) {
    let before = cache.stats();
    let read = cache.read(key, on_hit, |found| Ok::<_, ()>(found.bytes.to_vec()));
    assert!(read.is_none(), "a flipped bit was not noticed");
    assert_eq!(cache.get(key), None, "the block is gone");
    let stats = cache.stats();
    assert_eq!(stats.corrupt, flipped);
    assert_eq!((stats.hits, stats.entries), (before.hits, before.entries - 1));
    assert_eq!(stats.misses, before.misses + 2);
    cache.validate().unwrap();
}

const TAKINGS: [OnHit; 3] = [OnHit::Keep, OnHit::Remove, OnHit::Promote];

#[test]
fn a_bit_that_flips_in_a_compressed_block_is_a_miss() {
    for codec in ["lz4", "zstd:1", "deflate:1"] {
        let (cache, engine) = cache(codec);
        let mut random = fastrand::Rng::with_seed(7);
        for key in 0..300_u64 {
            assert_eq!(cache.insert(&key.to_be_bytes(), &text(key)), Insertion::Inserted);
        }
        assert_eq!(cache.stats().compressed_entries, 300);
        for key in 0..300_u64 {
            assert!(cache.get(&key.to_be_bytes()).unwrap() == text(key));
            let at = engine.last.lock().unwrap().take().expect("it was decoded");
            assert!(at.bytes < BLOCK_BYTES);
            // The first and the last bit, and others.
            let bit = match key {
                0 => 0,
                1 => at.bytes * 8 - 1,
                _ => random.usize(..),
            };
            // SAFETY: the cache still stores what it decoded, and only this thread reads it.
            unsafe { at.flip(bit) };
            let decoded = engine.decoded.load(SeqCst);
            is_found_out(&cache, &key.to_be_bytes(), TAKINGS[key as usize % 3], key + 1);
            assert_eq!(engine.decoded.load(SeqCst), decoded, "a decoder saw wrong bytes");
        }
        // A reinserted block is valid.
        assert_eq!(cache.insert(b"again", &text(1)), Insertion::Inserted);
        assert!(cache.get(b"again").unwrap() == text(1));
    }
}

#[test]
fn a_bit_that_flips_in_a_raw_block_is_a_miss() {
    let (cache, engine) = cache("zstd:1");
    let mut random = fastrand::Rng::with_seed(8);
    for key in 0..300_u64 {
        assert_eq!(cache.insert(&key.to_be_bytes(), &noise(key)), Insertion::Inserted);
    }
    for key in 0..300_u64 {
        let read = cache.read(&key.to_be_bytes(), OnHit::Keep, |found| {
            assert!(found.bytes == noise(key));
            Ok::<_, ()>(At::of(found.bytes))
        });
        let at = read.unwrap().unwrap();
        // SAFETY: a raw block is read in place, and only this thread reads it.
        unsafe { at.flip(random.usize(..)) };
        is_found_out(&cache, &key.to_be_bytes(), TAKINGS[key as usize % 3], key + 1);
    }
    assert_eq!(engine.decoded.load(SeqCst), 0);
}

/// The neighbours of a block with a flipped bit are unchanged.
#[test]
fn a_flipped_bit_harms_no_other_block() {
    let (cache, engine) = cache("lz4");
    for key in 0..500_u64 {
        assert_eq!(cache.insert(&key.to_be_bytes(), &text(key)), Insertion::Inserted);
    }
    for key in (0..500_u64).step_by(5) {
        assert!(cache.get(&key.to_be_bytes()).is_some());
        let at = engine.last.lock().unwrap().take().expect("it was decoded");
        // SAFETY: a raw block is read in place, and only this thread reads it.
        unsafe { at.flip(key as usize * 31) };
    }
    for key in 0..500_u64 {
        let found = cache.get(&key.to_be_bytes());
        assert_eq!(found.is_none(), key.is_multiple_of(5));
        assert!(found.is_none_or(|found| found == text(key)), "a wrong byte");
    }
    let stats = cache.stats();
    assert_eq!((stats.corrupt, stats.entries), (100, 400));
}
