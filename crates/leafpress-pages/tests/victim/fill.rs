//! The fraction of its memory that the victim cache uses for blocks.

use leafpress_pages::victim::{RawShare, VictimCache};

fn used(lengths: impl Fn(&mut fastrand::Rng) -> usize) -> f64 {
    let cache = VictimCache::builder()
        .memory(8 << 20)
        .codec("none".parse().unwrap())
        .admission(false)
        .build()
        .unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    for key in 0..20_000_u64 {
        let len = lengths(&mut random);
        cache.insert(&key.to_be_bytes(), &vec![key as u8; len]);
    }
    cache.validate().unwrap();
    let stats = cache.stats();
    assert!(stats.bytes_held <= stats.budget_bytes);
    stats.stored_bytes as f64 / stats.budget_bytes as f64
}

#[test]
fn blocks_of_one_length_fill_it() {
    for len in [1000, 1500, 4096, 4176, 5000, 16_384, 20_000] {
        let share = used(|_| len);
        assert!(share > 0.80, "{len}: {share}");
    }
}

#[test]
fn blocks_of_many_lengths_fill_it() {
    let share = used(|random| random.usize(800..2600));
    assert!(share > 0.78, "{share}");
    let share = used(|random| random.usize(3000..9000));
    assert!(share > 0.74, "{share}");
}

#[test]
fn an_empty_cache_takes_little_memory_however_large_it_may_become() {
    for (capacity_bytes, most) in [(64_usize << 20, 1 << 20), (20 << 30, 8 << 20), (1 << 40, 8 << 20)] {
        let cache = VictimCache::builder().memory(capacity_bytes).build().unwrap();
        cache.validate().unwrap();
        let held = cache.stats().bytes_held;
        assert!(held < most, "{held} bytes of {capacity_bytes}");
    }
}

#[test]
fn tables_grow_with_the_entries_and_shrink_with_the_capacity() {
    const ENTRIES: u64 = 60_000;
    for share in [0, 50] {
        let cache = VictimCache::builder()
            .memory(256 << 20)
            .shard_bits(0)
            .share(RawShare::Fixed { raw_percent: share })
            .codec("lz4".parse().unwrap())
            .build()
            .unwrap();
        let block = |key: u64| key.to_le_bytes().repeat(20);
        for key in 0..ENTRIES {
            cache.insert(&key.to_be_bytes(), &block(key));
            if key.is_power_of_two() {
                cache.validate().unwrap();
            }
        }
        cache.validate().unwrap();
        let found = |key: &u64| {
            let found = cache.get(&key.to_be_bytes());
            assert!(found.as_ref().is_none_or(|bytes| *bytes == block(*key)), "{key}");
            found.is_some()
        };
        assert_eq!((0..ENTRIES).filter(found).count() as u64, ENTRIES);
        let grown = cache.stats().bytes_held;
        cache.set_memory(64 << 20);
        cache.validate().unwrap();
        let held = cache.stats().bytes_held;
        assert!(held < grown && held <= 64 << 20, "{held} of {grown}");
        let left = (0..ENTRIES).filter(found).count() as u64;
        assert_eq!(left, cache.stats().entries);
        assert!(left > 0);
        cache.set_memory(256 << 20);
        cache.validate().unwrap();
        assert_eq!((0..ENTRIES).filter(found).count() as u64, left);
    }
}
