//! Detection of incompressible blocks, so that their compression is skipped.

/// Number of incompressible blocks in a row after which blocks may be skipped...
const MANY: u8 = 16;
/// ...while one in this many of those is compressed all the same.
const TRIED_ONE_IN: u8 = 32;
/// Number of sampled runs of bytes per block.
const PLACES: usize = 4;
const PLACE_BYTES: usize = 32;
/// Random bytes have 101 distinct values in 128, give or take 4; text has 30 to 40, base64 digits at most 64.
const RANDOM_VALUES: u32 = 88;

/// State of a thread's detection.
///
/// A block is skipped if it looks random and enough blocks in a row before it did not shrink. So blocks that look
/// random and shrink all the same, such as copies, are discovered, and text among random blocks is never skipped.
#[derive(Debug, Default)]
pub struct InVain {
    /// Blocks in a row that did not shrink, up to [`MANY`].
    failed: u8,
    /// Blocks skipped since the last compression.
    passed: u8,
}

impl InVain {
    /// Returns true if the compression of this block should be skipped.
    #[inline]
    pub fn is(&mut self, raw: &[u8]) -> bool {
        if self.failed < MANY || !looks_random(raw) {
            return false;
        }
        self.passed = (self.passed + 1) % TRIED_ONE_IN;
        self.passed != 0
    }

    /// Records the result of a compression.
    #[inline]
    pub fn note(&mut self, shrank: bool) {
        self.failed = if shrank { 0 } else { (self.failed + 1).min(MANY) };
    }
}

fn looks_random(raw: &[u8]) -> bool {
    if raw.len() < PLACES * PLACE_BYTES {
        return false;
    }
    let mut seen = [0u64; 4];
    for place in 0..PLACES {
        let start = (raw.len() - PLACE_BYTES) * place / (PLACES - 1);
        for &byte in raw[start..].iter().take(PLACE_BYTES) {
            seen[usize::from(byte >> 6)] |= 1 << (byte & 63);
        }
    }
    seen.iter().map(|bits| bits.count_ones()).sum::<u32>() >= RANDOM_VALUES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(len: usize, seed: u64) -> Vec<u8> {
        let mut bytes = vec![0; len];
        fastrand::Rng::with_seed(seed).fill(&mut bytes);
        bytes
    }

    #[test]
    fn random_bytes_look_it_and_others_do_not() {
        let many = (0..1000).filter(|&seed| looks_random(&random(128 + seed as usize, seed)));
        assert!(many.count() > 980);
        let text = include_bytes!("in_vain.rs");
        assert!(text.chunks(200).all(|part| !looks_random(part)));
        let sextets: Vec<u8> = random(4000, 1).iter().map(|byte| byte % 64 + 40).collect();
        assert!(!looks_random(&sextets));
        assert!(!looks_random(&random(127, 1)) && !looks_random(&[]));
    }

    #[test]
    fn what_does_not_shrink_is_passed_over_until_something_does() {
        let mut in_vain = InVain::default();
        for seed in 0..u64::from(MANY) {
            assert!(!in_vain.is(&random(500, seed)));
            in_vain.note(false);
        }
        let mut tried = 0;
        for seed in 0..3200 {
            if !in_vain.is(&random(500, seed)) {
                tried += 1;
                in_vain.note(false);
            }
        }
        assert!((100..200).contains(&tried), "{tried}");
        assert!(!in_vain.is(&[b'a'; 500]));
        in_vain.note(true);
        assert!(!in_vain.is(&random(500, 1)));
    }
}
