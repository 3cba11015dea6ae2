//! Operations that come at a rate, whether the target keeps up or not (an open loop; Schroeder et al., "Open versus
//! closed: a cautionary tale", NSDI 2006).
//!
//! When an operation is due does not depend on the ones before it, so the time that it waits for them is in its
//! latency.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quanta::Clock;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::core::keys::unit;

/// A thread sleeps until this long before an operation is due, and then yields: sleepers wake late.
const AWAKE_NS: f64 = 60_000.0;
/// Maximum sleep between checks for the end of the stage.
const NAP_NS: f64 = 5_000_000.0;

/// When one thread's operations arrive, in nanoseconds.
pub(crate) enum Arrivals {
    /// Evenly spaced, with the threads interleaved.
    #[cfg(feature = "bench")]
    Even { interval: f64, offset: f64, number: u64 },
    /// Independent users, a Poisson process. Each thread has its own; together they are one of the whole rate.
    #[cfg(feature = "cache")]
    Poisson {
        mean_gap: f64,
        rng: Box<Xoshiro256PlusPlus>,
    },
}

impl Arrivals {
    /// Of thread `number` of `threads`, which share `rate` operations per second.
    #[cfg(feature = "bench")]
    pub(crate) fn even(rate: f64, threads: usize, number: usize) -> Self {
        Self::Even {
            interval: threads as f64 / rate * 1e9,
            offset: number as f64 / rate * 1e9,
            number: 0,
        }
    }

    /// Of one of `threads`, which share `rate` operations per second.
    #[cfg(feature = "cache")]
    pub(crate) fn poisson(rate: f64, threads: usize, seed: u64) -> Self {
        Self::Poisson {
            mean_gap: 1e9 * threads as f64 / rate,
            rng: Box::new(Xoshiro256PlusPlus::seed_from_u64(seed)),
        }
    }

    /// The arrival after the one at `last`.
    fn after(&mut self, last: f64) -> f64 {
        match self {
            #[cfg(feature = "bench")]
            Self::Even {
                interval,
                offset,
                number,
            } => {
                let due = *offset + *number as f64 * *interval;
                *number += 1;
                due
            }
            // Gaps of a Poisson process are exponential.
            #[cfg(feature = "cache")]
            Self::Poisson { mean_gap, rng } => last - *mean_gap * (1.0 - unit(&mut **rng)).ln(),
        }
    }
}

/// When a thread's operations are due.
pub(crate) struct Pace {
    clock: Clock,
    arrivals: Arrivals,
    /// The clock's reading at time 0 of the arrivals.
    began: u64,
    /// When the next operation is due.
    due_ns: f64,
}

impl Pace {
    /// A pace that begins now, with its first operation.
    pub(crate) fn new(clock: Clock, arrivals: Arrivals) -> Self {
        // The system may wake a sleeper 50 us late, to wake several at once; not this one.
        #[cfg(target_os = "linux")]
        let _ = nix::sys::prctl::set_timerslack(1);
        let mut pace = Self {
            began: clock.raw(),
            clock,
            arrivals,
            due_ns: 0.0,
        };
        pace.advance();
        pace
    }

    /// The operation after the one that was due.
    pub(crate) fn advance(&mut self) {
        self.due_ns = self.arrivals.after(self.due_ns);
    }

    /// Nanoseconds from the beginning until a reading of the clock.
    fn until(&self, raw: u64) -> f64 {
        self.clock.delta_as_nanos(self.began, raw) as f64
    }

    /// The clock's reading when it began.
    #[cfg(feature = "bench")]
    pub(crate) fn began(&self) -> u64 {
        self.began
    }

    /// When the operation is due, in whole nanoseconds from the beginning.
    #[cfg(feature = "bench")]
    pub(crate) fn due_ns(&self) -> u64 {
        self.due_ns as u64
    }

    /// How long ago the operation was due, at a reading of the clock, in nanoseconds.
    #[cfg(feature = "cache")]
    pub(crate) fn since_due(&self, raw: u64) -> u64 {
        (self.until(raw) - self.due_ns).max(0.0) as u64
    }

    /// Waits until the next operation is due; false when `stop` came first.
    pub(crate) fn wait(&self, stop: &AtomicBool) -> bool {
        loop {
            let left = self.due_ns - self.until(self.clock.raw());
            if left <= 0.0 {
                return true;
            }
            if stop.load(Ordering::Relaxed) {
                return false;
            }
            if left > AWAKE_NS {
                std::thread::sleep(Duration::from_nanos((left - AWAKE_NS).min(NAP_NS) as u64));
            } else {
                std::thread::yield_now();
            }
        }
    }

    /// Operations that are due now, about: those after the next one are not drawn any more.
    #[cfg(feature = "cache")]
    pub(crate) fn backlog(&self) -> u64 {
        let late = self.until(self.clock.raw()) - self.due_ns;
        let gap = match self.arrivals {
            #[cfg(feature = "bench")]
            Arrivals::Even { interval, .. } => interval,
            Arrivals::Poisson { mean_gap, .. } => mean_gap,
        };
        if late < 0.0 { 0 } else { 1 + (late / gap) as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "cache")]
    #[test]
    fn gaps_are_exponential_and_of_the_rate() {
        let mut arrivals = Arrivals::poisson(1000.0, 4, 1);
        let (mut sum, mut long, mut last) = (0.0, 0, 0.0);
        for _ in 0..100_000 {
            let due = arrivals.after(last);
            let gap = due - last;
            last = due;
            sum += gap;
            long += u32::from(gap > 4e6);
        }
        // Four threads share a thousand requests per second: 4 ms between two of one. A share of 1/e is longer.
        assert!((sum / 1e5 / 4e6 - 1.0).abs() < 0.02, "{sum}");
        assert!((f64::from(long) / 1e5 - 0.3679).abs() < 0.01, "{long}");
    }

    #[cfg(feature = "bench")]
    #[test]
    fn even_arrivals_are_spaced_over_all_threads() {
        let mut due = Vec::new();
        for number in 0..4 {
            let mut arrivals = Arrivals::even(1e6, 4, number);
            due.extend((0..5).map(|_| arrivals.after(0.0) as u64));
        }
        due.sort_unstable();
        assert_eq!(due, (0..20).map(|at| at * 1000).collect::<Vec<_>>());
    }

    #[cfg(feature = "cache")]
    #[test]
    fn an_operation_is_not_early_and_one_that_is_late_is_reported() {
        let (clock, mock) = Clock::mock();
        let mut pace = Pace::new(clock.clone(), Arrivals::poisson(1e6, 1, 1));
        pace.due_ns = 5000.0;
        let stop = AtomicBool::new(true);
        assert!(!pace.wait(&stop), "it is not due");
        assert_eq!((pace.backlog(), pace.since_due(clock.raw())), (0, 0));
        mock.increment(5000_u64);
        assert!(pace.wait(&stop), "it is due");
        assert_eq!((pace.backlog(), pace.since_due(clock.raw())), (1, 0));
        mock.increment(9500_u64);
        // A microsecond between two: the next one and nine more.
        assert_eq!((pace.backlog(), pace.since_due(clock.raw())), (10, 9500));
    }
}
