//! An engine that panics in background threads, and a deadline for calls that might wait for them.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use leafpress_codec::{Codec, CodecError, Dictionary, Engine, EngineOptions};

/// Panics `panics` times while a thread whose name begins with `thread` compresses.
#[derive(Debug)]
pub struct Panicking {
    engine: Arc<dyn Engine>,
    thread: &'static str,
    panics: AtomicU64,
}

impl Panicking {
    pub fn new(codec: &str, thread: &'static str, panics: u64) -> Self {
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

    fn supports_dictionary(&self) -> bool {
        self.engine.supports_dictionary()
    }

    fn compress(&self, raw: &[u8], dictionary: Option<&Dictionary>, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        let is_background = leafpress_base::sync::threads::current_name().starts_with(self.thread);
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

/// Returns the result of `call`; aborts the process if it does not return in time.
pub fn in_time<R: Send>(call: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| {
        let (done, is_done) = mpsc::channel();
        scope.spawn(move || done.send(call()));
        match is_done.recv_timeout(Duration::from_secs(600)) {
            Ok(result) => result,
            Err(_) => {
                eprintln!("the call does not return");
                // A panic would not do, since the scope would wait for the thread.
                std::process::abort();
            }
        }
    })
}

pub fn block(n: u32) -> Vec<u8> {
    format!("record {n:06} of table {}, and what follows is alike in all; ", n % 7)
        .repeat(8)
        .into_bytes()
}
