//! How a cache is made.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::background::Tasks;
use super::clock::{Clock, SystemClock};
use super::disk::{Disk, WriterHandle};
use super::error::CacheError;
use super::expiry::Times;
use super::inner::CacheInner;
use super::listener::{Listener, RemovalCause};
use super::observer::Observer;
use super::policy::Policy;
use super::warm::keys_within;
use super::{Cache, MIN_MEMORY_BYTES};
use crate::tree::{self, Tree};
use leafpress_codec::{Codec, Engine};

/// How a record is inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct InsertOptions {
    /// How long the record lives; [`None`] for as long as the cache's default says.
    pub ttl: Option<Duration>,
}

impl InsertOptions {
    /// A record that lives so long. It may go up to a quarter of a second before its time, and is never returned after it.
    #[must_use]
    pub fn ttl(ttl: Duration) -> Self {
        Self { ttl: Some(ttl) }
    }
}

/// Settings of a cache; [`Cache::builder`] begins with the defaults. Each method says its bounds, which [`CacheBuilder::build`] checks.
#[must_use = "a builder does nothing until it builds"]
pub struct CacheBuilder {
    memory_bytes: u64,
    tree: tree::TreeBuilder,
    times: Times,
    policy: Policy,
    clock: Arc<dyn Clock>,
    listener: Option<Box<Listener>>,
    disk: Option<Disk>,
    observer: Observer,
}

impl Default for CacheBuilder {
    fn default() -> Self {
        Self {
            memory_bytes: 64 << 20,
            tree: tree::TreeBuilder {
                marks: true,
                ..Tree::builder().codec(default_codec())
            },
            times: Times::default(),
            policy: Policy::default(),
            clock: Arc::new(SystemClock::default()),
            listener: None,
            disk: None,
            observer: Observer::default(),
        }
    }
}

/// Of those that are compiled in, the one that answers most reads: see docs/experiments/028.
fn default_codec() -> Codec {
    if cfg!(feature = "zstd") {
        Codec::Zstd { level: 1 }
    } else if cfg!(feature = "lz4") {
        Codec::Lz4 { acceleration: 1 }
    } else {
        Codec::None
    }
}

impl fmt::Debug for CacheBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheBuilder")
            .field("name", &self.observer.name)
            .field("memory_bytes", &self.memory_bytes)
            .field("tree", &self.tree)
            .field("times", &self.times)
            .field("policy", &self.policy)
            .field("disk", &self.disk)
            .finish_non_exhaustive()
    }
}

impl CacheBuilder {
    /// Bytes that the cache may hold, all included: records, index, holes, dictionaries, what threads keep. From 4 MiB on; default 64 MiB.
    ///
    /// ```
    /// let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// assert!(cache.stats().bytes_held <= 8 << 20);
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// The codec. Default `zstd:1`, where Zstandard is compiled in: by it a cache in the same memory answers more reads than by LZ4 or `auto`,
    /// and what does not come from the cache takes longer than any decoding. `lz4` is for caches that hold nearly all there is.
    ///
    /// ```
    /// let cache = leafpress::Cache::builder().memory(8 << 20).codec("lz4".parse()?).build()?;
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    pub fn codec(mut self, codec: Codec) -> Self {
        self.tree = self.tree.codec(codec);
        self
    }

    /// An engine of the caller's own, in place of the one [`CacheBuilder::codec`] names.
    ///
    /// ```
    /// use leafpress::codec::{Codec, EngineOptions};
    ///
    /// // One of the library's, which caches may share; or an `Engine` of the program's own.
    /// let engine = Codec::Lz4 { acceleration: 1 }.open(&EngineOptions::default())?;
    /// let cache = leafpress::Cache::builder().memory(8 << 20).engine(engine).build()?;
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    pub fn engine(mut self, engine: Arc<dyn Engine>) -> Self {
        self.tree = self.tree.engine(engine);
        self
    }

    /// How long a record lives whose insertion does not say. Default: until it has to make room. 1 s to 10 years.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let builder = leafpress::Cache::builder().memory(8 << 20);
    /// let cache = builder.default_ttl(Duration::from_secs(3600)).build()?;
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    pub fn default_ttl(mut self, ttl: Duration) -> Self {
        self.times.to_live = Some(ttl);
        self
    }

    /// How long a record lives that is not read. Default: for ever. 1 s to 10 years. A record may go up to an eighth of this before its time,
    /// and never lives longer. One read in each eighth of it has to write, so that a record in use is written now and then.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let builder = leafpress::Cache::builder().memory(8 << 20);
    /// let cache = builder.time_to_idle(Duration::from_secs(600)).build()?;
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    pub fn time_to_idle(mut self, time: Duration) -> Self {
        self.times.to_idle = Some(time);
        self
    }

    /// For so long after its time a record may still be had, while one who missed it loads it anew: others that ask for it by
    /// [`Cache::get_or_insert_with`] and its like do not wait for the load, and get what there was (`stale-while-revalidate`, RFC 5861). For
    /// [`Cache::get`] it is over. Default: not at all. 1 s to 10 years; only records in memory are kept for it.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let minute = Duration::from_secs(60);
    /// let builder = leafpress::Cache::builder().memory(8 << 20);
    /// let cache = builder.default_ttl(minute).stale_while_revalidate(minute).build()?;
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    pub fn stale_while_revalidate(mut self, time: Duration) -> Self {
        self.times.stale = Some(time);
        self
    }

    /// By what rule records make room for others. Default [`Policy::S3Fifo`].
    ///
    /// ```
    /// use leafpress::cache::Policy;
    ///
    /// let cache = leafpress::Cache::builder().memory(8 << 20).policy(Policy::Lru).build()?;
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// The clock that records expire by. Default [`SystemClock`].
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use leafpress::Cache;
    /// use leafpress::cache::{InsertOptions, ManualClock};
    ///
    /// let clock = Arc::new(ManualClock::new(Duration::from_secs(2_000_000_000)));
    /// let cache = Cache::builder().memory(8 << 20).clock(clock.clone()).build()?;
    /// cache.insert_entry("session:7", "open", InsertOptions::ttl(Duration::from_secs(60)))?;
    /// clock.advance(Duration::from_secs(61));
    /// assert_eq!(cache.get("session:7")?, None);
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets a callback for records that leave: see [`Listener`]. Their values are then decoded, which takes time. With a disk tier it is called
    /// for those that leave memory and are not on disk then, and not for what leaves the disk.
    ///
    /// ```
    /// use leafpress::Cache;
    /// use leafpress::cache::RemovalCause;
    ///
    /// let tell = |key: &[u8], _value: &[u8], cause| {
    ///     if cause == RemovalCause::Evicted {
    ///         println!("{key:?} made room");
    ///     }
    /// };
    /// let cache = Cache::builder().memory(8 << 20).listener(tell).build()?;
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    pub fn listener(mut self, listener: impl Fn(&[u8], &[u8], RemovalCause) + Send + Sync + 'static) -> Self {
        self.listener = Some(Box::new(listener));
        self
    }

    /// What the cache is called in metrics and traces, to tell it from others of the program. Default `default`.
    ///
    /// ```
    /// let cache = leafpress::Cache::builder().memory(8 << 20).name("users").build()?;
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    pub fn name(mut self, name: &str) -> Self {
        self.observer = Observer::new(name);
        self
    }

    /// Where records go that leave memory: a file or a block device, of which the cache uses so many bytes. Without it they are gone.
    ///
    /// A read that finds its key there brings the record back to memory. [`Cache::range`] and [`Cache::prefix`] see what is in memory. The
    /// device may fail or fill: what cannot be read counts as missed, and after some failed writes the cache goes on in memory alone.
    ///
    /// ```
    /// use leafpress::Cache;
    /// use leafpress::cache::Disk;
    ///
    /// # let directory = tempfile::tempdir().expect("a directory");
    /// # let path = directory.path().join("app.cache");
    /// let cache = Cache::builder().memory(8 << 20).disk(Disk::file(&path, 16 << 20)).build()?;
    /// assert!(cache.stats().disk.is_some());
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    pub fn disk(mut self, disk: Disk) -> Self {
        self.disk = Some(disk);
        self
    }

    /// Makes the cache and starts its upkeep.
    ///
    /// ```
    /// use leafpress::{Cache, CacheError};
    ///
    /// assert!(Cache::builder().build().is_ok());
    /// let error = Cache::builder().memory(1000).build().unwrap_err();
    /// assert!(matches!(error, CacheError::Option { option: "memory", .. }));
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// [`CacheError::Option`] names an option that is out of its bounds and what is allowed; [`CacheError::Codec`] when the codec cannot be
    /// had; [`CacheError::Disk`] when the file or device cannot be used; [`CacheError::OutOfMemory`]; [`CacheError::Background`] when no
    /// thread can be started.
    pub fn build(self) -> Result<Cache, CacheError> {
        enter_span!("leafpress_build", cache = %self.observer.name, memory_bytes = self.memory_bytes);
        check_memory(self.memory_bytes)?;
        let times = self.times;
        for (option, time) in [
            ("default_ttl", times.to_live),
            ("time_to_idle", times.to_idle),
            ("stale_while_revalidate", times.stale),
        ] {
            time.map_or(Ok(()), |time| check_ttl(option, time))?;
        }
        let tree = match dictionary_bytes_for(self.memory_bytes) {
            Some(bytes) => self.tree.dictionary_bytes(bytes),
            None => self.tree,
        };
        let tree = tree.build()?;
        let (clock, observer) = (Arc::clone(&self.clock), Arc::new(self.observer));
        let disk = self.disk.map(|disk| disk.open(self.memory_bytes, clock, &observer));
        let disk = disk.transpose()?;
        let (disk, keys) = disk.map_or_else(Default::default, |(disk, keys)| {
            let keys = keys_within(keys, self.memory_bytes);
            (Some(disk), keys)
        });
        let mut core = CacheInner::new(
            tree,
            self.memory_bytes,
            self.clock,
            times,
            self.policy,
            self.listener,
            disk,
        );
        core.observer = observer;
        core.measure();
        let core = Arc::new(core);
        debug_event!(
            cache = %core.observer.name,
            disk_records = core.disk.as_ref().map_or(0, |disk| disk.stats().records),
            keys = keys.len(),
            "opened"
        );
        let no_thread = |error| CacheError::Background {
            reason: format!("cannot start a thread: {error}"),
        };
        let writing = core.disk.as_ref().map(|disk| WriterHandle::start(disk, &core.health));
        let writing = writing.transpose().map_err(no_thread)?;
        let tasks = Tasks::start(&core, keys).map_err(no_thread)?;
        Ok(Cache {
            core,
            _tasks: tasks,
            _writing: writing,
        })
    }
}

/// The largest dictionary for a cache of so much memory; [`None`] where the tree may choose. Training one takes some hundred times its bytes
/// for a moment, which are in no budget.
fn dictionary_bytes_for(memory_bytes: u64) -> Option<usize> {
    match memory_bytes {
        ..0x400_0000 => Some(8 << 10),
        0x400_0000..0x1000_0000 => Some(16 << 10),
        0x1000_0000..0x4000_0000 => Some(32 << 10),
        _ => None,
    }
}

pub(super) fn check_memory(bytes: u64) -> Result<(), CacheError> {
    if bytes >= MIN_MEMORY_BYTES {
        return Ok(());
    }
    Err(CacheError::Option {
        option: "memory",
        reason: format!("{bytes} bytes are fewer than a cache needs ({MIN_MEMORY_BYTES})"),
    })
}

/// The shortest and the longest time that a record may be given.
const TTLS: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(10 * 366 * 24 * 3600);

pub(super) fn check_ttl(option: &'static str, ttl: Duration) -> Result<(), CacheError> {
    if TTLS.contains(&ttl) {
        return Ok(());
    }
    Err(CacheError::Option {
        option,
        reason: format!("{ttl:?} is out of bounds: from 1 s to 10 years are allowed"),
    })
}
