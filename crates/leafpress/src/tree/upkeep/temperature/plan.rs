//! The decision which leaves should be cold.
//!
//! By costs, those with the fewest reads per byte: as many as possible such that the average read becomes slower,
//! compared to a tree with warm leaves and without hot records, by no more per cent than the tree becomes smaller, and
//! by no more than the caller allows. Where all leaves are read equally, cold ones would cost more than they save. More
//! leaves are cold where reads are rare: a saved byte is worth a certain amount of processor time.

use std::fmt;

use super::SAMPLED_IN;
use super::census::{BUCKETS, Census, least_of};
use crate::tree::node::layout::Temperature;

/// Bytes held for a second that cost as much as a second of a processor: cloud providers charge 7 to 8 times as much
/// for a vCPU as for a GiB.
const BYTES_FOR_A_PROCESSOR: f64 = 7.5 * (1 << 30) as f64;
/// Hysteresis: a leaf changes its temperature when its reads are past the threshold by this factor, so that it does not
/// oscillate.
const HYSTERESIS: f64 = 1.5;

/// The cost of a temperature.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Cost {
    pub held_per_user_byte: f64,
    pub read_ns: f64,
}

/// The cost of each temperature.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Costs {
    pub warm: Cost,
    pub cold: Cost,
    /// Time of a read answered by a hot record.
    pub hot_read_ns: f64,
    /// Time of the same read from a warm leaf: frequently read data is in the nearer caches.
    pub hot_read_warm_ns: f64,
}

impl fmt::Display for Costs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            warm,
            cold,
            hot_read_ns,
            ..
        } = self;
        write!(
            f,
            "warm leaves hold {:.2} a user byte, read in {:.0} ns, cold ones {:.2}, in {:.0} ns, hot records are read \
             in {hot_read_ns:.0} ns",
            warm.held_per_user_byte, warm.read_ns, cold.held_per_user_byte, cold.read_ns
        )
    }
}

/// Returns a threshold below this bucket, in the middle of the gap if empty buckets precede it: so that leaves above it
/// are past the hysteresis too.
fn between(census: &Census, bucket: usize) -> f64 {
    let above = least_of(bucket);
    match census.bytes[..bucket].iter().rposition(|bytes| *bytes > 0) {
        None | Some(0) => above / HYSTERESIS,
        Some(last) => (least_of(last + 1) * above).sqrt().max(above / HYSTERESIS),
    }
}

/// The adaptive factor, in deviations above the mean: initial value, bounds, and maximum step.
const FIRST_FACTOR: f64 = 3.0;
const MIN_FACTOR: f64 = -3.0;
const MAX_FACTOR: f64 = 10.0;
const FACTOR_STEP: f64 = 0.25;

/// The current factor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Factor(pub(super) f64);

impl Default for Factor {
    fn default() -> Self {
        Self(FIRST_FACTOR)
    }
}

impl Factor {
    /// Moves towards the factor with which the planned leaves would be cold.
    pub(super) fn approach(&mut self, census: &Census, wanted: &Plan) {
        let (mean, deviation) = census.mean_and_deviation();
        // Where all leaves are read equally, every factor is equivalent.
        if deviation > 0.0 {
            // A cold leaf above this threshold should become warm in spite of the hysteresis: no hot record takes its
            // reads.
            let wanted = (wanted.cold_below / HYSTERESIS - mean) / deviation;
            let wanted = wanted.clamp(MIN_FACTOR, MAX_FACTOR);
            self.0 += (wanted - self.0).clamp(-FACTOR_STEP, FACTOR_STEP);
        }
    }
}

/// Counted reads per byte below which leaves should be cold; 0 where none should be, whether read or not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Plan {
    pub cold_below: f64,
}

impl Plan {
    /// Plans that leaves are cold whose reads per byte do not exceed the mean by more than `factor` deviations.
    pub(super) fn by_deviation(census: &Census, factor: f64) -> Self {
        let (mean, deviation) = census.mean_and_deviation();
        Self {
            cold_below: (mean + factor * deviation).max(f64::MIN_POSITIVE),
        }
    }

    /// Plans by costs, for the leaves' reads in `census` and `hot_reads` reads of hot records in `seconds`.
    pub(super) fn by_costs(census: &Census, hot_reads: f64, costs: &Costs, seconds: f64, slowdown_pct: u32) -> Self {
        let Costs {
            warm,
            cold,
            hot_read_ns,
            hot_read_warm_ns,
        } = costs;
        let saved = warm.held_per_user_byte - cold.held_per_user_byte;
        let slower = (cold.read_ns - warm.read_ns).max(1.0);
        if saved <= 0.0 {
            return Self { cold_below: 0.0 };
        }
        let leaf_reads = census.reads.iter().sum::<u64>() as f64;
        let all_warm = leaf_reads * warm.read_ns + hot_reads * hot_read_warm_ns;
        let is_worth_it = |cold_below: usize| {
            let [reads, bytes] = [&census.reads, &census.bytes].map(|of| of[..cold_below].iter().sum::<u64>() as f64);
            let read_time = leaf_reads * warm.read_ns + reads * slower + hot_reads * hot_read_ns;
            let saving = bytes / census.user_bytes.max(1) as f64 * saved / warm.held_per_user_byte;
            read_time <= all_warm * (1.0 + saving.min(f64::from(slowdown_pct) / 100.0))
        };
        // Leaves without reads are cold in any case.
        let by_slowdown = (1..BUCKETS)
            .rev()
            .find(|&cold_below| is_worth_it(cold_below))
            .map_or(f64::MIN_POSITIVE, |cold_below| between(census, cold_below));
        // Reads per byte in the given time whose processor time is worth as much as the memory that a cold leaf saves.
        let worth = saved / BYTES_FOR_A_PROCESSOR * seconds * 1e9 / slower / SAMPLED_IN as f64;
        Self {
            cold_below: by_slowdown.max(worth),
        }
    }

    /// Returns the temperature that a leaf with these counted reads per byte should change to, or its current one.
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

    /// Describes the threshold in reads per second, for counts over `seconds`.
    pub(super) fn in_words(&self, seconds: f64) -> String {
        let per_second = self.cold_below * 1024.0 * SAMPLED_IN as f64 / seconds.max(1e-3);
        format!("cold are those with fewer than {per_second:.3} reads per second for a KiB of records")
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
        hot_read_ns: 150.0,
        hot_read_warm_ns: 1100.0,
    };
    const LEAF_BYTES: u64 = 16 << 10;

    fn census(reads_of_leaves: impl IntoIterator<Item = u64>) -> Census {
        let mut census = Census {
            leaves: 0,
            user_bytes: 0,
            records: 0,
            density: [0.0; 2],
            reads: [0; BUCKETS],
            bytes: [0; BUCKETS],
        };
        for reads in reads_of_leaves {
            let density = reads as f64 / LEAF_BYTES as f64;
            census.density[0] += density;
            census.density[1] += density * density;
            census.leaves += 1;
            census.user_bytes += LEAF_BYTES;
            census.reads[bucket(density)] += reads;
            census.bytes[bucket(density)] += LEAF_BYTES;
        }
        census
    }

    fn is_cold(plan: &Plan, reads: u64) -> bool {
        plan.wanted(Temperature::Warm, reads as f64 / LEAF_BYTES as f64) == Temperature::Cold
    }

    #[test]
    fn by_deviation_few_leaves_that_are_read_far_more_are_warm() {
        // Mean 109, deviation 99.
        let reads = || std::iter::repeat_n(100, 99).chain([1_000]);
        for (factor, of_most_is_cold, of_one_is_cold) in [(-1.0, false, false), (3.0, true, false), (20.0, true, true)]
        {
            let plan = Plan::by_deviation(&census(reads()), factor);
            assert_eq!(
                [100, 1_000].map(|reads| is_cold(&plan, reads)),
                [of_most_is_cold, of_one_is_cold],
                "{factor}"
            );
        }
        assert!(is_cold(&Plan::by_deviation(&census([0; 100]), 3.0), 0));
    }

    #[test]
    fn a_factor_of_its_own_choosing_ends_where_costs_put_the_threshold() {
        // A tenth of the leaves has most of the reads: if reads may take 50% longer the others may be cold, otherwise
        // they may not.
        let reads = |leaf: u64| if leaf.is_multiple_of(10) { 81_000 } else { 1_000 };
        let census = census((0..1000).map(reads));
        let mut factor = Factor::default();
        for (slowdown_pct, others_are_cold) in [(50, true), (0, false), (50, true)] {
            let wanted = Plan::by_costs(&census, 0.0, &COSTS, 1.0, slowdown_pct);
            for _ in 0..60 {
                let before = factor.0;
                factor.approach(&census, &wanted);
                assert!((factor.0 - before).abs() <= FACTOR_STEP);
            }
            let plan = Plan::by_deviation(&census, factor.0);
            assert_eq!(
                [1_000, 81_000].map(|reads| is_cold(&plan, reads)),
                [others_are_cold, false],
                "{slowdown_pct}: {factor:?}"
            );
        }
        let alike = factor;
        factor.approach(&self::census([5; 10]), &Plan { cold_below: 0.0 });
        assert_eq!(factor, alike);
    }

    #[test]
    fn what_is_not_read_is_cold() {
        let plan = Plan::by_costs(&census([0; 100]), 0.0, &COSTS, 1.0, 25);
        assert!(is_cold(&plan, 0));
    }

    #[test]
    fn reads_take_no_longer_than_is_bearable() {
        // A tenth of the leaves has nine tenths of the reads. The last tenth of the reads, 3.9 us slower, is 390 ns on
        // average.
        let reads = |leaf: u64| if leaf.is_multiple_of(10) { 81_000 } else { 1_000 };
        let census = census((0..1000).map(reads));
        for (slowdown_pct, is_bearable) in [(0, false), (25, false), (50, true)] {
            let plan = Plan::by_costs(&census, 0.0, &COSTS, 1.0, slowdown_pct);
            assert_eq!(is_cold(&plan, 1_000), is_bearable, "{slowdown_pct}");
            assert!(!is_cold(&plan, 81_000), "{slowdown_pct}");
        }
        // The time saved by hot records may be spent.
        let plan = Plan::by_costs(&census, 3_000_000.0, &COSTS, 1.0, 25);
        assert!(is_cold(&plan, 1_000));
    }

    #[test]
    fn leaves_that_are_read_alike_become_warm_among_those_that_are_not() {
        let census = census((0..100).map(|leaf| if leaf < 12 { 900 + leaf * 10 } else { 0 }));
        let plan = Plan::by_costs(&census, 40.0, &COSTS, 1.0, 0);
        let now = |reads: u64| plan.wanted(Temperature::Cold, reads as f64 / LEAF_BYTES as f64);
        assert_eq!(
            (now(0), now(900), now(1_010)),
            (Temperature::Cold, Temperature::Warm, Temperature::Warm)
        );
    }

    #[test]
    fn where_all_leaves_are_read_alike_none_is_cold() {
        // A fifth of the leaves would be within the bound, but save less than they cost.
        let alike = census((0..1000).map(|leaf| 1_000 + leaf % 200));
        for slowdown_pct in [10, 100, 1000] {
            let plan = Plan::by_costs(&alike, 0.0, &COSTS, 1.0, slowdown_pct);
            assert!(!is_cold(&plan, 1_000), "{slowdown_pct}");
        }
    }

    #[test]
    fn a_few_reads_an_hour_keep_nothing_warm() {
        let plan = Plan::by_costs(&census([1; 1000]), 0.0, &COSTS, 3600.0, 0);
        assert!(is_cold(&plan, 1));
    }

    #[test]
    fn cold_leaves_that_save_nothing_are_not_made() {
        let mut costs = COSTS;
        costs.cold.held_per_user_byte = 0.6;
        let plan = Plan::by_costs(&census((0..100).map(|leaf| leaf * 100)), 0.0, &costs, 1.0, 25);
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
