//! The engine trait and its options.

use super::{Codec, CodecError, Dictionary, EngineCounters, Scratch};

/// Whether QPL jobs are kept per thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JobCache {
    /// One job per thread, initialised once and reused.
    #[default]
    Thread,
    /// A job is initialised for every call and released after it.
    None,
}

/// Whether zlib streams are kept between calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StreamCache {
    /// Streams are kept in a pool, as many as the machine's cores can use, and reset between calls. A thread reuses its
    /// own stream if possible.
    #[default]
    Thread,
    /// A stream is initialised for every call and ended after it.
    None,
}

/// The block format of `lz4` for up to 4 KiB of raw bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lz4Blocks {
    /// Blocks twelve bytes shorter than LZ4's own, a worthwhile saving for records; reading one takes two copies.
    #[default]
    TailCutOff,
    /// Standard LZ4 blocks of any length, which any LZ4 decoder reads. An incompressible one is longer than its raw
    /// bytes.
    Standard,
}

/// Options of an engine.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct EngineOptions {
    /// The block format of `lz4` for short inputs. Blocks of one format cannot be read as the other.
    pub lz4_blocks: Lz4Blocks,
    /// Whether QPL jobs are kept per thread.
    pub job_cache: JobCache,
    /// Whether zlib streams are kept between calls.
    pub stream_cache: StreamCache,
}

/// A compression engine: the implementation of a [`Codec`].
pub trait Engine: Send + Sync + std::fmt::Debug {
    /// Returns the codec that this engine implements.
    fn codec(&self) -> Codec;

    /// Returns the name of the implementation: `none`, `cpu`, `software`, `hardware`, `auto`, `zlib_system` or
    /// `zlib_accel_preload`.
    fn engine_name(&self) -> &'static str {
        "cpu"
    }

    /// Returns the counters since the engine was opened, summed over threads; zeros if it does not count.
    fn counters(&self) -> EngineCounters {
        EngineCounters::default()
    }

    /// Returns true if `compress` and `decompress` use a dictionary.
    fn supports_dictionary(&self) -> bool {
        false
    }

    /// Appends the compressed form of `raw` to `out` and returns its length in bytes.
    ///
    /// # Errors
    /// Returns the error of the codec; `out` is then unchanged.
    fn compress(&self, raw: &[u8], dictionary: Option<&Dictionary>, out: &mut Vec<u8>) -> Result<usize, CodecError>;

    /// Compresses `raw` into the front of `out` and returns the length in bytes, or `None` if the block does not fit or
    /// would be as long as `raw`. The content of `out` after the block is unspecified.
    ///
    /// # Errors
    /// Returns the errors of [`Engine::compress`].
    fn compress_into(
        &self,
        raw: &[u8],
        dictionary: Option<&Dictionary>,
        out: &mut [u8],
    ) -> Result<Option<usize>, CodecError> {
        let mut block = Vec::new();
        self.compress(raw, dictionary, &mut block)?;
        Ok(copy_smaller(&block, raw.len(), out))
    }

    /// Decompresses `block` into `raw`, whose length is the exact raw length.
    ///
    /// LZ4 and Zstandard decode up to 128 KiB in a per-thread buffer in which the dictionary precedes the output, and
    /// copy: contiguous history is the decoders' fast case. Such buffers are kept for the four most recently used
    /// dictionaries.
    ///
    /// # Errors
    /// Returns [`CodecError::Corrupt`] if `block` is not what `compress` wrote for `raw.len()` bytes with this
    /// dictionary.
    fn decompress(&self, block: &[u8], dictionary: Option<&Dictionary>, raw: &mut [u8]) -> Result<(), CodecError>;

    /// Decodes at least the first `needed` of `raw_len` raw bytes into `scratch` and returns them. The slice is at
    /// least `needed` bytes long and at most `raw_len`; implementations must keep to both bounds.
    ///
    /// # Errors
    /// Returns the errors of [`Engine::decompress`].
    fn decode<'s>(
        &self,
        block: &[u8],
        dictionary: Option<&Dictionary>,
        raw_len: usize,
        needed: usize,
        scratch: &'s mut Scratch,
    ) -> Result<&'s [u8], CodecError> {
        let _ = needed;
        let raw = scratch.output(raw_len, 0)?;
        self.decompress(block, dictionary, raw)?;
        Ok(raw)
    }

    /// Compresses every one of `raws` and appends one block each to `out`. An engine with a device keeps several
    /// operations in flight.
    ///
    /// # Errors
    /// Returns the error of the first block that failed; `out` is then unchanged.
    fn compress_batch(
        &self,
        raws: &[&[u8]],
        dictionary: Option<&Dictionary>,
        out: &mut Vec<Vec<u8>>,
    ) -> Result<(), CodecError> {
        let before = out.len();
        for raw in raws {
            let mut block = Vec::new();
            if let Err(error) = self.compress(raw, dictionary, &mut block) {
                out.truncate(before);
                return Err(error);
            }
            // The allocation was for the worst case.
            block.shrink_to_fit();
            out.push(block);
        }
        Ok(())
    }

    /// Decompresses each of `blocks` into the slice of `raws` with the same index, whose length is the exact raw
    /// length, and returns one result each. An engine with a device keeps several operations in flight. If one list is
    /// longer, its rest is ignored.
    fn decompress_batch(
        &self,
        blocks: &[&[u8]],
        dictionary: Option<&Dictionary>,
        raws: &mut [&mut [u8]],
    ) -> Vec<Result<(), CodecError>> {
        let pairs = blocks.iter().zip(raws);
        pairs
            .map(|(block, raw)| self.decompress(block, dictionary, raw))
            .collect()
    }
}

/// Copies a block to the front of `out` if it fits and is shorter than its raw bytes; returns its length.
pub(super) fn copy_smaller(block: &[u8], raw_bytes: usize, out: &mut [u8]) -> Option<usize> {
    if block.len() >= raw_bytes {
        return None;
    }
    out.get_mut(..block.len())?.copy_from_slice(block);
    Some(block.len())
}
