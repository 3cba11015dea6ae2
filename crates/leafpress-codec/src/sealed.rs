//! Self-describing blocks, for files, sockets and other stores without metadata of their own.
//!
//! A block of an [`Engine`] has no header: its codec, its dictionary and its raw length have to be stored elsewhere. A
//! *sealed* block has all of that in a header, with a checksum, for 14 to 22 bytes more. Any build of this library with
//! the codec reads it.
//!
//! ```
//! # fn main() -> Result<(), leafpress_codec::CodecError> {
//! use leafpress_codec::sealed::{self, Sealer};
//!
//! let sealer = Sealer::open("zstd:3".parse()?)?;
//! let raw = b"Once upon a time, and a time, and a time. ".repeat(20);
//! let sealed = sealer.seal(&raw, None)?;
//! assert!(sealed.len() < raw.len() / 4);
//! assert_eq!(sealed::unseal(&sealed, &[], 1 << 20)?, raw);
//! # Ok(())
//! # }
//! ```
//!
//! Format version 1 (the fourth byte is the version); integers are little-endian:
//!
//! ```text
//! "LPS" 1   form u8   raw length LEB128   dictionary's id u32   checksum u64   block
//! ```
//!
//! The low bits of the form are the block's format: 0 the raw bytes, 1 LZ4, 2 Zstandard, 3 deflate, 4 OnPair, as in the
//! table in [`codec`](super) with the options' defaults. 128 is added if there is a dictionary; otherwise its id is
//! omitted. An incompressible block is stored raw. The checksum is rapidhash V3 of the block, seeded with that of the
//! bytes before the checksum (default seed), XORed with that of the raw bytes rotated left by one bit. It detects
//! damage, and a dictionary with the right id and the wrong bytes. It does not protect against forged blocks.

use std::sync::{Arc, OnceLock};

use rapidhash::v3::{RapidSecrets, rapidhash_v3, rapidhash_v3_seeded};

use super::{Codec, CodecError, Dictionary, Engine, EngineOptions, output};
use leafpress_base::bytes::{Bytes, MAX_LEB128_BYTES, put_leb128};
use leafpress_base::mem::room::room_for;

/// The name in errors.
const SEALED: &str = "sealed";
const MAGIC: [u8; 4] = *b"LPS\x01";
const WITH_DICTIONARY: u8 = 0x80;
const CHECKSUM_BYTES: usize = 8;

/// The maximum raw length of a sealed block: 1 GiB.
pub const MAX_RAW_BYTES: usize = 1 << 30;
/// The maximum difference between the lengths of a sealed block and of its raw bytes.
pub const MAX_OVERHEAD_BYTES: usize = MAGIC.len() + 1 + MAX_LEB128_BYTES + 4 + CHECKSUM_BYTES;

/// The format of the block in a seal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Form {
    Raw = 0,
    Lz4 = 1,
    Zstd = 2,
    Deflate = 3,
    OnPair = 4,
}

impl Form {
    /// Returns the format that engines of a codec write.
    fn of(codec: Codec) -> Self {
        match codec {
            Codec::Lz4 { .. } | Codec::Lz4Hc { .. } => Self::Lz4,
            Codec::Zstd { .. } => Self::Zstd,
            Codec::Deflate { .. } | Codec::Zlib { .. } | Codec::Zlib32K { .. } | Codec::Qpl { .. } => Self::Deflate,
            Codec::OnPair { .. } | Codec::OnPairHuffman => Self::OnPair,
            // `auto` has no engine.
            Codec::None | Codec::Trial { .. } | Codec::Auto { .. } => Self::Raw,
        }
    }

    /// Returns a codec that reads the format, whatever its level was; `none` for raw bytes.
    fn reader(self) -> Codec {
        match self {
            Self::Raw => Codec::None,
            Self::Lz4 => Codec::Lz4 { acceleration: 1 },
            Self::Zstd => Codec::Zstd { level: 1 },
            Self::Deflate => Codec::Deflate { level: 1 },
            // The dictionary says what form its codes have.
            Self::OnPair => Codec::OnPair { bits: 12 },
        }
    }

    /// Returns the engine of that codec, opened once.
    fn engine(self) -> Result<Arc<dyn Engine>, CodecError> {
        static ENGINES: [OnceLock<Arc<dyn Engine>>; 5] = [const { OnceLock::new() }; 5];
        let place = &ENGINES[self as usize];
        if let Some(engine) = place.get() {
            return Ok(Arc::clone(engine));
        }
        let engine = self.reader().open(&EngineOptions::default())?;
        Ok(Arc::clone(place.get_or_init(|| engine)))
    }

    /// Returns an approximate upper bound of the raw length of a block: a header that exceeds it is damaged.
    fn most_raw_bytes(self, block_bytes: usize) -> usize {
        let expanded = |factor: usize, more: usize| block_bytes.saturating_mul(factor).saturating_add(more);
        match self {
            Self::Raw => block_bytes,
            // A match grows by 255 bytes per length byte.
            Self::Lz4 => expanded(255, 64),
            // Four bytes encode 128 KiB of one byte.
            Self::Zstd => expanded(32 << 10, 128 << 10),
            // Two bits encode 258 bytes.
            Self::Deflate => expanded(1032, 1032),
            // One bit encodes 16 bytes.
            Self::OnPair => expanded(128, 128),
        }
    }
}

/// A compressor of sealed blocks. Threads may share it.
#[derive(Debug, Clone)]
pub struct Sealer {
    engine: Arc<dyn Engine>,
    form: Form,
}

impl Sealer {
    /// Opens the codec.
    ///
    /// # Errors
    /// Returns the errors of [`Codec::open`].
    pub fn open(codec: Codec) -> Result<Self, CodecError> {
        Ok(Self {
            engine: codec.open(&EngineOptions::default())?,
            form: Form::of(codec),
        })
    }

    /// Returns the codec.
    #[must_use]
    pub fn codec(&self) -> Codec {
        self.engine.codec()
    }

    /// Compresses and seals `raw`. The result is at most [`MAX_OVERHEAD_BYTES`] longer than `raw`. A codec without
    /// dictionary support ignores the dictionary.
    ///
    /// # Errors
    /// Returns [`CodecError::TooLong`] past [`MAX_RAW_BYTES`], [`CodecError::OutOfMemory`], or [`CodecError::Failed`]
    /// if the codec refuses the dictionary.
    pub fn seal(&self, raw: &[u8], dictionary: Option<&Dictionary>) -> Result<Vec<u8>, CodecError> {
        if raw.len() > MAX_RAW_BYTES {
            return Err(too_long(raw.len(), MAX_RAW_BYTES));
        }
        let dictionary = dictionary.filter(|_| self.engine.supports_dictionary());
        let mut sealed = room_for(raw.len() + MAX_OVERHEAD_BYTES)?;
        put_header(&mut sealed, self.form, raw.len(), dictionary.map(Dictionary::id));
        let start = sealed.len();
        sealed.resize(start + raw.len(), 0);
        let written = match self.form {
            Form::Raw => None,
            _ => self.engine.compress_into(raw, dictionary, &mut sealed[start..])?,
        };
        if let Some(block_bytes) = written {
            sealed.truncate(start + block_bytes);
            put_checksum(&mut sealed, start, raw);
            return Ok(sealed);
        }
        sealed.clear();
        put_header(&mut sealed, Form::Raw, raw.len(), None);
        let start = sealed.len();
        sealed.extend_from_slice(raw);
        put_checksum(&mut sealed, start, raw);
        Ok(sealed)
    }
}

/// The header of a sealed block. It is checked for plausibility; its checksum is verified by decoding only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Label {
    /// The codec's family, as returned by [`Codec::family`]: `none` for raw bytes.
    pub family: &'static str,
    /// The id of the dictionary.
    pub dictionary_id: Option<u32>,
    /// The raw length, at most [`MAX_RAW_BYTES`], and plausible for the length of the block.
    pub raw_bytes: usize,
    form: Form,
    /// The offset of the checksum, which precedes the block.
    checksum_at: usize,
}

impl Label {
    /// Reads the header of a sealed block without decoding it.
    ///
    /// # Errors
    /// Returns [`CodecError::Corrupt`] if it is not a sealed block, has a later version, or is truncated.
    pub fn read(sealed: &[u8]) -> Result<Self, CodecError> {
        let mut bytes = Bytes(sealed);
        let magic: [u8; 4] = bytes.array().ok_or_else(cut_off)?;
        if magic != MAGIC {
            let reason = match magic[..3] == MAGIC[..3] {
                true => "it is of a version that this build does not know",
                false => "it does not begin as a sealed block",
            };
            return Err(output::corrupt(SEALED, reason));
        }
        let [form_byte] = bytes.array().ok_or_else(cut_off)?;
        let form = match form_byte & !WITH_DICTIONARY {
            0 => Form::Raw,
            1 => Form::Lz4,
            2 => Form::Zstd,
            3 => Form::Deflate,
            4 => Form::OnPair,
            _ => {
                return Err(output::corrupt(
                    SEALED,
                    "it is of a codec that this build does not know",
                ));
            }
        };
        let raw_bytes = take_raw_bytes(&mut bytes)?;
        let mut dictionary_id = None;
        if form_byte & WITH_DICTIONARY != 0 {
            dictionary_id = Some(bytes.u32().ok_or_else(cut_off)?);
        }
        let checksum_at = sealed.len() - bytes.0.len();
        let block_bytes = bytes.0.len().checked_sub(CHECKSUM_BYTES).ok_or_else(cut_off)?;
        let is_possible = match form {
            Form::Raw => raw_bytes == block_bytes && dictionary_id.is_none(),
            _ => raw_bytes <= form.most_raw_bytes(block_bytes),
        };
        if !is_possible || raw_bytes > MAX_RAW_BYTES {
            return Err(output::corrupt(
                SEALED,
                "its raw length is not one that so long a block can have",
            ));
        }
        Ok(Self {
            family: form.reader().family(),
            dictionary_id,
            raw_bytes,
            form,
            checksum_at,
        })
    }

    /// Decodes into `raw`, whose length is `raw_bytes`.
    fn decode(&self, sealed: &[u8], dictionaries: &[Dictionary], raw: &mut [u8]) -> Result<(), CodecError> {
        let start = self.checksum_at + CHECKSUM_BYTES;
        let block = &sealed[start..];
        let dictionary = self.dictionary(dictionaries)?;
        match self.form {
            Form::Raw => raw.copy_from_slice(block),
            form => form.engine()?.decompress(block, dictionary, raw)?,
        }
        if sealed[self.checksum_at..start] != checksum(&sealed[..self.checksum_at], block, raw) {
            return Err(output::corrupt(
                SEALED,
                "its checksum is wrong: it is damaged, or the dictionary is another of the same id",
            ));
        }
        Ok(())
    }

    fn dictionary<'d>(&self, dictionaries: &'d [Dictionary]) -> Result<Option<&'d Dictionary>, CodecError> {
        let Some(id) = self.dictionary_id else { return Ok(None) };
        let found = dictionaries.iter().find(|dictionary| dictionary.id() == id);
        found.map(Some).ok_or(CodecError::UnknownDictionary { id })
    }
}

/// Returns the raw bytes of a sealed block. The dictionary with the id that the block names is taken from
/// `dictionaries`. A block of more than `most_raw_bytes` is refused before memory is allocated.
///
/// # Errors
/// Returns [`CodecError::Corrupt`] for anything [`Sealer::seal`] did not write, [`CodecError::TooLong`],
/// [`CodecError::UnknownDictionary`], [`CodecError::OutOfMemory`], or [`CodecError::Unavailable`] in a build without
/// the codec.
pub fn unseal(sealed: &[u8], dictionaries: &[Dictionary], most_raw_bytes: usize) -> Result<Vec<u8>, CodecError> {
    let label = Label::read(sealed)?;
    if label.raw_bytes > most_raw_bytes {
        return Err(too_long(label.raw_bytes, most_raw_bytes));
    }
    // Checked before the allocation, whose size a damaged header may exaggerate.
    label.dictionary(dictionaries)?;
    let mut raw = room_for(label.raw_bytes)?;
    raw.resize(label.raw_bytes, 0);
    label.decode(sealed, dictionaries, &mut raw)?;
    Ok(raw)
}

/// Decodes a sealed block into the front of `raw`, whose length is the maximum; returns the raw length. On an error the
/// content of `raw` is unspecified.
///
/// # Errors
/// Returns the errors of [`unseal`].
pub fn unseal_into(sealed: &[u8], dictionaries: &[Dictionary], raw: &mut [u8]) -> Result<usize, CodecError> {
    let label = Label::read(sealed)?;
    let most_raw_bytes = raw.len();
    let raw = raw.get_mut(..label.raw_bytes);
    let raw = raw.ok_or_else(|| too_long(label.raw_bytes, most_raw_bytes))?;
    label.decode(sealed, dictionaries, raw)?;
    Ok(label.raw_bytes)
}

/// Writes the header. The checksum is filled in once the block is written.
fn put_header(sealed: &mut Vec<u8>, form: Form, raw_bytes: usize, dictionary_id: Option<u32>) {
    let with_dictionary = if dictionary_id.is_some() { WITH_DICTIONARY } else { 0 };
    sealed.extend_from_slice(&MAGIC);
    sealed.push(form as u8 | with_dictionary);
    put_leb128(sealed, raw_bytes);
    if let Some(id) = dictionary_id {
        sealed.extend_from_slice(&id.to_le_bytes());
    }
    sealed.extend_from_slice(&[0; CHECKSUM_BYTES]);
}

fn put_checksum(sealed: &mut [u8], start: usize, raw: &[u8]) {
    let at = start - CHECKSUM_BYTES;
    let checksum = checksum(&sealed[..at], &sealed[start..], raw);
    sealed[at..start].copy_from_slice(&checksum);
}

fn checksum(header: &[u8], block: &[u8], raw: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let of_header = rapidhash_v3(header);
    let of_block = rapidhash_v3_seeded(block, &RapidSecrets::seed_cpp(of_header));
    (of_block ^ rapidhash_v3(raw).rotate_left(1)).to_le_bytes()
}

/// Reads the raw length, whose LEB128 must be in its shortest form.
fn take_raw_bytes(bytes: &mut Bytes<'_>) -> Result<usize, CodecError> {
    let left = bytes.0.len();
    let number = bytes.leb128().ok_or_else(|| match left < MAX_LEB128_BYTES {
        true => cut_off(),
        false => bad_length(),
    })?;
    let digits = left - bytes.0.len();
    let is_shortest = digits == 1 || number >> (7 * (digits - 1)) != 0;
    if is_shortest { Ok(number) } else { Err(bad_length()) }
}

#[cold]
fn cut_off() -> CodecError {
    output::corrupt(SEALED, "it is cut off")
}

#[cold]
fn bad_length() -> CodecError {
    output::corrupt(SEALED, "its raw length is none that a writer writes")
}

#[cold]
fn too_long(bytes: usize, limit_bytes: usize) -> CodecError {
    CodecError::TooLong { bytes, limit_bytes }
}
