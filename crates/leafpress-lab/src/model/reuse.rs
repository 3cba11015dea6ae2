//! How many other pages were asked for since a page was last asked for: the reuse distance, of which an LRU cache's hit ratio follows for
//! every size at once (Mattson, Gecsei, Slutz, Traiger, "Evaluation techniques for storage hierarchies", IBM Systems Journal 1970).

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use serde::{Deserialize, Serialize};

use crate::core::keys::mix;

/// Hashes a page's number by mixing it: numbers in a trace are no attack.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PageHasher(u64);

impl std::hash::Hasher for PageHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = mix(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, page: u64) {
        self.0 = mix(page);
    }
}

pub(super) type PageMap<V> = HashMap<u64, V, BuildHasherDefault<PageHasher>>;

/// The reuse distances of a trace, page by page.
///
/// Each page's last access is a mark at its time. The distance is the number of marks behind that of the page, which a Fenwick tree counts (Bennett,
/// Kruskal, "LRU stack processing", IBM J. R&D 1975; Fenwick, "A new data structure for cumulative frequency tables", 1994). When the times run
/// out, marks are moved together, so memory goes by distinct pages and not by accesses.
///
/// With a rate below 1 only pages whose hash is low enough are looked at, all accesses to them, and distances are scaled up (Waldspurger, Park,
/// Garthwaite, Ahmad, "Efficient MRC construction with SHARDS", FAST 2015, with a fixed rate). What the sample has too much or too little is
/// put right at distance 0, as the paper does (SHARDS-adj).
#[derive(Debug, Clone)]
pub struct Reuse {
    rate: f64,
    threshold: u64,
    /// Of each page, the time of its last access and the number of its accesses.
    pages: PageMap<(usize, u64)>,
    marks: Fenwick,
    now: usize,
    /// Accesses by reuse distance.
    distances: Vec<u64>,
    accesses: u64,
    sampled: u64,
}

/// Times there are room for at first.
const FIRST_TIMES: usize = 1 << 12;
/// Page numbers are hashed to so many bits, of which a sample is a part.
const HASH_BITS: u32 = 53;

impl Reuse {
    /// Distances of the pages that `rate` picks: over 0, and 1 for all.
    pub fn new(rate: f64) -> Self {
        let rate = if rate > 0.0 { rate.min(1.0) } else { 1.0 };
        Self {
            rate,
            threshold: (rate * (1_u64 << HASH_BITS) as f64) as u64,
            pages: PageMap::default(),
            marks: Fenwick::new(FIRST_TIMES),
            now: 0,
            distances: Vec::new(),
            accesses: 0,
            sampled: 0,
        }
    }

    /// The page is asked for.
    pub fn access(&mut self, page: u64) {
        self.accesses += 1;
        // The salt keeps the sample apart from the map's own use of the hash.
        if self.rate < 1.0 && mix(page ^ 0x5ade_d5a1_71e5) >> (64 - HASH_BITS) >= self.threshold {
            return;
        }
        self.sampled += 1;
        if self.now == self.marks.len() {
            self.move_together();
        }
        let now = self.now;
        self.now += 1;
        let seen = self.pages.len();
        let entry = self.pages.entry(page).or_insert((now, 0));
        entry.1 += 1;
        if entry.1 > 1 {
            let before = std::mem::replace(&mut entry.0, now);
            // Marks up to and with the page's own; those behind it are the pages asked for since.
            let distance = seen - self.marks.sum(before);
            self.marks.add(before, -1);
            if distance >= self.distances.len() {
                self.distances.resize(distance + 1, 0);
            }
            self.distances[distance] += 1;
        }
        self.marks.add(now, 1);
    }

    /// Accesses so far.
    pub fn accesses(&self) -> u64 {
        self.accesses
    }

    /// Pages that are in the sample.
    pub fn sampled_pages(&self) -> usize {
        self.pages.len()
    }

    /// How often pages of the sample were asked for, in no order.
    pub(super) fn counts(&self) -> impl Iterator<Item = u64> + '_ {
        self.pages.values().map(|(_, count)| *count)
    }

    fn move_together(&mut self) {
        let mut last: Vec<&mut usize> = self.pages.values_mut().map(|(time, _)| time).collect();
        last.sort_unstable_by_key(|time| **time);
        self.marks = Fenwick::new((2 * last.len()).max(FIRST_TIMES));
        for (now, time) in last.into_iter().enumerate() {
            *time = now;
            self.marks.add(now, 1);
        }
        self.now = self.pages.len();
    }

    /// The hit ratios that follow.
    pub fn curve(&self) -> ReuseCurve {
        let expected = self.accesses as f64 * self.rate;
        // Too few sampled accesses were reuses of the hottest pages that are not in the sample, and the other way round.
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
    /// The hit ratio of a cache of `pages`, first accesses counted as misses.
    pub fn hit_ratio(&self, pages: f64) -> f64 {
        // A size is exact only up to what its computation rounded.
        let fitting = self.points.partition_point(|(size, _)| *size <= pages + 1e-6);
        match fitting {
            0 => 0.0,
            fitting => self.points[fitting - 1].1,
        }
    }
}

/// Numbers whose sums from the first on are wanted while they change.
#[derive(Debug, Clone)]
struct Fenwick {
    /// At i the sum of the `i & -i` numbers up to the i-th, counted from 1.
    sums: Vec<i64>,
}

impl Fenwick {
    fn new(len: usize) -> Self {
        Self { sums: vec![0; len + 1] }
    }

    fn len(&self) -> usize {
        self.sums.len() - 1
    }

    fn add(&mut self, at: usize, number: i64) {
        let mut at = at + 1;
        while at < self.sums.len() {
            self.sums[at] += number;
            at += at & at.wrapping_neg();
        }
    }

    /// The sum of the numbers up to `at`, with it.
    fn sum(&self, at: usize) -> usize {
        let (mut at, mut sum) = (at + 1, 0);
        while at > 0 {
            sum += self.sums[at];
            at &= at - 1;
        }
        usize::try_from(sum).unwrap_or(0)
    }
}

#[cfg(test)]
#[path = "reuse_tests.rs"]
mod tests;
