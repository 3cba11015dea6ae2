//! The tokens that codes stand for, and their serialised form: the bytes of a dictionary.
//!
//! ```text
//! "LPO", version: u8 = 1, bits of a code: u8, entropy: u8 (0 or 1), tokens - 1: u16
//! for each token in ascending order: bytes shared with the token before it << 4 | length - 1: u8, and the other bytes
//! with entropy, for each pair of tokens: the lengths of their Huffman codes, in four bits each
//! the low 32 bits of rapidhash of all bytes before: u32
//! ```
//!
//! Integers are little-endian. Each of the 256 single bytes is a token, so that any record can be encoded.

use leafpress_base::mem::room::{TryGrow, room_for};
use rapidhash::v3::rapidhash_v3;

use super::code_lengths::{self, MAX_CODE_BITS};
use crate::CodecError;

/// Maximum length of a token, in bytes.
pub(super) const MAX_TOKEN_BYTES: usize = 16;
/// Number of tokens of a single byte.
pub(super) const SINGLES: usize = 256;

const MAGIC: [u8; 4] = *b"LPO\x01";
const HEADER_BYTES: usize = MAGIC.len() + 4;
const CHECK_BYTES: usize = 4;

/// The form of a dictionary's codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    /// Bits of a code: 12, 14 or 16.
    pub bits: u8,
    /// Whether codes are Huffman coded.
    pub entropy: bool,
}

/// Tokens in ascending order; a token's position is its code. Empty ones may follow, to fill a decoder's table up.
#[derive(Default)]
pub(super) struct Tokens {
    /// Each token, padded with zeros.
    entries: Vec<[u8; MAX_TOKEN_BYTES]>,
    lengths: Vec<u8>,
}

/// Tokens and, with entropy, the length of each one's Huffman code in bits.
pub(super) struct Dictionary {
    pub form: Form,
    pub tokens: Tokens,
    pub code_bits: Option<Vec<u8>>,
}

impl Tokens {
    /// Returns no tokens, with room for `count`.
    pub(super) fn with_room(count: usize) -> Result<Self, CodecError> {
        Ok(Self {
            entries: room_for(count)?,
            lengths: room_for(count)?,
        })
    }

    /// Returns the tokens of a single byte.
    pub(super) fn singles() -> Result<Self, CodecError> {
        let mut singles = Self::with_room(SINGLES)?;
        for byte in 0..=u8::MAX {
            singles.push(&padded(&[byte]), 1)?;
        }
        Ok(singles)
    }

    /// Appends a token. `length` is 1 to 16.
    pub(super) fn push(&mut self, entry: &[u8; MAX_TOKEN_BYTES], length: u8) -> Result<(), CodecError> {
        debug_assert!((1..=MAX_TOKEN_BYTES).contains(&usize::from(length)));
        self.entries.try_push(*entry)?;
        self.lengths.try_push(length)?;
        Ok(())
    }

    /// Returns the number of tokens, without empty ones.
    pub(super) fn len(&self) -> usize {
        self.lengths
            .iter()
            .rposition(|&length| length > 0)
            .map_or(0, |last| last + 1)
    }

    /// Appends empty tokens up to a power of two.
    fn fill_up(&mut self) -> Result<(), CodecError> {
        let count = self.entries.len().next_power_of_two();
        self.entries.try_room(count - self.entries.len())?;
        self.lengths.try_room(count - self.lengths.len())?;
        self.entries.resize(count, [0; MAX_TOKEN_BYTES]);
        self.lengths.resize(count, 0);
        Ok(())
    }

    /// Returns the bytes of a token.
    pub(super) fn get(&self, code: usize) -> &[u8] {
        &self.entries[code][..usize::from(self.lengths[code])]
    }

    /// Returns each token, padded with zeros.
    #[inline]
    pub(super) fn entries(&self) -> &[[u8; MAX_TOKEN_BYTES]] {
        &self.entries
    }

    /// Returns the length of each token.
    #[inline]
    pub(super) fn lengths(&self) -> &[u8] {
        &self.lengths
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.entries.capacity() * MAX_TOKEN_BYTES + self.lengths.capacity()
    }
}

/// Returns a token's bytes, at most 16, padded with zeros.
pub(super) fn padded(bytes: &[u8]) -> [u8; MAX_TOKEN_BYTES] {
    let mut entry = [0; MAX_TOKEN_BYTES];
    entry[..bytes.len()].copy_from_slice(bytes);
    entry
}

impl Dictionary {
    /// Returns the serialised form.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, CodecError> {
        let mut bytes = room_for(HEADER_BYTES + CHECK_BYTES + self.tokens.len() * (MAX_TOKEN_BYTES + 2))?;
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&[self.form.bits, u8::from(self.form.entropy)]);
        bytes.extend_from_slice(&((self.tokens.len() - 1) as u16).to_le_bytes());
        let mut before: &[u8] = &[];
        for code in 0..self.tokens.len() {
            let token = self.tokens.get(code);
            let shared = before.iter().zip(token).take_while(|(one, other)| one == other).count();
            bytes.push((shared << 4 | (token.len() - 1)) as u8);
            bytes.extend_from_slice(&token[shared..]);
            before = token;
        }
        for pair in self.code_bits.as_deref().unwrap_or_default().chunks(2) {
            bytes.push(pair[0] | pair.get(1).unwrap_or(&0) << 4);
        }
        let check = rapidhash_v3(&bytes) as u32;
        bytes.extend_from_slice(&check.to_le_bytes());
        bytes.shrink_to_fit();
        Ok(bytes)
    }

    /// Reads the serialised form.
    ///
    /// # Errors
    /// [`CodecError::Failed`] for anything that [`Dictionary::to_bytes`] does not write, or
    /// [`CodecError::OutOfMemory`].
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, CodecError> {
        let refused = || super::failed("the dictionary is not one that was trained for onpair, or it is damaged");
        let (body, check) = bytes.split_last_chunk::<CHECK_BYTES>().ok_or_else(refused)?;
        let (header, mut rest) = body.split_first_chunk::<HEADER_BYTES>().ok_or_else(refused)?;
        let [m0, m1, m2, m3, bits, entropy, low, high] = *header;
        let count = usize::from(u16::from_le_bytes([low, high])) + 1;
        let is_known = [m0, m1, m2, m3] == MAGIC && matches!(bits, 12 | 14 | 16) && entropy <= 1 && count <= 1 << bits;
        if !is_known || rapidhash_v3(body) as u32 != u32::from_le_bytes(*check) {
            return Err(refused());
        }
        let mut tokens = Tokens::with_room(count.next_power_of_two())?;
        let (mut before, mut before_length) = ([0; MAX_TOKEN_BYTES], 0);
        let mut singles = 0;
        for _ in 0..count {
            let (&lengths, behind) = rest.split_first().ok_or_else(refused)?;
            let (shared, length) = (usize::from(lengths >> 4), usize::from(lengths & 15) + 1);
            let own = length
                .checked_sub(shared)
                .filter(|_| shared <= before_length)
                .ok_or_else(refused)?;
            let (own, behind) = behind.split_at_checked(own).ok_or_else(refused)?;
            let mut entry = [0; MAX_TOKEN_BYTES];
            entry[..shared].copy_from_slice(&before[..shared]);
            entry[shared..length].copy_from_slice(own);
            if entry[..length] <= before[..before_length] {
                return Err(refused());
            }
            singles += usize::from(length == 1);
            tokens.push(&entry, length as u8)?;
            (before, before_length, rest) = (entry, length, behind);
        }
        let mut code_bits = None;
        if entropy == 1 {
            let mut lengths = room_for(count)?;
            let (pairs, behind) = rest.split_at_checked(count.div_ceil(2)).ok_or_else(refused)?;
            lengths.extend(pairs.iter().flat_map(|pair| [pair & 15, pair >> 4]).take(count));
            if lengths.iter().any(|&length| u32::from(length) > MAX_CODE_BITS) || !code_lengths::is_complete(&lengths) {
                return Err(refused());
            }
            (code_bits, rest) = (Some(lengths), behind);
        }
        // Tokens ascend, so there are 256 of one byte only if each byte is one.
        if singles != SINGLES || !rest.is_empty() {
            return Err(refused());
        }
        tokens.fill_up()?;
        let form = Form {
            bits,
            entropy: entropy == 1,
        };
        Ok(Self {
            form,
            tokens,
            code_bits,
        })
    }
}
