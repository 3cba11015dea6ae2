//! Data, engines and runs that tests share.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use leafpress::codec::{Engine, EngineOptions};
use leafpress::{Codec, CodecError, Dictionary};
use tempfile::TempDir;

use super::{Options, Report, run, run_engines};
use crate::core::LabError;

/// Compressible bytes: a sequence of words.
pub(super) fn words(len: usize) -> Vec<u8> {
    let words = ["alpha ", "beta ", "gamma ", "delta ", "epsilon "];
    let text = (0..).flat_map(|i: usize| words[(i * 7 + i / 11) % 5].bytes());
    text.take(len).collect()
}

/// Bytes that do not.
pub(super) fn noise(len: usize) -> Vec<u8> {
    let mut state = 88_172_645_463_325_252_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

pub(super) fn directory(files: &[(&str, &[u8])]) -> TempDir {
    let directory = TempDir::new().unwrap();
    for (name, bytes) in files {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    directory
}

pub(super) fn options(path: &Path) -> Options {
    Options {
        codecs: Some(vec!["lz4".parse().unwrap(), "zstd:1".parse().unwrap()]),
        block_bytes: Some(vec![4096]),
        threads: vec![1],
        passes: 1,
        ..Options::new(vec![path.to_owned()])
    }
}

pub(super) fn measure(options: &Options) -> Result<Report, LabError> {
    run(options, &AtomicBool::new(false), &mut |_| {})
}

#[track_caller]
pub(super) fn message(result: Result<Report, LabError>) -> String {
    let message = result.unwrap_err().to_string();
    assert!(!message.contains('\n'), "one line: {message}");
    message
}

/// An engine that does one thing differently.
#[derive(Debug)]
pub(super) struct Faulty {
    fault: Fault,
    good: Arc<dyn Engine>,
    calls: AtomicUsize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fault {
    /// Corrupts one byte of one block.
    Flips,
    /// Nothing is written where a block is brought back.
    WritesNothing,
    /// Returns nothing for an incompressible block, as LZ4 does if the output buffer is not larger than the block.
    GivesNothing,
    /// A block that does not shrink gets longer.
    Grows,
    /// Compression fails at some block.
    Fails,
    /// The length that is returned is not what was written.
    Lies,
}

impl Faulty {
    pub(super) fn engine(fault: Fault) -> Arc<dyn Engine> {
        Arc::new(Self {
            fault,
            good: "lz4".parse::<Codec>().unwrap().open(&EngineOptions::default()).unwrap(),
            calls: AtomicUsize::new(0),
        })
    }
}

impl Engine for Faulty {
    fn codec(&self) -> Codec {
        self.good.codec()
    }

    fn compress(&self, raw: &[u8], _: Option<&Dictionary>, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        let before = out.len();
        let length = self.good.compress(raw, None, out)?;
        let shrinks = length < raw.len();
        match self.fault {
            Fault::GivesNothing if !shrinks => {
                out.truncate(before);
                return Ok(0);
            }
            Fault::Grows if !shrinks => {
                out.resize(before + raw.len() + 50, 7);
                return Ok(raw.len() + 50);
            }
            // After the warm-up, which does not report it.
            Fault::Fails if self.calls.fetch_add(1, Ordering::Relaxed) >= 300 => {
                out.truncate(before);
                return Err(CodecError::Failed {
                    codec: "lz4",
                    reason: "the queue is full".into(),
                });
            }
            Fault::Lies => return Ok(length - 1),
            _ => {}
        }
        Ok(length)
    }

    fn decompress(&self, block: &[u8], _: Option<&Dictionary>, raw: &mut [u8]) -> Result<(), CodecError> {
        if self.fault == Fault::WritesNothing {
            return Ok(());
        }
        self.good.decompress(block, None, raw)?;
        if self.fault == Fault::Flips && raw.starts_with(b"HERE") {
            raw[17] ^= 1;
        }
        Ok(())
    }
}

pub(super) fn with_fault(options: &Options, fault: Fault) -> Result<Report, LabError> {
    run_engines(options, &[Faulty::engine(fault)], &AtomicBool::new(false), &mut |_| {})
}
