//! What the victim cache lets in and what leaves.

use leafpress::victim::{Insertion, VictimCache};

fn block(key: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(key);
    let text = (0..300).map(|_| format!("{:05} some text;", random.u16(..)));
    text.collect::<String>().into_bytes()
}

/// What RocksDB does with a block that is wanted: looks here, and on a miss reads it and offers it when it leaves the block cache.
fn want(cache: &VictimCache, key: u64) -> bool {
    let found = cache.get(&key.to_be_bytes());
    if let Some(found) = &found {
        assert!(*found == block(key));
    } else {
        cache.insert(&key.to_be_bytes(), &block(key));
    }
    found.is_some()
}

fn hit_ratio(cache: &VictimCache, keys: std::ops::Range<u64>) -> f64 {
    let hits = keys.clone().filter(|&key| want(cache, key)).count();
    hits as f64 / (keys.end - keys.start) as f64
}

#[test]
fn a_scan_does_not_wipe_what_is_hot() {
    // As below: a dictionary that comes late, during the scan, makes room for it.
    let cache = VictimCache::builder(2 << 20)
        .codec("lz4".parse().unwrap())
        .dictionary_bytes(0)
        .build()
        .unwrap();
    for _ in 0..6 {
        hit_ratio(&cache, 0..300);
    }
    let before = hit_ratio(&cache, 0..300);
    assert!(before > 0.99, "{before}");
    hit_ratio(&cache, 10_000..16_000);
    let after = hit_ratio(&cache, 0..300);
    assert!(after > 0.95, "{after}");
    assert!(cache.stats().rejected > 3_000);
}

#[test]
fn without_admission_a_scan_passes_through() {
    let cache = VictimCache::builder(2 << 20).admission(false).build().unwrap();
    hit_ratio(&cache, 0..300);
    hit_ratio(&cache, 10_000..16_000);
    let stats = cache.stats();
    assert_eq!(stats.rejected, 0);
    assert!(stats.bytes_held <= stats.capacity_bytes);
}

#[test]
fn what_becomes_hot_gets_in() {
    let cache = VictimCache::builder(2 << 20)
        .codec("lz4".parse().unwrap())
        .build()
        .unwrap();
    for _ in 0..6 {
        hit_ratio(&cache, 0..400);
    }
    for _ in 0..60 {
        hit_ratio(&cache, 1000..1400);
    }
    let now = hit_ratio(&cache, 1000..1400);
    assert!(now > 0.9, "{now}: {:?}", cache.stats());
}

#[test]
fn a_rejected_block_is_not_asked_for_its_bytes() {
    // A dictionary that comes late makes room, and where there is room everything is let in.
    let cache = VictimCache::builder(1 << 20).dictionary_bytes(0).build().unwrap();
    for _ in 0..5 {
        hit_ratio(&cache, 0..2_000);
    }
    let stats = cache.stats();
    assert!(stats.bytes_held > stats.capacity_bytes / 10 * 9, "{stats:?}");
    assert!(stats.hits > 300, "{stats:?}");
    let mut asked = 0;
    for key in 50_000..50_200_u64 {
        let new = leafpress::victim::NewBlock::new(5000);
        let insertion = cache.insert_with(&key.to_be_bytes(), &new, |_| {
            asked += 1;
            Err::<(), ()>(())
        });
        assert!(matches!(insertion, Ok(Insertion::Rejected) | Err(())));
    }
    assert!(asked < 20, "{asked}");
}
