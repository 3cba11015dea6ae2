//! A packed leaf's keys: distinct ascending numbers, bit-packed in one level or two.
//!
//! ```text
//! bases:        one for each block of 16 keys, the block's first key against the array's least   (absent in one level)
//! differences:  one for each key, against its block's base; in one level against the array's least
//! ```
//! A difference within a block takes fewer bits than one across the array, one bit fewer per doubling of the number of
//! blocks, and a search reads two places: the bases, of which there are few, and one block. Where the bases would take
//! more than they save, as with a single block or numbers clustered in a few places, there is one level.

use std::hint::select_unpredictable;

use crate::tree::node::fraction::Fraction;
use crate::tree::node::packed;
use crate::tree::node::packed::Packed;

/// Keys per block.
const BLOCK: usize = 16;

/// In one level, number of keys by which a prediction may be off and still be used.
const KEYS_OFF: usize = BLOCK / 2;

/// The bit widths of a packed array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Widths {
    /// Bits of a block's base; 0 in one level, where all bases are the least key.
    pub base_bits: u8,
    /// Bits of a key's difference to its block's base.
    pub key_bits: u8,
}

impl Widths {
    /// Returns the widths with the fewest bytes for `keys`, which ascend.
    pub(crate) fn of(keys: &[u64]) -> Self {
        let (Some(least), Some(greatest)) = (keys.first(), keys.last()) else {
            return Self {
                base_bits: 0,
                key_bits: 0,
            };
        };
        let one = Self {
            base_bits: 0,
            key_bits: packed::bits_for(greatest - least),
        };
        let last_base = keys[(keys.len() - 1) / BLOCK * BLOCK];
        let differences = keys.chunks(BLOCK).map(|block| block[block.len() - 1] - block[0]);
        let two = Self {
            base_bits: packed::bits_for(last_base - least),
            key_bits: packed::bits_for(differences.max().unwrap_or(0)),
        };
        if two.bytes(keys.len()) < one.bytes(keys.len()) {
            two
        } else {
            one
        }
    }

    /// Returns the bytes of an array of `count` keys, without the slop after it.
    #[inline(always)]
    pub(crate) fn bytes(self, count: usize) -> usize {
        self.bytes_of_bases(count) + packed::bytes_for(count, self.key_bits)
    }

    #[inline(always)]
    fn bytes_of_bases(self, count: usize) -> usize {
        packed::bytes_for(count.div_ceil(BLOCK), self.base_bits)
    }
}

/// A packed array of keys for reading.
#[derive(Clone, Copy)]
pub(crate) struct KeyArray {
    /// Relative to the least key.
    bases: Packed,
    differences: Packed,
    count: usize,
    least: u64,
    one_level: bool,
}

impl KeyArray {
    /// Borrows an array.
    ///
    /// # Safety
    /// `start` points to an array of `count` keys, the first of which is `least`, as [`write()`] writes it in these
    /// widths, followed by [`SLOP_BYTES`](packed::SLOP_BYTES) readable bytes, all immutable while the result is in use.
    #[inline(always)]
    pub(crate) unsafe fn new(start: *const u8, count: usize, widths: Widths, least: u64) -> Self {
        // SAFETY: the caller guarantees an array written by `write`: the bases are followed by the differences, and
        // these by the slop.
        unsafe {
            let differences = start.add(widths.bytes_of_bases(count));
            Self {
                bases: Packed::new(start, count.div_ceil(BLOCK), widths.base_bits, 0),
                differences: Packed::new(differences, count, widths.key_bits, 0),
                count,
                least,
                one_level: widths.base_bits == 0,
            }
        }
    }

    #[inline(always)]
    pub(crate) fn get(&self, index: usize) -> u64 {
        // In one level bases have no bits and are zero.
        let offset = self.bases.get(index / BLOCK).wrapping_add(self.differences.get(index));
        self.least.wrapping_add(offset)
    }

    /// Returns the index of `value`, or the one at which it would be inserted.
    #[inline]
    pub(crate) fn search(&self, value: u64) -> Result<usize, usize> {
        if self.count == 0 || value < self.least {
            return Err(0);
        }
        let target = value - self.least;
        if self.one_level {
            return self.search_run(target, 0, self.count);
        }
        self.search_block(target, last_at_most(&self.bases, target, 0, self.blocks()))
    }

    /// Searches like [`KeyArray::search`], beginning at the predicted relative position `share`.
    #[inline(always)]
    pub(crate) fn search_about(&self, value: u64, share: Fraction) -> Result<usize, usize> {
        if self.count == 0 || value < self.least {
            return Err(0);
        }
        let target = value - self.least;
        // The prediction is correct for numbers without gaps. A branch lets the following code proceed speculatively
        // with it: the key's line may arrive later than the next ones.
        let nearest = share.nearest(self.count).min(self.count - 1);
        if self.get(nearest) == value {
            return Ok(nearest);
        }
        let guess = share.times(self.count);
        if self.one_level {
            self.search_run_about(target, guess)
        } else {
            self.search_block(target, self.block_about(target, guess / BLOCK))
        }
    }

    #[inline(always)]
    fn blocks(&self) -> usize {
        self.count.div_ceil(BLOCK)
    }

    /// Returns the last block whose base is not above `target`: the predicted one, its neighbour, or by a search.
    ///
    /// It uses branches, since most predictions are correct and the branches are predicted accordingly: the block's
    /// keys are then compared without waiting for bases.
    #[inline(always)]
    fn block_about(&self, target: u64, guess: usize) -> usize {
        let blocks = self.blocks();
        if self.bases.get(guess) > target {
            // The first base is zero, so that there is a block before this one.
            let before = guess - 1;
            return if self.bases.get(before) > target {
                last_at_most(&self.bases, target, 0, before)
            } else {
                before
            };
        }
        let next = guess + 1;
        if next == blocks || self.bases.get(next) > target {
            return guess;
        }
        let behind = next + 1;
        if behind == blocks || self.bases.get(behind) > target {
            next
        } else {
            last_at_most(&self.bases, target, behind, blocks - behind)
        }
    }

    /// Searches the last block whose base is not above `target`.
    #[inline(always)]
    fn search_block(&self, target: u64, block: usize) -> Result<usize, usize> {
        let rest = target - self.bases.get(block);
        // The last block is treated as if its last key were repeated.
        let (from, last) = (block * BLOCK, self.count - 1);
        let bits = self.differences.bits();
        let (start, end) = (from * bits, last * bits);
        let not_above = |bit: usize| usize::from(self.differences.offset_at(bit.min(end)) <= rest);
        // Two rounds of three independent comparisons.
        let four = 4 * bits;
        let fours = not_above(start + four) + not_above(start + 2 * four) + not_above(start + 3 * four);
        let start = start + fours * four;
        let ones = not_above(start + bits) + not_above(start + 2 * bits) + not_above(start + 3 * bits);
        self.place(rest, (from + 4 * fours + ones).min(last))
    }

    /// Searches the differences `from..from + size`, which have the same base, and the first of which is at most
    /// `rest`.
    #[inline(always)]
    fn search_run(&self, rest: u64, from: usize, size: usize) -> Result<usize, usize> {
        self.place(rest, last_at_most(&self.differences, rest, from, size))
    }

    /// Searches the keys around the predicted one, then all, in one level.
    #[inline(always)]
    fn search_run_about(&self, rest: u64, guess: usize) -> Result<usize, usize> {
        let (from, to) = (guess.saturating_sub(KEYS_OFF), guess + KEYS_OFF);
        if from > 0 && self.differences.get(from) > rest {
            return self.search_run(rest, 0, from);
        }
        if to < self.count && self.differences.get(to) <= rest {
            return self.search_run(rest, to, self.count - to);
        }
        self.search_run(rest, from, to.min(self.count) - from)
    }

    /// Returns the index of `rest`, if it is the difference at `index`, which is the last that is not above it.
    #[inline(always)]
    fn place(&self, rest: u64, index: usize) -> Result<usize, usize> {
        if self.differences.get(index) == rest {
            Ok(index)
        } else {
            Err(index + 1)
        }
    }
}

/// Returns the last of `size` ascending values from `low` on that is not above `target`, assuming that the first is
/// not.
#[inline(always)]
fn last_at_most(array: &Packed, target: u64, mut low: usize, mut size: usize) -> usize {
    while size > 1 {
        let half = size / 2;
        let middle = low + half;
        low = select_unpredictable(array.get(middle) <= target, middle, low);
        size -= half;
    }
    low
}

/// Writes `keys`, which ascend, at `start`.
///
/// # Safety
/// `widths` are those of `keys`, and `start` points to [`Widths::bytes`] and another [`SLOP_BYTES`](packed::SLOP_BYTES)
/// writable bytes, which are overwritten.
pub(crate) unsafe fn write(start: *mut u8, keys: &[u64], widths: Widths) {
    let Some(least) = keys.first() else { return };
    let bases = keys.iter().step_by(BLOCK).copied();
    let mut base = *least;
    let one_level = widths.base_bits == 0;
    let differences = keys.iter().enumerate().map(|(index, key)| {
        if index.is_multiple_of(BLOCK) && !one_level {
            base = *key;
        }
        key - base
    });
    // SAFETY: every base and difference fits in its width; the differences overwrite the slop of the bases.
    unsafe {
        packed::pack(start, bases, widths.base_bits, *least);
        packed::pack(
            start.add(widths.bytes_of_bases(keys.len())),
            differences,
            widths.key_bits,
            0,
        );
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::packed::SLOP_BYTES;
    use super::*;

    fn with<R>(keys: &[u64], widths: Widths, check: impl FnOnce(KeyArray) -> R) -> R {
        let mut bytes = vec![0xAA; widths.bytes(keys.len()) + SLOP_BYTES];
        let least = keys.first().copied().unwrap_or(0);
        // SAFETY: the vector has the required capacity.
        let array = unsafe {
            write(bytes.as_mut_ptr(), keys, widths);
            KeyArray::new(bytes.as_ptr(), keys.len(), widths, least)
        };
        check(array)
    }

    /// Looks up every key, its neighbours, and values beyond all of them, from any prediction.
    fn finds_what_a_vector_holds(keys: &[u64], widths: Widths, shares: &[u16]) {
        with(keys, widths, |array| {
            let around = |key: &u64| [key.wrapping_sub(1), *key, key.wrapping_add(1)];
            let probes = keys.iter().flat_map(around).chain([0, u64::MAX / 2, u64::MAX]);
            for probe in probes {
                let expected = keys.binary_search(&probe);
                assert_eq!(array.search(probe), expected, "{probe} in {widths:?}");
                let exact = Fraction::of(expected.unwrap_or_else(|at| at) as f32, keys.len().max(1) as f32);
                let shares = shares.iter().map(|&part| Fraction::of(f32::from(part), 65_536.0));
                for share in shares.chain([exact]) {
                    assert_eq!(
                        array.search_about(probe, share),
                        expected,
                        "{probe} about {share:?} in {widths:?}"
                    );
                }
            }
            for (index, key) in keys.iter().enumerate() {
                assert_eq!(array.get(index), *key);
            }
        });
    }

    /// Generates ascending keys with any start: steps of a bounded number of bits, some of them longer in half of the
    /// cases.
    fn keys() -> impl Strategy<Value = Vec<u64>> {
        let steps = (0u32..=64, any::<bool>()).prop_flat_map(|(bits, any_longer)| {
            let most = u64::MAX.checked_shr(64 - bits).unwrap_or(0);
            let least_cut = if any_longer { 9u32 } else { 63 };
            let longer = (any::<u64>(), least_cut..64).prop_map(|(step, cut)| step >> cut);
            let step = prop_oneof![20 => 0..=most, 1 => longer];
            vec(step, 0..600)
        });
        let least = prop_oneof![Just(0u64), 0..1000u64, any::<u64>()];
        (least, steps).prop_map(|(least, steps)| {
            let ascending = steps.iter().scan(Some(least), |next, step| {
                let key = (*next)?;
                *next = key.checked_add(1).and_then(|key| key.checked_add(*step));
                Some(key)
            });
            ascending.collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 400 }))]

        #[test]
        fn any_keys_are_found(keys in keys(), shares in vec(any::<u16>(), 3)) {
            finds_what_a_vector_holds(&keys, Widths::of(&keys), &shares);
        }
    }

    #[test]
    fn every_count_and_every_width_is_found() {
        let counts: Vec<u64> = match cfg!(miri) {
            true => vec![0, 1, 16, 17, 33],
            false => (0..=100).chain([255, 256, 257, 599, 600, 4096]).collect(),
        };
        for count in counts {
            for step in [1, 2, 7, 8, 1000, 1 << 40, u64::MAX / count.max(2)] {
                let keys: Vec<u64> = (0..count).map(|n| n * step).collect();
                let widths = Widths::of(&keys);
                finds_what_a_vector_holds(&keys, widths, &[0, 65_535]);
                // Both ways of packing can hold any keys.
                let one_level = Widths {
                    base_bits: 0,
                    key_bits: packed::bits_for(keys.last().map_or(0, |last| last - keys[0])),
                };
                assert!(widths.bytes(keys.len()) <= one_level.bytes(keys.len()));
                finds_what_a_vector_holds(&keys, one_level, &[32_768]);
            }
        }
    }

    #[test]
    fn the_least_and_the_greatest_number_are_adjacent() {
        finds_what_a_vector_holds(&[0, u64::MAX], Widths::of(&[0, u64::MAX]), &[0, 65_535]);
        let ends: Vec<u64> = (0..40).chain(u64::MAX - 39..=u64::MAX).collect();
        finds_what_a_vector_holds(&ends, Widths::of(&ends), &[0, 32_768, 65_535]);
    }

    #[test]
    fn two_levels_take_fewer_bits() {
        let dense: Vec<u64> = (0..512).map(|n| 1_000_000 + n).collect();
        let widths = Widths::of(&dense);
        assert_eq!((widths.base_bits, widths.key_bits), (9, 4));
        // 512 differences of 4 bits and 32 bases of 9, instead of 512 numbers of 9.
        assert_eq!(widths.bytes(dense.len()), 256 + 36);
    }
}
