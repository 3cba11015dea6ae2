//! Until when a record may be had: its time to live, its time to idle, and how long it may be had stale.
//!
//! A record that has a time to idle says until when it lives unless it is read. A read moves that on, once an eighth of the time is over: the
//! record is written anew (`touches`), and so that is not done at each.

use std::time::Duration;

use super::clock::Expiry;
use super::counters::Count;
use super::error::CacheError;
use super::inner::CacheInner;
use super::record;
use leafpress_base::mem::room::copied;

/// A read is noted once one part in so many of the time to idle is over since the last that was.
const PART_NOTED: u32 = 8;

/// How long records live.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Times {
    /// From when they were written, where that did not say.
    pub to_live: Option<Duration>,
    /// From when they were last read, or written.
    pub to_idle: Option<Duration>,
    /// For so long after its time a record may be had by who asks for it while another loads it.
    pub stale: Option<Duration>,
}

impl CacheInner {
    pub(super) fn default_expiry(&self) -> Option<Expiry> {
        self.expiry(self.times.to_live)
    }

    pub(super) fn expiry(&self, ttl: Option<Duration>) -> Option<Expiry> {
        ttl.map(|ttl| Expiry::after(self.clock.now(), ttl))
    }

    /// Until when a record lives that is written now and not read.
    pub(super) fn idle_until(&self) -> Option<Expiry> {
        self.expiry(self.times.to_idle)
    }

    /// Whether a read of a record at `now` is to be noted in it.
    #[inline]
    pub(super) fn wants_touch(&self, stored: &[u8], now: Duration) -> bool {
        let Some(to_idle) = self.times.to_idle else {
            return false;
        };
        record::idle(stored).is_some_and(|idle| idle < Expiry::after(now, to_idle - to_idle / PART_NOTED))
    }

    /// The value of a key whose time is over, if it may still be had.
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

    /// Whether a record is over and cannot be had stale any more.
    pub(super) fn is_past_use(&self, expiry: Option<Expiry>, now: Duration) -> bool {
        record::is_expired(expiry, || now.saturating_sub(self.times.stale.unwrap_or_default()))
    }
}
