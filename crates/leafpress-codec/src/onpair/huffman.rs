//! Blocks of Huffman codes.
//!
//! A block is the bits of its codes, the low bits of a byte first; the last byte is filled up with ones. There are at
//! least 256 tokens, so that the longest code, which is all ones, has at least eight bits: what fills a byte decodes to
//! nothing.

use std::hint::select_unpredictable;

use leafpress_base::mem::room::room_for;

use super::code_lengths::{VALUES, codes};
use super::decode::{Input, Output, Token, TokenTable};
use crate::CodecError;

/// A token and the length of its code in bits.
#[derive(Clone, Copy, Default)]
struct Step {
    token: u16,
    bits: u16,
}

/// The tokens by the next bits of a block.
pub(super) struct Decoder {
    steps: Vec<Step>,
}

impl Decoder {
    /// Returns the decoder for lengths that are complete.
    pub(super) fn new(lengths: &[u8]) -> Result<Self, CodecError> {
        let mut steps: Vec<Step> = room_for(VALUES)?;
        steps.resize(VALUES, Step::default());
        for ((token, &length), code) in (0..=u16::MAX).zip(lengths).zip(codes(lengths)?) {
            let step = Step {
                token,
                bits: u16::from(length),
            };
            steps
                .iter_mut()
                .skip(usize::from(code))
                .step_by(1 << length)
                .for_each(|to| *to = step);
        }
        Ok(Self { steps })
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.steps.capacity() * size_of::<Step>()
    }

    #[inline(always)]
    fn step(&self, word: u64) -> Step {
        self.steps.get(word as usize % VALUES).copied().unwrap_or_default()
    }

    /// Decodes a block until `needed` bytes are written, or it ends. Returns whether it was decoded to its end.
    #[inline]
    pub(super) fn decode(&self, block: &[u8], table: &TokenTable<'_>, needed: usize, out: &mut Output<'_>) -> bool {
        let block = Input::new(block);
        let (mut bit, end) = (0, block.bits());
        while out.written() < needed
            && out.has_room_for_four()
            && let Some(mut word) = block.word(bit)
        {
            // SAFETY: there is room for four.
            unsafe {
                out.put_four(|_| {
                    let step = self.step(word);
                    word >>= step.bits;
                    bit += usize::from(step.bits);
                    table.token(usize::from(step.token))
                });
            }
        }
        while out.written() < needed && out.has_room_for_four() && bit < end {
            let mut word = block.last_word(bit);
            // SAFETY: there is room for four.
            unsafe {
                out.put_four(|written| {
                    let step = self.step(word);
                    let token = table.token(usize::from(step.token));
                    let is_needed = written < needed;
                    word >>= step.bits;
                    bit += select_unpredictable(is_needed, usize::from(step.bits), 0);
                    Token {
                        entry: token.entry,
                        length: select_unpredictable(is_needed, token.length, 0),
                    }
                });
            }
        }
        while out.written() < needed && bit < end {
            let step = self.step(block.last_word(bit));
            bit += usize::from(step.bits);
            if bit > end || !out.put(table.token(usize::from(step.token))) {
                return false;
            }
        }
        let filled = end.wrapping_sub(bit);
        filled < 8 && (bit == end || block.last_word(bit) | u64::MAX << filled == u64::MAX)
    }
}
