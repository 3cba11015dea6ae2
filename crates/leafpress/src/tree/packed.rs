//! Arrays of unsigned integers, bit-packed against a base (frame of reference).
//!
//! An array of n values holds each as `value - base` in `bits` bits, least significant bit first. A read loads eight bytes at
//! the value's first byte, so that the array must be followed by [`SLOP_BYTES`] readable bytes. Widths from 57 to 63 bits
//! would not fit such a load at every offset and are rounded up to 64.

use super::inner::Share;

/// Bytes that must be readable behind an array.
pub(crate) const SLOP_BYTES: usize = 8;

/// By how many places a guess is taken to be off.
const GUESS_OFF: usize = 8;

/// Bits that hold `span`, as this module packs them.
pub(crate) fn bits_for(span: u64) -> u8 {
    let bits = 64 - span.leading_zeros();
    if bits > 56 { 64 } else { bits as u8 }
}

/// Bytes of an array of `count` values of `bits` bits, without the slop.
pub(crate) fn bytes_for(count: usize, bits: u8) -> usize {
    (count * bits as usize).div_ceil(8)
}

/// A packed array, read.
#[derive(Clone, Copy)]
pub(crate) struct Packed {
    start: *const u8,
    count: usize,
    bits: u32,
    mask: u64,
    base: u64,
}

impl Packed {
    /// # Safety
    /// `start` points to an array of `count` values of `bits` bits as [`pack`] writes it, followed by [`SLOP_BYTES`] readable
    /// bytes, all immutable while the result is in use.
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

    /// The value at `index` without the base.
    #[inline(always)]
    fn offset(&self, index: usize) -> u64 {
        debug_assert!(index < self.count);
        let bit = index * self.bits as usize;
        // SAFETY: `new` promises eight readable bytes at every value's first byte.
        let word = unsafe { self.start.add(bit / 8).cast::<u64>().read_unaligned() };
        (u64::from_le(word) >> (bit % 8)) & self.mask
    }

    #[inline(always)]
    pub(crate) fn get(&self, index: usize) -> u64 {
        self.base.wrapping_add(self.offset(index))
    }

    /// The sum of the values `from..to`.
    #[inline]
    pub(crate) fn sum(&self, from: usize, to: usize) -> u64 {
        let base = self.base.wrapping_mul((to - from) as u64);
        if self.bits == 0 {
            return base;
        }
        (from..to).fold(base, |sum, index| sum.wrapping_add(self.offset(index)))
    }

    /// Binary search in an ascending array without repeats.
    #[inline]
    pub(crate) fn search(&self, value: u64) -> Result<usize, usize> {
        if self.count == 0 || value < self.base {
            return Err(0);
        }
        self.search_within(value - self.base, 0, self.count)
    }

    /// The same where the value is likely to be so far into the array.
    #[inline(always)]
    pub(crate) fn search_about(&self, value: u64, share: Share) -> Result<usize, usize> {
        if self.count == 0 || value < self.base {
            return Err(0);
        }
        let target = value - self.base;
        let guess = share.times(self.count);
        let (from, to) = (guess.saturating_sub(GUESS_OFF), guess + GUESS_OFF);
        if from > 0 && self.offset(from) > target {
            return self.search_within(target, 0, from);
        }
        if to < self.count && self.offset(to) <= target {
            return self.search_within(target, to, self.count - to);
        }
        self.search_within(target, from, to.min(self.count) - from)
    }

    /// [`Packed::search`] among `size` values from `low` on, the first of which is at most `target` or the array's first.
    #[inline(always)]
    fn search_within(&self, target: u64, mut low: usize, mut size: usize) -> Result<usize, usize> {
        while size > 1 {
            let half = size / 2;
            let middle = low + half;
            low = std::hint::select_unpredictable(self.offset(middle) <= target, middle, low);
            size -= half;
        }
        let found = self.offset(low);
        if found == target {
            Ok(low)
        } else {
            Err(low + usize::from(found < target))
        }
    }
}

/// Packs `values` at `start` and returns the bytes written.
///
/// # Safety
/// `start` points to `bytes_for(count, bits) + SLOP_BYTES` writable bytes, and every value is at least `base` and at most
/// `base` plus what `bits` bits hold. The slop is overwritten.
pub(crate) unsafe fn pack(start: *mut u8, values: impl Iterator<Item = u64>, bits: u8, base: u64) -> usize {
    let bits = bits as usize;
    if bits == 0 {
        return 0;
    }
    let mut count = 0;
    if bits == 64 {
        for value in values {
            // SAFETY: the caller gives room for every value.
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
        // SAFETY: the caller gives room for every value and eight bytes more.
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
        // SAFETY: the vector has the room `pack` asks for.
        let written = unsafe { pack(bytes.as_mut_ptr(), values.iter().copied(), bits, base) };
        assert_eq!(written, bytes_for(values.len(), bits));
        (bytes, bits, base)
    }

    #[test]
    fn every_width_round_trips_and_searches() {
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
                    assert_eq!(array.search(*value), Ok(index));
                    if let Some(next) = value.checked_add(1)
                        && values.get(index + 1) != Some(&next)
                    {
                        assert_eq!(array.search(next), Err(index + 1));
                    }
                }
                assert_eq!(array.sum(1.min(values.len()), values.len()), {
                    values.iter().skip(1).fold(0u64, |sum, v| sum.wrapping_add(*v))
                });
            }
        }
    }
}
