//! The victim cache compared with a map: whatever it evicts, it returns the last inserted block, and its memory never
//! exceeds the budget.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use leafpress_codec::Codec;
use leafpress_pages::victim::{Insertion, NewBlock, OnHit, RawShare, VictimCache};

/// A block that identifies its key and its version, with a length derived from both; some are compressible.
fn block(key: u64, version: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(key * 31 + version);
    let len = match key % 5 {
        0 => random.usize(1..64),
        1 => random.usize(40_000..90_000),
        _ => random.usize(3000..17_000),
    };
    let mut bytes = format!("{key}:{version}:").into_bytes();
    while bytes.len() < len {
        if key.is_multiple_of(3) {
            bytes.push(random.u8(..));
        } else {
            bytes.extend_from_slice(format!("field{}=value {};", random.u8(0..9), random.u16(0..300)).as_bytes());
        }
    }
    bytes
}

fn within(cache: &VictimCache) {
    let stats = cache.stats();
    assert!(stats.bytes_held <= stats.budget_bytes, "{stats:?}");
    assert!(stats.stored_bytes <= stats.raw_bytes, "{stats:?}");
    cache.validate().unwrap();
}

#[test]
fn one_thread_sees_what_it_put_in() {
    let fixed = |raw_percent| RawShare::Fixed { raw_percent };
    let worlds = [
        ("none", RawShare::Adaptive),
        ("lz4", fixed(0)),
        ("lz4", fixed(40)),
        ("zstd:1", RawShare::Adaptive),
        ("zstd:1", fixed(80)),
        ("deflate:1", fixed(100)),
    ];
    for (codec, share) in worlds {
        let mut random = fastrand::Rng::with_seed(5);
        let (least, most) = (1 << 20, 6 << 20);
        let codec: Codec = codec.parse().unwrap();
        let cache = VictimCache::builder()
            .memory(most)
            .codec(codec)
            .dictionary_bytes(4096)
            .shard_bits(1)
            .share(share)
            .build()
            .unwrap();
        let (mut model, mut version, mut deflated) = (HashMap::<u64, u64>::new(), 0, 0);
        for step in 0..6_000 {
            let key = random.u64(0..900);
            let name = key.to_be_bytes();
            match random.u32(0..1000) {
                0..450 => {
                    version += 1;
                    let bytes = block(key, version);
                    let mut new = NewBlock::new(bytes.len());
                    new.force = random.bool();
                    new.family = (key % 4) as u8;
                    new.tag = key as u16;
                    let fill = |raw: &mut [u8]| -> Result<(), ()> {
                        raw.copy_from_slice(&bytes);
                        Ok(())
                    };
                    match cache.insert_with(&name, &new, fill).unwrap() {
                        Insertion::Inserted => drop(model.insert(key, version)),
                        // The old block stays if the new one is rejected; callers remove what they change.
                        Insertion::Rejected => assert!(!new.force),
                        _ => drop(model.remove(&key)),
                    }
                }
                450..960 => {
                    let take = random.u8(0..4) == 0;
                    let found = cache.read(&name, if take { OnHit::Remove } else { OnHit::Keep }, |found| {
                        assert_eq!(found.tag, key as u16);
                        Ok::<_, ()>(found.bytes.to_vec())
                    });
                    if let Some(found) = found {
                        let version = model.get(&key).unwrap_or_else(|| panic!("{key} was erased"));
                        assert!(found.unwrap() == block(key, *version), "{key} {version} with {codec}");
                        if take {
                            model.remove(&key);
                        }
                    } else {
                        // It was evicted.
                        model.remove(&key);
                    }
                }
                960..984 => {
                    cache.remove(&name);
                    model.remove(&key);
                    assert!(cache.get(&name).is_none());
                }
                984..988 => cache.set_memory(random.usize(least..most)),
                988..990 => cache.set_memory(if random.bool() { 0 } else { random.usize(0..least) }),
                990..994 => {
                    let bytes = random.usize(0..most / 8);
                    cache.shrink_by(bytes);
                    deflated += bytes;
                    let stats = cache.stats();
                    let left = stats.budget_bytes.saturating_sub(deflated as u64);
                    // The cache's own few kilobytes remain whatever the budget is.
                    assert!(stats.bytes_held <= left.max(24 << 10), "{stats:?} with {left}");
                }
                _ => {
                    cache.grow_back(deflated);
                    deflated = 0;
                    cache.set_memory(most);
                }
            }
            if step % 64 == 0 && cache.memory() > 16 << 10 {
                within(&cache);
            }
        }
        let stats = cache.stats();
        assert_eq!(stats.corrupt, 0);
        assert!(stats.hits > 200, "{stats:?}");
    }
}

#[test]
fn threads_see_what_was_put_in() {
    for raw_percent in [None, Some(35), Some(75)] {
        threads(raw_percent.map_or(RawShare::Adaptive, |raw_percent| RawShare::Fixed { raw_percent }));
    }
}

fn threads(share: RawShare) {
    const KEYS: u64 = 400;
    let cache = VictimCache::builder()
        .memory(4 << 20)
        .codec("zstd:1".parse().unwrap())
        .dictionary_bytes(2048)
        .shard_bits(2)
        .share(share)
        .build()
        .unwrap();
    // A key's writer holds its lock, so that a reader that finds a block knows the last version that was begun.
    let begun: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    let writers: Vec<Mutex<()>> = (0..KEYS).map(|_| Mutex::new(())).collect();
    let hits = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (cache, begun, writers, hits) = (&cache, &begun, &writers, &hits);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread);
                for _ in 0..3_000 {
                    let key = random.u64(0..KEYS);
                    let name = key.to_be_bytes();
                    if random.u8(0..3) == 0 {
                        let _writer = writers[key as usize].lock().unwrap();
                        cache.remove(&name);
                        let version = begun[key as usize].fetch_add(1, SeqCst) + 1;
                        cache.insert(&name, &block(key, version));
                    } else {
                        let oldest = begun[key as usize].load(SeqCst);
                        let found = if random.bool() {
                            cache.get(&name)
                        } else {
                            cache.take(&name)
                        };
                        let Some(found) = found else { continue };
                        hits.fetch_add(1, SeqCst);
                        let text = String::from_utf8_lossy(&found[..found.len().min(40)]).into_owned();
                        let mut parts = text.split(':');
                        assert_eq!(parts.next(), Some(key.to_string().as_str()));
                        let version: u64 = parts.next().unwrap().parse().unwrap();
                        assert!(version + 1 >= oldest && version <= begun[key as usize].load(SeqCst));
                        assert!(found == block(key, version));
                    }
                }
            });
        }
        let cache = &cache;
        scope.spawn(move || {
            let mut random = fastrand::Rng::with_seed(77);
            for step in 0..200 {
                cache.set_memory(if step % 10 == 9 {
                    0
                } else {
                    random.usize(64 << 10..6 << 20)
                });
                let stats = cache.stats();
                // Buffers in use by other threads' calls are freed when those end.
                let held = stats.bytes_held - stats.buffer_bytes;
                assert!(held <= stats.budget_bytes.max(24 << 10), "{stats:?}");
                cache.validate().unwrap();
            }
            cache.set_memory(4 << 20);
        });
    });
    within(&cache);
    assert!(hits.load(SeqCst) > 100);
    assert_eq!(cache.stats().corrupt, 0);
}
