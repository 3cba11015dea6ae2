//! A thread that asks: looks aside, that is, reads, and inserts what it missed; or overwrites.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use hdrhistogram::Histogram;
use leafpress::cache::MAX_KEY_BYTES;
use quanta::Clock;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::Options;
use super::checks::Versions;
use super::engines::Engine;
use super::outcome::Mismatches;
use super::workload::{Place, Request, Workload};
use crate::core::LabError;
use crate::core::keys::{mix, unit};
use crate::core::latency::histogram;

/// Operations between two looks at whether to go on.
const BATCH: i64 = 64;

/// What all threads of a run share.
pub(super) struct Shared<'s> {
    pub(super) options: &'s Options,
    pub(super) workload: &'s Workload,
    pub(super) versions: &'s Versions,
    pub(super) engine: &'s dyn Engine,
    /// Where the warm-up is a filling.
    pub(super) filling: Option<Filling>,
    /// Operations that are left in the stage in progress.
    pub(super) left: AtomicI64,
    /// Ends the stage in progress.
    pub(super) stop: AtomicBool,
    /// What each thread has done so far in the stage.
    pub(super) shown: Vec<Shown>,
}

/// All keys are inserted once, until there are so many bytes of them.
#[derive(Debug)]
pub(super) struct Filling {
    pub(super) enough_bytes: u64,
    pub(super) bytes: AtomicU64,
    pub(super) next: AtomicU64,
}

/// What a thread has done so far, in a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Shown {
    pub(super) hits: AtomicU64,
    pub(super) misses: AtomicU64,
    pub(super) writes: AtomicU64,
}

/// What a thread hands back.
pub(super) struct Finished {
    pub(super) latencies: [Histogram<u64>; 3],
    pub(super) mismatches: Mismatches,
}

/// Kinds of operations that are told apart.
#[derive(Clone, Copy)]
enum Kind {
    Hit,
    Miss,
    Write,
}

/// What a thread needs memory for, which is the process's before a cache is made: what comes later would look like the cache's.
pub(super) struct Scratch {
    /// Of hits, misses and overwrites.
    latencies: [Histogram<u64>; 3],
    /// What a read found, and what is inserted.
    found: Vec<u8>,
    value: Vec<u8>,
}

impl Scratch {
    /// For values up to that length.
    pub(super) fn new(longest_value: usize) -> Result<Self, LabError> {
        let buffer = || {
            let mut buffer = vec![1; longest_value];
            buffer.clear();
            buffer
        };
        Ok(Self {
            latencies: histograms()?,
            found: buffer(),
            value: buffer(),
        })
    }
}

/// Histograms of hits, misses and overwrites, all of whose memory is written to.
pub(super) fn histograms() -> Result<[Histogram<u64>; 3], LabError> {
    let mut all = [histogram()?, histogram()?, histogram()?];
    all.iter_mut().for_each(Histogram::reset);
    Ok(all)
}

/// The thread.
pub(super) struct Worker<'w> {
    shared: &'w Shared<'w>,
    shown: &'w Shown,
    clock: Clock,
    rng: Xoshiro256PlusPlus,
    place: Place,
    scratch: Scratch,
    mismatches: Mismatches,
    key: Vec<u8>,
    counts: [u64; 3],
}

impl<'w> Worker<'w> {
    pub(super) fn new(shared: &'w Shared<'w>, number: usize, clock: Clock, scratch: Scratch) -> Self {
        Self {
            shared,
            shown: &shared.shown[number],
            clock,
            rng: Xoshiro256PlusPlus::seed_from_u64(mix(shared.options.seed ^ mix(number as u64 + 1))),
            place: Place::default(),
            scratch,
            mismatches: Mismatches::default(),
            key: Vec::with_capacity(MAX_KEY_BYTES),
            counts: [0; 3],
        }
    }

    /// Fills the cache, if that is asked for, or asks as ever.
    pub(super) fn warm_up(&mut self) -> Result<(), LabError> {
        let shared = self.shared;
        let Some(filling) = &shared.filling else {
            return self.work();
        };
        while !shared.stop.load(Ordering::Relaxed) && filling.bytes.load(Ordering::Relaxed) < filling.enough_bytes {
            let at = filling.next.fetch_add(1, Ordering::Relaxed);
            if at >= shared.workload.keys() {
                break;
            }
            let id = shared.workload.in_filling_order(at);
            shared.workload.key(id, &mut self.key);
            self.insert(id, 0)?;
            let bytes = self.key.len() + self.scratch.value.len();
            filling.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Asks until the stage is over.
    pub(super) fn work(&mut self) -> Result<(), LabError> {
        let shared = self.shared;
        self.counts = [0; 3];
        while !shared.stop.load(Ordering::Relaxed) {
            let left = shared.left.fetch_sub(BATCH, Ordering::Relaxed);
            if left <= 0 {
                break;
            }
            for _ in 0..BATCH.min(left) {
                let mut request = shared.workload.next(&mut self.rng, &mut self.place);
                request.is_write |=
                    shared.options.write_pct > 0.0 && unit(&mut self.rng) * 100.0 < shared.options.write_pct;
                self.operate(request)?;
            }
            self.show();
        }
        Ok(())
    }

    fn show(&self) {
        let [hits, misses, writes] = self.counts;
        self.shown.hits.store(hits, Ordering::Relaxed);
        self.shown.misses.store(misses, Ordering::Relaxed);
        self.shown.writes.store(writes, Ordering::Relaxed);
    }

    /// What was measured until now is of the warm-up.
    pub(super) fn forget_latencies(&mut self) {
        self.scratch.latencies.iter_mut().for_each(Histogram::reset);
        self.place = Place::default();
    }

    pub(super) fn finish(self) -> Finished {
        Finished {
            latencies: self.scratch.latencies,
            mismatches: self.mismatches,
        }
    }

    fn operate(&mut self, Request { id, is_write }: Request) -> Result<(), LabError> {
        self.shared.workload.key(id, &mut self.key);
        if is_write {
            let version = self.shared.versions.write(id);
            let ticks = self.insert(id, version);
            self.shared.versions.done(id, version);
            self.record(Kind::Write, ticks?);
            return Ok(());
        }
        let before = self.shared.versions.before(id);
        let start = self.clock.raw();
        let found = self.shared.engine.get(&self.key, &mut self.scratch.found);
        let ticks = self.clock.raw().saturating_sub(start);
        if found.map_err(|e| failed("get", id, &e))? {
            self.shared.versions.judge(
                self.shared.workload,
                id,
                before,
                &self.scratch.found,
                &mut self.mismatches,
            );
            self.record(Kind::Hit, ticks);
            return Ok(());
        }
        // Whoever is inserting it already brings what is wanted here.
        let inserted = match self.shared.versions.try_fill(id) {
            Some(version) => {
                let inserted = self.insert(id, version);
                self.shared.versions.done(id, version);
                inserted?
            }
            None => 0,
        };
        self.record(Kind::Miss, ticks + inserted);
        Ok(())
    }

    /// Inserts a version of the key that `self.key` is; what that took, in ticks.
    fn insert(&mut self, id: u64, version: u32) -> Result<u64, LabError> {
        self.shared.workload.fill(id, version, &mut self.scratch.value);
        let start = self.clock.raw();
        let inserted = self.shared.engine.insert(&self.key, &self.scratch.value);
        let ticks = self.clock.raw().saturating_sub(start);
        inserted.map_err(|e| failed("put", id, &e))?;
        Ok(ticks)
    }

    fn record(&mut self, kind: Kind, ticks: u64) {
        self.counts[kind as usize] += 1;
        self.scratch.latencies[kind as usize].saturating_record(self.clock.delta_as_nanos(0, ticks));
    }
}

fn failed(operation: &'static str, id: u64, error: &leafpress::CacheError) -> LabError {
    LabError::Operation {
        operation,
        id,
        reason: error.to_string(),
    }
}
