//! Writes that go by what is there: reading and writing in one atomic step.
//!
//! What is there is looked for, the caller says with no lock held what becomes of it, and his answer is carried out if it is still what is
//! there; else all begins anew. A record in the tree is, while the tree has the same bytes. What was found on disk, or nowhere, is, while
//! there is nothing in the tree and no record of the key has left it since. A load of the key that is under way is superseded.

use std::sync::Arc;
use std::time::Duration;

use super::counters::Count;
use super::disk::Tier;
use super::error::CacheError;
use super::expiry::Expiry;
use super::inner::CacheInner;
use super::listener::RemovalCause;
use super::record::{self, TOMBSTONE};
use super::{Cache, InsertOptions, options};
use crate::tree;
use leafpress_base::mem::room::copied;

/// What becomes of a record: the answer of the closure that [`Cache::update_with`] calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheUpdate<V> {
    /// The key has this value from now on. A record that is there keeps its time to live; a new one has the cache's default.
    Put(V),
    /// The key has this value from now on, and a time to live as [`Cache::insert_entry`] would give it.
    PutWith(V, InsertOptions),
    /// The key is not there from now on.
    Remove,
    /// All stays as it is.
    Keep,
}

/// A value is put; [`None`] removes.
impl<V> From<Option<V>> for CacheUpdate<V> {
    fn from(value: Option<V>) -> Self {
        value.map_or(Self::Remove, Self::Put)
    }
}

impl Cache {
    /// Has `update` say what becomes of the key's record, from the value that it has, [`None`] when it is not there. Returns its answer.
    ///
    /// Atomic for the key: what `update` was shown is what the key had when its answer was carried out, in memory or on disk. So no step of
    /// a counter is lost while its record is there; but a cache may forget it, as any record, and then the count begins anew. No lock is
    /// held while `update` runs, so that it may use the cache; where another thread has changed the record meanwhile it is called again, so
    /// it should do nothing else than compute.
    ///
    /// It counts as an insertion, a removal or nothing, by what was done, and neither as a hit nor as a miss. A time to idle begins anew.
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
    /// As [`Cache::insert`] and [`Cache::insert_entry`]; the record is then as it was.
    pub fn update_with<V: AsRef<[u8]>>(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        update: impl FnMut(Option<&[u8]>) -> CacheUpdate<V>,
    ) -> Result<CacheUpdate<V>, CacheError> {
        self.core.update(key.as_ref(), update)
    }

    /// Gives the key the value `new` if it has the value `expected`; returns whether it had. For both, [`None`] means that the key is not
    /// there: `compare_and_swap(key, Some(old), None)` removes. What is said of [`Cache::update_with`] and [`CacheUpdate::Put`] holds.
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
    /// As [`Cache::insert`]; the record is then as it was.
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

    /// Inserts or replaces as [`Cache::insert`] does, and returns the value that the key had; [`None`] when it was not there. Atomic for the
    /// key, as [`Cache::update_with`] says, on disk as in memory, where [`Cache::insert`] does not look.
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
    /// As [`Cache::insert`]; the record is then as it was.
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

    /// Removes the key and returns the value that it had; [`None`] when it was not there. Of several threads that take a record one gets it.
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
    /// As [`Cache::remove`]; the record is then still there.
    pub fn take(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<Option<Vec<u8>>, CacheError> {
        self.exchange(key.as_ref(), CacheUpdate::Remove)
    }

    /// Does what `answer` says whatever is there, which is returned.
    fn exchange(&self, key: &[u8], answer: CacheUpdate<&[u8]>) -> Result<Option<Vec<u8>>, CacheError> {
        let mut old = Ok(None);
        self.core.update(key, |found| {
            old = found.map(copied).transpose();
            if old.is_ok() { answer } else { CacheUpdate::Keep }
        })?;
        Ok(old?)
    }
}

/// What a key had when that was looked for.
struct Before {
    /// The record as it is kept, over or not; [`None`] where there is none.
    stored: Option<Vec<u8>>,
    is_in_tree: bool,
    /// That of the disk tier, from before the record was looked for.
    version: u64,
    now: Duration,
}

impl Before {
    fn is_expired(&self) -> bool {
        let stored = self.stored.as_deref();
        stored.is_some_and(|stored| record::is_expired(record::read(stored).1, || self.now))
    }

    /// The value that a reader would have found.
    fn value(&self) -> Option<&[u8]> {
        let stored = self.stored.as_deref()?;
        (!self.is_expired()).then(|| record::read(stored).0)
    }
}

impl CacheInner {
    /// See [`Cache::update_with`].
    fn update<V: AsRef<[u8]>>(
        &self,
        key: &[u8],
        mut update: impl FnMut(Option<&[u8]>) -> CacheUpdate<V>,
    ) -> Result<CacheUpdate<V>, CacheError> {
        let mut was_damaged = false;
        loop {
            let before = match self.look(key)? {
                Ok(before) => before,
                // Taken out, it is not there the next time; where that cannot be done this ends.
                Err(error) if was_damaged => return Err(error.into()),
                Err(error) => {
                    was_damaged = true;
                    self.damaged::<()>(key, error)?;
                    continue;
                }
            };
            let answer = update(before.value());
            let is_done = match &answer {
                CacheUpdate::Put(value) => {
                    let expiry = match (before.value(), &before.stored) {
                        (Some(_), Some(stored)) => record::expiry(stored),
                        _ => self.default_expiry(),
                    };
                    self.put_over(key, &before, value.as_ref(), expiry)?
                }
                CacheUpdate::PutWith(value, entry) => {
                    let expiry = self.expiry_by(*entry)?;
                    self.put_over(key, &before, value.as_ref(), expiry)?
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

    /// When a record expires that is inserted now.
    pub(super) fn expiry_by(&self, entry: InsertOptions) -> Result<Option<Expiry>, CacheError> {
        if let Some(ttl) = entry.ttl {
            options::check_ttl("ttl", ttl)?;
        }
        Ok(self.expiry(entry.ttl.or(self.times.to_live)))
    }

    /// What the key has, in the tree or on disk; an error of the tree where that cannot be read.
    fn look(&self, key: &[u8]) -> Result<Result<Before, tree::TreeError>, CacheError> {
        self.apply_touches();
        let mut before = Before {
            stored: None,
            is_in_tree: false,
            version: self.disk.as_ref().map_or(0, |disk| disk.version(disk.hash(key))),
            now: self.clock.now(),
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
        Ok(Ok(before))
    }

    /// Puts a value in the place of what was there before; false where something else is there now.
    fn put_over(&self, key: &[u8], before: &Before, value: &[u8], expiry: Option<Expiry>) -> Result<bool, CacheError> {
        let keeps = self.keeps(key, value)?;
        let is_done = if keeps {
            self.before_store(value);
            self.with_record(value, expiry, |record| self.write_over(key, before, Some(record)))?
        } else {
            self.write_over(key, before, None)?
        };
        if is_done {
            self.tell_of(key, before, RemovalCause::Replaced);
            if keeps {
                self.note_stored(self.count_insert(key, value));
            } else {
                self.counters.count(Count::TooLarge);
            }
        }
        Ok(is_done)
    }

    /// Removes what was there before, if anything was; false where something else is there now.
    fn remove_over(&self, key: &[u8], before: &Before) -> Result<bool, CacheError> {
        let is_done = self.write_over(key, before, None)?;
        if is_done && before.stored.is_some() {
            if before.value().is_some() {
                self.counters.count(Count::Removes);
            }
            self.tell_of(key, before, RemovalCause::Removed);
        }
        Ok(is_done)
    }

    fn may_be_on_disk(&self, key: &[u8]) -> bool {
        self.disk
            .as_ref()
            .is_some_and(|disk| disk.may_have(disk.hash(key), key))
    }

    /// Writes a record, or removes what is there, if that is what was there before; returns whether it was. Then a load of the key is
    /// superseded, also by a removal that found nothing.
    fn write_over(&self, key: &[u8], before: &Before, record: Option<&[u8]>) -> Result<bool, tree::TreeError> {
        // What is there may get to the disk, and something older, or something that could not be read for a moment, may be there: a tombstone
        // hides it.
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

    /// A record that was looked at, and stays as it is, was in use.
    fn note_kept(&self, key: &[u8], before: &Before) {
        let stored = before.stored.as_deref().filter(|_| before.value().is_some());
        if stored.is_some_and(|stored| self.wants_touch(stored, before.now)) {
            self.touch(key);
        }
    }

    /// Tells of what was there before and is not any more.
    fn tell_of(&self, key: &[u8], before: &Before, cause: RemovalCause) {
        let Some(stored) = before.stored.as_deref().filter(|stored| !record::is_tombstone(stored)) else {
            return;
        };
        let cause = match before.is_expired() {
            false => cause,
            true if before.is_in_tree => {
                self.counters.count(Count::Expired);
                RemovalCause::Expired
            }
            // What is over on disk is told of by nobody.
            true => return,
        };
        if self.listener.is_some() {
            self.tell(key, copied(record::read(stored).0).ok(), cause);
        }
    }
}
