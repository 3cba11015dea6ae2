//! SHARDS: an LRU cache's hits of every size, from a sample of the keys (Waldspurger, Park, Garthwaite, Ahmad,
//! "Efficient MRC construction with SHARDS", FAST 2015).
//!
//! A key is in the sample if its hash is below a threshold: all its requests, or none. The cache size at which a
//! request for a key is a hit is the sampled requests since, divided by the rate. With a fixed size the threshold falls
//! whenever keys are too many, and those above it are forgotten; a request counts as one over its current rate. The
//! sample's excess or lack of requests is corrected at the smallest size, as SHARDS-adj does: it is mostly whether the
//! hottest keys are in it.

use std::collections::BinaryHeap;

use super::Sampling;
use crate::core::keys::mix;
use crate::model::stack::Stack;

/// Bits of a hash; a float represents them exactly.
const HASH_BITS: u32 = 53;

/// A key's place among all, by which samples are taken.
pub(super) fn place(key: u64) -> u64 {
    mix(key ^ 0x5ade_d5a1_71e5) >> (64 - HASH_BITS)
}

/// Places below this are in a sample of the rate.
pub(super) fn threshold(rate: f64) -> u64 {
    (rate * (1_u64 << HASH_BITS) as f64) as u64
}

/// Hits by size, for `N` ways to weigh a key at once.
#[derive(Debug)]
pub(super) struct Shards<const N: usize> {
    /// Sizes, ascending.
    sizes: Vec<f64>,
    threshold: u64,
    most_keys: Option<usize>,
    /// The sampled keys by hash, the highest on top: with a fixed size.
    order: BinaryHeap<(u64, u64)>,
    stack: Stack<N>,
    /// Reads that hit from each size on, followed by those that need more.
    hits: [Vec<f64>; N],
    reads: u64,
    /// Sampled reads, each weighted by its rate.
    sampled_reads: f64,
}

impl<const N: usize> Shards<N> {
    pub(super) fn new(sizes: &[u64], sampling: Sampling) -> Self {
        let (rate, most_keys) = match sampling {
            Sampling::Rate(rate) => (rate, None),
            Sampling::Keys(keys) => (1.0, Some(usize::try_from(keys).unwrap_or(usize::MAX))),
        };
        Self {
            sizes: sizes.iter().map(|size| *size as f64).collect(),
            threshold: threshold(rate),
            most_keys,
            order: BinaryHeap::new(),
            stack: Stack::new(),
            hits: std::array::from_fn(|_| vec![0.0; sizes.len() + 1]),
            reads: 0,
            sampled_reads: 0.0,
        }
    }

    /// The sampled share of the keys.
    pub(super) fn rate(&self) -> f64 {
        self.threshold as f64 / (1_u64 << HASH_BITS) as f64
    }

    /// Keys in the sample.
    pub(super) fn keys(&self) -> usize {
        self.stack.len()
    }

    /// Records a request for a key. Only requests that `counts` are reads; others just move the key to the top.
    pub(super) fn access(&mut self, key: u64, counts: bool, weigh: impl FnOnce() -> [u64; N]) {
        self.reads += u64::from(counts);
        let place = place(key);
        if place >= self.threshold {
            return;
        }
        let rate = self.rate();
        if counts {
            self.sampled_reads += 1.0 / rate;
        }
        match self.stack.access(key, weigh) {
            Some(needed) if counts => {
                for (hits, needed) in self.hits.iter_mut().zip(needed) {
                    let needed = needed as f64 / rate;
                    hits[self.sizes.partition_point(|size| *size < needed)] += 1.0 / rate;
                }
            }
            Some(_) => {}
            None => self.keep_few(place, key),
        }
    }

    /// Lowers the threshold when there are too many keys.
    fn keep_few(&mut self, place: u64, key: u64) {
        let Some(most_keys) = self.most_keys else { return };
        self.order.push((place, key));
        while self.order.len() > most_keys {
            let Some((highest, _)) = self.order.peek().copied() else {
                return;
            };
            self.threshold = highest;
            while let Some(&(place, key)) = self.order.peek()
                && place >= highest
            {
                self.stack.remove(key);
                self.order.pop();
            }
        }
    }

    /// The share of the reads that caches of the sizes answer; 0 without a read.
    pub(super) fn hit_ratios(&self) -> [Vec<f64>; N] {
        let all = (self.reads as f64).max(1.0);
        let correction = self.reads as f64 - self.sampled_reads;
        std::array::from_fn(|n| {
            let mut hits = correction;
            let counts = self.hits[n].iter().take(self.sizes.len());
            let ratios = counts.map(|count| {
                hits += count;
                (hits / all).clamp(0.0, 1.0)
            });
            ratios.collect()
        })
    }
}
