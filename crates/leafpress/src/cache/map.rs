//! The map interface: inserting, reading and removing records.

use super::record::Attributes;
use super::{Cache, CacheError, CacheRange, InsertOptions};
use crate::tree::KeyRange;
use leafpress_base::mem::room::{TryGrow, copied, room_for};

impl Cache {
    /// Inserts or replaces a record. Other records may be evicted for it, and it may be evicted later.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// cache.insert("user:42", "Ada")?;
    /// assert_eq!(cache.get("user:42")?.as_deref(), Some(b"Ada".as_slice()));
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`CacheError::KeyTooLong`], [`CacheError::ValueTooLong`], [`CacheError::OutOfMemory`] if the system has
    /// no memory left, or [`CacheError::Codec`]. The key's old record may then still be present.
    pub fn insert(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        value: &(impl AsRef<[u8]> + ?Sized),
    ) -> Result<(), CacheError> {
        let key = key.as_ref();
        let expiry = self.core.insertion_expiry(key, None);
        self.core.insert(
            key,
            value.as_ref(),
            &Attributes {
                expiry,
                ..Attributes::default()
            },
        )
    }

    /// Inserts or replaces a record with options of its own, such as a time to live.
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
    /// Returns the errors of [`Cache::insert`], and [`CacheError::Option`] for a time to live that is not between 1 ms
    /// and 10 years or for more than 8 tags.
    pub fn insert_entry(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        value: &(impl AsRef<[u8]> + ?Sized),
        entry: InsertOptions,
    ) -> Result<(), CacheError> {
        let key = key.as_ref();
        let attributes = self.core.attributes_by(key, entry, self.core.stamp_for(&entry))?;
        self.core.insert(key, value.as_ref(), &attributes)
    }

    /// Returns a copy of the key's value, or [`None`] if the key is absent.
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
    /// Returns [`CacheError::OutOfMemory`]. A record that cannot be decoded counts as absent and is counted in
    /// [`CacheStats::damaged`](crate::cache::CacheStats::damaged).
    pub fn get(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<Option<Vec<u8>>, CacheError> {
        Ok(self.core.get(key.as_ref(), copied)?.transpose()?)
    }

    /// Replaces the content of `value` by the key's value and returns true; clears `value` and returns false if the key
    /// is absent.
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
    /// Returns the errors of [`Cache::get`].
    pub fn get_into(&self, key: &(impl AsRef<[u8]> + ?Sized), value: &mut Vec<u8>) -> Result<bool, CacheError> {
        value.clear();
        let found = self.core.get(key.as_ref(), |found| value.try_append(found))?;
        Ok(found.transpose()?.is_some())
    }

    /// Calls `read` with the key's value and returns its result, or [`None`] if the key is absent. The bytes belong to
    /// the cache or to a decode buffer. Memory is not reclaimed while `read` runs, so keep it short.
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
    /// Returns the errors of [`Cache::get`].
    #[inline]
    pub fn get_with<R>(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, CacheError> {
        self.core.get(key.as_ref(), read)
    }

    /// Returns copies of the values of several keys, in the order of `keys`, with [`None`] for absent keys. It takes
    /// less time than as many calls of [`Cache::get`]: the memory accesses of the reads overlap, and of each 64 keys
    /// those that are on disk are read by one batch. In a cache whose records have a time to idle the keys are read one
    /// after another. The values are not a snapshot of one moment.
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
    /// Returns the errors of [`Cache::get`].
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>, CacheError> {
        let mut values = room_for(keys.len())?;
        self.core.get_many(keys, |_, value| values.push(value.map(copied)))?;
        let values = values.into_iter().map(|value| Ok(value.transpose()?));
        values.collect()
    }

    /// Calls `read` with the index in `keys` and the value of each key, in order, and with [`None`] for absent keys.
    /// The disk is read as by [`Cache::get_many`], and the bytes are valid as in [`Cache::get_with`].
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
    /// Returns the errors of [`Cache::get`].
    pub fn get_many_with<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        read: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), CacheError> {
        self.core.get_many(keys, read)
    }

    /// Returns true if the key is present. Counts as a read.
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
    /// Returns the errors of [`Cache::get`].
    pub fn contains_key(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<bool, CacheError> {
        Ok(self.core.get(key.as_ref(), |_| ())?.is_some())
    }

    /// Removes the key and returns true if it was present. If the disk tier may have the key, the disk is read to find
    /// out: [`Cache::invalidate`] avoids that.
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
    /// Returns [`CacheError::OutOfMemory`] or [`CacheError::Codec`]; the record is then still present.
    pub fn remove(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<bool, CacheError> {
        self.core.remove(key.as_ref())
    }

    /// Returns an iterator over the records in memory whose keys are in `range`, in key order, from either end.
    /// [`Cache::scan`] visits the records on disk too. The records do not count as read.
    ///
    /// A key that is in memory from the start of the scan to its end is seen exactly once; one that is inserted or
    /// removed meanwhile may or may not be.
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

    /// Returns an iterator over the records in memory whose keys begin with `prefix`, with the guarantees of
    /// [`Cache::range`].
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

    /// Removes every record, in memory and on disk, and returns the memory to the system. The trained dictionary is
    /// kept.
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
    /// Returns [`CacheError::OutOfMemory`]; some records may then still be present.
    pub fn clear(&self) -> Result<(), CacheError> {
        self.core.clear()
    }
}
