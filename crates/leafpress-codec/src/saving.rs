//! When a block is kept compressed.

/// A block that does not save one byte in so many is kept raw: it would be decoded for too little.
const MIN_SAVING_ONE_IN: usize = 8;

/// What part of its raw bytes a block may have that is kept compressed, in 65536ths.
pub const MAX_STORED_65536THS: u32 = (1 << 16) - (1 << 16) / MIN_SAVING_ONE_IN as u32;

/// Whether a block of `stored` bytes is kept in place of its `raw` ones: it saves an eighth, and one byte at least.
#[inline]
pub fn saves_enough(stored: usize, raw: usize) -> bool {
    stored < raw && stored <= most_stored(raw)
}

/// The most bytes of a block that is kept in place of so many raw ones.
#[inline]
pub fn most_stored(raw: usize) -> usize {
    raw - raw / MIN_SAVING_ONE_IN
}

#[cfg(test)]
mod tests {
    use super::saves_enough;

    #[test]
    fn an_eighth_and_at_least_one_byte() {
        assert!(!saves_enough(0, 0));
        for raw in 1..8 {
            assert!(!saves_enough(raw, raw) && !saves_enough(raw + 1, raw) && saves_enough(raw - 1, raw));
        }
        assert!(saves_enough(7, 8) && !saves_enough(8, 8));
        assert!(saves_enough(14, 16) && !saves_enough(15, 16));
        assert!(saves_enough(3584, 4096) && !saves_enough(3585, 4096));
        assert!(!saves_enough(usize::MAX, usize::MAX));
    }
}
