//! Blocks of packed codes, without entropy coding.
//!
//! Codes follow each other in 12, 14 or 16 bits, the low bits first; the last byte is filled up with zeros. The number
//! of codes follows from the length of the block.

use std::hint::select_unpredictable;

use super::decode::{Input, Output, Token, TokenTable};

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

    /// Appends codes of `bits` bits each, at most 16. Returns false if there is no room.
    #[inline(always)]
    pub(super) fn push(&mut self, codes: &[u16], code_and_bits: impl Fn(u16) -> (u16, u32)) -> bool {
        // Three codes and the bits of a byte that is not full are at most 55 bits.
        for some in codes.chunks(3) {
            for &code in some {
                let (code, bits) = code_and_bits(code);
                self.word |= u64::from(code) << self.word_bits;
                self.word_bits += bits;
            }
            if !self.write_whole_bytes() {
                return false;
            }
        }
        true
    }

    #[inline(always)]
    fn write_whole_bytes(&mut self) -> bool {
        let count = (self.word_bits / 8) as usize;
        let bytes = self.word.to_le_bytes();
        let Some(to) = self.out.get_mut(self.len..) else {
            return false;
        };
        if let Some(to) = to.first_chunk_mut() {
            // What is written behind the whole bytes is overwritten.
            *to = bytes;
        } else if let Some(to) = to.get_mut(..count) {
            to.copy_from_slice(&bytes[..count]);
        } else {
            return false;
        }
        self.len += count;
        self.word >>= 8 * count;
        self.word_bits %= 8;
        true
    }

    /// Writes the last byte, filled up with zeros or `with_ones`. Returns the length of the block, or `None` if it
    /// does not fit.
    pub(super) fn finish(self, with_ones: bool) -> Option<usize> {
        let fill = if with_ones { u64::MAX << self.word_bits } else { 0 };
        let rest = self.word_bits.div_ceil(8) as usize;
        let to = self.out.get_mut(self.len..self.len + rest)?;
        to.copy_from_slice(&(self.word | fill).to_le_bytes()[..rest]);
        Some(self.len + rest)
    }
}

/// Decodes packed codes of `BITS` bits until `needed` bytes are written, or the block ends. Returns whether it was
/// decoded to its end.
#[inline]
pub(super) fn decode<const BITS: usize>(
    block: &[u8],
    table: &TokenTable<'_>,
    needed: usize,
    out: &mut Output<'_>,
) -> bool {
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
