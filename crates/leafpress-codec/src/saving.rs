//! The minimum saving of a block that is kept compressed.

/// A block that saves less than this fraction (1/8) is kept raw: it would be decoded for too little.
const MIN_SAVING_ONE_IN: usize = 8;

/// Maximum ratio of stored to raw bytes of a block that is kept compressed, in 65536ths.
pub const MAX_STORED_65536THS: u32 = (1 << 16) - (1 << 16) / MIN_SAVING_ONE_IN as u32;

/// Returns true if a block of `stored` bytes is kept instead of its `raw` ones: it saves an eighth, and at least one
/// byte.
#[inline]
pub fn saves_enough(stored: usize, raw: usize) -> bool {
    stored < raw && stored <= most_stored(raw)
}

/// Returns the maximum length of a block that is kept instead of `raw` raw bytes.
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
