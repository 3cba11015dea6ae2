//! Builder of a pool.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize};

use super::adaptive::{Adaptive, Costs, DEFAULT_RAW_FRACTION};
use super::counts::PoolCounts;
use super::entry::Entries;
use super::frames::Frames;
use super::index::Index;
use super::inner::PoolInner;
use super::log::Log;
use super::raw_space::RawSpace;
use super::threads::Threads;
use super::unsynced::Unsynced;
use super::waiters::Waiters;
use super::workers::Workers;
use super::{PagePool, PolicyKind, PoolError, RawShare};
use crate::store::{MAX_PAGE_BYTES, PageStore};
use leafpress_base::sync::Mutex;
use leafpress_codec::{Codec, EngineOptions};

const DEFAULT_BUDGET_BYTES: usize = 64 << 20;
const MIN_BUDGET_BYTES: usize = 64 << 10;
/// A pool has room for at least this many of the longest pages.
const MIN_PAGES: usize = 8;
const MAX_THREADS: usize = 64;
const MAX_SHARDS: usize = 256;
/// Number of pages whose length is queried.
const SAMPLED_PAGES: u64 = 64;
/// Bytes of pages per shard of the index, approximately.
const SHARD_BYTES: usize = 256 << 10;

/// Builder of a [`PagePool`], from [`PagePool::builder`].
#[must_use = "a builder does nothing until it builds"]
pub struct PoolBuilder {
    store: Box<dyn PageStore>,
    budget_bytes: usize,
    codec: Codec,
    share: RawShare,
    policy: PolicyKind,
    promote_after_hits: u8,
    background_threads: usize,
}

impl std::fmt::Debug for PoolBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PoolBuilder")
            .field("budget_bytes", &self.budget_bytes)
            .field("codec", &self.codec)
            .field("share", &self.share)
            .field("policy", &self.policy)
            .field("promote_after_hits", &self.promote_after_hits)
            .field("background_threads", &self.background_threads)
            .finish_non_exhaustive()
    }
}

fn option(option: &'static str, reason: String) -> PoolError {
    PoolError::Option { option, reason }
}

/// Checks the minimum budget for pages of up to `max_page_bytes`.
pub(super) fn check_budget(budget_bytes: usize, max_page_bytes: usize) -> Result<(), PoolError> {
    let least = MIN_BUDGET_BYTES + MIN_PAGES * max_page_bytes;
    if budget_bytes < least {
        return Err(option(
            "memory",
            format!("{budget_bytes} is too little for pages of up to {max_page_bytes} bytes; give at least {least}"),
        ));
    }
    Ok(())
}

/// Returns the mean length of a sample of pages, in bytes.
fn typical_page_bytes(store: &dyn PageStore) -> usize {
    let step = (store.len() / SAMPLED_PAGES).max(1);
    let sampled = (0..SAMPLED_PAGES).filter_map(|n| store.page_bytes(n * step).ok());
    let (pages, bytes) = sampled.fold((0, 0), |(pages, bytes), len| (pages + 1, bytes + len));
    bytes
        .checked_div(pages)
        .filter(|&mean| mean > 0)
        .unwrap_or(store.max_page_bytes())
}

impl PoolBuilder {
    pub(super) fn new(store: Box<dyn PageStore>) -> Self {
        Self {
            store,
            budget_bytes: DEFAULT_BUDGET_BYTES,
            codec: Codec::Lz4 { acceleration: 1 },
            share: RawShare::default(),
            policy: PolicyKind::default(),
            promote_after_hits: 8,
            background_threads: 1,
        }
    }

    /// Sets the memory budget of the pool in bytes, including its own tables: at least 64 KiB and eight of the store's
    /// longest pages. Default: 64 MiB.
    ///
    /// ```
    /// # let pages = (0..100).map(|page: u32| page.to_le_bytes().repeat(1024));
    /// # let store = leafpress_pages::store::MemoryStore::from_pages(pages)?;
    /// let pool = leafpress_pages::PagePool::builder(store).memory(1 << 20).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn memory(self, bytes: usize) -> Self {
        Self {
            budget_bytes: bytes,
            ..self
        }
    }

    /// Sets the codec; with `none` nothing is compressed, and raw pages have the whole budget. Default: `lz4`.
    ///
    /// ```
    /// # let pages = (0..100).map(|page: u32| page.to_le_bytes().repeat(1024));
    /// # let store = leafpress_pages::store::MemoryStore::from_pages(pages)?;
    /// let pool = leafpress_pages::PagePool::builder(store).codec("zstd:1".parse()?).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn codec(self, codec: Codec) -> Self {
        Self { codec, ..self }
    }

    /// Sets how the budget is shared between raw and compressed pages. Default: adaptive.
    ///
    /// ```
    /// # let pages = (0..100).map(|page: u32| page.to_le_bytes().repeat(1024));
    /// # let store = leafpress_pages::store::MemoryStore::from_pages(pages)?;
    /// use leafpress_pages::pool::RawShare;
    ///
    /// let pool = leafpress_pages::PagePool::builder(store).share(RawShare::Fixed { raw_percent: 50 }).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn share(self, share: RawShare) -> Self {
        Self { share, ..self }
    }

    /// Sets the eviction policy. Default: CLOCK.
    ///
    /// ```
    /// # let pages = (0..100).map(|page: u32| page.to_le_bytes().repeat(1024));
    /// # let store = leafpress_pages::store::MemoryStore::from_pages(pages)?;
    /// let pool = leafpress_pages::PagePool::builder(store).policy("lru".parse()?).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn policy(self, policy: PolicyKind) -> Self {
        Self { policy, ..self }
    }

    /// Sets the number of hits after which a compressed page becomes raw again, 1 to 63. Default: 8.
    ///
    /// ```
    /// # let pages = (0..100).map(|page: u32| page.to_le_bytes().repeat(1024));
    /// # let store = leafpress_pages::store::MemoryStore::from_pages(pages)?;
    /// let pool = leafpress_pages::PagePool::builder(store).promote_after_hits(4).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn promote_after_hits(self, promote_after_hits: u8) -> Self {
        Self {
            promote_after_hits,
            ..self
        }
    }

    /// Sets the number of threads that compress and evict ahead of need, and adapt the share, 0 to 64. The threads that
    /// call the pool do so too when room runs out. Default: 1.
    ///
    /// ```
    /// # let pages = (0..100).map(|page: u32| page.to_le_bytes().repeat(1024));
    /// # let store = leafpress_pages::store::MemoryStore::from_pages(pages)?;
    /// let pool = leafpress_pages::PagePool::builder(store).background_threads(0).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn background_threads(self, background_threads: usize) -> Self {
        Self {
            background_threads,
            ..self
        }
    }

    /// Builds the pool.
    ///
    /// ```
    /// # let pages = (0..100).map(|page: u32| page.to_le_bytes().repeat(1024));
    /// # let store = leafpress_pages::store::MemoryStore::from_pages(pages)?;
    /// use leafpress_pages::PagePool;
    ///
    /// assert!(PagePool::builder(store).memory(1000).build().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error for an option out of its bounds, a codec that is not available here, or a thread that cannot be
    /// started.
    pub fn build(self) -> Result<PagePool, PoolError> {
        let max_page_bytes = self.store.max_page_bytes();
        if !(1..=MAX_PAGE_BYTES).contains(&max_page_bytes) {
            return Err(option(
                "store",
                format!("its pages have up to {max_page_bytes} bytes; 1 to {MAX_PAGE_BYTES} are allowed"),
            ));
        }
        check_budget(self.budget_bytes, max_page_bytes)?;
        if !(1..=63).contains(&self.promote_after_hits) {
            return Err(option(
                "promote_after_hits",
                format!("{} is not within 1 to 63", self.promote_after_hits),
            ));
        }
        if self.background_threads > MAX_THREADS {
            return Err(option(
                "background_threads",
                format!("{} are more than {MAX_THREADS}", self.background_threads),
            ));
        }
        let raw_percent = match self.share {
            RawShare::Fixed { raw_percent } if raw_percent > 100 => {
                return Err(option("share", format!("{raw_percent} percent are more than 100")));
            }
            RawShare::Fixed { raw_percent } => f64::from(raw_percent),
            RawShare::Adaptive => 100.0,
        };
        let engine = match self.codec {
            Codec::None => None,
            codec => Some(codec.open(&EngineOptions::default())?),
        };
        let costs = Arc::new(Costs::default());
        let adapts = self.share == RawShare::Adaptive && engine.is_some();
        let adaptive = adapts.then(|| {
            Adaptive::of_pool(
                self.policy,
                self.promote_after_hits,
                self.budget_bytes,
                typical_page_bytes(&*self.store),
                DEFAULT_RAW_FRACTION,
                costs.clone(),
            )
        });
        let adaptive = adaptive.transpose()?;
        let shards = (self.budget_bytes / SHARD_BYTES)
            .next_power_of_two()
            .clamp(4, MAX_SHARDS);
        let index = Index::new(shards);
        let policy = self.policy.build()?;
        let frames = Frames::new(max_page_bytes, self.store.has_one_length());
        let core = Arc::new(PoolInner {
            max_page_bytes,
            max_run_bytes: frames.run_bytes(max_page_bytes),
            engine,
            policy: self.policy,
            wants_hits: policy.wants_hits(),
            promote_after_hits: self.promote_after_hits,
            budget: AtomicUsize::new(self.budget_bytes),
            adaptive,
            costs,
            raw_percent,
            entries: Entries::new(),
            index_bytes: AtomicUsize::new(index.first_bytes()),
            index,
            frames,
            log: Log::new(self.budget_bytes, max_page_bytes),
            unsynced: Unsynced::new(self.budget_bytes),
            policy_bytes: AtomicUsize::new(policy.bytes()),
            raw: Mutex::new(RawSpace::new(policy)),
            places: AtomicU32::new(0),
            waiters: Waiters::default(),
            workers: Workers::default(),
            copy_bytes: AtomicUsize::new(0),
            counts: PoolCounts::default(),
            store: self.store,
        });
        let threads = Threads::start(&core, self.background_threads)?;
        Ok(PagePool { threads, core })
    }
}
