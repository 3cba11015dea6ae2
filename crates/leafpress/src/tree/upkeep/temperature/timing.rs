//! Measured times of the caller's reads, since in a trial records and dictionary are in the nearer caches.

use std::time::Instant;

use super::is_timed;
use super::plan::Costs;
use crate::mean_time::MeanTime;
use crate::tree::thread_state::{Count, ThreadState, ThreadStates};

/// Assumed time of a read answered by a hot record, in nanoseconds, before any was timed.
const HOT_READ_NS: f64 = 150.0;
/// Longer times are clamped to this.
const LONGEST_READ_NS: u128 = 100_000;

/// What answered a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answered {
    HotRecord,
    WarmLeaf,
    ColdLeaf,
}

impl Answered {
    pub(crate) const ALL: [Self; 3] = [Self::HotRecord, Self::WarmLeaf, Self::ColdLeaf];

    /// Returns the counters of timed reads and of their total time.
    pub(crate) fn counts(self) -> [Count; 2] {
        match self {
            Self::HotRecord => [Count::HotTimed, Count::HotNs],
            Self::WarmLeaf => [Count::WarmTimed, Count::WarmNs],
            Self::ColdLeaf => [Count::ColdTimed, Count::ColdNs],
        }
    }
}

/// Times a sample of the reads.
pub(crate) struct ReadTimer(Option<Instant>);

impl ReadTimer {
    #[inline(always)]
    pub(crate) fn start(context: &ThreadState) -> Self {
        Self(is_timed(context.so_far(Count::Gets)).then(Instant::now))
    }

    #[inline(always)]
    pub(crate) fn stop(self, context: &ThreadState, answered: Answered) {
        if let Some(began) = self.0 {
            // A preempted thread gives no information about reads.
            let ns = began.elapsed().as_nanos().min(LONGEST_READ_NS);
            let [reads, took] = answered.counts();
            context.count(reads);
            context.add(took, ns as u64);
        }
    }
}

/// Recent read times, by what answered the reads.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Timing([MeanTime; 3]);

impl Timing {
    pub(super) fn look(&mut self, contexts: &ThreadStates) {
        for (mean, answered) in self.0.iter_mut().zip(Answered::ALL) {
            mean.look(answered.counts().map(|count| contexts.sum(count)));
        }
    }

    /// Corrects a trial's costs by the measured times of reads. Where there are no recent ones, the slowdown of the
    /// others is assumed.
    pub(super) fn corrected(&self, trial: &Costs) -> Costs {
        let [hot, warm, cold] = self.0.map(|mean| mean.ns());
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

    fn mean(reads: u64, ns: u64) -> MeanTime {
        let mut mean = MeanTime::default();
        mean.look([reads, ns]);
        mean
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
        let none = MeanTime::default();
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
