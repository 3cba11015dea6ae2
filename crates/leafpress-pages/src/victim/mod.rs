//! A victim cache: holds the blocks that another cache evicts, compressed, and is looked up when that cache misses.
//!
//! It is placed between a cache of decoded blocks and a device. It has no backing store: a block is inserted, looked
//! up, removed, or evicted. Its memory, including tables, slack and dictionaries, never exceeds its memory budget.
//!
//! - Admission is decided before compression, by a block's recent access frequency compared with that of its potential
//!   victims (TinyLFU): a scan does not flush the cache, and blocks that are requested once cost no compression.
//! - A block that does not compress by an eighth is stored raw; no block is ever stored larger than raw.
//! - A part of the memory, from none to all of it, holds compressible blocks raw; it is adapted to the least cost per
//!   lookup ([`RawShare`]).
//! - Dictionaries are trained in the background from the blocks held, one for each family of blocks, and used if they
//!   save enough.
//! - Every stored block has a checksum. A block that fails it is dropped and counts as a miss.
//!
//! Begin with [`VictimCache::builder`], [`VictimCache::insert`], [`VictimCache::get`], [`VictimCache::take`],
//! [`VictimCache::remove`] and [`VictimCache::stats`]. [`VictimCache::insert_with`] and [`VictimCache::read`] insert
//! and read blocks without a copy, with the options of [`NewBlock`] and [`OnHit`].
//!
//! ```
//! # fn main() -> Result<(), leafpress_pages::victim::VictimError> {
//! use leafpress_pages::victim::VictimCache;
//!
//! let cache = VictimCache::builder().memory(8 << 20).codec("lz4".parse()?).build()?;
//! cache.insert(b"table 7, block 3", &[7; 4096]);
//! assert_eq!(cache.get(b"table 7, block 3").as_deref(), Some([7; 4096].as_slice()));
//! assert!(cache.stats().bytes_held < 8 << 20);
//! assert_eq!(cache.take(b"table 7, block 3").as_deref(), Some([7; 4096].as_slice()));
//! assert_eq!(cache.get(b"table 7, block 3"), None);
//! # Ok(())
//! # }
//! ```

mod adaptive;
mod background;
mod buffers;
mod dictionaries;
#[allow(unsafe_code)]
mod entry;
mod inner;
mod insert;
mod limits;
mod locked_shard;
mod read;
mod resize;
mod shard;
mod stats;
mod work_queue;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use thiserror::Error;

pub use crate::tuner::{ParseRawShareError, RawShare};
use leafpress_base::sync::runtime::TaskHandle;
use leafpress_codec::{Codec, CodecError, Engine, EngineOptions};
pub use stats::VictimStats;

/// The maximum length of a key, in bytes.
pub const MAX_KEY_BYTES: usize = 1024;
/// The maximum length of a dictionary, in bytes.
pub const MAX_DICTIONARY_BYTES: usize = 256 << 10;
/// The maximum number of shards, as a power of two.
pub const MAX_SHARD_BITS: u32 = 10;

/// Target size of a shard in bytes, if the number of shards is not given.
const SHARD_BYTES: usize = 4 << 20;
const DEFAULT_MAX_SHARD_BITS: u32 = 8;
/// The memory budget for which shards are sized if the initial one is smaller.
const MIN_EXPECTED_BYTES: usize = 16 << 20;
const DEFAULT_MEMORY_BYTES: usize = 64 << 20;
const DEFAULT_DICTIONARY_BYTES: usize = 16 << 10;
/// The worth of a promoted block, relative to its normal worth: it will be hit elsewhere, and saves a compression when
/// it returns.
const PROMOTED_WORTH: f32 = 0.125;

/// Returns true if a block with the access frequency `frequency` should be made raw, and a raw one with the frequency
/// `least` compressed for it. The exchange costs as much as several decodings, so it has to save some more of them.
fn is_worth_restoring(frequency: u8, least: u8) -> bool {
    u16::from(frequency) > 2 * u16::from(least) + 8
}

/// An error of a [`VictimCache`].
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum VictimError {
    /// A builder option is out of its bounds.
    #[error("{option}: {reason}")]
    Option {
        /// The name of the builder's method.
        option: &'static str,
        /// The invalid value and the allowed values.
        reason: String,
    },
    /// The codec cannot be used.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// A thread could not be started.
    #[error("cannot start a background thread: {reason}")]
    Thread {
        /// The error of the system.
        reason: String,
    },
    /// The cache's upkeep has ended after repeated panics.
    #[error("background work has stopped: {reason}")]
    Background {
        /// The cause.
        reason: String,
    },
    /// [`VictimCache::validate`] found the accounting inconsistent.
    #[error("shard {shard}: {faults}")]
    Invalid {
        /// The index of the shard.
        shard: usize,
        /// The inconsistencies.
        faults: String,
    },
}

impl From<ParseRawShareError> for VictimError {
    fn from(error: ParseRawShareError) -> Self {
        Self::Option {
            option: "share",
            reason: error.to_string(),
        }
    }
}

/// The description of a block to be inserted. [`NewBlock::new`] sets the defaults, which can then be changed.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct NewBlock {
    /// Its length in bytes; an empty block, or one of 4 GiB or more, is refused.
    pub raw_bytes: usize,
    /// The family of similar blocks to which it belongs: those of a family share a dictionary. Families above 7 are
    /// treated as 7.
    pub family: u8,
    /// A number that is stored with the block, and returned with it.
    pub tag: u16,
    /// Whether to compress it; false for compressed data.
    pub compress: bool,
    /// Whether it is admitted regardless of the victims.
    pub force: bool,
    /// Whether a block of this length and tag under this key can only be this block. One that was promoted and is still
    /// in the cache is then kept, and its bytes are not requested.
    pub unchanging: bool,
}

/// The action on a block after a hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnHit {
    /// The block stays.
    Keep,
    /// The block is removed.
    Remove,
    /// The block is promoted to the reader's own cache and will be inserted again when that evicts it. Until then it is
    /// among the first to be evicted; if it is still in the cache at its return, it is not compressed again
    /// ([`NewBlock::unchanging`]).
    Promote,
}

impl NewBlock {
    /// Returns the description of a block of this length, of the first family, to be compressed, and subject to
    /// admission.
    pub fn new(raw_bytes: usize) -> Self {
        Self {
            raw_bytes,
            family: 0,
            tag: 0,
            compress: true,
            force: false,
            unchanging: false,
        }
    }
}

/// A block that was found.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct FoundBlock<'b> {
    /// Its bytes, as they were inserted.
    pub bytes: &'b [u8],
    /// The number stored with it.
    pub tag: u16,
    /// Its family.
    pub family: u8,
}

/// The outcome of an insertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Insertion {
    /// The block was inserted.
    Inserted,
    /// The block was rejected: its victims are worth more.
    Rejected,
    /// The block was rejected: no room can be made for it, or its length or its key's is out of bounds.
    NoRoom,
}

/// Builder of a [`VictimCache`], from [`VictimCache::builder`].
#[derive(Debug, Clone)]
pub struct VictimBuilder {
    memory_bytes: usize,
    codec: Codec,
    dictionary_bytes: usize,
    shard_bits: Option<u32>,
    admission: bool,
    share: RawShare,
    engine: Option<Arc<dyn Engine>>,
}

impl VictimBuilder {
    /// Sets the memory budget in bytes, including tables, slack and dictionaries; default 64 MiB.
    #[must_use]
    pub fn memory(mut self, memory_bytes: usize) -> Self {
        self.memory_bytes = memory_bytes;
        self
    }

    /// Sets the codec of the blocks; default `lz4`. `none` keeps them raw.
    #[must_use]
    pub fn codec(mut self, codec: Codec) -> Self {
        self.codec = codec;
        self.engine = None;
        self
    }

    /// Sets the length of a trained dictionary in bytes, 256 to [`MAX_DICTIONARY_BYTES`]; default 16 KiB, 0 for none.
    /// Codecs without dictionary support ignore it, and dictionaries with their tables take at most a sixteenth of the
    /// memory budget.
    #[must_use]
    pub fn dictionary_bytes(mut self, dictionary_bytes: usize) -> Self {
        self.dictionary_bytes = dictionary_bytes;
        self
    }

    /// Sets the number of shards to 2 to this power, up to [`MAX_SHARD_BITS`]; by default a shard has 4 MiB, and there
    /// are at most 256. A shard with less than 128 KiB holds nothing, and one never holds a block longer than half of
    /// it.
    #[must_use]
    pub fn shard_bits(mut self, shard_bits: u32) -> Self {
        self.shard_bits = Some(shard_bits);
        self
    }

    /// Sets whether blocks are rejected if their victims are worth more; on by default.
    #[must_use]
    pub fn admission(mut self, admission: bool) -> Self {
        self.admission = admission;
        self
    }

    /// Sets the share of the memory for compressible blocks that are kept raw, so that a hit on them decodes nothing;
    /// default [`RawShare::Adaptive`]: the cache finds the share with the least cost per lookup. With 100% nothing is
    /// compressed.
    #[must_use]
    pub fn share(mut self, share: RawShare) -> Self {
        self.share = share;
        self
    }

    /// Sets an open engine instead of one for the codec that was set. The cache's codec is that of the engine.
    #[must_use]
    pub fn engine(mut self, engine: Arc<dyn Engine>) -> Self {
        self.codec = engine.codec();
        self.engine = Some(engine);
        self
    }

    /// Builds the cache.
    ///
    /// # Errors
    /// Returns [`VictimError::Option`] for a setting out of its bounds, [`VictimError::Codec`] for a codec that cannot
    /// run here, or [`VictimError::Thread`] if the system cannot start a thread.
    pub fn build(self) -> Result<VictimCache, VictimError> {
        let option = |option, reason| Err(VictimError::Option { option, reason });
        let least = leafpress_codec::MIN_DICTIONARY_BYTES;
        if self.dictionary_bytes != 0 && !(least..=MAX_DICTIONARY_BYTES).contains(&self.dictionary_bytes) {
            let reason = format!(
                "{} bytes; give 0 for none, or {least} to {MAX_DICTIONARY_BYTES}",
                self.dictionary_bytes
            );
            return option("dictionary_bytes", reason);
        }
        let bits = match self.shard_bits {
            Some(bits) if bits > MAX_SHARD_BITS => {
                return option("shard_bits", format!("{bits}; give at most {MAX_SHARD_BITS}"));
            }
            Some(bits) => bits,
            None => {
                let expected = self.memory_bytes.max(MIN_EXPECTED_BYTES);
                (expected / SHARD_BYTES).ilog2().min(DEFAULT_MAX_SHARD_BITS)
            }
        };
        if let RawShare::Fixed { raw_percent } = self.share
            && raw_percent > 100
        {
            return option("share", format!("{raw_percent}%; give at most 100%"));
        }
        let engine = match self.engine {
            Some(engine) => engine,
            None => self.codec.open(&EngineOptions::default())?,
        };
        let core = inner::VictimInner::new(self.codec, engine, 1 << bits, self.dictionary_bytes, self.share);
        let core = Arc::new(core);
        core.admission.store(self.admission, Relaxed);
        core.set_memory(self.memory_bytes);
        let task = if core.dictionaries.dictionary_bytes > 0 || core.adaptive.is_some() {
            Some(background::start(&core).map_err(|error| VictimError::Thread {
                reason: error.to_string(),
            })?)
        } else {
            None
        };
        Ok(VictimCache { _task: task, core })
    }
}

/// A victim cache; see [the module](self). All methods may be called from many threads at once.
///
/// No lock is held while a block is compressed, decoded or passed to a reader; a lookup locks one shard for the time of
/// a probe.
///
/// # Fork
///
/// A forked child must not use a cache of its parent: another thread may have held one of its locks at the fork, and
/// the upkeep threads do not exist in the child. The child may build caches of its own.
pub struct VictimCache {
    // Before the core: the task ends first.
    _task: Option<TaskHandle>,
    core: Arc<inner::VictimInner>,
}

impl std::fmt::Debug for VictimCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VictimCache")
            .field("codec", &self.core.codec)
            .field("budget_bytes", &self.core.budget())
            .field("shards", &self.core.shards.len())
            .finish_non_exhaustive()
    }
}

impl VictimCache {
    /// Returns a builder with every option at its default.
    pub fn builder() -> VictimBuilder {
        VictimBuilder {
            memory_bytes: DEFAULT_MEMORY_BYTES,
            codec: Codec::Lz4 { acceleration: 1 },
            dictionary_bytes: DEFAULT_DICTIONARY_BYTES,
            shard_bits: None,
            admission: true,
            share: RawShare::Adaptive,
            engine: None,
        }
    }

    /// Inserts a block, if it is admitted. An older block with this key is removed even if the new one is rejected, for
    /// any reason, because it is outdated.
    pub fn insert(&self, key: &[u8], block: &[u8]) -> Insertion {
        let fill = |raw: &mut [u8]| {
            raw.copy_from_slice(block);
            Ok::<(), Infallible>(())
        };
        match self.core.insert(key, &NewBlock::new(block.len()), fill) {
            Ok(insertion) => insertion,
            Err(never) => match never {},
        }
    }

    /// Inserts a block like [`VictimCache::insert`], and calls `fill` for its bytes only if it is admitted.
    ///
    /// # Errors
    /// Returns the error of `fill`; nothing is inserted then, and an older block of the key is removed unless
    /// [`NewBlock::unchanging`] is set.
    pub fn insert_with<E>(
        &self,
        key: &[u8],
        block: &NewBlock,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Insertion, E> {
        self.core.insert(key, block, fill)
    }

    /// Returns a copy of the block. If there is no memory for it, returns [`None`], and the block stays.
    pub fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.copy(key, false)
    }

    /// Removes the block and returns a copy of it. If there is no memory for the copy, the block is removed
    /// nevertheless.
    pub fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.copy(key, true)
    }

    fn copy(&self, key: &[u8], take: bool) -> Option<Vec<u8>> {
        let copy = |found: FoundBlock<'_>| Ok::<_, Infallible>(read::copy_of(found.bytes));
        let on_hit = if take { OnHit::Remove } else { OnHit::Keep };
        match self.core.read(key, on_hit, copy)? {
            Ok(block) => block,
            Err(never) => match never {},
        }
    }

    /// Calls `read` with the block's bytes, without a copy, and returns its result; [`None`] if the block is absent. A
    /// block for which `read` returns an error is dropped.
    pub fn read<R, E>(
        &self,
        key: &[u8],
        on_hit: OnHit,
        read: impl FnOnce(FoundBlock<'_>) -> Result<R, E>,
    ) -> Option<Result<R, E>> {
        self.core.read(key, on_hit, read)
    }

    /// Removes the block; returns true if it was present.
    pub fn remove(&self, key: &[u8]) -> bool {
        self.core.remove(key)
    }

    /// Returns the memory budget in bytes, as last set.
    pub fn memory(&self) -> usize {
        self.core.budget()
    }

    /// Sets the memory budget, in bytes. If it shrinks, blocks are evicted before this returns, including blocks that
    /// other threads are reading, for which it waits. Called within [`VictimCache::read`] of this cache it does not
    /// wait; what cannot be evicted yet is evicted when that read ends.
    pub fn set_memory(&self, bytes: usize) {
        self.core.set_memory(bytes);
    }

    /// Reduces the memory budget by `bytes` until [`VictimCache::grow_back`] restores them.
    pub fn shrink_by(&self, bytes: usize) {
        self.core.shrink_by(bytes);
    }

    /// Restores bytes by which [`VictimCache::shrink_by`] reduced the memory budget.
    pub fn grow_back(&self, bytes: usize) {
        self.core.grow_back(bytes);
    }

    /// Returns a snapshot of the statistics.
    pub fn stats(&self) -> VictimStats {
        self.core.stats()
    }

    /// Waits for due trainings, and until the events for the adaptive share are processed.
    ///
    /// # Errors
    /// Returns [`VictimError::Background`] if the cache's upkeep has ended after repeated panics.
    pub fn settle(&self) -> Result<(), VictimError> {
        if self._task.is_some() {
            self.core.work.settle();
        }
        self.core
            .health
            .failure()
            .map_or(Ok(()), |reason| Err(VictimError::Background { reason }))
    }

    /// Checks the cache's accounting against its contents.
    ///
    /// # Errors
    /// Returns [`VictimError::Invalid`], which is caused by a defect of this library or of the memory.
    pub fn validate(&self) -> Result<(), VictimError> {
        self.core.validate()
    }

    /// Flips a bit of the stored block, for tests; returns true if the block is present and was not being read.
    #[cfg(feature = "testing")]
    pub fn flip_bit(&self, key: &[u8], bit: usize) -> bool {
        self.core.flip(key, bit)
    }
}
