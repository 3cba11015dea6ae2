//! Reuse distances: the number of distinct pages since the last request for a page, from which an LRU cache's hit ratio
//! follows for every size at once (Mattson, Gecsei, Slutz, Traiger, "Evaluation techniques for storage hierarchies",
//! IBM Systems Journal 1970).

use serde::{Deserialize, Serialize};

use crate::core::keys::mix;
use leafpress_base::reuse::{Stack, place, threshold};

/// The reuse distances of a trace, page by page.
///
/// With a rate below 1 only pages whose hash is low enough are looked at, all accesses to them, and distances are
/// scaled up (Waldspurger, Park, Garthwaite, Ahmad, "Efficient MRC construction with SHARDS", FAST 2015, with a fixed
/// rate). What the sample has too much or too little is put right at distance 0, as the paper does (SHARDS-adj).
#[derive(Debug, Clone)]
pub struct Reuse {
    rate: f64,
    threshold: u64,
    /// Pages, each of weight 1.
    stack: Stack<1>,
    /// Accesses by reuse distance.
    distances: Vec<u64>,
    accesses: u64,
    sampled: u64,
}

impl Reuse {
    /// Creates empty distances; `rate` is the share of the pages that are sampled: over 0, and 1 for all.
    pub fn new(rate: f64) -> Self {
        let rate = if rate > 0.0 { rate.min(1.0) } else { 1.0 };
        Self {
            rate,
            threshold: threshold(rate),
            stack: Stack::default(),
            distances: Vec::new(),
            accesses: 0,
            sampled: 0,
        }
    }

    /// Records a request for the page.
    pub fn access(&mut self, page: u64) {
        self.accesses += 1;
        // The salt keeps the sample apart from the map's own use of the hash.
        if self.rate < 1.0 && place(mix(page ^ 0x5ade_d5a1_71e5)) >= self.threshold {
            return;
        }
        self.sampled += 1;
        if let Some([needed]) = self.stack.access(page, || [1]) {
            let distance = needed as usize - 1;
            if distance >= self.distances.len() {
                self.distances.resize(distance + 1, 0);
            }
            self.distances[distance] += 1;
        }
    }

    /// Returns the number of accesses.
    pub fn accesses(&self) -> u64 {
        self.accesses
    }

    /// Returns the number of pages that are in the sample.
    pub fn sampled_pages(&self) -> usize {
        self.stack.len()
    }

    /// Request counts of the sampled pages, unordered.
    pub(super) fn counts(&self) -> impl Iterator<Item = u64> + '_ {
        self.stack.requests()
    }

    /// Returns the hit ratios that follow from the distances.
    pub fn curve(&self) -> ReuseCurve {
        let expected = self.accesses as f64 * self.rate;
        // Too few sampled accesses were reuses of the hottest pages that are not in the sample, and the other way
        // round.
        let correction = if self.rate < 1.0 {
            expected - self.sampled as f64
        } else {
            0.0
        };
        let all = if self.rate < 1.0 { expected } else { self.sampled as f64 };
        let mut points = Vec::new();
        let mut hits = correction;
        for (distance, &count) in self.distances.iter().enumerate() {
            if count > 0 {
                hits += count as f64;
                points.push(((distance + 1) as f64 / self.rate, (hits / all.max(1.0)).clamp(0.0, 1.0)));
            }
        }
        ReuseCurve { points }
    }
}

/// The hit ratio of an LRU cache for every size.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReuseCurve {
    /// Pages of a cache, rising, and the hit ratio from that size on.
    pub points: Vec<(f64, f64)>,
}

impl ReuseCurve {
    /// Returns the hit ratio of a cache of `pages`, first accesses counted as misses.
    pub fn hit_ratio(&self, pages: f64) -> f64 {
        // A size is exact only up to what its computation rounded.
        let fitting = self.points.partition_point(|(size, _)| *size <= pages + 1e-6);
        match fitting {
            0 => 0.0,
            fitting => self.points[fitting - 1].1,
        }
    }
}

#[cfg(test)]
#[path = "reuse_tests.rs"]
mod tests;
