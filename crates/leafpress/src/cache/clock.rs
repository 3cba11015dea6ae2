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

/// When a record expires: quarters of a second since 1970-01-01 00:00 UTC in 40 bits, which reach past the year 10000. So any time that a
/// clock can show is one that a record can expire at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Expiry(pub u64);

const TICKS_PER_SECOND: u128 = 4;

impl Expiry {
    /// What it takes in a record.
    pub(super) const BYTES: usize = 5;
    /// A time that is over whatever the clock shows.
    pub(super) const PAST: Self = Self(0);
    /// The latest time.
    pub(super) const NEVER: Self = Self((1 << (8 * Self::BYTES)) - 1);

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes.copy_from_slice(&self.0.to_le_bytes()[..Self::BYTES]);
        bytes
    }

    pub(super) fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let mut wide = [0; size_of::<u64>()];
        wide[..Self::BYTES].copy_from_slice(&bytes);
        Self(u64::from_le_bytes(wide))
    }

    /// When a record expires that lives for `ttl` from `now` on. It is never late; it may be a quarter of a second early.
    pub(super) fn after(now: Duration, ttl: Duration) -> Self {
        let ns = now.saturating_add(ttl).as_nanos();
        let ticks = u64::try_from(ns * TICKS_PER_SECOND / 1_000_000_000).unwrap_or(u64::MAX);
        Self(ticks.min(Self::NEVER.0))
    }

    /// Whether it is over at `now`.
    pub(super) fn is_expired(self, now: Duration) -> bool {
        Self::after(now, Duration::ZERO) >= self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_never_lives_longer_than_it_may() {
        const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
        let never = Duration::from_secs(Expiry::NEVER.0 / 4) - Duration::from_secs(100);
        // From the clock's beginning to the end of what a record can say.
        let starts = [
            Duration::ZERO,
            YEAR,
            54 * YEAR,
            56 * YEAR,
            90 * YEAR,
            1000 * YEAR,
            never,
        ];
        for (start, ms) in starts
            .into_iter()
            .flat_map(|start| (0..3000).step_by(7).map(move |ms| (start, ms)))
        {
            let now = start + Duration::from_millis(ms);
            for ttl_ms in [1000, 1001, 2500, 60_000] {
                let expiry = Expiry::after(now, Duration::from_millis(ttl_ms));
                assert!(expiry.is_expired(now + Duration::from_millis(ttl_ms)), "{ms} {ttl_ms}");
                assert!(
                    !expiry.is_expired(now + Duration::from_millis(ttl_ms - 251)),
                    "{ms} {ttl_ms}"
                );
            }
        }
        assert!(!Expiry::after(YEAR, Duration::MAX).is_expired(YEAR));
        assert!(Expiry::PAST.is_expired(Duration::ZERO));
        let expiry = Expiry::after(1000 * YEAR, YEAR);
        assert_eq!(Expiry::from_bytes(expiry.to_bytes()), expiry);
    }

    #[test]
    fn a_clock_that_is_set_by_hand_goes_when_told() {
        let clock = ManualClock::new(Duration::from_secs(5));
        clock.advance(Duration::from_millis(1500));
        assert_eq!(clock.now(), Duration::from_millis(6500));
        let system = SystemClock::default();
        assert!(system.now() > Duration::ZERO && system.now() <= system.now());
    }
}
