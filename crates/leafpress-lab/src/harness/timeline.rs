//! Latency over operations, around a move of the hot keys.

use serde::{Deserialize, Serialize};

/// Stretches that a run up to the move is cut into.
const STRETCHES_BEFORE: u64 = 40;
/// Of one thread: no fewer operations than in a batch, several of which make a mean.
const MIN_STRETCH: u64 = 128;
/// Most that are kept of a run: later ones are a line that goes on as it was.
const MAX_STRETCHES: usize = 1 << 12;

/// A mean this much over that before the move counts as back.
const BACK: f64 = 1.1;

/// One stretch of a run's operations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// Operations of all threads up to its end, about.
    pub operations: u64,
    /// Mean latency of a point read in it, in nanoseconds.
    pub mean_ns: f64,
    /// All the store held at its end, by its own account; 0 where it is not asked.
    pub bytes_held: u64,
}

/// One thread's part: its operations are cut into stretches of one length, and each gives a moment.
#[derive(Debug)]
pub(crate) struct Timeline {
    /// Operations of all threads in a stretch; each thread does its share.
    stretch: u64,
    own_stretch: u64,
    /// Own operations at which the hot keys move.
    move_at: u64,
    done: u64,
    ends: u64,
    moments: Vec<Moment>,
}

/// The action due after a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Due {
    /// An interval ended: its mean is requested.
    pub(crate) moment: bool,
    /// The hot keys move now.
    pub(crate) move_hot_keys: bool,
}

impl Timeline {
    /// For one of `threads` threads, which together do `shift_at` operations before the move.
    pub(crate) fn new(shift_at: u64, threads: usize) -> Self {
        let threads = threads.max(1) as u64;
        let own_stretch = (shift_at / STRETCHES_BEFORE / threads).max(MIN_STRETCH);
        Self {
            stretch: own_stretch * threads,
            own_stretch,
            move_at: shift_at.div_ceil(threads),
            done: 0,
            ends: own_stretch,
            moments: Vec::with_capacity(MAX_STRETCHES),
        }
    }

    /// Counts operations done.
    #[inline]
    pub(crate) fn advance(&mut self, operations: u64) -> Due {
        let before = self.done;
        self.done += operations;
        Due {
            moment: self.done >= self.ends && self.moments.len() < MAX_STRETCHES,
            move_hot_keys: before < self.move_at && self.done >= self.move_at,
        }
    }

    /// Records the mean latency of the interval that ended, and the store's memory, if this thread is the one that
    /// reports it.
    pub(crate) fn push(&mut self, mean_ns: f64, bytes_held: u64) {
        self.moments.push(Moment {
            operations: self.stretch * (self.moments.len() as u64 + 1),
            mean_ns,
            bytes_held,
        });
        self.ends += self.own_stretch;
    }

    pub(crate) fn finish(self) -> Vec<Moment> {
        self.moments
    }
}

/// Merges the threads' moments into one line, as far as all have reached them; the first thread's report memory.
pub(crate) fn merge(threads: &[Vec<Moment>]) -> Vec<Moment> {
    let Some((first, others)) = threads.split_first() else {
        return Vec::new();
    };
    let all_have = threads.iter().map(Vec::len).min().unwrap_or(0);
    let mean = |at: usize, own: f64| {
        let sum: f64 = others.iter().map(|thread| thread[at].mean_ns).sum();
        (own + sum) / threads.len() as f64
    };
    let merged = first[..all_have].iter().enumerate();
    merged
        .map(|(at, moment)| Moment {
            mean_ns: mean(at, moment.mean_ns),
            ..*moment
        })
        .collect()
}

/// A run's latency around the move, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Move {
    pub(crate) before_ns: f64,
    /// The worst stretch after it.
    pub(crate) worst_ns: f64,
    /// The mean of the run's last stretches, as many as were taken for `before_ns`.
    pub(crate) end_ns: f64,
    /// Operations from the move to the first stretch that took at most a tenth longer than before; `None` where the run
    /// ended first.
    pub(crate) back_after: Option<u64>,
}

/// The effect of a move at `shift_at` operations; `None` if the run ended before it.
pub(crate) fn around_move(timeline: &[Moment], shift_at: u64) -> Option<Move> {
    let at = timeline.partition_point(|moment| moment.operations <= shift_at);
    let (before, after) = timeline.split_at(at);
    let mean = |moments: &[Moment]| {
        let sum: f64 = moments.iter().map(|moment| moment.mean_ns).sum();
        sum / moments.len() as f64
    };
    if before.is_empty() || after.is_empty() {
        return None;
    }
    let window = (before.len() / 4).max(1);
    let before_ns = mean(&before[before.len() - window..]);
    // The median of three keeps one interrupted stretch from counting as the tree's.
    let calm = |at: usize| {
        let mut near = [at.saturating_sub(1), at, (at + 1).min(after.len() - 1)].map(|at| after[at].mean_ns);
        near.sort_by(f64::total_cmp);
        near[1]
    };
    let calmed: Vec<f64> = (0..after.len()).map(calm).collect();
    let back = calmed.iter().position(|mean_ns| *mean_ns <= before_ns * BACK);
    Some(Move {
        before_ns,
        worst_ns: calmed.iter().copied().fold(0.0, f64::max),
        end_ns: mean(&after[after.len() - window.min(after.len())..]),
        back_after: back.map(|at| after[at].operations - shift_at),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_move_once_and_stretches_end_at_their_operations() {
        let mut timeline = Timeline::new(80_000, 2);
        let mut moves = Vec::new();
        for batch in 0..10_000 {
            let due = timeline.advance(8);
            if due.move_hot_keys {
                moves.push(batch);
            }
            if due.moment {
                timeline.push(f64::from(batch), 7);
            }
        }
        // Half of the operations are the other thread's.
        assert_eq!(moves, [4_999], "after 5,000 batches of 8");
        let moments = timeline.finish();
        assert_eq!(moments.len(), 80, "stretches of 1,000 in 80,000");
        assert_eq!((moments[0].operations, moments[1].operations), (2_000, 4_000));
        let of = |operations, mean_ns, bytes_held| Moment {
            operations,
            mean_ns,
            bytes_held,
        };
        assert_eq!(moments[0], of(2_000, 124.0, 7));
        assert_eq!(merge(&[moments, vec![of(2_000, 10.0, 0)]]), [of(2_000, 67.0, 7)]);
        assert!(merge(&[]).is_empty());
    }

    fn of_means(means: &[f64]) -> Vec<Moment> {
        let moment = |(at, &mean_ns): (usize, &f64)| Moment {
            operations: 100 * (at as u64 + 1),
            mean_ns,
            bytes_held: 0,
        };
        means.iter().enumerate().map(moment).collect()
    }

    #[test]
    fn reports_a_move_from_before_to_recovery() {
        let slow_start = [9.0, 5.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0];
        let after = [6.0, 6.0, 50.0, 4.0, 3.0, 2.1, 2.1, 2.0];
        let moved = around_move(&of_means(&[slow_start, after].concat()), 800).unwrap();
        assert_eq!(
            (moved.before_ns, moved.worst_ns),
            (2.0, 6.0),
            "one stretch alone is not the tree's"
        );
        assert_eq!(moved.back_after, Some(600));
        assert!((moved.end_ns - 2.05).abs() < 1e-9);
    }

    #[test]
    fn reports_a_move_without_recovery_and_no_move() {
        let moved = around_move(&of_means(&[1.0, 1.0, 3.0, 3.0]), 200).unwrap();
        assert_eq!((moved.back_after, moved.end_ns), (None, 3.0));
        assert_eq!(around_move(&of_means(&[1.0, 1.0]), 200), None);
        assert_eq!(around_move(&[], 200), None);
    }
}
