//! The alternatives: memory, hit ratio, times, cores, bytes written, and money.

use serde::Serialize;

use super::hits::Hits;
use super::options::{Options, Requests};
use super::sample::{PAGE_BYTES, Sampled};
use super::times::Time;
use crate::advise::SWEEP_US;
use crate::cache::MrcOptions;
use crate::core::keys::Distribution;
use crate::model::formulas::{Costs, corrected_us, gathered, tiers};
use crate::model::replacement::{Clock, Room};
use crate::model::{MAX_COMPRESSED, Options as ModelOptions};

const GIB: f64 = (1_u64 << 30) as f64;
const GB: f64 = 1e9;
/// Times a day that an SSD may be written in full: what drives for many writes are specified for.
pub(super) const MAX_DRIVE_WRITES: f64 = 3.0;
const SECONDS_PER_DAY: f64 = 86_400.0;

/// The share of an SSD that the disk tier fills: beyond, merges leave out the oldest records.
const SSD_FILLED: f64 = 0.8;
/// Memory that the disk tier's index takes for a record: 1.3 to 1.9 bytes in docs/experiments/029-disk-tier.md.
const INDEX_BYTES: f64 = 2.0;
/// The largest part of a cache's memory that the index takes.
const INDEX_SHARE: f64 = 0.5;
/// Bytes that the disk tier writes for each byte on the SSD: docs/experiments/029-disk-tier.md.
const AMPLIFICATION: f64 = 2.9;
/// CPU time of a read of the SSD: the system call and the interrupt.
const READ_CPU_US: f64 = 10.0;
/// Microseconds of a hit in the page pool.
const PAGE_HIT_US: f64 = 0.15;
/// Shares of the pool's memory for compressed pages that are compared.
const PAGE_SHARES: [f64; 4] = [0.0, 0.5, 0.8, MAX_COMPRESSED];
/// The share of the accesses that may be slower than the 99th percentile.
const SLOWEST: f64 = 0.01;

/// A way to serve the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A cache of uncompressed records in the memory.
    Uncompressed,
    /// A cache of uncompressed records in as much memory as the requests need.
    UncompressedEnough,
    /// Our cache in the memory.
    Cache,
    /// Our cache in as much memory as the requests need.
    CacheEnough,
    /// A tree of all records.
    Tree,
    /// Our cache in the memory, with an SSD tier.
    CacheAndSsd,
    /// All records in pages on an SSD, of which a pool in the memory keeps some, compressed or not.
    PagePool,
}

impl Kind {
    /// Returns its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uncompressed => "uncompressed cache",
            Self::UncompressedEnough => "uncompressed, more memory",
            Self::Cache => "Cache",
            Self::CacheEnough => "Cache, more memory",
            Self::Tree => "Tree",
            Self::CacheAndSsd => "Cache and SSD",
            Self::PagePool => "page pool on SSD",
        }
    }
}

/// Dollars per month.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Of the memory.
    pub memory: f64,
    /// Of the SSD.
    pub ssd: f64,
    /// Of the cores.
    pub cores: f64,
}

impl Cost {
    /// Returns the sum of all parts.
    pub fn total(self) -> f64 {
        self.memory + self.ssd + self.cores
    }
}

/// What an alternative needs and does.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alternative {
    /// Which it is.
    pub kind: Kind,
    /// Memory in use, in bytes.
    pub memory_bytes: f64,
    /// SSD in bytes.
    pub ssd_bytes: f64,
    /// The share of the requests that memory answers.
    pub memory_hits: f64,
    /// The share that the SSD answers; the backend answers the others.
    pub ssd_hits: f64,
    /// Whether it answers as many requests without the backend as are needed, with an SSD that lasts.
    pub is_enough: bool,
    /// The time of an access.
    pub time: Time,
    /// Cores that are busy, without the backend's.
    pub cores: f64,
    /// Bytes written to the SSD per day.
    pub ssd_bytes_per_day: f64,
    /// Its cost.
    pub cost: Cost,
}

impl Alternative {
    /// Returns the share of the requests that the backend answers.
    pub fn backend_share(&self) -> f64 {
        (1.0 - self.memory_hits - self.ssd_hits).max(0.0)
    }
}

/// The records in numbers, measured or supposed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Question<'q> {
    pub(super) options: &'q Options,
    pub(super) sampled: &'q Sampled,
    pub(super) hits: &'q Hits,
    /// Which records are requested, where pages of them can be modelled.
    pub(super) distribution: Option<Distribution>,
    /// The factor of the compressed bytes of records.
    pub(super) inflation: f64,
}

impl<'q> Question<'q> {
    pub(super) fn new(options: &'q Options, sampled: &'q Sampled, hits: &'q Hits) -> Self {
        Self {
            options,
            sampled,
            hits,
            distribution: match options.requests {
                Requests::Distribution(distribution) => Some(distribution),
                Requests::Trace { .. } => None,
            },
            inflation: 1.0,
        }
    }

    /// Records in all.
    pub(super) fn records(&self) -> f64 {
        self.options.total_bytes as f64 / self.sampled.record_bytes
    }

    /// Bytes of an uncompressed record in a cache.
    pub(super) fn raw_bytes(&self) -> f64 {
        self.sampled.record_bytes + MrcOptions::default().entry_bytes as f64
    }

    fn cache_bytes(&self) -> f64 {
        self.inflated(
            self.sampled.held.per_byte() * self.sampled.record_bytes,
            self.raw_bytes(),
        )
    }

    /// Compressed bytes with the supposed ratio. What does not shrink is kept uncompressed.
    fn inflated(&self, bytes: f64, raw_bytes: f64) -> f64 {
        (bytes * self.inflation).min(bytes.max(raw_bytes))
    }

    /// Memory of a tree of all records.
    pub(super) fn tree_bytes(&self) -> f64 {
        self.records() * self.inflated(self.sampled.tree_bytes, self.raw_bytes()) + self.sampled.tree_fixed_bytes
    }

    /// The hit ratio that is needed.
    fn needed(&self) -> f64 {
        self.options.need * self.hits.at(1.0)
    }

    /// All alternatives. Those with more memory are omitted where the given memory is enough.
    pub(super) fn alternatives(&self) -> Vec<Alternative> {
        let memory = self.options.memory_bytes as f64;
        let empty = self.sampled.held.empty_bytes as f64;
        let (raw, compressed) = (self.sampled.times.raw, self.sampled.times.compressed);
        let of_cache = |kind, bytes: f64, empty: f64, memory: f64, time| {
            let room = (memory - empty).max(0.0);
            let share = (room / bytes / self.records()).min(1.0);
            let used = (self.records() * bytes * share + empty).min(memory);
            self.in_memory(kind, used, self.hits.at(share), time)
        };
        let uncompressed = of_cache(Kind::Uncompressed, self.raw_bytes(), 0.0, memory, raw);
        let has_all_raw = uncompressed.memory_hits >= self.hits.at(1.0);
        let mut all = vec![uncompressed];
        let share = self.hits.share_for(self.needed() - 1e-9);
        let needed = self.records() * self.raw_bytes() * share;
        if needed > memory {
            all.push(of_cache(Kind::UncompressedEnough, self.raw_bytes(), 0.0, needed, raw));
        }
        let cache = of_cache(Kind::Cache, self.cache_bytes(), empty, memory, compressed);
        let has_all = cache.memory_hits >= self.hits.at(1.0);
        all.push(cache);
        let needed = self.records() * self.cache_bytes() * share + empty;
        if needed > memory {
            let enough = of_cache(Kind::CacheEnough, self.cache_bytes(), empty, needed, compressed);
            all.push(enough);
        }
        all.push(self.in_memory(Kind::Tree, self.tree_bytes(), self.hits.at(1.0), compressed));
        // An SSD that was not requested has nothing to do where memory has all records.
        if self.options.ssd_bytes.is_some() || !has_all {
            all.push(self.cache_and_ssd());
        }
        if self.options.ssd_bytes.is_some() || !has_all_raw {
            all.extend(self.page_pool());
        }
        all
    }

    /// An alternative of which no part is on an SSD.
    fn in_memory(&self, kind: Kind, memory_bytes: f64, hits: f64, time: Time) -> Alternative {
        let is_raw = matches!(kind, Kind::Uncompressed | Kind::UncompressedEnough);
        let times = &self.sampled.times;
        let insert_us = if is_raw { times.raw.mean_us } else { times.insert_us };
        let misses = 1.0 - hits;
        // All of the writes of a tree change a record that is there; a cache takes each of them.
        let cpu_us = time.mean_us + (misses + self.options.writes) * insert_us;
        let backend_us = time.mean_us + self.options.backend_us + insert_us;
        self.alternative(
            Parts {
                kind,
                memory_bytes,
                ssd_bytes: 0.0,
                cpu_us,
                ssd_bytes_per_request: 0.0,
            },
            &[(hits, time), (0.0, time), (misses, one(backend_us))],
        )
    }

    fn cache_and_ssd(&self) -> Alternative {
        let times = &self.sampled.times;
        let records = self.records();
        let memory = self.options.memory_bytes as f64;
        let disk_bytes = self.inflated(self.sampled.disk_bytes, self.sampled.record_bytes);
        let indexed = records.min(indexed_records(self.options.memory_bytes));
        let (ssd_bytes, on_disk) = match self.options.ssd_bytes {
            Some(bytes) => (bytes as f64, indexed.min(bytes as f64 * SSD_FILLED / disk_bytes)),
            None => (indexed * disk_bytes / SSD_FILLED, indexed),
        };
        let fixed = self.sampled.held.empty_bytes as f64 + on_disk * INDEX_BYTES;
        let in_memory = ((memory - fixed).max(0.0) / self.cache_bytes()).min(records);
        let memory_hits = self.hits.at(in_memory / records);
        // Records that returned to memory are on the SSD too: which ones those are is taken for independent.
        let held = 1.0 - (1.0 - in_memory / records) * (1.0 - on_disk / records);
        let ssd_hits = (self.hits.at(held) - memory_hits).max(0.0);
        let misses = 1.0 - memory_hits - ssd_hits;
        // What returns from the SSD is inserted into memory, and leaves it again without being written.
        let inserted = ssd_hits + misses + self.options.writes;
        let written = misses + self.options.writes;
        let read_us = times.compressed.mean_us + self.options.device_us + times.insert_us;
        let backend_us = times.compressed.mean_us + self.options.backend_us + times.insert_us;
        self.alternative(
            Parts {
                kind: Kind::CacheAndSsd,
                memory_bytes: (fixed + in_memory * self.cache_bytes()).min(memory),
                ssd_bytes,
                cpu_us: times.compressed.mean_us
                    + inserted * times.insert_us
                    + written * times.spill_us
                    + ssd_hits * READ_CPU_US,
                ssd_bytes_per_request: written * disk_bytes * AMPLIFICATION,
            },
            &[
                (memory_hits, times.compressed),
                (ssd_hits, one(read_us)),
                (misses, one(backend_us)),
            ],
        )
    }

    /// The best share of the memory for compressed pages; nothing where the SSD is too small for all records, or where
    /// the popularity of pages is not known.
    fn page_pool(&self) -> Option<Alternative> {
        let ssd_bytes = self.options.total_bytes as f64;
        if self.options.ssd_bytes.is_some_and(|bytes| (bytes as f64) < ssd_bytes) {
            return None;
        }
        let pieces = (PAGE_BYTES as f64 / self.sampled.record_bytes).round().max(1.0) as u32;
        let tiers = gathered(&tiers(self.distribution?, self.records()), pieces);
        let clock = Clock::new(ModelOptions::new(crate::model::Method::Corrected).promote_after_hits);
        let memory = self.options.memory_bytes as f64;
        let pages: f64 = tiers.iter().map(|tier| tier.pages).sum();
        let page_bytes = memory.min(pages * PAGE_BYTES as f64) / PAGE_BYTES as f64;
        let ratio = (self.sampled.page_ratio / self.inflation).max(1.0);
        let times = &self.sampled.times;
        let costs = Costs {
            hit_us: PAGE_HIT_US,
            device_us: self.options.device_us,
            compress_us: times.page_encode_us + SWEEP_US,
            decompress_us: times.page_decode_us,
            background: 0.0,
        };
        let points = PAGE_SHARES.into_iter().map(|share| {
            let room = Room {
                raw_pages: page_bytes * (1.0 - share),
                compressed_pages: (page_bytes * share * ratio).min(pages),
            };
            let events = clock.events(&tiers, room);
            (corrected_us(&events, &costs), events)
        });
        let (mean_us, events) = points.min_by(|one, other| one.0.total_cmp(&other.0))?;
        let hits = events.hit_ratio();
        let decode = one(costs.hit_us + costs.decompress_us);
        let mut pool = self.alternative(
            Parts {
                kind: Kind::PagePool,
                memory_bytes: memory.min(pages * PAGE_BYTES as f64),
                ssd_bytes,
                // A write is an access to a page.
                cpu_us: (mean_us - (1.0 - hits) * (self.options.device_us - READ_CPU_US)) * (1.0 + self.options.writes),
                // Each write makes a page that is written when it leaves the memory.
                ssd_bytes_per_request: self.options.writes * PAGE_BYTES as f64,
            },
            &[
                (hits, decode),
                (1.0 - hits, one(costs.hit_us + costs.device_us)),
                (0.0, decode),
            ],
        );
        pool.time.mean_us = mean_us;
        Some(pool)
    }

    /// Sums up what answers which share of the requests: memory, SSD and backend.
    fn alternative(&self, parts: Parts, answers: &[(f64, Time); 3]) -> Alternative {
        let prices = &self.options.prices;
        let cores = self.options.ops * parts.cpu_us / 1e6;
        let [(memory_hits, _), (ssd_hits, _), _] = *answers;
        let ssd_bytes_per_day = parts.ssd_bytes_per_request * self.options.ops * SECONDS_PER_DAY;
        Alternative {
            kind: parts.kind,
            memory_bytes: parts.memory_bytes,
            ssd_bytes: parts.ssd_bytes,
            memory_hits,
            ssd_hits,
            is_enough: memory_hits + ssd_hits >= self.needed() - 1e-6
                && ssd_bytes_per_day <= MAX_DRIVE_WRITES * parts.ssd_bytes,
            time: Time {
                mean_us: answers.iter().map(|(share, time)| share * time.mean_us).sum(),
                p99_us: slow_us(answers),
            },
            cores,
            ssd_bytes_per_day,
            cost: Cost {
                memory: parts.memory_bytes / GIB * prices.memory_gib,
                ssd: parts.ssd_bytes / GB * prices.ssd_gb,
                cores: cores * prices.core,
            },
        }
    }
}

/// What an alternative consists of.
struct Parts {
    kind: Kind,
    memory_bytes: f64,
    ssd_bytes: f64,
    /// CPU time of a request.
    cpu_us: f64,
    ssd_bytes_per_request: f64,
}

/// A time that is always the same.
fn one(us: f64) -> Time {
    Time {
        mean_us: us,
        p99_us: us,
    }
}

/// The 99th percentile of answers from memory, SSD and backend, which is that of the slowest that a hundredth of the
/// requests gets.
fn slow_us(answers: &[(f64, Time); 3]) -> f64 {
    let mut sorted = *answers;
    sorted.sort_by(|(_, one), (_, other)| other.p99_us.total_cmp(&one.p99_us));
    let mut slower = 0.0;
    for (share, time) in sorted {
        slower += share;
        if slower >= SLOWEST {
            return time.p99_us;
        }
    }
    0.0
}

/// Records on an SSD that a cache in this memory has room to index.
pub(super) fn indexed_records(memory_bytes: u64) -> f64 {
    memory_bytes as f64 * INDEX_SHARE / INDEX_BYTES
}

/// The cheapest of the alternatives that are enough.
pub(super) fn cheapest(alternatives: &[Alternative]) -> Option<&Alternative> {
    let enough = alternatives.iter().filter(|alternative| alternative.is_enough);
    enough.min_by(|one, other| one.cost.total().total_cmp(&other.cost.total()))
}
