//! Blocks that say themselves what they are: for files, sockets and other stores, where nobody else knows.
//!
//! A block of an [`Engine`] has no header: whoever keeps it also keeps its codec, its dictionary and its raw length. A *sealed* block
//! has all of that in front, and a checksum, for 14 to 22 bytes more. Any build of this library with the codec reads it.
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
//! The format, of which integers are little-endian and whose version is its fourth byte:
//!
//! ```text
//! "LPS" 1   form u8   raw length LEB128   dictionary's id u32   checksum u64   block
//! ```
//!
//! The low bits of the form say what the block is: 0 the raw bytes, 1 LZ4, 2 Zstandard, 3 deflate, as the table in [`codec`](super) has
//! them with the options' defaults. 128 is added where there is a dictionary; elsewhere its id is left out. What does not shrink is
//! stored raw. The checksum is rapidhash V3 of the block, seeded with that of what stands before the checksum (default seed), exclusive-or that
//! of the raw bytes turned left by one bit. It finds damage, and a dictionary that has the right id and the wrong bytes. It is no
//! protection against who makes blocks on purpose.

use std::sync::{Arc, OnceLock};

use rapidhash::v3::{RapidSecrets, rapidhash_v3, rapidhash_v3_seeded};

use super::{Codec, CodecError, Dictionary, Engine, EngineOptions, output};
use leafpress_base::mem::room::room_for;

/// What errors name.
const SEALED: &str = "sealed";
const MAGIC: [u8; 4] = *b"LPS\x01";
const WITH_DICTIONARY: u8 = 0x80;
const CHECKSUM_BYTES: usize = 8;

/// Most raw bytes of a sealed block: 1 GiB.
pub const MAX_RAW_BYTES: usize = 1 << 30;
/// What a sealed block is at most longer than its raw bytes.
pub const MAX_OVERHEAD_BYTES: usize = MAGIC.len() + 1 + MAX_LEB128_BYTES + 4 + CHECKSUM_BYTES;
/// LEB128 of [`MAX_RAW_BYTES`].
const MAX_LEB128_BYTES: usize = 5;

/// What a block in a seal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Form {
    Raw = 0,
    Lz4 = 1,
    Zstd = 2,
    Deflate = 3,
}

impl Form {
    /// What engines of a codec write.
    fn of(codec: Codec) -> Self {
        match codec {
            Codec::Lz4 { .. } | Codec::Lz4Hc { .. } => Self::Lz4,
            Codec::Zstd { .. } => Self::Zstd,
            Codec::Deflate { .. } | Codec::Zlib { .. } | Codec::Zlib32K { .. } | Codec::Qpl { .. } => Self::Deflate,
            // An engine of `auto` does not open.
            Codec::None | Codec::Auto { .. } => Self::Raw,
        }
    }

    /// A codec that reads it, whatever its level was; none for raw bytes.
    fn reader(self) -> Codec {
        match self {
            Self::Raw => Codec::None,
            Self::Lz4 => Codec::Lz4 { acceleration: 1 },
            Self::Zstd => Codec::Zstd { level: 1 },
            Self::Deflate => Codec::Deflate { level: 1 },
        }
    }

    /// The engine of that codec, opened once.
    fn engine(self) -> Result<Arc<dyn Engine>, CodecError> {
        static ENGINES: [OnceLock<Arc<dyn Engine>>; 4] = [const { OnceLock::new() }; 4];
        let place = &ENGINES[self as usize];
        if let Some(engine) = place.get() {
            return Ok(Arc::clone(engine));
        }
        let engine = self.reader().open(&EngineOptions::default())?;
        Ok(Arc::clone(place.get_or_init(|| engine)))
    }

    /// Most raw bytes that a block of so many bytes can be of, roundly: what says more is damaged.
    fn most_raw_bytes(self, block_bytes: usize) -> usize {
        let expanded = |factor: usize, more: usize| block_bytes.saturating_mul(factor).saturating_add(more);
        match self {
            Self::Raw => block_bytes,
            // A match's length grows by 255 with a byte.
            Self::Lz4 => expanded(255, 64),
            // Four bytes are 128 KiB of one byte.
            Self::Zstd => expanded(32 << 10, 128 << 10),
            // Two bits are 258 bytes.
            Self::Deflate => expanded(1032, 1032),
        }
    }
}

/// Compresses into sealed blocks. Threads share it.
#[derive(Debug, Clone)]
pub struct Sealer {
    engine: Arc<dyn Engine>,
    form: Form,
}

impl Sealer {
    /// Opens the codec.
    ///
    /// # Errors
    /// As [`Codec::open`].
    pub fn open(codec: Codec) -> Result<Self, CodecError> {
        Ok(Self {
            engine: codec.open(&EngineOptions::default())?,
            form: Form::of(codec),
        })
    }

    /// The codec.
    #[must_use]
    pub fn codec(&self) -> Codec {
        self.engine.codec()
    }

    /// `raw`, compressed and sealed: at most [`MAX_OVERHEAD_BYTES`] longer than it is. A codec without dictionaries ignores the one given.
    ///
    /// # Errors
    /// [`CodecError::TooLong`] past [`MAX_RAW_BYTES`], [`CodecError::OutOfMemory`], [`CodecError::Failed`] when the codec refuses the
    /// dictionary.
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

/// What a sealed block says of itself. Nothing of it is proved before the block is decoded, but that it may be so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Label {
    /// The codec's family, as [`Codec::family`] has it: `none` for raw bytes.
    pub family: &'static str,
    /// The id of the dictionary that it takes.
    pub dictionary_id: Option<u32>,
    /// Raw bytes: at most [`MAX_RAW_BYTES`], and no more than so long a block can be of.
    pub raw_bytes: usize,
    form: Form,
    /// Where the checksum is; the block is behind it.
    checksum_at: usize,
}

impl Label {
    /// Reads what stands in front of a block, and decodes nothing.
    ///
    /// # Errors
    /// [`CodecError::Corrupt`] when it is no sealed block, one of a later version, or cannot be whole.
    pub fn read(sealed: &[u8]) -> Result<Self, CodecError> {
        let (magic, rest) = sealed.split_first_chunk::<4>().ok_or_else(cut_off)?;
        if *magic != MAGIC {
            let reason = match magic[..3] == MAGIC[..3] {
                true => "it is of a version that this build does not know",
                false => "it does not begin as a sealed block",
            };
            return Err(output::corrupt(SEALED, reason));
        }
        let (&form_byte, rest) = rest.split_first().ok_or_else(cut_off)?;
        let form = match form_byte & !WITH_DICTIONARY {
            0 => Form::Raw,
            1 => Form::Lz4,
            2 => Form::Zstd,
            3 => Form::Deflate,
            _ => {
                return Err(output::corrupt(
                    SEALED,
                    "it is of a codec that this build does not know",
                ));
            }
        };
        let (raw_bytes, mut rest) = take_leb128(rest)?;
        let mut dictionary_id = None;
        if form_byte & WITH_DICTIONARY != 0 {
            let (id, behind) = rest.split_first_chunk::<4>().ok_or_else(cut_off)?;
            (dictionary_id, rest) = (Some(u32::from_le_bytes(*id)), behind);
        }
        let checksum_at = sealed.len() - rest.len();
        let block_bytes = rest.len().checked_sub(CHECKSUM_BYTES).ok_or_else(cut_off)?;
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

    /// Decodes into `raw`, which is as long as `raw_bytes` says.
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

/// The raw bytes of a sealed block. Of `dictionaries` it takes the one with the id that the block names. A block of more than
/// `most_raw_bytes` is refused before memory is asked for.
///
/// # Errors
/// [`CodecError::Corrupt`] for whatever [`Sealer::seal`] did not write, [`CodecError::TooLong`], [`CodecError::UnknownDictionary`],
/// [`CodecError::OutOfMemory`], and [`CodecError::Unavailable`] in a build without the codec.
pub fn unseal(sealed: &[u8], dictionaries: &[Dictionary], most_raw_bytes: usize) -> Result<Vec<u8>, CodecError> {
    let label = Label::read(sealed)?;
    if label.raw_bytes > most_raw_bytes {
        return Err(too_long(label.raw_bytes, most_raw_bytes));
    }
    // Before memory is asked for, which a damaged length may say much of.
    label.dictionary(dictionaries)?;
    let mut raw = room_for(label.raw_bytes)?;
    raw.resize(label.raw_bytes, 0);
    label.decode(sealed, dictionaries, &mut raw)?;
    Ok(raw)
}

/// The same into the front of `raw`, whose length is the bound; returns how many bytes there are. On an error `raw` has any content.
///
/// # Errors
/// As [`unseal`].
pub fn unseal_into(sealed: &[u8], dictionaries: &[Dictionary], raw: &mut [u8]) -> Result<usize, CodecError> {
    let label = Label::read(sealed)?;
    let most_raw_bytes = raw.len();
    let raw = raw.get_mut(..label.raw_bytes);
    let raw = raw.ok_or_else(|| too_long(label.raw_bytes, most_raw_bytes))?;
    label.decode(sealed, dictionaries, raw)?;
    Ok(label.raw_bytes)
}

/// What stands before the block. The checksum is put in when the block is there.
fn put_header(sealed: &mut Vec<u8>, form: Form, raw_bytes: usize, dictionary_id: Option<u32>) {
    let with_dictionary = if dictionary_id.is_some() { WITH_DICTIONARY } else { 0 };
    sealed.extend_from_slice(&MAGIC);
    sealed.push(form as u8 | with_dictionary);
    let mut rest = raw_bytes;
    while rest >= 0x80 {
        sealed.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    sealed.push(rest as u8);
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

/// A number in LEB128, in its shortest form, and what is behind it.
fn take_leb128(bytes: &[u8]) -> Result<(usize, &[u8]), CodecError> {
    let mut number = 0_u64;
    for (index, &byte) in bytes.iter().take(MAX_LEB128_BYTES).enumerate() {
        number |= u64::from(byte & 0x7F) << (7 * index);
        if byte & 0x80 == 0 {
            let is_shortest = index == 0 || byte != 0;
            let number = usize::try_from(number).ok().filter(|_| is_shortest);
            let number = number.ok_or_else(bad_length)?;
            return Ok((number, &bytes[index + 1..]));
        }
    }
    Err(if bytes.len() < MAX_LEB128_BYTES {
        cut_off()
    } else {
        bad_length()
    })
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
