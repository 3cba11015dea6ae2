//! The decoder's tables, input and output.

use super::tokens::{MAX_TOKEN_BYTES, Tokens};

/// Bytes of room that four tokens may take. With as many after the output a block is decoded to its end in wide
/// strides.
pub(super) const FOUR_TOKENS_BYTES: usize = 4 * MAX_TOKEN_BYTES;

/// Tokens by their codes.
#[derive(Clone, Copy)]
pub(super) struct TokenTable<'t> {
    entries: &'t [[u8; MAX_TOKEN_BYTES]],
    lengths: &'t [u8],
    /// A power of two, less one, that is below the length of both slices.
    mask: usize,
}

impl<'t> TokenTable<'t> {
    /// Returns the table of tokens, of which there is at least one.
    pub(super) fn new(tokens: &'t Tokens) -> Self {
        let (entries, lengths) = (tokens.entries(), tokens.lengths());
        let count = entries.len().min(lengths.len());
        Self {
            entries,
            lengths,
            mask: (1 << count.ilog2()) - 1,
        }
    }

    /// Returns a token, padded, and its length. A code without a token has any token, or one of length 0.
    #[inline(always)]
    pub(super) fn token(&self, code: usize) -> Token<'t> {
        let code = code & self.mask;
        // SAFETY: the mask is below the length of both slices.
        unsafe {
            Token {
                entry: self.entries.get_unchecked(code),
                length: usize::from(*self.lengths.get_unchecked(code)),
            }
        }
    }
}

/// A token, padded, and its length.
pub(super) struct Token<'t> {
    pub entry: &'t [u8; MAX_TOKEN_BYTES],
    pub length: usize,
}

/// Where a block is decoded to.
pub(super) struct Output<'o> {
    bytes: &'o mut [u8],
    written: usize,
}

impl<'o> Output<'o> {
    pub(super) fn new(bytes: &'o mut [u8]) -> Self {
        Self { bytes, written: 0 }
    }

    #[inline(always)]
    pub(super) fn written(&self) -> usize {
        self.written
    }

    /// Appends a token. Returns false if there is no room for it.
    #[inline(always)]
    pub(super) fn put(&mut self, token: Token<'_>) -> bool {
        let rest = self.bytes.get_mut(self.written..).unwrap_or_default();
        if let Some(to) = rest.first_chunk_mut() {
            *to = *token.entry;
        } else if let (Some(to), Some(from)) = (rest.get_mut(..token.length), token.entry.get(..token.length)) {
            to.copy_from_slice(from);
        } else {
            return false;
        }
        self.written += token.length;
        true
    }

    /// Returns true if there is room for four tokens.
    #[inline(always)]
    pub(super) fn has_room_for_four(&self) -> bool {
        self.written + FOUR_TOKENS_BYTES <= self.bytes.len()
    }

    /// Appends up to four tokens, which `next` returns one by one; it gets the number of bytes written. The output does
    /// not include what is written behind a token's length.
    ///
    /// # Safety
    /// There is room for four tokens.
    #[inline(always)]
    pub(super) unsafe fn put_four<'t>(&mut self, mut next: impl FnMut(usize) -> Token<'t>) {
        for _ in 0..4 {
            let Token { entry, length } = next(self.written);
            // SAFETY: at most 16 bytes are written by each of the four, and the caller made sure that there are 64.
            unsafe {
                let to = self
                    .bytes
                    .as_mut_ptr()
                    .add(self.written)
                    .cast::<[u8; MAX_TOKEN_BYTES]>();
                to.write_unaligned(*entry);
            }
            self.written += length.min(MAX_TOKEN_BYTES);
        }
    }
}

/// A block whose bits can be read eight bytes at a time up to its end.
pub(super) struct Input<'b> {
    bytes: &'b [u8],
    /// A block of fewer than eight bytes.
    short: u64,
}

impl<'b> Input<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        let mut short = [0; 8];
        if bytes.len() < short.len() {
            short[..bytes.len()].copy_from_slice(bytes);
        }
        Self {
            bytes,
            short: u64::from_le_bytes(short),
        }
    }

    /// Returns the number of bits.
    #[inline(always)]
    pub(super) fn bits(&self) -> usize {
        self.bytes.len() * 8
    }

    /// Returns at least 57 bits from `bit` on, if the block has the eight bytes that begin there.
    #[inline(always)]
    pub(super) fn word(&self, bit: usize) -> Option<u64> {
        let next = self.bytes.get(bit / 8..)?.first_chunk()?;
        Some(u64::from_le_bytes(*next) >> (bit % 8))
    }

    /// Returns the next bits, at least 57 unless the block ends before; zeros follow its end. `bit` is inside the
    /// block.
    #[inline(always)]
    pub(super) fn last_word(&self, bit: usize) -> u64 {
        let Some(last) = self.bytes.last_chunk::<8>() else {
            return self.short >> (bit % 64);
        };
        self.word(bit).unwrap_or_else(|| {
            let start = (self.bytes.len() - 8) * 8;
            u64::from_le_bytes(*last) >> ((bit - start) % 64)
        })
    }
}
