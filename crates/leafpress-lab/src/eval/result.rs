//! Measurements of one run: the record that a run's process returns to its parent.

use leafpress::Codec;
use serde::{Deserialize, Serialize};

use crate::core::latency::Latency;
use crate::harness::resident_memory::{Resident, Weight, is_little};
use crate::harness::timeline::Moment;

/// Why the resident memory of little is not known at the end of a run.
const CHANGED: &str = "an index this small is weighed after the load, and it has changed since; the run's own threads \
    and buffers would dominate its growth";

/// Measurements of one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The engine that ran: see [`leafpress::TreeStats::engine_name`].
    pub engine: String,
    /// Length of the timed window in seconds, as measured.
    pub wall_seconds: f64,
    /// Point reads done in the timed window.
    pub reads: u64,
    /// Puts done in the timed window.
    pub writes: u64,
    /// Deletes done in the timed window.
    pub deletes: u64,
    /// Scans done in the timed window.
    pub scans: u64,
    /// Records that scans returned in the timed window.
    pub scanned_records: u64,
    /// Answers that were not what the key could hold, while loading, running, or in the check of every key after the
    /// run.
    pub mismatches: u64,
    /// The first few of them, in words.
    pub mismatch_examples: Vec<String>,
    /// Point read latencies; for workloads without any, `None`.
    pub read_latency: Option<Latency>,
    /// Put latencies.
    pub write_latency: Option<Latency>,
    /// Delete latencies.
    pub delete_latency: Option<Latency>,
    /// Latencies of whole scans.
    pub scan_latency: Option<Latency>,
    /// CPU and memory of the run's process, unless disabled.
    pub resources: Option<Resources>,
    /// Keys that were loaded.
    pub keys: u64,
    /// Seconds it took to load the key space on all threads.
    pub load_seconds: f64,
    /// How long background work that was due after the load took, in no other figure, in seconds.
    pub settle_seconds: f64,
    /// Memory after the load and after background work that was due.
    pub loaded: Memory,
    /// Memory at the end of the timed window.
    pub ended: Memory,
    /// Counters over the timed window.
    pub counters: Counters,
    /// Cores that other processes kept busy in the timed window; `None` if the system does not report it.
    #[serde(default)]
    pub other_cores: Option<f64>,
    /// Latency over the operations of the timed window, in `hotset`; otherwise empty.
    #[serde(default)]
    pub timeline: Vec<Moment>,
}

impl RunResult {
    /// Returns the operations done in the timed window.
    pub fn operations(&self) -> u64 {
        self.reads + self.writes + self.deletes + self.scans
    }

    /// Returns the throughput in operations per second.
    pub fn qps(&self) -> f64 {
        if self.wall_seconds > 0.0 {
            self.operations() as f64 / self.wall_seconds
        } else {
            0.0
        }
    }

    /// Returns the throughput per core's worth of CPU time that the process used.
    pub fn qps_per_core(&self) -> Option<f64> {
        let cores = self.resources.as_ref()?.cpu_cores(self.wall_seconds);
        (cores > 0.0).then(|| self.qps() / cores)
    }

    /// Whether the loaded data is so small that the run's own growth is imprecise, and it must be weighed.
    pub(crate) fn is_little(&self) -> bool {
        let grown = self.loaded.rss_growth_bytes;
        is_little(grown.map(|bytes| u64::try_from(bytes).unwrap_or(0)))
    }

    /// Puts what the map was weighed at after the load in the place of what the run measured. At the run's end it is
    /// known only where nothing had changed by then.
    pub(crate) fn put_weight(&mut self, weight: &Weight) {
        let as_loaded = self.writes + self.deletes == 0 && self.ended.bytes_held == self.loaded.bytes_held;
        self.loaded.put_resident(&weight.resident);
        self.loaded.bytes_held = weight.held_bytes.unwrap_or(self.loaded.bytes_held);
        if as_loaded {
            self.ended.put_resident(&weight.resident);
        } else {
            self.ended.put_resident(&Resident::Unknown(CHANGED.into()));
        }
    }
}

/// CPU and memory of a run's process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Resources {
    /// User CPU seconds of all threads in the timed window (getrusage).
    pub user_seconds: f64,
    /// System CPU seconds of all threads in the timed window (getrusage).
    pub system_seconds: f64,
    /// Most resident memory of the process over its whole life, in KiB; the corpus and the check's table are in it.
    pub max_rss_kib: Option<u64>,
    /// Voluntary context switches, over the process's whole life.
    pub voluntary_switches: u64,
    /// Involuntary context switches, over the process's whole life.
    pub involuntary_switches: u64,
}

impl Resources {
    /// Returns the cores' worth of CPU time used in a window of `wall_seconds`.
    pub fn cpu_cores(&self, wall_seconds: f64) -> f64 {
        if wall_seconds > 0.0 {
            (self.user_seconds + self.system_seconds) / wall_seconds
        } else {
            0.0
        }
    }
}

/// Memory at one moment, in bytes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Records in the tree.
    pub records: u64,
    /// Their keys and values.
    pub user_bytes: u64,
    /// All the tree holds, by its own account.
    pub bytes_held: u64,
    /// Of that, dictionaries.
    pub dictionary_bytes: u64,
    /// Codec of new frames: given, or what the tree chose.
    #[serde(default)]
    pub codec: String,
    /// Raw bytes at which a frame is closed: given, or what the tree chose.
    #[serde(default)]
    pub frame_limit_bytes: u64,
    /// User bytes at which a leaf splits.
    #[serde(default)]
    pub leaf_limit_bytes: u64,
    /// Growth of the process's resident memory since just before the tree was made, by the system's account, without
    /// what its allocators have free. Of a tree that takes little: what it was weighed at in a process of its own.
    pub rss_growth_bytes: Option<i64>,
    /// Why that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss_growth_unknown: Option<String>,
}

impl Memory {
    /// Returns the codec that a tree of this codec chose; `None` where it has no choice.
    pub fn chosen(&self, codec: &str) -> Option<&str> {
        let codec = codec.parse::<Codec>().ok()?;
        (!codec.candidates().is_empty() && !self.codec.is_empty()).then_some(&*self.codec)
    }

    /// Returns the resident memory over keys and values, if both are known.
    pub fn resident_per_user_byte(&self) -> Option<f64> {
        let resident = self.rss_growth_bytes.filter(|_| self.user_bytes > 0)?;
        Some(resident as f64 / self.user_bytes as f64)
    }

    fn put_resident(&mut self, resident: &Resident) {
        self.rss_growth_bytes = resident.bytes().and_then(|bytes| i64::try_from(bytes).ok());
        self.rss_growth_unknown = resident.unknown().map(str::to_owned);
    }
}

/// Declares [`Counters`] and how it is taken from two snapshots.
macro_rules! counters {
    ($($field:ident: $path:ident $(. $rest:ident)* => $doc:literal),+ $(,)?) => {
        /// Counters of the tree and its engine in the timed window: see [`leafpress::TreeStats`].
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct Counters {
            $(#[doc = $doc] pub $field: u64,)+
            /// QPL jobs kept by threads at the end (a level, not a count of events).
            pub thread_jobs: u64,
        }

        impl Counters {
            /// Computes the difference of two snapshots.
            pub fn between(before: &leafpress::TreeStats, after: &leafpress::TreeStats) -> Self {
                Self {
                    $($field: after.$path$(.$rest)*.saturating_sub(before.$path$(.$rest)*),)+
                    thread_jobs: after.engine.thread_jobs,
                }
            }
        }
    };
}

counters! {
    gets: gets => "Point reads.",
    get_frames_decoded: get_frames_decoded => "Frames that point reads decoded.",
    get_bytes_decoded: get_bytes_decoded => "Raw bytes that point reads decoded.",
    get_landing_hits: get_landing_hits => "Point reads answered from a landing buffer.",
    puts: puts => "Puts.",
    put_bytes: put_bytes => "Bytes of the keys and values that were put.",
    copied_bytes: copied_bytes => "Bytes written into the tree's nodes.",
    compressed_bytes: compressed_bytes => "Raw bytes compressed for the tree's nodes.",
    removes: removes => "Removes.",
    splits: splits => "Leaf splits.",
    merges: merges => "Leaf merges.",
    bg_passes: bg_passes => "Times a background thread woke to work.",
    bg_compactions: bg_compactions => "Leaves compacted in the background.",
    bg_trylock_misses: bg_trylock_misses => "Leaves skipped in the background because a writer held them.",
    bg_skipped: bg_skipped => "Leaves found already compacted in the background.",
    bg_errors: bg_errors => "Background compactions that failed.",
    fg_landing_full: fg_landing_full => "Writes that found the landing buffer full.",
    fg_sync_compactions: fg_sync_compactions => "Compactions done by the writing thread.",
    fg_sync_compaction_errors: fg_sync_compaction_errors => "Compactions by the writing thread that failed.",
    fg_split_fallbacks: fg_split_fallbacks => "Compactions by the writing thread that ended in a split.",
    bg_enqueue_attempts: bg_enqueue_attempts => "Offers of a leaf to the background.",
    bg_enqueued: bg_enqueued => "Leaves taken into the queue.",
    bg_enqueue_duplicates: bg_enqueue_duplicates => "Offers of a leaf that was queued already.",
    bg_queue_full: bg_queue_full => "Offers refused by a full queue.",
    bg_queue_pops: bg_queue_pops => "Leaves taken from the queue.",
    compress_calls: engine.compress_calls => "Engine calls that compressed a block.",
    compress_ns: engine.compress_ns => "Nanoseconds they took, scaled up from those timed.",
    decompress_calls: engine.decompress_calls => "Engine calls that decompressed a block.",
    decompress_ns: engine.decompress_ns => "Nanoseconds they took, scaled up from those timed.",
    engine_errors: engine.errors => "Engine calls that failed.",
    fallbacks: engine.fallbacks => "Engine calls a device could not accept.",
    hardware_calls: engine.hardware_calls => "Engine calls that ran on a device.",
    software_calls: engine.software_calls => "Engine calls that ran on the CPU.",
    call_jobs: engine.call_jobs => "QPL jobs initialised for one call.",
    stream_inits: engine.stream_inits => "zlib streams initialised.",
    stream_reuses: engine.stream_reuses => "Engine calls that reused a zlib stream.",
}
