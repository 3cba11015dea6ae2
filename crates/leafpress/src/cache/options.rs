//! Builder of a cache.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::advice::ReuseSample;
use super::background::Tasks;
use super::clock::{Clock, SystemClock};
use super::close::Lifetime;
use super::disk::{Disk, WriterHandle};
use super::error::CacheError;
use super::expiry::{MIN_IDLE, MIN_TTL, Times, check_time};
use super::inner::CacheInner;
use super::listener::{Listener, RemovalCause};
use super::observer::Observer;
use super::policy::Policy;
use super::raw_share::{MAX_RAW_PERCENT, RawCopies};
use super::tags::TagTable;
use super::warm::keys_within;
use super::{Cache, MIN_MEMORY_BYTES};
use crate::tree::{self, Tree};
use leafpress_base::mem::room::boxed;
use leafpress_base::raw_share::RawShare;
use leafpress_codec::{Codec, Dictionary, Engine, TrialGoal};

/// Builder of a [`Cache`], from [`Cache::builder`]. Each method documents its bounds, which [`CacheBuilder::build`]
/// checks.
#[must_use = "a builder does nothing until it builds"]
pub struct CacheBuilder {
    memory_bytes: u64,
    tree: tree::TreeBuilder,
    times: Times,
    policy: Policy,
    share: RawShare,
    miss_cost: Option<Duration>,
    gives_advice: bool,
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
                hot_records: true,
                ..Tree::builder().codec(DEFAULT_CODEC)
            },
            times: Times::default(),
            policy: Policy::default(),
            share: RawShare::default(),
            miss_cost: None,
            gives_advice: false,
            clock: Arc::new(SystemClock::default()),
            listener: None,
            disk: None,
            observer: Observer::default(),
        }
    }
}

/// The codec with the highest hit ratio: see docs/experiments/028 and 045.
const DEFAULT_CODEC: Codec = Codec::Trial {
    goal: TrialGoal::Memory,
};

impl fmt::Debug for CacheBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheBuilder")
            .field("name", &self.observer.name)
            .field("memory_bytes", &self.memory_bytes)
            .field("tree", &self.tree)
            .field("times", &self.times)
            .field("policy", &self.policy)
            .field("share", &self.share)
            .field("miss_cost", &self.miss_cost)
            .field("gives_advice", &self.gives_advice)
            .field("disk", &self.disk)
            .finish_non_exhaustive()
    }
}

impl CacheBuilder {
    /// Sets the memory budget, in bytes. It covers everything: records, index, slack, dictionaries and per-thread
    /// buffers. At least 4 MiB; default 64 MiB.
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

    /// Sets the codec. Default `trial:memory`, which takes the codec with which an access to the cache's own records
    /// takes the least time, misses included ([`CacheBuilder::miss_cost`]): OnPair for most short records, Zstandard
    /// for others. Choose `lz4` for caches that hold nearly all of the data.
    ///
    /// ```
    /// let cache = leafpress::Cache::builder().memory(8 << 20).codec("lz4".parse()?).build()?;
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    pub fn codec(mut self, codec: Codec) -> Self {
        self.tree = self.tree.codec(codec);
        self
    }

    /// Sets a dictionary to begin with, from a cache of similar records ([`Cache::dictionary`]): the first records are
    /// compressed with it, until one that is trained from the cache's own is better. The codec must be one that the
    /// cache uses. By default a cache begins without one, and compresses less until it has trained one.
    ///
    /// ```
    /// # let old = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// let mut builder = leafpress::Cache::builder().memory(8 << 20);
    /// if let Some(dictionary) = old.dictionary()? {
    ///     builder = builder.initial_dictionary(dictionary);
    /// }
    /// let new = builder.build()?;
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    pub fn initial_dictionary(mut self, dictionary: Dictionary) -> Self {
        self.tree = self.tree.dictionary(tree::DictionaryChoice::Initial(dictionary));
        self
    }

    /// Sets the share of the memory for uncompressed copies of the most read records, in addition to their compressed
    /// form. Default [`RawShare::Adaptive`]: the share with the least mean time of an access, from a 64th to half of
    /// the memory, by the measured times of hits and the cost of a miss: see [`CacheBuilder::miss_cost`]. A fixed share
    /// is 0, for no copies, to 75%. [`CacheStats::raw_share_reason`](super::CacheStats::raw_share_reason) reports the
    /// choice.
    ///
    /// ```
    /// use leafpress::cache::RawShare;
    ///
    /// let builder = leafpress::Cache::builder().memory(8 << 20);
    /// let cache = builder.share(RawShare::Fixed { raw_percent: 10 }).build()?;
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    pub fn share(mut self, share: RawShare) -> Self {
        self.share = share;
        self.tree.hot_records = share != RawShare::Fixed { raw_percent: 0 };
        self
    }

    /// Sets what a miss costs: the time until the caller has the value from elsewhere. The adaptive share depends on it
    /// ([`CacheBuilder::share`]): where misses are cheap, more memory is for uncompressed copies and less for other
    /// records. So does the codec that `trial:memory` chooses: one that is fast to read and to write where misses are
    /// cheap, one that takes the least memory where they are expensive. Default: the mean time of the loads of
    /// [`Cache::get_or_insert_with`] and its relatives, or 100 us as long as there are none.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let builder = leafpress::Cache::builder().memory(8 << 20);
    /// let cache = builder.miss_cost(Duration::from_millis(2)).build()?;
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    pub fn miss_cost(mut self, cost: Duration) -> Self {
        self.miss_cost = Some(cost);
        self
    }

    /// Samples reads, so that [`Cache::advice`] estimates the hit ratios of other sizes. The sample takes about a
    /// hundredth of the memory, at most 1.3 MiB, and 15 to 30 ns of each read and write. Default false.
    ///
    /// ```
    /// let cache = leafpress::Cache::builder().memory(8 << 20).advice(true).build()?;
    /// // Nothing was read so far.
    /// assert!(cache.advice()?.is_none());
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    pub fn advice(mut self, is_on: bool) -> Self {
        self.gives_advice = is_on;
        self
    }

    /// Sets how long a thread waits for another caller's load of the same key: then [`Cache::get_or_insert_with`] and
    /// its relatives return [`CacheError::LoadWait`]. The load goes on. Without it they wait until the load ends. Async
    /// tasks are not limited by it: they are cancelled by the timers of their runtime. At least 1 ms.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let builder = leafpress::Cache::builder().memory(8 << 20);
    /// let cache = builder.load_wait(Duration::from_secs(2)).build()?;
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    pub fn load_wait(mut self, limit: Duration) -> Self {
        self.times.load_wait = Some(limit);
        self
    }

    /// Sets a compression engine of the caller's own instead of the one that [`CacheBuilder::codec`] names.
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

    /// Sets the default time to live of records. 1 ms to 10 years; without it, records live until they are evicted.
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

    /// Sets the time after its last read at which a record expires. 1 s to 10 years; without it, records do not expire
    /// by idleness. A record may expire up to an eighth of this time early, and never late. One read in each eighth of
    /// this time updates the record, so a record in use is rewritten occasionally.
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

    /// Sets how long before the end of its time to live a record is loaded anew: a caller of
    /// [`Cache::get_or_insert_with`] or one of its relatives that finds such a record runs its loader, and other
    /// callers get the present value without waiting. So a record that one of them reads in this time does not expire,
    /// and none of its readers but one waits. If the load fails, its caller gets the present value, until that expires;
    /// if it answers that there is no value, the record is removed. [`Cache::get`] loads nothing. 1 ms to 10 years, far
    /// below the times to live: a record that lives no longer is loaded at every such read. Off by default.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let builder = leafpress::Cache::builder().memory(8 << 20);
    /// let cache = builder
    ///     .default_ttl(Duration::from_secs(600))
    ///     .refresh_ahead(Duration::from_secs(30))
    ///     .build()?;
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    pub fn refresh_ahead(mut self, time: Duration) -> Self {
        self.times.refresh = Some(time);
        self
    }

    /// Sets how long after its expiry a record may still be returned while another caller is loading it anew: callers
    /// of [`Cache::get_or_insert_with`] and its relatives then do not wait for the load and get the expired value
    /// (`stale-while-revalidate`, RFC 5861). [`Cache::get`] does not return it. 1 ms to 10 years; off by default. Only
    /// records in memory are kept for it.
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

    /// Sets how long after its expiry a record may still be returned if its load fails: the caller of
    /// [`Cache::try_get_or_insert_with`] or one of its relatives, and those that wait for its load, then get the
    /// expired value instead of the error (`stale-if-error`, RFC 5861). The next caller loads again.
    /// [`CacheStats::stale`](super::CacheStats::stale) counts such answers. [`Cache::get`] does not return it. 1 ms to
    /// 10 years; off by default. Only records in memory are kept for it.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let builder = leafpress::Cache::builder().memory(8 << 20);
    /// let cache = builder.default_ttl(Duration::from_secs(60)).stale_if_error(Duration::from_secs(3600)).build()?;
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    pub fn stale_if_error(mut self, time: Duration) -> Self {
        self.times.stale_if_error = Some(time);
        self
    }

    /// Sets how long the answer of a loader that there is no value is remembered: meanwhile
    /// [`Cache::try_get_or_insert_option_with`] and [`Cache::get_or_fetch_option`] return [`None`] for the key without
    /// calling a loader, and [`CacheStats::known_absent`](super::CacheStats::known_absent) counts it. A write or
    /// removal of the key ends it at once. 1 ms to 10 years; by default nothing is remembered. The keys take at most a
    /// 64th of the memory and 16 MiB; when that is full, further answers are not remembered until others expire. They
    /// are not kept on disk.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let cache = leafpress::Cache::builder().memory(8 << 20).absent_ttl(Duration::from_secs(5)).build()?;
    /// let absent = cache.try_get_or_insert_option_with("user:1", || Ok::<_, std::io::Error>(None::<&str>));
    /// assert_eq!(absent.unwrap(), None);
    /// // For five seconds the database is not asked again.
    /// let load = || -> std::io::Result<Option<&str>> { unreachable!() };
    /// assert_eq!(cache.try_get_or_insert_option_with("user:1", load).unwrap(), None);
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    pub fn absent_ttl(mut self, time: Duration) -> Self {
        self.times.absent = Some(time);
        self
    }

    /// Shortens each time to live by a random part of up to `percent`, so that records that were written together do
    /// not expire together. It applies to [`CacheBuilder::default_ttl`] and
    /// [`InsertOptions::ttl`](super::InsertOptions::ttl), not to [`Cache::expire`]. 0 to 90; default 0.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let builder = leafpress::Cache::builder().memory(8 << 20);
    /// let cache = builder.default_ttl(Duration::from_secs(600)).ttl_jitter(10).build()?;
    /// cache.insert("user:42", "Ada")?;
    /// let ttl = cache.ttl("user:42")?.expect("it expires");
    /// assert!(ttl > Duration::from_secs(539) && ttl <= Duration::from_secs(600));
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    pub fn ttl_jitter(mut self, percent: u8) -> Self {
        self.times.jitter = f64::from(percent) / 100.0;
        self
    }

    /// Sets the eviction policy, for measurements. Default [`Policy::S3Fifo`].
    ///
    /// ```
    /// use leafpress::cache::Policy;
    ///
    /// let cache = leafpress::Cache::builder().memory(8 << 20).policy(Policy::Page).build()?;
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    #[cfg(any(test, feature = "testing"))]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the clock that expiry uses. Default [`SystemClock`].
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

    /// Sets a callback for removed records: see [`Listener`]. Their values have to be decoded for it, which takes time.
    /// With a disk tier it is called for records that leave memory without going to disk, and not for records that
    /// leave the disk.
    ///
    /// ```
    /// use leafpress::Cache;
    /// use leafpress::cache::RemovalCause;
    ///
    /// let listener = |key: &[u8], _value: &[u8], cause| {
    ///     if cause == RemovalCause::Evicted {
    ///         println!("{key:?} made room");
    ///     }
    /// };
    /// let cache = Cache::builder().memory(8 << 20).listener(listener).build()?;
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    pub fn listener(mut self, listener: impl Fn(&[u8], &[u8], RemovalCause) + Send + Sync + 'static) -> Self {
        self.listener = Some(Box::new(listener));
        self
    }

    /// Sets the name of the cache in metrics and traces, to distinguish it from others of the program. Default
    /// `default`.
    ///
    /// ```
    /// let cache = leafpress::Cache::builder().memory(8 << 20).name("users").build()?;
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    pub fn name(mut self, name: &str) -> Self {
        self.observer = Observer::new(name);
        self
    }

    /// Sets a disk tier: a file or a block device that holds the records evicted from memory. Without it evicted
    /// records are lost.
    ///
    /// A read that finds its key there promotes the record to memory. [`Cache::range`] and [`Cache::prefix`] see only
    /// what is in memory. The device may fail or fill: unreadable records count as misses, and after several
    /// consecutive failed writes the cache continues in memory alone.
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

    /// Builds the cache and starts its upkeep.
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
    /// Returns [`CacheError::Option`] for an option out of its bounds, with the allowed values; [`CacheError::Codec`]
    /// if the codec is not available; [`CacheError::Disk`] if the file or device cannot be used;
    /// [`CacheError::NotACache`] for a file that holds something else; [`CacheError::OutOfMemory`]; or
    /// [`CacheError::Background`] if no thread can be started.
    pub fn build(self) -> Result<Cache, CacheError> {
        enter_span!("leafpress_build", cache = %self.observer.name, memory_bytes = self.memory_bytes);
        check_memory(self.memory_bytes)?;
        let times = self.times;
        for (option, time, least) in [
            ("default_ttl", times.to_live, MIN_TTL),
            ("time_to_idle", times.to_idle, MIN_IDLE),
            ("refresh_ahead", times.refresh, MIN_TTL),
            ("stale_while_revalidate", times.stale, MIN_TTL),
            ("stale_if_error", times.stale_if_error, MIN_TTL),
            ("absent_ttl", times.absent, MIN_TTL),
            ("load_wait", times.load_wait, MIN_TTL),
        ] {
            time.map_or(Ok(()), |time| check_time(option, time, least))?;
        }
        if times.jitter > MAX_JITTER {
            return Err(CacheError::Option {
                option: "ttl_jitter",
                reason: format!("{:.0}% is more than the maximum of 90%", 100.0 * times.jitter),
            });
        }
        check_share(self.share)?;
        let tree = match dictionary_bytes_for(self.memory_bytes) {
            Some(bytes) => self.tree.dictionary_bytes(bytes),
            None => self.tree,
        };
        let tree = tree.build()?;
        let (clock, observer) = (Arc::clone(&self.clock), Arc::new(self.observer));
        let keeps_on_drop = self.disk.as_ref().is_some_and(|disk| disk.keeps_on_drop);
        let disk = self.disk.map(|disk| disk.open(self.memory_bytes, clock, &observer));
        let disk = disk.transpose()?;
        let (disk, kept) = disk.map_or_else(Default::default, |(disk, kept)| (Some(disk), kept));
        let keys = keys_within(kept.keys, self.memory_bytes);
        let tags = TagTable::kept(&kept.tags, self.memory_bytes, self.clock.now())?;
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
        core.tags = tags;
        if self.gives_advice {
            core.reuse = Some(boxed(ReuseSample::new(self.memory_bytes)?)?);
        }
        core.raw_copies = RawCopies::new(self.share, self.miss_cost);
        core.begin_raw_copies();
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
        let lifetime = Arc::new(Lifetime::new(&core, tasks, writing, keeps_on_drop));
        Ok(Cache { core, lifetime })
    }
}

/// Returns the largest dictionary for a cache of `memory_bytes`; [`None`] if the tree may choose. Training transiently
/// takes about a hundred times the dictionary's size, which no budget includes.
fn dictionary_bytes_for(memory_bytes: u64) -> Option<usize> {
    match memory_bytes {
        ..0x400_0000 => Some(8 << 10),
        0x400_0000..0x1000_0000 => Some(16 << 10),
        0x1000_0000..0x4000_0000 => Some(32 << 10),
        _ => None,
    }
}

fn check_share(share: RawShare) -> Result<(), CacheError> {
    match share {
        RawShare::Fixed { raw_percent } if raw_percent > MAX_RAW_PERCENT => Err(CacheError::Option {
            option: "share",
            reason: format!("{raw_percent}% is more than the maximum of {MAX_RAW_PERCENT}%"),
        }),
        _ => Ok(()),
    }
}

pub(super) fn check_memory(bytes: u64) -> Result<(), CacheError> {
    if bytes >= MIN_MEMORY_BYTES {
        return Ok(());
    }
    Err(CacheError::Option {
        option: "memory",
        reason: format!("{bytes} bytes are fewer than the minimum of {MIN_MEMORY_BYTES}"),
    })
}

/// Maximum fraction by which times to live are shortened.
const MAX_JITTER: f64 = 0.9;
