//! What cannot be decoded is a miss, and counted; nothing is made up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use leafpress::codec::{Codec, CodecError, Dictionary, Engine, EngineCounters, EngineOptions};

use crate::{key, small};

/// LZ4 whose decoder fails when told to.
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
                reason: "told to fail".into(),
            });
        }
        self.inner.decompress(block, dictionary, out)
    }

    fn engine_name(&self) -> &'static str {
        "failing"
    }

    fn supports_dictionary(&self) -> bool {
        false
    }

    fn counters(&self) -> EngineCounters {
        self.inner.counters()
    }
}

#[test]
fn a_record_that_cannot_be_decoded_is_a_miss() {
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
