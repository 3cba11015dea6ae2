//! A cache: records under a bound of memory, compressed.
//!
//! [`Cache`] is a map from byte strings to byte strings that forgets. It is given so many bytes, and never holds more: keys, values, index,
//! holes, dictionaries and what threads keep are all in them. What is asked for least lately makes room. Records may expire.
//!
//! ```
//! # fn main() -> Result<(), leafpress::CacheError> {
//! use std::time::Duration;
//! use leafpress::cache::InsertOptions;
//!
//! let cache = leafpress::Cache::builder().memory(32 << 20).build()?;
//! cache.insert("user:42", "Ada")?;
//! cache.insert_entry("session:7", "open", InsertOptions::ttl(Duration::from_secs(60)))?;
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
//! Inside, `inner` holds the parts; `store` puts records in, and `update` those that go by what is there; `budget` says how much the nodes of the tree may hold; `sweep` goes round the leaves, `evict` judges
//! which records make room, and `ghost` knows what left lately; `load_table` and `load` see that there is one loader a key; `record` is
//! what stands in front of a value. `observer` and `metrics` are how it is seen from outside.

mod background;
mod budget;
#[cfg(feature = "bytes")]
mod bytes;
mod clock;
mod close;
mod counters;
mod disk;
mod disk_lookup;
mod error;
mod evict;
mod expiry;
mod ghost;
mod in_memory;
mod inner;
mod listener;
mod load;
mod load_table;
mod map;
#[cfg(feature = "metrics")]
mod metrics;
mod observer;
mod options;
mod policy;
mod record;
mod scan;
mod scan_tiers;
mod stats;
mod stats_display;
mod store;
mod sweep;
mod touches;
#[cfg(feature = "serde")]
mod typed;
mod update;
mod warm;

use std::fmt;
use std::sync::Arc;

pub use clock::{Clock, ManualClock, SystemClock};
pub use disk::{Disk, DiskStats, MIN_DISK_BYTES};
pub use error::{CacheError, LoadError};
pub use listener::{Listener, RemovalCause};
pub use options::{CacheBuilder, InsertOptions};
pub use policy::Policy;
pub use record::MAX_VALUE_BYTES;
pub use scan::CacheRange;
pub use scan_tiers::{CacheScan, ScanPosition};
pub use stats::CacheStats;
#[cfg(feature = "serde")]
pub use typed::TypedCache;
pub use update::CacheUpdate;

/// A guard for the fuzz target of what is on disk. No part of the interface.
#[cfg(feature = "fuzz")]
pub mod fuzz {
    pub use super::disk::ignore_checksums;
}

use self::background::Tasks;
use self::disk::WriterHandle;
use self::inner::CacheInner;

/// Longest key, in bytes.
pub const MAX_KEY_BYTES: usize = crate::tree::MAX_KEY_BYTES;
/// The least memory that a cache can be given, in bytes.
pub const MIN_MEMORY_BYTES: u64 = 4 << 20;

/// A cache of byte strings in a bound of memory, which keeps its records compressed.
///
/// All methods take `&self` and may be called from any number of threads. A read that finds its key in memory waits for no lock. A cache may forget
/// any record at any time; it never returns a value that was replaced, removed or has expired.
pub struct Cache {
    core: Arc<CacheInner>,
    _tasks: Tasks,
    _writing: Option<WriterHandle>,
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
    #[cfg(test)]
    fn core(&self) -> &CacheInner {
        &self.core
    }

    /// A builder with every option at its default.
    ///
    /// ```
    /// let cache = leafpress::Cache::builder().memory(64 << 20).build()?;
    /// assert!(cache.is_empty());
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    pub fn builder() -> CacheBuilder {
        CacheBuilder::default()
    }

    /// Number of records in memory, including those that have expired and were not removed yet. A key that was removed does not count, although
    /// with a disk tier memory may hold a tombstone for it. Under concurrent writes, a number that was right a moment ago. How many there are in
    /// memory and on disk says [`Cache::scan`], by reading the disk.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// # cache.insert("user:42", "Ada")?;
    /// # cache.insert("user:43", "Grace")?;
    /// assert_eq!(cache.len(), 2);
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.core.records()
    }

    /// Whether there are no records in memory.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// # cache.insert("user:42", "Ada")?;
    /// # cache.insert("user:43", "Grace")?;
    /// assert!(!cache.is_empty());
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the cache is called: see [`CacheBuilder::name`].
    ///
    /// ```
    /// let cache = leafpress::Cache::builder().name("users").memory(8 << 20).build()?;
    /// assert_eq!(cache.name(), "users");
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    #[must_use]
    pub fn name(&self) -> &str {
        &self.core.observer.name
    }

    /// Publishes through the facade [`metrics`](https://docs.rs/metrics) what the cache holds and what it did: what `docs/metrics.md` lists. The
    /// cache's upkeep does so once a second, or less often where there are very many leaves, all of which are visited: this is for who is
    /// about to show them.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// // Where a page with the metrics is made:
    /// cache.publish_metrics();
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    #[cfg(feature = "metrics")]
    pub fn publish_metrics(&self) {
        self.core.publish();
    }

    /// What the cache may hold, in bytes.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// assert_eq!(cache.memory(), 8 << 20);
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.core.budget.memory_bytes()
    }

    /// Changes what the cache may hold. When this returns it holds no more than that.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// cache.set_memory(16 << 20)?;
    /// assert_eq!(cache.memory(), 16 << 20);
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// [`CacheError::Option`] for fewer than [`MIN_MEMORY_BYTES`].
    pub fn set_memory(&self, bytes: u64) -> Result<(), CacheError> {
        options::check_memory(bytes)?;
        self.core.set_memory(bytes);
        Ok(())
    }

    /// What the cache holds and what it did. Visits every leaf.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// # cache.insert("user:42", "Ada")?;
    /// # cache.insert("user:43", "Grace")?;
    /// cache.get("user:42")?;
    /// let stats = cache.stats();
    /// assert_eq!((stats.hits, stats.misses, stats.records), (1, 0, 2));
    /// println!("{stats}");
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        self.core.stats()
    }

    /// Does now what the cache would do some time after the last write: lets go of what is over, and compacts what is worth it.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// # cache.insert("user:42", "Ada")?;
    /// # cache.insert("user:43", "Grace")?;
    /// // Before memory is measured.
    /// cache.settle()?;
    /// println!("{} bytes", cache.stats().bytes_held);
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
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
    /// ```
    /// use leafpress::Cache;
    /// use leafpress::cache::Disk;
    ///
    /// # let directory = tempfile::tempdir().expect("a directory");
    /// # let path = directory.path().join("app.cache");
    /// let open = || Cache::builder().memory(8 << 20).disk(Disk::file(&path, 16 << 20)).build();
    /// let cache = open()?;
    /// cache.insert("user:42", "Ada")?;
    /// cache.close()?;
    /// // The next time the program runs:
    /// assert_eq!(open()?.get("user:42")?.as_deref(), Some(b"Ada".as_slice()));
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// [`CacheError::Disk`] when it cannot be written, [`CacheError::OutOfMemory`], or [`CacheError::Codec`]. The next cache begins empty
    /// then.
    pub fn close(self) -> Result<(), CacheError> {
        let Self { core, _tasks, _writing } = self;
        enter_span!("leafpress_close", cache = %core.observer.name);
        // They would use the tree meanwhile.
        drop(_tasks);
        core.disk.as_ref().map_or(Ok(()), |disk| core.close(disk))
    }

    /// Moves what is in memory to the disk tier, for tests.
    ///
    /// # Errors
    /// As [`Cache::insert`].
    #[cfg(any(feature = "testing", feature = "fuzz"))]
    pub fn spill(&self) -> Result<(), CacheError> {
        let disk = self.core.disk.as_ref();
        disk.map_or(Ok(()), |disk| self.core.spill(disk).map(|_| ()))
    }

    /// Checks every structural invariant. No other thread may be writing meanwhile.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// # cache.insert("user:42", "Ada")?;
    /// # cache.insert("user:43", "Grace")?;
    /// cache.validate()?;
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// [`CacheError::Invalid`] names the first one that is broken.
    pub fn validate(&self) -> Result<(), CacheError> {
        // The cache's upkeep leaves the leaves alone meanwhile.
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
