//! The codec that stores bytes uncompressed. It is pure Rust and reads no clock, so that it runs under an interpreter.

use super::counters::Counters;
use super::{Codec, CodecError, Dictionary, Engine, EngineCounters, output};

/// The engine of `none`.
#[derive(Debug, Default)]
pub(super) struct None {
    counters: Counters,
}

impl Engine for None {
    fn codec(&self) -> Codec {
        Codec::None
    }

    fn engine_name(&self) -> &'static str {
        "none"
    }

    fn counters(&self) -> EngineCounters {
        self.counters.sum_cpu()
    }

    fn compress(&self, raw: &[u8], _: Option<&Dictionary>, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        let result = output::reserve(out, raw.len()).map(|()| {
            out.extend_from_slice(raw);
            raw.len()
        });
        self.counters.count_compress(raw.len(), result)
    }

    fn decompress(&self, block: &[u8], _: Option<&Dictionary>, raw: &mut [u8]) -> Result<(), CodecError> {
        let result = if block.len() == raw.len() {
            raw.copy_from_slice(block);
            Ok(raw.len())
        } else {
            Err(output::wrong_length("none", block.len(), raw.len()))
        };
        self.counters.count_decompress(block.len(), result).map(drop)
    }
}
