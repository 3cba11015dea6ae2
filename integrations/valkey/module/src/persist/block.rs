//! Blocks of saved records: conversion between bytes, without a server.
//!
//! A block is a byte for the storage format of its content, the content's length if it is compressed, and the content.
//! The content for a map is records: the lengths of field and value in LEB128, and the two.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use leafpress::codec::{CodecError, Engine, EngineOptions};
use leafpress::{Codec, Dictionary};
use leafpress_base::bytes::{Bytes, put_leb128};

/// The longest content that is compressed, and the most that is allocated for a block that claims this length.
pub const CONTENT_BYTES: usize = 64 << 10;
/// Minimum length for compression.
const MIN_COMPRESSED: usize = 48;

const STORED: u8 = 0;
/// The compression formats, each followed by its variant with a dictionary.
const LZ4: u8 = 1;
const LZ4_WITH: u8 = LZ4 + 1;
const ZSTD: u8 = 3;
const ZSTD_WITH: u8 = ZSTD + 1;
const HEAD: usize = 5;
const HEAD_WITH: usize = 9;

/// The codec family of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Family {
    /// Fast in both directions.
    #[default]
    Lz4,
    /// Smaller.
    Zstd,
}

/// The codec and dictionary of a block.
#[derive(Debug, Clone, Default)]
pub struct Means {
    /// The codec.
    pub family: Family,
    /// The dictionary, which is one for this codec.
    pub dictionary: Option<Dictionary>,
}

impl Family {
    /// Returns the family for values of a tree with this codec, whose dictionary is used.
    pub fn of(codec: Codec) -> Self {
        match codec {
            Codec::Zstd { .. } => Self::Zstd,
            _ => Self::Lz4,
        }
    }

    fn mark(self) -> u8 {
        match self {
            Self::Lz4 => LZ4,
            Self::Zstd => ZSTD,
        }
    }

    /// Prefers speed to size: a snapshot waits for it, and forks hold memory while they save.
    fn engine(self) -> Result<Arc<dyn Engine>, BlockError> {
        static ENGINES: [OnceLock<Result<Arc<dyn Engine>, CodecError>>; 2] = [const { OnceLock::new() }; 2];
        let (engine, codec) = match self {
            Self::Lz4 => (&ENGINES[0], Codec::Lz4 { acceleration: 1 }),
            Self::Zstd => (&ENGINES[1], Codec::Zstd { level: 1 }),
        };
        let opened = engine.get_or_init(|| codec.open(&EngineOptions::default()));
        opened.clone().map_err(|_| BlockError::Codec)
    }
}

/// The reason why a block is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockError {
    /// It ends within its header.
    Short,
    /// Its storage format is unknown to this version.
    Unknown,
    /// Its content differs from its header, or is not a list of records.
    Corrupt,
    /// The codec cannot run here.
    Codec,
    /// It is compressed with a missing dictionary.
    Dictionary,
}

impl std::fmt::Display for BlockError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Short => "a block of records ends within its header",
            Self::Unknown => "the storage format of a block of records is unknown to this version",
            Self::Corrupt => "the content of a block of records is corrupt",
            Self::Codec => "the codec of saved blocks cannot run here",
            Self::Dictionary => "the dictionary of a block of records was not stored before it",
        })
    }
}

/// Seals content into a block, and replaces the block's previous content.
pub fn seal(content: &[u8], means: &Means, block: &mut Vec<u8>) {
    block.clear();
    if (MIN_COMPRESSED..=CONTENT_BYTES).contains(&content.len())
        && let Ok(engine) = means.family.engine()
    {
        let dictionary = means.dictionary.as_ref();
        block.push(means.family.mark() + u8::from(dictionary.is_some()));
        block.extend_from_slice(&(content.len() as u32).to_le_bytes());
        if let Some(dictionary) = dictionary {
            block.extend_from_slice(&dictionary.id().to_le_bytes());
        }
        if engine.compress(content, dictionary, block).is_ok() && block.len() < content.len() {
            return;
        }
        block.clear();
    }
    block.push(STORED);
    block.extend_from_slice(content);
}

/// Returns the content of a block. `dictionary` looks up a dictionary by its number.
pub fn open(block: &[u8], dictionary: impl FnOnce(u32) -> Option<Dictionary>) -> Result<Cow<'_, [u8]>, BlockError> {
    let (&mark, rest) = block.split_first().ok_or(BlockError::Short)?;
    let family = match mark {
        STORED => return Ok(Cow::Borrowed(rest)),
        LZ4 | LZ4_WITH => Family::Lz4,
        ZSTD | ZSTD_WITH => Family::Zstd,
        _ => return Err(BlockError::Unknown),
    };
    if mark == family.mark() {
        let (head, compressed) = block.split_at_checked(HEAD).ok_or(BlockError::Short)?;
        return expand(family, head, compressed, None);
    }
    let (head, compressed) = block.split_at_checked(HEAD_WITH).ok_or(BlockError::Short)?;
    let dictionary = dictionary(number(head, HEAD)?).ok_or(BlockError::Dictionary)?;
    expand(family, head, compressed, Some(&dictionary))
}

fn number(head: &[u8], at: usize) -> Result<u32, BlockError> {
    let bytes = head.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    bytes.map(u32::from_le_bytes).ok_or(BlockError::Short)
}

fn expand<'b>(
    family: Family,
    head: &[u8],
    compressed: &[u8],
    dictionary: Option<&Dictionary>,
) -> Result<Cow<'b, [u8]>, BlockError> {
    let len = number(head, 1)? as usize;
    if len > CONTENT_BYTES {
        return Err(BlockError::Corrupt);
    }
    let mut content = vec![0; len];
    family
        .engine()?
        .decompress(compressed, dictionary, &mut content)
        .map_err(|_| BlockError::Corrupt)?;
    Ok(Cow::Owned(content))
}

/// Appends a record to a block's content.
pub fn put_record(content: &mut Vec<u8>, field: &[u8], value: &[u8]) {
    put_leb128(content, field.len());
    put_leb128(content, value.len());
    content.extend_from_slice(field);
    content.extend_from_slice(value);
}

/// The records in a block's content.
pub struct Records<'b> {
    rest: Bytes<'b>,
}

impl<'b> Records<'b> {
    /// Iterates over the records of this content.
    pub fn new(content: &'b [u8]) -> Self {
        Self { rest: Bytes(content) }
    }

    /// Returns [`None`] for content that ends too early or has an overlong number.
    fn record(&mut self) -> Option<(&'b [u8], &'b [u8])> {
        let (field, value) = (self.rest.leb128()?, self.rest.leb128()?);
        Some((self.rest.take(field)?, self.rest.take(value)?))
    }
}

impl<'b> Iterator for Records<'b> {
    type Item = Result<(&'b [u8], &'b [u8]), BlockError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.0.is_empty() {
            return None;
        }
        let record = self.record();
        if record.is_none() {
            self.rest = Bytes(&[]);
        }
        Some(record.ok_or(BlockError::Corrupt))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_sealed_opens(
            family in prop_oneof![Just(Family::Lz4), Just(Family::Zstd)],
            records in prop::collection::vec(
                (prop::collection::vec(0_u8..4, 0..300), prop::collection::vec(any::<u8>(), 0..300)),
                0..60,
            ),
        ) {
            let (mut content, mut block) = (Vec::new(), Vec::new());
            for (field, value) in &records {
                put_record(&mut content, field, value);
            }
            seal(&content, &Means { family, dictionary: None }, &mut block);
            let opened = open(&block, |_| None).unwrap();
            prop_assert_eq!(&*opened, &content[..]);
            let read: Result<Vec<_>, _> = Records::new(&opened)
                .map(|record| record.map(|(f, v)| (f.to_vec(), v.to_vec())))
                .collect();
            prop_assert_eq!(read.unwrap(), records);
        }

        #[test]
        fn any_bytes_are_a_block_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(content) = open(&bytes, |_| None) {
                prop_assert!(content.len() <= CONTENT_BYTES);
                for record in Records::new(&content).flatten() {
                    prop_assert!(record.0.len() + record.1.len() <= content.len());
                }
            }
        }

        #[test]
        fn a_block_with_a_changed_byte_never_gives_more_than_it_may(
            family in prop_oneof![Just(Family::Lz4), Just(Family::Zstd)],
            at in any::<prop::sample::Index>(),
            with in any::<u8>(),
        ) {
            let mut block = Vec::new();
            seal(&[b"{\"name\": \"value\"}".as_slice(); 500].concat(), &Means { family, dictionary: None }, &mut block);
            let at = at.index(block.len());
            block[at] = with;
            if let Ok(content) = open(&block, |_| None) {
                prop_assert!(content.len() <= CONTENT_BYTES);
            }
        }
    }

    #[test]
    fn a_block_with_a_dictionary_needs_it() {
        let samples: Vec<Vec<u8>> = (0..2000)
            .map(|i| format!("{{\"user\": {i}, \"city\": \"a town\"}}").into_bytes())
            .collect();
        let samples: Vec<&[u8]> = samples.iter().map(Vec::as_slice).collect();
        for (family, codec) in [
            (Family::Lz4, Codec::Lz4 { acceleration: 1 }),
            (Family::Zstd, Codec::Zstd { level: 1 }),
        ] {
            let dictionary = Dictionary::train(codec, &samples, 4096).unwrap();
            let content = samples[..3].concat();
            let (mut with, mut without) = (Vec::new(), Vec::new());
            seal(
                &content,
                &Means {
                    family,
                    dictionary: Some(dictionary.clone()),
                },
                &mut with,
            );
            seal(
                &content,
                &Means {
                    family,
                    dictionary: None,
                },
                &mut without,
            );
            assert!(with.len() < without.len());
            let opened = open(&with, |id| (id == dictionary.id()).then(|| dictionary.clone()));
            assert_eq!(&*opened.unwrap(), &content[..]);
            assert_eq!(open(&with, |_| None), Err(BlockError::Dictionary));
            assert_eq!(open(&with[..7], |_| None), Err(BlockError::Short));
            // Another dictionary of this number results only in an error or other bytes.
            let other = Dictionary::from_bytes(dictionary.id(), &b"other"[..]);
            assert!(open(&with, |_| Some(other)).is_err());
        }
    }
}
