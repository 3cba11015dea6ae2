//! Substitute for LZ4 under Miri, which cannot run C: repetitions of a 64-byte piece, as their count and the piece,
//! followed by the remaining bytes. Miri is slow per step, so this takes few steps for long inputs.

use crate::counters::Counters;
use crate::{Codec, CodecError, Dictionary, Engine, EngineCounters, output};

const PIECE: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct RunLengths {
    counters: Counters,
}

impl Engine for RunLengths {
    fn codec(&self) -> Codec {
        Codec::Lz4 { acceleration: 1 }
    }

    fn engine_name(&self) -> &'static str {
        "run-lengths"
    }

    fn counters(&self) -> EngineCounters {
        self.counters.sum_cpu()
    }

    fn compress(&self, raw: &[u8], _: Option<&Dictionary>, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        let before = out.len();
        let (pieces, tail) = raw.as_chunks::<PIECE>();
        for run in pieces.chunk_by(|a, b| a == b).flat_map(|run| run.chunks(255)) {
            out.push(run.len() as u8);
            out.extend_from_slice(&run[0]);
        }
        out.extend_from_slice(tail);
        self.counters.count_compress(raw.len(), Ok(out.len() - before))
    }

    fn decompress(&self, block: &[u8], _: Option<&Dictionary>, raw: &mut [u8]) -> Result<(), CodecError> {
        let len = raw.len();
        let (pieces, tail) = raw.as_chunks_mut::<PIECE>();
        let (runs, rest) = block.split_at(block.len().saturating_sub(tail.len()));
        let mut at = 0;
        for run in runs.as_chunks::<{ PIECE + 1 }>().0 {
            let [count, piece @ ..] = *run;
            let end = at + usize::from(count);
            if let Some(to) = pieces.get_mut(at..end) {
                to.fill(piece);
            }
            at = end;
        }
        let result = if at == pieces.len() && rest.len() == tail.len() {
            tail.copy_from_slice(rest);
            Ok(len)
        } else {
            Err(output::wrong_length("lz4", at * PIECE + rest.len(), len))
        };
        self.counters.count_decompress(block.len(), result).map(drop)
    }
}
