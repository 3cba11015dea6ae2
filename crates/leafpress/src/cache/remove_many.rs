//! Removal of many records: of a range of keys, and of those that a predicate selects.
//!
//! Both walk the tiers as a scan does, which finds every key that is present from the beginning to the end, and remove
//! the keys one by one. So the memory that they take is that of a scan, and concurrent operations see each removal as
//! any other.

use super::Cache;
use super::CacheUpdate;
use super::disk::{Course, FoundRecord, Walked};
use super::error::CacheError;
use super::inner::{CacheInner, Seen};
use super::record;
use super::scan_tiers::MAX_BYTES;
use crate::tree::{Bounds, KeyRange, is_empty, not_above, not_below, prefixed};

impl Cache {
    /// Removes all records whose keys are in `range`, in memory and on disk, and returns how many were present. Loads
    /// of these keys that are under way do not store their values.
    ///
    /// Of the keys in the range none that was written before the call is present afterwards, even after a restart;
    /// those that are written during the call may or may not be. The range is not removed at one moment. The part of
    /// the disk tier that the range covers is read, with up to 4 MiB of memory beyond the budget: [`Cache::clear`]
    /// removes everything at once. If a part of it cannot be read, it is forgotten, with other records near it. A
    /// listener is notified of the records that were in memory.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// # cache.insert("user:42", "Ada")?;
    /// # cache.insert("user:43", "Grace")?;
    /// assert_eq!(cache.remove_range("user:43"..)?, 1);
    /// assert_eq!(cache.get("user:43")?, None);
    /// assert!(cache.contains_key("user:42")?);
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Cache::remove`]; some of the records may then still be present.
    pub fn remove_range(&self, range: impl KeyRange) -> Result<u64, CacheError> {
        self.core.remove_range(range.into_bounds()?)
    }

    /// Removes all records whose keys begin with `prefix`, as [`Cache::remove_range`] does.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// # cache.insert("user:42", "Ada")?;
    /// # cache.insert("user:43", "Grace")?;
    /// assert_eq!(cache.remove_prefix("user:")?, 2);
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Cache::remove_range`].
    pub fn remove_prefix(&self, prefix: &(impl AsRef<[u8]> + ?Sized)) -> Result<u64, CacheError> {
        self.core.remove_range(prefixed(prefix.as_ref())?)
    }

    /// Removes the records for which `keep` returns false, in memory and on disk, and returns their number. `keep` gets
    /// the key and the value of each record that is present from the beginning to the end of the call, in key order;
    /// others may be left out.
    ///
    /// Atomic for each key: a record is only removed with a value that `keep` has refused; if it is written meanwhile,
    /// `keep` is called again. No lock is held while `keep` runs, so it may use the cache. The records do not count as
    /// read. The whole disk tier is read, with the memory and the treatment of unreadable parts of
    /// [`Cache::remove_range`].
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// # cache.insert("user:42", "Ada")?;
    /// # cache.insert("user:43", "Grace")?;
    /// assert_eq!(cache.retain(|_key, value| value == b"Ada")?, 1);
    /// assert!(cache.contains_key("user:42")?);
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Cache::remove`]; the records visited so far have been processed.
    ///
    /// # Panics
    /// Panics if `keep` panics. The record that it was called with is then kept, and the records visited before have
    /// been processed.
    pub fn retain(&self, keep: impl FnMut(&[u8], &[u8]) -> bool) -> Result<u64, CacheError> {
        self.core.retain(keep)
    }
}

impl CacheInner {
    fn remove_range(&self, range: Bounds) -> Result<u64, CacheError> {
        let is_in_range = |key: &[u8]| not_below(&range.0, key) && not_above(&range.1, key);
        for key in self.loads.supersede_all(is_in_range) {
            self.tree.synchronize(&key)?;
        }
        let mut removed = 0;
        self.walk_to_remove(range.clone(), true, |found, walked| {
            removed += u64::from(self.remove_found(found, walked)?);
            Ok(())
        })?;
        Ok(removed)
    }

    fn retain(&self, mut keep: impl FnMut(&[u8], &[u8]) -> bool) -> Result<u64, CacheError> {
        let mut removed = 0;
        let all = (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded);
        self.walk_to_remove(all, false, |found, walked| {
            let Some((key, value)) = self.open_found(found, Some(walked), false)? else {
                return Ok(());
            };
            if keep(&key, &value) {
                return Ok(());
            }
            let refused = Some(value.as_slice());
            let update = |found: Option<&[u8]>| match found {
                Some(value) if found == refused || !keep(&key, value) => CacheUpdate::<&[u8]>::Remove,
                _ => CacheUpdate::Keep,
            };
            removed += u64::from(self.update(&key, update)? == CacheUpdate::Remove);
            Ok(())
        })?;
        Ok(removed)
    }

    /// Calls `visit` with each key that a walk through the range finds.
    fn walk_to_remove(
        &self,
        range: Bounds,
        keys_only: bool,
        mut visit: impl FnMut(FoundRecord, &Walked) -> Result<(), CacheError>,
    ) -> Result<(), CacheError> {
        let course = Course {
            is_backwards: false,
            keys_only,
            forgets_unreadable: true,
            most_bytes: MAX_BYTES,
        };
        let mut rest = Some(range);
        while let Some(bounds) = rest.take().filter(|(low, high)| !is_empty(low, high)) {
            let mut walked = self.walk(course, &bounds)?;
            if walked.has_forgotten {
                rest = Some(bounds);
                continue;
            }
            rest = walked.rest.take();
            for found in std::mem::take(&mut walked.found) {
                let bytes = found.key.len() as u64;
                visit(found, &walked)?;
                // A tombstone takes room.
                self.note_stored(bytes);
            }
        }
        Ok(())
    }

    /// Removes a key that a walk has found; returns true if it was present.
    fn remove_found(&self, found: FoundRecord, walked: &Walked) -> Result<bool, CacheError> {
        let FoundRecord { key, stored, .. } = found;
        let is_present = match (self.peek_in_memory(&key, |_| ()), &self.disk) {
            (Ok(Some(unexpired)), _) => unexpired.is_some(),
            (Ok(None), None) => false,
            (Ok(None), Some(disk)) => match stored {
                // The newest record of the key.
                Some(stored) if walked.is_newest(disk, disk.hash(&key)) => {
                    if record::is_expired(self.read(&stored).1, || self.clock.now()) {
                        return Ok(false);
                    }
                    true
                }
                _ => {
                    let mut seen = Seen {
                        is_going: true,
                        ..Seen::default()
                    };
                    self.find(&key, |_| (), &mut seen)?.is_some()
                }
            },
            (Err(error), _) => return self.damaged::<()>(&key, error).map(|_| false),
        };
        // Also a key that was not found because the disk could not be read.
        self.invalidate(&key)?;
        Ok(is_present)
    }
}
