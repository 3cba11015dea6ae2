//! Results of a comparison.

use serde::{Deserialize, Serialize};

use super::Options;
use super::engines::EngineSpec;
use super::mrc::HitCurves;
use crate::core::Bytes;
use crate::core::latency::Latency;
use crate::harness::machine_load;
use crate::harness::timeline::{Moment, Move, around_move};
use crate::report::numbers::thousands;

/// A fill of a cache, to see by how much its process grows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Fill {
    /// The cache's configured capacity, in bytes.
    pub capacity_bytes: u64,
    /// The most that the process grew by, in bytes.
    pub growth_bytes: u64,
    /// Whether the whole working set was in the cache: no larger capacity would hold more.
    pub holds_all: bool,
}

/// The capacity to configure for a cache, so that its process grows by at most the memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConfiguredCapacity {
    /// In bytes.
    pub bytes: u64,
    /// The fills by which it was found; none where the cache bounds the memory itself.
    pub fills: Vec<Fill>,
    /// Runs with it and with capacities that did not fit, including the selected one.
    pub runs: Vec<Fill>,
}

/// Hits that were not what their key held.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mismatches {
    /// Values of an older version.
    pub stale: u64,
    /// Bytes that match no recent version of the key.
    pub wrong: u64,
    /// Values whose time was over.
    pub expired: u64,
    /// The first few, in words.
    pub examples: Vec<String>,
}

impl Mismatches {
    /// Examples that are kept.
    pub(super) const EXAMPLES: usize = 3;

    /// Returns the sum of all kinds.
    pub fn total(&self) -> u64 {
        self.stale + self.wrong + self.expired
    }

    /// Adds another thread's.
    pub(super) fn add(&mut self, other: Self) {
        self.stale += other.stale;
        self.wrong += other.wrong;
        self.expired += other.expired;
        let room = Self::EXAMPLES.saturating_sub(self.examples.len());
        self.examples.extend(other.examples.into_iter().take(room));
    }
}

/// Activity of a disk tier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskFigures {
    /// Reads that it answered.
    pub hits: u64,
    /// Bytes written to the disk.
    pub written_bytes: u64,
    /// Bytes of the records that left the memory for it.
    pub evicted_bytes: u64,
}

impl DiskFigures {
    /// Its activity since `before`.
    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            hits: self.hits.saturating_sub(before.hits),
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes),
            evicted_bytes: self.evicted_bytes.saturating_sub(before.evicted_bytes),
        }
    }
}

/// How requests that came at a rate were taken.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RateFigures {
    /// Requests per second that came.
    pub asked: f64,
    /// Requests that were due but not begun when the measured time ended.
    pub backlog: u64,
    /// Delay between the intended start and the start of requests.
    pub wait_latency: Option<Latency>,
}

/// A backlog below this share or number of requests is momentary: the cache keeps up.
const KEPT_UP: (f64, u64) = (0.01, 100);

impl RateFigures {
    /// Whether `done` requests are about as many as came.
    fn keeps_up(&self, done: u64) -> bool {
        let came = (done + self.backlog) as f64;
        self.backlog <= KEPT_UP.1 || self.backlog as f64 <= came * KEPT_UP.0
    }
}

/// Events in a window of a run, and the state at its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When the window ended, in seconds from the start of the warm-up.
    pub at_seconds: f64,
    /// Its length in seconds.
    pub length_seconds: f64,
    /// Whether it was in the measured time.
    pub measured: bool,
    /// Reads in it that found their key.
    pub hits: u64,
    /// Reads in it that did not.
    pub misses: u64,
    /// Growth of the process, in bytes.
    pub growth_bytes: u64,
}

impl Sample {
    /// Returns the share of the reads that found their key.
    pub fn hit_ratio(&self) -> Option<f64> {
        let reads = self.hits + self.misses;
        (reads > 0).then(|| self.hits as f64 / reads as f64)
    }
}

/// Hits when every thread had completed a certain number of operations, equal in all caches' runs.
///
/// Runs of equal time do different work, and from a cold start more operations mean more hits. Up to a milestone they
/// have done equal work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Milestone {
    /// Operations of all threads.
    pub operations: u64,
    /// Reads among them that found their key.
    pub hits: u64,
    /// Reads among them that did not.
    pub misses: u64,
}

impl Milestone {
    /// The first number of operations of a thread at which one is taken; a multiple of the operations between two
    /// looks.
    pub(super) const FIRST: u64 = 64;

    /// The number of operations of the next one: a quarter more.
    pub(super) fn after(operations: u64) -> u64 {
        operations + (operations / 4 / Self::FIRST).max(1) * Self::FIRST
    }

    fn hit_ratio(&self) -> Option<f64> {
        let reads = self.hits + self.misses;
        (reads > 0).then(|| self.hits as f64 / reads as f64)
    }
}

/// Results of one cache.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Length of the warm-up, and operations in it.
    pub warmup_seconds: f64,
    /// See `warmup_seconds`.
    pub warmup_operations: u64,
    /// Length of the measured time.
    pub seconds: f64,
    /// Reads that found their key, in memory or on the disk.
    pub hits: u64,
    /// Reads that did not, and inserted it.
    pub misses: u64,
    /// Overwrites, and other insertions without a counted read.
    pub writes: u64,
    /// Removals.
    #[serde(default)]
    pub removes: u64,
    /// Latency of hits; with a rate, this and the next ones count from the intended start.
    pub hit_latency: Option<Latency>,
    /// Latency of misses, with the insertion; without the backend.
    pub miss_latency: Option<Latency>,
    /// Latency of all reads, with the backend's time for misses.
    #[serde(default)]
    pub read_latency: Option<Latency>,
    /// Latency of reads by length, for the paper's objects of several lengths.
    #[serde(default)]
    pub latency_by_length: Vec<Option<Latency>>,
    /// Mean of the same in stretches of operations, where the hot keys moved.
    #[serde(default)]
    pub timeline: Vec<Moment>,
    /// Latency of overwrites.
    pub write_latency: Option<Latency>,
    /// Latency of removals.
    #[serde(default)]
    pub remove_latency: Option<Latency>,
    /// Where requests came at a rate.
    #[serde(default)]
    pub rate: Option<RateFigures>,
    /// Hits, warm-up included, that were not what their key held.
    pub mismatches: Mismatches,
    /// Records in memory at the end; `None` if the cache does not distinguish them from those on its disk.
    pub records: Option<u64>,
    /// Memory by the cache's own accounting, in bytes.
    pub bytes_held: Option<u64>,
    /// The codec that the cache chose, if it chooses one.
    #[serde(default)]
    pub chosen_codec: Option<String>,
    /// Why it chose the codec.
    #[serde(default)]
    pub codec_reason: Option<String>,
    /// The cache's share of uncompressed copies and why, if it chose one.
    #[serde(default)]
    pub raw_share: Option<String>,
    /// The most that the process grew by from just before the cache was made, in bytes.
    pub peak_growth_bytes: u64,
    /// Growth at the end.
    pub growth_bytes: u64,
    /// CPU seconds of the whole process in the measured time.
    pub cpu_seconds: f64,
    /// Cores that other processes kept busy in the measured time; `None` if the system does not report it.
    #[serde(default)]
    pub other_cores: Option<f64>,
    /// The tier on a disk in the measured time.
    pub disk: Option<DiskFigures>,
    /// Hits and memory over time, warm-up included.
    pub samples: Vec<Sample>,
    /// Hits by operations of the measured time.
    #[serde(default)]
    pub milestones: Vec<Milestone>,
}

/// A disk that answers at most one of this many hits holds nothing that the memory does not.
const ALL_BUT: u64 = 1000;

impl Measured {
    /// Returns the number of operations done in the measured time.
    pub fn operations(&self) -> u64 {
        self.hits + self.misses + self.writes + self.removes
    }

    /// Whether the memory answers everything possible, of this many keys: no larger one would answer more.
    pub(super) fn holds_all(&self, keys: u64) -> bool {
        match (self.records, self.disk) {
            (Some(records), _) => records >= keys,
            (None, Some(disk)) => disk.hits <= self.hits / ALL_BUT,
            (None, None) => false,
        }
    }

    fn of_reads(&self, count: u64) -> Option<f64> {
        let reads = self.hits + self.misses;
        (reads > 0).then(|| count as f64 / reads as f64)
    }

    /// Returns the share of the reads that were answered from memory.
    pub fn memory_hit_ratio(&self) -> Option<f64> {
        let disk_hits = self.disk.map_or(0, |disk| disk.hits);
        self.of_reads(self.hits.saturating_sub(disk_hits))
    }

    /// Returns the share of the reads that were answered from the disk.
    pub fn disk_hit_ratio(&self) -> Option<f64> {
        self.of_reads(self.disk?.hits)
    }

    /// Returns the share of the reads that were answered.
    pub fn hit_ratio(&self) -> Option<f64> {
        self.of_reads(self.hits)
    }

    /// Returns the share of the reads among the first `operations` that were answered; `None` where it is not known for
    /// that number.
    pub fn hit_ratio_over(&self, operations: u64) -> Option<f64> {
        if operations == self.operations() {
            return self.hit_ratio();
        }
        let mut milestones = self.milestones.iter();
        milestones.find(|one| one.operations == operations)?.hit_ratio()
    }

    /// Returns the operations per second.
    pub fn throughput(&self) -> f64 {
        self.operations() as f64 / self.seconds.max(1e-9)
    }

    /// Returns the operations per second if each thread had waited for the backend at each of its misses; `None` where
    /// requests come at a rate, which does not change by that.
    pub fn charged_throughput(&self, options: &Options) -> Option<f64> {
        self.charged_throughput_over(self.operations(), options)
    }

    /// Returns the charged throughput with the miss ratio of the first `operations`; `None` if that is unknown.
    pub fn charged_throughput_over(&self, operations: u64, options: &Options) -> Option<f64> {
        let misses = if operations == self.operations() {
            self.misses
        } else {
            self.milestones.iter().find(|one| one.operations == operations)?.misses
        };
        let waits = misses as f64 / operations.max(1) as f64 * options.backend_us / 1e6 / options.threads as f64;
        let charged = 1.0 / (1.0 / self.throughput().max(1e-9) + waits).max(1e-9);
        self.rate.is_none().then_some(charged)
    }

    /// Returns the bytes written to the disk for each byte that left the memory.
    pub fn written_per_evicted(&self) -> Option<f64> {
        let disk = self.disk?;
        (disk.evicted_bytes > 0).then(|| disk.written_bytes as f64 / disk.evicted_bytes as f64)
    }

    /// The effect of moving the hot set; `None` without a move, or if the run ended before it.
    pub(crate) fn moved(&self, options: &Options) -> Option<Move> {
        around_move(&self.timeline, options.shift_at?)
    }

    /// Returns the ratio of the most that the process grew by to the memory.
    pub fn peak_over_memory(&self, options: &Options) -> f64 {
        self.peak_growth_bytes as f64 / options.memory_bytes as f64
    }
}

/// A cache's run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The cache.
    pub engine: EngineSpec,
    /// Its configured capacity; `None` if that was not found.
    pub capacity: Option<ConfiguredCapacity>,
    /// Its results; `None` if it failed.
    pub measured: Option<Measured>,
    /// Why it failed, in a line.
    pub failure: Option<String>,
}

/// Results of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The options.
    pub options: Options,
    /// Description of the workload, a line each.
    pub work: Vec<String>,
    /// Fields of the CacheBench file that have no meaning here.
    #[serde(default)]
    pub unused_fields: Vec<String>,
    /// A caveat if the values compress better than the data they come from.
    #[serde(default)]
    pub repeated_values: Option<String>,
    /// Keys in the backend.
    pub keys: u64,
    /// Mean bytes of a key and its value.
    pub record_bytes: f64,
    /// The machine, in words.
    pub host: String,
    /// The caches in order.
    pub lines: Vec<Line>,
    /// Miss-ratio curves, if requested.
    #[serde(default)]
    pub mrc: Option<HitCurves>,
    /// Whether it was cancelled before the last one.
    pub cancelled: bool,
}

impl Outcome {
    /// Returns the number of operations that all caches completed, over which hit ratios are comparable; `None` if
    /// there is none.
    pub fn common_operations(&self) -> Option<u64> {
        let measured = || self.lines.iter().filter_map(|line| line.measured.as_ref());
        let (least, most) = self.operations()?;
        if least == most {
            return Some(least);
        }
        let milestones = |measured: &Measured| measured.milestones.iter().map(|one| one.operations).max();
        let common = measured().map(milestones).min().flatten()?;
        measured()
            .all(|measured| measured.milestones.iter().any(|one| one.operations == common))
            .then_some(common)
    }

    /// Whether all caches have done the same number of operations.
    pub(super) fn did_the_same(&self) -> bool {
        self.operations().is_none_or(|(least, most)| least == most)
    }

    /// The least and the most operations that a cache has done.
    pub(super) fn operations(&self) -> Option<(u64, u64)> {
        let measured = || self.lines.iter().filter_map(|line| line.measured.as_ref());
        let operations = || measured().map(Measured::operations);
        Some((operations().min()?, operations().max()?))
    }

    /// Returns problems to report before the figures: failures, wrong bytes, a cancellation.
    pub fn troubles(&self) -> Vec<String> {
        let mut troubles = Vec::new();
        for line in &self.lines {
            let engine = &line.engine;
            if let Some(failure) = &line.failure {
                troubles.push(format!("failed: {engine}: {failure}"));
            }
            let mismatches = line.measured.as_ref().map(|measured| &measured.mismatches);
            if let Some(mismatches) = mismatches.filter(|mismatches| mismatches.total() > 0) {
                let (stale, wrong, expired) = (mismatches.stale, mismatches.wrong, mismatches.expired);
                let example = mismatches.examples.first().map_or("", String::as_str);
                troubles.push(format!(
                    "MISMATCHES: {engine}: {stale} stale values, {wrong} of wrong bytes, {expired} expired; the first: \
                     {example}"
                ));
            }
        }
        if self.cancelled {
            let (finished, wanted) = (self.lines.len(), self.options.engines.len());
            troubles.push(format!("interrupted: {finished} of {wanted} caches finished"));
        }
        troubles
    }

    /// Returns the caches that could not keep up with requests, a line each: their latencies are those of a growing
    /// queue.
    pub fn fell_behind(&self) -> Vec<String> {
        let lines = self.lines.iter().filter_map(|line| {
            let measured = line.measured.as_ref()?;
            let rate = measured.rate.as_ref()?;
            (!rate.keeps_up(measured.operations())).then(|| {
                format!(
                    "FELL BEHIND: {}: {} of {} requests per second; {} were still queued at the end, so latencies are \
                     those of a growing queue",
                    line.engine,
                    thousands(measured.throughput() as u64),
                    thousands(rate.asked as u64),
                    thousands(rate.backlog),
                )
            })
        });
        lines.collect()
    }

    /// Returns the caches that took more than the memory, a line each: their hits are those of more.
    pub fn over_memory(&self) -> Vec<String> {
        let lines = self.lines.iter().filter_map(|line| {
            let memory = self.options.memory_bytes;
            let why = if memory < LITTLE_MEMORY_BYTES {
                ". Fixed overhead (training, threads) dominates at small budgets; use a larger --memory"
            } else {
                ""
            };
            let times = line.measured.as_ref()?.peak_over_memory(&self.options);
            (times > MAX_OVER_MEMORY).then(|| {
                format!(
                    "OVER THE MEMORY: {}: the process grew by {times:.2} times {}{why}",
                    line.engine,
                    Bytes(memory),
                )
            })
        });
        lines.collect()
    }

    /// Returns the caveats of the figures, a line each.
    pub fn cautions(&self) -> Vec<String> {
        let repeated = self.repeated_values.clone();
        let measured = self.lines.iter().filter_map(|line| line.measured.as_ref());
        let busiest = measured.filter_map(|measured| measured.other_cores).reduce(f64::max);
        repeated
            .into_iter()
            .chain(machine_load::caution(busiest, "hit ratios over equal operations"))
            .chain(self.fell_behind())
            .chain(self.over_memory())
            .collect()
    }
}

/// With less memory than this, what a process needs besides a cache is much of it.
const LITTLE_MEMORY_BYTES: u64 = 32 << 20;
/// Growth of more than this multiple of the memory is reported.
const MAX_OVER_MEMORY: f64 = 1.25;
