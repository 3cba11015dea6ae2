//! Reads without an effect on the cache, and the times to live of records.

use std::time::Duration;

use super::Cache;
use super::disk_lookup::Lookup;
use super::error::CacheError;
use super::inner::CacheInner;
use super::record;
use crate::tree;
use leafpress_base::mem::room::copied;

impl Cache {
    /// Returns a copy of the key's value, or [`None`] if the key is absent, without an effect on the cache: the record
    /// does not count as read for eviction and `time_to_idle`, is not promoted from disk, and neither a hit nor a miss
    /// is counted.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// # cache.insert("user:42", "Ada")?;
    /// assert_eq!(cache.peek("user:42")?.as_deref(), Some(b"Ada".as_slice()));
    /// assert_eq!(cache.stats().hits, 0);
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`CacheError::OutOfMemory`] or [`CacheError::Closed`]. A record that cannot be decoded counts as absent.
    pub fn peek(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<Option<Vec<u8>>, CacheError> {
        Ok(self.peek_with(key, copied)?.transpose()?)
    }

    /// Calls `read` with the key's value and returns its result, or [`None`] if the key is absent, without an effect on
    /// the cache: see [`Cache::peek`]. The bytes are valid as in [`Cache::get_with`].
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// # cache.insert("user:42", "Ada")?;
    /// assert_eq!(cache.peek_with("user:42", |value| value.len())?, Some(3));
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Cache::peek`].
    pub fn peek_with<R>(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, CacheError> {
        self.core.peek(key.as_ref(), |stored| read(record::read(stored).0))
    }

    /// Returns what is left of the record's time to live, to the millisecond: [`Duration::MAX`] if it has none, and
    /// [`None`] if the key is absent. The time to idle is not considered. It has no effect on the cache, as
    /// [`Cache::peek`].
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// use std::time::Duration;
    /// use leafpress::cache::InsertOptions;
    ///
    /// cache.insert("user:42", "Ada")?;
    /// cache.insert_entry("session:7", "open", InsertOptions::ttl(Duration::from_secs(60)))?;
    /// assert!(cache.ttl("session:7")?.is_some_and(|ttl| ttl <= Duration::from_secs(60)));
    /// assert_eq!(cache.ttl("user:42")?, Some(Duration::MAX));
    /// assert_eq!(cache.ttl("user:1")?, None);
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Cache::peek`].
    pub fn ttl(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<Option<Duration>, CacheError> {
        let now = self.core.clock.now();
        self.core.peek(key.as_ref(), |stored| {
            record::expiry(stored).map_or(Duration::MAX, |expiry| expiry.left(now))
        })
    }

    /// Sets the record's time to live, from now on, and returns true if the key is present. With [`None`] or
    /// [`Duration::MAX`] it has none from now on; the default of the cache does not apply. The value is unchanged. It
    /// is atomic for the key, in memory and on disk, as [`Cache::update_with`] is; it counts as a write for
    /// `time_to_idle`, and neither as an insertion nor as a hit.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// use std::time::Duration;
    ///
    /// cache.insert("session:7", "open")?;
    /// assert!(cache.expire("session:7", Some(Duration::from_secs(60)))?);
    /// assert!(cache.expire("session:7", None)?);
    /// assert_eq!(cache.ttl("session:7")?, Some(Duration::MAX));
    /// assert!(!cache.expire("session:8", None)?);
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`CacheError::Option`] for a time to live that is not between 1 ms and 10 years, and the errors of
    /// [`Cache::insert`]; the record is then unchanged.
    pub fn expire(&self, key: &(impl AsRef<[u8]> + ?Sized), ttl: Option<Duration>) -> Result<bool, CacheError> {
        self.core.set_expiry(key.as_ref(), ttl)
    }
}

impl CacheInner {
    /// Calls `read` with the stored record of a key that is present and not expired, without any effect.
    fn peek<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, CacheError> {
        let mut read = Some(read);
        let lookup = self.disk.as_ref().map(|disk| (disk, Lookup::new(disk, key)));
        let mut look = || match self.peek_in_memory(key, |stored| read.take().map(|read| read(stored))) {
            Ok(found) => Ok(found.map(Option::flatten)),
            Err(error) => match error.into() {
                memory @ CacheError::OutOfMemory { .. } => Err(memory),
                _ => Ok(Some(None)),
            },
        };
        let mut found = look()?;
        // A read of the record may still be queued.
        if matches!(found, Some(None)) && self.apply_queued_reads() {
            found = look()?;
        }
        match (found, lookup) {
            (Some(Some(found)), _) => Ok(Some(found)),
            (None, Some((disk, lookup))) => {
                let mut stored = Vec::new();
                if !disk.find(lookup.hash, key, &mut stored)? {
                    return self.absent();
                }
                Ok(self
                    .unexpired_record(&stored)
                    .and_then(|stored| Some(read.take()?(stored))))
            }
            _ => self.absent(),
        }
    }

    /// Looks up a key in the tree without any effect: absent, expired (`Some(None)`), or the result of `read`.
    pub(super) fn peek_in_memory<R>(
        &self,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<Option<R>>, tree::TreeError> {
        self.tree
            .peek_with(key, |stored| self.unexpired_record(stored).map(read))
    }

    fn unexpired_record<'r>(&self, stored: &'r [u8]) -> Option<&'r [u8]> {
        let expiry = self.read(stored).1;
        (!record::is_expired(expiry, || self.clock.now())).then_some(stored)
    }
}
