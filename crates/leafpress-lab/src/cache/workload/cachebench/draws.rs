//! Weighted draws: which keys are requested, and the lengths of keys and values.

use rand_xoshiro::rand_core::Rng;

use crate::core::keys::{below, mix, unit};

/// Places with weights, of which one is drawn in constant time (Walker's alias method, as set up by Vose 1991).
#[derive(Debug)]
pub(super) struct Alias {
    /// For each slot: the probability to stay there, in parts of 2^64, and the alternative.
    cells: Vec<(u64, u32)>,
}

impl Alias {
    /// `None` when there are no places, too many, or their weights are not numbers from 0 on whose sum is finite and
    /// more than 0.
    pub(super) fn new(weights: &[f64]) -> Option<Self> {
        let sum: f64 = weights.iter().sum();
        let fair = weights.iter().all(|weight| *weight >= 0.0) && sum > 0.0 && sum.is_finite();
        u32::try_from(weights.len()).ok().filter(|_| fair)?;
        let mut scaled: Vec<f64> = weights.iter().map(|w| w / sum * weights.len() as f64).collect();
        let (mut poor, mut rich): (Vec<usize>, Vec<usize>) = (0..scaled.len()).partition(|at| scaled[*at] < 1.0);
        let mut cells = vec![(u64::MAX, 0); scaled.len()];
        while let (Some(small), Some(large)) = (poor.pop(), rich.pop()) {
            cells[small] = ((scaled[small] * 2_f64.powi(64)) as u64, large as u32);
            scaled[large] -= 1.0 - scaled[small];
            if scaled[large] < 1.0 { &mut poor } else { &mut rich }.push(large);
        }
        // Entries left by rounding are full.
        for at in poor.into_iter().chain(rich) {
            cells[at] = (u64::MAX, at as u32);
        }
        Some(Self { cells })
    }

    /// The place for a random number.
    #[inline]
    pub(super) fn draw(&self, random: u64) -> usize {
        // The high half of the product is a slot, the low one an independent probability.
        let product = u128::from(random) * self.cells.len() as u128;
        let at = (product >> 64) as usize;
        let (stay, other) = self.cells[at];
        if (product as u64) < stay { at } else { other as usize }
    }
}

/// Lengths in bytes: some exact ones by weight, or ranges by weight, in each of which all are alike.
#[derive(Debug)]
pub(super) struct Sizes {
    alias: Alias,
    /// For each place: the least, and how far it goes from there.
    ranges: Vec<(f64, f64)>,
    pub(super) least: usize,
    pub(super) most: usize,
}

impl Sizes {
    /// As many weights as bounds: those are exact lengths. One weight less: the ranges between them, whose ends are not
    /// in them.
    ///
    /// # Errors
    /// The reason, to follow the name of the list of weights.
    pub(super) fn new(bounds: &[f64], weights: &[f64]) -> Result<Self, String> {
        if bounds.is_empty() || weights.is_empty() {
            return Err("or the list of its bounds is empty".into());
        }
        let ranges: Vec<(f64, f64)> = if bounds.len() == weights.len() {
            bounds.iter().map(|bound| (bound.floor(), 0.0)).collect()
        } else if bounds.len() == weights.len() + 1 {
            if bounds.windows(2).any(|pair| pair[0] >= pair[1]) {
                return Err("has bounds that are not ascending".into());
            }
            bounds.windows(2).map(|pair| (pair[0], pair[1] - pair[0])).collect()
        } else {
            let (weights, bounds) = (weights.len(), bounds.len());
            return Err(format!(
                "has {weights} weights for {bounds} bounds: expected the same number, or one less"
            ));
        };
        let alias = Alias::new(weights).ok_or("has no positive weight")?;
        let drawn = || ranges.iter().zip(weights).filter(|(_, weight)| **weight > 0.0);
        let ends = drawn().map(|((low, width), _)| low + width);
        Ok(Self {
            least: drawn().map(|((low, _), _)| *low).fold(f64::INFINITY, f64::min) as usize,
            most: ends.fold(0.0, f64::max).ceil() as usize,
            alias,
            ranges,
        })
    }

    /// The length for a random number.
    #[inline]
    pub(super) fn of(&self, random: u64) -> usize {
        let (low, width) = self.ranges[self.alias.draw(random)];
        (low + width * fraction(mix(random ^ 0x5851_f42d_4c95_7f2d))) as usize
    }
}

/// From a random number to one from 0 to 1, without 1.
fn fraction(random: u64) -> f64 {
    (random >> 11) as f64 / (1_u64 << 53) as f64
}

/// Which of the keys `0..keys` are requested.
#[derive(Debug)]
pub(super) enum Popularity {
    /// Buckets of objects with a weight each; in a bucket all objects are alike. The objects lie in a row, bucket after
    /// bucket, which is stretched or compressed to the number of keys: so a share of the keys has the same share of the
    /// requests in any number of keys.
    Buckets {
        alias: Alias,
        /// For each bucket: where it begins, and how far it goes, in keys.
        ranges: Vec<(f64, f64)>,
        keys: u64,
    },
    /// A normal distribution about the middle, truncated at two standard deviations, which are the ends.
    Normal { keys: u64 },
}

impl Popularity {
    /// Buckets with these numbers of objects and these weights.
    ///
    /// # Errors
    /// The reason, to follow the name of the list of weights.
    pub(super) fn buckets(objects: &[f64], weights: &[f64], keys: u64) -> Result<Self, String> {
        if objects.len() != weights.len() {
            let (weights, objects) = (weights.len(), objects.len());
            return Err(format!("has {weights} weights for {objects} buckets"));
        }
        if objects
            .iter()
            .zip(weights)
            .any(|(objects, weight)| *objects <= 0.0 && *weight > 0.0)
        {
            return Err("has a weight for a bucket without objects".into());
        }
        let alias = Alias::new(weights).ok_or("has no positive weight")?;
        let scale = keys as f64 / objects.iter().sum::<f64>();
        let mut end = 0.0;
        let ranges = objects.iter().map(|objects| {
            let begin = end;
            end += objects;
            (begin * scale, objects * scale)
        });
        Ok(Self::Buckets {
            ranges: ranges.collect(),
            alias,
            keys,
        })
    }

    /// A key.
    #[inline]
    pub(super) fn draw(&self, rng: &mut impl Rng) -> u64 {
        match self {
            Self::Buckets { alias, ranges, keys } => {
                let (begin, length) = ranges[alias.draw(rng.next_u64())];
                // Rounding may lead to the end.
                ((begin + length * unit(rng)) as u64).min(keys - 1)
            }
            Self::Normal { keys } => {
                let last = (keys - 1) as f64;
                loop {
                    // Box and Muller 1958.
                    let radius = (-2.0 * (1.0 - unit(rng)).ln()).sqrt();
                    let normal = radius * (std::f64::consts::TAU * unit(rng)).cos();
                    let key = (last / 2.0 + normal * last / 4.0).round();
                    if (0.0..=last).contains(&key) {
                        break key as u64;
                    }
                }
            }
        }
    }
}

/// A number below 26^8 as eight letters.
pub(super) fn letters(mut number: u64, count: usize, key: &mut Vec<u8>) {
    for _ in 0..count {
        key.push(b'a' + (number % 26) as u8);
        number /= 26;
    }
}

/// This many letters, by a hash.
pub(super) fn hashed_letters(mut seed: u64, count: usize, key: &mut Vec<u8>) {
    let mut left = count;
    while left > 0 {
        // 26^12 is below 2^57: the letters of one hash are all but even.
        let some = left.min(12);
        seed = mix(seed.wrapping_add(0x9e37_79b9_7f4a_7c15));
        letters(below(seed, 26_u64.pow(12)), some, key);
        left -= some;
    }
}

#[cfg(test)]
#[path = "draws_tests.rs"]
mod tests;
