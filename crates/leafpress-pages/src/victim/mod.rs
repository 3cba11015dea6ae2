//! A victim cache: what another cache evicts is put in here, compressed, and looked up when that cache misses.
//!
//! It stands between a cache of decoded blocks and a device. There is no store behind it: a block is put in, looked up, taken out again, or
//! dropped to make room. What it holds, tables, slack and dictionaries included, is never more than its capacity.
//!
//! - Whether a block is let in is decided before it is compressed, by how often it was asked for lately against what would have to
//!   leave (TinyLFU): a scan does not wipe the cache, and blocks that nobody asks for twice cost no compression.
//! - A block that does not shrink by an eighth is stored raw; no block is ever stored larger than raw.
//! - Blocks that could be compressed are kept raw in a part of the memory, which grows and shrinks so that a lookup takes least time, from
//!   none of it to all of it ([`RawShare`]).
//! - Dictionaries are trained in the background from the blocks that are held, one for each family of blocks, and taken into use when
//!   they save something.
//! - Every stored block has a checksum. One that fails it is dropped and counts as a miss.
//!
//! ```
//! # fn main() -> Result<(), leafpress_pages::victim::VictimError> {
//! use leafpress_pages::victim::VictimCache;
//!
//! let cache = VictimCache::builder(8 << 20).codec("lz4".parse()?).build()?;
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
mod padded;
mod read;
mod resize;
mod shard;
mod stats;
mod wake;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use thiserror::Error;

pub use crate::tuner::{ParseRawShareError, RawShare};
use leafpress_base::sync::runtime::TaskHandle;
use leafpress_codec::{Codec, CodecError, Engine, EngineOptions};
pub use stats::VictimStats;

/// The longest key, in bytes.
pub const MAX_KEY_BYTES: usize = 1024;
/// The largest dictionary that can be asked for, in bytes.
pub const MAX_DICTIONARY_BYTES: usize = 256 << 10;
/// The most shards, as a power of two.
pub const MAX_SHARD_BITS: u32 = 10;

/// A shard is for about so many bytes, where the number of shards is not given.
const SHARD_BYTES: usize = 4 << 20;
const DEFAULT_MAX_SHARD_BITS: u32 = 8;
/// What shards are made for when the capacity begins small.
const MIN_EXPECTED_BYTES: usize = 16 << 20;
const DEFAULT_DICTIONARY_BYTES: usize = 16 << 10;
/// What a block that is lent is worth, as a part of what it would be worth otherwise: it will be hit elsewhere, and saves a compression when
/// it returns.
const LENT_WORTH: f32 = 0.125;

/// Whether a block that was asked for `asked` times lately is to be made raw, and a raw one that was asked for `least` times to be compressed
/// for it. That costs as much as some decodings, so there have to be some more of them to save.
fn is_worth_restoring(asked: u8, least: u8) -> bool {
    u16::from(asked) > 2 * u16::from(least) + 8
}

/// An error of a [`VictimCache`].
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum VictimError {
    /// A builder option is out of its bounds.
    #[error("{option}: {reason}")]
    Option {
        /// The builder method.
        option: &'static str,
        /// What was wrong and what is allowed.
        reason: String,
    },
    /// The codec cannot be used.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// A thread could not be started.
    #[error("cannot start a background thread: {reason}")]
    Thread {
        /// What the system said.
        reason: String,
    },
    /// The cache's upkeep panicked again and again and has ended; what it did is not done any more.
    #[error("background work is not done any more: {reason}")]
    Background {
        /// What happened.
        reason: String,
    },
    /// [`VictimCache::validate`] found the cache's books wrong.
    #[error("shard {shard}: {faults}")]
    Broken {
        /// The shard.
        shard: usize,
        /// What is wrong.
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

/// A block to be inserted. [`NewBlock::new`] sets the defaults.
#[derive(Debug, Clone, Copy)]
pub struct NewBlock {
    /// Its length in bytes; an empty block, or one of 4 GiB or more, is refused.
    pub raw_bytes: usize,
    /// Which blocks it is like: those of a family share a dictionary. Families past 7 are 7.
    pub family: u8,
    /// A number that is handed out with the block.
    pub tag: u16,
    /// Whether to compress it; not what is compressed already.
    pub compress: bool,
    /// Whether it is let in whatever has to leave.
    pub force: bool,
    /// Whether a block of this length and tag under this key can only be this block. One that was lent and is here then stays as it is,
    /// and its bytes are not asked for.
    pub unchanging: bool,
}

/// What happens to a block after a hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnHit {
    /// The block stays.
    Keep,
    /// The block is removed.
    Remove,
    /// The block is promoted to the reader's own cache and will be inserted again when that evicts it. Until then it is among the first to be
    /// evicted; if it is still here, it is not compressed again ([`NewBlock::unchanging`]).
    Promote,
}

impl NewBlock {
    /// A block of so many bytes of the first family, to be compressed, and let in when it is worth it.
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
    /// Its bytes, as they were put in.
    pub bytes: &'b [u8],
    /// The number it was put in with.
    pub tag: u16,
    /// Its family.
    pub family: u8,
}

/// What became of a block that was to be put in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Insertion {
    /// It is in the cache.
    Inserted,
    /// It is not: what would have to leave is worth more.
    Rejected,
    /// It is not: there is no room to be made for it, or its length or its key's is out of bounds.
    NoRoom,
}

/// Settings of a cache; [`VictimCache::builder`] begins with the defaults.
#[derive(Debug, Clone)]
pub struct VictimBuilder {
    capacity_bytes: usize,
    codec: Codec,
    dictionary_bytes: usize,
    shard_bits: Option<u32>,
    admission: bool,
    share: RawShare,
    engine: Option<Arc<dyn Engine>>,
}

impl VictimBuilder {
    /// What compresses the blocks; `lz4` unless set. `none` keeps them raw.
    #[must_use]
    pub fn codec(mut self, codec: Codec) -> Self {
        self.codec = codec;
        self.engine = None;
        self
    }

    /// Length of a trained dictionary in bytes, 256 to [`MAX_DICTIONARY_BYTES`]; 16 KiB unless set, 0 for none. Codecs that use no
    /// dictionaries ignore it, and dictionaries with their tables take a sixteenth of the capacity at most.
    #[must_use]
    pub fn dictionary_bytes(mut self, dictionary_bytes: usize) -> Self {
        self.dictionary_bytes = dictionary_bytes;
        self
    }

    /// 2 to this power shards, up to [`MAX_SHARD_BITS`]; unless set, so many that one has 4 MiB, 256 at most. A shard with less
    /// than 128 KiB holds nothing, and one never holds a block longer than half of it.
    #[must_use]
    pub fn shard_bits(mut self, shard_bits: u32) -> Self {
        self.shard_bits = Some(shard_bits);
        self
    }

    /// Whether blocks are refused when what would have to leave is worth more; on unless set.
    #[must_use]
    pub fn admission(mut self, admission: bool) -> Self {
        self.admission = admission;
        self
    }

    /// What part of the memory is for blocks that are kept raw though they could be compressed, so that a hit on them decodes nothing;
    /// [`RawShare::Adaptive`] unless set: the cache finds the share at which a lookup takes least. With 100% nothing is compressed.
    #[must_use]
    pub fn share(mut self, share: RawShare) -> Self {
        self.share = share;
        self
    }

    /// An engine that is open already, in place of one for the codec that was set. The cache's codec is that of the engine.
    #[must_use]
    pub fn engine(mut self, engine: Arc<dyn Engine>) -> Self {
        self.codec = engine.codec();
        self.engine = Some(engine);
        self
    }

    /// Makes the cache.
    ///
    /// # Errors
    /// [`VictimError::Option`] for a setting out of its bounds, [`VictimError::Codec`] for a codec that cannot run here,
    /// [`VictimError::Thread`] when the system starts no thread.
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
                let expected = self.capacity_bytes.max(MIN_EXPECTED_BYTES);
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
        core.set_memory(self.capacity_bytes);
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
/// No lock is held while a block is compressed, decoded or handed out; a lookup takes a lock of one shard for the time of a probe.
pub struct VictimCache {
    // Before the core: the task ends first.
    _task: Option<TaskHandle>,
    core: Arc<inner::VictimInner>,
}

impl std::fmt::Debug for VictimCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VictimCache")
            .field("codec", &self.core.codec)
            .field("capacity_bytes", &self.core.capacity())
            .field("shards", &self.core.shards.len())
            .finish_non_exhaustive()
    }
}

impl VictimCache {
    /// A builder for a cache of so many bytes, tables, slack and dictionaries included.
    pub fn builder(capacity_bytes: usize) -> VictimBuilder {
        VictimBuilder {
            capacity_bytes,
            codec: Codec::Lz4 { acceleration: 1 },
            dictionary_bytes: DEFAULT_DICTIONARY_BYTES,
            shard_bits: None,
            admission: true,
            share: RawShare::Adaptive,
            engine: None,
        }
    }

    /// Puts a block in, if it is worth it. A block with this key that is there already leaves, even where the new one is refused, for
    /// whatever reason: it is out of date.
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

    /// [`VictimCache::insert`] for a block whose bytes are only asked for when it is let in.
    ///
    /// # Errors
    /// What `fill` says; nothing is put in then, and an older block of the key leaves unless [`NewBlock::unchanging`] is set.
    pub fn insert_with<E>(
        &self,
        key: &[u8],
        block: &NewBlock,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Insertion, E> {
        self.core.insert(key, block, fill)
    }

    /// A copy of the block. Where there is no memory for it, it is as if the block was not here; it stays.
    pub fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.copy(key, false)
    }

    /// A copy of the block, which leaves the cache, whether there is memory for the copy or not.
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

    /// Hands the block's bytes to `read` without a copy. [`None`] where it is not here. A block that `read` fails on is dropped.
    pub fn read<R, E>(
        &self,
        key: &[u8],
        on_hit: OnHit,
        read: impl FnOnce(FoundBlock<'_>) -> Result<R, E>,
    ) -> Option<Result<R, E>> {
        self.core.read(key, on_hit, read)
    }

    /// Removes the block; returns whether it was here.
    pub fn remove(&self, key: &[u8]) -> bool {
        self.core.remove(key)
    }

    /// Returns the memory budget in bytes, as last set.
    pub fn memory(&self) -> usize {
        self.core.capacity()
    }

    /// Changes the memory budget. When it shrinks, blocks are evicted before this returns, including blocks that other threads are reading,
    /// for which it waits. Called within [`VictimCache::read`] of this cache it does not wait; what cannot be evicted yet is evicted when
    /// that read ends.
    pub fn set_memory(&self, capacity_bytes: usize) {
        self.core.set_memory(capacity_bytes);
    }

    /// Takes `bytes` off the memory budget until [`VictimCache::grow_back`] gives them back.
    pub fn shrink_by(&self, bytes: usize) {
        self.core.shrink_by(bytes);
    }

    /// Gives back bytes that [`VictimCache::shrink_by`] took.
    pub fn grow_back(&self, bytes: usize) {
        self.core.grow_back(bytes);
    }

    /// What the cache holds and did.
    pub fn stats(&self) -> VictimStats {
        self.core.stats()
    }

    /// Waits for trainings that are due, and until what was noted for the share is worked off.
    ///
    /// # Errors
    /// [`VictimError::Background`] where the cache's upkeep has ended because all it did panicked.
    pub fn settle(&self) -> Result<(), VictimError> {
        if self._task.is_some() {
            self.core.wake.settle();
        }
        self.core
            .health
            .failure()
            .map_or(Ok(()), |reason| Err(VictimError::Background { reason }))
    }

    /// Checks the cache's books against what is in it.
    ///
    /// # Errors
    /// [`VictimError::Broken`], which is a defect of this library or of the memory.
    pub fn validate(&self) -> Result<(), VictimError> {
        self.core.validate()
    }

    /// Flips a bit of the stored block, for tests; returns whether the block is here and was not being read.
    #[cfg(feature = "testing")]
    pub fn flip_bit(&self, key: &[u8], bit: usize) -> bool {
        self.core.flip(key, bit)
    }
}
