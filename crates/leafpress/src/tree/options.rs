//! How a tree is built.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::codec::{Codec, Dictionary, DictionaryPool, Engine, EngineOptions, JobCache, StreamCache};
use crate::tree::Tree;
use crate::tree::error::Error;

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
pub enum Tending {
    /// A thread of the tree's.
    #[default]
    Threads,
    /// The tree's caller, by [`Tree::tend`], in steps: for a program that has one thread, or that forks. The tree starts no thread but
    /// one for each training, which sees samples that were copied and takes no lock of the tree's, so that the process may fork at any
    /// time: the child finds no lock taken that its own thread did not take, and may read.
    ///
    /// What a write or a removal replaces is freed when it ends, unless a reader is in the way.
    ///
    /// It excludes [`Builder::background_threads`] and [`Codec::Auto`], whose looks at all leaves are not done in steps.
    Caller,
}

/// How a tree with [`Codec::Auto`] tells which leaves are cold.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum TemperatureRule {
    /// By what reads cost and bytes are worth, measured on the tree's own records and its caller's reads. Leaves are cold that are read
    /// least: as many as let reads take no more per cent longer, on average, than the tree holds less by it, and at most `slowdown_pct`
    /// (0 to 1000); both beside a tree whose leaves are all warm. Where so little is read that the processor time is worth less than the
    /// memory, more are.
    Costs {
        /// The bound, in per cent.
        slowdown_pct: u32,
    },
    /// The ZipCache paper's rule (arXiv 2411.03174): warm are leaves with more reads for their bytes than the mean of all leaves and
    /// `factor` standard deviations, all others are cold. No record is hot. -1000 to 1000; the paper has about 3.
    Deviation {
        /// Standard deviations above the mean.
        factor: f64,
    },
    /// That rule with a factor of its own choosing: it begins with 3 and goes, by a quarter at most each time that the leaves are looked
    /// at, to where the leaves are cold that [`TemperatureRule::Costs`] would have cold without hot records; -3 to 10.
    AdaptiveDeviation {
        /// The bound, in per cent, as for [`TemperatureRule::Costs`].
        slowdown_pct: u32,
    },
}

impl Default for TemperatureRule {
    fn default() -> Self {
        Self::Costs {
            slowdown_pct: DEFAULT_SLOWDOWN_PCT,
        }
    }
}

impl fmt::Display for TemperatureRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Costs { slowdown_pct } => write!(f, "costs:{slowdown_pct}"),
            Self::Deviation { factor } => write!(f, "deviation:{factor}"),
            Self::AdaptiveDeviation { slowdown_pct } => write!(f, "deviation:auto:{slowdown_pct}"),
        }
    }
}

/// `costs[:SLOWDOWN_PCT]`, `deviation[:FACTOR]` or `deviation:auto[:SLOWDOWN_PCT]`.
impl FromStr for TemperatureRule {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (name, figure) = text.split_once(':').unwrap_or((text, ""));
        let rule = match (name, figure) {
            ("costs", "") => Some(Self::default()),
            ("costs", pct) => pct.parse().ok().map(|slowdown_pct| Self::Costs { slowdown_pct }),
            ("deviation", "") => Some(Self::Deviation { factor: 3.0 }),
            ("deviation", "auto") => Some(Self::AdaptiveDeviation {
                slowdown_pct: DEFAULT_SLOWDOWN_PCT,
            }),
            ("deviation", figure) => match figure.strip_prefix("auto:") {
                Some(pct) => pct
                    .parse()
                    .ok()
                    .map(|slowdown_pct| Self::AdaptiveDeviation { slowdown_pct }),
                None => figure.parse().ok().map(|factor| Self::Deviation { factor }),
            },
            _ => None,
        };
        let rule = rule.ok_or_else(|| Error::Option {
            option: "temperature_rule",
            reason: format!(
                "unknown rule `{text}`; known: costs[:SLOWDOWN_PCT], deviation[:FACTOR], deviation:auto[:SLOWDOWN_PCT]"
            ),
        })?;
        rule.check()?;
        Ok(rule)
    }
}

impl TemperatureRule {
    pub(crate) fn check(self) -> Result<(), Error> {
        let (is_allowed, bounds) = match self {
            Self::Costs { slowdown_pct } | Self::AdaptiveDeviation { slowdown_pct } => {
                (slowdown_pct <= MAX_SLOWDOWN_PCT, "0 to 1000 per cent")
            }
            Self::Deviation { factor } => (factor.abs() <= MAX_FACTOR, "a factor of -1000 to 1000"),
        };
        if is_allowed {
            return Ok(());
        }
        Err(Error::Option {
            option: "temperature_rule",
            reason: format!("{self} is out of bounds: it takes {bounds}"),
        })
    }
}

const MAX_SLOWDOWN_PCT: u32 = 1000;
/// What is allowed where the caller says nothing.
const DEFAULT_SLOWDOWN_PCT: u32 = 50;
const MAX_FACTOR: f64 = 1000.0;

/// Builds a [`Tree`]. Every option has a default; see each method for its bounds, which [`Builder::build`] checks.
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until it builds"]
pub struct Builder {
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
    pub(crate) high_watermark_pct: u8,
    pub(crate) background_codec: Option<String>,
    pub(crate) tending: Tending,
    pub(crate) temperature_rule: TemperatureRule,
    /// Whether records have marks, which a cache over the tree looks at.
    pub(crate) marks: bool,
}

impl Default for Builder {
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
            high_watermark_pct: 75,
            background_codec: None,
            tending: Tending::Threads,
            temperature_rule: TemperatureRule::default(),
            marks: false,
        }
    }
}

impl Builder {
    /// The codec leaves are compressed with. Default `lz4`.
    ///
    /// With [`Codec::Auto`] records and leaves have a *temperature*: of records that are read much there are copies that are not
    /// compressed, leaves that are read little are cold, compressed by Zstandard in wide frames, and the others are warm, compressed by
    /// LZ4. The tree counts reads and compacts leaves in the background as they become warmer or colder: see
    /// [`Builder::temperature_rule`], and [`Stats::temperature_reason`](crate::tree::Stats::temperature_reason). It takes the ordered
    /// layout only.
    pub fn codec(mut self, codec: Codec) -> Self {
        self.codec = codec;
        self
    }

    /// An engine of the caller's own, in place of the one [`Builder::codec`] names.
    pub fn engine(mut self, engine: Arc<dyn Engine>) -> Self {
        self.engine = Some(engine);
        self
    }

    /// With [`Codec::Auto`], how the tree tells which leaves are cold. Default [`TemperatureRule::Costs`] with 50 per cent.
    pub fn temperature_rule(mut self, rule: TemperatureRule) -> Self {
        self.temperature_rule = rule;
        self
    }

    /// Whether QPL jobs are kept per thread. Default: they are.
    pub fn job_cache(mut self, job_cache: JobCache) -> Self {
        self.engine_options.job_cache = job_cache;
        self
    }

    /// Whether zlib streams are kept per thread. Default: they are.
    pub fn stream_cache(mut self, stream_cache: StreamCache) -> Self {
        self.engine_options.stream_cache = stream_cache;
        self
    }

    /// User bytes (keys and values) at which a leaf splits. 1 KiB to 32 KiB. By default the tree chooses 16 or 32 KiB together with
    /// [`Builder::frame_bytes`], and begins with 16 KiB.
    pub fn leaf_bytes(mut self, bytes: usize) -> Self {
        self.leaf_bytes = Some(bytes);
        self
    }

    /// Raw bytes at which a frame is closed; 1 makes every record a frame. 1 to `leaf_bytes`. With [`Codec::Auto`] it is that of cold
    /// leaves, by default 4 KiB; that of warm ones is chosen.
    ///
    /// By default the tree chooses, when it first has 16 leaves and again whenever a dictionary is due: it tries lengths up to 4 KiB on
    /// records of its own, and weighs the bytes that a record then holds against the time that a read of it takes.
    /// [`Stats::limits_reason`](crate::tree::Stats::limits_reason) says what came of it. Until then, and at least, a frame is one
    /// record for `lz4`, 512 bytes for `zstd` and 2 KiB for the deflate family; for `none` it stays one record.
    pub fn frame_bytes(mut self, bytes: usize) -> Self {
        self.frame_bytes = Some(bytes);
        self
    }

    /// How a leaf's records are put into frames. Default [`Layout::Ordered`].
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// Longest value that leaves hold themselves, in bytes; a longer one is a node of its own, which an update replaces without touching
    /// its leaf. 64 to 2048. By default 192 where values are not compressed, and 2048 where they are: by itself a value shrinks less.
    pub fn inline_value_bytes(mut self, bytes: usize) -> Self {
        self.inline_value_bytes = Some(bytes);
        self
    }

    /// Size of a leaf's landing buffer in bytes; 0 compacts at every write. 0 to 16 KiB. By default it follows the records: room for some
    /// of them, as long as that is little beside the leaf.
    pub fn landing_bytes(mut self, bytes: usize) -> Self {
        self.landing_bytes = Some(bytes);
        self
    }

    /// Number of shards, 1 to 1024. Default 1.
    pub fn shards(mut self, shards: usize) -> Self {
        self.shards = shards;
        self
    }

    /// How keys are shared out to shards. Default [`ShardBy::Hash`].
    pub fn shard_by(mut self, shard_by: ShardBy) -> Self {
        self.shard_by = shard_by;
        self
    }

    /// Where the dictionary comes from. Default [`DictionaryChoice::Auto`]; codecs without dictionaries ignore it. A given one must be one
    /// that the codec takes: Zstandard refuses bytes that begin as a dictionary of its own and are none.
    pub fn dictionary(mut self, dictionary: DictionaryChoice) -> Self {
        self.dictionary = dictionary;
        self
    }

    /// Size limit of a trained dictionary in bytes. 1 KiB to 1 MiB; the default depends on the data's size.
    pub fn dictionary_bytes(mut self, bytes: usize) -> Self {
        self.dictionary_bytes = Some(bytes);
        self
    }

    /// Dictionaries that this tree shares with others of like records. When the tree has one trained, those of the pool are judged beside
    /// it by the tree's own records, as costing nothing, since other trees hold them already; the best is taken, and offered to the others
    /// where it is new. [`Stats::dictionary_bytes`](crate::tree::Stats::dictionary_bytes) is this tree's part of what it shares.
    ///
    /// ```
    /// let pool = leafpress::codec::DictionaryPool::new();
    /// let tenant = || leafpress::Tree::builder().dictionary_pool(pool.clone()).build();
    /// let (one, other) = (tenant()?, tenant()?);
    /// # Ok::<(), leafpress::Error>(())
    /// ```
    pub fn dictionary_pool(mut self, pool: DictionaryPool) -> Self {
        self.dictionary_pool = Some(pool);
        self
    }

    /// Threads that compact leaves in the background. 0 to 64, default 0: writers compact.
    pub fn background_threads(mut self, threads: usize) -> Self {
        self.background_threads = threads;
        self
    }

    /// Threads that [`Builder::from_sorted`] and [`Tree::extend`] load a long run of records with, the calling one
    /// included. They are started for the run and end with it. 1 to 64, default 1.
    pub fn load_threads(mut self, threads: usize) -> Self {
        self.load_threads = threads;
        self
    }

    /// Fill of a landing buffer, in percent, at which a leaf is offered to the background. 1 to 100, default 75.
    pub fn high_watermark_pct(mut self, pct: u8) -> Self {
        self.high_watermark_pct = pct;
        self
    }

    /// Restricts background compaction to a codec family (`lz4`, `zstd`, `deflate`, `zlib`, `qpl`, `none`), as the evaluation's
    /// `BTREE_BG_CODEC` does; `None` is all of them.
    pub fn background_codec(mut self, family: Option<String>) -> Self {
        self.background_codec = family;
        self
    }

    /// Who does the tree's upkeep. Default [`Tending::Threads`].
    pub fn tending(mut self, tending: Tending) -> Self {
        self.tending = tending;
        self
    }

    /// Builds the tree.
    ///
    /// # Errors
    /// [`Error::Option`] for an option out of bounds, [`Error::Codec`] when the codec cannot run here, [`Error::Thread`] when
    /// a background thread cannot be started.
    pub fn build(self) -> Result<Tree, Error> {
        Tree::from_builder(self)
    }

    /// Builds the tree of `records`, whose keys ascend.
    ///
    /// Leaves are made of the records as they come, each as full as can be, and the dictionary is trained from the
    /// first 8 MiB before any of them is compressed. See [`Builder::load_threads`].
    ///
    /// # Errors
    /// As [`Builder::build`] and [`Tree::insert`], and [`Error::Unsorted`] for the first key that is not above the one
    /// before it: one that comes twice, too. There is no tree then.
    pub fn from_sorted<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        self,
        records: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Tree, Error> {
        let tree = self.build()?;
        tree.load_ascending(records)?;
        Ok(tree)
    }
}
