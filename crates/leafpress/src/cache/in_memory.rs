//! What can be done without a read of the disk.

use super::Cache;
use super::counters::Count;
use super::error::CacheError;
use super::inner::Seen;
use super::observer::{Observer, Outcome};

impl Cache {
    /// Removes the key, and does not say whether it was there. With a disk tier [`Cache::remove`] may have to read the disk to answer that; this
    /// reads nothing. A listener is notified of a record that was in memory.
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
    /// As [`Cache::remove`].
    pub fn invalidate(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<(), CacheError> {
        self.core.invalidate(key.as_ref())
    }

    /// As [`Cache::get_with`], but does not look on disk, so that it never waits for a device: for who has other work to do while the disk is
    /// read, and then calls [`Cache::get`] or loads the value in a thread that may wait.
    ///
    /// [`None`] means that the key is not in memory. It is not counted as a missed read, which what is called next is.
    ///
    /// # Errors
    /// As [`Cache::get`].
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
        // A record that cannot be decoded, and one that is over, are for the next read: it takes them out, which may wait.
        let Ok(Some(Some(found))) = core.find_in_memory(key, &mut read, &mut seen) else {
            return Ok(None);
        };
        core.counters.count(Count::MemoryHits);
        core.observer.end_get(began, Outcome::of(true, false));
        if seen.wants_touch {
            core.touch(key);
        }
        Ok(Some(found))
    }

    /// Whether there is a disk tier.
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

    /// All that the cache holds in memory, in bytes: what [`CacheStats::bytes_held`](super::CacheStats::bytes_held) says, without a visit of
    /// the leaves.
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
