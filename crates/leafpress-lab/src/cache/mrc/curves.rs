//! Curves, and lookups in them.

use serde::{Deserialize, Serialize};

use super::Held;

/// One of the curves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Curve {
    /// Least recently used, uncompressed.
    Lru,
    /// Least recently used, compressed.
    LruCompressed,
    /// S3-FIFO, uncompressed.
    S3Fifo,
    /// S3-FIFO, compressed.
    S3FifoCompressed,
}

impl Curve {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Lru, Self::LruCompressed, Self::S3Fifo, Self::S3FifoCompressed];

    /// Returns its name in charts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lru => "LRU, uncompressed",
            Self::LruCompressed => "LRU, compressed",
            Self::S3Fifo => "S3-FIFO, uncompressed",
            Self::S3FifoCompressed => "S3-FIFO, compressed",
        }
    }

    /// Returns whether records are compressed.
    pub fn is_compressed(self) -> bool {
        matches!(self, Self::LruCompressed | Self::S3FifoCompressed)
    }

    /// The policy's uncompressed and compressed curves.
    pub(super) const POLICIES: [(&'static str, Self, Self); 2] = [
        ("LRU", Self::Lru, Self::LruCompressed),
        ("S3-FIFO", Self::S3Fifo, Self::S3FifoCompressed),
    ];
}

/// The hit ratios of caches of one size, 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HitRatios {
    /// Least recently used, uncompressed.
    pub lru: f64,
    /// Least recently used, compressed.
    pub lru_compressed: f64,
    /// S3-FIFO, uncompressed.
    pub s3_fifo: f64,
    /// S3-FIFO, compressed.
    pub s3_fifo_compressed: f64,
}

impl HitRatios {
    /// Returns the hit ratio of a curve.
    pub fn of(&self, curve: Curve) -> f64 {
        match curve {
            Curve::Lru => self.lru,
            Curve::LruCompressed => self.lru_compressed,
            Curve::S3Fifo => self.s3_fifo,
            Curve::S3FifoCompressed => self.s3_fifo_compressed,
        }
    }
}

/// A size and its hits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SizePoint {
    /// Memory of a cache, in bytes.
    pub memory_bytes: u64,
    /// The share of the reads that it answers.
    pub hits: HitRatios,
}

/// Hit ratios of caches of many sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HitCurves {
    /// Requests of the warm-up, of which nothing is counted.
    pub warmup_requests: u64,
    /// Requests that are counted, overwrites included.
    pub requests: u64,
    /// Keys in LRU's sample at the end.
    pub sampled_keys: u64,
    /// The share of the keys that they are.
    pub rate: f64,
    /// The share of the keys that S3-FIFO's small caches have.
    pub miniature_rate: f64,
    /// Overhead of an uncompressed entry in bytes, in addition to key and value.
    pub entry_bytes: u64,
    /// Memory of compressed records.
    pub held: Held,
    /// The curves, by ascending size.
    pub points: Vec<SizePoint>,
}

impl HitCurves {
    /// Returns the hit ratio of a size, between those of the next ones; 0 without a point.
    pub fn hit_ratio(&self, curve: Curve, memory_bytes: f64) -> f64 {
        let behind = self
            .points
            .partition_point(|point| (point.memory_bytes as f64) < memory_bytes);
        let at = |at: usize| {
            self.points
                .get(at)
                .map(|point| (point.memory_bytes as f64, point.hits.of(curve)))
        };
        match (behind.checked_sub(1).and_then(at), at(behind)) {
            (Some((low, from)), Some((high, to))) => {
                from + (to - from) * (memory_bytes / low).log2() / (high / low).log2()
            }
            (Some((_, last)), None) => last,
            (None, Some((high, first))) => first * memory_bytes.max(0.0) / high,
            (None, None) => 0.0,
        }
    }

    /// Returns the least memory that answers such a share of the reads, in bytes, and no less than the smallest size;
    /// [`None`] where no size does.
    pub fn memory_for(&self, curve: Curve, hit_ratio: f64) -> Option<f64> {
        let enough = self.points.iter().position(|point| point.hits.of(curve) >= hit_ratio)?;
        let (high, to) = (
            self.points[enough].memory_bytes as f64,
            self.points[enough].hits.of(curve),
        );
        let Some(before) = enough.checked_sub(1).map(|before| &self.points[before]) else {
            return Some(high);
        };
        let (low, from) = (before.memory_bytes as f64, before.hits.of(curve));
        Some(low * (high / low).powf((hit_ratio - from) / (to - from)))
    }
}

/// Most sizes, and most in a doubling.
const MAX_SIZES: f64 = 60.0;
const IN_A_DOUBLING: f64 = 4.0;
/// The smallest size, as a part of all records: below it a sample has too few.
const SMALLEST_ONE_IN: f64 = 1024.0;

/// Sizes in even steps of their logarithm, such that `memory_bytes` is one of them: from a thousandth of all records,
/// which take `all_bytes`, or a fourth of the memory, to where all fit.
pub(super) fn sizes(memory_bytes: u64, all_bytes: f64) -> Vec<u64> {
    let (memory, all) = (memory_bytes as f64, all_bytes.max(1024.0));
    let least = (all / SMALLEST_ONE_IN).min(memory / 4.0);
    let doublings = (all / least).log2();
    let steps = [IN_A_DOUBLING, 2.0, 1.0];
    let step = steps
        .into_iter()
        .find(|step| doublings * step < MAX_SIZES)
        .unwrap_or(1.0);
    let number = |bytes: f64| (bytes / memory).log2() * step;
    let (first, last) = (number(least).floor() as i64, number(all).ceil() as i64);
    let first = first.max(last - MAX_SIZES as i64 + 1);
    let mut sizes: Vec<u64> = (first..=last)
        .map(|at| (memory * (at as f64 / step).exp2()).round() as u64)
        .collect();
    // Of a few bytes steps are less than one.
    sizes.dedup();
    sizes
}
