//! The map that users see: putting records in, finding them, taking them out.

use super::{Cache, CacheError, CacheRange, InsertOptions};
use crate::tree::KeyRange;
use leafpress_base::mem::room::{TryGrow, copied, room_for};

impl Cache {
    /// Inserts or replaces. Other records may make room for it, or it for others later.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// cache.insert("user:42", "Ada")?;
    /// assert_eq!(cache.get("user:42")?.as_deref(), Some(b"Ada".as_slice()));
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// [`CacheError::KeyTooLong`], [`CacheError::ValueTooLong`], [`CacheError::OutOfMemory`] when the system has no more, or
    /// [`CacheError::Codec`]. The key's old record may then still be there.
    pub fn insert(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        value: &(impl AsRef<[u8]> + ?Sized),
    ) -> Result<(), CacheError> {
        let expiry = self.core.default_expiry();
        self.core.insert(key.as_ref(), value.as_ref(), expiry)
    }

    /// As [`Cache::insert`], for a record that expires, or other than the default says.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// use std::time::Duration;
    /// use leafpress::cache::InsertOptions;
    ///
    /// cache.insert_entry("session:7", "open", InsertOptions::ttl(Duration::from_secs(60)))?;
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Cache::insert`]; [`CacheError::Option`] for a time to live that is not from 1 s to 10 years.
    pub fn insert_entry(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        value: &(impl AsRef<[u8]> + ?Sized),
        entry: InsertOptions,
    ) -> Result<(), CacheError> {
        let expiry = self.core.expiry_by(entry)?;
        self.core.insert(key.as_ref(), value.as_ref(), expiry)
    }

    /// The key's value, copied; [`None`] when it is not there.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// # cache.insert("user:42", "Ada")?;
    /// # cache.insert("user:43", "Grace")?;
    /// assert_eq!(cache.get("user:42")?.as_deref(), Some(b"Ada".as_slice()));
    /// assert_eq!(cache.get("user:1")?, None);
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// [`CacheError::OutOfMemory`]. A record that cannot be decoded is not there, and counted in [`CacheStats::damaged`](crate::cache::CacheStats::damaged).
    pub fn get(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<Option<Vec<u8>>, CacheError> {
        Ok(self.core.get(key.as_ref(), copied)?.transpose()?)
    }

    /// Replaces the content of `value` by the key's value and returns true; leaves `value` empty and returns false when it is not there.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// # cache.insert("user:42", "Ada")?;
    /// # cache.insert("user:43", "Grace")?;
    /// let mut value = Vec::new();
    /// // One buffer for many reads.
    /// assert!(cache.get_into("user:42", &mut value)? && value == b"Ada");
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Cache::get`].
    pub fn get_into(&self, key: &(impl AsRef<[u8]> + ?Sized), value: &mut Vec<u8>) -> Result<bool, CacheError> {
        value.clear();
        let found = self.core.get(key.as_ref(), |found| value.try_append(found))?;
        Ok(found.transpose()?.is_some())
    }

    /// Calls `read` with the key's value and returns what it returns; [`None`] when it is not there. The bytes are the cache's own, or a
    /// decode buffer's; memory is not reclaimed while `read` runs.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// # cache.insert("user:42", "Ada")?;
    /// # cache.insert("user:43", "Grace")?;
    /// assert_eq!(cache.get_with("user:42", |value| value.len())?, Some(3));
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Cache::get`].
    #[inline]
    pub fn get_with<R>(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, CacheError> {
        self.core.get(key.as_ref(), read)
    }

    /// The keys' values, copied, in the order of the keys; [`None`] for those that are not there. It takes less time than as many
    /// [`Cache::get`]s: the reads wait for memory together, unless there is a disk tier. They need not be of one moment.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// # cache.insert("user:42", "Ada")?;
    /// # cache.insert("user:43", "Grace")?;
    /// let values = cache.get_many(&["user:42", "user:1"])?;
    /// assert_eq!(values, [Some(b"Ada".to_vec()), None]);
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Cache::get`].
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>, CacheError> {
        let mut values = room_for(keys.len())?;
        self.core.get_many(keys, |_, value| values.push(value.map(copied)))?;
        let values = values.into_iter().map(|value| Ok(value.transpose()?));
        values.collect()
    }

    /// Calls `read` with the index in `keys` and the value of each key, in order; [`None`] where it is not there. What is said of
    /// [`Cache::get_many`] and [`Cache::get_with`] holds.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// # cache.insert("user:42", "Ada")?;
    /// # cache.insert("user:43", "Grace")?;
    /// let mut found = 0;
    /// cache.get_many_with(&["user:42", "user:1"], |_, value| found += usize::from(value.is_some()))?;
    /// assert_eq!(found, 1);
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Cache::get`].
    pub fn get_many_with<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        read: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), CacheError> {
        self.core.get_many(keys, read)
    }

    /// Whether the key is there. It counts as a read.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// # cache.insert("user:42", "Ada")?;
    /// # cache.insert("user:43", "Grace")?;
    /// assert!(cache.contains_key("user:42")? && !cache.contains_key("user:1")?);
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Cache::get`].
    pub fn contains_key(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<bool, CacheError> {
        Ok(self.core.get(key.as_ref(), |_| ())?.is_some())
    }

    /// Removes the key; whether it was there. Where the disk tier may have it, the disk is read for that: see [`Cache::invalidate`].
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// # cache.insert("user:42", "Ada")?;
    /// # cache.insert("user:43", "Grace")?;
    /// assert!(cache.remove("user:42")?);
    /// assert!(!cache.remove("user:42")?);
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// [`CacheError::OutOfMemory`] or [`CacheError::Codec`]; the record is then still there.
    pub fn remove(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<bool, CacheError> {
        self.core.remove(key.as_ref())
    }

    /// The records in memory whose keys are in `range`, in key order, from either end: [`Cache::scan`] has those on disk too. It counts for none of them as a read.
    ///
    /// A key that is in memory from the scan's start to its end is seen exactly once; one that comes or goes meanwhile may or may not be.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// # cache.insert("user:42", "Ada")?;
    /// # cache.insert("user:43", "Grace")?;
    /// for record in cache.range("user:43"..) {
    ///     let (key, value) = record?;
    ///     assert!(key == b"user:43" && value == b"Grace");
    /// }
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    pub fn range(&self, range: impl KeyRange) -> CacheRange<'_> {
        CacheRange::new(&self.core, self.core.tree.range(range))
    }

    /// The records whose keys begin with `prefix`. What is said of [`Cache::range`] holds.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// # cache.insert("user:42", "Ada")?;
    /// # cache.insert("user:43", "Grace")?;
    /// assert_eq!(cache.prefix("user:").count(), 2);
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    pub fn prefix(&self, prefix: &(impl AsRef<[u8]> + ?Sized)) -> CacheRange<'_> {
        CacheRange::new(&self.core, self.core.tree.prefix(prefix))
    }

    /// Removes every record, in memory and on disk, and gives the memory back. What was learnt stays: the dictionary.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// # cache.insert("user:42", "Ada")?;
    /// # cache.insert("user:43", "Grace")?;
    /// cache.clear()?;
    /// assert_eq!(cache.get("user:42")?, None);
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// [`CacheError::OutOfMemory`]: some may still be there.
    pub fn clear(&self) -> Result<(), CacheError> {
        self.core.clear()
    }
}
