//! The time that records expire by.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// Tells a cache the time. A cache reads it when it takes or finds a record that expires.
pub trait Clock: Send + Sync + 'static {
    /// Time since 1970-01-01 00:00 UTC.
    fn now(&self) -> Duration;
}

/// The system's time when it was made, and from then on what has passed: setting the system's clock neither kills records nor revives them.
#[derive(Debug)]
pub struct SystemClock {
    began: Instant,
    began_at: Duration,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            began_at: SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default(),
        }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.began_at + self.began.elapsed()
    }
}

/// A clock that goes when it is told to, for tests.
#[derive(Debug, Default)]
pub struct ManualClock {
    ns: AtomicU64,
}

impl ManualClock {
    /// A clock that shows `now`, time since 1970-01-01 00:00 UTC.
    pub fn new(now: Duration) -> Self {
        let clock = Self::default();
        clock.set(now);
        clock
    }

    /// Lets time pass.
    pub fn advance(&self, by: Duration) {
        self.set(self.now() + by);
    }

    /// Sets the time, forwards or backwards.
    pub fn set(&self, now: Duration) {
        let ns = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        self.ns.store(ns, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.ns.load(Ordering::Relaxed))
    }
}
