//! Where memory and disk meet: what is not in the tree may be on disk, and what is no longer so must not come back from there.

use std::cell::Cell;

use super::clock::Expiry;
use super::core::{Core, Seen};
use super::counters::Count;
use super::disk::Tier;
use super::error::CacheError;
use super::listener::RemovalCause;
use super::record::{self, TOMBSTONE};
use crate::mem::room::copied;
use crate::tree;
use crate::tree::hash::hash;

impl Core {
    /// Looks on disk for a key that is not in the tree, and puts what is found there back.
    #[cold]
    pub(super) fn find_on_disk<R>(
        &self,
        key: &[u8],
        mut read: Option<impl FnOnce(&[u8]) -> R>,
        seen: &mut Seen,
    ) -> Result<Option<R>, CacheError> {
        let Some(disk) = &self.disk else { return Ok(None) };
        let hash = hash(key);
        let version = disk.version(hash);
        // It may have come since: what is on disk is the newest only while there is nothing here.
        match self.find_in_memory(key, &mut read, seen) {
            Ok(None) => {}
            Ok(found) => return Ok(found.flatten()),
            Err(error) => return self.damaged(key, error),
        }
        let mut stored = Vec::new();
        if !disk.find(hash, key, &mut stored)? {
            return Ok(None);
        }
        let (value, expiry) = record::read(&stored);
        if let Some(expiry) = expiry {
            let now = self.clock.now();
            if expiry.is_over(now) {
                return Ok(None);
            }
            seen.wants_touch = self.wants_touch(&stored, now);
        }
        disk.note_hit();
        seen.is_from_disk = true;
        let found = read.take().map(|read| read(value));
        if seen.is_going {
            return Ok(found);
        }
        self.promote(disk, key, expiry, &mut stored, || disk.version(hash) == version);
        Ok(found)
    }

    /// Puts a record from the disk into the tree, while `is_newest` says that it may. If that cannot be done it stays where it is.
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
        if expiry.is_some() {
            self.note_expiring();
        }
        self.before_store(stored);
        if matches!(self.tree.insert_if_absent_and(key, stored, &is_newest), Ok(true)) {
            self.counters.count(Count::Promoted);
            self.note_stored(bytes);
        }
    }

    /// Removes what is in the tree, so that nothing of the key is left on disk either. `holds` may refuse, by what is there.
    ///
    /// Returns whether there was something and `holds` was so of it.
    pub(super) fn take_out_if(&self, key: &[u8], holds: &dyn Fn(&[u8]) -> bool) -> Result<bool, tree::Error> {
        let Some(disk) = &self.disk else {
            return self.tree.write_if(key, None, holds);
        };
        let hash = hash(key);
        if disk.may_have(hash, key) {
            let was_there = self.tree.write_if(key, Some(TOMBSTONE), holds);
            disk.note_change(key);
            return was_there;
        }
        // What was found on disk before does not go back to the tree from here on.
        disk.note_leaving(hash);
        let was_there = self.tree.write_if(key, None, holds)?;
        if disk.may_have(hash, key) {
            // It has left memory meanwhile.
            self.tree.insert_if_absent(key, TOMBSTONE)?;
            disk.note_change(key);
        }
        Ok(was_there)
    }

    /// Removes a key from both tiers, whatever is there.
    pub(super) fn erase(&self, disk: &Tier, key: &[u8]) -> Result<(), tree::Error> {
        let hash = hash(key);
        if disk.may_have(hash, key) {
            let erased = self.tree.insert(key, TOMBSTONE).map(|_| ());
            disk.note_change(key);
            return erased;
        }
        disk.note_leaving(hash);
        self.tree.remove(key)?;
        if disk.may_have(hash, key) {
            self.tree.insert(key, TOMBSTONE)?;
            disk.note_change(key);
        }
        Ok(())
    }

    /// Removes a key from both tiers without a read of the disk. Tells who listens of what was in memory.
    pub(super) fn invalidate(&self, key: &[u8]) -> Result<(), CacheError> {
        let Some(disk) = &self.disk else {
            return self.remove(key).map(|_| ());
        };
        self.flights.supersede(key);
        self.counters.count(Count::Removes);
        let value = match &self.listener {
            None => None,
            Some(_) => match self.find_in_memory(key, &mut Some(copied), &mut Seen::default()) {
                Ok(found) => found.flatten().transpose()?,
                Err(error) => return self.damaged::<()>(key, error).map(|_| ()),
            },
        };
        self.erase(disk, key)?;
        self.tell(key, value, RemovalCause::Removed);
        Ok(())
    }

    /// Removes a key from both tiers. Returns whether it was there a moment before, and its value for who listens.
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
        self.tell(key, value.take(), RemovalCause::Removed);
        Ok(found.is_some())
    }
}
