//! Admission and eviction of the victim cache.

use leafpress_pages::victim::{Insertion, NewBlock, VictimCache};

fn block(key: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(key);
    let text = (0..300).map(|_| format!("{:05} some text;", random.u16(..)));
    text.collect::<String>().into_bytes()
}

/// The behaviour of RocksDB for a requested block: a lookup here, and on a miss a read and an insertion when the block
/// cache evicts it.
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
    // As below: a dictionary trained late, during the scan, would make room.
    let cache = VictimCache::builder()
        .memory(2 << 20)
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
    let cache = VictimCache::builder().memory(2 << 20).admission(false).build().unwrap();
    hit_ratio(&cache, 0..300);
    hit_ratio(&cache, 10_000..16_000);
    let stats = cache.stats();
    assert_eq!(stats.rejected, 0);
    assert!(stats.bytes_held <= stats.budget_bytes);
}

#[test]
fn what_becomes_hot_gets_in() {
    let cache = VictimCache::builder()
        .memory(2 << 20)
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
fn does_not_read_the_bytes_of_a_rejected_block() {
    // A dictionary trained late makes room, and with free room everything is admitted.
    let cache = VictimCache::builder()
        .memory(1 << 20)
        .dictionary_bytes(0)
        .build()
        .unwrap();
    for _ in 0..5 {
        hit_ratio(&cache, 0..2_000);
    }
    let stats = cache.stats();
    assert!(stats.bytes_held > stats.budget_bytes / 10 * 9, "{stats:?}");
    assert!(stats.hits > 300, "{stats:?}");
    let mut fills = 0;
    for key in 50_000..50_200_u64 {
        let new = leafpress_pages::victim::NewBlock::new(5000);
        let insertion = cache.insert_with(&key.to_be_bytes(), &new, |_| {
            fills += 1;
            Err::<(), ()>(())
        });
        assert!(matches!(insertion, Ok(Insertion::Rejected) | Err(())));
    }
    assert!(fills < 20, "{fills}");
}

/// Incompressible blocks, so that a small cache rejects most of them.
fn noise(random: &mut fastrand::Rng, len: usize) -> Vec<u8> {
    std::iter::repeat_with(|| random.u8(..)).take(len).collect()
}

#[test]
fn a_refused_block_takes_the_older_one_of_its_key_with_it() {
    let cache = VictimCache::builder()
        .memory(2 << 20)
        .codec("lz4".parse().unwrap())
        .dictionary_bytes(0)
        .build()
        .unwrap();
    assert_eq!(cache.insert(b"key", &[1; 4096]), Insertion::Inserted);
    assert_eq!(cache.insert(b"key", b""), Insertion::NoRoom);
    assert_eq!(
        cache.get(b"key"),
        None,
        "an empty block is refused, and the old one is out of date"
    );
    let mut random = fastrand::Rng::with_seed(1);
    for key in 0..1000_u64 {
        cache.insert(&key.to_be_bytes(), &noise(&mut random, 4096));
    }
    // Repeatedly read blocks are worth more than new ones.
    for _ in 0..20 {
        (0..1000_u64).for_each(|key| drop(cache.get(&key.to_be_bytes())));
    }
    let (mut rejected, mut no_room) = (0, 0);
    for key in 0..1000_u64 {
        for len in [4096, 100_000, 900_000, 3 << 20] {
            let new = noise(&mut random, len);
            match cache.insert(&key.to_be_bytes(), &new) {
                Insertion::Inserted => {}
                Insertion::Rejected => rejected += 1,
                _ => no_room += 1,
            }
            if let Some(found) = cache.get(&key.to_be_bytes()) {
                assert!(found == new, "key {key}: an update of {len} bytes left the old block");
            }
        }
    }
    assert!(
        rejected > 100 && no_room > 100,
        "{rejected} rejected, no room for {no_room}"
    );
    cache.validate().unwrap();
}

#[test]
fn a_block_with_unreadable_bytes_removes_the_older_one_of_its_key() {
    let cache = VictimCache::builder().memory(2 << 20).build().unwrap();
    cache.insert(b"key", &[1; 4096]);
    let failed = cache.insert_with(b"key", &NewBlock::new(4096), |_| Err("unreadable"));
    assert_eq!((failed, cache.get(b"key")), (Err("unreadable"), None));
    cache.insert(b"key", &[1; 4096]);
    let panics = |_: &mut [u8]| -> Result<(), ()> { panic!("while it is read") };
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        cache.insert_with(b"key", &NewBlock::new(4096), panics)
    }));
    assert!(panicked.is_err() && cache.get(b"key").is_none());
    // A block that can only be this one is not outdated.
    cache.insert(b"key", &[1; 4096]);
    let mut unchanging = NewBlock::new(4096);
    unchanging.unchanging = true;
    assert_eq!(
        cache.insert_with(b"key", &unchanging, |_| Err("unreadable")),
        Err("unreadable")
    );
    assert_eq!(cache.get(b"key"), Some(vec![1; 4096]));
}
