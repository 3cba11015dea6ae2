//! About where in a node a key is.

/// A part of a whole, less than all of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fraction(u16);

impl Fraction {
    /// `part` of `whole`.
    #[inline(always)]
    pub(crate) fn of(part: f32, whole: f32) -> Self {
        // Single precision is enough, and its division faster than that of integers. The cast saturates.
        Self((part / whole * 65536.0) as u16)
    }

    /// The nearest whole number to so much of `whole`.
    #[inline(always)]
    pub(crate) fn nearest(self, whole: usize) -> usize {
        (usize::from(self.0) * whole + (1 << (u16::BITS - 1))) >> u16::BITS
    }

    /// All of `most` in the middle, and less towards the ends, where it is nothing: a parabola.
    #[inline(always)]
    pub(crate) fn of_middle(self, most: usize) -> usize {
        let product = usize::from(self.0) * usize::from(u16::MAX - self.0);
        ((product >> u16::BITS) * most) >> (u16::BITS - 2)
    }

    /// So much of `whole`.
    #[inline(always)]
    pub(crate) fn times(self, whole: usize) -> usize {
        (usize::from(self.0) * whole) >> u16::BITS
    }
}
