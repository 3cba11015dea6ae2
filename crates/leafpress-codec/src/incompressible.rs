//! Detection of incompressible blocks, so that their compression is skipped.

/// Number of incompressible blocks in a row after which blocks may be skipped...
const MANY: u8 = 16;
/// ...while one in this many of those is compressed all the same.
const TRIED_ONE_IN: u8 = 32;
/// Number of sampled runs of bytes per block.
const SAMPLED_RUNS: usize = 4;
const RUN_BYTES: usize = 32;
/// Random bytes have 101 distinct values in 128, give or take 4; text has 30 to 40, base64 digits at most 64.
const RANDOM_VALUES: u32 = 88;

/// State of a thread's detection.
///
/// A block is skipped if it looks random and enough blocks in a row before it did not shrink. So blocks that look
/// random and shrink all the same, such as copies, are discovered, and text among random blocks is never skipped.
#[derive(Debug, Default)]
pub struct IncompressibleDetector {
    /// Blocks in a row that did not shrink, up to [`MANY`].
    failed: u8,
    /// Blocks skipped since the last compression.
    skipped: u8,
}

impl IncompressibleDetector {
    /// Returns true if the compression of this block should be skipped.
    #[inline]
    pub fn should_skip(&mut self, raw: &[u8]) -> bool {
        if self.failed < MANY || !looks_random(raw) {
            return false;
        }
        self.skipped = (self.skipped + 1) % TRIED_ONE_IN;
        self.skipped != 0
    }

    /// Records the result of a compression.
    #[inline]
    pub fn record(&mut self, shrank: bool) {
        self.failed = if shrank { 0 } else { (self.failed + 1).min(MANY) };
    }
}

fn looks_random(raw: &[u8]) -> bool {
    if raw.len() < SAMPLED_RUNS * RUN_BYTES {
        return false;
    }
    let mut seen = [0u64; 4];
    for run in 0..SAMPLED_RUNS {
        let start = (raw.len() - RUN_BYTES) * run / (SAMPLED_RUNS - 1);
        for &byte in raw[start..].iter().take(RUN_BYTES) {
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
        let text = include_bytes!("incompressible.rs");
        assert!(text.chunks(200).all(|part| !looks_random(part)));
        let sextets: Vec<u8> = random(4000, 1).iter().map(|byte| byte % 64 + 40).collect();
        assert!(!looks_random(&sextets));
        assert!(!looks_random(&random(127, 1)) && !looks_random(&[]));
    }

    #[test]
    fn what_does_not_shrink_is_skipped_until_something_does() {
        let mut detector = IncompressibleDetector::default();
        for seed in 0..u64::from(MANY) {
            assert!(!detector.should_skip(&random(500, seed)));
            detector.record(false);
        }
        let mut tried = 0;
        for seed in 0..3200 {
            if !detector.should_skip(&random(500, seed)) {
                tried += 1;
                detector.record(false);
            }
        }
        assert!((100..200).contains(&tried), "{tried}");
        assert!(!detector.should_skip(&[b'a'; 500]));
        detector.record(true);
        assert!(!detector.should_skip(&random(500, 1)));
    }
}
