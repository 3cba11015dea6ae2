//! Training dictionaries from samples.
//!
//! The content is chosen by FastCover (Liao, Petri, Moffat, Wirth, "Effective construction of relative Lempel-Ziv
//! dictionaries", WWW 2016, as implemented in zstd's dictBuilder). For zstd the entropy tables are added; LZ4 has none,
//! so its dictionaries are only content. FastCover's main parameter, the length of a segment, is chosen by compressing
//! held-out samples with the codec itself. `onpair` has a trainer of its own, `onpair/train.rs`.

use rapidhash::v3::rapidhash_v3;

#[cfg(feature = "zstd")]
use super::EngineOptions;
use super::dictionary::{TRAINING, ZstdHeader};
#[cfg(feature = "zstd")]
use super::zstd::train::Samples;
use super::{Codec, CodecError, Dictionary, onpair, output};
use leafpress_base::mem::room::{collected, room_for};

/// The minimum number of samples.
pub const MIN_SAMPLES: usize = 8;
/// The minimum total length of the samples, in bytes.
pub const MIN_SAMPLE_BYTES: usize = 2048;
/// The minimum size of a dictionary, in bytes: zstd's own bound.
pub const MIN_DICTIONARY_BYTES: usize = 256;

impl Codec {
    /// Returns true if this build can train dictionaries for the codec, or for one of its candidates.
    pub fn can_train(&self) -> bool {
        let by_zstd = cfg!(feature = "zstd") && matches!(self.family(), "lz4" | "zstd");
        by_zstd || matches!(self.family(), "onpair" | "trial")
    }
}

impl Dictionary {
    /// Trains a dictionary of at most `max_bytes` for `codec` from samples of the records or frames it will be used
    /// for. Its id is a hash of its bytes. Training takes about 100 ms per MB of samples; samples past about fifty
    /// times `max_bytes` add little.
    ///
    /// # Errors
    /// Returns [`CodecError::OutOfMemory`]; [`CodecError::Failed`] if `codec` uses no dictionaries, `max_bytes` is
    /// below [`MIN_DICTIONARY_BYTES`], or the samples are too few or too small; or, of `lz4` and `zstd`,
    /// [`CodecError::Unavailable`] if the crate is built without its feature `zstd`, whose library has the trainer.
    pub fn train(codec: Codec, samples: &[&[u8]], max_bytes: usize) -> Result<Self, CodecError> {
        let mut trained = Self::train_sizes(codec, samples, &[max_bytes])?;
        trained
            .pop()
            .ok_or_else(|| output::failed(TRAINING, "no dictionary was found"))
    }

    /// Trains a dictionary for each of these maximum sizes in bytes, which fall, as [`Dictionary::train`] does for one.
    /// With `onpair` this takes hardly more time than the first of them. Sizes that are too small for the codec are
    /// left out, except for the first.
    ///
    /// # Errors
    /// Those of [`Dictionary::train`]; no size may be below [`MIN_DICTIONARY_BYTES`].
    pub fn train_sizes(codec: Codec, samples: &[&[u8]], sizes: &[usize]) -> Result<Vec<Self>, CodecError> {
        if let Some(max_bytes) = sizes.iter().find(|size| **size < MIN_DICTIONARY_BYTES) {
            return Err(output::failed(
                TRAINING,
                format!("{max_bytes} bytes are too few for a dictionary, the least is {MIN_DICTIONARY_BYTES}"),
            ));
        }
        if samples.len() < MIN_SAMPLES {
            return Err(output::failed(
                TRAINING,
                format!(
                    "{} samples are too few, at least {MIN_SAMPLES} are needed",
                    samples.len()
                ),
            ));
        }
        let sample_bytes: usize = samples.iter().map(|s| s.len()).sum();
        if sample_bytes < MIN_SAMPLE_BYTES {
            return Err(output::failed(
                TRAINING,
                format!("{sample_bytes} bytes of samples are too few, at least {MIN_SAMPLE_BYTES} are needed"),
            ));
        }
        let header = match codec {
            Codec::Zstd { .. } => ZstdHeader::Kept,
            Codec::Lz4 { .. } | Codec::Lz4Hc { .. } => ZstdHeader::CutOff,
            Codec::OnPair { .. } | Codec::OnPairHuffman => {
                let trained = onpair::train(codec, samples, sizes)?.into_iter();
                return collected(trained.map(|bytes| Self::trained(Some(codec), bytes))).map_err(Into::into);
            }
            other => return Err(output::failed(TRAINING, format!("codec {other} uses no dictionary"))),
        };
        let mut trained = room_for(sizes.len())?;
        for size in sizes {
            trained.push(Self::trained(Some(codec), best(codec, header, samples, *size)?));
        }
        Ok(trained)
    }

    /// Returns the dictionary with the bytes of an earlier result of [`Dictionary::train`], for its codec if that is
    /// known, and with the same id. A tree that chooses its codec needs the dictionary's to begin with it.
    ///
    /// ```
    /// use leafpress_codec::Dictionary;
    ///
    /// let dictionary = Dictionary::from_trained(None, b"what records have in common".as_slice());
    /// assert_eq!(Dictionary::from_trained(None, dictionary.bytes()).id(), dictionary.id());
    /// ```
    pub fn from_trained(codec: Option<Codec>, bytes: impl Into<Box<[u8]>>) -> Self {
        Self::trained(codec, bytes)
    }

    fn trained(codec: Option<Codec>, bytes: impl Into<Box<[u8]>>) -> Self {
        let bytes = bytes.into();
        // Any 32 bits derived from the bytes will do; 0 is reserved for "none".
        let id = (rapidhash_v3(&bytes) as u32).max(1);
        Self::new(codec, id, bytes)
    }
}

#[cfg(feature = "zstd")]
/// Candidate segment lengths of FastCover: similar records need long segments, text short ones.
const SEGMENT_BYTES: [u32; 5] = [64, 256, 512, 1024, 2048];
#[cfg(feature = "zstd")]
/// One sample in this many is held out of the training to evaluate the dictionaries.
const HELD_OUT: usize = 8;
#[cfg(feature = "zstd")]
/// Maximum number of held-out samples; more only cost time.
const MAX_HELD_OUT: usize = 4000;

#[cfg(feature = "zstd")]
/// Trains a dictionary per segment length, and returns the one with which the codec itself compresses best.
fn best(codec: Codec, header: ZstdHeader, samples: &[&[u8]], max_bytes: usize) -> Result<Vec<u8>, CodecError> {
    let every = HELD_OUT.max(samples.len() / MAX_HELD_OUT);
    let part = |of_judges: bool| {
        let is_of_it = move |(i, _): &(usize, &&[u8])| (i % every == every - 1) == of_judges;
        collected(samples.iter().enumerate().filter(is_of_it).map(|(_, sample)| *sample))
    };
    let (judges, training): (Vec<&[u8]>, Vec<&[u8]>) = (part(true)?, part(false)?);
    let level = if let Codec::Zstd { level } = codec { level } else { 1 };
    let engine = codec.open(&EngineOptions::default())?;
    let training = Samples::new(&training)?;
    let mut best: Option<(usize, Vec<u8>)> = None;
    let mut failure = None;
    let mut block = Vec::new();
    for segment_bytes in SEGMENT_BYTES {
        let judged = training
            .cover(max_bytes, header, segment_bytes, level)
            .and_then(|bytes| {
                let dictionary = Dictionary::from_bytes(0, bytes.as_slice());
                let mut sum = 0;
                for sample in &judges {
                    block.clear();
                    sum += engine.compress(sample, Some(&dictionary), &mut block)?;
                }
                Ok((sum, bytes))
            });
        match judged {
            Ok(candidate) if best.as_ref().is_none_or(|(least, _)| candidate.0 < *least) => best = Some(candidate),
            Ok(_) => {}
            Err(error) => failure = Some(error),
        }
    }
    match (best, failure) {
        (Some((_, bytes)), _) => Ok(bytes),
        (None, Some(error)) => Err(error),
        (None, None) => Err(output::failed(TRAINING, "no dictionary was found")),
    }
}

#[cfg(not(feature = "zstd"))]
/// Stub: the trainer is part of libzstd.
fn best(_: Codec, _: ZstdHeader, _: &[&[u8]], _: usize) -> Result<Vec<u8>, CodecError> {
    Err(CodecError::Unavailable {
        codec: TRAINING.to_owned(),
        reason: super::open::left_out("zstd"),
    })
}
