//! A bucket of an interpolation index: its leaf, and where the leaf's range begins.
//!
//! ```text
//! 30 bits   the leaf's address relative to the origin, in cache lines: all leaves have the same offset in a line
//! 18 bits   its hint
//! 14 bits   how far before the bucket's start its range begins, in places
//!  1 bit    whether at the place before that one there are keys below the range
//!  1 bit    whether the last bucket's leaf covers what is before
//! ```

use leafpress_base::mem::prefetch::LINE_BYTES;
use leafpress_base::mem::tagged_ptr;
use leafpress_base::mem::tagged_ptr::{HINT_BITS, Hint};

/// Binary logarithm of the places per bucket: enough that each bound between numbered keys has a place of its own.
pub(crate) const PLACE_BITS: u32 = 12;
/// Binary logarithm of the bytes of a cache line.
pub(crate) const LINE_BITS: u32 = LINE_BYTES.trailing_zeros();

/// The word. Everything but the address and the hint is immutable.
#[derive(Clone, Copy)]
pub(crate) struct BucketWord(pub u64);

impl BucketWord {
    const HINT_BIT: u32 = Self::BEFORE_BIT - HINT_BITS;
    const BEFORE_BIT: u32 = 48;
    const MAX_BEFORE: u64 = (1 << 14) - 1;
    /// Flag: at the place before the start of the range there are keys outside the range.
    pub(crate) const BLURRED: u64 = 1 << 62;
    /// Flag: the last bucket's leaf covers what is before the range.
    pub(crate) const FOLLOWS: u64 = 1 << 63;
    /// Address field of a bucket without a leaf.
    const NO_LEAF: u64 = 1 << (Self::HINT_BIT - 1);
    const ADDRESS: u64 = (1 << Self::HINT_BIT) - 1;
    /// Bits of a word that do not belong to the address.
    const OTHER_BITS: u32 = u64::BITS - Self::HINT_BIT;

    pub(crate) fn without_leaf(before: u64, flags: u64) -> Self {
        Self(before.min(Self::MAX_BEFORE) << Self::BEFORE_BIT | flags | Self::NO_LEAF)
    }

    /// Returns the word with another leaf, or with none if the leaf is too far from the origin.
    pub(crate) fn with_leaf(self, leaf: *mut u8, origin: usize) -> Self {
        let range = self.0 & !((1 << Self::BEFORE_BIT) - 1);
        let (leaf, hint) = tagged_ptr::split(leaf);
        let distance = (leaf.addr() as i64).wrapping_sub(origin as i64);
        let lines = distance >> LINE_BITS;
        let fits = lines << Self::OTHER_BITS >> Self::OTHER_BITS == lines && lines << LINE_BITS == distance;
        if fits && !leaf.is_null() && lines as u64 & Self::ADDRESS != Self::NO_LEAF {
            Self(range | u64::from(hint) << Self::HINT_BIT | lines as u64 & Self::ADDRESS)
        } else {
            Self(range | Self::NO_LEAF)
        }
    }

    #[inline(always)]
    pub(crate) fn address(self, origin: usize) -> Option<usize> {
        let lines = (self.0 << Self::OTHER_BITS) as i64 >> Self::OTHER_BITS;
        let is_leaf = self.0 & Self::ADDRESS != Self::NO_LEAF;
        is_leaf.then(|| origin.wrapping_add_signed((lines as isize) << LINE_BITS))
    }

    #[inline(always)]
    pub(crate) fn hint(self) -> Hint {
        (self.0 >> Self::HINT_BIT) as Hint & ((1 << HINT_BITS) - 1)
    }

    /// Returns the place where the range of the leaf begins, at the latest, for the entry of `bucket`.
    #[inline(always)]
    pub(crate) fn start(self, bucket: usize) -> u64 {
        ((bucket as u64) << PLACE_BITS) - (self.0 >> Self::BEFORE_BIT & Self::MAX_BEFORE)
    }

    /// Returns whether the last bucket's leaf covers this place before the range.
    #[inline(always)]
    pub(crate) fn follows(self, place: u64, start: u64) -> bool {
        self.0 & Self::FOLLOWS != 0 && place + u64::from(self.0 & Self::BLURRED != 0) < start
    }
}
