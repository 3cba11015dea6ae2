//! Configuration of a tree.

use std::sync::Arc;

use crate::tree::error::TreeError;
use crate::tree::{TemperatureRule, Tree};
use leafpress_codec::{Codec, Dictionary, DictionaryPool, Engine, EngineOptions, JobCache, StreamCache, TrialGoal};

/// The arrangement of a leaf's records in frames, which exists for measurements: with the feature `testing`. It may
/// change without notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// Sequences of adjacent records.
    Ordered,
    /// `sub_pages` frames per leaf, each with the records whose key hash selects it: the layout of the ZipCache paper,
    /// where a read decodes one sub-page and stops early. 1 to 64.
    #[cfg_attr(not(any(test, feature = "testing")), expect(dead_code, reason = "for measurements"))]
    Hashed {
        /// Number of frames per leaf.
        sub_pages: usize,
    },
}

/// How keys are distributed to shards.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShardBy {
    /// By a hash of the key without the low four bits of its last byte: up to 16 neighbouring keys stay together, so
    /// that they are compressed together.
    Hash,
    /// By key range: shard i holds the keys from boundary i-1 (inclusive) to boundary i (exclusive). The boundaries
    /// ascend, and there is one fewer than shards.
    Range(Vec<Vec<u8>>),
}

/// The source of a tree's dictionary.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum DictionaryChoice {
    /// No dictionary.
    Off,
    /// Sampled from the tree's own leaves and trained in the background; kept only if it helps.
    Auto,
    /// The given dictionary.
    Given(Dictionary),
    /// The given dictionary at first, trained from similar records elsewhere, so that the first records are compressed
    /// with it. Later as `Auto`: another is trained from the tree's own records, and replaces it if it is better.
    Initial(Dictionary),
}

impl DictionaryChoice {
    /// Returns the dictionary that a tree begins with.
    pub(crate) fn first(&self) -> Option<&Dictionary> {
        match self {
            Self::Given(dictionary) | Self::Initial(dictionary) => Some(dictionary),
            Self::Off | Self::Auto => None,
        }
    }

    /// Returns whether dictionaries are trained from the tree's own records.
    pub(crate) fn trains(&self) -> bool {
        matches!(self, Self::Auto | Self::Initial(_))
    }
}

/// Where a tree's upkeep runs: training of dictionaries and recompression with them, compaction of landing buffers,
/// defragmentation of the heap, and rebuilding of the interpolation index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Upkeep {
    /// On the upkeep threads, which all trees and caches of the process share.
    #[default]
    Threads,
    /// On the caller's thread, step by step in [`Tree::run_upkeep`]: for a single-threaded program, or one that forks.
    /// The tree starts no thread except one for each training, which works on copied samples and takes no lock of the
    /// tree, so that the process may fork at any time: in the child no lock is held that its own thread did not take,
    /// and it may read the tree.
    ///
    /// Memory that a write or a removal replaces is freed when the operation ends, unless a reader uses it.
    ///
    /// Excludes [`TreeBuilder::background_threads`] and [`Codec::Auto`], whose scans of all leaves are not done in
    /// steps.
    Caller,
}

/// A builder of a [`Tree`]. Every option has a default; each method documents its bounds, which [`TreeBuilder::build`]
/// checks.
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until it builds"]
pub struct TreeBuilder {
    pub(crate) codec: Codec,
    pub(crate) engine: Option<Arc<dyn Engine>>,
    pub(crate) engine_options: EngineOptions,
    pub(crate) leaf_bytes: Option<usize>,
    pub(crate) frame_bytes: Option<usize>,
    pub(crate) keys_in_blocks: Option<bool>,
    pub(crate) layout: Layout,
    pub(crate) inline_value_bytes: Option<usize>,
    pub(crate) landing_bytes: Option<usize>,
    pub(crate) shards: usize,
    pub(crate) shard_by: ShardBy,
    pub(crate) dictionary: DictionaryChoice,
    pub(crate) dictionary_bytes: Option<usize>,
    pub(crate) dictionary_pool: Option<DictionaryPool>,
    pub(crate) background_threads: usize,
    pub(crate) load_threads: usize,
    pub(crate) landing_compaction_pct: u8,
    pub(crate) background_codec: Option<String>,
    pub(crate) upkeep: Upkeep,
    pub(crate) temperature_rule: TemperatureRule,
    /// Whether records have marks, which a cache on top of the tree uses.
    pub(crate) marks: bool,
    /// Whether records may be hot with any codec: a cache on top of the tree sets their budget.
    pub(crate) hot_records: bool,
}

impl Default for TreeBuilder {
    fn default() -> Self {
        Self {
            codec: Codec::Trial {
                goal: TrialGoal::Balance,
            },
            engine: None,
            engine_options: EngineOptions::default(),
            leaf_bytes: None,
            frame_bytes: None,
            keys_in_blocks: None,
            layout: Layout::Ordered,
            inline_value_bytes: None,
            landing_bytes: None,
            shards: 1,
            shard_by: ShardBy::Hash,
            dictionary: DictionaryChoice::Auto,
            dictionary_bytes: None,
            dictionary_pool: None,
            background_threads: 0,
            load_threads: 1,
            landing_compaction_pct: 75,
            background_codec: None,
            upkeep: Upkeep::Threads,
            temperature_rule: TemperatureRule::default(),
            marks: false,
            hot_records: false,
        }
    }
}

impl TreeBuilder {
    /// Sets the codec of the leaves. Default: `trial`.
    ///
    /// With [`Codec::Trial`] the tree begins with LZ4. Whenever it trains a dictionary it trains one for each of
    /// [`Codec::candidates`], rebuilds some of its own leaves with each, measures their bytes and the time of reads,
    /// and takes the best: [`TreeStats::codec`](crate::tree::TreeStats::codec) and
    /// [`TreeStats::limits_reason`](crate::tree::TreeStats::limits_reason) report the result.
    ///
    /// With [`Codec::Auto`] records and leaves have a *temperature*: frequently read records have uncompressed copies
    /// (hot), rarely read leaves are compressed by Zstandard in wide frames (cold), and the others are compressed as
    /// with `trial` (warm). The tree counts reads and compacts leaves in the background as they become warmer or
    /// colder: see [`TreeBuilder::temperature_rule`], and
    /// [`TreeStats::temperature_reason`](crate::tree::TreeStats::temperature_reason).
    ///
    /// ```
    /// let tree = leafpress::Tree::builder().codec("zstd:1".parse()?).build()?;
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn codec(mut self, codec: Codec) -> Self {
        self.codec = codec;
        self
    }

    /// Sets a custom compression engine instead of the one named by [`TreeBuilder::codec`].
    ///
    /// ```
    /// use leafpress::codec::{Codec, EngineOptions};
    ///
    /// // One of the library's, which trees may share; or an `Engine` of the program's own.
    /// let engine = Codec::Lz4 { acceleration: 1 }.open(&EngineOptions::default())?;
    /// let tree = leafpress::Tree::builder().engine(engine).build()?;
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn engine(mut self, engine: Arc<dyn Engine>) -> Self {
        self.engine = Some(engine);
        self
    }

    /// Sets how the tree decides which leaves are cold, with [`Codec::Auto`]. Default: [`TemperatureRule::Costs`] with
    /// 50 per cent.
    ///
    /// ```
    /// use leafpress::tree::TemperatureRule;
    ///
    /// let rule = TemperatureRule::default();
    /// let tree = leafpress::Tree::builder().codec("auto".parse()?).temperature_rule(rule).build()?;
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn temperature_rule(mut self, rule: TemperatureRule) -> Self {
        self.temperature_rule = rule;
        self
    }

    /// Chooses whether the blocks of one-record frames hold the keys of leaves that do not pack them. By default they
    /// do where the codec compresses each record alone.
    #[doc(hidden)]
    pub fn keys_in_blocks(mut self, keys_in_blocks: bool) -> Self {
        self.keys_in_blocks = Some(keys_in_blocks);
        self
    }

    /// Sets how QPL jobs are cached, for experiments. Default: per thread.
    ///
    /// ```
    /// use leafpress::codec::JobCache;
    ///
    /// let tree = leafpress::Tree::builder().job_cache(JobCache::default()).build()?;
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    #[doc(hidden)]
    pub fn job_cache(mut self, job_cache: JobCache) -> Self {
        self.engine_options.job_cache = job_cache;
        self
    }

    /// Sets how zlib streams are cached, for experiments. Default: per thread.
    ///
    /// ```
    /// use leafpress::codec::StreamCache;
    ///
    /// let tree = leafpress::Tree::builder().stream_cache(StreamCache::default()).build()?;
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    #[doc(hidden)]
    pub fn stream_cache(mut self, stream_cache: StreamCache) -> Self {
        self.engine_options.stream_cache = stream_cache;
        self
    }

    /// Sets the user bytes (keys and values) at which a leaf splits, 1 KiB to 32 KiB. By default the tree chooses 16 or
    /// 32 KiB together with [`TreeBuilder::frame_bytes`], and begins with 16 KiB.
    ///
    /// ```
    /// let tree = leafpress::Tree::builder().leaf_bytes(16 << 10).build()?;
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn leaf_bytes(mut self, bytes: usize) -> Self {
        self.leaf_bytes = Some(bytes);
        self
    }

    /// Sets the raw bytes at which a frame is closed, 1 to `leaf_bytes`; 1 makes every record a frame. With
    /// [`Codec::Auto`] it applies to cold leaves (default: 4 KiB); the length for warm ones is chosen.
    ///
    /// By default the tree chooses the length when it first has 16 leaves and again whenever a dictionary is due: it
    /// tries lengths up to 4 KiB on a sample of its records, and weighs the bytes per record against the time of a
    /// read. [`TreeStats::limits_reason`](crate::tree::TreeStats::limits_reason) reports the result. The initial and
    /// minimum length is one record for `lz4`, 512 bytes for `zstd` and 2 KiB for the deflate family; for `none` it
    /// stays one record.
    ///
    /// ```
    /// // Each record by itself: the fastest reads.
    /// let tree = leafpress::Tree::builder().frame_bytes(1).build()?;
    /// assert_eq!(tree.stats().frame_limit_bytes, 1);
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn frame_bytes(mut self, bytes: usize) -> Self {
        self.frame_bytes = Some(bytes);
        self
    }

    /// Sets the arrangement of a leaf's records in frames, for measurements. Default: [`Layout::Ordered`].
    ///
    /// ```
    /// use leafpress::Layout;
    ///
    /// let tree = leafpress::Tree::builder().layout(Layout::Hashed { sub_pages: 16 }).build()?;
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    #[cfg(any(test, feature = "testing"))]
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// Sets the length in bytes of the longest value that leaves store inline, 64 to 2048; a longer one is a node of
    /// its own, which an update replaces without touching its leaf. By default 192 where values are not compressed, and
    /// 2048 where they are: a value compressed on its own shrinks less.
    ///
    /// ```
    /// let tree = leafpress::Tree::builder().inline_value_bytes(1024).build()?;
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn inline_value_bytes(mut self, bytes: usize) -> Self {
        self.inline_value_bytes = Some(bytes);
        self
    }

    /// Sets the size of a leaf's landing buffer in bytes, 0 to 16 KiB; with 0 every write compacts. By default it is
    /// chosen by the records: room for some of them, as long as that is small compared to the leaf.
    ///
    /// ```
    /// let tree = leafpress::Tree::builder().landing_bytes(4 << 10).build()?;
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn landing_bytes(mut self, bytes: usize) -> Self {
        self.landing_bytes = Some(bytes);
        self
    }

    /// Sets the number of shards, 1 to 1024. Default: 1.
    ///
    /// ```
    /// let tree = leafpress::Tree::builder().shards(8).build()?;
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn shards(mut self, shards: usize) -> Self {
        self.shards = shards;
        self
    }

    /// Sets how keys are distributed to shards. Default: [`ShardBy::Hash`].
    ///
    /// ```
    /// use leafpress::{ShardBy, Tree};
    ///
    /// // A shard for what is below "m", and one for the others.
    /// let shard_by = ShardBy::Range(vec![b"m".to_vec()]);
    /// let tree = Tree::builder().shards(2).shard_by(shard_by).build()?;
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn shard_by(mut self, shard_by: ShardBy) -> Self {
        self.shard_by = shard_by;
        self
    }

    /// Sets the source of the dictionary. Default: [`DictionaryChoice::Auto`]; codecs without dictionaries ignore it. A
    /// given one must be accepted by the codec: Zstandard rejects bytes that begin like one of its own dictionaries but
    /// are not one.
    ///
    /// ```
    /// use leafpress::DictionaryChoice;
    ///
    /// let tree = leafpress::Tree::builder().dictionary(DictionaryChoice::Off).build()?;
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn dictionary(mut self, dictionary: DictionaryChoice) -> Self {
        self.dictionary = dictionary;
        self
    }

    /// Sets the maximum size of a trained dictionary in bytes, 1 KiB to 1 MiB. The default depends on the size of the
    /// data.
    ///
    /// ```
    /// let tree = leafpress::Tree::builder().dictionary_bytes(64 << 10).build()?;
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn dictionary_bytes(mut self, bytes: usize) -> Self {
        self.dictionary_bytes = Some(bytes);
        self
    }

    /// Sets a pool of dictionaries that this tree shares with others of similar records. When the tree trains one,
    /// those of the pool are compared with it on the tree's own records, at no memory cost, since other trees hold them
    /// already; the best is used, and added to the pool if it is new.
    /// [`TreeStats::dictionary_bytes`](crate::tree::TreeStats::dictionary_bytes) is this tree's share of the memory.
    ///
    /// ```
    /// let pool = leafpress::codec::DictionaryPool::new();
    /// let tenant = || leafpress::Tree::builder().dictionary_pool(pool.clone()).build();
    /// let (one, other) = (tenant()?, tenant()?);
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn dictionary_pool(mut self, pool: DictionaryPool) -> Self {
        self.dictionary_pool = Some(pool);
        self
    }

    /// Sets the number of threads that compact leaves in the background, 0 to 64. Default: 0, where writers compact.
    ///
    /// ```
    /// let tree = leafpress::Tree::builder().background_threads(2).build()?;
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn background_threads(mut self, threads: usize) -> Self {
        self.background_threads = threads;
        self
    }

    /// Sets the number of threads with which [`TreeBuilder::from_sorted`] and [`Tree::extend`] load a long run of
    /// records, including the calling one, 1 to 64. Default: 1. They are started for the run and end with it.
    ///
    /// ```
    /// let records = (0..1000_u32).map(|n| (n.to_be_bytes(), "value"));
    /// let tree = leafpress::Tree::builder().load_threads(2).from_sorted(records)?;
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn load_threads(mut self, threads: usize) -> Self {
        self.load_threads = threads;
        self
    }

    /// Sets the watermark: the fill of a landing buffer, in percent, at which a leaf is queued for background
    /// compaction, 1 to 100. Default: 75.
    ///
    /// ```
    /// let tree = leafpress::Tree::builder().background_threads(1).landing_compaction_pct(50).build()?;
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn landing_compaction_pct(mut self, pct: u8) -> Self {
        self.landing_compaction_pct = pct;
        self
    }

    /// Restricts background compaction to a codec family (`lz4`, `zstd`, `deflate`, `zlib`, `qpl`, `none`), as
    /// `BTREE_BG_CODEC` of the evaluation does, for measurements. Default: `None`, no restriction.
    ///
    /// ```
    /// let tree = leafpress::Tree::builder().background_codec(Some("zstd".to_owned())).build()?;
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    #[cfg(any(test, feature = "testing"))]
    pub fn background_codec(mut self, family: Option<String>) -> Self {
        self.background_codec = family;
        self
    }

    /// Sets where the tree's upkeep runs. Default: [`Upkeep::Threads`].
    ///
    /// ```
    /// use leafpress::{Upkeep, Tree};
    ///
    /// let tree = Tree::builder().upkeep(Upkeep::Caller).build()?;
    /// while tree.run_upkeep(std::time::Duration::ZERO)? {}
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn upkeep(mut self, upkeep: Upkeep) -> Self {
        self.upkeep = upkeep;
        self
    }

    /// Builds the tree.
    ///
    /// ```
    /// use leafpress::{TreeError, Tree};
    ///
    /// assert!(Tree::builder().build().is_ok());
    /// let error = Tree::builder().shards(0).build().unwrap_err();
    /// assert!(matches!(error, TreeError::Option { option: "shards", .. }));
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// [`TreeError::Option`] for an option out of bounds, [`TreeError::Codec`] when the codec is not available,
    /// [`TreeError::Thread`] when a background thread cannot be started.
    pub fn build(self) -> Result<Tree, TreeError> {
        Tree::from_builder(self)
    }

    /// Builds the tree from `records`, whose keys ascend.
    ///
    /// The records are compressed directly into full leaves, and the dictionary is trained from the first 8 MiB before
    /// any of them is compressed. See [`TreeBuilder::load_threads`].
    ///
    /// ```
    /// let tree = leafpress::Tree::builder().codec("lz4".parse()?).from_sorted([("a", "1"), ("b", "2")])?;
    /// assert_eq!(tree.len(), 2);
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// As [`TreeBuilder::build`] and [`Tree::insert`], and [`TreeError::Unsorted`] for the first key that is not above
    /// the previous one, duplicates included. No tree is built then.
    pub fn from_sorted<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        self,
        records: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Tree, TreeError> {
        let tree = self.build()?;
        tree.load_ascending(records)?;
        Ok(tree)
    }
}
