//! Atomic read-modify-write of one key, by optimistic concurrency.
//!
//! The current record is looked up, the caller's closure computes an answer with no lock held, and the answer is
//! applied if the record is still current; otherwise the update begins anew. A record in the tree is current while the
//! tree has the same bytes. A record that was found on disk, or an absence, is current while there is nothing in the
//! tree and no record of the key has left the tree since. A load of the key that is under way is superseded.

use std::sync::Arc;
use std::time::Duration;

use super::counters::Count;
use super::disk::Tier;
use super::error::CacheError;
use super::expiry::{self, Expiry};
use super::inner::CacheInner;
use super::listener::RemovalCause;
use super::record::{self, Attributes, TOMBSTONE};
use super::{Cache, InsertOptions};
use crate::tree;
use leafpress_base::mem::room::copied;

/// The change of a record: the result of the closure of [`Cache::update_with`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheUpdate<V> {
    /// Sets the value. A present record keeps its time to live, its time to idle and its tags; a new one gets the
    /// cache's default times.
    Put(V),
    /// Sets the value and the time to live, as [`Cache::insert_entry`] does.
    PutWith(V, InsertOptions),
    /// Removes the key.
    Remove,
    /// Leaves the record unchanged.
    Keep,
}

/// [`Some`] sets the value; [`None`] removes the key.
impl<V> From<Option<V>> for CacheUpdate<V> {
    fn from(value: Option<V>) -> Self {
        value.map_or(Self::Remove, Self::Put)
    }
}

impl Cache {
    /// Updates the key's record atomically: calls `update` with the key's value, or [`None`] if the key is absent,
    /// applies the change it returns, and returns that change.
    ///
    /// The value that `update` was given is the one the key had when the change was applied, in memory or on disk. So
    /// no increment of a counter is lost while its record is present; but a cache may evict it, as any record, and the
    /// count then begins anew. No lock is held while `update` runs, so it may use the cache. It is called again if
    /// another thread has changed the record meanwhile, so it should have no side effects.
    ///
    /// The update counts as an insertion, a removal or nothing, by the change applied, and neither as a hit nor as a
    /// miss. It restarts the time to idle.
    ///
    /// # Panics
    /// Panics if `update` panics; the record is then unchanged.
    ///
    /// ```
    /// # fn main() -> Result<(), leafpress::CacheError> {
    /// use std::time::Duration;
    /// use leafpress::Cache;
    /// use leafpress::cache::{CacheUpdate, InsertOptions};
    ///
    /// // Three requests a minute, from the first on.
    /// let cache = Cache::builder().memory(8 << 20).build()?;
    /// let admits = |client: &str| -> Result<bool, leafpress::CacheError> {
    ///     let answer = cache.update_with(client, |seen| match seen {
    ///         None => CacheUpdate::PutWith([1], InsertOptions::ttl(Duration::from_secs(60))),
    ///         Some(&[n]) if n < 3 => CacheUpdate::Put([n + 1]),
    ///         Some(_) => CacheUpdate::Keep,
    ///     })?;
    ///     Ok(answer != CacheUpdate::Keep)
    /// };
    /// assert!(admits("ada")? && admits("ada")? && admits("ada")?);
    /// assert!(!admits("ada")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Cache::insert`] and [`Cache::insert_entry`]; the record is then unchanged.
    pub fn update_with<V: AsRef<[u8]>>(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        update: impl FnMut(Option<&[u8]>) -> CacheUpdate<V>,
    ) -> Result<CacheUpdate<V>, CacheError> {
        self.core.update(key.as_ref(), update)
    }

    /// Sets the key's value to `new` if it is `expected`, and returns true if it was. [`None`] stands for an absent
    /// key: `compare_and_swap(key, Some(old), None)` removes it. Atomicity and time to live are those of
    /// [`Cache::update_with`] with [`CacheUpdate::Put`].
    ///
    /// ```
    /// # fn main() -> Result<(), leafpress::CacheError> {
    /// let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// assert!(cache.compare_and_swap("lock", None, Some(b"me"))?);
    /// assert!(!cache.compare_and_swap("lock", None, Some(b"you"))?);
    /// assert!(cache.compare_and_swap("lock", Some(b"me"), None)?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Cache::insert`]; the record is then unchanged.
    pub fn compare_and_swap(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool, CacheError> {
        let mut is_expected = false;
        self.core.update(key.as_ref(), |found| {
            is_expected = found == expected;
            if is_expected { new.into() } else { CacheUpdate::Keep }
        })?;
        Ok(is_expected)
    }

    /// Inserts or replaces a record as [`Cache::insert`] does, and returns the previous value, or [`None`] if the key
    /// was absent. It is atomic for the key as [`Cache::update_with`] is, and unlike [`Cache::insert`] it reads the
    /// disk.
    ///
    /// ```
    /// # fn main() -> Result<(), leafpress::CacheError> {
    /// let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// assert_eq!(cache.swap("user:42", "Ada")?, None);
    /// assert_eq!(cache.swap("user:42", "Grace")?.as_deref(), Some(b"Ada".as_slice()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Cache::insert`]; the record is then unchanged.
    pub fn swap(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        value: &(impl AsRef<[u8]> + ?Sized),
    ) -> Result<Option<Vec<u8>>, CacheError> {
        self.exchange(
            key.as_ref(),
            CacheUpdate::PutWith(value.as_ref(), InsertOptions::default()),
        )
    }

    /// Removes the key and returns its value, or [`None`] if the key was absent. Of several threads that take a record,
    /// exactly one gets it.
    ///
    /// ```
    /// # fn main() -> Result<(), leafpress::CacheError> {
    /// let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// cache.insert("token", "secret")?;
    /// assert_eq!(cache.take("token")?.as_deref(), Some(b"secret".as_slice()));
    /// assert_eq!(cache.take("token")?, None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Cache::remove`]; the record is then still present.
    pub fn take(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<Option<Vec<u8>>, CacheError> {
        self.exchange(key.as_ref(), CacheUpdate::Remove)
    }

    /// Applies `answer` whatever the current value is, and returns that value.
    fn exchange(&self, key: &[u8], answer: CacheUpdate<&[u8]>) -> Result<Option<Vec<u8>>, CacheError> {
        let mut old = Ok(None);
        self.core.update(key, |found| {
            old = found.map(copied).transpose();
            if old.is_ok() { answer } else { CacheUpdate::Keep }
        })?;
        Ok(old?)
    }
}

/// The state of a key when it was looked up.
struct Before {
    /// The stored record, expired or not; [`None`] if there is none.
    stored: Option<Vec<u8>>,
    is_in_tree: bool,
    /// Version of the disk tier, taken before the record was looked up.
    version: u64,
    now: Duration,
    /// Stamp of before the look-up.
    stamp: u64,
    /// Whether the record is expired.
    is_expired: bool,
}

impl Before {
    /// The attributes of a record with another value or expiry, and the same tags and time to idle.
    fn attributes(&self, expiry: Option<Expiry>) -> Attributes {
        let stored = self.stored.as_deref();
        Attributes {
            expiry,
            tags: stored.and_then(|stored| record::tags_with_stamp(stored, self.stamp)),
            to_idle: stored.and_then(record::idle_period),
        }
    }

    /// The value that a reader would have found.
    fn value(&self) -> Option<&[u8]> {
        let stored = self.stored.as_deref()?;
        (!self.is_expired).then(|| record::read(stored).0)
    }
}

impl CacheInner {
    /// Implements [`Cache::update_with`].
    pub(super) fn update<V: AsRef<[u8]>>(
        &self,
        key: &[u8],
        mut update: impl FnMut(Option<&[u8]>) -> CacheUpdate<V>,
    ) -> Result<CacheUpdate<V>, CacheError> {
        loop {
            let before = self.look(key)?;
            let answer = update(before.value());
            let is_done = match &answer {
                CacheUpdate::Put(value) => {
                    let attributes = match (before.value(), &before.stored) {
                        (Some(_), Some(stored)) => before.attributes(record::expiry(stored)),
                        _ => Attributes {
                            expiry: self.insertion_expiry(key, None),
                            ..Attributes::default()
                        },
                    };
                    self.put_over(key, &before, value.as_ref(), &attributes)?
                }
                CacheUpdate::PutWith(value, entry) => {
                    let attributes = self.attributes_by(key, *entry, before.stamp)?;
                    self.put_over(key, &before, value.as_ref(), &attributes)?
                }
                CacheUpdate::Remove => self.remove_over(key, &before)?,
                CacheUpdate::Keep => {
                    self.note_kept(key, &before);
                    true
                }
            };
            if is_done {
                return Ok(answer);
            }
        }
    }

    /// Implements [`Cache::expire`].
    pub(super) fn set_expiry(&self, key: &[u8], ttl: Option<Duration>) -> Result<bool, CacheError> {
        let ttl = expiry::checked_ttl(ttl)?;
        loop {
            let before = self.look(key)?;
            let Some(value) = before.value() else {
                return Ok(false);
            };
            let _in_hand = self.before_store(value);
            let put = |record: &[u8]| self.write_over(key, &before, Some(record));
            if self.with_record(value, &before.attributes(self.expiry(ttl)), put)? {
                self.note_stored((key.len() + value.len()) as u64);
                return Ok(true);
            }
        }
    }

    /// The attributes of a record inserted now. `stamp` is of before its value was made.
    pub(super) fn attributes_by(&self, key: &[u8], entry: InsertOptions, stamp: u64) -> Result<Attributes, CacheError> {
        entry.check()?;
        Ok(Attributes {
            expiry: self.insertion_expiry(key, entry.ttl),
            tags: entry
                .tags
                .stamped(entry.since.map_or(stamp, |since| since.0.min(stamp))),
            to_idle: entry.time_to_idle,
        })
    }

    /// The stamp of a record that is inserted now; 0 if it has no tags.
    pub(super) fn stamp_for(&self, entry: &InsertOptions) -> u64 {
        if entry.tags.ids().is_empty() { 0 } else { self.stamp() }
    }

    /// The stamp of a record whose value is made from now on.
    pub(super) fn stamp(&self) -> u64 {
        self.tags.stamp(self.clock.now())
    }

    /// Looks up the key in the tree and on disk. A record that cannot be read is removed, and is absent.
    fn look(&self, key: &[u8]) -> Result<Before, CacheError> {
        self.check_open()?;
        self.apply_queued_reads();
        self.look_in_tiers(key)?.or_else(|error| {
            self.damaged::<()>(key, error)?;
            // It cannot be removed if this fails too.
            Ok(self.look_in_tiers(key)??)
        })
    }

    /// Looks up the key; the inner result is the tree's error if the record cannot be read.
    fn look_in_tiers(&self, key: &[u8]) -> Result<Result<Before, tree::TreeError>, CacheError> {
        let now = self.clock.now();
        let mut before = Before {
            stored: None,
            is_in_tree: false,
            version: self.disk.as_ref().map_or(0, |disk| disk.version(disk.hash(key))),
            now,
            stamp: self.tags.stamp(now),
            is_expired: false,
        };
        match self.tree.get_with(key, copied) {
            Ok(Some(stored)) => {
                before.stored = Some(stored?);
                before.is_in_tree = true;
            }
            Ok(None) => {
                let mut stored = Vec::new();
                if let Some(disk) = &self.disk
                    && disk.find(disk.hash(key), key, &mut stored)?
                {
                    disk.note_hit();
                    before.stored = Some(stored);
                }
            }
            Err(error) => return Ok(Err(error)),
        }
        let stored = before.stored.as_deref();
        before.is_expired = stored.is_some_and(|stored| record::is_expired(self.read(stored).1, || now));
        Ok(Ok(before))
    }

    /// Replaces the record found before; returns false if the record has changed since.
    fn put_over(&self, key: &[u8], before: &Before, value: &[u8], attributes: &Attributes) -> Result<bool, CacheError> {
        let keeps = self.keeps(key, value)?;
        let is_done = if keeps {
            let _in_hand = self.before_store(value);
            self.with_record(value, attributes, |record| self.write_over(key, before, Some(record)))?
        } else {
            self.write_over(key, before, None)?
        };
        if is_done {
            self.notify_of_previous(key, before, RemovalCause::Replaced);
            if keeps {
                self.note_stored(self.count_insert(key, value));
            } else {
                self.counters.add(Count::TooLarge, 1);
            }
        }
        Ok(is_done)
    }

    /// Removes the record found before, if there was one; returns false if the record has changed since.
    fn remove_over(&self, key: &[u8], before: &Before) -> Result<bool, CacheError> {
        let is_done = self.write_over(key, before, None)?;
        if is_done && before.stored.is_some() {
            if before.value().is_some() {
                self.counters.add(Count::Removes, 1);
            }
            self.notify_of_previous(key, before, RemovalCause::Removed);
        }
        Ok(is_done)
    }

    fn may_be_on_disk(&self, key: &[u8]) -> bool {
        self.disk
            .as_ref()
            .is_some_and(|disk| disk.may_have(disk.hash(key), key))
    }

    /// Writes a record, or a removal, if the record found before is still current; returns true if it was. Then a load
    /// of the key is superseded, also by a removal that found nothing.
    fn write_over(&self, key: &[u8], before: &Before, record: Option<&[u8]>) -> Result<bool, tree::TreeError> {
        // The record may be spilled later, and an older record, or one that could not be read temporarily, may be on
        // disk: a tombstone hides it.
        let leaves_tombstone = self.disk.is_some() && (before.stored.is_some() || self.may_be_on_disk(key));
        let record = record.or(leaves_tombstone.then_some(TOMBSTONE));
        let is_same = |found: Option<&[u8]>| {
            let is_same = if before.is_in_tree {
                found == before.stored.as_deref()
            } else {
                let is_newest = |disk: &Arc<Tier>| disk.version(disk.hash(key)) == before.version;
                found.is_none() && self.disk.as_ref().is_none_or(is_newest)
            };
            if is_same {
                self.loads.supersede(key);
            }
            is_same
        };
        let is_done = self.tree.write_if(key, record, &is_same);
        if let (Some(disk), Ok(true) | Err(_)) = (&self.disk, &is_done) {
            disk.note_change(key);
        }
        is_done
    }

    /// Marks a record as used that was looked up and left unchanged.
    fn note_kept(&self, key: &[u8], before: &Before) {
        let stored = before.stored.as_deref().filter(|_| before.value().is_some());
        if stored.is_some_and(|stored| self.wants_touch(stored, before.now)) {
            self.queue_read(key);
        }
    }

    /// Notifies the listener of the record that was present before.
    fn notify_of_previous(&self, key: &[u8], before: &Before, cause: RemovalCause) {
        let Some(stored) = before.stored.as_deref().filter(|stored| !record::is_tombstone(stored)) else {
            return;
        };
        let cause = match before.is_expired {
            false => cause,
            true if before.is_in_tree => {
                self.counters.add(Count::Expired, 1);
                RemovalCause::Expired
            }
            // The listener is not called for records that expire on disk.
            true => return,
        };
        if self.listener.is_some() {
            self.notify(key, copied(record::read(stored).0).ok(), cause);
        }
    }
}
