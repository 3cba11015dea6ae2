//! Reading blocks.

use std::sync::Arc;

use leafpress::codec::{Codec, CodecError, Dictionary, Engine};
use thiserror::Error;

use super::engines;
use super::statistics::{Ticker, count};
use super::wire::{BLOCK_TYPES, BlockType, read_prefix};

/// Why a block could not be read.
#[derive(Debug, Error)]
pub(crate) enum ReadError {
    /// The block is damaged.
    #[error("leafpress: {0}")]
    Corrupt(String),
    /// The block is of a type that this version does not know.
    #[error("leafpress: {0}")]
    UnknownType(String),
    /// The engine failed, or there was no memory.
    #[error("leafpress: {0}")]
    Failed(CodecError),
}

impl ReadError {
    fn corrupt(found: BlockType, reason: &str) -> Self {
        Self::Corrupt(format!("corrupt {} block: {reason}", found.name()))
    }
}

/// Reads the blocks of every codec.
pub(crate) struct Decompressor {
    /// The engine that reads deflate: an accelerator, the system's zlib, or the one that is part of the library.
    deflate: Arc<dyn Engine>,
}

impl Decompressor {
    /// A decompressor that reads deflate by `codec`'s engine if that is of the family and can run here, by the library's own
    /// otherwise.
    pub(crate) fn new(codec: Option<Codec>) -> Result<Self, CodecError> {
        let own = codec.filter(|codec| matches!(codec, Codec::Qpl { .. } | Codec::Zlib { .. }));
        let deflate = match own.map(engines::engine) {
            Some(Ok(engine)) => engine,
            _ => Arc::clone(&engines::built_in()?.deflate),
        };
        Ok(Self { deflate })
    }

    /// The type of a block.
    pub(crate) fn block_type(number: u8) -> Result<BlockType, ReadError> {
        BlockType::from_number(number).ok_or_else(|| {
            let known: Vec<String> = BLOCK_TYPES
                .iter()
                .map(|known| format!("{:#04x} {}", *known as u8, known.name()))
                .collect();
            ReadError::UnknownType(format!(
                "block type {number:#04x} is none that this version reads ({}): the block is damaged, or a later version \
                 wrote it",
                known.join(", ")
            ))
        })
    }

    /// The raw size of a block and the length of the prefix that says it.
    pub(crate) fn raw_bytes(number: u8, stored: &[u8]) -> Result<(u64, usize), ReadError> {
        let found = Self::block_type(number)?;
        let (raw_bytes, prefix) =
            read_prefix(stored).ok_or_else(|| ReadError::corrupt(found, "its size prefix is malformed"))?;
        let most = found.most_raw_bytes(stored.len() - prefix);
        if raw_bytes > most {
            return Err(ReadError::corrupt(
                found,
                &format!(
                    "its size prefix says {raw_bytes} raw bytes, {} bytes hold at most {most}",
                    stored.len() - prefix
                ),
            ));
        }
        Ok((raw_bytes, prefix))
    }

    /// Decodes a block, without its prefix, into `raw`, whose length the prefix said.
    pub(crate) fn decompress(
        &self,
        number: u8,
        dictionary: Option<&Dictionary>,
        block: &[u8],
        raw: &mut [u8],
    ) -> Result<(), ReadError> {
        let result = self.decode(number, dictionary, block, raw);
        match &result {
            Ok(()) => count([
                (Ticker::DecompressBlocks, 1),
                (Ticker::DecompressStoredBytes, block.len() as u64),
                (Ticker::DecompressRawBytes, raw.len() as u64),
            ]),
            Err(ReadError::Corrupt(_) | ReadError::UnknownType(_)) => count([(Ticker::DecompressCorrupt, 1)]),
            Err(ReadError::Failed(_)) => count([(Ticker::DecompressErrors, 1)]),
        }
        result
    }

    fn decode(
        &self,
        number: u8,
        dictionary: Option<&Dictionary>,
        block: &[u8],
        raw: &mut [u8],
    ) -> Result<(), ReadError> {
        let built_in = engines::built_in().map_err(ReadError::Failed)?;
        let result = match Self::block_type(number)? {
            BlockType::Lz4 => built_in.lz4.decompress(block, dictionary, raw),
            BlockType::Zstd => built_in.zstd.decompress(block, dictionary, raw),
            BlockType::Deflate => self.deflate.decompress(block, None, raw).or_else(|error| {
                if Arc::ptr_eq(&self.deflate, &built_in.deflate) {
                    return Err(error);
                }
                // A device that is busy or gone; and what it calls corrupt deserves a second opinion.
                built_in
                    .deflate
                    .decompress(block, None, raw)
                    .inspect(|()| count([(Ticker::DecompressTakenOver, 1)]))
            }),
        };
        result.map_err(|error| match error {
            CodecError::Corrupt { .. } => ReadError::Corrupt(error.to_string()),
            other => ReadError::Failed(other),
        })
    }
}
