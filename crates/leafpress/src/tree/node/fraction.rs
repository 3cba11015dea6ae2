//! The approximate relative position of a key in a node.

/// A fraction in [0, 1), in units of 2^-16.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fraction(u16);

impl Fraction {
    /// Returns `part` divided by `whole`.
    #[inline(always)]
    pub(crate) fn of(part: f32, whole: f32) -> Self {
        // Single precision is sufficient, and its division is faster than that of integers. The cast saturates.
        Self((part / whole * 65536.0) as u16)
    }

    /// Returns the product with `whole`, rounded to the nearest integer.
    #[inline(always)]
    pub(crate) fn nearest(self, whole: usize) -> usize {
        (usize::from(self.0) * whole + (1 << (u16::BITS - 1))) >> u16::BITS
    }

    /// Returns the value at this position of a parabola that is `most` in the middle and zero at both ends.
    #[inline(always)]
    pub(crate) fn of_middle(self, most: usize) -> usize {
        let product = usize::from(self.0) * usize::from(u16::MAX - self.0);
        ((product >> u16::BITS) * most) >> (u16::BITS - 2)
    }

    /// Returns the product with `whole`, rounded down.
    #[inline(always)]
    pub(crate) fn times(self, whole: usize) -> usize {
        (usize::from(self.0) * whole) >> u16::BITS
    }
}
