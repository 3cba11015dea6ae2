//! Expiry of records: time to live, time to idle, and how long an expired record may still be served stale.
//!
//! A record with a time to idle contains its idle deadline. A read extends the deadline once an eighth of the time has
//! passed; the record is rewritten for that (`touches`), so it is not done at every read.

use std::time::Duration;

use super::counters::Count;
use super::error::CacheError;
use super::inner::CacheInner;
use super::record;
use leafpress_base::mem::room::copied;

/// A read extends the deadline once this fraction (1/8) of the time to idle has passed since the last extension.
const TOUCH_DIVISOR: u32 = 8;

/// Default lifetimes of records.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Times {
    /// Time to live from the insertion, unless the insertion specifies one.
    pub to_live: Option<Duration>,
    /// Time to idle from the last read or write.
    pub to_idle: Option<Duration>,
    /// Period after expiry in which a record may be returned to callers while another one loads it.
    pub stale: Option<Duration>,
}

impl CacheInner {
    pub(super) fn default_expiry(&self) -> Option<Expiry> {
        self.expiry(self.times.to_live)
    }

    pub(super) fn expiry(&self, ttl: Option<Duration>) -> Option<Expiry> {
        ttl.map(|ttl| Expiry::after(self.clock.now(), ttl))
    }

    /// The idle deadline of a record written now.
    pub(super) fn idle_until(&self) -> Option<Expiry> {
        self.expiry(self.times.to_idle)
    }

    /// Returns true if a read of a record at `now` has to extend its idle deadline.
    #[inline]
    pub(super) fn wants_touch(&self, stored: &[u8], now: Duration) -> bool {
        let Some(to_idle) = self.times.to_idle else {
            return false;
        };
        record::idle(stored).is_some_and(|idle| idle < Expiry::after(now, to_idle - to_idle / TOUCH_DIVISOR))
    }

    /// Returns the value of an expired key if it is within its stale period.
    pub(super) fn find_stale(&self, key: &[u8]) -> Result<Option<Vec<u8>>, CacheError> {
        if self.times.stale.is_none() {
            return Ok(None);
        }
        let now = self.clock.now();
        let found = self.tree.get_with(key, |stored| {
            let (value, expiry) = record::read(stored);
            (!record::is_tombstone(stored) && !self.is_past_use(expiry, now)).then(|| copied(value))
        });
        match found {
            Ok(found) => {
                let found = found.flatten().transpose()?;
                self.counters.add(Count::Stale, u64::from(found.is_some()));
                Ok(found)
            }
            Err(error) => self.damaged(key, error),
        }
    }

    /// Returns true if a record has expired and is past its stale period.
    pub(super) fn is_past_use(&self, expiry: Option<Expiry>, now: Duration) -> bool {
        record::is_expired(expiry, || now.saturating_sub(self.times.stale.unwrap_or_default()))
    }
}

/// An expiry time: quarters of a second since 1970-01-01 00:00 UTC in 40 bits, which reach past the year 10000. Any
/// time that a clock can show is a valid expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Expiry(pub u64);

const TICKS_PER_SECOND: u128 = 4;

impl Expiry {
    /// Encoded length in a record, in bytes.
    pub(super) const BYTES: usize = 5;
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

    /// Returns the expiry of a record that lives for `ttl` from `now` on. It is never late and at most 250 ms early.
    pub(super) fn after(now: Duration, ttl: Duration) -> Self {
        let ns = now.saturating_add(ttl).as_nanos();
        let ticks = u64::try_from(ns * TICKS_PER_SECOND / 1_000_000_000).unwrap_or(u64::MAX);
        Self(ticks.min(Self::NEVER.0))
    }

    /// Returns true if the time has passed at `now`.
    pub(super) fn is_expired(self, now: Duration) -> bool {
        Self::after(now, Duration::ZERO) >= self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::clock::{Clock, ManualClock, SystemClock};

    #[test]
    fn a_record_never_lives_longer_than_it_may() {
        const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
        let never = Duration::from_secs(Expiry::NEVER.0 / 4) - Duration::from_secs(100);
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
