//! The filter of a run: the rank at which a key's record may be, in about ten bits per record.
//!
//! A run's records are in the order of their keys' hashes. `n` records have about `n` buckets, selected by the high
//! bits of a hash. The number of records of each bucket is encoded in unary (Elias, 1974), and eight more bits of each
//! hash, the remainder, are stored separately. A lookup therefore yields not only whether the key may be present but
//! also the rank of its record, from which its page follows (a quotient filter: Bender et al., "Don't Thrash", PVLDB
//! 2012). The false positive rate is 1/256.

use std::ops::Range;

use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::{TryGrow, room_for};

/// Buckets per sampled position of the select index.
const STRIDE: usize = 64;

pub(super) struct Filter {
    buckets: usize,
    /// In unary: for each bucket a one per record, then a zero.
    counts: Vec<u64>,
    /// Select index: the position in `counts` of every 64th bucket.
    places: Vec<u32>,
    remainders: Vec<u8>,
}

/// Returns the bucket of a hash among `buckets`, and the eight-bit remainder. The pair is monotonic in the hash.
fn place(hash: u64, buckets: usize) -> (usize, u8) {
    let scaled = u128::from(hash) * buckets as u128;
    ((scaled >> 64) as usize, (scaled as u64 >> 56) as u8)
}

/// Returns the position of the `nth` one of a word that has more than `nth`.
fn select(mut word: u64, nth: u32) -> u32 {
    for _ in 0..nth {
        word &= word - 1;
    }
    word.trailing_zeros()
}

/// Builder of a filter, from hashes in ascending order.
pub(super) struct FilterBuilder {
    buckets: usize,
    counts: Vec<u64>,
    remainders: Vec<u8>,
}

impl FilterBuilder {
    /// Reserves memory for about `hashes` hashes.
    pub(super) fn new(hashes: usize) -> Result<Self, OutOfMemory> {
        Ok(Self {
            buckets: hashes.max(1),
            counts: room_for((2 * hashes).div_ceil(64))?,
            remainders: room_for(hashes)?,
        })
    }

    /// Number of hashes.
    pub(super) fn len(&self) -> usize {
        self.remainders.len()
    }

    pub(super) fn push(&mut self, hash: u64) -> Result<(), OutOfMemory> {
        let (bucket, remainder) = place(hash, self.buckets);
        let at = self.remainders.len() + bucket;
        while self.counts.len() <= at / 64 {
            self.counts.try_push(0)?;
        }
        self.counts[at / 64] |= 1 << (at % 64);
        self.remainders.try_push(remainder)
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.counts.capacity() * 8 + self.remainders.capacity()
    }

    pub(super) fn finish(mut self) -> Result<Filter, OutOfMemory> {
        self.counts.shrink_to_fit();
        self.remainders.shrink_to_fit();
        Filter::from_parts(self.buckets, self.counts, self.remainders)
    }
}

impl Filter {
    fn from_parts(buckets: usize, counts: Vec<u64>, remainders: Vec<u8>) -> Result<Self, OutOfMemory> {
        let strides = buckets.div_ceil(STRIDE);
        let mut places = room_for(strides)?;
        places.push(0);
        let mut zeros = 0_usize;
        for (index, word) in counts.iter().enumerate() {
            let here = word.count_zeros() as usize;
            // The bucket begins after the zero that ends the previous one.
            while places.len() * STRIDE <= zeros + here && places.len() < strides {
                let nth = places.len() * STRIDE - 1 - zeros;
                places.push((index * 64) as u32 + select(!word, nth as u32) + 1);
            }
            zeros += here;
        }
        // Only zeros follow the last record.
        while places.len() < strides {
            let beyond = places.len() * STRIDE - zeros;
            places.push((counts.len() * 64 + beyond) as u32);
        }
        Ok(Self {
            buckets,
            counts,
            places,
            remainders,
        })
    }

    /// Returns the ranks of the records that may have this hash: none, or rarely more than one.
    pub(super) fn find(&self, hash: u64) -> Range<usize> {
        let (bucket, remainder) = place(hash, self.buckets);
        let mut at = self.places.get(bucket / STRIDE).map_or(0, |at| *at as usize);
        let mut skips = (bucket % STRIDE) as u32;
        // Skip as many zeros as there are buckets in between.
        while skips > 0 {
            let Some(word) = self.counts.get(at / 64) else {
                return 0..0;
            };
            let zeros = !word & (u64::MAX << (at % 64));
            if zeros.count_ones() < skips {
                skips -= zeros.count_ones();
                at = (at / 64 + 1) * 64;
            } else {
                at = at / 64 * 64 + select(zeros, skips - 1) as usize + 1;
                skips = 0;
            }
        }
        let mut rank = at.saturating_sub(bucket);
        let is_one = |at: usize| self.counts.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1);
        // Remainders of a bucket are sorted.
        while is_one(at) && self.remainders.get(rank).is_some_and(|found| *found < remainder) {
            (at, rank) = (at + 1, rank + 1);
        }
        let first = rank;
        while is_one(at) && self.remainders.get(rank) == Some(&remainder) {
            (at, rank) = (at + 1, rank + 1);
        }
        first..rank
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.counts.capacity() * 8 + self.places.capacity() * 4 + self.remainders.capacity()
    }

    /// Returns the parts stored in an image: buckets, counts, remainders.
    pub(super) fn parts(&self) -> (usize, &[u64], &[u8]) {
        (self.buckets, &self.counts, &self.remainders)
    }

    /// Rebuilds a filter from an image's parts; [`None`] if they are inconsistent.
    pub(super) fn of_parts(buckets: usize, counts: Vec<u64>, remainders: Vec<u8>) -> Result<Option<Self>, OutOfMemory> {
        let ones: usize = counts.iter().map(|word| word.count_ones() as usize).sum();
        let most_words = (buckets + remainders.len()).div_ceil(64);
        if buckets == 0 || ones != remainders.len() || counts.len() > most_words {
            return Ok(None);
        }
        Self::from_parts(buckets, counts, remainders).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(from: u64, count: u64) -> Vec<u64> {
        let mut hashes: Vec<u64> = (from..from + count)
            .map(|n| rapidhash::v3::rapidhash_v3(&n.to_le_bytes()))
            .collect();
        hashes.sort_unstable();
        hashes
    }

    fn filter(buckets: usize, hashes: &[u64]) -> Filter {
        let mut builder = FilterBuilder::new(buckets).unwrap();
        hashes.iter().for_each(|hash| builder.push(*hash).unwrap());
        builder.finish().unwrap()
    }

    #[test]
    fn every_record_is_found_at_its_rank() {
        for count in [0, 1, 2, 63, 64, 65, 1000, 20_000] {
            let hashes = hashes(0, count);
            for buckets in [0, 1, count / 2, count, count * 3 / 2, count * 9] {
                let filter = filter(buckets as usize, &hashes);
                for (rank, hash) in hashes.iter().enumerate() {
                    assert!(filter.find(*hash).contains(&rank), "{rank} of {count} in {buckets}");
                }
                assert!(filter.find(u64::MAX).end <= hashes.len() && filter.find(0).end <= hashes.len());
            }
        }
    }

    #[test]
    fn what_is_not_there_is_seldom_found() {
        let filter = filter(20_000, &hashes(0, 20_000));
        let absent = hashes(1 << 40, 100_000);
        let found = absent.iter().filter(|hash| !filter.find(**hash).is_empty()).count();
        assert!((150..700).contains(&found), "{found} of 100,000");
        assert!(filter.held_bytes() * 8 <= 20_000 * 11, "{} bytes", filter.held_bytes());
    }

    #[test]
    fn hashes_that_crowd_and_repeat_are_found() {
        let mut crowded: Vec<u64> = (0..5000)
            .map(|n| n << 20)
            .chain([u64::MAX; 3])
            .chain([7; 300])
            .collect();
        crowded.sort_unstable();
        let filter = filter(crowded.len(), &crowded);
        for (rank, hash) in crowded.iter().enumerate() {
            assert!(filter.find(*hash).contains(&rank));
        }
    }

    #[test]
    fn parts_make_it_again_and_others_do_not() {
        let hashes = hashes(5, 3000);
        let filter = filter(hashes.len(), &hashes);
        let (buckets, counts, remainders) = filter.parts();
        let again = Filter::of_parts(buckets, counts.to_vec(), remainders.to_vec())
            .unwrap()
            .unwrap();
        assert!(hashes.iter().all(|hash| again.find(*hash) == filter.find(*hash)));
        assert!(
            Filter::of_parts(buckets, counts.to_vec(), vec![0; 2999])
                .unwrap()
                .is_none()
        );
        let mut flipped = counts.to_vec();
        flipped[3] ^= 1;
        assert!(
            Filter::of_parts(buckets, flipped, remainders.to_vec())
                .unwrap()
                .is_none()
        );
        // The same number of ones at other positions: wrong answers, but no panic.
        let mut moved = counts.to_vec();
        moved.rotate_left(5);
        let moved = Filter::of_parts(buckets, moved, remainders.to_vec()).unwrap().unwrap();
        assert!(hashes.iter().any(|hash| moved.find(*hash).is_empty()));
    }
}
