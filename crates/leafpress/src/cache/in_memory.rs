//! Operations that do not read the disk.

use super::Cache;
use super::counters::{Count, Outcome};
use super::error::CacheError;
use super::inner::Seen;
use super::observer::Observer;
use super::record_tags::id_of;
use super::tags::Moment;

impl Cache {
    /// Removes the key without returning whether it was present. With a disk tier [`Cache::remove`] may have to read
    /// the disk to find out; this method reads nothing. A listener is notified if the record was in memory.
    ///
    /// ```
    /// # fn main() -> Result<(), leafpress::CacheError> {
    /// let cache = leafpress::Cache::builder().build()?;
    /// cache.insert("apple", "red")?;
    /// cache.invalidate("apple")?;
    /// assert_eq!(cache.get("apple")?, None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Cache::remove`].
    pub fn invalidate(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<(), CacheError> {
        self.core.invalidate(key.as_ref())
    }

    /// Invalidates all records that were inserted with the tag by [`InsertOptions::tag`](super::InsertOptions::tag), in
    /// memory and on disk, in constant time: no record is visited. The records are absent from now on, as if they had
    /// expired, and are removed as expired ones are; until then [`Cache::len`] counts them. A record that is inserted
    /// afterwards is valid; one that a loader makes is not if its load began before.
    ///
    /// The invalidations take at most 1/256 of the memory, 16 bytes or less for each. When there are more, a few
    /// records with other tags that are older than the oldest invalidations are invalidated too. They are kept by
    /// [`Cache::close`]; after a crash ([`Disk::recover_after_crash`](super::Disk::recover_after_crash)) no record with
    /// a tag is recovered.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// use leafpress::cache::InsertOptions;
    ///
    /// for page in ["/shop/7", "/shop/7/reviews"] {
    ///     cache.insert_entry(page, "<html>", InsertOptions::default().tag("product:7"))?;
    /// }
    /// cache.invalidate_tag("product:7")?;
    /// assert_eq!(cache.get_many(&["/shop/7", "/shop/7/reviews"])?, [None, None]);
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`CacheError::OutOfMemory`], or [`CacheError::Closed`].
    pub fn invalidate_tag(&self, tag: impl AsRef<[u8]>) -> Result<(), CacheError> {
        let core = &self.core;
        core.check_open()?;
        core.tags
            .invalidate(id_of(tag.as_ref()), core.clock.now(), self.memory())?;
        // `close` is announced before it saves the table: what it may have missed is not reported as done.
        core.check_open()
    }

    /// Returns the present moment, for [`InsertOptions::since`](super::InsertOptions::since): a value that is made from
    /// now on is outdated by invalidations of its tags from now on.
    #[must_use]
    pub fn moment(&self) -> Moment {
        Moment(self.core.stamp())
    }

    /// Calls `read` with the key's value if it is in memory, and never reads the disk, so that it never waits for a
    /// device. It suits callers such as async tasks that do other work during a disk read, and then call [`Cache::get`]
    /// or load the value in a thread that may block.
    ///
    /// Returns [`None`] if the key is not in memory. That is not counted as a miss; the call that follows is counted.
    ///
    /// # Errors
    /// Returns the errors of [`Cache::get`].
    ///
    /// ```
    /// # fn main() -> Result<(), leafpress::CacheError> {
    /// let cache = leafpress::Cache::builder().build()?;
    /// cache.insert("apple", "red")?;
    /// assert_eq!(cache.get_in_memory_with("apple", <[u8]>::len)?, Some(3));
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn get_in_memory_with<R>(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, CacheError> {
        let (core, key) = (&*self.core, key.as_ref());
        let began = Observer::begin_get();
        let (mut seen, mut read) = (Seen::default(), Some(read));
        // Records that cannot be decoded or have expired are left to the next ordinary read, which removes them and may
        // wait.
        let Ok(Some(Some(found))) = core.find_in_memory(key, &mut read, &mut seen) else {
            return core.absent();
        };
        core.counters.add(Count::MemoryHits, 1);
        core.sample_read(key, true);
        core.observer.end_get(began, Outcome::of(true, false));
        if seen.wants_touch {
            core.queue_read(key);
        }
        Ok(Some(found))
    }

    /// Returns true if the cache has a disk tier.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// assert!(!cache.has_disk());
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    #[must_use]
    pub fn has_disk(&self) -> bool {
        self.core.disk.is_some()
    }

    /// Returns all memory that the cache holds, in bytes: the value of
    /// [`CacheStats::bytes_held`](super::CacheStats::bytes_held), without visiting the leaves.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// assert!(cache.bytes_held() <= cache.memory());
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    #[must_use]
    pub fn bytes_held(&self) -> u64 {
        self.core.held_bytes()
    }
}
