//! Putting records in: how they are made, what room they need, and who is told.

use std::cell::Cell;

use super::clock::Expiry;
use super::core::Core;
use super::counters::Count;
use super::error::CacheError;
use super::listener::RemovalCause;
use super::record::{self, MAX_VALUE_BYTES};
use crate::tree;

/// A record may hold one part in so many of the budget.
const PART_OF_RECORD: u64 = 8;
/// Room for a longer record is made before it is put in.
const FEW_BYTES: u64 = 64 << 10;
/// Longer values are put together in memory that goes back to the system at once.
const MAX_BUFFER_BYTES: usize = 64 << 10;
/// A thread keeps a buffer of this size: with many threads, larger ones would be much.
const MAX_KEPT_BYTES: usize = 4 << 10;

thread_local! {
    /// Where a record is put together before the tree copies it.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// What became of a record that was stored.
pub(super) struct Stored {
    pub replaced: Option<Vec<u8>>,
    pub bytes: u64,
}

impl Core {
    /// Inserts or replaces, whatever is being loaded for the key.
    pub(super) fn insert(&self, key: &[u8], value: &[u8], expiry: Option<Expiry>) -> Result<(), CacheError> {
        self.flights.supersede(key);
        self.before_store(value);
        let stored = self.store(key, value, expiry);
        self.after_store(key, stored)
    }

    /// Makes room for a long value, ahead of its being put in. Those who listen are told of what goes, so no lock may be held.
    pub(super) fn before_store(&self, value: &[u8]) {
        let bytes = value.len() as u64;
        if bytes > FEW_BYTES && bytes <= self.most_record_bytes() {
            self.make_room_for(bytes);
        }
    }

    /// The longest record that is kept, in bytes of key and value.
    pub(super) fn most_record_bytes(&self) -> u64 {
        self.budget.memory_bytes() / PART_OF_RECORD
    }

    /// Writes a record into the tree. It calls nobody, so that it may be done under a lock; before and after it [`Core::before_store`] and
    /// [`Core::after_store`] are to be called.
    pub(super) fn store(&self, key: &[u8], value: &[u8], expiry: Option<Expiry>) -> Result<Stored, CacheError> {
        if !self.keeps(key, value)? {
            // What was there is out of date.
            self.counters.count(Count::TooLarge);
            let replaced = self.take_out(key)?;
            return Ok(Stored { replaced, bytes: 0 });
        }
        let replaced = self.with_record(value, expiry, |record| self.put(key, record));
        let bytes = self.count_insert(key, value);
        Ok(Stored {
            replaced: replaced?,
            bytes,
        })
    }

    /// Whether a record is one that is kept: others are taken, and forgotten at once.
    pub(super) fn keeps(&self, key: &[u8], value: &[u8]) -> Result<bool, CacheError> {
        if value.len() > MAX_VALUE_BYTES {
            return Err(CacheError::ValueTooLong { len: value.len() });
        }
        Ok((key.len() + value.len()) as u64 <= self.most_record_bytes())
    }

    /// Counts a record that was put in; its bytes of key and value.
    pub(super) fn count_insert(&self, key: &[u8], value: &[u8]) -> u64 {
        let bytes = (key.len() + value.len()) as u64;
        self.counters.count(Count::Inserts);
        self.counters.add(Count::InsertedBytes, bytes);
        bytes
    }

    /// Calls `put` with a record as the tree is to keep it.
    pub(super) fn with_record<R, E>(
        &self,
        value: &[u8],
        expiry: Option<Expiry>,
        put: impl FnOnce(&[u8]) -> Result<R, E>,
    ) -> Result<R, CacheError>
    where
        CacheError: From<E>,
    {
        if expiry.is_some() {
            // Before the record can be found.
            self.note_expiring();
        }
        let idle = self.idle_until();
        if value.len() > MAX_BUFFER_BYTES {
            // An allocator would keep what is freed, of each thread and length.
            let record = record::write_long(value, expiry, idle)?;
            return Ok(put(record.bytes())?);
        }
        let mut buffer = BUFFER.try_with(Cell::take).unwrap_or_default();
        let written = record::write(value, expiry, idle, &mut buffer);
        let result = match written {
            Ok(()) => put(&buffer).map_err(CacheError::from),
            Err(memory) => Err(memory.into()),
        };
        if buffer.capacity() <= MAX_KEPT_BYTES {
            let _ = BUFFER.try_with(|kept| kept.set(buffer));
        }
        result
    }

    fn put(&self, key: &[u8], record: &[u8]) -> Result<Option<Vec<u8>>, tree::Error> {
        let replaced = self.put_in_tree(key, record);
        if let Some(disk) = &self.disk {
            disk.note_change(key);
        }
        replaced
    }

    fn put_in_tree(&self, key: &[u8], record: &[u8]) -> Result<Option<Vec<u8>>, tree::Error> {
        if self.listener.is_none() {
            self.tree.insert(key, record)?;
            return Ok(None);
        }
        let replaced = Cell::new(None);
        let copy = |stored: &[u8]| {
            replaced.set((!record::is_tombstone(stored)).then(|| record::read(stored).0.to_vec()));
        };
        let was_there = self.tree.insert_showing(key, record, &copy)?;
        Ok(replaced.take().filter(|_| was_there))
    }

    /// Tells of what was replaced, and makes room for what is more now.
    pub(super) fn after_store(&self, key: &[u8], stored: Result<Stored, CacheError>) -> Result<(), CacheError> {
        let Stored { replaced, bytes } = stored?;
        self.tell(key, replaced, RemovalCause::Replaced);
        self.note_stored(bytes);
        Ok(())
    }

    /// So many bytes of a record are in the tree now.
    pub(super) fn note_stored(&self, bytes: u64) {
        self.measure_if(self.budget.note_written(bytes));
        self.make_room();
    }

    /// Removes a key; its value, where somebody is to be told of it.
    fn take_out(&self, key: &[u8]) -> Result<Option<Vec<u8>>, CacheError> {
        if let Some(disk) = &self.disk {
            self.erase(disk, key)?;
            return Ok(None);
        }
        if self.listener.is_none() {
            self.tree.remove(key)?;
            return Ok(None);
        }
        let taken = self.tree.take(key)?;
        Ok(taken.map(|stored| record::read(&stored).0.to_vec()))
    }
}
