//! SHARDS: an LRU cache's hits of every size, from a sample of the keys (Waldspurger, Park, Garthwaite, Ahmad,
//! "Efficient MRC construction with SHARDS", FAST 2015).
//!
//! A key is in the sample if its hash is below a threshold: all its requests, or none. The cache size at which a
//! request for a key is a hit is the sampled requests since, divided by the rate. With a fixed size the threshold falls
//! whenever keys are too many, and those above it are forgotten; a request counts as one over its current rate. The
//! sample's excess or lack of requests is corrected at the smallest size, as SHARDS-adj does: it is mostly whether the
//! hottest keys are in it.

use std::collections::BinaryHeap;

use super::Stack;
use crate::mem::OutOfMemory;
use crate::mem::room::room_for;

/// Bits of a hash that decide whether a key is in a sample; a float represents them exactly.
const HASH_BITS: u32 = 53;

/// Returns the bits of a hash that decide whether its key is in a sample.
#[inline]
pub const fn place(hash: u64) -> u64 {
    hash >> (u64::BITS - HASH_BITS)
}

/// Returns the threshold of a sample: keys whose [`place`] is below it are this share of all keys, 0 to 1.
pub fn threshold(rate: f64) -> u64 {
    (rate * (1_u64 << HASH_BITS) as f64) as u64
}

/// Hits by size, for `N` ways to weigh a key at once. A key is given by its hash.
#[derive(Debug)]
pub struct Shards<const N: usize> {
    /// Sizes, ascending.
    sizes: Vec<f64>,
    threshold: u64,
    max_keys: Option<usize>,
    /// The sampled keys by place, the highest on top: with a fixed size.
    order: BinaryHeap<(u64, u64)>,
    stack: Stack<N>,
    /// Reads that hit from each size on, followed by those that need more.
    hits: [Vec<f64>; N],
    /// Sampled reads, each weighted by its rate.
    sampled_reads: f64,
    /// Reads of which it is unknown what they need, weighted likewise.
    unknown_reads: f64,
}

impl<const N: usize> Shards<N> {
    /// Samples keys at a rate, over 0 to 1, for caches of these ascending sizes; with `max_keys` the rate falls when
    /// there are more keys.
    pub fn new(sizes: Vec<f64>, rate: f64, max_keys: Option<usize>) -> Self {
        Self {
            hits: std::array::from_fn(|_| vec![0.0; sizes.len() + 1]),
            sizes,
            threshold: threshold(rate),
            max_keys,
            order: BinaryHeap::new(),
            stack: Stack::default(),
            sampled_reads: 0.0,
            unknown_reads: 0.0,
        }
    }

    /// Creates a set as [`Shards::new`] does, and allocates all memory at once.
    ///
    /// # Errors
    /// [`OutOfMemory`].
    pub fn with_room(sizes: Vec<f64>, rate: f64, max_keys: usize) -> Result<Self, OutOfMemory> {
        // One is added before another is removed.
        let stack = Stack::with_room(max_keys + 1)?;
        let order = BinaryHeap::from(room_for(max_keys + 1)?);
        Ok(Self {
            stack,
            order,
            ..Self::new(sizes, rate, Some(max_keys))
        })
    }

    /// Returns the memory held, in bytes.
    pub fn held_bytes(&self) -> usize {
        let numbers = self.sizes.capacity() + self.hits.iter().map(Vec::capacity).sum::<usize>();
        self.stack.held_bytes() + self.order.capacity() * size_of::<(u64, u64)>() + numbers * size_of::<f64>()
    }

    /// Keys whose [`place`] is below this are in the sample. It only falls.
    pub fn threshold(&self) -> u64 {
        self.threshold
    }

    /// Returns the sampled share of the keys.
    pub fn rate(&self) -> f64 {
        self.threshold as f64 / (1_u64 << HASH_BITS) as f64
    }

    /// Returns the sizes.
    pub fn sizes(&self) -> &[f64] {
        &self.sizes
    }

    /// Returns the number of keys in the sample.
    pub fn keys(&self) -> usize {
        self.stack.len()
    }

    /// Returns the number of sampled reads since the beginning, each weighted by its rate; those before [`Shards::age`]
    /// count less.
    pub fn sampled_reads(&self) -> f64 {
        self.sampled_reads
    }

    /// Records a request for a key. Only requests that `counts` are reads; others just move the key to the top. A key
    /// that is not in the sample yet is added with its weights.
    pub fn access(&mut self, hash: u64, counts: bool, weigh: impl FnOnce() -> [u64; N]) {
        let place = place(hash);
        if place >= self.threshold {
            return;
        }
        let rate = self.rate();
        if counts {
            self.sampled_reads += 1.0 / rate;
        }
        match self.stack.access(hash, weigh) {
            Some(needed) if counts => {
                for (hits, needed) in self.hits.iter_mut().zip(needed) {
                    let needed = needed as f64 / rate;
                    hits[self.sizes.partition_point(|size| *size < needed)] += 1.0 / rate;
                }
            }
            Some(_) => {}
            None => self.keep_few(place, hash),
        }
    }

    /// Records a read of a cache. A key that is not in the sample is added only if the cache had it, which then knows
    /// its weights; such a read tells nothing about other sizes. Otherwise it is a miss of every size.
    pub fn read(&mut self, hash: u64, weights: Option<[u64; N]>) {
        if place(hash) >= self.threshold {
            return;
        }
        match weights {
            Some(weights) if !self.stack.has(hash) => {
                self.unknown_reads += 1.0 / self.rate();
                self.access(hash, false, || weights);
            }
            None if !self.stack.has(hash) => self.sampled_reads += 1.0 / self.rate(),
            _ => self.access(hash, true, || [0; N]),
        }
    }

    /// Records that a key was written, with these weights.
    pub fn write(&mut self, hash: u64, weights: [u64; N]) {
        if place(hash) < self.threshold {
            self.stack.reweigh(hash, weights);
            self.access(hash, false, || weights);
        }
    }

    /// Returns the mean of the first weight of the sampled keys; [`None`] without a key.
    pub fn mean_weight(&self) -> Option<u64> {
        self.stack.total().first()?.checked_div(self.stack.len() as u64)
    }

    /// Halves the weight of all reads so far.
    pub fn age(&mut self) {
        self.hits.iter_mut().flatten().for_each(|hits| *hits /= 2.0);
        self.sampled_reads /= 2.0;
        self.unknown_reads /= 2.0;
    }

    /// Lowers the threshold when there are too many keys.
    fn keep_few(&mut self, place: u64, hash: u64) {
        let Some(max_keys) = self.max_keys else { return };
        self.order.push((place, hash));
        while self.order.len() > max_keys {
            let Some((highest, _)) = self.order.peek().copied() else {
                return;
            };
            self.threshold = highest;
            while let Some(&(place, hash)) = self.order.peek()
                && place >= highest
            {
                self.stack.remove(hash);
                self.order.pop();
            }
        }
    }

    /// Returns the shares of `reads`, sampled or not, that caches of the sizes answer; 0 without a read.
    pub fn hit_ratios(&self, reads: f64) -> [Vec<f64>; N] {
        let reads = reads - self.unknown_reads;
        let all = reads.max(1.0);
        let correction = reads - self.sampled_reads;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Random, mix};

    /// Keys in a loop need all of them: a smaller LRU cache has no hit.
    #[test]
    fn a_loop_needs_all_its_keys() {
        let mut shards = Shards::<1>::new(vec![900.0, 1100.0], 1.0, None);
        let reads = 10_000;
        for at in 0..reads {
            shards.access(mix(at % 1000), true, || [1]);
        }
        assert_eq!(shards.hit_ratios(reads as f64), [vec![0.0, 0.9]]);
    }

    /// A sample of at most 500 of 20,000 keys is near the whole, with all its memory allocated at the beginning.
    #[test]
    fn a_small_sample_is_near_the_whole() {
        let sizes = || vec![2e5, 1e6, 2e6];
        let mut whole = Shards::<1>::new(sizes(), 1.0, None);
        let mut sample = Shards::<1>::with_room(sizes(), 0.5, 500).unwrap();
        let held = sample.held_bytes();
        let mut random = Random::new(7);
        let reads = 400_000;
        for _ in 0..reads {
            // Half of the reads go to a tenth of the keys.
            let among = if random.below(2) == 0 { 2000 } else { 20_000 };
            let key = random.below(among) as u64;
            let weights = [50 + key % 100];
            for shards in [&mut whole, &mut sample] {
                match shards.stack.has(mix(key)) {
                    true => shards.read(mix(key), Some(weights)),
                    false => {
                        shards.read(mix(key), None);
                        shards.write(mix(key), weights);
                    }
                }
            }
        }
        assert!(sample.keys() <= 500 && sample.keys() > 450 && sample.rate() < 0.03);
        assert!(sample.held_bytes() <= held);
        let ([whole], [sample]) = (whole.hit_ratios(reads as f64), sample.hit_ratios(reads as f64));
        for (whole, sample) in whole.iter().zip(&sample) {
            assert!((whole - sample).abs() < 0.05, "{whole} {sample}");
        }
        assert!(whole[0] > 0.1 && whole[2] > 0.9, "{whole:?}");
    }

    #[test]
    fn a_key_that_is_written_anew_has_its_new_weight() {
        let mut shards = Shards::<1>::new(vec![150.0, 1050.0], 1.0, None);
        shards.write(mix(1), [1000]);
        shards.write(mix(2), [10]);
        shards.read(mix(1), Some([0]));
        // It needs 1010 bytes; then 100 and its own 10.
        shards.write(mix(1), [100]);
        shards.read(mix(2), Some([0]));
        assert_eq!(shards.hit_ratios(2.0), [vec![0.5, 1.0]]);
    }

    #[test]
    fn ignores_records_cached_before_the_sample_began() {
        let mut shards = Shards::<1>::new(vec![100.0], 1.0, None);
        shards.read(mix(1), Some([10]));
        shards.read(mix(1), Some([10]));
        // A read of two is known, and it is a hit.
        assert_eq!(shards.hit_ratios(2.0), [vec![1.0]]);
        shards.read(mix(2), None);
        assert_eq!(shards.hit_ratios(3.0), [vec![0.5]]);
        shards.age();
        assert_eq!(shards.hit_ratios(1.5), [vec![0.5]]);
    }
}
