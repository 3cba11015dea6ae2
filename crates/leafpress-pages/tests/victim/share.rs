//! The share of the victim cache's memory for compressible blocks that are kept raw.

use leafpress_pages::victim::{NewBlock, OnHit, RawShare, VictimCache, VictimError, VictimStats};

fn block(key: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(key);
    let text = (0..210).map(|_| format!("{:05} some text;", random.u16(..)));
    let mut bytes = text.collect::<String>().into_bytes();
    bytes.truncate(4000);
    bytes
}

fn cache(capacity_bytes: usize, codec: &str, share: RawShare) -> VictimCache {
    VictimCache::builder()
        .memory(capacity_bytes)
        .codec(codec.parse().unwrap())
        .dictionary_bytes(0)
        .share(share)
        .build()
        .unwrap()
}

/// Looks a block up, and inserts it on a miss.
fn want(cache: &VictimCache, key: u64) {
    match cache.get(&key.to_be_bytes()) {
        Some(found) => assert!(found == block(key)),
        None => drop(cache.insert(&key.to_be_bytes(), &block(key))),
    }
}

fn worked(share: RawShare) -> VictimStats {
    let cache = cache(4 << 20, "lz4", share);
    let mut random = fastrand::Rng::with_seed(3);
    for step in 0..30_000 {
        want(&cache, (random.f64().powi(3) * 4_000.0) as u64);
        if step % 1_000 == 0 {
            cache.validate().unwrap();
        }
    }
    let stats = cache.stats();
    assert!(stats.bytes_held <= stats.budget_bytes, "{stats:?}");
    assert_eq!(stats.hits, stats.raw_hits + stats.compressed_hits);
    assert_eq!(stats.corrupt, 0);
    assert!(
        stats.miss_ns > 0 && stats.decode_ns > 0 && stats.compress_ns > 0,
        "{stats:?}"
    );
    stats
}

#[test]
fn with_no_share_everything_is_compressed() {
    let stats = worked(RawShare::Fixed { raw_percent: 0 });
    assert_eq!(stats.entries, stats.compressed_entries);
    assert_eq!((stats.kept_raw_entries, stats.raw_hits, stats.restored), (0, 0, 0));
    assert_eq!(stats.raw_share_pct, 0.0);
}

#[test]
fn with_all_the_share_hardly_anything_is_compressed() {
    let stats = worked(RawShare::Fixed { raw_percent: 100 });
    // Some blocks are compressed as probes.
    assert!(stats.compressed_entries * 20 < stats.entries, "{stats:?}");
    assert!(stats.compressed_entries > 0, "{stats:?}");
    assert!(stats.raw_hits > 10 * stats.compressed_hits, "{stats:?}");
    assert_eq!((stats.raw_share_pct, stats.compressed_later), (100.0, 0));
}

#[test]
fn a_share_between_is_kept_and_has_the_hottest_blocks() {
    for raw_percent in [10, 40, 70] {
        let stats = worked(RawShare::Fixed { raw_percent });
        let part = stats.kept_raw_bytes as f64 / stats.budget_bytes as f64 * 100.0;
        let wanted = f64::from(raw_percent);
        assert!(part <= wanted + 1.0 && part > wanted * 0.85, "{part} for {stats:?}");
        assert!(stats.compressed_later > 100 && stats.restored > 0, "{stats:?}");
        let hits = stats.raw_hits as f64 / stats.kept_raw_entries as f64;
        let others = stats.compressed_hits as f64 / stats.compressed_entries as f64;
        assert!(hits > 1.5 * others, "{hits} and {others} for {raw_percent}");
    }
}

#[test]
fn more_is_found_the_more_is_compressed() {
    let hits: Vec<u64> = [0, 50, 100]
        .into_iter()
        .map(|raw_percent| worked(RawShare::Fixed { raw_percent }).hits)
        .collect();
    assert!(hits[0] > hits[1] && hits[1] > hits[2], "{hits:?}");
}

#[test]
fn the_share_finds_that_everything_fits_raw() {
    let cache = cache(16 << 20, "zstd:3", RawShare::Adaptive);
    assert_eq!(cache.stats().raw_share_pct, 0.0);
    let mut random = fastrand::Rng::with_seed(9);
    for _ in 0..400 {
        for _ in 0..2_000 {
            want(&cache, random.u64(0..2_000));
        }
        cache.settle().unwrap();
        if cache.stats().compressed_entries == 0 {
            break;
        }
    }
    let stats = cache.stats();
    // A larger share would gain nothing.
    assert!(stats.compressed_entries == 0 && stats.raw_share_pct > 40.0, "{stats:?}");
    assert!(stats.deciding_ns > 0);
    cache.validate().unwrap();
    // New blocks are raw.
    for key in 2_000..2_200 {
        want(&cache, key);
    }
    assert!(cache.stats().entries - cache.stats().compressed_entries > 150);
}

#[test]
fn incompressible_blocks_do_not_count_towards_the_share() {
    let cache = cache(4 << 20, "zstd:1", RawShare::Fixed { raw_percent: 20 });
    let mut random = fastrand::Rng::with_seed(1);
    for key in 0..2_000_u64 {
        let bytes: Vec<u8> = (0..4096).map(|_| random.u8(..)).collect();
        let mut new = NewBlock::new(4096);
        new.compress = key % 2 == 0;
        let inserted = cache.insert_with(&key.to_be_bytes(), &new, |raw| {
            raw.copy_from_slice(&bytes);
            Ok::<_, ()>(())
        });
        inserted.unwrap();
    }
    let stats = cache.stats();
    assert_eq!(stats.compressed_entries, 0);
    // The rest is full of such blocks too.
    assert!(stats.kept_raw_entries < stats.entries / 3, "{stats:?}");
    assert!(stats.entries > 800, "{stats:?}");
    cache.validate().unwrap();
}

#[test]
fn a_corrupt_block_is_not_compressed_into_a_good_one() {
    let cache = cache(2 << 20, "lz4", RawShare::Fixed { raw_percent: 30 });
    for key in 0..60 {
        cache.insert(&u64::to_be_bytes(key), &block(key));
        while !cache.flip_bit(&key.to_be_bytes(), 777) {
            // A thread that trains a dictionary reads it.
            assert_eq!(cache.stats().entries, key + 1);
            std::thread::yield_now();
        }
    }
    // They exceed the share.
    for key in 60..4_000 {
        cache.insert(&u64::to_be_bytes(key), &block(key));
    }
    let found = (0..60)
        .filter(|key| cache.get(&u64::to_be_bytes(*key)).is_some())
        .count();
    assert_eq!(found, 0);
    assert!(cache.stats().corrupt > 0);
    cache.validate().unwrap();
}

#[test]
fn a_codec_that_compresses_nothing_has_all_the_share() {
    let stats = cache(1 << 20, "none", RawShare::Adaptive).stats();
    assert_eq!(stats.raw_share_pct, 100.0);
}

#[test]
fn a_share_out_of_bounds_is_named() {
    let error = VictimCache::builder()
        .memory(1 << 20)
        .share(RawShare::Fixed { raw_percent: 101 })
        .build()
        .map(drop)
        .unwrap_err();
    assert!(matches!(error, VictimError::Option { .. }), "{error}");
    assert!(error.to_string().contains("101%"), "{error}");
}

#[test]
fn promoted_blocks_are_not_compressed_again_and_leave_first() {
    for share in [RawShare::Fixed { raw_percent: 0 }, RawShare::Fixed { raw_percent: 30 }] {
        let cache = cache(2 << 20, "lz4", share);
        let put = |key: u64| {
            let mut new = NewBlock::new(block(key).len());
            new.unchanging = true;
            let mut was_filled = false;
            let inserted = cache.insert_with(&key.to_be_bytes(), &new, |raw| {
                was_filled = true;
                raw.copy_from_slice(&block(key));
                Ok::<_, ()>(())
            });
            assert!(inserted.is_ok());
            was_filled
        };
        let read = |key: u64, on_hit| {
            cache.read(&key.to_be_bytes(), on_hit, |found| {
                assert!(found.bytes == block(key));
                Ok::<_, ()>(())
            })
        };
        assert!(put(1));
        assert!(read(1, OnHit::Promote).is_some());
        assert!(!put(1), "it is still here");
        assert_eq!(
            (cache.stats().returned, cache.stats().inserted, cache.stats().taken),
            (1, 1, 1)
        );
        // Half of some blocks are promoted, and others are inserted.
        for key in 0..700 {
            put(key);
        }
        let before = cache.stats();
        for key in 0..700 {
            let on_hit = if key % 2 == 0 { OnHit::Promote } else { OnHit::Keep };
            let _ = read(key, on_hit);
        }
        for key in 1_000..1_700 {
            // They have the same access frequency.
            for _ in 0..3 {
                let _ = read(key, OnHit::Keep);
            }
            put(key);
        }
        let gone = |rest: u64| {
            let keys = (0..700).filter(|key| key % 2 == rest);
            keys.filter(|&key| cache.get(&key.to_be_bytes()).is_none()).count()
        };
        let (promoted, kept) = (gone(0), gone(1));
        assert!(before.entries > 350, "{before:?}");
        assert!(
            promoted > 50 && promoted > 2 * kept,
            "{promoted} of those promoted, {kept} of the others: {:?}",
            cache.stats()
        );
        cache.validate().unwrap();
    }
}

#[test]
fn a_block_of_another_length_or_tag_is_another_block() {
    let cache = cache(2 << 20, "lz4", RawShare::Adaptive);
    let put = |bytes: &[u8], tag| {
        let mut new = NewBlock::new(bytes.len());
        new.tag = tag;
        new.unchanging = true;
        let fill = |raw: &mut [u8]| {
            raw.copy_from_slice(bytes);
            Ok::<_, ()>(())
        };
        cache.insert_with(b"key", &new, fill).unwrap();
        cache.read(b"key", OnHit::Keep, |found| {
            Ok::<_, ()>((found.bytes.to_vec(), found.tag))
        })
    };
    assert_eq!(put(b"one", 1), Some(Ok((b"one".to_vec(), 1))));
    assert_eq!(put(b"three", 1), Some(Ok((b"three".to_vec(), 1))));
    assert_eq!(put(b"THREE", 2), Some(Ok((b"THREE".to_vec(), 2))));
    assert_eq!(put(b"other", 2), Some(Ok((b"other".to_vec(), 2))));
}
