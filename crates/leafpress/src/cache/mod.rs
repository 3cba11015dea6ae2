//! An embedded cache of byte strings that keeps its records compressed within a memory budget.
//!
//! [`Cache`] is a concurrent ordered map from byte strings to byte strings whose records may be evicted. Its memory
//! never exceeds the budget: keys, values, index, slack, dictionaries and per-thread buffers are all counted.
//!
//! Ten methods cover most programs: [`Cache::insert`], [`Cache::insert_entry`], [`Cache::get`], [`Cache::get_with`],
//! [`Cache::get_or_insert_with`], [`Cache::get_or_fetch`] in async tasks, [`Cache::remove`], [`Cache::invalidate`],
//! [`Cache::stats`] and [`Cache::close`]. [`Cache::builder`] makes a cache.
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
//! # Expiry
//!
//! A record expires at the end of its time to live ([`CacheBuilder::default_ttl`] or [`InsertOptions::ttl`]) or when
//! it has not been read for [`CacheBuilder::time_to_idle`]. Expired records are never returned as current values. They
//! are removed in the background and by reads that find them.
//!
//! # Tags
//!
//! A record may have tags ([`InsertOptions::tag`]). [`Cache::invalidate_tag`] invalidates all records with a tag in
//! constant time.
//!
//! # Eviction
//!
//! Once the budget is reached, the records of least worth by S3-FIFO are evicted: by a background thread ahead of need,
//! and by writing threads where it falls behind. With a disk tier an evicting writer may wait for the device
//! (backpressure).
//!
//! # Loading
//!
//! [`Cache::get_or_insert_with`] and its relatives load missing values with single-flight: one loader runs per key, and
//! other callers that miss wait for its result. Use [`Cache::get_or_fetch`] in async tasks: the blocking loaders block
//! the executor's thread. [`CacheBuilder::stale_while_revalidate`] lets callers use an expired value while another one
//! is loading, [`CacheBuilder::stale_if_error`] if the load fails. [`CacheBuilder::absent_ttl`] has the absence of a
//! value remembered.
//!
//! [`Cache::get_async`] and its relatives read the disk tier without blocking an executor's thread.
//!
//! # Disk tier
//!
//! [`CacheBuilder::disk`] adds a file or block device. Records evicted from memory are spilled to it, and a read that
//! finds its key there promotes the record back to memory. [`Cache::close`] keeps both tiers for the next cache on the
//! same file, and so does a drop with [`Disk::keep_on_drop`]; [`Disk::recover_after_crash`] recovers the disk tier if
//! the process ends without either.
//!
//! # Listener
//!
//! [`CacheBuilder::listener`] sets a callback for records that are removed, replaced, evicted or expired: see
//! [`Listener`] and [`RemovalCause`].
//!
//! # Guarantees
//!
//! - A read never returns a value that was replaced, removed or has expired, except for expired values by
//!   `stale_while_revalidate` and `stale_if_error`. Operations on one key are atomic, in memory and on disk. Reads of
//!   several keys are not snapshots.
//! - Any record may be evicted at any time: a cache is not a store.
//! - A read that finds its key in memory waits for no lock and no device. With `time_to_idle` it only queues its key
//!   and the time; the queue is applied by upkeep. The exception is a record whose idle time has passed according to
//!   its last applied read: the read applies the queue before it decides, and may wait while another thread does so.
//! - The bytes held never exceed the budget. The process may grow by 1/20 of the budget and 8 MiB more, for training
//!   dictionaries and for codec contexts.
//!
//! # Panics
//!
//! No method panics because of damaged data, a failing device or an exhausted budget; see [`CacheError`]. Panics of the
//! caller's closures propagate to the caller; panics of the listener are caught and counted.
//!
//! # Structure of the module
//!
//! - State: `inner` is shared by the handle and the upkeep, `counters` counts per thread, `stats` and `stats_display`
//!   report. `options`, `insert_options` and `policy` configure, `error` has the errors.
//! - Operations: `map` is the interface, `bytes` and `typed` wrap it. `store` inserts records, `update` implements
//!   atomic updates, `get_many` reads many keys, `peek` reads without an effect on eviction, `in_memory` does not read
//!   the disk, `remove_many` removes key ranges, `scan` iterates over memory, `scan_tiers` merges memory and disk in
//!   key order.
//! - Loading: `load_table` and `load` implement single-flight loading.
//! - Records: `record` is the header of a value, `record_tags` the tags of a record, `tags` the table of invalidated
//!   tags, `listener` the callback for removed records.
//! - Expiry: `lifetimes` holds the rules, `expiry` the times and their bounds, `clock` the clocks. `read_queue` queues
//!   the reads that extend idle deadlines.
//! - Memory: `budget` sets the byte limit of the tree's nodes, `long_values` counts what writers of long values hold,
//!   `raw_share` sets the share of uncompressed copies. `sweep` visits leaves, and `evict` selects victims.
//! - Disk: `disk` is the tier, `disk_lookup` reads and removes across both tiers, `async_reads` and `disk_readers` read
//!   the disk for async tasks.
//! - Upkeep: `background` runs it, `close` ends a cache and keeps its tiers, `warm` reads back the keys that were in
//!   use, `hottest_keys` exports the most read keys and the dictionary.
//! - Observation: `advice` samples reads, `observer` and `metrics` report to the outside.

mod advice;
mod async_reads;
mod background;
mod budget;
#[cfg(feature = "bytes")]
mod bytes;
mod clock;
mod close;
mod counters;
mod disk;
mod disk_lookup;
mod disk_readers;
mod error;
mod evict;
mod expiry;
mod get_many;
mod hottest_keys;
mod in_memory;
mod inner;
mod insert_options;
mod lifetimes;
mod listener;
mod load;
mod load_table;
mod long_values;
mod map;
#[cfg(feature = "metrics")]
mod metrics;
mod observer;
mod options;
mod peek;
mod policy;
mod raw_share;
mod read_queue;
mod record;
mod record_tags;
mod remove_many;
mod scan;
mod scan_tiers;
mod stats;
mod stats_display;
mod store;
mod sweep;
mod tags;
#[cfg(feature = "serde")]
mod typed;
mod update;
mod warm;

use std::fmt;
use std::sync::Arc;

pub use advice::Advice;
pub use clock::{Clock, ManualClock, SystemClock};
pub use disk::{Disk, DiskStats, MIN_DISK_BYTES};
pub use error::{CacheError, LoadError};
pub use insert_options::InsertOptions;
pub use leafpress_base::raw_share::{ParseRawShareError, RawShare};
pub use listener::{Listener, RemovalCause};
pub use options::CacheBuilder;
#[cfg(any(test, feature = "testing"))]
pub use policy::Policy;
pub use record::MAX_VALUE_BYTES;
pub use record_tags::MAX_TAGS;
pub use scan::CacheRange;
pub use scan_tiers::{CacheScan, ScanPosition};
pub use stats::CacheStats;
pub use tags::Moment;
#[cfg(feature = "serde")]
pub use typed::TypedCache;
pub use update::CacheUpdate;

/// Guard for the fuzz target of the on-disk format. Not part of the public interface.
#[cfg(feature = "fuzz")]
pub mod fuzz {
    pub use super::disk::ignore_checksums;
}

use self::close::Lifetime;
use self::inner::CacheInner;

/// The maximum length of a key, in bytes.
pub const MAX_KEY_BYTES: usize = crate::tree::MAX_KEY_BYTES;
/// The minimum memory budget of a cache, in bytes.
pub const MIN_MEMORY_BYTES: u64 = 4 << 20;

/// A concurrent cache of byte strings that keeps its records compressed within a memory budget.
///
/// All methods take `&self` and may be called from any number of threads. A read that finds its key in memory waits for
/// no lock, with the exception for `time_to_idle` that the [module's page](self#guarantees) describes. A cache may
/// evict any record at any time; it never returns a value that was replaced, removed or has expired.
///
/// `Cache` is a handle: a clone is another handle of the same cache and costs two atomic increments. The cache ends
/// when [`Cache::close`] is called or the last handle is dropped.
///
/// # Fork
///
/// A forked child must not use a cache of its parent: another thread may have held one of its locks at the fork, and
/// the upkeep threads do not exist in the child. Nor should the child drop a cache that has a disk tier, because the
/// drop waits for the writer thread, which the child does not have. The child may build caches of its own.
#[derive(Clone)]
pub struct Cache {
    core: Arc<CacheInner>,
    lifetime: Arc<Lifetime>,
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

    /// Returns a builder with every option at its default.
    ///
    /// ```
    /// let cache = leafpress::Cache::builder().memory(64 << 20).build()?;
    /// assert!(cache.is_empty());
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    pub fn builder() -> CacheBuilder {
        CacheBuilder::default()
    }

    /// Returns the number of records in memory, including expired records that have not been removed yet. Tombstones,
    /// which memory may hold for removed keys if there is a disk tier, are not counted. The number is approximate under
    /// concurrent writes. [`Cache::scan`] visits the records of both tiers by reading the disk.
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

    /// Returns true if there are no records in memory.
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

    /// Returns the name of the cache: see [`CacheBuilder::name`].
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

    /// Publishes the counters and gauges of the cache through the facade [`metrics`](https://docs.rs/metrics);
    /// `docs/metrics.md` lists them. Upkeep publishes once per second, or less often if there are very many leaves,
    /// since it visits all of them. Call this method immediately before the metrics are exported.
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

    /// Returns the memory budget, in bytes.
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

    /// Sets the memory budget, in bytes, and evicts until the cache fits in it.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// cache.set_memory(16 << 20)?;
    /// assert_eq!(cache.memory(), 16 << 20);
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`CacheError::Option`] if `bytes` is less than [`MIN_MEMORY_BYTES`], or [`CacheError::Closed`].
    pub fn set_memory(&self, bytes: u64) -> Result<(), CacheError> {
        options::check_memory(bytes)?;
        self.core.check_open()?;
        self.core.set_memory(bytes);
        Ok(())
    }

    /// Returns a snapshot of the statistics. Visits every leaf.
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

    /// Runs pending upkeep now: removes expired records and compacts the leaves that are worth it.
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
    /// Returns [`CacheError::Background`] if a background thread has ended after repeated panics; the remaining upkeep
    /// is done. Returns [`CacheError::Closed`] after [`Cache::close`].
    pub fn settle(&self) -> Result<(), CacheError> {
        self.core.check_open()?;
        self.core.expire_all();
        self.core.tree.settle()?;
        self.core.run_upkeep();
        self.core.finish_evicting();
        if let Some(disk) = &self.core.disk {
            disk.write_all();
        }
        match self.core.health.failure() {
            Some(reason) => Err(CacheError::Background { reason }),
            None => Ok(()),
        }
    }

    /// Closes the cache and keeps its contents in the disk tier for the next cache built on the same file, which may be
    /// built as soon as this method has returned. The records read most return to memory in the background. Without a
    /// disk tier, or if the cache is dropped instead and [`Disk::keep_on_drop`] is not set, the contents are lost. The
    /// next cache does not know what changed in the backend meanwhile: remove those records, or let records expire.
    ///
    /// Other threads may use the cache during the call and other handles may remain. A write or removal that returned
    /// `Ok` is kept; others return [`CacheError::Closed`]. Once the call has returned, every method that can fail
    /// returns that error, also [`Cache::get`]; ranges and scans return it as an item; loaders are not called. The
    /// memory is freed. Further calls wait for the first one and return its result.
    ///
    /// Do not call it in a closure that the cache calls with a value, such as that of [`Cache::get_with`], or in the
    /// listener: it would wait for itself.
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
    /// Returns [`CacheError::Disk`] if the disk tier cannot be written, [`CacheError::OutOfMemory`], or
    /// [`CacheError::Codec`]. The cache is closed all the same, and the next cache begins empty.
    pub fn close(&self) -> Result<(), CacheError> {
        self.lifetime.close()
    }

    /// Returns true if [`Cache::close`] was called.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// let other = cache.clone();
    /// cache.close()?;
    /// assert!(other.is_closed());
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.core.check_open().is_err()
    }

    /// Moves all records in memory to the disk tier, for tests.
    ///
    /// # Errors
    /// Returns the errors of [`Cache::insert`].
    #[cfg(any(feature = "testing", feature = "fuzz"))]
    pub fn spill(&self) -> Result<(), CacheError> {
        let disk = self.core.disk.as_ref();
        disk.map_or(Ok(()), |disk| self.core.spill(disk).map(|_| ()))
    }

    /// Checks every structural invariant. No other thread may write during the call.
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
    /// Returns [`CacheError::Invalid`] with the first violated invariant.
    pub fn validate(&self) -> Result<(), CacheError> {
        // Upkeep does not change the leaves while this is held.
        let _held = self.core.hold();
        // Nor are queued reads applied, which writes records.
        let _applying = self.core.queued_reads.applying.lock();
        Ok(self.core.tree.validate()?)
    }
}

const _: () = {
    const fn shared_between_threads<T: Send + Sync>() {}
    shared_between_threads::<Cache>();
    shared_between_threads::<CacheStats>();
    shared_between_threads::<CacheError>();
};
