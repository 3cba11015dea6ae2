//! Arrays of unsigned integers, bit-packed against a base (frame of reference).
//!
//! An array of n values holds each as `value - base` in `bits` bits, least significant bit first. A read loads eight
//! bytes at the value's first byte, so the array must be followed by [`SLOP_BYTES`] readable bytes. Widths from 57 to
//! 63 bits would not fit such a load at every offset and are rounded up to 64.

/// Bytes that must be readable after an array.
pub(crate) const SLOP_BYTES: usize = 8;

/// Returns the number of bits that hold `span` in this format.
pub(crate) fn bits_for(span: u64) -> u8 {
    let bits = 64 - span.leading_zeros();
    if bits > 56 { 64 } else { bits as u8 }
}

/// Returns the bytes of an array of `count` values of `bits` bits, without the slop.
pub(crate) fn bytes_for(count: usize, bits: u8) -> usize {
    (count * bits as usize).div_ceil(8)
}

/// A packed array for reading.
#[derive(Clone, Copy)]
pub(crate) struct Packed {
    start: *const u8,
    count: usize,
    bits: u32,
    mask: u64,
    base: u64,
}

impl Packed {
    /// Borrows an array.
    ///
    /// # Safety
    /// `start` points to an array of `count` values of `bits` bits as [`pack`] writes it, followed by [`SLOP_BYTES`]
    /// readable bytes, all immutable while the result is in use.
    #[inline(always)]
    pub(crate) unsafe fn new(start: *const u8, count: usize, bits: u8, base: u64) -> Self {
        let mask = if bits >= 64 { u64::MAX } else { (1u64 << bits) - 1 };
        Self {
            start,
            count,
            bits: u32::from(bits),
            mask,
            base,
        }
    }

    /// Returns the value at `index` without the base.
    #[inline(always)]
    fn offset(&self, index: usize) -> u64 {
        debug_assert!(index < self.count);
        self.offset_at(index * self.bits as usize)
    }

    /// Returns the width of a value in bits.
    #[inline(always)]
    pub(crate) fn bits(&self) -> usize {
        self.bits as usize
    }

    /// Returns the value that begins at `bit`, without the base, for callers that step through the array by
    /// [`Packed::bits`].
    #[inline(always)]
    pub(crate) fn offset_at(&self, bit: usize) -> u64 {
        debug_assert!(bit <= self.count.saturating_sub(1) * self.bits as usize);
        // SAFETY: `new` requires eight readable bytes at every value's first byte.
        let word = unsafe { self.start.add(bit / 8).cast::<u64>().read_unaligned() };
        (u64::from_le(word) >> (bit % 8)) & self.mask
    }

    #[inline(always)]
    pub(crate) fn get(&self, index: usize) -> u64 {
        // Equal values take no room, and the bytes there are not read.
        if self.bits == 0 {
            return self.base;
        }
        self.base.wrapping_add(self.offset(index))
    }

    /// Returns the sum of the values `from..to`.
    #[inline]
    pub(crate) fn sum(&self, from: usize, to: usize) -> u64 {
        let base = self.base.wrapping_mul((to - from) as u64);
        if self.bits == 0 {
            return base;
        }
        (from..to).fold(base, |sum, index| sum.wrapping_add(self.offset(index)))
    }
}

/// Packs `values` at `start` and returns the bytes written.
///
/// # Safety
/// `start` points to `bytes_for(count, bits) + SLOP_BYTES` writable bytes, and every value is at least `base` and at
/// most `base` plus the greatest number of `bits` bits. The slop is overwritten.
pub(crate) unsafe fn pack(start: *mut u8, values: impl Iterator<Item = u64>, bits: u8, base: u64) -> usize {
    let bits = bits as usize;
    if bits == 0 {
        return 0;
    }
    let mut count = 0;
    if bits == 64 {
        for value in values {
            // SAFETY: the caller guarantees room for every value.
            unsafe {
                start
                    .add(count * 8)
                    .cast::<u64>()
                    .write_unaligned((value - base).to_le())
            };
            count += 1;
        }
        return count * 8;
    }
    let mut word = 0u64;
    let mut filled = 0;
    let mut at = 0;
    for value in values {
        word |= (value - base) << filled;
        filled += bits;
        // SAFETY: the caller guarantees room for every value and eight bytes more.
        unsafe { start.add(at).cast::<u64>().write_unaligned(word.to_le()) };
        let whole = filled / 8;
        at += whole;
        filled %= 8;
        word = if whole == 8 { 0 } else { word >> (whole * 8) };
        count += 1;
    }
    bytes_for(count, bits as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(values: &[u64]) -> (Vec<u8>, u8, u64) {
        let base = values.iter().copied().min().unwrap_or(0);
        let span = values.iter().copied().max().unwrap_or(0) - base;
        let bits = bits_for(span);
        let mut bytes = vec![0xAA; bytes_for(values.len(), bits) + SLOP_BYTES];
        // SAFETY: the vector has the room that `pack` requires.
        let written = unsafe { pack(bytes.as_mut_ptr(), values.iter().copied(), bits, base) };
        assert_eq!(written, bytes_for(values.len(), bits));
        (bytes, bits, base)
    }

    #[test]
    fn every_width_round_trips() {
        for bits in 0..=64u32 {
            let top = if bits == 64 { u64::MAX } else { (1u64 << bits) - 1 };
            let mut values: Vec<u64> = (0..40u64).map(|i| (top / 40) * i).chain([top]).collect();
            values.dedup();
            for shift in [0, 5] {
                let values: Vec<u64> = values.iter().map(|v| v.saturating_add(shift)).collect();
                let mut values = values;
                values.dedup();
                let (bytes, bits, base) = packed(&values);
                // SAFETY: `packed` wrote the array and its slop.
                let array = unsafe { Packed::new(bytes.as_ptr(), values.len(), bits, base) };
                for (index, value) in values.iter().enumerate() {
                    assert_eq!(array.get(index), *value);
                }
                assert_eq!(array.sum(1.min(values.len()), values.len()), {
                    values.iter().skip(1).fold(0u64, |sum, v| sum.wrapping_add(*v))
                });
            }
        }
    }
}
