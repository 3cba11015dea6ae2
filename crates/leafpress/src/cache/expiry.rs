//! Expiry times, the times that the builder sets, and their bounds.

use std::time::Duration;

use super::error::CacheError;

/// Default lifetimes of records, and the limit of waiting.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Times {
    /// Time to live from the insertion, unless the insertion specifies one.
    pub to_live: Option<Duration>,
    /// Time to idle from the last read or write.
    pub to_idle: Option<Duration>,
    /// Period after expiry in which a record may be returned to callers while another one loads it.
    pub stale: Option<Duration>,
    /// Period after expiry in which a record may be returned if its load fails.
    pub stale_if_error: Option<Duration>,
    /// Period before the end of its time to live in which a loading read loads a record anew.
    pub refresh: Option<Duration>,
    /// How long a loader's answer that there is no value is remembered.
    pub absent: Option<Duration>,
    /// Times to live are shortened by a random fraction up to this one.
    pub jitter: f64,
    /// How long a thread waits for another caller's load.
    pub load_wait: Option<Duration>,
}

/// An expiry time: milliseconds since 1970-01-01 00:00 UTC in 48 bits, which reach past the year 10000. Any time that a
/// clock can show is a valid expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Expiry(pub u64);

impl Expiry {
    /// Encoded length in a record, in bytes.
    pub(super) const BYTES: usize = 6;
    /// A time that has passed on any clock.
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

    /// Returns the expiry of a record that lives for `ttl` from `now` on. It is never late and at most 1 ms early.
    pub(super) fn after(now: Duration, ttl: Duration) -> Self {
        let ms = u64::try_from(now.saturating_add(ttl).as_millis()).unwrap_or(u64::MAX);
        Self(ms.min(Self::NEVER.0))
    }

    /// Returns the time that is left at `now`.
    pub(super) fn left(self, now: Duration) -> Duration {
        Duration::from_millis(self.0).saturating_sub(now)
    }

    /// Returns true if the time has passed at `now`.
    pub(super) fn is_expired(self, now: Duration) -> bool {
        Self::after(now, Duration::ZERO) >= self
    }
}

/// The minimum of a record's time to live.
pub(super) const MIN_TTL: (Duration, &str) = (Duration::from_millis(1), "1 ms");
/// The minimum of the time to idle: reads rewrite a record in each eighth of it.
pub(super) const MIN_IDLE: (Duration, &str) = (Duration::from_secs(1), "1 s");
/// The maximum of any time.
const MAX_TIME: Duration = Duration::from_secs(10 * 366 * 24 * 3600);

/// Returns the time to live, or [`None`] for [`Duration::MAX`], which stands for none.
pub(super) fn checked_ttl(ttl: Option<Duration>) -> Result<Option<Duration>, CacheError> {
    let ttl = ttl.filter(|ttl| *ttl != Duration::MAX);
    ttl.map_or(Ok(()), |ttl| check_time("ttl", ttl, MIN_TTL))?;
    Ok(ttl)
}

pub(super) fn check_time(
    option: &'static str,
    time: Duration,
    (least, name): (Duration, &str),
) -> Result<(), CacheError> {
    if (least..=MAX_TIME).contains(&time) {
        return Ok(());
    }
    Err(CacheError::Option {
        option,
        reason: format!("{time:?} is out of bounds; the range is from {name} to 10 years"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::clock::{Clock, ManualClock, SystemClock};

    #[test]
    fn a_record_never_lives_longer_than_it_may() {
        const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
        let never = Duration::from_millis(Expiry::NEVER.0) - Duration::from_secs(100);
        // From the clock's epoch to the latest time that can be encoded.
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
            for ttl_ms in [1, 2, 1000, 1001, 2500, 60_000] {
                let expiry = Expiry::after(now, Duration::from_millis(ttl_ms));
                assert!(expiry.is_expired(now + Duration::from_millis(ttl_ms)), "{ms} {ttl_ms}");
                assert!(
                    !expiry.is_expired(now + Duration::from_millis(ttl_ms - 1)),
                    "{ms} {ttl_ms}"
                );
                // Within a millisecond.
                let now = now + Duration::from_micros(700);
                let expiry = Expiry::after(now, Duration::from_millis(ttl_ms));
                assert_eq!(expiry.left(now), Duration::from_micros(1000 * ttl_ms - 700));
                assert!(expiry.is_expired(now + Duration::from_millis(ttl_ms)), "{ms} {ttl_ms}");
            }
        }
        assert!(!Expiry::after(YEAR, Duration::MAX).is_expired(YEAR));
        assert!(Expiry::PAST.is_expired(Duration::ZERO));
        let expiry = Expiry::after(1000 * YEAR, YEAR);
        assert_eq!(Expiry::from_bytes(expiry.to_bytes()), expiry);
    }

    #[test]
    fn a_manual_clock_advances_on_request_only() {
        let clock = ManualClock::new(Duration::from_secs(5));
        clock.advance(Duration::from_millis(1500));
        assert_eq!(clock.now(), Duration::from_millis(6500));
        let system = SystemClock::default();
        assert!(system.now() > Duration::ZERO && system.now() <= system.now());
    }
}
