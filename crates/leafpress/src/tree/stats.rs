//! Statistics of a tree.

use leafpress_codec::{Codec, EngineCounters};

/// A snapshot of a tree's memory and counters, from [`Tree::stats`](crate::tree::Tree::stats).
///
/// `bytes_held` is the sum of the eleven `*_bytes` fields below it, each with its allocator slack. It does not include
/// the codec contexts, two per core, which belong to the process.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct TreeStats {
    /// Records in the tree.
    pub records: u64,
    /// Bytes of their keys and values.
    pub user_bytes: u64,
    /// All memory the tree holds, in bytes.
    pub bytes_held: u64,
    /// Leaves: headers, key directories and frames.
    pub leaf_bytes: u64,
    /// Inner nodes.
    pub inner_bytes: u64,
    /// Interpolation indexes past the inner nodes.
    pub interpolation_bytes: u64,
    /// Landing buffers.
    pub landing_bytes: u64,
    /// Large values, which are stored in nodes of their own: see
    /// [`TreeBuilder::inline_value_bytes`](crate::tree::TreeBuilder::inline_value_bytes).
    pub large_value_bytes: u64,
    /// Copies of hot records, and their table.
    pub hot_bytes: u64,
    /// Dictionaries and the tables codecs derive from them.
    pub dictionary_bytes: u64,
    /// Memory unlinked from the tree and not yet reclaimed.
    pub retired_bytes: u64,
    /// Unused resident memory of the tree's heap: holes between nodes, and the heap's own tables.
    pub free_bytes: u64,
    /// Per-thread memory: counters, and buffers, which a thread that is idle for a while gives back.
    pub thread_bytes: u64,
    /// The tree's own fixed parts.
    pub fixed_bytes: u64,
    /// Number of leaves.
    pub leaves: u64,
    /// Number of frames in the leaves.
    pub frames: u64,
    /// Number of leaves that have a landing buffer now.
    pub landing_buffers: u64,
    /// Number of inner nodes.
    pub inner_nodes: u64,
    /// Levels from root to leaf, 1 for a single leaf (the deepest shard).
    pub depth: u32,
    /// The codec of new frames: the tree's, or the one that it chose.
    pub codec: Codec,
    /// Id of the dictionary that new frames are compressed with, 0 for none.
    pub dictionary_id: u32,
    /// Raw bytes at which a frame is closed, 1 when every record is a frame: configured or chosen.
    pub frame_limit_bytes: u64,
    /// User bytes at which a leaf splits: configured or chosen.
    pub leaf_limit_bytes: u64,
    /// Explanation of these two limits, and of the codec if it was chosen, in words: what was tried, and the result.
    pub limits_reason: String,

    /// Number of records with an uncompressed copy: see [`Codec::Auto`].
    pub hot_records: u64,
    /// Number of warm leaves, compressed with the tree's codec: all leaves, unless the codec is `auto`.
    pub warm_leaves: u64,
    /// Number of cold leaves, compressed in wide frames by a stronger codec.
    pub cold_leaves: u64,
    /// Records that became hot.
    pub records_heated: u64,
    /// Leaves that became warm by the temperature rule, not by a write.
    pub leaves_warmed: u64,
    /// Leaves that became cold.
    pub leaves_cooled: u64,
    /// Cost of each temperature, and the number of reads below which leaves are cold, in words; empty where all are
    /// warm.
    pub temperature_reason: String,

    /// Point reads.
    pub gets: u64,
    /// Frames that point reads decoded.
    pub get_frames_decoded: u64,
    /// Raw bytes that point reads decoded.
    pub get_bytes_decoded: u64,
    /// Point reads answered from a landing buffer.
    pub get_landing_hits: u64,
    /// Point reads answered by a hot record's copy.
    pub get_hot_hits: u64,
    /// Insertions and replacements, of any kind.
    pub puts: u64,
    /// Those of `puts` that were bulk-loaded, in key order into new leaves: see
    /// [`Tree::extend`](crate::tree::Tree::extend).
    pub bulk_loaded: u64,
    /// Bytes of the keys and values that were inserted.
    pub put_bytes: u64,
    /// Bytes written into the tree's nodes for these and by all upkeep: landing buffers, leaves written by compactions
    /// and moved by passes. See [`TreeStats::copied_per_byte_put`].
    pub copied_bytes: u64,
    /// Raw bytes compressed for the nodes, without those for training and for trials of frame lengths. See
    /// [`TreeStats::compressed_per_byte_put`].
    pub compressed_bytes: u64,
    /// Removes.
    pub removes: u64,
    /// Leaf splits.
    pub splits: u64,
    /// Leaf merges.
    pub merges: u64,

    /// Times that a background thread woke to work.
    pub bg_passes: u64,
    /// Leaves compacted in the background.
    pub bg_compactions: u64,
    /// Leaves that background compaction skipped because a writer had locked them.
    pub bg_trylock_misses: u64,
    /// Leaves that background compaction found already compacted.
    pub bg_skipped: u64,
    /// Background compactions that failed.
    pub bg_errors: u64,
    /// Writes that found the landing buffer full.
    pub fg_landing_full: u64,
    /// Compactions done by the writing thread.
    pub fg_sync_compactions: u64,
    /// Compactions by the writing thread that failed.
    pub fg_sync_compaction_errors: u64,
    /// Compactions by the writing thread that ended in a split.
    pub fg_split_fallbacks: u64,
    /// Times that a leaf passed the watermark and was to be queued for background compaction.
    pub bg_enqueue_attempts: u64,
    /// Leaves added to the queue.
    pub bg_enqueued: u64,
    /// Leaves that were in the queue already.
    pub bg_enqueue_duplicates: u64,
    /// Leaves that were not queued because the queue was full.
    pub bg_queue_full: u64,
    /// Leaves taken from the queue by background threads.
    pub bg_queue_pops: u64,
    /// Pieces of background work that panicked and were abandoned.
    pub bg_panics: u64,
    /// Background threads that ended after repeated panics; [`Tree::settle`](super::Tree::settle) then returns an
    /// error.
    pub bg_threads_ended: u64,

    /// Counters of the codec engine.
    pub engine: EngineCounters,
    /// The engine in use: see [`Engine::engine_name`](leafpress_codec::Engine::engine_name).
    pub engine_name: &'static str,
}

impl TreeStats {
    /// Returns the bytes held per user byte: below 1 the tree saves memory. 0 when the tree is empty.
    ///
    /// ```
    /// # let tree = leafpress::Tree::from_sorted((0..1000_u32).map(|n| (n.to_be_bytes(), [7; 100])))?;
    /// let stats = tree.stats();
    /// println!("{:.2} bytes for each byte of the records", stats.held_per_user_byte());
    /// assert!(stats.held_per_user_byte() < 2.0);
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn held_per_user_byte(&self) -> f64 {
        if self.user_bytes == 0 {
            0.0
        } else {
            self.bytes_held as f64 / self.user_bytes as f64
        }
    }

    /// Returns the bytes copied into nodes per user byte inserted (write amplification), over the tree's life; 0 when
    /// nothing was inserted.
    ///
    /// ```
    /// # let tree = leafpress::Tree::from_sorted((0..1000_u32).map(|n| (n.to_be_bytes(), [7; 100])))?;
    /// println!("{:.2} bytes written for each that was put", tree.stats().copied_per_byte_put());
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn copied_per_byte_put(&self) -> f64 {
        per_byte_put(self.copied_bytes, self.put_bytes)
    }

    /// Returns the bytes compressed per user byte inserted, over the tree's life; 0 when nothing was inserted.
    ///
    /// ```
    /// # let tree = leafpress::Tree::from_sorted((0..1000_u32).map(|n| (n.to_be_bytes(), [7; 100])))?;
    /// println!("{:.2} bytes compressed for each that was put", tree.stats().compressed_per_byte_put());
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn compressed_per_byte_put(&self) -> f64 {
        per_byte_put(self.compressed_bytes, self.put_bytes)
    }
}

fn per_byte_put(bytes: u64, put_bytes: u64) -> f64 {
    if put_bytes == 0 {
        0.0
    } else {
        bytes as f64 / put_bytes as f64
    }
}
