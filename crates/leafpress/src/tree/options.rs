//! How a tree is built.

use std::sync::Arc;

use crate::tree::error::TreeError;
use crate::tree::{TemperatureRule, Tree};
use leafpress_codec::{Codec, Dictionary, DictionaryPool, Engine, EngineOptions, JobCache, StreamCache};

/// How a leaf's records are put into frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// Runs of adjacent records.
    Ordered,
    /// `sub_pages` frames a leaf, each with the records whose key hash falls to it: the layout of the ZipCache paper, where a
    /// read decodes one sub-page and stops early. 1 to 64.
    Hashed {
        /// Frames a leaf.
        sub_pages: usize,
    },
}

/// How keys are shared out to shards.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShardBy {
    /// By a hash of the key but for the low four bits of its last byte: up to 16 neighbouring keys stay together, so that they are
    /// compressed together.
    Hash,
    /// By key range: shard i holds the keys from boundary i-1 (inclusive) to boundary i (exclusive). One boundary fewer than shards, ascending.
    Range(Vec<Vec<u8>>),
}

/// Where a tree's dictionary comes from.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum DictionaryChoice {
    /// No dictionary.
    Off,
    /// Sampled from the tree's own leaves and trained in the background; kept only if it helps.
    Auto,
    /// This one.
    Given(Dictionary),
}

/// Who does a tree's upkeep: training of dictionaries and compressing with them, compaction of what landed, defragmentation of the heap,
/// and renewal of what leads to leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Upkeep {
    /// The upkeep threads, which all trees and caches of the process share.
    #[default]
    Threads,
    /// The tree's caller, by [`Tree::run_upkeep`], in steps: for a program that has one thread, or that forks. The tree starts no thread but
    /// one for each training, which sees samples that were copied and takes no lock of the tree's, so that the process may fork at any
    /// time: the child finds no lock taken that its own thread did not take, and may read.
    ///
    /// What a write or a removal replaces is freed when it ends, unless a reader is in the way.
    ///
    /// It excludes [`TreeBuilder::background_threads`] and [`Codec::Auto`], whose looks at all leaves are not done in steps.
    Caller,
}

/// Builds a [`Tree`]. Every option has a default; see each method for its bounds, which [`TreeBuilder::build`] checks.
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until it builds"]
pub struct TreeBuilder {
    pub(crate) codec: Codec,
    pub(crate) engine: Option<Arc<dyn Engine>>,
    pub(crate) engine_options: EngineOptions,
    pub(crate) leaf_bytes: Option<usize>,
    pub(crate) frame_bytes: Option<usize>,
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
    /// Whether records have marks, which a cache over the tree looks at.
    pub(crate) marks: bool,
}

impl Default for TreeBuilder {
    fn default() -> Self {
        Self {
            codec: Codec::Lz4 { acceleration: 1 },
            engine: None,
            engine_options: EngineOptions::default(),
            leaf_bytes: None,
            frame_bytes: None,
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
        }
    }
}

impl TreeBuilder {
    /// The codec leaves are compressed with. Default `lz4`.
    ///
    /// With [`Codec::Auto`] records and leaves have a *temperature*: of records that are read much there are copies that are not
    /// compressed, leaves that are read little are cold, compressed by Zstandard in wide frames, and the others are warm, compressed by
    /// LZ4. The tree counts reads and compacts leaves in the background as they become warmer or colder: see
    /// [`TreeBuilder::temperature_rule`], and [`TreeStats::temperature_reason`](crate::tree::TreeStats::temperature_reason). It takes the ordered
    /// layout only.
    ///
    /// ```
    /// let tree = leafpress::Tree::builder().codec("zstd:1".parse()?).build()?;
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn codec(mut self, codec: Codec) -> Self {
        self.codec = codec;
        self
    }

    /// An engine of the caller's own, in place of the one [`TreeBuilder::codec`] names.
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

    /// With [`Codec::Auto`], how the tree tells which leaves are cold. Default [`TemperatureRule::Costs`] with 50 per cent.
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

    /// Whether QPL jobs are kept per thread. Default: they are.
    ///
    /// ```
    /// use leafpress::codec::JobCache;
    ///
    /// let tree = leafpress::Tree::builder().job_cache(JobCache::default()).build()?;
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn job_cache(mut self, job_cache: JobCache) -> Self {
        self.engine_options.job_cache = job_cache;
        self
    }

    /// Whether zlib streams are kept per thread. Default: they are.
    ///
    /// ```
    /// use leafpress::codec::StreamCache;
    ///
    /// let tree = leafpress::Tree::builder().stream_cache(StreamCache::default()).build()?;
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn stream_cache(mut self, stream_cache: StreamCache) -> Self {
        self.engine_options.stream_cache = stream_cache;
        self
    }

    /// User bytes (keys and values) at which a leaf splits. 1 KiB to 32 KiB. By default the tree chooses 16 or 32 KiB together with
    /// [`TreeBuilder::frame_bytes`], and begins with 16 KiB.
    ///
    /// ```
    /// let tree = leafpress::Tree::builder().leaf_bytes(16 << 10).build()?;
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn leaf_bytes(mut self, bytes: usize) -> Self {
        self.leaf_bytes = Some(bytes);
        self
    }

    /// Raw bytes at which a frame is closed; 1 makes every record a frame. 1 to `leaf_bytes`. With [`Codec::Auto`] it is that of cold
    /// leaves, by default 4 KiB; that of warm ones is chosen.
    ///
    /// By default the tree chooses, when it first has 16 leaves and again whenever a dictionary is due: it tries lengths up to 4 KiB on
    /// records of its own, and weighs the bytes that a record then holds against the time that a read of it takes.
    /// [`TreeStats::limits_reason`](crate::tree::TreeStats::limits_reason) says what came of it. Until then, and at least, a frame is one
    /// record for `lz4`, 512 bytes for `zstd` and 2 KiB for the deflate family; for `none` it stays one record.
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

    /// How a leaf's records are put into frames. Default [`Layout::Ordered`].
    ///
    /// ```
    /// use leafpress::Layout;
    ///
    /// let tree = leafpress::Tree::builder().layout(Layout::Hashed { sub_pages: 16 }).build()?;
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// Longest value that leaves hold themselves, in bytes; a longer one is a node of its own, which an update replaces without touching
    /// its leaf. 64 to 2048. By default 192 where values are not compressed, and 2048 where they are: by itself a value shrinks less.
    ///
    /// ```
    /// let tree = leafpress::Tree::builder().inline_value_bytes(1024).build()?;
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn inline_value_bytes(mut self, bytes: usize) -> Self {
        self.inline_value_bytes = Some(bytes);
        self
    }

    /// Size of a leaf's landing buffer in bytes; 0 compacts at every write. 0 to 16 KiB. By default it follows the records: room for some
    /// of them, as long as that is little beside the leaf.
    ///
    /// ```
    /// let tree = leafpress::Tree::builder().landing_bytes(4 << 10).build()?;
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn landing_bytes(mut self, bytes: usize) -> Self {
        self.landing_bytes = Some(bytes);
        self
    }

    /// Number of shards, 1 to 1024. Default 1.
    ///
    /// ```
    /// let tree = leafpress::Tree::builder().shards(8).build()?;
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn shards(mut self, shards: usize) -> Self {
        self.shards = shards;
        self
    }

    /// How keys are shared out to shards. Default [`ShardBy::Hash`].
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

    /// Where the dictionary comes from. Default [`DictionaryChoice::Auto`]; codecs without dictionaries ignore it. A given one must be one
    /// that the codec takes: Zstandard refuses bytes that begin as a dictionary of its own and are none.
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

    /// Size limit of a trained dictionary in bytes. 1 KiB to 1 MiB; the default depends on the data's size.
    ///
    /// ```
    /// let tree = leafpress::Tree::builder().dictionary_bytes(64 << 10).build()?;
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn dictionary_bytes(mut self, bytes: usize) -> Self {
        self.dictionary_bytes = Some(bytes);
        self
    }

    /// Dictionaries that this tree shares with others of like records. When the tree has one trained, those of the pool are judged beside
    /// it by the tree's own records, as costing nothing, since other trees hold them already; the best is taken, and offered to the others
    /// where it is new. [`TreeStats::dictionary_bytes`](crate::tree::TreeStats::dictionary_bytes) is this tree's part of what it shares.
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

    /// Threads that compact leaves in the background. 0 to 64, default 0: writers compact.
    ///
    /// ```
    /// let tree = leafpress::Tree::builder().background_threads(2).build()?;
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn background_threads(mut self, threads: usize) -> Self {
        self.background_threads = threads;
        self
    }

    /// Threads that [`TreeBuilder::from_sorted`] and [`Tree::extend`] load a long run of records with, the calling one
    /// included. They are started for the run and end with it. 1 to 64, default 1.
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

    /// Fill of a landing buffer, in percent, at which a leaf is offered to the background. 1 to 100, default 75.
    ///
    /// ```
    /// let tree = leafpress::Tree::builder().background_threads(1).landing_compaction_pct(50).build()?;
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn landing_compaction_pct(mut self, pct: u8) -> Self {
        self.landing_compaction_pct = pct;
        self
    }

    /// Restricts background compaction to a codec family (`lz4`, `zstd`, `deflate`, `zlib`, `qpl`, `none`), as the evaluation's
    /// `BTREE_BG_CODEC` does; `None` is all of them.
    ///
    /// ```
    /// let tree = leafpress::Tree::builder().background_codec(Some("zstd".to_owned())).build()?;
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn background_codec(mut self, family: Option<String>) -> Self {
        self.background_codec = family;
        self
    }

    /// Who does the tree's upkeep. Default [`Upkeep::Threads`].
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
    /// [`TreeError::Option`] for an option out of bounds, [`TreeError::Codec`] when the codec cannot run here, [`TreeError::Thread`] when
    /// a background thread cannot be started.
    pub fn build(self) -> Result<Tree, TreeError> {
        Tree::from_builder(self)
    }

    /// Builds the tree of `records`, whose keys ascend.
    ///
    /// Leaves are made of the records as they come, each as full as can be, and the dictionary is trained from the
    /// first 8 MiB before any of them is compressed. See [`TreeBuilder::load_threads`].
    ///
    /// ```
    /// let tree = leafpress::Tree::builder().codec("lz4".parse()?).from_sorted([("a", "1"), ("b", "2")])?;
    /// assert_eq!(tree.len(), 2);
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// As [`TreeBuilder::build`] and [`Tree::insert`], and [`TreeError::Unsorted`] for the first key that is not above the one
    /// before it: one that comes twice, too. There is no tree then.
    pub fn from_sorted<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        self,
        records: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Tree, TreeError> {
        let tree = self.build()?;
        tree.load_ascending(records)?;
        Ok(tree)
    }
}
