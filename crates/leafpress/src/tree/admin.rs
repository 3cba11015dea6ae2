//! Operations on the tree as a whole: building, counting, clearing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bumpalo::Bump;
use leafpress_base::reclaim::guard::Guard;

use crate::tree::admission::Admission;
use crate::tree::compact::compress::{Buffers, Compression};
use crate::tree::compact::landed::{empty_values_in, owned_large};
use crate::tree::compact::live_settings::LiveSettings;
use crate::tree::compact::split_hint::SplitHint;
use crate::tree::error::{MAX_KEY_BYTES, TreeError};
use crate::tree::hot::HotRecords;
use crate::tree::index::shard::Shard;
use crate::tree::inner::TreeInner;
use crate::tree::node::decoder::Engines;
use crate::tree::node::landing::MAX_LANDING_BYTES;
use crate::tree::node::large::MAX_INLINE_VALUE_BYTES;
use crate::tree::node::layout::Temperature;
use crate::tree::node::leaf::{Leaf, NewLeaf};
use crate::tree::node::partition::ShardPartitioner;
use crate::tree::options::Layout;
use crate::tree::thread_state::{Count, ThreadStates};
use crate::tree::upkeep::scheduler::Background;
use crate::tree::upkeep::sizing::{ConfiguredLengths, Sizing};
use crate::tree::upkeep::temperature::{self, COLD_RECORD_CODEC, Temperatures};
use crate::tree::upkeep::training::Dictionaries;
use crate::tree::walk::Walk;
use crate::tree::write::Locked;
use crate::tree::{ShardBy, Tree, TreeBuilder, TreeStats, Upkeep};
use leafpress_base::mem::node::Kind;
use leafpress_base::reclaim::node_heap::{Flush, NodeHeap};
use leafpress_codec::{ByDictionary, Codec, CodecError, Dictionary, Engine, TrialGoal};

/// Minimum of the builder's bound on inline values.
const MIN_INLINE_VALUE_BYTES: usize = 64;
const MIN_LEAF_BYTES: usize = 1 << 10;
const MAX_LEAF_BYTES: usize = 32 << 10;
const MAX_SUB_PAGES: usize = 64;
const MAX_SHARDS: usize = 1024;
const MAX_THREADS: usize = 64;
const FAMILIES: [&str; 7] = ["none", "lz4", "zstd", "onpair", "deflate", "zlib", "qpl"];

/// The codec of warm leaves, where leaves have temperatures.
const WARM_CODEC: Codec = Codec::Trial {
    goal: TrialGoal::Balance,
};

/// Longest value that an uncompressed leaf stores inline: longer ones gain nothing there, and every compaction copies
/// them, while a value stored separately is replaced without copies. Shorter values would take much more memory if
/// stored separately.
const MAX_UNCOMPRESSED_INLINE_BYTES: usize = 192;

/// Returns the length of the longest value that a leaf stores inline by default.
fn default_inline_value_bytes(codec: Codec) -> usize {
    match codec {
        Codec::None => MAX_UNCOMPRESSED_INLINE_BYTES,
        _ => MAX_INLINE_VALUE_BYTES,
    }
}

fn within(option: &'static str, value: usize, least: usize, most: usize) -> Result<usize, TreeError> {
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(TreeError::Option {
        option,
        reason: format!("{value} is out of bounds: {least} to {most}"),
    })
}

impl TreeBuilder {
    fn check(&self) -> Result<(), TreeError> {
        if let Some(bytes) = self.leaf_bytes {
            within("leaf_bytes", bytes, MIN_LEAF_BYTES, MAX_LEAF_BYTES)?;
        }
        if let Some(bytes) = self.frame_bytes {
            within("frame_bytes", bytes, 1, self.leaf_bytes.unwrap_or(MAX_LEAF_BYTES))?;
        }
        if let Layout::Hashed { sub_pages } = self.layout {
            within("layout", sub_pages, 1, MAX_SUB_PAGES)?;
        }
        if let Some(bytes) = self.inline_value_bytes {
            within(
                "inline_value_bytes",
                bytes,
                MIN_INLINE_VALUE_BYTES,
                MAX_INLINE_VALUE_BYTES,
            )?;
        }
        if let Some(bytes) = self.landing_bytes {
            within("landing_bytes", bytes, 0, MAX_LANDING_BYTES)?;
        }
        within("shards", self.shards, 1, MAX_SHARDS)?;
        if let ShardBy::Range(boundaries) = &self.shard_by {
            let option = "shard_by";
            if boundaries.len() + 1 != self.shards {
                let reason = format!(
                    "{} shards by range need {} boundaries, {} were given",
                    self.shards,
                    self.shards - 1,
                    boundaries.len()
                );
                return Err(TreeError::Option { option, reason });
            }
            if !boundaries.is_sorted_by(|a, b| a < b) {
                return Err(TreeError::Option {
                    option,
                    reason: "boundaries do not ascend".to_owned(),
                });
            }
            if let Some(long) = boundaries.iter().find(|boundary| boundary.len() > MAX_KEY_BYTES) {
                let reason = format!(
                    "a boundary of {} bytes is longer than a key may be ({MAX_KEY_BYTES})",
                    long.len()
                );
                return Err(TreeError::Option { option, reason });
            }
        }
        if let Some(bytes) = self.dictionary_bytes {
            within("dictionary_bytes", bytes, 1 << 10, 1 << 20)?;
        }
        self.temperature_rule.check()?;
        within("background_threads", self.background_threads, 0, MAX_THREADS)?;
        self.check_upkeep_options()?;
        within("load_threads", self.load_threads, 1, MAX_THREADS)?;
        within(
            "landing_compaction_pct",
            usize::from(self.landing_compaction_pct),
            1,
            100,
        )?;
        if let Some(family) = &self.background_codec
            && !FAMILIES.contains(&family.as_str())
        {
            let reason = format!("unknown codec family {family}: one of {}", FAMILIES.join(", "));
            return Err(TreeError::Option {
                option: "background_codec",
                reason,
            });
        }
        Ok(())
    }
}

impl Tree {
    pub(crate) fn from_builder(builder: TreeBuilder) -> Result<Self, TreeError> {
        builder.check()?;
        let cold_engine = match (builder.codec, &builder.engine) {
            (Codec::Auto { .. }, Some(engine)) => Some(Arc::clone(engine)),
            (Codec::Auto { level }, None) => {
                let engine = ByDictionary::of(Codec::Zstd { level }, &[COLD_RECORD_CODEC], &builder.engine_options)?;
                Some(Arc::new(engine) as Arc<dyn Engine>)
            }
            _ => None,
        };
        let engine: Arc<dyn Engine> = match (builder.codec, &builder.engine) {
            (_, Some(engine)) => Arc::clone(engine),
            (Codec::Auto { .. }, None) => Arc::new(ByDictionary::open(WARM_CODEC, &builder.engine_options)?),
            (codec @ Codec::Trial { .. }, None) => Arc::new(ByDictionary::open(codec, &builder.engine_options)?),
            (codec, None) => codec.open(&builder.engine_options)?,
        };
        if let Some(dictionary) = builder.dictionary.first()
            && engine.supports_dictionary()
        {
            check_dictionary(&*engine, dictionary)?;
        }
        let codec = engine.codec();
        let filtered = builder
            .background_codec
            .as_deref()
            .is_some_and(|wanted| wanted != codec.family());
        let compactors = if filtered { 0 } else { builder.background_threads };
        let sub_pages = match builder.layout {
            Layout::Ordered => 0,
            Layout::Hashed { sub_pages } => sub_pages,
        };
        if cold_engine.is_some() && sub_pages > 0 {
            return Err(TreeError::Option {
                option: "layout",
                reason: "sub-pages have no temperature; take the ordered layout, or one codec".to_owned(),
            });
        }
        let temperatures = cold_engine
            .as_deref()
            .map(|cold_engine| {
                Temperatures::new(temperature::TemperatureConfig {
                    cold_engine,
                    dictionary: &builder.dictionary,
                    dictionary_bytes: builder.dictionary_bytes,
                    dictionary_pool: builder.dictionary_pool.clone(),
                    cold_frame_bytes: builder.frame_bytes,
                    rule: builder.temperature_rule,
                })
            })
            .transpose()?;
        let given = ConfiguredLengths {
            // With temperatures these are the settings of cold leaves.
            frame_bytes: if temperatures.is_some() {
                None
            } else {
                builder.frame_bytes
            },
            // A leaf of few wide frames would split unevenly.
            leaf_bytes: builder.leaf_bytes.or(temperatures.is_some().then_some(MAX_LEAF_BYTES)),
            inline_value_bytes: builder.inline_value_bytes.unwrap_or(default_inline_value_bytes(codec)),
            sub_pages,
            keys_in_blocks: builder.keys_in_blocks,
        };
        let of_dictionary = builder.dictionary.first().and_then(Dictionary::codec);
        let first_codec = of_dictionary.filter(|of_dictionary| codec.candidates().contains(of_dictionary));
        let (sizing, settings) = Sizing::new(codec, first_codec.unwrap_or(codec), given);
        let dictionaries = Dictionaries::new(
            &builder.dictionary,
            &*engine,
            builder.dictionary_bytes,
            builder.dictionary_pool,
        )?;
        let partitioner = ShardPartitioner::new(match builder.shard_by {
            ShardBy::Hash => builder.shards,
            ShardBy::Range(_) => 1,
        });
        let mut core = TreeInner {
            shards: Vec::new(),
            shard_by: builder.shard_by,
            partitioner,
            settings: LiveSettings::new(settings),
            sizing,
            landing_bytes: builder.landing_bytes,
            least_landing_bytes: AtomicUsize::new(0),
            load_threads: builder.load_threads,
            engines: Engines {
                cold: cold_engine.unwrap_or_else(|| Arc::clone(&engine)),
                warm: engine,
            },
            contexts: ThreadStates::default(),
            admission: Admission::new()?,
            background: Background::new(
                (compactors > 0).then_some(builder.landing_compaction_pct),
                builder.upkeep,
            ),
            dictionaries,
            hot: (temperatures.is_some() || builder.hot_records).then(HotRecords::default),
            temperatures,
            marks: builder.marks,
            memory: Arc::new(NodeHeap::new(match builder.upkeep {
                Upkeep::Threads => Flush::InBatches,
                Upkeep::Caller => Flush::AtOnce,
            })),
        };
        for _ in 0..builder.shards {
            let leaf = core.empty_leaf()?;
            core.shards.push(Shard::new(leaf, partitioner));
        }
        let core = Arc::new(core);
        let upkeep = Background::start(&core, compactors)?;
        Ok(Self { core, upkeep })
    }
}

impl TreeInner {
    fn empty_leaf(&self) -> Result<NewLeaf, TreeError> {
        let (mut buffers, arena) = (Buffers::default(), Bump::new());
        let mut compression = self.compression(&mut buffers, &arena);
        // The leaf is not in the tree yet: a sweep of the leaves would miss it, and a dictionary that it points to
        // could be retired.
        compression.dictionary = None;
        first_leaf(&mut compression)
    }

    /// Flushes and frees the retired nodes of all threads before the usual thresholds are reached.
    pub(crate) fn flush_retired(&self) {
        self.memory.reclaim_all();
        self.dictionaries.free_outdated(&self.memory);
        if let Some(temperatures) = &self.temperatures {
            temperatures.cold_dictionaries.free_outdated(&self.memory);
        }
    }

    pub(crate) fn len(&self) -> usize {
        // The sums are read in this order, so that a record inserted and removed between the two reads is not counted
        // as removed only.
        let erased = self.contexts.sum(Count::Erased);
        self.contexts.sum(Count::Inserted).saturating_sub(erased) as usize
    }

    /// Returns the bytes of all keys and values.
    pub(crate) fn user_bytes(&self) -> Result<u64, TreeError> {
        let guard = self.memory.enter()?;
        let mut bytes = 0;
        self.for_each_leaf(&guard, |leaf| {
            bytes += leaf.header().live_user_bytes.load(Ordering::Relaxed)
        });
        Ok(bytes)
    }

    pub(crate) fn for_each_leaf(&self, guard: &Guard<'_>, mut visit: impl FnMut(Leaf)) {
        for shard in &self.shards {
            shard.for_each_leaf(guard, &mut visit);
        }
    }

    /// Visits the leaves with a guard for each, so that a long visit does not delay reclamation. Leaves that are split
    /// or merged meanwhile are visited in their current form.
    pub(crate) fn for_each_leaf_in_turn(
        &self,
        mut visit: impl FnMut(Leaf) -> Result<(), TreeError>,
    ) -> Result<(), TreeError> {
        let mut walk = Walk::default();
        while walk.step(self, &mut visit)? {}
        Ok(())
    }

    pub(crate) fn clear(&self) -> Result<(), TreeError> {
        if let Some(hot) = &self.hot {
            hot.suspend(&self.memory.enter()?);
        }
        let cleared = self.clear_shards();
        if let Some(hot) = &self.hot {
            hot.resume();
        }
        cleared?;
        self.flush_retired();
        // Scratch memory for writers is sized for the longest values of the former records.
        self.free_scratchpads(false);
        self.background.defragment_if_due(self);
        Ok(())
    }

    fn clear_shards(&self) -> Result<(), TreeError> {
        let context = self.contexts.get()?;
        for shard in &self.shards {
            let guard = self.memory.enter()?;
            let empty = self.empty_leaf()?;
            let leaves = shard.reset(empty, &guard)?;
            self.background.leaves_cleared(leaves.len() - 1);
            for leaf in leaves {
                let locked = Locked::lock(leaf);
                // A writer may have read this leaf's pointer and replaced the leaf before the tree was reset; then it
                // is retired already.
                if leaf.header().obsolete.swap(true, Ordering::Relaxed) {
                    continue;
                }
                context.add(Count::Erased, u64::from(leaf.header().live.load(Ordering::Relaxed)));
                if self.marks {
                    context.add(Count::EmptyErased, empty_values_in(leaf)?);
                }
                // SAFETY: the tree no longer leads to the leaf, and setting `obsolete` under its lock made this thread
                // the only one to retire it.
                unsafe {
                    for large in owned_large(leaf) {
                        NodeHeap::retire(large.node(), &guard);
                    }
                    if let Some(landing) = leaf.landing_locked() {
                        NodeHeap::retire(landing.node(), &guard);
                    }
                    NodeHeap::retire(leaf.node(), &guard);
                }
                drop(locked);
            }
        }
        Ok(())
    }

    /// Returns the bytes of all memory, as [`TreeStats::bytes_held`], without a visit of every leaf.
    pub(crate) fn bytes_held(&self) -> u64 {
        let held = self.memory.held();
        let nodes: u64 = held.live.iter().sum();
        nodes + held.retired + held.free + self.dictionary_bytes() + self.thread_bytes() + self.fixed_bytes()
    }

    fn dictionary_bytes(&self) -> u64 {
        let cold = self.temperatures.as_ref();
        self.dictionaries.held_bytes() + cold.map_or(0, |temperatures| temperatures.cold_dictionaries.held_bytes())
    }

    fn thread_bytes(&self) -> u64 {
        self.contexts.held_bytes(&self.memory) + self.memory.locals_bytes()
    }

    fn fixed_bytes(&self) -> u64 {
        (size_of::<TreeInner>()
            + self.shards.len() * size_of::<Shard>()
            + size_of::<NodeHeap>()
            + self.admission.held_bytes()) as u64
    }

    pub(crate) fn current_dictionary(&self) -> Result<Option<Dictionary>, TreeError> {
        let _guard = self.memory.enter()?;
        Ok(self.dictionaries.current().cloned())
    }

    pub(crate) fn stats(&self) -> TreeStats {
        let mut stats = TreeStats::default();
        // If there is no memory for a guard, nothing is counted.
        let _ = self.for_each_leaf_in_turn(|leaf| {
            let header = leaf.header();
            stats.leaves += 1;
            stats.frames += leaf.frames() as u64;
            match leaf.temperature() {
                Temperature::Warm => stats.warm_leaves += 1,
                Temperature::Cold => stats.cold_leaves += 1,
            }
            stats.records += u64::from(header.live.load(Ordering::Relaxed));
            stats.user_bytes += header.live_user_bytes.load(Ordering::Relaxed);
            Ok(())
        });
        if let Ok(guard) = self.memory.enter() {
            let dictionary = self.dictionaries.current();
            stats.dictionary_id = dictionary.map_or(0, Dictionary::id);
            let own = self.engines.warm.codec();
            stats.codec = match own.candidates() {
                [] => own,
                [first, ..] => dictionary.and_then(Dictionary::codec).unwrap_or(*first),
            };
            stats.depth = self.shards.iter().map(|shard| shard.depth(&guard)).max().unwrap_or(0);
        }
        let held = self.memory.held();
        stats.leaf_bytes = held.bytes(Kind::Leaf);
        stats.inner_bytes = held.bytes(Kind::Inner);
        stats.interpolation_bytes = held.bytes(Kind::InterpolationIndex);
        stats.landing_bytes = held.bytes(Kind::Landing);
        stats.large_value_bytes = held.bytes(Kind::Large);
        stats.hot_bytes = held.bytes(Kind::Hot);
        stats.retired_bytes = held.retired;
        stats.free_bytes = held.free;
        stats.inner_nodes = held.nodes(Kind::Inner);
        stats.landing_buffers = held.nodes(Kind::Landing);
        stats.dictionary_bytes = self.dictionary_bytes();
        stats.thread_bytes = self.thread_bytes();
        stats.fixed_bytes = self.fixed_bytes();
        stats.bytes_held = stats.leaf_bytes
            + stats.inner_bytes
            + stats.interpolation_bytes
            + stats.landing_bytes
            + stats.large_value_bytes
            + stats.hot_bytes
            + stats.dictionary_bytes
            + stats.retired_bytes
            + stats.free_bytes
            + stats.thread_bytes
            + stats.fixed_bytes;
        let sum = |count| self.contexts.sum(count);
        stats.gets = sum(Count::Gets);
        stats.get_frames_decoded = sum(Count::GetFrames);
        stats.get_bytes_decoded = sum(Count::GetBytes);
        stats.get_landing_hits = sum(Count::GetLandingHits);
        stats.get_hot_hits = sum(Count::GetHotHits);
        stats.puts = sum(Count::Puts);
        stats.bulk_loaded = sum(Count::BulkLoaded);
        stats.put_bytes = sum(Count::PutBytes);
        stats.copied_bytes = sum(Count::CopiedBytes);
        stats.compressed_bytes = sum(Count::CompressedBytes);
        stats.removes = sum(Count::Removes);
        stats.splits = sum(Count::Splits);
        stats.merges = sum(Count::Merges);
        stats.bg_passes = sum(Count::BgPasses);
        stats.bg_compactions = sum(Count::BgCompactions);
        stats.bg_trylock_misses = sum(Count::BgTrylockMisses);
        stats.bg_skipped = sum(Count::BgSkipped);
        stats.bg_errors = sum(Count::BgErrors);
        stats.fg_landing_full = sum(Count::FgLandingFull);
        stats.fg_sync_compactions = sum(Count::FgSyncCompactions);
        stats.fg_sync_compaction_errors = sum(Count::FgSyncCompactionErrors);
        stats.fg_split_fallbacks = sum(Count::FgSplitFallbacks);
        stats.bg_enqueue_attempts = sum(Count::BgEnqueueAttempts);
        stats.bg_enqueued = sum(Count::BgEnqueued);
        stats.bg_enqueue_duplicates = sum(Count::BgEnqueueDuplicates);
        stats.bg_queue_full = sum(Count::BgQueueFull);
        stats.bg_queue_pops = sum(Count::BgQueuePops);
        stats.bg_panics = self.background.health.panics();
        stats.bg_threads_ended = self.background.health.ended();
        let settings = self.settings.now();
        stats.frame_limit_bytes = settings.frame_bytes as u64;
        stats.leaf_limit_bytes = settings.leaf_bytes as u64;
        stats.limits_reason = self.sizing.reason();
        stats.records_heated = sum(Count::Heated);
        stats.leaves_warmed = sum(Count::Warmed);
        stats.leaves_cooled = sum(Count::Cooled);
        stats.engine = self.engines.warm.counters();
        if let Some(hot) = &self.hot {
            stats.hot_records = hot.count(&self.memory);
        }
        if let Some(temperatures) = &self.temperatures {
            stats.temperature_reason = temperatures.reason();
            if !Arc::ptr_eq(&self.engines.cold, &self.engines.warm) {
                stats.engine.add(&self.engines.cold.counters());
            }
        }
        stats.engine_name = self.engines.warm.engine_name();
        stats
    }
}

/// Checks that the codec accepts the dictionary: an insertion would find out too late.
fn check_dictionary(engine: &dyn Engine, dictionary: &Dictionary) -> Result<(), TreeError> {
    let probe = b"leaf";
    let mut block = Vec::new();
    let taken = engine
        .compress(probe, Some(dictionary), &mut block)
        .and_then(|_| engine.decompress(&block, Some(dictionary), &mut [0; 4]));
    taken.map_err(|error| match error {
        memory @ CodecError::OutOfMemory { .. } => TreeError::Codec(memory),
        refused => TreeError::Option {
            option: "dictionary",
            reason: refused.to_string(),
        },
    })
}

/// Builds a leaf without records.
fn first_leaf(compression: &mut Compression<'_, '_>) -> Result<NewLeaf, TreeError> {
    compression.begin();
    let mut built = compression.compress_all(Vec::new(), SplitHint::Within)?;
    match built.leaves.pop() {
        Some(leaf) => Ok(leaf),
        None => Err(TreeError::Invalid(
            "an empty tree was compressed into no leaf".to_owned(),
        )),
    }
}
