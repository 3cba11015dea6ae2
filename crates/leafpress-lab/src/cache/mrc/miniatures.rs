//! Miniature caches: a policy without the stack property is simulated for each size on a sample of the keys, in an
//! equally small part of the size (Waldspurger, Saemundsson, Ahmad, Park, "Cache modeling and optimization using
//! miniature simulations", ATC 2017).

use leafpress_base::reuse::threshold;
use leafpress_pages::pool::{PolicyKind, PolicySimulation};

use super::shards::place;

/// A cache for each size and each of `N` ways to weigh a key.
pub(super) struct Miniatures<const N: usize> {
    rate: f64,
    threshold: u64,
    caches: Vec<[(PolicySimulation, u64); N]>,
    reads: u64,
    sampled_reads: u64,
}

impl<const N: usize> Miniatures<N> {
    /// For the keys that the rate picks. [`None`] if there is not enough memory.
    pub(super) fn new(kind: PolicyKind, sizes: &[u64], rate: f64) -> Option<Self> {
        let caches = sizes.iter().map(|size| {
            let of_each: Vec<_> = (0..N)
                .map(|_| Some((PolicySimulation::new(kind, (*size as f64 * rate) as u64)?, 0)))
                .collect::<Option<_>>()?;
            of_each.try_into().ok()
        });
        Some(Self {
            rate,
            threshold: threshold(rate),
            caches: caches.collect::<Option<_>>()?,
            reads: 0,
            sampled_reads: 0,
        })
    }

    /// The sampled share of the keys.
    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    /// Records a request for a key; `counts` as in [`Shards::access`](super::shards::Shards::access).
    pub(super) fn access(&mut self, key: u64, counts: bool, weigh: impl FnOnce() -> [u64; N]) {
        self.reads += u64::from(counts);
        if place(key) >= self.threshold {
            return;
        }
        self.sampled_reads += u64::from(counts);
        let weights = weigh();
        for caches in &mut self.caches {
            for ((cache, hits), weight) in caches.iter_mut().zip(weights) {
                *hits += u64::from(cache.access(key, weight) && counts);
            }
        }
    }

    /// The share of the reads that the caches answered; what the sample has too many or too few of are hits, as in
    /// SHARDS-adj.
    pub(super) fn hit_ratios(&self) -> [Vec<f64>; N] {
        let all = self.reads as f64 * self.rate;
        let correction = all - self.sampled_reads as f64;
        std::array::from_fn(|n| {
            let caches = self.caches.iter();
            let ratios = caches.map(|caches| ((caches[n].1 as f64 + correction) / all.max(1e-9)).clamp(0.0, 1.0));
            ratios.collect()
        })
    }
}
