//! The victim cache under Miri: its table, its regions and its pins, with one thread and with several.
//!
//! ```text
//! cargo +nightly miri test -p leafpress --no-default-features --test miri victim::
//! ```

use std::convert::Infallible;
use std::thread;

use leafpress::Codec;
use leafpress_pages::victim::{Insertion, OnHit, RawShare, VictimCache};

const CAPACITY_BYTES: usize = 800 << 10;

/// Returns a block that contains its id; all but an eighth of it is compressible.
fn block(id: u64, version: u64) -> Vec<u8> {
    let mut bytes = vec![id as u8; 1000 + id as usize % 7 * 500];
    let noise = bytes.len() / 8;
    fastrand::Rng::with_seed(id ^ version << 32).fill(&mut bytes[8..8 + noise]);
    bytes[..8].copy_from_slice(&version.to_le_bytes());
    bytes
}

fn is_of(id: u64, bytes: &[u8]) -> bool {
    let version = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    bytes == block(id, version)
}

fn cache(codec: &str, raw_percent: u8) -> VictimCache {
    VictimCache::builder()
        .memory(CAPACITY_BYTES)
        .codec(codec.parse::<Codec>().unwrap())
        .share(RawShare::Fixed { raw_percent })
        .shard_bits(0)
        .dictionary_bytes(0)
        .build()
        .unwrap()
}

fn name(id: u64) -> [u8; 8] {
    id.to_le_bytes()
}

#[test]
fn blocks_come_leave_and_are_replaced() {
    for (codec, raw_percent) in [("none", 100), ("lz4", 0), ("lz4", 40)] {
        let cache = cache(codec, raw_percent);
        for turn in 0..60_u64 {
            let id = turn * 7 % 40;
            match turn % 6 {
                4 => drop(cache.remove(&name(id))),
                5 => assert!(cache.take(&name(id)).is_none_or(|bytes| is_of(id, &bytes))),
                _ => drop(cache.insert(&name(id), &block(id, turn))),
            }
            for _ in 0..2 {
                let known = turn % 3;
                assert!(cache.get(&name(known)).is_none_or(|bytes| is_of(known, &bytes)));
            }
        }
        cache.validate().unwrap();
        let stats = cache.stats();
        assert!(stats.hits > 0 && stats.replaced > 0 && stats.erased > 0, "{stats:?}");
        // First everything beyond half of the memory is evicted, and then the rest.
        cache.set_memory(CAPACITY_BYTES / 2);
        cache.validate().unwrap();
        cache.set_memory(0);
        assert_eq!(cache.stats().entries, 0);
        cache.set_memory(CAPACITY_BYTES);
        assert_eq!(cache.insert(b"again", &block(1, 1)), Insertion::Inserted);
    }
}

#[test]
fn a_block_that_is_being_read_outlasts_what_becomes_of_it() {
    let cache = cache("none", 100);
    for on_hit in [OnHit::Keep, OnHit::Remove, OnHit::Promote] {
        cache.insert(b"read", &block(3, 1));
        let read = cache.read(b"read", on_hit, |found| {
            cache.remove(b"read");
            cache.insert(b"read", &block(3, 2));
            cache.set_memory(0);
            Ok::<_, Infallible>(found.bytes == block(3, 1))
        });
        assert_eq!(read, Some(Ok(true)));
        assert_eq!(cache.stats().entries, 0);
        cache.set_memory(CAPACITY_BYTES);
    }
    // A block with a flipped bit is a miss for every reader.
    cache.insert(b"flipped", &block(4, 1));
    assert!(cache.flip_bit(b"flipped", 100));
    assert_eq!(cache.get(b"flipped"), None);
    assert_eq!(cache.stats().corrupt, 1);
    cache.validate().unwrap();
}

#[test]
fn threads_that_put_take_and_shrink() {
    for (codec, raw_percent) in [("none", 100), ("lz4", 30)] {
        let cache = cache(codec, raw_percent);
        thread::scope(|scope| {
            for thread in 0..2_u64 {
                let cache = &cache;
                scope.spawn(move || {
                    for turn in 0..20 {
                        let id = (turn * 3 + thread) % 8;
                        cache.insert(&name(id), &block(id, turn));
                        let on_hit = if turn % 4 == 3 { OnHit::Remove } else { OnHit::Keep };
                        let read = cache.read(&name(id ^ 1), on_hit, |found| {
                            Ok::<_, Infallible>(is_of(id ^ 1, found.bytes))
                        });
                        assert_ne!(read, Some(Ok(false)));
                    }
                });
            }
            scope.spawn(|| {
                for part in [2, 1, 4, 1] {
                    cache.set_memory(CAPACITY_BYTES / part);
                }
            });
        });
        cache.validate().unwrap();
    }
}
