//! Operations that do not read the disk.

use super::Cache;
use super::counters::{Count, Outcome};
use super::error::CacheError;
use super::inner::Seen;
use super::observer::Observer;

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
        core.observer.end_get(began, Outcome::of(true, false));
        if seen.wants_touch {
            core.touch(key);
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
