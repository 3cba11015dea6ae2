//! Engines that panic in the background threads of a tree and of a victim cache: nobody waits for ever, what was put in stays, the
//! statistics say so, and once a thread has ended, so does `settle`.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use leafpress::codec::{Codec, CodecError, Dictionary, Engine, EngineCounters, EngineOptions};
use leafpress::victim::{Insertion, Share, VictimCache, VictimError};
use leafpress::{DictionaryChoice, Error, Stats, Tree};

/// Panics while a thread whose name begins with `thread` compresses, so many times.
#[derive(Debug)]
struct Panicking {
    engine: Arc<dyn Engine>,
    thread: &'static str,
    panics: AtomicU64,
}

impl Panicking {
    fn new(codec: &str, thread: &'static str, panics: u64) -> Self {
        let codec: Codec = codec.parse().unwrap();
        Self {
            engine: codec.open(&EngineOptions::default()).unwrap(),
            thread,
            panics: AtomicU64::new(panics),
        }
    }
}

impl Engine for Panicking {
    fn codec(&self) -> Codec {
        self.engine.codec()
    }

    fn engine_name(&self) -> &'static str {
        "panicking"
    }

    fn counters(&self) -> EngineCounters {
        self.engine.counters()
    }

    fn supports_dictionary(&self) -> bool {
        self.engine.supports_dictionary()
    }

    fn compress(&self, raw: &[u8], dictionary: Option<&Dictionary>, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        let is_background = std::thread::current()
            .name()
            .is_some_and(|name| name.starts_with(self.thread));
        let left = is_background
            && self
                .panics
                .fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1))
                .is_ok();
        assert!(!left, "a bug of the engine");
        self.engine.compress(raw, dictionary, out)
    }

    fn decompress(&self, block: &[u8], dictionary: Option<&Dictionary>, raw: &mut [u8]) -> Result<(), CodecError> {
        self.engine.decompress(block, dictionary, raw)
    }
}

/// What `call` returns, which must not wait for ever.
fn in_time<R: Send>(call: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| {
        let (done, is_done) = mpsc::channel();
        scope.spawn(move || done.send(call()));
        match is_done.recv_timeout(Duration::from_secs(60)) {
            Ok(result) => result,
            Err(_) => {
                eprintln!("the call does not return");
                // The scope would wait for it.
                std::process::abort();
            }
        }
    })
}

fn block(n: u32) -> Vec<u8> {
    format!("record {n:06} of table {}, and what follows is alike in all; ", n % 7)
        .repeat(8)
        .into_bytes()
}

fn cache(panics: u64) -> VictimCache {
    VictimCache::builder(8 << 20)
        .engine(Arc::new(Panicking::new("zstd:1", "leafpress-upkeep", panics)))
        .dictionary_bytes(4096)
        .admission(false)
        .share(Share::Fixed { raw_percent: 0 })
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
fn a_cache_whose_every_training_panics_says_so() {
    let cache = cache(u64::MAX);
    let mut settled = Ok(());
    // A training comes when four times as much was put in as before the last: families share the panics.
    for round in 0..64_u32 {
        for n in 0..600 {
            let n = round * 600 + n;
            let mut new = leafpress::victim::NewBlock::new(block(n).len());
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
    // It is a cache all the same.
    fill_cache(&cache, 0..100);
    assert!((0..100_u32).all(|n| cache.get(&n.to_be_bytes()).unwrap() == block(n)));
    cache.validate().unwrap();
}

fn tree(thread: &'static str, panics: u64) -> Tree {
    Tree::builder()
        .engine(Arc::new(Panicking::new("zstd:1", thread, panics)))
        .dictionary(DictionaryChoice::Auto)
        .background_threads(2)
        .high_watermark_pct(10)
        .landing_bytes(2048)
        .build()
        .unwrap()
}

fn fill_tree(tree: &Tree, records: std::ops::Range<u32>) {
    for n in records {
        tree.insert(&n.to_be_bytes(), &block(n)[..100]).unwrap();
    }
}

fn holds(tree: &Tree, records: std::ops::Range<u32>) {
    tree.validate().unwrap();
    for n in records {
        assert_eq!(tree.get(&n.to_be_bytes()).unwrap().unwrap(), &block(n)[..100]);
    }
}

#[test]
fn a_tree_goes_on_compacting_after_panics() {
    let tree = tree("leafpress-bg", 3);
    let mut records = 0;
    // On a busy machine writers may compact nearly all leaves themselves.
    let mut fill_until = |enough: &dyn Fn(&Stats) -> bool| loop {
        fill_tree(&tree, records..records + 5000);
        records += 5000;
        in_time(|| tree.settle()).unwrap();
        let stats = tree.stats();
        if enough(&stats) {
            break stats;
        }
        assert!(records < 1_000_000, "{stats:?}");
    };
    let before = fill_until(&|stats| stats.bg_panics >= 3);
    fill_until(&|stats| stats.bg_compactions > before.bg_compactions);
    let stats = tree.stats();
    assert_eq!((stats.bg_panics, stats.bg_threads_ended), (3, 0), "{stats:?}");
    holds(&tree, 0..records);
}

#[test]
fn a_tree_whose_compacting_threads_have_ended_says_so() {
    let tree = tree("leafpress-bg", u64::MAX);
    let mut records = 0;
    while tree.stats().bg_threads_ended < 2 {
        assert!(records < 1_000_000, "{:?}", tree.stats());
        fill_tree(&tree, records..records + 1000);
        records += 1000;
    }
    let settled = in_time(|| tree.settle());
    assert!(matches!(&settled, Err(Error::Background { reason }) if reason.contains("a bug of the engine")));
    fill_tree(&tree, records..records + 1000);
    assert!(in_time(|| tree.settle()).is_err());
    holds(&tree, 0..records + 1000);
}

#[test]
fn a_tree_trains_and_tidies_after_panics() {
    let tree = tree("leafpress-upkeep", 2);
    fill_tree(&tree, 0..3000);
    in_time(|| tree.settle()).unwrap();
    assert!(tree.stats().bg_panics > 0, "{:?}", tree.stats());
    fill_tree(&tree, 3000..60_000);
    in_time(|| tree.settle()).unwrap();
    let stats = tree.stats();
    assert_eq!((stats.bg_panics, stats.bg_threads_ended), (2, 0));
    assert!(stats.dictionary_id > 0, "{stats:?}");
    holds(&tree, 0..60_000);
}
