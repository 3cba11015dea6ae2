//! Blocks of packed codes, without entropy coding.
//!
//! Codes follow each other in 12, 14 or 16 bits, the low bits first; the last byte is filled up with zeros. The number
//! of codes follows from the length of the block.

use std::hint::select_unpredictable;

use super::decode::{Input, Output, Table, Token};

/// A writer of codes.
pub(super) struct Packer<'o> {
    out: &'o mut [u8],
    len: usize,
    word: u64,
    word_bits: u32,
}

impl<'o> Packer<'o> {
    pub(super) fn new(out: &'o mut [u8]) -> Self {
        Self {
            out,
            len: 0,
            word: 0,
            word_bits: 0,
        }
    }

    /// Appends the low `bits` bits of `code`, at most 16. Returns false if there is no room.
    #[inline]
    pub(super) fn push(&mut self, code: u32, bits: u32) -> bool {
        self.word |= u64::from(code) << self.word_bits;
        self.word_bits += bits;
        if self.word_bits < 32 {
            return true;
        }
        let Some(to) = self.out.get_mut(self.len..self.len + 4) else {
            return false;
        };
        to.copy_from_slice(&(self.word as u32).to_le_bytes());
        self.len += 4;
        self.word >>= 32;
        self.word_bits -= 32;
        true
    }

    /// Writes the last bytes. Returns the length of the block, or `None` if there is no room.
    pub(super) fn finish(self) -> Option<usize> {
        let rest = self.word_bits.div_ceil(8) as usize;
        let to = self.out.get_mut(self.len..self.len + rest)?;
        to.copy_from_slice(&self.word.to_le_bytes()[..rest]);
        Some(self.len + rest)
    }
}

/// Decodes packed codes of `BITS` bits until `needed` bytes are written, or the block ends. Returns whether it was
/// decoded to its end.
#[inline]
pub(super) fn decode<const BITS: usize>(block: &[u8], table: &Table<'_>, needed: usize, out: &mut Output<'_>) -> bool {
    let mask = (1 << BITS) - 1;
    let block = Input::new(block);
    let (mut bit, end) = (0, block.bits());
    // Four codes end in whole bytes.
    while out.written() < needed
        && out.has_room_for_four()
        && let Some(mut word) = block.word(bit)
    {
        // SAFETY: there is room for four.
        unsafe {
            out.put_four(|_| {
                let token = table.token((word & mask) as usize);
                word >>= BITS;
                token
            });
        }
        bit += 4 * BITS;
    }
    // Fewer than eight bytes are left, which hold four codes at most, unless the output ends.
    if out.written() < needed && out.has_room_for_four() && bit < end {
        let mut word = block.last_word(bit);
        // SAFETY: there is room for four.
        unsafe {
            out.put_four(|_| {
                let token = table.token((word & mask) as usize);
                word >>= BITS;
                let is_code = bit + BITS <= end;
                bit = select_unpredictable(is_code, bit + BITS, bit);
                Token {
                    entry: token.entry,
                    length: select_unpredictable(is_code, token.length, 0),
                }
            });
        }
    }
    while out.written() < needed && bit + BITS <= end {
        if !out.put(table.token((block.last_word(bit) & mask) as usize)) {
            return false;
        }
        bit += BITS;
    }
    // The last byte is filled up.
    bit.div_ceil(8) * 8 == end
}
