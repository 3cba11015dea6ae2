//! Requests that come at a rate, whether the cache keeps up or not (an open loop; Schroeder et al., "Open versus
//! closed: a cautionary tale", NSDI 2006).
//!
//! Arrivals are a Poisson process: independent users. Each thread has its own, at an equal share of the
//! rate; together they are Poisson's again. When a request is due does not depend on the ones before it, so what it
//! waits for them is in its time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quanta::Clock;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::core::keys::{mix, unit};

/// A thread sleeps until this long before a request is due, and then yields: sleepers wake late.
const AWAKE_NS: f64 = 60_000.0;
/// Maximum sleep between checks for cancellation.
const NAP_NS: f64 = 20_000_000.0;

/// When a thread's requests are due.
pub(super) struct Pace {
    clock: Clock,
    rng: Xoshiro256PlusPlus,
    /// The clock when the first request could be due.
    began: u64,
    /// Mean time between two requests.
    gap_ns: f64,
    /// When the next request is due, from `began` on.
    due_ns: f64,
}

impl Pace {
    /// Of the thread of this number of `threads`, which share `rate` requests per second.
    pub(super) fn new(clock: Clock, rate: f64, threads: usize, number: usize, seed: u64) -> Self {
        // The system may wake a sleeper 50 us late, to wake several at once; not this one.
        #[cfg(target_os = "linux")]
        let _ = nix::sys::prctl::set_timerslack(1);
        let mut pace = Self {
            began: clock.raw(),
            clock,
            rng: Xoshiro256PlusPlus::seed_from_u64(mix(seed ^ mix(0x7061_6365 + number as u64))),
            gap_ns: 1e9 * threads as f64 / rate,
            due_ns: 0.0,
        };
        pace.advance();
        pace
    }

    /// The request after the one that was due.
    pub(super) fn advance(&mut self) {
        // Gaps of a Poisson process are exponential.
        self.due_ns -= self.gap_ns * (1.0 - unit(&mut self.rng)).ln();
    }

    /// Nanoseconds from the beginning until a reading of the clock.
    fn until(&self, raw: u64) -> f64 {
        self.clock.delta_as_nanos(self.began, raw) as f64
    }

    /// How long ago the request was due, at a reading of the clock, in nanoseconds.
    pub(super) fn since_due(&self, raw: u64) -> u64 {
        (self.until(raw) - self.due_ns).max(0.0) as u64
    }

    /// Waits until the next request is due; false when `stop` came first.
    pub(super) fn wait(&self, stop: &AtomicBool) -> bool {
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

    /// Requests that are due now, about: those after the next one are not drawn any more.
    pub(super) fn backlog(&self) -> u64 {
        let late = self.until(self.clock.raw()) - self.due_ns;
        if late < 0.0 { 0 } else { 1 + (late / self.gap_ns) as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_exponential_and_of_the_rate() {
        let mut pace = Pace::new(Clock::new(), 1000.0, 4, 2, 1);
        let (mut sum, mut long, mut last) = (0.0, 0, pace.due_ns);
        for _ in 0..100_000 {
            pace.advance();
            let gap = pace.due_ns - last;
            last = pace.due_ns;
            sum += gap;
            long += u32::from(gap > 4e6);
        }
        // Four threads share a thousand requests per second: 4 ms between two of one. A share of 1/e is longer.
        assert!((sum / 1e5 / 4e6 - 1.0).abs() < 0.02, "{sum}");
        assert!((f64::from(long) / 1e5 - 0.3679).abs() < 0.01, "{long}");
    }

    #[test]
    fn a_request_is_not_early_and_one_that_is_late_is_told() {
        let (clock, mock) = Clock::mock();
        let mut pace = Pace::new(clock.clone(), 1e6, 1, 0, 1);
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
