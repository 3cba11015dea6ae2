//! Blocks of every kind in the victim cache, and faults.

use leafpress_codec::Codec;
use leafpress_pages::victim::{Insertion, MAX_KEY_BYTES, NewBlock, OnHit, VictimCache, VictimError};

fn random_bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..len).map(|_| random.u8(..)).collect()
}

fn text(seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let words = (0..500).map(|_| format!("customer-{:03}:active;", random.u16(0..1000)));
    words.collect::<String>().into_bytes()
}

#[test]
fn lengths_of_every_size_come_back() {
    for codec in ["none", "lz4", "zstd:3", "deflate:1"] {
        let cache = VictimCache::builder()
            .memory(32 << 20)
            .codec(codec.parse::<Codec>().unwrap())
            .build()
            .unwrap();
        for len in [1, 2, 100, 511, 4096, 4097, 65_536, 65_537, 300_000, 1 << 20] {
            for bytes in [random_bytes(len, 1), vec![7; len], text(2).repeat(200)[..len].to_vec()] {
                let key = [bytes[0], codec.len() as u8, (len % 251) as u8];
                assert_eq!(cache.insert(&key, &bytes), Insertion::Inserted, "{codec} {len}");
                assert!(cache.get(&key).unwrap() == bytes, "{codec} {len}");
                cache.validate().unwrap();
            }
        }
        let stats = cache.stats();
        assert!(stats.stored_bytes <= stats.raw_bytes && stats.bytes_held <= stats.budget_bytes);
    }
}

#[test]
fn what_does_not_compress_is_stored_raw() {
    let cache = VictimCache::builder()
        .memory(8 << 20)
        .codec("zstd:1".parse().unwrap())
        .build()
        .unwrap();
    for seed in 0..200 {
        cache.insert(&seed.to_string().into_bytes(), &random_bytes(8192, seed));
    }
    let stats = cache.stats();
    assert_eq!((stats.entries, stats.compressed_entries), (200, 0));
    assert_eq!(stats.raw_bytes, stats.stored_bytes);
}

#[test]
fn what_cannot_be_held_is_refused() {
    let cache = VictimCache::builder().memory(8 << 20).build().unwrap();
    assert_eq!(cache.insert(b"empty", b""), Insertion::NoRoom);
    assert_eq!(cache.insert(b"long", &random_bytes(6 << 20, 1)), Insertion::NoRoom);
    assert_eq!(cache.insert(&[1; MAX_KEY_BYTES + 1], b"block"), Insertion::NoRoom);
    assert_eq!(cache.insert(&[1; MAX_KEY_BYTES], b"block"), Insertion::Inserted);
    assert_eq!(cache.insert(b"", b"block of the empty key"), Insertion::Inserted);
    assert_eq!(cache.get(b"").unwrap(), b"block of the empty key");
    let none = VictimCache::builder().memory(0).build().unwrap();
    assert_eq!(none.insert(b"key", b"block"), Insertion::NoRoom);
    assert_eq!((none.get(b"key"), none.stats().entries), (None, 0));
}

#[test]
fn a_corrupt_block_is_a_miss_and_gone() {
    for codec in ["none", "lz4", "zstd:1", "deflate:1"] {
        let cache = VictimCache::builder()
            .memory(8 << 20)
            .codec(codec.parse::<Codec>().unwrap())
            .build()
            .unwrap();
        for bit in 0..400 {
            cache.insert(b"key", &text(bit));
            while !cache.flip_bit(b"key", (bit as usize).wrapping_mul(7919)) {
                // A thread that trains a dictionary reads it.
                assert_eq!(cache.stats().entries, 1, "{codec}: bit {bit}");
                std::thread::yield_now();
            }
            let found = if bit % 2 == 0 {
                cache.get(b"key")
            } else {
                cache.take(b"key")
            };
            assert!(found.is_none(), "{codec}: bit {bit}");
            assert_eq!(cache.stats().corrupt, bit + 1);
            assert!(!cache.flip_bit(b"key", 0), "it is gone");
        }
        let stats = cache.stats();
        assert_eq!((stats.entries, stats.hits, stats.misses), (0, 0, 400));
        cache.validate().unwrap();
    }
}

#[test]
fn a_block_that_its_reader_fails_on_is_gone() {
    let cache = VictimCache::builder().memory(8 << 20).build().unwrap();
    cache.insert(b"key", &text(1));
    assert_eq!(
        cache.read(b"key", OnHit::Keep, |_| Err::<(), _>("no memory")),
        Some(Err("no memory"))
    );
    assert!(cache.get(b"key").is_none());
    let stats = cache.stats();
    assert_eq!((stats.failed_hits, stats.hits, stats.entries), (1, 0, 0));
}

#[test]
fn does_not_insert_a_block_whose_bytes_cannot_be_read() {
    let cache = VictimCache::builder().memory(8 << 20).build().unwrap();
    let failed = cache.insert_with(b"key", &NewBlock::new(4096), |_| Err("saveto failed"));
    assert_eq!(failed, Err("saveto failed"));
    assert!(cache.get(b"key").is_none());
    assert_eq!(cache.stats().failed_insertions, 1);
}

#[test]
fn a_reader_keeps_a_block_that_leaves() {
    let cache = VictimCache::builder()
        .memory(4 << 20)
        .codec("none".parse().unwrap())
        .build()
        .unwrap();
    let bytes = text(3);
    cache.insert(b"key", &bytes);
    let read = cache.read(b"key", OnHit::Keep, |found| {
        assert!(cache.remove(b"key"));
        assert!(cache.get(b"key").is_none(), "others do not find it any more");
        for key in 0..2_000_u32 {
            cache.insert(&key.to_be_bytes(), &text(u64::from(key)));
        }
        assert!(found.bytes == bytes);
        Ok::<_, ()>(())
    });
    assert_eq!(read, Some(Ok(())));
    cache.validate().unwrap();
}

#[test]
fn a_dictionary_is_trained_and_old_blocks_decode() {
    for codec in ["lz4", "zstd:1"] {
        let cache = VictimCache::builder()
            .memory(16 << 20)
            .codec(codec.parse().unwrap())
            .dictionary_bytes(4096)
            .build()
            .unwrap();
        let mut sizes = Vec::new();
        let count = 1_500_u64;
        for key in 0..count {
            cache.insert(&key.to_be_bytes(), &text(key)[..1000]);
            if key == 30 {
                sizes.push(cache.stats().stored_bytes as f64 / 31.0);
            }
            if key % 50 == 0 {
                cache.settle().unwrap();
            }
        }
        let stats = cache.stats();
        assert!(
            stats.dictionary_versions >= 1 && stats.dictionary_bytes > 4096,
            "{codec}: {stats:?}"
        );
        assert!(stats.bytes_held <= stats.budget_bytes);
        assert!(
            stats.stored_bytes as f64 / (count as f64) < sizes[0] * 0.94,
            "{codec}: {stats:?} after {sizes:?}"
        );
        assert!((0..count).all(|key| {
            cache
                .get(&key.to_be_bytes())
                .is_some_and(|found| found == text(key)[..1000])
        }));
        cache.set_memory(0);
        assert_eq!(
            cache.stats().dictionary_bytes,
            0,
            "dictionaries are freed with the last block that needs them"
        );
    }
}

#[test]
fn options_out_of_bounds_are_named() {
    let fails = |builder: leafpress_pages::victim::VictimBuilder, word: &str| {
        let error = builder.build().map(drop).unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
        error
    };
    let builder = || VictimCache::builder().memory(1 << 20);
    assert!(matches!(
        fails(builder().dictionary_bytes(1), "dictionary_bytes"),
        VictimError::Option { .. }
    ));
    fails(builder().dictionary_bytes(1 << 30), "256 to");
    fails(builder().shard_bits(11), "shard_bits");
    fails(builder().codec(Codec::Zstd { level: 99 }), "zstd");
}
