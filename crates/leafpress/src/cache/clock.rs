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

/// When a record expires: quarters of a second since 2025-01-01 00:00 UTC, which reach until 2059.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Expiry(pub u32);

/// 2025-01-01 00:00 UTC.
const EPOCH: Duration = Duration::from_secs(1_735_689_600);
const TICKS_PER_SECOND: u128 = 4;

impl Expiry {
    /// When a record expires that lives for `ttl` from `now` on. It is never late; it may be a quarter of a second early.
    pub(super) fn after(now: Duration, ttl: Duration) -> Self {
        let ns = now.saturating_add(ttl).saturating_sub(EPOCH).as_nanos();
        Self(u32::try_from(ns * TICKS_PER_SECOND / 1_000_000_000).unwrap_or(u32::MAX))
    }

    /// Whether it is over at `now`.
    pub(super) fn is_over(self, now: Duration) -> bool {
        Self::after(now, Duration::ZERO) >= self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_never_lives_longer_than_it_may() {
        let start = EPOCH + Duration::from_secs(1 << 25);
        for ms in (0..3000).step_by(7) {
            let now = start + Duration::from_millis(ms);
            for ttl_ms in [1000, 1001, 2500, 60_000] {
                let expiry = Expiry::after(now, Duration::from_millis(ttl_ms));
                assert!(expiry.is_over(now + Duration::from_millis(ttl_ms)), "{ms} {ttl_ms}");
                assert!(
                    !expiry.is_over(now + Duration::from_millis(ttl_ms - 251)),
                    "{ms} {ttl_ms}"
                );
            }
        }
        assert!(!Expiry::after(start, Duration::MAX).is_over(start));
    }

    #[test]
    fn a_clock_that_is_set_by_hand_goes_when_told() {
        let clock = ManualClock::new(Duration::from_secs(5));
        clock.advance(Duration::from_millis(1500));
        assert_eq!(clock.now(), Duration::from_millis(6500));
        let system = SystemClock::default();
        assert!(system.now() >= EPOCH && system.now() <= system.now());
    }
}
