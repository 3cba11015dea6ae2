//! The keys inside a frame of a leaf in fingerprint form.

use std::ops::Range;

use crate::tree::node::layout::{FINGERPRINTS, HASHED, Sections};
use crate::tree::node::leaf::Leaf;

/// The keys in a fingerprint frame, in slot order: for each, the length of the prefix shared with the frame's base, and
/// the rest.
pub(crate) struct FrameKeys<'a> {
    raw: &'a [u8],
    /// The byte string with which keys share prefixes: the frame's separator in an ordered leaf, empty in a hashed one.
    pub base: &'a [u8],
    slots: Range<usize>,
    first_is_base: bool,
}

impl<'a> FrameKeys<'a> {
    pub(crate) fn new(leaf: &'a Leaf, sections: &Sections, frame: usize, raw: &'a [u8]) -> Self {
        let ordered = leaf.has(FINGERPRINTS) && !leaf.has(HASHED);
        let base = if ordered { leaf.separator(sections, frame) } else { &[] };
        Self {
            raw,
            base,
            slots: leaf.slots(sections, frame),
            first_is_base: ordered,
        }
    }

    /// Returns the next key's slot, shared length and rest; `None` at the end or where the bytes are corrupt.
    pub(crate) fn next(&mut self) -> Option<(usize, usize, &'a [u8])> {
        let slot = self.slots.next()?;
        if self.first_is_base {
            self.first_is_base = false;
            return Some((slot, self.base.len(), &[]));
        }
        let shared = self.length()?;
        let len = self.length()?;
        let (rest, raw) = self.raw.split_at_checked(len)?;
        self.raw = raw;
        Some((slot, shared, rest))
    }

    /// Returns whether every key has been read, and no bytes follow the last.
    pub(crate) fn is_done(&self) -> bool {
        self.slots.is_empty() && self.raw.is_empty()
    }

    /// Reads a length: LEB128 of at most two bytes.
    fn length(&mut self) -> Option<usize> {
        let (&low, raw) = self.raw.split_first()?;
        self.raw = raw;
        if low < 0x80 {
            return Some(low as usize);
        }
        let (&high, raw) = self.raw.split_first()?;
        self.raw = raw;
        Some((low & 0x7F) as usize | (high as usize) << 7)
    }
}

/// Maximum number of bytes of an encoded length.
pub(crate) const MAX_LENGTH_BYTES: usize = 2;

/// Writes a length as [`FrameKeys`] reads it. `length` is at most 1,024.
pub(crate) fn write_length(length: usize, out: &mut Vec<u8>) {
    if length < 0x80 {
        out.push(length as u8);
    } else {
        out.extend_from_slice(&[(length & 0x7F) as u8 | 0x80, (length >> 7) as u8]);
    }
}
