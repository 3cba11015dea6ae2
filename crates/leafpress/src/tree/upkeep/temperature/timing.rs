//! What reads take, of those that the tree's caller does: a trial of some records finds them and the dictionary in the caches nearby.

use std::time::Instant;

use super::is_timed;
use super::plan::Costs;
use crate::tree::thread_state::{Count, ThreadState, ThreadStates};

/// What a read takes that a hot record answers, in nanoseconds, before any was timed.
const HOT_READ_NS: f64 = 150.0;
/// Fewer reads than this between two looks tell nothing.
const FEW: u64 = 16;
/// So many looks without reads make a mean one of long ago.
const FORGOTTEN_AFTER: u32 = 16;
/// Longer reads count as this.
const LONGEST_READ_NS: u128 = 100_000;
/// The part of what is known that a look's mean replaces.
const NEW_PART: f64 = 0.3;

/// What answers a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answered {
    HotRecord,
    WarmLeaf,
    ColdLeaf,
}

impl Answered {
    const ALL: [Self; 3] = [Self::HotRecord, Self::WarmLeaf, Self::ColdLeaf];

    /// Reads that were timed, and what they took.
    pub(crate) fn counts(self) -> [Count; 2] {
        match self {
            Self::HotRecord => [Count::HotTimed, Count::HotNs],
            Self::WarmLeaf => [Count::WarmTimed, Count::WarmNs],
            Self::ColdLeaf => [Count::ColdTimed, Count::ColdNs],
        }
    }
}

/// Times one read in some.
pub(crate) struct ReadTimer(Option<Instant>);

impl ReadTimer {
    #[inline(always)]
    pub(crate) fn start(context: &ThreadState) -> Self {
        Self(is_timed(context.so_far(Count::Gets)).then(Instant::now))
    }

    #[inline(always)]
    pub(crate) fn stop(self, context: &ThreadState, answered: Answered) {
        if let Some(began) = self.0 {
            // A thread that lost its core says nothing of reads.
            let ns = began.elapsed().as_nanos().min(LONGEST_READ_NS);
            let [reads, took] = answered.counts();
            context.count(reads);
            context.add(took, ns as u64);
        }
    }
}

/// One mean, aged.
#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    ns: Option<f64>,
    seen: [u64; 2],
    looks_without: u32,
}

impl Mean {
    /// All reads timed so far, and what they took.
    fn look(&mut self, now: [u64; 2]) {
        let [reads, ns] = [0, 1].map(|at| now[at].wrapping_sub(self.seen[at]));
        if reads < FEW {
            self.looks_without += 1;
            if self.looks_without >= FORGOTTEN_AFTER {
                self.ns = None;
            }
            return;
        }
        self.seen = now;
        self.looks_without = 0;
        let mean = ns as f64 / reads as f64;
        self.ns = Some(self.ns.map_or(mean, |old| old + (mean - old) * NEW_PART));
    }
}

/// What reads took lately, by what answered them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Timing([Mean; 3]);

impl Timing {
    pub(super) fn look(&mut self, contexts: &ThreadStates) {
        for (mean, answered) in self.0.iter_mut().zip(Answered::ALL) {
            mean.look(answered.counts().map(|count| contexts.sum(count)));
        }
    }

    /// What a trial measured, with what reads really take. What none took lately is as much slower than in the trial as others are.
    pub(super) fn corrected(&self, trial: &Costs) -> Costs {
        let [hot, warm, cold] = self.0.map(|mean| mean.ns);
        let factor = |measured: Option<f64>, tried: f64| measured.map(|ns| ns / tried.max(1.0));
        let by_warm = factor(warm, trial.warm.read_ns);
        let by_cold = factor(cold, trial.cold.read_ns);
        let (mut costs, usual) = (*trial, by_warm.or(by_cold).unwrap_or(1.0));
        costs.warm.read_ns *= usual;
        costs.cold.read_ns *= by_cold.unwrap_or(usual);
        costs.hot_read_ns = hot.unwrap_or(HOT_READ_NS * usual);
        costs.hot_read_warm_ns = trial.warm.read_ns.min(costs.warm.read_ns);
        costs
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::Cost;
    use super::*;

    fn mean(reads: u64, ns: u64) -> Mean {
        let mut mean = Mean::default();
        mean.look([reads, ns]);
        mean
    }

    #[test]
    fn means_follow_what_reads_take_and_few_reads_tell_nothing() {
        let mut one = mean(100, 50_000);
        assert_eq!(one.ns, Some(500.0));
        one.look([110, 60_000_000]);
        assert_eq!(one.ns, Some(500.0));
        one.look([200, 50_000 + 100 * 1_500]);
        assert_eq!(one.ns, Some(800.0));
        (0..FORGOTTEN_AFTER).for_each(|_| one.look([200, 200_000]));
        assert_eq!(one.ns, None);
    }

    #[test]
    fn what_was_not_timed_is_as_much_slower_as_the_rest() {
        let cost = |read_ns| Cost {
            held_per_user_byte: 0.5,
            read_ns,
        };
        let trial = Costs {
            warm: cost(1_000.0),
            cold: cost(4_000.0),
            hot_read_ns: 0.0,
            hot_read_warm_ns: 0.0,
        };
        let none = Mean::default();
        let read_ns = |means| {
            let costs = Timing(means).corrected(&trial);
            [costs.hot_read_ns, costs.warm.read_ns, costs.cold.read_ns]
        };
        assert_eq!(read_ns([none; 3]), [150.0, 1_000.0, 4_000.0]);
        let (hot, warm, cold) = (mean(100, 40_000), mean(100, 150_000), mean(100, 800_000));
        assert_eq!(read_ns([none, warm, none]), [225.0, 1_500.0, 6_000.0]);
        assert_eq!(read_ns([none, none, cold]), [300.0, 2_000.0, 8_000.0]);
        assert_eq!(read_ns([hot, warm, cold]), [400.0, 1_500.0, 8_000.0]);
    }
}
