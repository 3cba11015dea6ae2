//! A codec engine for tests: run-length coding, failing on demand.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use leafpress::codec::{Codec, CodecError, Dictionary, Engine};

/// Countdowns to failures: a call that finds 0 fails, and so do all later ones until the faults are cleared. Negative
/// values cause no failures.
#[derive(Debug)]
pub struct Faults {
    compress: AtomicI64,
    decompress: AtomicI64,
    /// Whether only one call fails.
    once: AtomicBool,
    raised: AtomicU64,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            compress: AtomicI64::new(-1),
            decompress: AtomicI64::new(-1),
            once: AtomicBool::new(false),
            raised: AtomicU64::new(0),
        }
    }
}

impl Faults {
    /// Makes compression fail after `after` more calls.
    pub fn fail_compress(&self, after: u32) {
        self.compress.store(after.into(), Ordering::SeqCst);
    }

    /// Makes one call of compression fail after `after` more calls.
    pub fn fail_one_compress(&self, after: u32) {
        self.once.store(true, Ordering::SeqCst);
        self.fail_compress(after);
    }

    /// Makes decompression fail after `after` more calls.
    pub fn fail_decompress(&self, after: u32) {
        self.decompress.store(after.into(), Ordering::SeqCst);
    }

    pub fn clear(&self) {
        self.once.store(false, Ordering::SeqCst);
        self.compress.store(-1, Ordering::SeqCst);
        self.decompress.store(-1, Ordering::SeqCst);
    }

    /// Returns the number of failures so far.
    pub fn raised(&self) -> u64 {
        self.raised.load(Ordering::SeqCst)
    }

    fn check(&self, left: &AtomicI64) -> Result<(), CodecError> {
        let update = |n: i64| if n > 0 { Some(n - 1) } else { None };
        let now = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, update);
        if now == Err(0) {
            self.raised.fetch_add(1, Ordering::SeqCst);
            if self.once.load(Ordering::SeqCst) {
                self.clear();
            }
            return Err(CodecError::Failed {
                codec: "rle",
                reason: "requested by the test".into(),
            });
        }
        Ok(())
    }
}

/// Run-length coding: pairs of a count and a byte.
#[derive(Debug, Default)]
pub struct RunLength {
    pub faults: Faults,
}

impl Engine for RunLength {
    fn codec(&self) -> Codec {
        Codec::Lz4 { acceleration: 1 }
    }

    fn compress(&self, raw: &[u8], _: Option<&Dictionary>, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        self.faults.check(&self.faults.compress)?;
        let before = out.len();
        for run in raw.chunk_by(|a, b| a == b) {
            for part in run.chunks(255) {
                out.extend_from_slice(&[part.len() as u8, part[0]]);
            }
        }
        Ok(out.len() - before)
    }

    fn decompress(&self, block: &[u8], _: Option<&Dictionary>, raw: &mut [u8]) -> Result<(), CodecError> {
        self.faults.check(&self.faults.decompress)?;
        let corrupt = |reason: &'static str| CodecError::Corrupt {
            codec: "rle",
            reason: reason.into(),
        };
        let mut rest = raw;
        for pair in block.chunks(2) {
            let &[count, byte] = pair else {
                return Err(corrupt("odd length"));
            };
            let (run, after) = rest
                .split_at_mut_checked(count.into())
                .ok_or_else(|| corrupt("too long"))?;
            run.fill(byte);
            rest = after;
        }
        if rest.is_empty() {
            Ok(())
        } else {
            Err(corrupt("too short"))
        }
    }
}
