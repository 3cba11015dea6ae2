//! Engines that panic in the background threads of a victim cache: no call waits for ever, no block is lost, the
//! statistics count the panics, and `settle` fails once a thread has ended.

#[path = "../../../leafpress/tests/support/panicking.rs"]
mod panicking;

use std::sync::Arc;

use leafpress_pages::victim::{Insertion, RawShare, VictimCache, VictimError};
use panicking::{Panicking, block, in_time};

fn cache(panics: u64) -> VictimCache {
    VictimCache::builder()
        .memory(8 << 20)
        .engine(Arc::new(Panicking::new("zstd:1", "leafpress-upkeep", panics)))
        .dictionary_bytes(4096)
        .admission(false)
        .share(RawShare::Fixed { raw_percent: 0 })
        .build()
        .unwrap()
}

fn fill_cache(cache: &VictimCache, blocks: std::ops::Range<u32>) {
    for n in blocks {
        assert_eq!(cache.insert(&n.to_be_bytes(), &block(n)), Insertion::Inserted);
    }
}

#[test]
fn a_training_that_panics_is_not_waited_for_and_not_the_last() {
    let cache = cache(1);
    fill_cache(&cache, 0..800);
    in_time(|| cache.settle()).unwrap();
    let stats = cache.stats();
    assert_eq!((stats.background_panics, stats.dictionary_versions), (1, 0));
    fill_cache(&cache, 800..8000);
    in_time(|| cache.settle()).unwrap();
    let stats = cache.stats();
    assert_eq!((stats.background_panics, stats.background_threads_ended), (1, 0));
    assert!(stats.dictionary_versions > 0, "the next training is done: {stats:?}");
    cache.validate().unwrap();
}

#[test]
fn settle_fails_if_every_training_panics() {
    let cache = cache(u64::MAX);
    let mut settled = Ok(());
    // A training is due after four times as many insertions as before the last: families share the panics.
    for round in 0..64_u32 {
        for n in 0..600 {
            let n = round * 600 + n;
            let mut new = leafpress_pages::victim::NewBlock::new(block(n).len());
            new.family = (round % 8) as u8;
            let fill = |raw: &mut [u8]| {
                raw.copy_from_slice(&block(n));
                Ok::<_, ()>(())
            };
            assert_eq!(cache.insert_with(&n.to_be_bytes(), &new, fill), Ok(Insertion::Inserted));
        }
        settled = in_time(|| cache.settle());
        if settled.is_err() {
            break;
        }
    }
    let Err(VictimError::Background { reason }) = settled else {
        panic!("{settled:?}: {:?}", cache.stats());
    };
    assert!(reason.contains("a bug of the engine"), "{reason}");
    let stats = cache.stats();
    assert_eq!((stats.background_panics, stats.background_threads_ended), (16, 1));
    // It still works as a cache.
    fill_cache(&cache, 0..100);
    assert!((0..100_u32).all(|n| cache.get(&n.to_be_bytes()).unwrap() == block(n)));
    cache.validate().unwrap();
}
