//! A cache: records under a bound of memory, compressed.
//!
//! [`Cache`] is a map from byte strings to byte strings that forgets. It is given so many bytes, and never holds more: keys, values, index,
//! holes, dictionaries and what threads keep are all in them. What is asked for least lately makes room. Records may expire.
//!
//! ```
//! # fn main() -> Result<(), leafpress::CacheError> {
//! use std::time::Duration;
//! use leafpress::cache::Entry;
//!
//! let cache = leafpress::Cache::builder().memory(32 << 20).build()?;
//! cache.insert("user:42", "Ada")?;
//! cache.insert_with("session:7", "open", Entry::ttl(Duration::from_secs(60)))?;
//! assert_eq!(cache.get("user:42")?.as_deref(), Some(b"Ada".as_slice()));
//! // One loader a key; others that miss meanwhile wait for it.
//! let value = cache.get_or_insert_with("user:43", || "Grace")?;
//! assert_eq!(value, b"Grace");
//! assert_eq!(cache.prefix("user:").count(), 2);
//! assert!(cache.stats().bytes_held <= 32 << 20);
//! # Ok(())
//! # }
//! ```
//!
//! Inside, `core` holds the parts; `store` puts records in, and `update` those that go by what is there; `budget` says how much the nodes of the tree may hold; `sweep` goes round the leaves, `evict` judges
//! which records make room, and `ghost` knows what left lately; `flights` and `load` see that there is one loader a key; `record` is
//! what stands in front of a value. `observer` and `metrics` are how it is seen from outside.

mod background;
mod budget;
#[cfg(feature = "bytes")]
mod bytes;
mod clock;
mod close;
mod core;
mod counters;
mod disk;
mod error;
mod evict;
mod flights;
mod ghost;
mod in_memory;
mod listener;
mod load;
#[cfg(feature = "metrics")]
mod metrics;
mod observer;
mod options;
mod policy;
mod record;
mod scan;
mod stats;
mod store;
mod sweep;
mod tiers;
mod times;
#[cfg(feature = "serde")]
mod typed;
mod update;
mod wake;
mod words;

use std::fmt;
use std::sync::Arc;

use crate::mem::room::{TryGrow, copied, room_for};
use crate::tree::KeyRange;
pub use clock::{Clock, ManualClock, SystemClock};
pub use disk::{Disk, DiskStats, MIN_DISK_BYTES};
pub use error::{CacheError, LoadError};
pub use listener::{Listener, RemovalCause};
pub use options::{Builder, Entry};
pub use policy::Policy;
pub use record::MAX_VALUE_BYTES;
pub use scan::CacheRange;
pub use stats::CacheStats;
#[cfg(feature = "serde")]
pub use typed::TypedCache;
pub use update::CacheUpdate;

/// A door for the fuzz target of what is on disk. No part of the interface.
#[cfg(feature = "fuzz")]
pub mod fuzz {
    pub use super::disk::ignore_checksums;
}

use self::background::Thread;
use self::core::Core;
use self::disk::Writing;

/// Longest key, in bytes.
pub const MAX_KEY_BYTES: usize = crate::tree::MAX_KEY_BYTES;
/// The least memory that a cache can be given, in bytes.
pub const MIN_MEMORY_BYTES: u64 = 4 << 20;

/// A cache of byte strings in a bound of memory, which keeps its records compressed.
///
/// All methods take `&self` and may be called from any number of threads. A read that finds its key in memory waits for no lock. A cache may forget
/// any record at any time; it never returns a value that was replaced, removed or has expired.
pub struct Cache {
    core: Arc<Core>,
    _thread: Thread,
    _writing: Option<Writing>,
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("name", &self.name())
            .field("memory_bytes", &self.memory())
            .field("tree", &self.core.tree)
            .finish_non_exhaustive()
    }
}

impl Cache {
    /// A builder with every option at its default.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Inserts or replaces. Other records may make room for it, or it for others later.
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
    /// # Errors
    /// As [`Cache::insert`]; [`CacheError::Option`] for a time to live that is not from 1 s to 10 years.
    pub fn insert_with(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        value: &(impl AsRef<[u8]> + ?Sized),
        entry: Entry,
    ) -> Result<(), CacheError> {
        let expiry = self.core.expiry_by(entry)?;
        self.core.insert(key.as_ref(), value.as_ref(), expiry)
    }

    /// The key's value, copied; [`None`] when it is not there.
    ///
    /// # Errors
    /// [`CacheError::OutOfMemory`]. A record that cannot be decoded is not there, and counted in [`CacheStats::damaged`].
    pub fn get(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<Option<Vec<u8>>, CacheError> {
        Ok(self.core.get(key.as_ref(), copied)?.transpose()?)
    }

    /// Replaces the content of `value` by the key's value and returns true; leaves `value` empty and returns false when it is not there.
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
    /// # Errors
    /// As [`Cache::get`].
    pub fn contains_key(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<bool, CacheError> {
        Ok(self.core.get(key.as_ref(), |_| ())?.is_some())
    }

    /// Removes the key; whether it was there.
    ///
    /// # Errors
    /// [`CacheError::OutOfMemory`] or [`CacheError::Codec`]; the record is then still there.
    pub fn remove(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<bool, CacheError> {
        self.core.remove(key.as_ref())
    }

    /// The records whose keys are in `range`, in key order, from either end. It counts for none of them as a read.
    ///
    /// A key that is there from the scan's start to its end is seen exactly once; one that comes or goes meanwhile may or may not be.
    pub fn range(&self, range: impl KeyRange) -> CacheRange<'_> {
        CacheRange::new(&self.core, self.core.tree.range(range))
    }

    /// The records whose keys begin with `prefix`. What is said of [`Cache::range`] holds.
    pub fn prefix(&self, prefix: &(impl AsRef<[u8]> + ?Sized)) -> CacheRange<'_> {
        CacheRange::new(&self.core, self.core.tree.prefix(prefix))
    }

    /// Removes every record.
    ///
    /// # Errors
    /// [`CacheError::OutOfMemory`]: some may still be there.
    pub fn clear(&self) -> Result<(), CacheError> {
        self.core.flights.supersede_all();
        // Nothing leaves memory meanwhile.
        let _held = self.core.hold();
        if let Some(disk) = &self.core.disk {
            disk.forget();
        }
        Ok(self.core.tree.clear()?)
    }

    /// Number of records in memory, those included whose time is over and that have not left yet. Under concurrent writes, a number that was right a
    /// moment ago.
    #[must_use]
    pub fn len(&self) -> usize {
        self.core.tree.len()
    }

    /// Whether there are no records in memory.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the cache is called: see [`Builder::name`].
    #[must_use]
    pub fn name(&self) -> &str {
        &self.core.observer.name
    }

    /// Publishes through the facade [`metrics`](https://docs.rs/metrics) what the cache holds and what it did: what `docs/metrics.md` lists. The
    /// cache's thread does so once a second, or less often where there are very many leaves, all of which are visited: this is for who is
    /// about to show them.
    #[cfg(feature = "metrics")]
    pub fn publish_metrics(&self) {
        self.core.publish();
    }

    /// What the cache may hold, in bytes.
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.core.budget.memory_bytes()
    }

    /// Changes what the cache may hold. When this returns it holds no more than that.
    ///
    /// # Errors
    /// [`CacheError::Option`] for fewer than [`MIN_MEMORY_BYTES`].
    pub fn set_memory(&self, bytes: u64) -> Result<(), CacheError> {
        options::check_memory(bytes)?;
        self.core.set_memory(bytes);
        Ok(())
    }

    /// What the cache holds and what it did. Visits every leaf.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        self.core.stats()
    }

    /// Does now what the cache would do some time after the last write: lets go of what is over, and compacts what is worth it.
    ///
    /// # Errors
    /// [`CacheError::Background`] where a background thread has ended because all it did panicked; what can be done without it is done.
    pub fn settle(&self) -> Result<(), CacheError> {
        self.core.expire_all();
        self.core.tree.settle()?;
        self.core.tend();
        if let Some(disk) = &self.core.disk {
            disk.write_all();
        }
        match self.core.health.failure() {
            Some(reason) => Err(CacheError::Background { reason }),
            None => Ok(()),
        }
    }

    /// Moves to the disk tier what it takes, and leaves it there, so that the next cache that is built with the same file has it; what was in
    /// use most comes back to memory there by itself, in the background. Without a disk tier, or if the cache is only dropped, all is gone.
    /// What has changed in the backend meanwhile the next cache does not know: remove it, or let records expire.
    ///
    /// # Errors
    /// [`CacheError::Disk`] when it cannot be written, [`CacheError::OutOfMemory`], or [`CacheError::Codec`]. The next cache begins empty
    /// then.
    pub fn close(self) -> Result<(), CacheError> {
        let Self {
            core,
            _thread,
            _writing,
        } = self;
        enter_span!("leafpress_close", cache = %core.observer.name);
        // They would use the tree meanwhile.
        drop(_thread);
        core.disk.as_ref().map_or(Ok(()), |disk| core.close(disk))
    }

    /// Moves what is in memory to the disk tier, for tests.
    ///
    /// # Errors
    /// As [`Cache::insert`].
    #[cfg(feature = "testing")]
    pub fn spill(&self) -> Result<(), CacheError> {
        let disk = self.core.disk.as_ref();
        disk.map_or(Ok(()), |disk| self.core.spill(disk).map(|_| ()))
    }

    /// Checks every structural invariant. No other thread may be writing meanwhile.
    ///
    /// # Errors
    /// [`CacheError::Invalid`] names the first one that is broken.
    pub fn validate(&self) -> Result<(), CacheError> {
        // The cache's thread leaves the leaves alone meanwhile.
        let _held = self.core.hold();
        Ok(self.core.tree.validate()?)
    }
}

const _: () = {
    const fn shared_between_threads<T: Send + Sync>() {}
    shared_between_threads::<Cache>();
    shared_between_threads::<CacheStats>();
    shared_between_threads::<CacheError>();
};
