//! The share of the memory that holds uncompressed copies of the most read records.
//!
//! A copy makes every hit of its record cheaper, and takes the room of compressed records, so that more reads miss. The
//! adaptive share weighs both, for each byte, by what it measures:
//!
//! - **What copies save.** The reads of the less read half of the copies, times the difference between a hit in a leaf
//!   and one of a copy, over the bytes of that half. This is the marginal utility of the share, as in the partitioning
//!   of caches by utility (Qureshi and Patt, MICRO 2006).
//! - **What room is worth.** The misses of keys that the ghost queue still knows, times the cost of a miss, over the
//!   bytes that those keys' records would take. That is what more room for records would save.
//!
//! While the first exceeds the second the share grows by a quarter, and in the opposite case it shrinks. The share
//! never falls below a 64th, which the most read records of any skewed work repay, and which keeps the comparison
//! possible.

use std::fmt;
use std::time::{Duration, Instant};

use super::counters::Count;
use super::inner::CacheInner;
use crate::mean_time::MeanTime;
use crate::tree::cache_hooks::MemoryWorth;
use leafpress_base::raw_share::RawShare;
use leafpress_base::sync::Mutex;

/// Largest share that may be set, in per cent: each copied record keeps its compressed form.
pub(super) const MAX_RAW_PERCENT: u8 = 75;
/// The adaptive share is between these fractions of the memory.
const MIN_FRACTION: f64 = 1.0 / 64.0;
const MAX_FRACTION: f64 = 0.5;
/// Factor by which the adaptive share changes at a time.
const STEP: f64 = 1.25;
/// The share changes if one side exceeds the other by this factor.
const HYSTERESIS: f64 = 1.2;
/// Reads between two decisions: at least these, and these for each copy.
const MIN_PERIOD_READS: u64 = 32 << 10;
const PERIOD_READS_OF_COPY: u64 = 64;
/// The ghost queue tells what room is worth once it knows this fraction (1/8) as many keys as there are records. Before
/// that the share grows only while there are hardly more records (1/64) than at the last decision, and where this
/// fraction (1/4) of the memory stays free.
const KNOWN_DIVISOR: u64 = 8;
const FILLED_DIVISOR: u64 = 64;
const FREE_DIVISOR: u64 = 4;
/// Bytes of a copy before any was seen.
const USUAL_COPY_BYTES: u64 = 256;
/// The assumed cost of a miss where none was measured or set: a read from a database on the same network. Too high an
/// assumption costs little: a hit takes a microsecond longer. Too low a one makes more reads miss.
const USUAL_MISS_NS: f64 = 100_000.0;

/// The assumed per cent of the reads that are no more misses with 1% more records, and the records written for each
/// read: usual values of skewed reads. The ghost queue shows them only once the cache is full and its codec chosen.
const USUAL_MISSES_FOR_BYTES: f64 = 0.07;
const USUAL_WRITES_PER_READ: f64 = 0.25;

/// Returns what memory and writes are worth to the choice of the codec where a miss costs this.
fn memory_worth(miss_ns: f64) -> MemoryWorth {
    MemoryWorth {
        memory_ns: USUAL_MISSES_FOR_BYTES * miss_ns,
        writes_per_read: USUAL_WRITES_PER_READ,
    }
}

/// The share, and its adaptation.
pub(super) struct RawCopies {
    share: RawShare,
    miss_cost: Option<Duration>,
    state: Mutex<CopiesState>,
}

/// State kept between decisions.
struct CopiesState {
    fraction: f64,
    /// Cumulative counts at the last decision.
    reads: u64,
    copy_hits: u64,
    returned: u64,
    records: u64,
    copy_time: MeanTime,
    leaf_time: MeanTime,
    load_time: MeanTime,
    copy_bytes: u64,
    decided: Option<Decided>,
}

impl CopiesState {
    fn bytes_of(&self, memory_bytes: u64) -> u64 {
        (memory_bytes as f64 * self.fraction) as u64
    }
}

/// What a decision was based on.
#[derive(Clone, Copy)]
struct Decided {
    /// Percentage of the reads that a copy answered.
    copies_pct: f64,
    copy_ns: f64,
    leaf_ns: f64,
    miss_ns: f64,
    is_miss_measured: bool,
}

/// What the copies and the room for other records are worth: nanoseconds saved per read and byte.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Worth {
    copies: f64,
    room: f64,
}

impl Worth {
    /// Returns the factor by which the share changes.
    fn step(self) -> f64 {
        if self.copies > self.room * HYSTERESIS {
            STEP
        } else if self.room > self.copies * HYSTERESIS {
            1.0 / STEP
        } else {
            1.0
        }
    }
}

impl RawCopies {
    pub(super) fn new(share: RawShare, miss_cost: Option<Duration>) -> Self {
        let fraction = match share {
            RawShare::Fixed { raw_percent } => f64::from(raw_percent) / 100.0,
            RawShare::Adaptive => MIN_FRACTION,
        };
        Self {
            share,
            miss_cost,
            state: Mutex::new(CopiesState {
                fraction,
                reads: 0,
                copy_hits: 0,
                returned: 0,
                records: 0,
                copy_time: MeanTime::default(),
                leaf_time: MeanTime::default(),
                load_time: MeanTime::default(),
                copy_bytes: USUAL_COPY_BYTES,
                decided: None,
            }),
        }
    }

    /// Returns a share of nothing.
    pub(super) fn off() -> Self {
        Self::new(RawShare::Fixed { raw_percent: 0 }, None)
    }

    /// Returns whether no record is ever copied.
    pub(super) fn is_off(&self) -> bool {
        self.share == RawShare::Fixed { raw_percent: 0 }
    }

    /// Returns the bytes of the share, of a memory of these bytes.
    pub(super) fn bytes_of(&self, memory_bytes: u64) -> u64 {
        self.state.lock().bytes_of(memory_bytes)
    }

    /// Explains the share, in words; empty if there is nothing to explain.
    pub(super) fn reason(&self) -> String {
        let state = self.state.lock();
        let percent = state.fraction * 100.0;
        state.decided.map_or_else(String::new, |decided| {
            format!("{percent:.1}% of the memory for uncompressed copies, {decided}")
        })
    }
}

impl fmt::Display for Decided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "which answer {:.0}% of the reads in {:.0} ns instead of {:.0} ns, where a miss {} {:.1} us",
            self.copies_pct,
            self.copy_ns,
            self.leaf_ns,
            if self.is_miss_measured {
                "costs"
            } else {
                "is assumed to cost"
            },
            self.miss_ns / 1e3,
        )
    }
}

impl CacheInner {
    /// Sets the room for copies at the start, where the share is fixed; an adaptive one begins with the reads. Sets
    /// what memory is worth to the choice of the codec, by the cost of a miss that is given or assumed.
    pub(super) fn begin_raw_copies(&self) {
        let miss_ns = self.raw_copies.miss_cost.map(|cost| cost.as_nanos() as f64);
        self.tree.set_worth(memory_worth(miss_ns.unwrap_or(USUAL_MISS_NS)));
        if let RawShare::Fixed { .. } = self.raw_copies.share {
            self.fit_raw_copies();
        }
    }

    /// Fits the room for copies to the share and the memory.
    pub(super) fn fit_raw_copies(&self) {
        if self.raw_copies.is_off() {
            return;
        }
        let (bytes, copy_bytes) = {
            let state = self.raw_copies.state.lock();
            (state.bytes_of(self.budget.memory_bytes()), state.copy_bytes)
        };
        // Without memory for a larger table the old one is kept.
        let _ = self.tree.set_hot_budget(bytes, bytes / copy_bytes);
    }

    /// Decides about the share once there were enough reads since the last decision.
    pub(super) fn adapt_raw_share(&self) {
        if self.raw_copies.is_off() {
            return;
        }
        let reads = [Count::MemoryHits, Count::DiskHits, Count::Misses].map(|count| self.counters.sum(count));
        let reads: u64 = reads.iter().sum();
        let copies = self.tree.hot_records();
        let wanted = MIN_PERIOD_READS.max(copies * PERIOD_READS_OF_COPY);
        let (Some(mut state), Some(evicting)) = (self.raw_copies.state.try_lock(), self.evicting.try_lock()) else {
            return;
        };
        let period = reads.saturating_sub(state.reads);
        if period < wanted {
            return;
        }
        let (returned, known) = (evicting.memory.returned, evicting.memory.ghost.known_keys());
        drop(evicting);
        let Ok(survey) = self.tree.survey_hot() else { return };
        let memory = self.budget.memory_bytes();
        let share = state.bytes_of(memory);
        let copy_hits = self.tree.hot_hits();
        let came_back = returned - state.returned;
        let hits = copy_hits.saturating_sub(state.copy_hits);
        (state.reads, state.returned, state.copy_hits) = (reads, returned, copy_hits);
        let [copy_times, leaf_times] = self.tree.read_times();
        state.copy_time.look(copy_times);
        state.leaf_time.look(leaf_times);
        state
            .load_time
            .look([Count::Loads, Count::LoadNs].map(|count| self.counters.sum(count)));
        if let Some(bytes) = survey.mean_bytes {
            state.copy_bytes = bytes.max(1);
        }
        if let (Some(copy_ns), Some(leaf_ns)) = (state.copy_time.ns(), state.leaf_time.ns()) {
            let measured = self.raw_copies.miss_cost.map(|cost| cost.as_nanos() as f64);
            let measured = measured.or(state.load_time.ns());
            let miss_ns = measured.unwrap_or(USUAL_MISS_NS);
            let records = self.tree.len().max(1) as u64;
            let record_bytes = self.tree.node_bytes().saturating_sub(survey.held_bytes) as f64 / records as f64;
            let per_byte = |events: u64, ns: f64, bytes: f64| {
                if bytes > 0.0 {
                    events as f64 * ns.max(0.0) / period as f64 / bytes
                } else {
                    0.0
                }
            };
            let worth = Worth {
                copies: per_byte(survey.least_reads, leaf_ns - copy_ns, survey.least_bytes as f64),
                room: per_byte(came_back, miss_ns, known as f64 * record_bytes),
            };
            let step = worth.step();
            // Few keys in the ghost queue do not tell yet what room is worth. Until they do, the share grows only in a
            // cache that is not being filled and has much room.
            let is_known = known as u64 * KNOWN_DIVISOR >= records;
            let is_filled = records > state.records + state.records / FILLED_DIVISOR;
            let has_room = || self.excess(share + memory / FREE_DIVISOR) == 0;
            if measured.is_some() {
                self.tree.set_worth(memory_worth(miss_ns));
            }
            let may_grow = survey.held_bytes * 8 >= share * 7 && (is_known || !is_filled && has_room());
            state.records = records;
            if self.raw_copies.share == RawShare::Adaptive && (step < 1.0 || may_grow) {
                state.fraction = (state.fraction * step).clamp(MIN_FRACTION, MAX_FRACTION);
            }
            state.decided = Some(Decided {
                copies_pct: 100.0 * hits as f64 / period as f64,
                copy_ns,
                leaf_ns,
                miss_ns,
                is_miss_measured: measured.is_some(),
            });
        }
        let grown = state.bytes_of(memory).saturating_sub(share);
        drop(state);
        self.fit_raw_copies();
        // Copies are made without an insertion that would evict.
        self.make_room_for(grown);
        self.measure_if(self.budget.note_written(survey.held_bytes / 4));
    }

    /// Calls `load`, and counts the time that it takes.
    pub(super) fn timed_load<R>(&self, load: impl FnOnce() -> R) -> R {
        let began = Instant::now();
        let loaded = load();
        self.note_load(began);
        loaded
    }

    /// Counts a load that began at this time and has ended.
    pub(super) fn note_load(&self, began: Instant) {
        self.counters.add(Count::Loads, 1);
        let ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX >> 16);
        self.counters.add(Count::LoadNs, ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_moves_to_what_is_worth_more() {
        let step = |copies, room| Worth { copies, room }.step();
        assert_eq!(step(2.0, 1.0), STEP);
        assert_eq!(step(1.0, 2.0), 1.0 / STEP);
        assert_eq!(step(1.1, 1.0), 1.0);
        assert_eq!(step(0.0, 0.0), 1.0);
    }
}
