//! Latency over operations, around a move of the hot keys.

use crate::eval::result::Moment;

/// Stretches that a run up to the move is cut into.
const STRETCHES_BEFORE: u64 = 40;
/// Of one thread: no fewer operations than in a batch, several of which make a mean.
const MIN_STRETCH: u64 = 128;
/// Most that are kept of a run: later ones are a line that goes on as it was.
pub(super) const MAX_STRETCHES: usize = 1 << 12;

/// One thread's part: its operations are cut into stretches of one length, and each gives a moment.
#[derive(Debug)]
pub(super) struct Timeline {
    /// Operations of all threads in a stretch; each thread does its share.
    stretch: u64,
    own_stretch: u64,
    /// Own operations at which the hot keys move.
    move_at: u64,
    done: u64,
    ends: u64,
    moments: Vec<Moment>,
}

/// What is due after a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Due {
    /// A stretch ended: its mean is asked for.
    pub(super) moment: bool,
    /// The hot keys move now.
    pub(super) move_hot_keys: bool,
}

impl Timeline {
    /// For one of `threads` threads, which together do `shift_at` operations before the move.
    pub(super) fn new(shift_at: u64, threads: usize) -> Self {
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
    pub(super) fn advance(&mut self, operations: u64) -> Due {
        let before = self.done;
        self.done += operations;
        Due {
            moment: self.done >= self.ends && self.moments.len() < MAX_STRETCHES,
            move_hot_keys: before < self.move_at && self.done >= self.move_at,
        }
    }

    /// The stretch that ended had this mean latency, and the store now holds so much, where this thread is the one to ask.
    pub(super) fn push(&mut self, mean_ns: f64, bytes_held: u64) {
        self.moments.push(Moment {
            operations: self.stretch * (self.moments.len() as u64 + 1),
            mean_ns,
            bytes_held,
        });
        self.ends += self.own_stretch;
    }

    pub(super) fn finish(self) -> Vec<Moment> {
        self.moments
    }
}

/// The threads' moments as one line, as far as all have come; the first thread's say what was held.
pub(super) fn merge(threads: &[Vec<Moment>]) -> Vec<Moment> {
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
}
