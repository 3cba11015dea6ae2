//! Reading blocks.

use std::sync::Arc;

use leafpress::codec::{Codec, CodecError, Dictionary, Engine};
use thiserror::Error;

use super::engines;
use super::statistics::{Ticker, count};
use super::wire::{BLOCK_TYPES, BlockType, read_prefix};

/// The reason why a block could not be read.
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
    /// Returns a decompressor that reads deflate by `codec`'s engine if that is of the family and can run here, by the
    /// library's own otherwise.
    pub(crate) fn new(codec: Option<Codec>) -> Result<Self, CodecError> {
        let own = codec.filter(|codec| matches!(codec, Codec::Qpl { .. } | Codec::Zlib { .. }));
        let deflate = match own.map(engines::engine) {
            Some(Ok(engine)) => engine,
            _ => Arc::clone(&engines::built_in()?.deflate),
        };
        Ok(Self { deflate })
    }

    /// Returns the type of a block.
    pub(crate) fn block_type(number: u8) -> Result<BlockType, ReadError> {
        BlockType::from_number(number).ok_or_else(|| {
            let known: Vec<String> = BLOCK_TYPES
                .iter()
                .map(|known| format!("{:#04x} {}", *known as u8, known.name()))
                .collect();
            ReadError::UnknownType(format!(
                "block type {number:#04x} is none that this version reads ({}): the block is damaged, or a later \
                 version wrote it",
                known.join(", ")
            ))
        })
    }

    /// Returns the raw size of a block and the length of its prefix.
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

    /// Decodes a block, without its prefix, into `raw`, whose length is in the prefix.
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
                // The device may be busy or lost; and a block that it reports as corrupt is checked by another engine.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::compressor::{Compressor, Outcome};
    use super::super::options::CompressionOptions;
    use super::*;

    const CODECS: [&str; 4] = ["lz4", "zstd:3", "deflate:1", "qpl:auto:fixed"];

    /// Text that shrinks, of which every word is in the dictionary.
    fn text(seed: u64, bytes: usize) -> Vec<u8> {
        let mut state = seed;
        let mut out = Vec::new();
        while out.len() < bytes {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            out.extend_from_slice(&DICTIONARY[(state >> 40) as usize % 200..][..8]);
        }
        out.truncate(bytes);
        out
    }

    const DICTIONARY: &[u8; 256] = &{
        let mut bytes = [0; 256];
        let mut at = 0;
        while at < 256 {
            bytes[at] = (at * at / 3) as u8;
            at += 1;
        }
        bytes
    };

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        /// Reading a changed block returns an error or some bytes.
        #[test]
        fn damage_is_survived(
            codec in 0..CODECS.len(),
            with_dictionary in any::<bool>(),
            seed in any::<u64>(),
            bytes in prop_oneof![1..300_usize, 3000..20_000_usize, Just(200_000)],
            flips in prop::collection::vec((any::<prop::sample::Index>(), 0..8_u32), 0..6),
            cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
            number in prop_oneof![9 => Just(None), 1 => any::<u8>().prop_map(Some)],
        ) {
            let mut options = CompressionOptions::default();
            options.set("codec", CODECS[codec]).unwrap();
            let dictionary = with_dictionary.then(|| Dictionary::from_bytes(1, &DICTIONARY[..]));
            let compressor = Compressor::new(&options, &|_, _| Arc::default(), 0, 0, 0).unwrap().unwrap();
            let compressor = match &dictionary {
                Some(dictionary) => compressor.with_dictionary(dictionary.clone()),
                None => compressor,
            };
            let raw = text(seed, bytes);
            let mut stored = vec![0; bytes];
            let Outcome::Compressed(written) = compressor.compress(&raw, &mut stored) else {
                return Ok(());
            };
            stored.truncate(written);
            let untouched = stored.clone();
            for (at, bit) in &flips {
                let at = at.index(stored.len());
                stored[at] ^= 1 << bit;
            }
            if let Some(cut) = cut {
                stored.truncate(cut.index(written));
            }
            let number = number.unwrap_or(compressor.block_type() as u8);
            let whole = stored == untouched && number == compressor.block_type() as u8;
            let (raw_bytes, prefix) = match Decompressor::raw_bytes(number, &stored) {
                Ok(found) => found,
                Err(error) => {
                    prop_assert!(!whole && error.to_string().starts_with("leafpress: "), "{error}");
                    return Ok(());
                }
            };
            let mut back = vec![0; raw_bytes as usize];
            let decompressor = Decompressor::new(options.reading_codec()).unwrap();
            match decompressor.decompress(number, dictionary.as_ref(), &stored[prefix..], &mut back) {
                Ok(()) => prop_assert!(!whole || back == raw),
                Err(error) => prop_assert!(!whole && error.to_string().starts_with("leafpress: corrupt "), "{error}"),
            }
        }
    }
}
