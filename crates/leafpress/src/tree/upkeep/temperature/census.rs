//! The distribution of reads over leaves.

use std::sync::atomic::Ordering;

use crate::tree::error::TreeError;
use crate::tree::inner::TreeInner;
use crate::tree::node::leaf::Leaf;

/// Buckets per doubling of the reads per byte.
const STEPS: f64 = 4.0;
/// Binary logarithm of the least reads per byte with a bucket of their own: one read of a leaf of the maximum length.
const MIN_LOG: f64 = -16.0;
/// Number of buckets; the first is for leaves without reads.
pub(super) const BUCKETS: usize = 160;

/// Returns the counted reads of a leaf per user byte.
pub(super) fn reads_per_byte(leaf: Leaf<'_>) -> f64 {
    let header = leaf.header();
    let bytes = header.live_user_bytes.load(Ordering::Relaxed).max(1);
    f64::from(leaf.reads()) / bytes as f64
}

/// Returns the bucket of leaves with these reads per byte.
pub(super) fn bucket(reads_per_byte: f64) -> usize {
    if reads_per_byte <= 0.0 {
        return 0;
    }
    let step = ((reads_per_byte.log2() - MIN_LOG) * STEPS).floor();
    1 + (step.max(0.0) as usize).min(BUCKETS - 2)
}

/// Returns the least reads per byte of a bucket.
pub(super) fn least_of(bucket: usize) -> f64 {
    match bucket {
        0 => 0.0,
        bucket => ((bucket - 1) as f64 / STEPS + MIN_LOG).exp2(),
    }
}

/// A histogram of the leaves by their reads per byte.
pub(super) struct Census {
    pub leaves: u64,
    pub user_bytes: u64,
    pub records: u64,
    /// The sum of the leaves' counted reads per byte, and the sum of their squares.
    pub density: [f64; 2],
    /// Counted reads by bucket.
    pub reads: [u64; BUCKETS],
    /// User bytes by bucket.
    pub bytes: [u64; BUCKETS],
}

impl Census {
    /// Returns mean and standard deviation of the leaves' counted reads per byte.
    pub(super) fn mean_and_deviation(&self) -> (f64, f64) {
        let leaves = self.leaves.max(1) as f64;
        let [mean, mean_square] = self.density.map(|sum| sum / leaves);
        (mean, (mean_square - mean * mean).max(0.0).sqrt())
    }
}

impl TreeInner {
    pub(super) fn census(&self) -> Result<Census, TreeError> {
        let mut census = Census {
            leaves: 0,
            user_bytes: 0,
            records: 0,
            density: [0.0; 2],
            reads: [0; BUCKETS],
            bytes: [0; BUCKETS],
        };
        self.for_each_leaf_in_turn(|leaf| {
            let header = leaf.header();
            census.leaves += 1;
            census.records += u64::from(header.live.load(Ordering::Relaxed));
            let bytes = header.live_user_bytes.load(Ordering::Relaxed);
            let density = reads_per_byte(leaf);
            census.user_bytes += bytes;
            census.density[0] += density;
            census.density[1] += density * density;
            census.reads[bucket(density)] += u64::from(leaf.reads());
            census.bytes[bucket(density)] += bytes;
            Ok(())
        })?;
        Ok(census)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_ascend_and_hold_what_falls_into_them() {
        assert_eq!(bucket(0.0), 0);
        assert_eq!(bucket(1e-9), 1);
        assert_eq!(bucket(1e12), BUCKETS - 1);
        for power in -60..80 {
            let reads = f64::from(power).exp2().powf(0.2);
            let at = bucket(reads);
            assert!(least_of(at) <= reads * 1.000_001, "{reads} in {at}");
            assert!(reads < least_of(at + 1) * 1.000_001, "{reads} in {at}");
        }
    }
}
