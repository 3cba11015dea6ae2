//! One thread of a run.
//!
//! Operations are made a batch at a time: what is done, the key, and the value lie ready before the first of them
//! starts, so that making them is in no latency. The end of an operation is the start of the next where nothing lies
//! between: one reading of the clock each.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use quanta::Clock;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::distribution::IdChooser;
use super::keys::readable;
use super::load::{Attached, MIN_VALUE_BUFFER};
use super::mix::Mix;
use super::outcome::OPERATIONS;
use super::recorder::{Pending, Recorder};
use super::scan::ScanCheck;
use super::values::Values;
use super::{Counts, Index, IndexError, KeyFormat, Operation, Options};
use crate::core::LabError;
use crate::core::keys::{Distribution, below, mix};
use crate::driver::{Arrivals, Pace, Target};

/// Operations of a batch, fewer when values are long.
const BATCH: usize = 32;
/// Bytes of a batch's values.
const BATCH_VALUE_BYTES: usize = 64 << 10;
/// Operations between two looks at how many ids the other threads have inserted.
const LOOK_EVERY: u64 = 1024;
/// A thread's progress, visible to others. Only the thread itself writes it.
#[repr(align(128))]
#[derive(Debug, Default)]
pub(super) struct Shown {
    /// Operations done.
    pub completed: AtomicU64,
    /// Inserts done: ids below are in the index.
    inserted: AtomicU64,
}

/// Shared state of a run's threads, read-only except for each thread's own [`Shown`].
pub(super) struct Shared<'r> {
    pub options: &'r Options,
    pub index: &'r dyn Index,
    pub format: &'r KeyFormat,
    pub values: &'r Values,
    pub mix: &'r Mix,
    pub distribution: Distribution,
    pub shown: Vec<Shown>,
}

#[derive(Debug, Clone, Copy)]
struct Planned {
    operation: Operation,
    id: u64,
    key_len: usize,
    value_len: usize,
    scan_size: usize,
    measured: bool,
    /// Known once it is done.
    succeeded: bool,
}

/// Which operations are measured.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Sampled {
    None,
    All,
    /// Those whose random number is below this.
    Below(u64),
}

/// Activity of a thread.
#[derive(Debug, Clone)]
pub(super) struct Done {
    pub counts: [Counts; 6],
    pub scanned_records: u64,
    pub scans: ScanCheck,
}

impl Done {
    fn new(shared: &Shared<'_>) -> Self {
        Self {
            counts: [Counts::default(); 6],
            scanned_records: 0,
            scans: ScanCheck::new(shared.options, shared.index.key_order()),
        }
    }
}

/// Results of a thread.
pub(super) struct Finished {
    /// The clock at the start and the end of the run.
    pub start: u64,
    pub end: u64,
    pub done: Done,
    pub recorder: Option<Recorder>,
}

/// One thread of a run.
pub(super) struct Worker<'r> {
    shared: &'r Shared<'r>,
    thread: usize,
    /// Chooses operations, ids and values; measuring does not touch it, so that what is done does not depend on it.
    rng: Xoshiro256PlusPlus,
    sampling_rng: Xoshiro256PlusPlus,
    sampled: Sampled,
    ids: IdChooser,
    /// Inserts of every thread that are known to be done.
    inserted: Vec<u64>,
    /// The least of them.
    inserted_by_all: u64,
    /// Operations between checks for other threads' inserts.
    look_in: u64,
    batch: usize,
    planned: Vec<Planned>,
    keys: Vec<u8>,
    values: Vec<u8>,
    value_out: Vec<u8>,
    records_out: Vec<u8>,
    clock: Clock,
    /// The clock at the start of the stage; `None` before it.
    origin: Option<u64>,
    /// Where operations have intended starts.
    pace: Option<Pace>,
    is_measuring: bool,
    /// Operations of the stage that are done, and those that are left.
    completed: u64,
    left: u64,
    done: Done,
    recorder: Option<Recorder>,
    /// Detaches the thread from the index in the end.
    _attached: Attached<'r>,
}

impl Target for Worker<'_> {
    type Done = Finished;

    #[inline]
    fn step(&mut self, stop: &AtomicBool) -> Result<bool, LabError> {
        if self.origin.is_none() {
            self.start();
        }
        let size = usize::try_from(self.left).unwrap_or(usize::MAX).min(self.batch);
        self.plan(size);
        if let Some(recorder) = self.recorder.as_mut() {
            recorder.make_room(size);
        }
        self.left -= size as u64;
        let done = self.run_batch(stop);
        let done = done.map_err(|e| self.shared.options.input.error(e.to_string()))?;
        for planned in &self.planned[..done] {
            let counts = &mut self.done.counts[planned.operation as usize];
            counts.completed += 1;
            counts.succeeded += u64::from(planned.succeeded);
        }
        self.completed += done as u64;
        Ok(self.left > 0)
    }

    /// Forgets what was done; what was inserted stays.
    fn begin(&mut self) {
        self.done = Done::new(self.shared);
        self.completed = 0;
        self.left = self.shared.options.operations_of(self.thread).unwrap_or(u64::MAX);
        self.shared.shown[self.thread].completed.store(0, Ordering::Relaxed);
        self.is_measuring = true;
        self.start();
    }

    fn finish(self) -> Finished {
        let end = self.clock.raw();
        Finished {
            start: self.origin.unwrap_or(end),
            end,
            done: self.done,
            recorder: self.recorder,
        }
    }
}

impl<'r> Worker<'r> {
    pub(super) fn new(
        shared: &'r Shared<'r>,
        thread: usize,
        clock: Clock,
        recorder: Option<Recorder>,
        attached: Attached<'r>,
    ) -> Self {
        let options = shared.options;
        // Streams 2^128 numbers apart (Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2021).
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(options.seed);
        let mut sampling_rng = Xoshiro256PlusPlus::seed_from_u64(mix(!options.seed));
        for _ in 0..thread {
            rng.jump();
            sampling_rng.jump();
        }
        let longest = shared.values.longest().max(1);
        let batch = (BATCH_VALUE_BYTES / longest).clamp(1, BATCH);
        let key_bytes = shared.format.key_bytes();
        Self {
            thread,
            rng,
            sampling_rng,
            sampled: match options.latency_sampling {
                share if share >= 1.0 => Sampled::All,
                share if share > 0.0 => Sampled::Below((share * 2_f64.powi(64)) as u64),
                _ => Sampled::None,
            },
            ids: IdChooser::new(shared.distribution, options.records),
            inserted: vec![0; options.threads],
            inserted_by_all: 0,
            look_in: 0,
            batch,
            planned: Vec::with_capacity(batch),
            keys: shared.format.blank().repeat(batch),
            values: vec![0; batch * longest],
            value_out: vec![0; longest.max(MIN_VALUE_BUFFER)],
            records_out: Vec::with_capacity((key_bytes + longest) * options.scan_size.min(1 << 12)),
            clock,
            origin: None,
            pace: None,
            is_measuring: false,
            completed: 0,
            left: u64::MAX,
            done: Done::new(shared),
            recorder,
            _attached: attached,
            shared,
        }
    }

    /// A stage starts now.
    fn start(&mut self) {
        let options = self.shared.options;
        self.pace = options
            .rate
            .map(|rate| Pace::new(self.clock.clone(), Arrivals::even(rate, options.threads, self.thread)));
        let origin = self.pace.as_ref().map_or_else(|| self.clock.raw(), Pace::began);
        self.origin = Some(origin);
        if let Some(recorder) = &mut self.recorder {
            recorder.start(origin);
        }
    }

    /// Executes the plan, unless the run is stopped; returns the number of operations done.
    ///
    /// On some processors a reading of the clock waits for everything before it and holds up everything behind it, so
    /// that whatever the loop does itself is in the time of each operation: nothing is computed or looked up here that
    /// could be before or after.
    fn run_batch(&mut self, stop: &AtomicBool) -> Result<usize, IndexError> {
        let Self {
            shared,
            thread,
            planned,
            keys,
            values,
            value_out,
            records_out,
            clock,
            done,
            inserted,
            pace,
            recorder,
            completed,
            ..
        } = self;
        let (index, completed) = (shared.index, *completed);
        let shown = &shared.shown[*thread];
        let inserted = &mut inserted[*thread];
        let check_scans = index.stores();
        let keys = keys.chunks_exact(shared.format.key_bytes());
        let values = values.chunks_exact(shared.values.longest().max(1));
        // The end of the previous operation, if nothing came in between.
        let mut last_end = None;
        for (at, ((planned, key), value)) in planned.iter_mut().zip(keys).zip(values).enumerate() {
            let (key, value) = (&key[..planned.key_len], &value[..planned.value_len]);
            let mut intended = 0;
            if let Some(pace) = pace {
                intended = pace.due_ns();
                last_end = None;
                if !pace.wait(stop) {
                    return Ok(at);
                }
                pace.advance();
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(at);
            }
            let start = planned.measured.then(|| last_end.unwrap_or_else(|| clock.raw()));
            let mut scanned = 0;
            let result = match planned.operation {
                Operation::Read => index.find(key, value_out),
                Operation::Insert => index.insert(key, value),
                Operation::Update => index.update(key, value),
                Operation::Remove => index.remove(key),
                Operation::ReadModifyWrite => index
                    .find(key, value_out)
                    .and_then(|found| Ok(found && index.update(key, value)?)),
                Operation::Scan => index.scan(key, planned.scan_size, records_out).map(|records| {
                    scanned = records;
                    records > 0
                }),
            };
            last_end = start.map(|start| {
                let end = clock.raw();
                if let Some(recorder) = recorder.as_mut() {
                    recorder.push(Pending {
                        operation: planned.operation,
                        start,
                        end,
                        intended,
                    });
                }
                end
            });
            planned.succeeded = result.map_err(|e| failed(*planned, key, &e))?;
            match planned.operation {
                Operation::Insert => {
                    *inserted += 1;
                    // A thread that sees the number sees the key in the index.
                    shown.inserted.store(*inserted, Ordering::Release);
                }
                Operation::Scan => {
                    done.scanned_records += scanned as u64;
                    if check_scans {
                        done.scans.check(key, planned.scan_size, scanned, records_out);
                        last_end = None;
                    }
                }
                _ => {}
            }
            // Only this thread writes it: a plain store on most machines.
            shown.completed.store(completed + at as u64 + 1, Ordering::Relaxed);
        }
        Ok(self.planned.len())
    }

    /// Chooses the next `size` operations, their ids and values.
    fn plan(&mut self, size: usize) {
        let shared = self.shared;
        let inserts = shared.options.ratios.insert > 0.0;
        if inserts {
            self.look_at_inserts(size as u64);
        }
        let key_bytes = shared.format.key_bytes();
        let longest = shared.values.longest().max(1);
        let mut new_ids = self.inserted[self.thread];
        self.planned.clear();
        for at in 0..size {
            let operation = shared.mix.draw(&mut self.rng);
            let id = if operation == Operation::Insert {
                let id = self.id_of_insert(self.thread, new_ids);
                new_ids += 1;
                id
            } else {
                self.existing_id()
            };
            let key_len = shared
                .format
                .fill(id, &mut self.keys[at * key_bytes..(at + 1) * key_bytes]);
            let mut value_len = 0;
            if matches!(
                operation,
                Operation::Insert | Operation::Update | Operation::ReadModifyWrite
            ) {
                let random = self.rng.next_u64();
                let value = shared.values.written(operation, id, random);
                value_len = value.len();
                self.values[at * longest..at * longest + value_len].copy_from_slice(value);
            }
            let scan_size = match shared.options.scan_size {
                most if operation == Operation::Scan && shared.options.scan_size_varies => {
                    1 + below(self.rng.next_u64(), most as u64) as usize
                }
                size => size,
            };
            let measured = self.is_measuring
                && match self.sampled {
                    Sampled::None => false,
                    Sampled::All => true,
                    Sampled::Below(bound) => self.sampling_rng.next_u64() < bound,
                };
            self.planned.push(Planned {
                operation,
                id,
                key_len,
                value_len,
                scan_size,
                measured,
                succeeded: false,
            });
        }
    }

    /// The id of a thread's insert number `number`: those after the loaded ones, dealt out in turn, so that no two
    /// threads have one.
    #[inline]
    fn id_of_insert(&self, thread: usize, number: u64) -> u64 {
        let options = self.shared.options;
        1 + options.records + number * options.threads as u64 + thread as u64
    }

    /// Adds ids inserted meanwhile to those that can be drawn.
    fn look_at_inserts(&mut self, operations: u64) {
        if self.inserted.len() > 1 {
            if self.look_in == 0 {
                self.look_in = LOOK_EVERY;
                for (known, shown) in self.inserted.iter_mut().zip(&self.shared.shown) {
                    *known = shown.inserted.load(Ordering::Acquire);
                }
            }
            self.look_in = self.look_in.saturating_sub(operations);
        }
        self.inserted_by_all = self.inserted.iter().copied().min().unwrap_or(0);
        self.ids
            .grow(self.shared.options.records + self.inserted.iter().sum::<u64>());
    }

    /// Draws an id that is in the index, unless it was removed. 0, which no key has, while there is none.
    #[inline]
    fn existing_id(&mut self) -> u64 {
        if self.ids.ids() == 0 {
            return 0;
        }
        let drawn = self.ids.draw(&mut self.rng);
        let records = self.shared.options.records;
        if drawn <= records {
            return drawn;
        }
        self.inserted_id(drawn - records - 1)
    }

    /// The id of the `number`-th insert of those known: first the rounds that every thread has done, then what some did
    /// more.
    fn inserted_id(&self, number: u64) -> u64 {
        let threads = self.inserted.len() as u64;
        let in_rounds = self.inserted_by_all * threads;
        if number < in_rounds {
            return self.id_of_insert((number % threads) as usize, number / threads);
        }
        let mut rest = number - in_rounds;
        for (thread, inserted) in self.inserted.iter().enumerate() {
            let more = inserted - self.inserted_by_all;
            if rest < more {
                return self.id_of_insert(thread, self.inserted_by_all + rest);
            }
            rest -= more;
        }
        // Not reached: numbers are below the sum of `inserted`.
        self.shared.options.records
    }
}

#[cold]
fn failed(planned: Planned, key: &[u8], error: &IndexError) -> IndexError {
    let name = OPERATIONS[planned.operation as usize].name().to_lowercase();
    IndexError::new(format!("{name} of key {} (id {}): {error}", readable(key), planned.id))
}

#[cfg(test)]
#[path = "worker_tests.rs"]
mod tests;
