//! Made-up values of a chosen compressibility.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::Cut;
use crate::core::LabError;

/// Bytes of synthetic data: more than a CPU's caches, so that values come from memory like those of a file.
const TOTAL_BYTES: usize = 32 << 20;

/// Values of which the share `eta` is zeros and the rest, in front, random: each value by itself is compressible to
/// about `1 - eta`, as fio's `buffer_compress_percentage` makes its blocks.
pub(super) fn generate(eta: f64, cut: Cut, seed: u64) -> Result<Vec<u8>, LabError> {
    let Cut::Fixed(len) = cut else {
        return Err(LabError::option(
            "cut",
            format!("{cut}: synthetic values are cut as fixed:N"),
        ));
    };
    let random_len = ((1.0 - eta) * len as f64).round() as usize;
    let count = (TOTAL_BYTES / len).clamp(1, 1 << 18);
    let mut bytes = vec![0; count * len];
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    for value in bytes.chunks_exact_mut(len) {
        rng.fill_bytes(&mut value[..random_len]);
    }
    Ok(bytes)
}
