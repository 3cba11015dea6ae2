//! Rank search: how many of a few numbers are below another.
//!
//! Baseline x86-64 has no comparison of 64-bit lanes: the code that compilers generate for the loop takes twice the
//! time of one comparison and one addition with carry for each number (19 ns versus 10 ns for the 16 and 8 numbers of
//! an inner node).

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod imp {
    use std::arch::asm;

    #[inline(always)]
    pub(crate) fn count_below<const N: usize>(numbers: &[u64; N], wanted: u64) -> usize {
        const { assert!(N.is_multiple_of(2)) };
        let (mut even, mut odd) = (0usize, 0usize);
        for pair in numbers.as_chunks::<2>().0 {
            // SAFETY: the code only reads the pair; a comparison sets the carry where the number is below.
            unsafe {
                asm!(
                    "cmp qword ptr [{pair}], {wanted}",
                    "adc {even}, 0",
                    "cmp qword ptr [{pair} + 8], {wanted}",
                    "adc {odd}, 0",
                    pair = in(reg) pair.as_ptr(),
                    wanted = in(reg) wanted,
                    even = inout(reg) even,
                    odd = inout(reg) odd,
                    options(pure, readonly, nostack),
                );
            }
        }
        even + odd
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod imp {
    pub(crate) fn count_below<const N: usize>(numbers: &[u64; N], wanted: u64) -> usize {
        numbers.iter().map(|&number| usize::from(number < wanted)).sum()
    }
}

/// Returns how many of `numbers`, whose number is even, are below `wanted`.
#[inline(always)]
pub(crate) fn count_below<const N: usize>(numbers: &[u64; N], wanted: u64) -> usize {
    imp::count_below(numbers, wanted)
}

#[cfg(test)]
mod tests {
    use super::count_below;

    #[test]
    fn counts_like_a_loop() {
        let numbers = [0, 1, 1, 7, u64::MAX - 1, 1 << 63, (1 << 63) - 1, u64::MAX];
        for wanted in numbers
            .into_iter()
            .flat_map(|n| [n.wrapping_sub(1), n, n.wrapping_add(1)])
        {
            let counted = numbers.iter().filter(|&&number| number < wanted).count();
            assert_eq!(count_below(&numbers, wanted), counted, "{wanted}");
        }
    }
}
