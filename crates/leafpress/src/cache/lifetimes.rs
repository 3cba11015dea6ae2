//! Lifetimes of records: time to live, time to idle, and how long an expired record may still be served stale.
//!
//! A record with a time to idle contains its idle deadline. A read extends the deadline once an eighth of the time has
//! passed; the record is rewritten for that (`read_queue`), so it is not done at every read.

use std::time::Duration;

use super::counters::Count;
use super::error::CacheError;
use super::expiry::Expiry;
use super::inner::CacheInner;
use super::load_table::{Join, LoadLeader};
use super::read_queue::{MAX_WAITING, QueuedRead};
use super::record;
use crate::tree::hash::hash;
use leafpress_base::mem::room::copied;
use leafpress_base::random::Random;

/// A read extends the deadline once this fraction (1/8) of the time to idle has passed since the last extension.
const TOUCH_DIVISOR: u32 = 8;
/// Remembered absences take at most this fraction (1/64) of the memory budget.
const ABSENCES_DIVISOR: u64 = 64;
/// Maximum memory of remembered absences, which upkeep visits.
const MAX_ABSENCES_BYTES: u64 = 16 << 20;

impl CacheInner {
    /// The expiry of a record inserted now with this time to live, or else with the default; [`Duration::MAX`] is none.
    pub(super) fn insertion_expiry(&self, key: &[u8], ttl: Option<Duration>) -> Option<Expiry> {
        let ttl = ttl.or(self.times.to_live).filter(|ttl| *ttl != Duration::MAX)?;
        let now = self.clock.now();
        if self.times.jitter == 0.0 {
            return Some(Expiry::after(now, ttl));
        }
        // Records that are written at the same moment differ by their keys, and a key's times by the moments.
        let mut random = Random::new(hash(key) ^ now.as_nanos() as u64);
        let less = self.times.jitter * random.fraction();
        Some(Expiry::after(now, ttl.mul_f64(1.0 - less)))
    }

    pub(super) fn expiry(&self, ttl: Option<Duration>) -> Option<Expiry> {
        ttl.map(|ttl| Expiry::after(self.clock.now(), ttl))
    }

    /// The idle deadline of a record written now, by its own time to idle or the cache's.
    pub(super) fn idle_until(&self, own: Option<Duration>) -> Option<Expiry> {
        self.expiry(own.or(self.times.to_idle))
    }

    /// The time to idle of a record that has an idle deadline.
    fn to_idle(&self, stored: &[u8]) -> Option<Duration> {
        record::idle_period(stored).or(self.times.to_idle)
    }

    /// Returns true if a read of a record at `now` has to extend its idle deadline.
    #[inline]
    pub(super) fn wants_touch(&self, stored: &[u8], now: Duration) -> bool {
        // The reads of most records end here.
        let Some(idle) = record::idle(stored) else {
            return false;
        };
        let is_due = |to_idle: Duration| idle < Expiry::after(now, to_idle - to_idle / TOUCH_DIVISOR);
        self.to_idle(stored).is_some_and(is_due)
    }

    /// Returns true if a present record is so near the end of its time to live that it has to be loaded anew.
    pub(super) fn is_due(&self, key: &[u8]) -> bool {
        let Some(period) = self.times.refresh else {
            return false;
        };
        let now = self.clock.now();
        let is_due = |stored: &[u8]| record::expiry(stored).is_some_and(|expiry| expiry.left(now) <= period);
        matches!(self.peek_in_memory(key, is_due), Ok(Some(Some(true))))
    }

    /// Returns the value of a key that has expired less than `period` ago.
    pub(super) fn find_stale(&self, key: &[u8], period: Option<Duration>) -> Result<Option<Vec<u8>>, CacheError> {
        let Some(period) = period else { return Ok(None) };
        let then = self.clock.now().saturating_sub(period);
        let found = self.tree.get_with(key, |stored| {
            let (value, expiry) = self.read(stored);
            (!record::is_tombstone(stored) && !record::is_expired(expiry, || then)).then(|| copied(value))
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

    /// Returns true if a record has expired and is past the period in which it may still be returned.
    pub(super) fn is_past_use(&self, expiry: Option<Expiry>, now: Duration) -> bool {
        let period = self.times.stale.max(self.times.stale_if_error);
        record::is_expired(expiry, || now.saturating_sub(period.unwrap_or_default()))
    }

    /// Joins the load of a key, or starts one. `takes_absent`: a remembered absence of the key is an answer.
    pub(super) fn join_load(&self, key: &[u8], takes_absent: bool) -> Join<'_> {
        let remembers = takes_absent && self.times.absent.is_some();
        let joined = self.loads.join_or_start(key, remembers.then(|| self.clock.now()));
        self.counters
            .add(Count::KnownAbsent, u64::from(matches!(joined, Join::Absent)));
        joined
    }

    /// Ends a load whose loader answered that there is no value.
    pub(super) fn finish_absent(&self, lead: LoadLeader<'_>) {
        let room_bytes = (self.budget.memory_bytes() / ABSENCES_DIVISOR).min(MAX_ABSENCES_BYTES);
        lead.finish_absent(self.expiry(self.times.absent), room_bytes);
    }

    /// Forgets a part of the remembered absences that have expired, a sixteenth at each call.
    pub(super) fn forget_absences(&self) {
        if self.times.absent.is_some() {
            self.loads.forget_expired(self.clock.now());
        }
    }

    /// Queues a read of a record in memory.
    #[cold]
    pub(super) fn queue_read(&self, key: &[u8]) {
        // Without memory for the queue a read is not noted.
        if let Ok(queued_reads) = self.queued_reads.or_make() {
            queued_reads.push(key, self.clock.now());
        }
    }

    /// Applies the queued reads; returns true if there were any, or another thread applied some meanwhile.
    pub(super) fn apply_queued_reads(&self) -> bool {
        let Some(queued_reads) = self.queued_reads.get() else {
            return false;
        };
        let applying = match self.queued_reads.applying.try_lock() {
            Some(_) if queued_reads.queue.is_empty() => return false,
            Some(applying) => applying,
            None => self.queued_reads.applying.lock(),
        };
        let mut written = 0;
        for _ in 0..MAX_WAITING {
            let Some(QueuedRead { key, read_at }) = queued_reads.pop() else {
                break;
            };
            written += self.note_read(&key, read_at);
        }
        drop(applying);
        // Called with no lock held, because it may evict and so call the listener.
        if written > 0 {
            self.note_stored(written);
        }
        true
    }

    /// Extends the idle deadline of a record that was read at `read_at`. Returns the bytes written: 0 if the record was
    /// written or read later, or is absent.
    fn note_read(&self, key: &[u8], read_at: Duration) -> u64 {
        let Ok(Some(Ok(stored))) = self.tree.get_with(key, copied) else {
            return 0;
        };
        let Some(to_idle) = self.to_idle(&stored) else {
            return 0;
        };
        let until = Expiry::after(read_at, to_idle);
        if record::idle(&stored).is_none_or(|idle| idle >= until) {
            return 0;
        }
        let Ok(mut touched) = copied(&stored) else { return 0 };
        record::set_idle(&mut touched, until);
        // A concurrent writer has renewed the deadline as well.
        let is_same = |found: Option<&[u8]>| found == Some(stored.as_slice());
        match self.tree.write_if(key, Some(&touched), &is_same) {
            Ok(true) => (key.len() + touched.len()) as u64,
            _ => 0,
        }
    }
}
