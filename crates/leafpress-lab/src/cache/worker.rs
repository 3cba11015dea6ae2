//! A client thread: reads look-aside, that is, inserts missed keys; or overwrites, or removes.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use hdrhistogram::Histogram;
use leafpress::cache::MAX_KEY_BYTES;
use quanta::Clock;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::Options;
use super::checks::Versions;
use super::engines::Engine;
use super::outcome::{Milestone, Mismatches};
use super::workload::{Action, Place, Request, Workload};
use crate::core::LabError;
use crate::core::keys::{mix, unit};
use crate::core::latency::histogram;
use crate::driver::{Arrivals, Pace, Target};
use crate::harness::timeline::{Moment, Timeline};

/// Operations between checks for cancellation.
const BATCH: i64 = 64;

/// State shared by all threads of a run.
pub(super) struct Shared<'s> {
    pub(super) options: &'s Options,
    pub(super) workload: &'s Workload,
    pub(super) versions: &'s Versions,
    pub(super) engine: &'s dyn Engine,
    /// Where the warm-up is a filling.
    pub(super) filling: Option<Filling>,
    /// Operations that are left in the stage in progress.
    pub(super) left: AtomicI64,
    /// Progress of each thread in the stage.
    pub(super) shown: Vec<Shown>,
}

impl Shared<'_> {
    /// Progress of a load, 0 to 1.
    pub(super) fn loaded(&self) -> Option<f64> {
        let filling = self.filling.as_ref().filter(|filling| filling.is_load)?;
        let of = |part: &AtomicU64, all: u64| part.load(Ordering::Relaxed) as f64 / all.max(1) as f64;
        let keys = of(&filling.next, self.workload.keys());
        Some(keys.max(of(&filling.bytes, filling.enough_bytes)).min(1.0))
    }
}

/// All keys are inserted once, up to this many bytes.
#[derive(Debug)]
pub(super) struct Filling {
    pub(super) enough_bytes: u64,
    pub(super) bytes: AtomicU64,
    pub(super) next: AtomicU64,
    /// Whether the warm-up continues with its operations after the fill.
    pub(super) is_load: bool,
}

/// Progress of a thread, in its own cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Shown {
    pub(super) hits: AtomicU64,
    pub(super) misses: AtomicU64,
    pub(super) writes: AtomicU64,
    pub(super) removes: AtomicU64,
}

impl Shown {
    /// All of them, in the order of [`Kind`].
    pub(super) fn counts(&self) -> [&AtomicU64; COUNTED] {
        [&self.hits, &self.misses, &self.writes, &self.removes]
    }
}

/// Results of a thread.
pub(super) struct Finished {
    pub(super) latencies: Latencies,
    pub(super) mismatches: Mismatches,
    /// Of the paper's objects of several lengths: what reads took of each.
    pub(super) by_kind: Vec<Histogram<u64>>,
    /// Mean times of reads around a move of the hot keys.
    pub(super) timeline: Vec<Moment>,
    /// Requests that were due but not begun at the end.
    pub(super) backlog: u64,
    /// Hits by operations of the measured stage.
    pub(super) milestones: Vec<Milestone>,
}

/// Kinds of operations.
#[derive(Clone, Copy)]
enum Kind {
    Hit,
    Miss,
    Write,
    Remove,
}

/// How many kinds are counted.
pub(super) const COUNTED: usize = 4;
/// Index of the histogram of queueing delays, with a rate.
const WAIT: usize = COUNTED;
/// Of hits, misses, overwrites, removals, and waiting.
pub(super) type Latencies = [Histogram<u64>; COUNTED + 1];

/// A thread's buffers, allocated before a cache is created: later allocations would count as the cache's.
pub(super) struct Scratch {
    latencies: Latencies,
    /// Of the paper's objects of several lengths: what reads took of each.
    by_kind: Vec<Histogram<u64>>,
    /// Where the hot keys move.
    timeline: Option<Timeline>,
    /// Hits by operations of the measured stage.
    milestones: Vec<Milestone>,
    /// Result of a read, and what is inserted.
    found: Vec<u8>,
    value: Vec<u8>,
}

impl Scratch {
    /// For a thread of a run.
    pub(super) fn new(options: &Options, workload: &Workload) -> Result<Self, LabError> {
        let buffer = || {
            let mut buffer = vec![1; workload.longest_value()];
            buffer.clear();
            buffer
        };
        Ok(Self {
            latencies: histograms()?,
            by_kind: by_kind(workload)?,
            timeline: options.shift_at.map(|at| Timeline::new(at, options.threads)),
            milestones: milestones(),
            found: buffer(),
            value: buffer(),
        })
    }
}

/// Histograms, all of whose memory is written to.
pub(super) fn histograms() -> Result<Latencies, LabError> {
    let mut all = [histogram()?, histogram()?, histogram()?, histogram()?, histogram()?];
    all.iter_mut().for_each(Histogram::reset);
    Ok(all)
}

/// A histogram per length of the paper's objects, if there are several.
pub(super) fn by_kind(workload: &Workload) -> Result<Vec<Histogram<u64>>, LabError> {
    let kinds = workload.kinds();
    let mut all = (0..kinds)
        .filter(|_| kinds > 1)
        .map(|_| histogram())
        .collect::<Result<Vec<_>, _>>()?;
    all.iter_mut().for_each(Histogram::reset);
    Ok(all)
}

/// Room for the milestones of some 10^12 operations, all of which is written to.
fn milestones() -> Vec<Milestone> {
    let mut milestones = vec![
        Milestone {
            operations: 1,
            ..Milestone::default()
        };
        128
    ];
    milestones.clear();
    milestones
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
    counts: [u64; COUNTED],
    number: usize,
    /// Reads of the current interval around a move of the hot set, and their total latency in nanoseconds.
    stretch: (u64, u64),
    /// Whether the thread still fills the cache.
    is_filling: bool,
    /// Whether the measured stage has begun.
    is_measuring: bool,
    /// The operations of this thread at which the next milestone is taken.
    next_milestone: u64,
    /// Where requests come at a rate.
    pace: Option<Pace>,
    /// The clock at the end of the last call of the cache.
    ended: u64,
}

impl Target for Worker<'_> {
    type Done = Finished;

    fn step(&mut self, stop: &AtomicBool) -> Result<bool, LabError> {
        let shared = self.shared;
        if let Some(filling) = shared.filling.as_ref().filter(|_| self.is_filling) {
            return self.fill_some(filling, stop);
        }
        // A thread that waits for requests must not take the remaining ones from others.
        let batch = if self.pace.is_some() { 1 } else { BATCH };
        let left = shared.left.fetch_sub(batch, Ordering::Relaxed);
        if left <= 0 {
            return Ok(false);
        }
        for _ in 0..batch.min(left) {
            let mut request = shared.workload.next(&mut self.rng, &mut self.place);
            if shared.options.write_pct > 0.0 && unit(&mut self.rng) * 100.0 < shared.options.write_pct {
                request.action = Action::Write;
            }
            shared.workload.key(request.id, &mut self.key);
            if !self.await_turn(stop) {
                return Ok(false);
            }
            self.operate(request)?;
            self.advance_timeline();
            if let Some(pace) = &mut self.pace {
                pace.advance();
            }
        }
        self.show();
        self.pass_milestone();
        Ok(true)
    }

    /// From here on requests arrive at the rate, if there is one.
    fn begin(&mut self) {
        self.is_measuring = true;
        self.is_filling = false;
        self.counts = [0; COUNTED];
        self.stretch = (0, 0);
        let Scratch { latencies, by_kind, .. } = &mut self.scratch;
        latencies.iter_mut().chain(by_kind).for_each(Histogram::reset);
        self.place.rewind();
        let options = self.shared.options;
        self.pace = options.rate.map(|rate| {
            let seed = mix(options.seed ^ mix(0x7061_6365 + self.number as u64));
            Pace::new(self.clock.clone(), Arrivals::poisson(rate, options.threads, seed))
        });
    }

    fn finish(self) -> Finished {
        Finished {
            latencies: self.scratch.latencies,
            by_kind: self.scratch.by_kind,
            timeline: self.scratch.timeline.map_or_else(Vec::new, Timeline::finish),
            milestones: self.scratch.milestones,
            mismatches: self.mismatches,
            backlog: self.pace.map_or(0, |pace| pace.backlog()),
        }
    }
}

impl<'w> Worker<'w> {
    pub(super) fn new(shared: &'w Shared<'w>, number: usize, clock: Clock, scratch: Scratch) -> Self {
        Self {
            shared,
            shown: &shared.shown[number],
            clock,
            rng: Xoshiro256PlusPlus::seed_from_u64(mix(shared.options.seed ^ mix(number as u64 + 1))),
            place: Place::new(number),
            scratch,
            mismatches: Mismatches::default(),
            key: Vec::with_capacity(MAX_KEY_BYTES),
            counts: [0; COUNTED],
            number,
            stretch: (0, 0),
            is_filling: shared.filling.is_some(),
            is_measuring: false,
            next_milestone: Milestone::FIRST,
            pace: None,
            ended: 0,
        }
    }

    /// Inserts the next keys of a filling; returns false if the warm-up is over with it.
    fn fill_some(&mut self, filling: &Filling, stop: &AtomicBool) -> Result<bool, LabError> {
        let workload = self.shared.workload;
        while !stop.load(Ordering::Relaxed) && filling.bytes.load(Ordering::Relaxed) < filling.enough_bytes {
            let at = filling.next.fetch_add(1, Ordering::Relaxed);
            if at >= workload.keys() {
                break;
            }
            let id = workload.in_filling_order(at);
            workload.key(id, &mut self.key);
            self.insert(id, 0)?;
            let bytes = self.key.len() + self.scratch.value.len();
            filling.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        }
        self.is_filling = false;
        Ok(filling.is_load)
    }

    /// Notes the hits where every run does, if that many operations are done.
    #[inline]
    fn pass_milestone(&mut self) {
        let [hits, misses, writes, removes] = self.counts;
        let operations = hits + misses + writes + removes;
        if operations != self.next_milestone || !self.is_measuring {
            return;
        }
        self.next_milestone = Milestone::after(operations);
        let milestones = &mut self.scratch.milestones;
        // Beyond its room it would be memory that looks like the cache's.
        if milestones.len() < milestones.capacity() {
            milestones.push(Milestone {
                operations,
                hits,
                misses,
            });
        }
    }

    fn show(&self) {
        for (shown, count) in self.shown.counts().into_iter().zip(self.counts) {
            shown.store(count, Ordering::Relaxed);
        }
    }

    /// Waits until the next request is due, where they come at a rate; false when the stage was over first.
    fn await_turn(&mut self, stop: &AtomicBool) -> bool {
        let Some(pace) = &self.pace else {
            return true;
        };
        if !pace.wait(stop) {
            return false;
        }
        self.scratch.latencies[WAIT].saturating_record(pace.since_due(self.clock.raw()));
        true
    }

    /// Executes the requested operation on the key `self.key`.
    fn operate(&mut self, request: Request) -> Result<(), LabError> {
        let id = request.id;
        match request.action {
            Action::Write => {
                let ticks = self.write(request)?;
                self.record(Kind::Write, ticks);
            }
            Action::Remove => {
                let version = self.shared.versions.write(id);
                let start = self.clock.raw();
                let removed = self.shared.engine.remove(&self.key);
                let ticks = self.ticks_since(start);
                self.shared.versions.done(id, version);
                removed.map_err(|e| failed("delete", id, &e))?;
                self.record(Kind::Remove, ticks);
            }
            Action::Update => {
                let (found, mut ticks) = self.read(request)?;
                if found {
                    ticks += self.write(request)?;
                }
                self.record(Kind::Write, ticks);
            }
            Action::Read | Action::Look | Action::Add => {
                let (found, mut ticks) = self.read(request)?;
                if !found && request.action != Action::Look {
                    ticks += self.fill(request)?;
                }
                let kind = match (request.action, found) {
                    (Action::Add, _) => Kind::Write,
                    (_, true) => Kind::Hit,
                    (_, false) => Kind::Miss,
                };
                let ns = self.record(kind, ticks);
                if request.action != Action::Add {
                    self.record_read(
                        id,
                        if found {
                            ns
                        } else {
                            ns + self.shared.options.charge_ns()
                        },
                    );
                }
            }
        }
        Ok(())
    }

    /// Records a read's latency, with the backend's time for a miss: by length, and in the interval.
    #[inline]
    fn record_read(&mut self, id: u64, ns: u64) {
        self.stretch.0 += 1;
        self.stretch.1 += ns;
        if !self.scratch.by_kind.is_empty() {
            self.scratch.by_kind[self.shared.workload.kind(id)].saturating_record(ns);
        }
    }

    /// An operation is done: the stretch may be over, and the hot keys may move.
    #[inline]
    fn advance_timeline(&mut self) {
        let Some(timeline) = self.scratch.timeline.as_mut().filter(|_| self.is_measuring) else {
            return;
        };
        let due = timeline.advance(1);
        if due.moment {
            let (reads, ns) = std::mem::take(&mut self.stretch);
            timeline.push(ns as f64 / reads.max(1) as f64, 0);
        }
        if due.move_hot_keys {
            self.place.move_hot_keys();
        }
    }

    /// Reads and verifies a value; returns whether it was found, and the latency in ticks.
    fn read(&mut self, Request { id, is_lone, .. }: Request) -> Result<(bool, u64), LabError> {
        let before = (!is_lone).then(|| self.shared.versions.before(id));
        let start = self.clock.raw();
        let found = self.shared.engine.get(&self.key, &mut self.scratch.found);
        let ticks = self.ticks_since(start);
        let found = found.map_err(|e| failed("get", id, &e))?;
        if found {
            let Shared { versions, workload, .. } = self.shared;
            let value = &self.scratch.found;
            match before {
                Some(before) => versions.judge(workload, id, before, value, &mut self.mismatches),
                None => Versions::unasked(id, &mut self.mismatches),
            }
        }
        Ok((found, ticks))
    }

    /// Inserts what the backend has of a key that was not there.
    fn fill(&mut self, Request { id, is_lone, .. }: Request) -> Result<u64, LabError> {
        if is_lone {
            return self.insert(id, 0);
        }
        // The thread inserting it provides the wanted value.
        let Some(version) = self.shared.versions.try_fill(id) else {
            return Ok(0);
        };
        let inserted = self.insert(id, version);
        self.shared.versions.done(id, version);
        inserted
    }

    /// Overwrites with a new version.
    fn write(&mut self, Request { id, is_lone, .. }: Request) -> Result<u64, LabError> {
        if is_lone {
            return self.insert(id, 0);
        }
        let version = self.shared.versions.write(id);
        let inserted = self.insert(id, version);
        self.shared.versions.done(id, version);
        inserted
    }

    /// Inserts a version of the key `self.key`; returns the latency in ticks.
    fn insert(&mut self, id: u64, version: u32) -> Result<u64, LabError> {
        self.shared.workload.fill(id, version, &mut self.scratch.value);
        let start = self.clock.raw();
        let inserted = self.shared.engine.insert(&self.key, &self.scratch.value);
        let ticks = self.ticks_since(start);
        inserted.map_err(|e| failed("put", id, &e))?;
        Ok(ticks)
    }

    /// Records the latency of a call that just ended.
    fn ticks_since(&mut self, start: u64) -> u64 {
        self.ended = self.clock.raw();
        self.ended.saturating_sub(start)
    }

    /// Counts an operation whose calls took these ticks. For one with an intended start, the time from then to the end
    /// of its last call counts. Returns it in nanoseconds.
    fn record(&mut self, kind: Kind, ticks: u64) -> u64 {
        let ns = match &self.pace {
            Some(pace) => pace.since_due(self.ended),
            None => self.clock.delta_as_nanos(0, ticks),
        };
        self.counts[kind as usize] += 1;
        self.scratch.latencies[kind as usize].saturating_record(ns);
        ns
    }
}

fn failed(operation: &'static str, id: u64, error: &leafpress::CacheError) -> LabError {
    LabError::Operation {
        operation,
        id,
        reason: error.to_string(),
    }
}
