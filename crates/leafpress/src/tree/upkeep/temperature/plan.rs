//! Which leaves should be cold.
//!
//! Those that are read least for their bytes, as many as two bounds allow: reads take, on average, no more than some per cent longer than if all
//! leaves were warm and no record hot; and a byte that is saved is worth a certain share of a processor, so that where hardly anything is read
//! all is cold.

use std::fmt;

use super::SAMPLED_IN;
use super::census::{BUCKETS, Census, least_of};
use crate::tree::node::layout::Temperature;

/// For a second of a processor so many bytes are held for a second: what clouds ask for a vCPU, over what they ask for a GiB, is 7 to 8.
const BYTES_FOR_A_PROCESSOR: f64 = 7.5 * (1 << 30) as f64;
/// A leaf changes its temperature when its reads are past the threshold by this factor, so that it does not change to and fro.
const HYSTERESIS: f64 = 1.5;
/// What a read takes that a hot record answers, in nanoseconds.
const HOT_READ_NS: f64 = 150.0;

/// What a temperature costs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Cost {
    pub held_per_user_byte: f64,
    pub read_ns: f64,
}

/// What each temperature of leaves costs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Costs {
    pub warm: Cost,
    pub cold: Cost,
}

impl fmt::Display for Costs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { warm, cold } = self;
        write!(
            f,
            "warm leaves hold {:.2} a user byte, read in {:.0} ns, cold ones {:.2}, in {:.0} ns",
            warm.held_per_user_byte, warm.read_ns, cold.held_per_user_byte, cold.read_ns
        )
    }
}

/// Counted reads a byte below which leaves should be cold; 0 where none should, read or not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Plan {
    pub cold_below: f64,
}

impl Plan {
    /// For leaves that were read as the census says, and hot records so often, in so many seconds.
    pub(super) fn new(census: &Census, hot_reads: f64, costs: &Costs, seconds: f64, slowdown_pct: u32) -> Self {
        let Costs { warm, cold } = costs;
        let saved = warm.held_per_user_byte - cold.held_per_user_byte;
        let slower = (cold.read_ns - warm.read_ns).max(1.0);
        if saved <= 0.0 {
            return Self { cold_below: 0.0 };
        }
        let leaf_reads: u64 = census.reads.iter().sum();
        let (leaf_reads, slowdown) = (leaf_reads as f64, 1.0 + f64::from(slowdown_pct) / 100.0);
        let bearable = (leaf_reads + hot_reads) * warm.read_ns * slowdown - hot_reads * HOT_READ_NS;
        let read_time = |cold_below: usize| {
            let cold: u64 = census.reads[..cold_below].iter().sum();
            leaf_reads * warm.read_ns + cold as f64 * slower
        };
        // Leaves that nobody reads are cold at any rate.
        let by_slowdown = (1..BUCKETS)
            .rev()
            .find(|&cold_below| read_time(cold_below) <= bearable)
            .map_or(f64::MIN_POSITIVE, least_of);
        // So many reads of a byte, in the time, take as much of a processor as the bytes are worth that a cold leaf saves.
        let worth = saved / BYTES_FOR_A_PROCESSOR * seconds * 1e9 / slower / SAMPLED_IN as f64;
        Self {
            cold_below: by_slowdown.max(worth),
        }
    }

    /// The temperature that a leaf with so many counted reads a byte should change to, or the one that it has.
    pub(super) fn wanted(&self, now: Temperature, reads_per_byte: f64) -> Temperature {
        let factor = match now {
            Temperature::Cold => HYSTERESIS,
            Temperature::Warm => 1.0 / HYSTERESIS,
        };
        if reads_per_byte < self.cold_below * factor || (reads_per_byte == 0.0 && self.cold_below > 0.0) {
            Temperature::Cold
        } else {
            Temperature::Warm
        }
    }

    /// The threshold as reads a second, where counts stand for so many seconds.
    pub(super) fn in_words(&self, seconds: f64) -> String {
        let per_second = self.cold_below * 1024.0 * SAMPLED_IN as f64 / seconds.max(1e-3);
        format!("cold are those with fewer than {per_second:.3} reads a second for a KiB of records")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::upkeep::temperature::census::bucket;

    const COSTS: Costs = Costs {
        warm: Cost {
            held_per_user_byte: 0.5,
            read_ns: 1100.0,
        },
        cold: Cost {
            held_per_user_byte: 0.3,
            read_ns: 5000.0,
        },
    };
    const LEAF_BYTES: u64 = 16 << 10;

    fn census(reads_of_leaves: impl IntoIterator<Item = u64>) -> Census {
        let mut census = Census {
            leaves: 0,
            user_bytes: 0,
            records: 0,
            reads: [0; BUCKETS],
        };
        for reads in reads_of_leaves {
            census.leaves += 1;
            census.user_bytes += LEAF_BYTES;
            census.reads[bucket(reads as f64 / LEAF_BYTES as f64)] += reads;
        }
        census
    }

    fn is_cold(plan: &Plan, reads: u64) -> bool {
        plan.wanted(Temperature::Warm, reads as f64 / LEAF_BYTES as f64) == Temperature::Cold
    }

    #[test]
    fn what_is_not_read_is_cold() {
        let plan = Plan::new(&census([0; 100]), 0.0, &COSTS, 1.0, 25);
        assert!(is_cold(&plan, 0));
    }

    #[test]
    fn reads_take_no_longer_than_is_bearable() {
        // A tenth of the leaves has nine tenths of the reads. The last tenth of the reads, 3.9 us slower, is 390 ns on average.
        let reads = |leaf: u64| if leaf.is_multiple_of(10) { 81_000 } else { 1_000 };
        let census = census((0..1000).map(reads));
        for (slowdown_pct, is_bearable) in [(0, false), (25, false), (50, true)] {
            let plan = Plan::new(&census, 0.0, &COSTS, 1.0, slowdown_pct);
            assert_eq!(is_cold(&plan, 1_000), is_bearable, "{slowdown_pct}");
            assert!(!is_cold(&plan, 81_000), "{slowdown_pct}");
        }
        // What hot records save may be spent.
        let plan = Plan::new(&census, 3_000_000.0, &COSTS, 1.0, 25);
        assert!(is_cold(&plan, 1_000));
    }

    #[test]
    fn a_few_reads_an_hour_keep_nothing_warm() {
        let plan = Plan::new(&census([1; 1000]), 0.0, &COSTS, 3600.0, 0);
        assert!(is_cold(&plan, 1));
    }

    #[test]
    fn cold_leaves_that_save_nothing_are_not_made() {
        let mut costs = COSTS;
        costs.cold.held_per_user_byte = 0.6;
        let plan = Plan::new(&census((0..100).map(|leaf| leaf * 100)), 0.0, &costs, 1.0, 25);
        assert!(!is_cold(&plan, 0) && !is_cold(&plan, 100));
    }

    #[test]
    fn a_leaf_near_the_threshold_keeps_its_temperature() {
        let plan = Plan { cold_below: 0.01 };
        for reads in [0.008, 0.012] {
            for temperature in [Temperature::Warm, Temperature::Cold] {
                assert_eq!(plan.wanted(temperature, reads), temperature, "{reads}");
            }
        }
        assert_eq!(plan.wanted(Temperature::Cold, 0.02), Temperature::Warm);
        assert_eq!(plan.wanted(Temperature::Warm, 0.005), Temperature::Cold);
    }
}
