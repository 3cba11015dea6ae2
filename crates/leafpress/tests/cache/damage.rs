//! Records that cannot be decoded are misses, and counted; no wrong value is returned.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use leafpress::Cache;
use leafpress::cache::CacheUpdate;
use leafpress::codec::{Codec, CodecError, Dictionary, Engine, EngineOptions};

use crate::{key, small};

/// LZ4 with a decoder that fails on demand.
#[derive(Debug)]
struct Failing {
    inner: Arc<dyn Engine>,
    fails: AtomicBool,
}

impl Engine for Failing {
    fn codec(&self) -> Codec {
        self.inner.codec()
    }

    fn compress(&self, raw: &[u8], dictionary: Option<&Dictionary>, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        self.inner.compress(raw, dictionary, out)
    }

    fn decompress(&self, block: &[u8], dictionary: Option<&Dictionary>, out: &mut [u8]) -> Result<(), CodecError> {
        if self.fails.load(Ordering::SeqCst) {
            return Err(CodecError::Corrupt {
                codec: "lz4",
                reason: "made to fail".into(),
            });
        }
        self.inner.decompress(block, dictionary, out)
    }
}

/// Returns a cache of compressed records whose engine fails from now on.
fn failing() -> (Cache, Arc<Failing>) {
    let engine = Arc::new(Failing {
        inner: Codec::Lz4 { acceleration: 1 }.open(&EngineOptions::default()).unwrap(),
        fails: AtomicBool::new(false),
    });
    let cache = small().engine(engine.clone()).build().unwrap();
    for n in 0..1000 {
        cache.insert(&key(n), &[n as u8; 300]).unwrap();
    }
    cache.settle().unwrap();
    engine.fails.store(true, Ordering::SeqCst);
    (cache, engine)
}

#[test]
fn a_record_that_cannot_be_decoded_is_a_miss() {
    let (cache, engine) = failing();
    let found = (0..1000).filter(|&n| cache.get(&key(n)).unwrap().is_some()).count();
    let stats = cache.stats();
    assert!(found < 1000 && stats.damaged > 0, "{found} {stats:?}");
    engine.fails.store(false, Ordering::SeqCst);
    for n in 0..1000 {
        cache
            .get_with(&key(n), |value| assert_eq!(value, [n as u8; 300]))
            .unwrap();
    }
}

#[test]
fn an_update_of_a_record_that_cannot_be_decoded_finds_none_or_fails() {
    let (cache, engine) = failing();
    let mut updated = Vec::new();
    for n in 0..1000_u64 {
        let update = |old: Option<&[u8]>| {
            assert!(old.is_none_or(|old| old == [n as u8; 300]), "{n}: another's value");
            CacheUpdate::Put("new")
        };
        // It ends, and its result is right.
        if cache.update_with(&key(n), update).is_ok() {
            updated.push(n);
        }
    }
    assert!(cache.stats().damaged > 0);
    engine.fails.store(false, Ordering::SeqCst);
    for n in 0..1000_u64 {
        let found = cache.get(&key(n)).unwrap();
        match updated.binary_search(&n) {
            Ok(_) => assert_eq!(found.unwrap(), b"new"),
            Err(_) => assert!(found.is_none_or(|found| found == [n as u8; 300]), "{n}"),
        }
    }
}
