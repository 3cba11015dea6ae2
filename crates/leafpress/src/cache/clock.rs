//! Clocks that expiry uses.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// A source of the current time. A cache reads it when it inserts or finds a record that expires.
pub trait Clock: Send + Sync + 'static {
    /// Returns the time since 1970-01-01 00:00 UTC.
    fn now(&self) -> Duration;
}

/// A clock that starts at the system's time and is monotonic from then on: setting the system's clock neither expires
/// records nor revives them.
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

/// A clock that is set by its owner, for tests.
#[derive(Debug, Default)]
pub struct ManualClock {
    ns: AtomicU64,
}

impl ManualClock {
    /// Returns a clock that shows `now`, the time since 1970-01-01 00:00 UTC.
    pub fn new(now: Duration) -> Self {
        let clock = Self::default();
        clock.set(now);
        clock
    }

    /// Advances the time.
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
