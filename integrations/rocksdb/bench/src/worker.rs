//! A thread of a benchmark: it chooses keys, reads and writes them, looks at what it got, and measures.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use leafpress_lab::core::keys::{Chooser, below, mix};
use leafpress_lab::core::latency::{Histograms, Kind, Recorder, Sampling};
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

/// Operations between two checks for cancellation.
const LOOK_EVERY: u64 = 256;
/// Maximum number of wrong answers that are reported.
const EXAMPLES: usize = 5;

/// Stages of a run.
pub(crate) const WARMING: u8 = 0;
pub(crate) const MEASURING: u8 = 1;
pub(crate) const OVER: u8 = 2;

/// The state that all threads of a run share.
pub(crate) struct Shared<'r> {
    pub(crate) run: &'r Run,
    pub(crate) values: &'r Values,
    pub(crate) stage: AtomicU8,
    pub(crate) cancel: &'r AtomicBool,
    /// Whether every key must be there.
    pub(crate) complete: bool,
    /// Operations done, for the progress of a run that has no length.
    pub(crate) done: AtomicU64,
    /// The first error that stopped a thread.
    pub(crate) failure: Mutex<Option<BenchError>>,
}

impl Shared<'_> {
    fn fail(&self, error: BenchError) {
        let mut failure = self.failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        failure.get_or_insert(error);
        self.stage.store(OVER, Ordering::Relaxed);
    }
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
    pub(crate) histograms: Option<Histograms>,
}

/// A worker thread.
pub(crate) struct Worker<'r> {
    shared: &'r Shared<'r>,
    instance: &'r Instance<'r>,
    random: Xoshiro256PlusPlus,
    key: Key,
    read_options: ReadOptions,
    write_options: WriteOptions,
    recorder: Option<Recorder>,
    tally: Tally,
}

impl<'r> Worker<'r> {
    /// Thread `number` of all instances' threads.
    pub(crate) fn new(shared: &'r Shared<'r>, instance: &'r Instance<'r>, number: usize) -> Self {
        let run = shared.run;
        let mut read_options = ReadOptions::default();
        read_options.set_verify_checksums(run.tuning.verify_checksum);
        let mut write_options = WriteOptions::default();
        write_options.disable_wal(run.tuning.disable_wal);
        write_options.set_sync(run.tuning.sync);
        // Each benchmark has its own, as in db_bench: what is read must not follow what was written.
        let seed = mix(run.shape.seed ^ mix(1 + run.workload as u64)).wrapping_add(number as u64);
        Self {
            shared,
            instance,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            key: Key::new(run.shape.key_bytes),
            read_options,
            write_options,
            recorder: None,
            tally: Tally {
                operations: 0,
                reads: 0,
                found: 0,
                writes: 0,
                scans: 0,
                scanned: 0,
                user_bytes: 0,
                mismatches: 0,
                examples: Vec::new(),
                histograms: None,
            },
        }
    }

    /// Works until the run is over, or this thread has done its part. `limit` is the operations of this thread; `None`
    /// has no end.
    pub(crate) fn work(mut self, limit: Option<u64>) -> Tally {
        if let Err(error) = self.until_over(limit) {
            self.shared.fail(error);
        }
        self.tally.histograms = self.recorder.map(Recorder::finish);
        self.tally
    }

    fn until_over(&mut self, limit: Option<u64>) -> Result<(), BenchError> {
        let workload = self.shared.run.workload;
        if workload == Workload::FillSeq {
            return self.fill();
        }
        if workload == Workload::ReadSeq {
            return self.read_all();
        }
        let read_pct = self.shared.run.work.read_pct;
        let mut turn = 0;
        loop {
            if !self.is_running(turn)? || limit.is_some_and(|limit| turn >= limit) {
                return Ok(());
            }
            let percent = below(self.random.next_u64(), 100);
            let operation = workload.next(turn, percent, read_pct);
            turn += 1;
            match operation {
                Operation::Read => {
                    let number = self.instance.chooser.read(&mut self.random);
                    self.read(number)?;
                }
                Operation::Write => {
                    let number = self.instance.chooser.write(&mut self.random);
                    self.write(number)?;
                }
                Operation::Scan => self.scan()?,
                Operation::ReadModifyWrite => {
                    let number = self.instance.chooser.read(&mut self.random);
                    self.read(number)?;
                    self.write(number)?;
                    // One operation, as YCSB counts it.
                    self.tally.operations -= u64::from(self.recorder.is_some());
                }
                Operation::Insert => self.write(self.instance.next_insert.fetch_add(1, Ordering::Relaxed))?,
            }
            if let Some(recorder) = &mut self.recorder {
                recorder.flush();
            }
        }
    }

    /// Returns whether the run continues. The measured time begins for this thread when it first sees the stage.
    #[inline]
    fn is_running(&mut self, turn: u64) -> Result<bool, BenchError> {
        match self.shared.stage.load(Ordering::Relaxed) {
            OVER => return Ok(false),
            MEASURING if self.recorder.is_none() => {
                let histograms = Histograms::new()?;
                self.recorder = Some(Recorder::new(Clock::new(), histograms, Sampling::All));
            }
            _ => {}
        }
        if turn.is_multiple_of(LOOK_EVERY) {
            if self.shared.cancel.load(Ordering::Relaxed) {
                self.shared.stage.store(OVER, Ordering::Relaxed);
                return Ok(false);
            }
            self.shared.done.fetch_add(LOOK_EVERY, Ordering::Relaxed);
        }
        Ok(true)
    }

    fn start(&mut self) -> Option<u64> {
        self.recorder.as_mut().and_then(Recorder::start)
    }

    fn end(&mut self, kind: Kind, start: Option<u64>) {
        if let Some(recorder) = &mut self.recorder {
            recorder.end(kind, start);
            recorder.interrupt();
        }
    }

    fn read(&mut self, number: u64) -> Result<(), BenchError> {
        let key = self.key.encode(number);
        let start = self.recorder.as_mut().and_then(Recorder::start);
        let value = self.instance.database.get_pinned_opt(key, &self.read_options);
        self.end(Kind::Read, start);
        let value = value.with_operation(|| format!("get of key {number}"))?;
        let value = value.as_deref();
        let wrong = self.judge(number, value);
        if self.recorder.is_some() {
            self.tally.operations += 1;
            self.tally.reads += 1;
            if let Some(value) = value {
                self.tally.found += 1;
                self.tally.user_bytes += (self.key.len() + value.len()) as u64;
            }
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
        let start = self.recorder.as_mut().and_then(Recorder::start);
        let put = self.instance.database.put_opt(key, value, &self.write_options);
        self.end(Kind::Write, start);
        put.with_operation(|| format!("put of key {number}"))?;
        if self.recorder.is_some() {
            self.tally.operations += 1;
            self.tally.writes += 1;
            self.tally.user_bytes += (shape.key_bytes + shape.value_bytes) as u64;
        }
        Ok(())
    }

    fn scan(&mut self) -> Result<(), BenchError> {
        let number = self.instance.chooser.read(&mut self.random);
        let steps = match self.shared.run.workload {
            Workload::YcsbE => below(self.random.next_u64(), MAX_YCSB_SCAN),
            _ => self.shared.run.work.seek_nexts,
        };
        let key = self.key.encode(number);
        let start = self.recorder.as_mut().and_then(Recorder::start);
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
        if self.recorder.is_some() {
            self.tally.operations += 1;
            self.tally.scans += 1;
            self.tally.scanned += records;
            self.tally.user_bytes += bytes;
        }
        if let Some(wrong) = wrong {
            self.accuse(wrong);
        }
        Ok(())
    }

    /// Every key once, ascending, in batches.
    fn fill(&mut self) -> Result<(), BenchError> {
        let shape = &self.shared.run.shape;
        let per_batch = self.shared.run.work.batch;
        let mut number = 0;
        while number < shape.num && self.is_running(0)? {
            let mut batch = WriteBatch::default();
            let end = shape.num.min(number + per_batch);
            for number in number..end {
                batch.put(
                    self.key.encode(number),
                    self.shared.values.loaded(self.instance.first_piece, number),
                );
            }
            let start = self.start();
            let written = self.instance.database.write_opt(batch, &self.write_options);
            self.end(Kind::Write, start);
            written.with_operation(|| format!("put of key {number}"))?;
            let count = end - number;
            number = end;
            self.tally.operations += count;
            self.tally.writes += count;
            self.tally.user_bytes += count * (shape.key_bytes + shape.value_bytes) as u64;
            self.shared
                .done
                .fetch_add(count.saturating_sub(LOOK_EVERY), Ordering::Relaxed);
            if let Some(recorder) = &mut self.recorder {
                recorder.flush();
            }
        }
        Ok(())
    }

    /// All keys in order.
    fn read_all(&mut self) -> Result<(), BenchError> {
        let mut read_options = ReadOptions::default();
        read_options.set_verify_checksums(self.shared.run.tuning.verify_checksum);
        let database = self.instance.database;
        let mut iterator = database.raw_iterator_opt(read_options);
        iterator.seek_to_first();
        let mut number = 0;
        while let Some((key, value)) = iterator.item() {
            if !self.is_running(number)? {
                return Ok(());
            }
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
