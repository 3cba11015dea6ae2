//! An engine of several codecs: a block's dictionary determines the one that wrote it.

use std::sync::Arc;

use super::{Codec, CodecError, Dictionary, Engine, EngineCounters, EngineOptions, Scratch, TrialGoal};

impl Codec {
    /// Returns the codecs among which this one chooses, none for a codec that does not choose. Blocks without a
    /// dictionary are those of the first. The list has only codecs that this build has.
    pub fn candidates(&self) -> &'static [Codec] {
        match self {
            Codec::Trial {
                goal: TrialGoal::Balance,
            } => BALANCED,
            Codec::Trial {
                goal: TrialGoal::Memory,
            } => SMALL,
            _ => &[],
        }
    }
}

#[cfg(feature = "lz4")]
const LZ4: Codec = Codec::Lz4 { acceleration: 1 };
#[cfg(feature = "zstd")]
const ZSTD: Codec = Codec::Zstd { level: 1 };
#[cfg(not(any(feature = "lz4", feature = "zstd")))]
const UNCOMPRESSED: Codec = Codec::None;

const BALANCED: &[Codec] = &[
    #[cfg(feature = "lz4")]
    LZ4,
    #[cfg(feature = "zstd")]
    ZSTD,
    #[cfg(not(any(feature = "lz4", feature = "zstd")))]
    UNCOMPRESSED,
    Codec::OnPair { bits: 12 },
];

const SMALL: &[Codec] = &[
    #[cfg(feature = "zstd")]
    ZSTD,
    #[cfg(feature = "lz4")]
    LZ4,
    #[cfg(not(any(feature = "lz4", feature = "zstd")))]
    UNCOMPRESSED,
    Codec::OnPair { bits: 12 },
    Codec::OnPairHuffman,
];

/// An engine of several codecs. It compresses and decodes a block with the codec that its dictionary was
/// [trained for](Dictionary::codec), and a block without a dictionary, or with one of an unknown codec, with the first
/// of them.
#[derive(Debug)]
pub struct ByDictionary {
    codec: Codec,
    first: Arc<dyn Engine>,
    others: Vec<(Codec, Arc<dyn Engine>)>,
}

impl ByDictionary {
    /// Opens the engines of a codec's candidates.
    ///
    /// # Errors
    /// Returns the errors of [`Codec::open`], also for a codec that does not choose.
    pub fn open(codec: Codec, options: &EngineOptions) -> Result<Self, CodecError> {
        let Some((first, others)) = codec.candidates().split_first() else {
            return Err(CodecError::UnknownName(codec.to_string()));
        };
        Ok(Self {
            codec,
            ..Self::of(*first, others, options)?
        })
    }

    /// Opens the engine of `first`, and those of `others` for blocks with a dictionary of theirs.
    ///
    /// # Errors
    /// Returns the errors of [`Codec::open`].
    pub fn of(first: Codec, others: &[Codec], options: &EngineOptions) -> Result<Self, CodecError> {
        let others = others.iter().map(|other| Ok((*other, other.open(options)?)));
        Ok(Self {
            codec: first,
            first: first.open(options)?,
            others: others.collect::<Result<_, CodecError>>()?,
        })
    }

    #[inline]
    fn engine(&self, dictionary: Option<&Dictionary>) -> &dyn Engine {
        let codec = dictionary.and_then(Dictionary::codec);
        let other = codec.and_then(|codec| self.others.iter().find(|(other, _)| *other == codec));
        other.map_or(&*self.first, |(_, engine)| &**engine)
    }
}

impl Engine for ByDictionary {
    fn codec(&self) -> Codec {
        self.codec
    }

    fn engine_name(&self) -> &'static str {
        self.first.engine_name()
    }

    fn counters(&self) -> EngineCounters {
        let mut sum = self.first.counters();
        self.others.iter().for_each(|(_, engine)| sum.add(&engine.counters()));
        sum
    }

    fn supports_dictionary(&self) -> bool {
        // Miri does not run the trainers in C.
        !cfg!(miri)
    }

    fn compress(&self, raw: &[u8], dictionary: Option<&Dictionary>, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        self.engine(dictionary).compress(raw, dictionary, out)
    }

    fn compress_into(
        &self,
        raw: &[u8],
        dictionary: Option<&Dictionary>,
        out: &mut [u8],
    ) -> Result<Option<usize>, CodecError> {
        self.engine(dictionary).compress_into(raw, dictionary, out)
    }

    fn decompress(&self, block: &[u8], dictionary: Option<&Dictionary>, raw: &mut [u8]) -> Result<(), CodecError> {
        self.engine(dictionary).decompress(block, dictionary, raw)
    }

    fn decode<'s>(
        &self,
        block: &[u8],
        dictionary: Option<&Dictionary>,
        raw_len: usize,
        needed: usize,
        scratch: &'s mut Scratch,
    ) -> Result<&'s [u8], CodecError> {
        self.engine(dictionary)
            .decode(block, dictionary, raw_len, needed, scratch)
    }

    fn compress_batch(
        &self,
        raws: &[&[u8]],
        dictionary: Option<&Dictionary>,
        out: &mut Vec<Vec<u8>>,
    ) -> Result<(), CodecError> {
        self.engine(dictionary).compress_batch(raws, dictionary, out)
    }

    fn decompress_batch(
        &self,
        blocks: &[&[u8]],
        dictionary: Option<&Dictionary>,
        raws: &mut [&mut [u8]],
    ) -> Vec<Result<(), CodecError>> {
        self.engine(dictionary).decompress_batch(blocks, dictionary, raws)
    }
}
