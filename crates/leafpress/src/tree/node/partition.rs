//! Partitioning of keys among shards by hash: in runs of neighbours, such that every shard gets its part at even
//! distances.
//!
//! Keys that differ only in the low bits of their last byte form a run. Of each group of neighbouring runs, one per
//! shard, every shard gets one, and the assignment rotates from group to group. So numbered keys are as dense in a
//! shard as in the whole tree once the other shards' runs are left out, and the position of such a key in a leaf can be
//! interpolated from the leaf's bounds, which predictions rely on.

use crate::tree::hash::hash;
use crate::tree::node::fraction::Fraction;
use crate::tree::node::key_order::key_number;

/// Keys that differ only in this number of low bits of their last byte form a run.
const RUN_BITS: u32 = 4;

/// 2^64 divided by the golden ratio: its multiples are spread over the 64-bit numbers more evenly than random ones.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Partitions keys among shards, in runs of neighbours.
#[derive(Clone, Copy)]
pub(crate) struct ShardPartitioner {
    shards: u32,
    /// Binary logarithm of the runs per group: the least power of two not below the number of shards.
    group_bits: u8,
    /// Equal to `group_bits` where every shard has one run of each group, else 0: then runs of other shards cannot be
    /// distinguished from gaps.
    left_out_bits: u8,
}

impl ShardPartitioner {
    /// Creates the partitioner for `shards` shards.
    pub(crate) fn new(shards: usize) -> Self {
        let group_bits = shards.next_power_of_two().trailing_zeros() as u8;
        Self {
            shards: shards as u32,
            group_bits,
            left_out_bits: if shards.is_power_of_two() { group_bits } else { 0 },
        }
    }

    /// Returns the shard of `key`. Groups are numbered by the key's last eight bytes, and rotated by multiples of the
    /// golden ratio (Knuth, The Art of Computer Programming 3, 6.4), since equidistant keys may have the same position
    /// in every group.
    #[inline(always)]
    pub(crate) fn shard(self, key: &[u8]) -> usize {
        let run = key_number(key) >> RUN_BITS;
        let group = run >> self.group_bits;
        let mut turn = group.wrapping_mul(GOLDEN);
        if let Some(upper @ 1..) = key.len().checked_sub(8) {
            turn = turn.wrapping_add(hash(&key[..upper]));
        }
        let shards = u64::from(self.shards);
        let place = run - (group << self.group_bits);
        let shard = (((turn >> 32) * shards) >> 32) + ((place * shards) >> self.group_bits);
        (if shard >= shards { shard - shards } else { shard }) as usize
    }

    /// Returns the relative position of the head `wanted` between the heads `low` and `high`, counted in keys of a
    /// shard as if they were numbered: heads are the first eight bytes after a common prefix, which leaves `suffix_len`
    /// bytes of the key.
    #[inline(always)]
    pub(crate) fn share(self, suffix_len: usize, low: u64, wanted: u64, high: u64) -> Fraction {
        let (unit, left_out_bits) = match suffix_len {
            1..=8 => (u64::BITS - 8 * suffix_len as u32, u32::from(self.left_out_bits)),
            _ => (0, 0),
        };
        let in_shard = |head: u64| {
            let number = head >> unit;
            (number >> (RUN_BITS + left_out_bits) << RUN_BITS) | number & ((1 << RUN_BITS) - 1)
        };
        let low = in_shard(low);
        // Signed numbers convert faster; where the span is half of all numbers, the prediction is poor anyway.
        let from_low = |head: u64| in_shard(head).wrapping_sub(low) as i64 as f32;
        Fraction::of(from_low(wanted), from_low(high))
    }
}

#[cfg(test)]
mod tests {
    use super::ShardPartitioner;

    const KEYS: u64 = 20_000;

    /// Returns the maximum of the shards' numbers of keys, relative to the average.
    fn most(shards: usize, key: impl Fn(u64) -> Vec<u8>) -> f64 {
        let runs = ShardPartitioner::new(shards);
        let mut counts = vec![0u64; shards];
        for n in 0..KEYS {
            counts[runs.shard(&key(n))] += 1;
        }
        *counts.iter().max().unwrap() as f64 * shards as f64 / KEYS as f64
    }

    #[test]
    fn keys_of_any_pattern_are_shared_out_evenly() {
        for shards in [2, 3, 4, 8, 13, 64] {
            let check = |pattern: &str, key: &dyn Fn(u64) -> Vec<u8>| {
                let most = most(shards, key);
                assert!(most < 1.25, "{pattern}: {most} of the average, of {shards} shards");
            };
            for shift in 0..=48 {
                check("powers of two", &|n| (n << shift).to_be_bytes().to_vec());
            }
            for step in [3, 10, 24, 1000, 3600, 86_400, 1_000_003] {
                check("steps", &|n| (n * step).to_be_bytes().to_vec());
            }
            check("least byte first", &|n| n.to_le_bytes().to_vec());
            check("four bytes", &|n| (n as u32).to_be_bytes().to_vec());
            check("decimal", &|n| format!("user:{n:08}").into_bytes());
            check("decimal of any length", &|n| format!("user:{n}").into_bytes());
            check("hexadecimal", &|n| format!("{n:016x}").into_bytes());
            check("padded", &|n| [n.to_be_bytes(), *b"00000000"].concat());
            check("a suffix", &|n| format!("{n}:profile").into_bytes());
        }
    }

    #[test]
    fn where_a_numbered_key_is_in_a_leaf_is_exact() {
        const LEAF: usize = 117;
        for shards in [1, 2, 4, 8, 64] {
            let runs = ShardPartitioner::new(shards);
            let mut own: Vec<Vec<u64>> = vec![Vec::new(); shards];
            for n in 1_000_000..1_200_000u64 {
                own[runs.shard(&n.to_be_bytes())].push(n);
            }
            for keys in own {
                for (leaf, next) in keys.chunks(LEAF).zip(keys.chunks(LEAF).skip(1)) {
                    for (slot, key) in leaf.iter().enumerate() {
                        // Five bytes are common to all.
                        let head = |number: u64| number << 40;
                        let share = runs.share(3, head(leaf[0]), head(*key), head(next[0]));
                        assert!(share.times(LEAF).abs_diff(slot) <= 1, "{slot} of {shards} shards");
                    }
                }
            }
        }
    }
}
