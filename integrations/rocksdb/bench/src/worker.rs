//! A thread of a benchmark: it chooses keys, reads and writes them, looks at what it got, and measures.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use leafpress_lab::core::keys::{Chooser, below, mix};
use leafpress_lab::core::latency::{Histograms, Kind, Recorder, Sampling};
use leafpress_lab::driver::Target;
use quanta::Clock;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rocksdb::{DB, ReadOptions, WriteBatch, WriteOptions};

use crate::error::WithOperation;
use crate::key::Key;
use crate::options::Run;
use crate::values::Values;
use crate::workload::{MAX_YCSB_SCAN, Operation};
use crate::{BenchError, Workload};

/// Operations that a thread does before it adds them to all threads'.
const SHOWN_EVERY: u64 = 256;
/// Maximum number of wrong answers that are reported.
const EXAMPLES: usize = 5;

/// The state that all threads of a run share.
pub(crate) struct Shared<'r> {
    pub(crate) run: &'r Run,
    pub(crate) values: &'r Values,
    /// Operations, or keys of a fill, after which a thread has done its part.
    pub(crate) limit: u64,
    /// Whether every key must be there.
    pub(crate) complete: bool,
    /// Operations done, for the progress of a run that has no length.
    pub(crate) done: AtomicU64,
}

/// A database and what its threads share.
pub(crate) struct Instance<'r> {
    pub(crate) database: &'r DB,
    /// The piece of data that key 0 holds.
    pub(crate) first_piece: u64,
    pub(crate) chooser: Chooser,
    /// The next key to insert.
    pub(crate) next_insert: AtomicU64,
}

/// The counts of a thread in the measured time.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) operations: u64,
    pub(crate) reads: u64,
    pub(crate) found: u64,
    pub(crate) writes: u64,
    pub(crate) scans: u64,
    pub(crate) scanned: u64,
    pub(crate) user_bytes: u64,
    pub(crate) mismatches: u64,
    pub(crate) examples: Vec<String>,
}

/// A worker thread.
pub(crate) struct Worker<'r> {
    shared: &'r Shared<'r>,
    instance: &'r Instance<'r>,
    random: Xoshiro256PlusPlus,
    key: Key,
    read_options: ReadOptions,
    write_options: WriteOptions,
    recorder: Recorder,
    tally: Tally,
    /// Operations done, with those of the warm-up; in a fill, keys.
    turn: u64,
}

impl Target<BenchError> for Worker<'_> {
    type Done = (Tally, Histograms);

    #[inline]
    fn step(&mut self, stop: &AtomicBool) -> Result<bool, BenchError> {
        match self.shared.run.workload {
            Workload::FillSeq => self.fill()?,
            Workload::ReadSeq => return self.read_all(stop).map(|()| false),
            workload => self.operate(workload)?,
        }
        self.recorder.flush();
        Ok(self.turn < self.shared.limit)
    }

    fn begin(&mut self) {
        // Wrong answers of the warm-up count.
        self.tally = Tally {
            mismatches: self.tally.mismatches,
            examples: std::mem::take(&mut self.tally.examples),
            ..Tally::default()
        };
        self.recorder.set_sampling(Sampling::All);
    }

    fn finish(self) -> Self::Done {
        (self.tally, self.recorder.finish())
    }
}

impl<'r> Worker<'r> {
    /// Thread `number` of all instances' threads, not measuring yet.
    pub(crate) fn new(shared: &'r Shared<'r>, instance: &'r Instance<'r>, number: usize) -> Result<Self, BenchError> {
        let run = shared.run;
        let mut read_options = ReadOptions::default();
        read_options.set_verify_checksums(run.tuning.verify_checksum);
        let mut write_options = WriteOptions::default();
        write_options.disable_wal(run.tuning.disable_wal);
        write_options.set_sync(run.tuning.sync);
        // Each benchmark has its own, as in db_bench: what is read must not follow what was written.
        let seed = mix(run.shape.seed ^ mix(1 + run.workload as u64)).wrapping_add(number as u64);
        Ok(Self {
            shared,
            instance,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            key: Key::new(run.shape.key_bytes),
            read_options,
            write_options,
            recorder: Recorder::new(Clock::new(), Histograms::new()?, Sampling::Off),
            tally: Tally::default(),
            turn: 0,
        })
    }

    /// The next operation of a workload that mixes them.
    fn operate(&mut self, workload: Workload) -> Result<(), BenchError> {
        self.show(self.turn);
        let percent = below(self.random.next_u64(), 100);
        let operation = workload.next(self.turn, percent, self.shared.run.work.read_pct);
        self.turn += 1;
        match operation {
            Operation::Read => {
                let number = self.instance.chooser.read(&mut self.random);
                self.read(number)
            }
            Operation::Write => {
                let number = self.instance.chooser.write(&mut self.random);
                self.write(number)
            }
            Operation::Scan => self.scan(),
            Operation::ReadModifyWrite => {
                let number = self.instance.chooser.read(&mut self.random);
                self.read(number)?;
                self.write(number)?;
                // One operation, as YCSB counts it.
                self.tally.operations -= 1;
                Ok(())
            }
            Operation::Insert => self.write(self.instance.next_insert.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// Shows the operations before `turn` to the driving thread, every so often.
    fn show(&self, turn: u64) {
        if turn.is_multiple_of(SHOWN_EVERY) {
            self.shared.done.fetch_add(SHOWN_EVERY, Ordering::Relaxed);
        }
    }

    fn end(&mut self, kind: Kind, start: Option<u64>) {
        self.recorder.end(kind, start);
        self.recorder.interrupt();
    }

    fn read(&mut self, number: u64) -> Result<(), BenchError> {
        let key = self.key.encode(number);
        let start = self.recorder.start();
        let value = self.instance.database.get_pinned_opt(key, &self.read_options);
        self.end(Kind::Read, start);
        let value = value.with_operation(|| format!("get of key {number}"))?;
        let value = value.as_deref();
        let wrong = self.judge(number, value);
        self.tally.operations += 1;
        self.tally.reads += 1;
        if let Some(value) = value {
            self.tally.found += 1;
            self.tally.user_bytes += (self.key.len() + value.len()) as u64;
        }
        if let Some(wrong) = wrong {
            self.accuse(wrong);
        }
        Ok(())
    }

    /// Returns the fault of an answer, if there is one.
    fn judge(&self, number: u64, value: Option<&[u8]>) -> Option<String> {
        let shape = &self.shared.run.shape;
        match value {
            None if self.shared.complete && number < shape.num => Some(format!("key {number} is missing")),
            Some(value) if value.len() != shape.value_bytes => Some(format!(
                "key {number} has {} bytes instead of {}",
                value.len(),
                shape.value_bytes
            )),
            Some(value)
                if self.shared.run.work.verify
                    && !self.shared.values.can_be(self.instance.first_piece, number, value) =>
            {
                Some(format!("key {number} has another value than it can have"))
            }
            _ => None,
        }
    }

    /// Counts a wrong answer, in the warm-up too.
    fn accuse(&mut self, what: String) {
        self.tally.mismatches += 1;
        if self.tally.examples.len() < EXAMPLES {
            self.tally.examples.push(what);
        }
    }

    fn write(&mut self, number: u64) -> Result<(), BenchError> {
        let random = self.random.next_u64();
        let shape = &self.shared.run.shape;
        let value = self.shared.values.update(number, random);
        let key = self.key.encode(number);
        let start = self.recorder.start();
        let put = self.instance.database.put_opt(key, value, &self.write_options);
        self.end(Kind::Write, start);
        put.with_operation(|| format!("put of key {number}"))?;
        self.tally.operations += 1;
        self.tally.writes += 1;
        self.tally.user_bytes += (shape.key_bytes + shape.value_bytes) as u64;
        Ok(())
    }

    fn scan(&mut self) -> Result<(), BenchError> {
        let number = self.instance.chooser.read(&mut self.random);
        let steps = match self.shared.run.workload {
            Workload::YcsbE => below(self.random.next_u64(), MAX_YCSB_SCAN),
            _ => self.shared.run.work.seek_nexts,
        };
        let key = self.key.encode(number);
        let start = self.recorder.start();
        let mut read_options = ReadOptions::default();
        read_options.set_verify_checksums(self.shared.run.tuning.verify_checksum);
        let mut iterator = self.instance.database.raw_iterator_opt(read_options);
        iterator.seek(key);
        let at_key = iterator.key() == Some(key);
        let (mut records, mut bytes, mut wrong) = (0, 0, None);
        while let Some((key, value)) = iterator.item() {
            records += 1;
            bytes += (key.len() + value.len()) as u64;
            if value.len() != self.shared.run.shape.value_bytes {
                wrong = Some(format!("a record behind key {number} has {} bytes", value.len()));
            }
            if records > steps {
                break;
            }
            iterator.next();
        }
        let status = iterator.status();
        drop(iterator);
        self.end(Kind::Scan, start);
        status.with_operation(|| format!("seek to key {number}"))?;
        if !at_key && self.shared.complete {
            wrong = Some(format!("key {number} is missing"));
        }
        self.tally.operations += 1;
        self.tally.scans += 1;
        self.tally.scanned += records;
        self.tally.user_bytes += bytes;
        if let Some(wrong) = wrong {
            self.accuse(wrong);
        }
        Ok(())
    }

    /// The next batch of every key once, ascending.
    fn fill(&mut self) -> Result<(), BenchError> {
        let shape = &self.shared.run.shape;
        let first = self.turn;
        self.turn = shape.num.min(first + self.shared.run.work.batch);
        let mut batch = WriteBatch::default();
        for number in first..self.turn {
            batch.put(
                self.key.encode(number),
                self.shared.values.loaded(self.instance.first_piece, number),
            );
        }
        let start = self.recorder.start();
        let written = self.instance.database.write_opt(batch, &self.write_options);
        self.end(Kind::Write, start);
        written.with_operation(|| format!("put of key {first}"))?;
        let count = self.turn - first;
        self.tally.operations += count;
        self.tally.writes += count;
        self.tally.user_bytes += count * (shape.key_bytes + shape.value_bytes) as u64;
        self.shared.done.fetch_add(count, Ordering::Relaxed);
        Ok(())
    }

    /// All keys in order.
    fn read_all(&mut self, stop: &AtomicBool) -> Result<(), BenchError> {
        let mut read_options = ReadOptions::default();
        read_options.set_verify_checksums(self.shared.run.tuning.verify_checksum);
        let database = self.instance.database;
        let mut iterator = database.raw_iterator_opt(read_options);
        iterator.seek_to_first();
        let mut number = 0;
        while let Some((key, value)) = iterator.item() {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            self.show(number);
            let bytes = (key.len() + value.len()) as u64;
            let wrong = if self.shared.complete && key != self.key.encode(number) {
                Some(format!("key {number} is not where it must be"))
            } else if self.shared.complete {
                self.judge(number, Some(value))
            } else {
                None
            };
            number += 1;
            self.tally.operations += 1;
            self.tally.scanned += 1;
            self.tally.user_bytes += bytes;
            if let Some(wrong) = wrong {
                self.accuse(wrong);
            }
            iterator.next();
        }
        iterator.status().with_operation(|| "scan of all keys".into())?;
        if self.shared.complete && number < self.shared.run.shape.num {
            self.accuse(format!(
                "the last {} keys are missing",
                self.shared.run.shape.num - number
            ));
        }
        Ok(())
    }
}
