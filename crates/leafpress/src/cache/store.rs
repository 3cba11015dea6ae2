//! Insertion: encoding records, making room for them, and notifying the listener.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use super::InsertOptions;
use super::counters::Count;
use super::error::CacheError;
use super::inner::{CacheInner, Seen};
use super::listener::RemovalCause;
use super::load_table::LoadLeader;
use super::long_values::InHand;
use super::record::{self, Attributes, MAX_VALUE_BYTES};
use crate::tree;
use leafpress_base::mem::room::copied;

/// A record may take at most this fraction (1/8) of the budget.
const MAX_RECORD_DIVISOR: u64 = 8;
/// For longer values room is made before the insertion.
const FEW_BYTES: u64 = 64 << 10;
/// Values of at least this fraction (1/64) of the budget are counted while they are in the hand of a writer.
const LONG_DIVISOR: u64 = 64;
/// Number of times that a writer of a long value makes room before it writes all the same.
const MAX_TRIES: usize = 8;
/// Longer values are encoded in memory that returns to the system at once.
const MAX_BUFFER_BYTES: usize = 64 << 10;
/// Maximum buffer that a thread keeps: with many threads, larger ones would add up.
const MAX_KEPT_BYTES: usize = 4 << 10;

thread_local! {
    /// Buffer in which a record is encoded before the tree copies it.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Result of an insertion.
#[derive(Default)]
pub(super) struct Stored {
    /// The replaced value and the cause, if a listener has to be notified.
    pub replaced: Option<(Vec<u8>, RemovalCause)>,
    pub bytes: u64,
}

impl CacheInner {
    /// Inserts or replaces, regardless of loads of the key.
    pub(super) fn insert(&self, key: &[u8], value: &[u8], attributes: &Attributes) -> Result<(), CacheError> {
        let in_hand = self.before_store(value);
        let stored = self.store(key, value, attributes);
        drop(in_hand);
        self.after_store(key, stored)
    }

    /// Makes room for a long value before its insertion, during which the result must be kept. No lock may be held,
    /// since the listener is called for evicted records.
    ///
    /// Its writer encodes the record, and then the tree compresses it into a node: so there is room for both, and all
    /// writers together encode no more than the longest record that is kept.
    pub(super) fn before_store(&self, value: &[u8]) -> Option<InHand<'_>> {
        let (bytes, most) = (value.len() as u64, self.most_record_bytes());
        if bytes <= FEW_BYTES || bytes > most {
            return None;
        }
        if bytes < self.budget.memory_bytes() / LONG_DIVISOR {
            self.make_room_for(bytes);
            return None;
        }
        for _ in 1..MAX_TRIES {
            self.make_room_for(2 * bytes);
            let in_hand = self.long_values.take(bytes, most);
            // Another writer may have taken the room while this one waited.
            if self.excess(bytes) == 0 {
                return Some(in_hand);
            }
        }
        Some(self.long_values.take(bytes, most))
    }

    /// Returns the maximum length of a record that is kept, in bytes of key and value.
    pub(super) fn most_record_bytes(&self) -> u64 {
        self.budget.memory_bytes() / MAX_RECORD_DIVISOR
    }

    /// Writes a record into the tree. It calls no user code, so it may run under a lock; [`CacheInner::before_store`]
    /// and [`CacheInner::after_store`] must be called before and after it.
    pub(super) fn store(&self, key: &[u8], value: &[u8], attributes: &Attributes) -> Result<Stored, CacheError> {
        if !self.keeps(key, value)? {
            // The key's old value is outdated.
            self.counters.add(Count::TooLarge, 1);
            let replaced = self.take_out(key)?;
            return Ok(Stored { replaced, bytes: 0 });
        }
        let replaced = self.with_record(value, attributes, |record| self.put(key, record));
        let bytes = self.count_insert(key, value);
        Ok(Stored {
            replaced: replaced?,
            bytes,
        })
    }

    /// Returns true if a record is kept; others are accepted and discarded.
    pub(super) fn keeps(&self, key: &[u8], value: &[u8]) -> Result<bool, CacheError> {
        if value.len() > MAX_VALUE_BYTES {
            return Err(CacheError::ValueTooLong { len: value.len() });
        }
        Ok((key.len() + value.len()) as u64 <= self.most_record_bytes())
    }

    /// Counts an insertion; returns its bytes of key and value.
    pub(super) fn count_insert(&self, key: &[u8], value: &[u8]) -> u64 {
        let bytes = (key.len() + value.len()) as u64;
        self.counters.add(Count::Inserts, 1);
        self.counters.add(Count::InsertedBytes, bytes);
        self.sample_write(key, bytes);
        bytes
    }

    /// Calls `put` with the encoded record.
    pub(super) fn with_record<R, E>(
        &self,
        value: &[u8],
        attributes: &Attributes,
        put: impl FnOnce(&[u8]) -> Result<R, E>,
    ) -> Result<R, CacheError>
    where
        CacheError: From<E>,
    {
        if attributes.expiry.is_some() || attributes.tags.is_some() || attributes.to_idle.is_some() {
            // Set before the record can be found.
            self.note_expiring();
        }
        let idle = self.idle_until(attributes.to_idle);
        if value.len() > MAX_BUFFER_BYTES {
            // An allocator would retain the freed memory for each thread and size class.
            let record = record::write_long(value, attributes, idle)?;
            return Ok(put(record.bytes())?);
        }
        let mut buffer = BUFFER.try_with(Cell::take).unwrap_or_default();
        let written = record::write(value, attributes, idle, &mut buffer);
        let result = match written {
            Ok(()) => put(&buffer).map_err(CacheError::from),
            Err(memory) => Err(memory.into()),
        };
        if buffer.capacity() <= MAX_KEPT_BYTES {
            let _ = BUFFER.try_with(|kept| kept.set(buffer));
        }
        result
    }

    /// Stores a loaded value, unless the key was written or removed since the load began, and ends the load. `stamp` is
    /// of before the load; `replaces`: the load began with a record that it may replace.
    pub(super) fn store_loaded(
        &self,
        lead: LoadLeader<'_>,
        value: &Arc<[u8]>,
        entry: InsertOptions,
        stamp: u64,
        replaces: bool,
    ) -> Result<(), CacheError> {
        let stored = self
            .attributes_by(lead.key(), entry, stamp)
            .and_then(|attributes| self.store_led(&lead, value, &attributes, replaces));
        let key = lead.key().to_vec();
        // The record that cannot be replaced is outdated all the same.
        let is_outdated = replaces && stored.is_err();
        let removed = if is_outdated { self.remove_led(&lead)? } else { None };
        if self.tags.has_any(entry.tags.ids().iter().copied(), stamp) {
            // A tag was invalidated during the load. Its waiters may have come after that: they load again.
            drop(lead);
        } else {
            lead.finish_with_value(value);
        }
        if let Some(removed) = removed {
            self.notify_of_led(&key, removed, RemovalCause::Replaced);
        }
        self.after_store(&key, stored)
    }

    fn store_led(
        &self,
        lead: &LoadLeader<'_>,
        value: &[u8],
        attributes: &Attributes,
        replaces: bool,
    ) -> Result<Stored, CacheError> {
        let key = lead.key();
        let mut stored = Stored::default();
        if !self.keeps(key, value)? {
            self.counters.add(Count::TooLarge, 1);
            if replaces {
                stored.replaced = self.remove_led(lead)?;
            }
            return Ok(stored);
        }
        let _in_hand = self.before_store(value);
        let (now, replaced) = (self.clock.now(), Cell::new(None));
        let may_store = |found: Option<&[u8]>| {
            // A thread that wrote another record since has superseded the load.
            let is_free = replaces || found.is_none_or(|found| record::is_expired(self.read(found).1, || now));
            let may_store = is_free && lead.is_current();
            if may_store {
                replaced.set(self.leaving(found, now));
            }
            may_store
        };
        let is_stored = self.with_record(value, attributes, |record| {
            let is_stored = self.tree.write_if(key, Some(record), &may_store);
            if let (Some(disk), Ok(true) | Err(_)) = (&self.disk, &is_stored) {
                disk.note_change(key);
            }
            is_stored
        })?;
        if is_stored {
            stored.replaced = replaced.take();
            stored.bytes = self.count_insert(key, value);
        }
        Ok(stored)
    }

    /// Removes the record that a load began with, unless the key was written or removed since, and returns the
    /// notification for it.
    pub(super) fn remove_led(&self, lead: &LoadLeader<'_>) -> Result<Option<(Vec<u8>, RemovalCause)>, CacheError> {
        let (now, removed) = (self.clock.now(), Cell::new(None));
        self.take_out_if(lead.key(), &|found| {
            let is_current = lead.is_current();
            if is_current {
                removed.set(self.leaving(found, now));
            }
            is_current
        })?;
        Ok(removed.take())
    }

    /// Notifies the listener of a record that [`CacheInner::remove_led`] removed, for this cause unless it had expired.
    pub(super) fn notify_of_led(&self, key: &[u8], removed: (Vec<u8>, RemovalCause), cause: RemovalCause) {
        let (value, found) = removed;
        let has_expired = found == RemovalCause::Expired;
        self.counters.add(Count::Expired, u64::from(has_expired));
        self.notify(key, Some(value), if has_expired { found } else { cause });
    }

    /// Returns the notification for a replaced record.
    fn leaving(&self, found: Option<&[u8]>, now: Duration) -> Option<(Vec<u8>, RemovalCause)> {
        let found = found.filter(|found| self.listener.is_some() && !record::is_tombstone(found))?;
        let (value, expiry) = self.read(found);
        let cause = if record::is_expired(expiry, || now) {
            RemovalCause::Expired
        } else {
            RemovalCause::Replaced
        };
        Some((value.to_vec(), cause))
    }

    fn put(&self, key: &[u8], record: &[u8]) -> Result<Option<(Vec<u8>, RemovalCause)>, tree::TreeError> {
        let replaced = self.write(key, Some(record));
        if let Some(disk) = &self.disk {
            disk.note_change(key);
        }
        replaced
    }

    /// Writes or removes a record unconditionally, and returns the notification for the previous record. Supersedes a
    /// load of the key.
    fn write(&self, key: &[u8], record: Option<&[u8]>) -> Result<Option<(Vec<u8>, RemovalCause)>, tree::TreeError> {
        if self.listener.is_none() {
            let supersede = || {
                self.loads.supersede(key);
                true
            };
            self.tree.write_noting(key, record, &supersede)?;
            return Ok(None);
        }
        let (now, replaced) = (self.clock.now(), Cell::new(None));
        self.tree.write_if(key, record, &|found| {
            self.loads.supersede(key);
            replaced.set(self.leaving(found, now));
            true
        })?;
        Ok(replaced.take())
    }

    /// Notifies the listener of the replaced record, and evicts if the budget requires it.
    pub(super) fn after_store(&self, key: &[u8], stored: Result<Stored, CacheError>) -> Result<(), CacheError> {
        let Stored { replaced, bytes } = stored?;
        if let Some((value, cause)) = replaced {
            if cause == RemovalCause::Expired {
                self.counters.add(Count::Expired, 1);
            }
            self.notify(key, Some(value), cause);
        }
        self.note_stored(bytes);
        Ok(())
    }

    /// Accounts for `bytes` written into the tree.
    pub(super) fn note_stored(&self, bytes: u64) {
        self.measure_if(self.budget.note_written(bytes));
        self.keep_room();
    }

    /// Removes a key whose new value is not kept, and returns the notification for the listener.
    fn take_out(&self, key: &[u8]) -> Result<Option<(Vec<u8>, RemovalCause)>, CacheError> {
        let Some(disk) = &self.disk else {
            return Ok(self.write(key, None)?);
        };
        let replaced = if self.listener.is_some() {
            let mut value = None;
            self.find(key, |found| value = copied(found).ok(), &mut Seen::default())?;
            value.map(|value| (value, RemovalCause::Replaced))
        } else {
            None
        };
        self.erase(disk, key)?;
        Ok(replaced)
    }
}
