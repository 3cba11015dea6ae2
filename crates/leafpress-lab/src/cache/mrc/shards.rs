//! SHARDS for a known number of reads, and the choice of the sampled keys.

use leafpress_base::reuse;

use super::Sampling;
use crate::core::keys::mix;

/// A key's hash, by which samples are taken.
fn hash(key: u64) -> u64 {
    mix(key ^ 0x5ade_d5a1_71e5)
}

/// A key's place among all, by which samples are taken.
pub(super) fn place(key: u64) -> u64 {
    reuse::place(hash(key))
}

/// Hits by size, for `N` ways to weigh a key at once.
#[derive(Debug)]
pub(super) struct Shards<const N: usize> {
    sample: reuse::Shards<N>,
    reads: u64,
}

impl<const N: usize> Shards<N> {
    pub(super) fn new(sizes: &[u64], sampling: Sampling) -> Self {
        let sizes = sizes.iter().map(|size| *size as f64).collect();
        let sample = match sampling {
            Sampling::Rate(rate) => reuse::Shards::new(sizes, rate, None),
            Sampling::Keys(keys) => reuse::Shards::new(sizes, 1.0, usize::try_from(keys).ok()),
        };
        Self { sample, reads: 0 }
    }

    /// The sampled share of the keys.
    pub(super) fn rate(&self) -> f64 {
        self.sample.rate()
    }

    /// Keys in the sample.
    pub(super) fn keys(&self) -> usize {
        self.sample.keys()
    }

    /// Records a request for a key. Only requests that `counts` are reads; others just move the key to the top.
    pub(super) fn access(&mut self, key: u64, counts: bool, weigh: impl FnOnce() -> [u64; N]) {
        self.reads += u64::from(counts);
        self.sample.access(hash(key), counts, weigh);
    }

    /// The share of the reads that caches of the sizes answer; 0 without a read.
    pub(super) fn hit_ratios(&self) -> [Vec<f64>; N] {
        self.sample.hit_ratios(self.reads as f64)
    }
}
