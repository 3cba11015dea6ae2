//! The victim cache's use of the program's allocator: if an allocation fails, nothing but blocks is lost, and nothing
//! aborts; and waiting threads keep little memory.

#[path = "../../leafpress/tests/support/starving.rs"]
mod starving;

use std::sync::Barrier;

use leafpress_pages::victim::{Insertion, OnHit, RawShare, VictimCache};
use starving::{live_bytes, starved};

fn block(n: u64, len: usize) -> Vec<u8> {
    let words = (0..len.div_ceil(16)).map(|word| format!("{:07} of {:05};", n * 7919 + word as u64, n));
    let mut bytes = words.collect::<String>().into_bytes();
    bytes.truncate(len);
    bytes
}

fn cache(codec: &str, share: RawShare) -> VictimCache {
    VictimCache::builder()
        .memory(8 << 20)
        .codec(codec.parse().unwrap())
        .share(share)
        .shard_bits(1)
        .build()
        .unwrap()
}

#[test]
fn without_memory_blocks_are_missed_or_refused_and_nothing_aborts() {
    for codec in ["lz4", "zstd:1"] {
        let fixed = |raw_percent| RawShare::Fixed { raw_percent };
        for share in [fixed(0), fixed(30), RawShare::Adaptive] {
            let blocks: Vec<_> = (0..40).map(|n| block(n, 3000 + n as usize * 500)).collect();
            let mut refused = 0;
            for after in 0..12 {
                // The threads' codec contexts exist by now.
                let warm = cache(codec, share);
                warm.insert(b"warm", &blocks[39]);
                assert_eq!(warm.get(b"warm").as_ref(), Some(&blocks[39]));
                let cache = cache(codec, share);
                for (n, block) in (0_u64..).zip(&blocks) {
                    let inserted = starved(after, || cache.insert(&n.to_be_bytes(), block));
                    refused += usize::from(inserted == Insertion::NoRoom);
                }
                for (n, block) in (0_u64..).zip(&blocks) {
                    cache.insert(&n.to_be_bytes(), block);
                    let found = starved(after, || cache.get(&n.to_be_bytes()));
                    refused += usize::from(found.is_none());
                    assert!(found.is_none_or(|found| found == *block));
                    let read = |found: leafpress_pages::victim::FoundBlock<'_>| {
                        assert!(found.bytes == *block);
                        Ok::<_, ()>(())
                    };
                    starved(after, || cache.read(&n.to_be_bytes(), OnHit::Promote, read));
                }
                starved(after, || cache.set_memory(64 << 20));
                starved(after, || cache.set_memory(2 << 20));
                starved(after, || cache.remove(&3_u64.to_be_bytes()));
                cache.validate().unwrap();
                cache.set_memory(8 << 20);
                assert_eq!(cache.insert(b"again", &blocks[0]), Insertion::Inserted);
                assert_eq!(cache.get(b"again").as_ref(), Some(&blocks[0]));
            }
            assert!(refused > 40, "{codec} {share}: {refused}");
        }
    }
}

#[test]
fn threads_that_wait_keep_little_and_it_is_counted() {
    const THREADS: u64 = 32;
    const LEN: usize = 256 << 10;
    let cache = cache("lz4", RawShare::Fixed { raw_percent: 0 });
    let before = live_bytes();
    let barrier = Barrier::new(THREADS as usize + 1);
    let (stats, kept) = std::thread::scope(|scope| {
        for n in 0..THREADS {
            let (cache, barrier) = (&cache, &barrier);
            scope.spawn(move || {
                let block = block(n, LEN);
                cache.insert(&n.to_be_bytes(), &block);
                let found = cache.get(&n.to_be_bytes());
                let is_right = found.is_none_or(|found| found == block);
                drop(block);
                barrier.wait();
                barrier.wait();
                assert!(is_right);
            });
        }
        barrier.wait();
        let stats = cache.stats();
        let kept = live_bytes().saturating_sub(before) as u64;
        barrier.wait();
        (stats, kept)
    });
    assert!(stats.hits > 0 && stats.buffer_bytes <= 256 << 10, "{stats:?}");
    assert!(
        kept <= stats.buffer_bytes + (4 << 20),
        "{kept} bytes are kept, {stats:?}"
    );
}
