//! The recent mean of measured times.

/// Fewer timed operations than this between two updates are ignored.
const FEW: u64 = 16;
/// The mean is discarded after this number of updates without operations.
const FORGOTTEN_AFTER: u32 = 16;
/// Weight of a new mean in the exponential moving average.
const NEW_FRACTION: f64 = 0.3;

/// An exponential moving average of times.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MeanTime {
    ns: Option<f64>,
    seen: [u64; 2],
    looks_without: u32,
}

impl MeanTime {
    /// Returns the mean in nanoseconds; [`None`] if no recent operation was timed.
    pub(crate) fn ns(self) -> Option<f64> {
        self.ns
    }

    /// Updates the mean from the cumulative number of timed operations and their cumulative time.
    pub(crate) fn look(&mut self, now: [u64; 2]) {
        let [count, ns] = [0, 1].map(|at| now[at].wrapping_sub(self.seen[at]));
        if count < FEW {
            self.looks_without += 1;
            if self.looks_without >= FORGOTTEN_AFTER {
                self.ns = None;
            }
            return;
        }
        self.seen = now;
        self.looks_without = 0;
        let mean = ns as f64 / count as f64;
        self.ns = Some(self.ns.map_or(mean, |old| old + (mean - old) * NEW_FRACTION));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(reads: u64, ns: u64) -> MeanTime {
        let mut mean = MeanTime::default();
        mean.look([reads, ns]);
        mean
    }

    #[test]
    fn it_follows_the_times_and_ignores_few_operations() {
        let mut one = mean(100, 50_000);
        assert_eq!(one.ns(), Some(500.0));
        one.look([110, 60_000_000]);
        assert_eq!(one.ns(), Some(500.0));
        one.look([200, 50_000 + 100 * 1_500]);
        assert_eq!(one.ns(), Some(800.0));
        (0..FORGOTTEN_AFTER).for_each(|_| one.look([200, 200_000]));
        assert_eq!(one.ns(), None);
    }
}
