//! The clocks of a thread: wall time and CPU time, by file.

use std::ops::AddAssign;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

/// Time that a stage took.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spent {
    pub wall: Duration,
    pub cpu: Duration,
}

impl AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        self.wall += other.wall;
        self.cpu += other.cpu;
    }
}

/// The clocks of one thread in one stage.
pub(super) struct Clock {
    running: Option<(usize, Instant, Duration)>,
    /// Files, in the order they were worked on, and the time that each took.
    pub spans: Vec<(usize, Spent)>,
}

/// CPU time of the calling thread.
fn thread_cpu() -> Duration {
    // Fails only for an unknown clock.
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

impl Clock {
    pub(super) fn new() -> Self {
        Self {
            running: None,
            spans: Vec::new(),
        }
    }

    /// Assigns the following work to this file.
    #[inline]
    pub(super) fn on(&mut self, file: usize) {
        if !matches!(self.running, Some((known, ..)) if known == file) {
            self.stop();
            // The CPU clock is read outside of the wall clock's interval: it requires a system call.
            let cpu = thread_cpu();
            self.running = Some((file, Instant::now(), cpu));
        }
    }

    pub(super) fn stop(&mut self) {
        if let Some((file, start, cpu)) = self.running.take() {
            let wall = start.elapsed();
            let cpu = thread_cpu().saturating_sub(cpu);
            self.spans.push((file, Spent { wall, cpu }));
        }
    }

    pub(super) fn sum(&self) -> Spent {
        let mut sum = Spent::default();
        self.spans.iter().for_each(|(_, spent)| sum += *spent);
        sum
    }
}
