//! Limit of the processor time for decisions: a small fraction of the process's use.
//!
//! A credit increases with the processor time of the process and decreases with that of the steps (token bucket). When
//! it is used up, sampling is paused until the credit is enough for a useful run of accesses.

use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// The fraction of the process's time that decisions may take.
const PART: f64 = 0.02;
/// Maximum credit, and the initial one, in nanoseconds.
const MAX_CREDIT_NS: f64 = 20e6;

/// Minimum interval between two measurements of the processors' load.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The processor time of the process and of this thread.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spent {
    pub(crate) process: Duration,
    pub(crate) thread: Duration,
}

impl Spent {
    /// Returns the current values.
    pub(crate) fn now() -> Self {
        Self {
            process: clock::time(clock::PROCESS),
            thread: clock::time(clock::THREAD),
        }
    }
}

#[cfg(unix)]
mod clock {
    pub(super) use leafpress_base::io::system::clock_time as time;

    pub(super) const PROCESS: libc::clockid_t = libc::CLOCK_PROCESS_CPUTIME_ID;
    pub(super) const THREAD: libc::clockid_t = libc::CLOCK_THREAD_CPUTIME_ID;
}

/// Wall-clock time, if processor time is unknown: then a process of many threads gets too little credit, not too much.
#[cfg(not(unix))]
mod clock {
    use std::sync::OnceLock;
    use std::time::{Duration, Instant};

    pub(super) const PROCESS: () = ();
    pub(super) const THREAD: () = ();

    pub(super) fn time((): ()) -> Duration {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }
}

/// The load of the processors by the process, without the measuring thread.
#[derive(Debug)]
pub(crate) struct Load {
    processors: f64,
    at: Instant,
    spent: Spent,
    thread: ThreadId,
    busy: f64,
}

impl Load {
    /// Starts a measurement.
    pub(crate) fn new() -> Self {
        Self {
            processors: std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64),
            at: Instant::now(),
            spent: Spent::now(),
            thread: std::thread::current().id(),
            busy: 1.0,
        }
    }

    /// Returns the fraction, 0 to 1, of a processor's time that this thread takes from others, if there is a new
    /// measurement.
    pub(crate) fn look(&mut self, now: Spent) -> Option<f64> {
        let wall = self.at.elapsed();
        if wall < LOOK_EVERY {
            return None;
        }
        let thread = std::thread::current().id();
        let same = thread == self.thread;
        let process = now.process.saturating_sub(self.spent.process);
        let own = now.thread.saturating_sub(self.spent.thread);
        (self.at, self.spent, self.thread) = (Instant::now(), now, thread);
        if !same {
            // The earlier time of this thread is unknown.
            return None;
        }
        let others = process.saturating_sub(own).as_secs_f64() / wall.as_secs_f64();
        let busy = (others - (self.processors - 1.0)).clamp(0.0, 1.0);
        self.busy += (busy - self.busy) / 4.0;
        Some(self.busy)
    }
}

/// The credit.
#[derive(Debug)]
pub(crate) struct CpuBudget {
    credit_ns: f64,
    /// The process's time up to which credit was granted.
    granted: Duration,
    /// Moving average of the time per access, in nanoseconds.
    access_ns: f64,
    paused: bool,
}

/// The action after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// No change.
    Same,
    /// Pause sampling.
    Pause,
    /// Resume sampling.
    Resume,
}

impl CpuBudget {
    /// Starts with full credit at `now`.
    pub(crate) fn new(now: Spent) -> Self {
        Self {
            credit_ns: MAX_CREDIT_NS,
            granted: now.process,
            access_ns: 500.0,
            paused: false,
        }
    }

    /// Accounts for a step that began at `before`, ended at `after` and processed some accesses. `run` is the minimum
    /// useful number of consecutive accesses.
    pub(crate) fn account(&mut self, before: Spent, after: Spent, accesses: usize, run: usize) -> Pace {
        let nanoseconds = |time: Duration| time.as_nanos() as f64;
        let cost_ns = nanoseconds(after.thread.saturating_sub(before.thread));
        if accesses >= 32 {
            self.access_ns += (cost_ns / accesses as f64 - self.access_ns) / 8.0;
        }
        let run_ns = self.access_ns * run as f64;
        let granted_ns = nanoseconds(after.process.saturating_sub(self.granted)) * PART;
        self.granted = after.process;
        self.credit_ns = (self.credit_ns + granted_ns - cost_ns).min(MAX_CREDIT_NS.max(2.0 * run_ns));
        match self.paused {
            false if self.credit_ns < 0.0 => {
                self.paused = true;
                Pace::Pause
            }
            true if self.credit_ns >= run_ns => {
                self.paused = false;
                Pace::Resume
            }
            _ => Pace::Same,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_go() {
        let before = Spent::now();
        let mut sum = 0u64;
        while Spent::now().thread == before.thread {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        let after = Spent::now();
        assert!(after.thread > before.thread && after.process > before.process);
    }

    #[test]
    fn takes_its_part_and_no_more() {
        // A process that uses 100 ms between steps, and whose accesses each take 1 us to sample.
        let mut cpu_budget = CpuBudget::new(Spent::default());
        let (mut at, mut spent, mut paused, mut resumed) = (Spent::default(), Duration::ZERO, false, 0);
        for _ in 0..10_000 {
            at.process += Duration::from_millis(100);
            let accesses = if paused { 0 } else { 10_000 };
            let cost = Duration::from_micros(accesses as u64);
            let after = Spent {
                process: at.process + cost,
                thread: at.thread + cost,
            };
            match cpu_budget.account(at, after, accesses, 4_000) {
                Pace::Pause => paused = true,
                Pace::Resume => {
                    paused = false;
                    resumed += 1;
                }
                Pace::Same => {}
            }
            spent += cost;
            at = after;
        }
        let part = spent.as_secs_f64() / at.process.as_secs_f64();
        assert!((0.015..0.021).contains(&part), "{part}");
        assert!(resumed > 100, "{resumed}");
    }

    #[test]
    fn little_work_is_never_paused() {
        let mut cpu_budget = CpuBudget::new(Spent::default());
        let mut at = Spent::default();
        for _ in 0..10_000 {
            at.process += Duration::from_millis(100);
            let after = Spent {
                process: at.process,
                thread: at.thread + Duration::from_millis(1),
            };
            assert_eq!(cpu_budget.account(at, after, 1_000, 4_000), Pace::Same);
            at = after;
        }
    }
}
