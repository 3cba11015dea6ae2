//! Reads and removals across both tiers: a key that is not in the tree may be on disk, and a replaced or removed record
//! must not return from there.

use std::cell::Cell;

use super::counters::Count;
use super::disk::{DiskHash, Tier};
use super::error::CacheError;
use super::expiry::Expiry;
use super::inner::{CacheInner, Seen};
use super::listener::RemovalCause;
use super::record::{self, TOMBSTONE};
use crate::tree;
use leafpress_base::mem::room::copied;

/// A lookup of a key on disk, which begins before the lookup in the tree.
pub(super) struct Lookup {
    pub hash: DiskHash,
    version: u64,
}

impl Lookup {
    pub(super) fn new(disk: &Tier, key: &[u8]) -> Self {
        let hash = disk.hash(key);
        Self {
            hash,
            version: disk.version(hash),
        }
    }

    /// Returns true if no record of the key has left memory since the lookup began.
    fn is_current(&self, disk: &Tier) -> bool {
        disk.version(self.hash) == self.version
    }
}

impl CacheInner {
    /// Looks on disk for a key that is not in the tree, and promotes a record found there.
    #[cold]
    pub(super) fn find_on_disk<R>(
        &self,
        key: &[u8],
        mut read: Option<impl FnOnce(&[u8]) -> R>,
        seen: &mut Seen,
    ) -> Result<Option<R>, CacheError> {
        let Some(disk) = &self.disk else { return Ok(None) };
        let lookup = Lookup::new(disk, key);
        // The key may have been inserted since: a record on disk is the newest only while the tree has none.
        match self.find_in_memory(key, &mut read, seen) {
            Ok(None) => {}
            Ok(found) => return Ok(found.flatten()),
            Err(error) => return self.damaged(key, error),
        }
        let mut stored = Vec::new();
        if !disk.find(lookup.hash, key, &mut stored)? {
            return self.absent();
        }
        let read = |value: &[u8]| read.take().map(|read| read(value));
        Ok(self
            .take_from_disk(disk, &lookup, key, &mut stored, read, seen)
            .flatten())
    }

    /// Calls `read` with the value of a record that was found on disk, unless it is expired, and promotes the record.
    pub(super) fn take_from_disk<R>(
        &self,
        disk: &Tier,
        lookup: &Lookup,
        key: &[u8],
        stored: &mut [u8],
        read: impl FnOnce(&[u8]) -> R,
        seen: &mut Seen,
    ) -> Option<R> {
        let (value, expiry) = self.read(stored);
        if let Some(expiry) = expiry {
            let now = self.clock.now();
            if expiry.is_expired(now) {
                return None;
            }
            seen.wants_touch = self.wants_touch(stored, now);
        }
        disk.note_hit();
        seen.is_from_disk = true;
        let found = read(value);
        if !seen.is_going {
            self.promote(disk, key, expiry, stored, || lookup.is_current(disk));
        }
        Some(found)
    }

    /// Inserts a record from disk into the tree if `is_newest` still holds. On failure the record stays on disk.
    fn promote(
        &self,
        disk: &Tier,
        key: &[u8],
        expiry: Option<Expiry>,
        stored: &mut [u8],
        is_newest: impl Fn() -> bool,
    ) {
        let bytes = (key.len() + stored.len()) as u64;
        if bytes > self.most_record_bytes() || disk.has_failed() {
            return;
        }
        record::make_clean(stored);
        if expiry.is_some() || record::is_tagged(stored) {
            self.note_expiring();
        }
        let in_hand = self.before_store(stored);
        let may_come = |found: Option<&[u8]>| found.is_none() && is_newest();
        let promoted = self.tree.write_if(key, Some(stored), &may_come);
        drop(in_hand);
        if matches!(promoted, Ok(true)) {
            self.counters.add(Count::Promoted, 1);
            self.note_stored(bytes);
        }
    }

    /// Removes the tree's record of a key so that no record of the key is left on disk either. `holds` may refuse,
    /// given the current record.
    ///
    /// Returns true if there was a record and `holds` returned true for it.
    pub(super) fn take_out_if(
        &self,
        key: &[u8],
        holds: &dyn Fn(Option<&[u8]>) -> bool,
    ) -> Result<bool, tree::TreeError> {
        let Some(disk) = &self.disk else {
            return self.tree.write_if(key, None, holds);
        };
        let hash = disk.hash(key);
        let is_below = Cell::new(disk.may_have(hash, key));
        if !is_below.get() {
            let was_there = self.tree.write_if(key, None, &|found| {
                self.leaves_nothing(disk, key, &is_below) && holds(found)
            })?;
            if !is_below.get() {
                return Ok(was_there);
            }
        }
        let was_there = self.tree.write_if(key, Some(TOMBSTONE), holds);
        disk.note_change(key);
        was_there
    }

    /// Returns true if a key's record may be removed without a tombstone, because nothing of the key is on disk. Called
    /// under the latch of the key's leaf, the answer holds until the record is out of the tree: only under this latch
    /// does a record leave memory for the disk, and a record found on disk before is not promoted afterwards. Sets
    /// `is_below` to the negated answer.
    fn leaves_nothing(&self, disk: &Tier, key: &[u8], is_below: &Cell<bool>) -> bool {
        let hash = disk.hash(key);
        is_below.set(disk.may_have(hash, key));
        if !is_below.get() {
            disk.note_leaving(hash);
        }
        !is_below.get()
    }

    /// Removes a key from both tiers unconditionally, and supersedes a load of it.
    pub(super) fn erase(&self, disk: &Tier, key: &[u8]) -> Result<(), tree::TreeError> {
        self.erase_noting(disk, key, &|| self.loads.supersede(key))
    }

    /// Removes a key from both tiers unconditionally. Calls `note` under the latch of its leaf, possibly more than
    /// once.
    pub(super) fn erase_noting(&self, disk: &Tier, key: &[u8], note: &dyn Fn()) -> Result<(), tree::TreeError> {
        let is_below = Cell::new(disk.may_have(disk.hash(key), key));
        if !is_below.get() {
            self.tree.write_noting(key, None, &|| {
                let leaves_nothing = self.leaves_nothing(disk, key, &is_below);
                if leaves_nothing {
                    note();
                }
                leaves_nothing
            })?;
            if !is_below.get() {
                return Ok(());
            }
        }
        let erased = self.tree.write_noting(key, Some(TOMBSTONE), &|| {
            note();
            true
        });
        disk.note_change(key);
        erased.map(|_| ())
    }

    /// Removes a key from both tiers without reading the disk. Notifies the listener of a record that was in memory.
    pub(super) fn invalidate(&self, key: &[u8]) -> Result<(), CacheError> {
        let Some(disk) = &self.disk else {
            return self.remove(key).map(|_| ());
        };
        self.counters.add(Count::Removes, 1);
        let value = match &self.listener {
            None => None,
            Some(_) => match self.find_in_memory(key, &mut Some(copied), &mut Seen::default()) {
                Ok(found) => found.flatten().transpose()?,
                Err(error) => return self.damaged::<()>(key, error).map(|_| ()),
            },
        };
        self.erase(disk, key)?;
        self.notify(key, value, RemovalCause::Removed);
        Ok(())
    }

    /// Removes a key from both tiers. Returns true if it was present just before; its value is for the listener.
    pub(super) fn remove_below(&self, disk: &Tier, key: &[u8]) -> Result<bool, CacheError> {
        let value = Cell::new(None);
        let copy = |found: &[u8]| {
            if self.listener.is_some() {
                value.set(copied(found).ok());
            }
        };
        let mut seen = Seen {
            is_going: true,
            ..Seen::default()
        };
        let found = self.find(key, copy, &mut seen)?;
        self.erase(disk, key)?;
        self.notify(key, value.take(), RemovalCause::Removed);
        Ok(found.is_some())
    }
}
