//! One thread of the timed window.

use std::sync::atomic::AtomicBool;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

use super::{LabError, Shared, sampling};
use crate::core::keys::{Chooser, KeyBytes, below};
use crate::core::latency::{Histograms, Kind, Recorder, Sampling};
use crate::driver::Target;
use crate::eval::options::MAX_READS_PER_CALL;
use crate::eval::workload::{Operation, Workload};
use crate::harness::oracle::{Mutation, prefetch};
use crate::harness::timeline::{Moment, Timeline};

/// Operations done.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Counts {
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) deletes: u64,
    pub(super) scans: u64,
    pub(super) scanned_records: u64,
}

impl Counts {
    pub(super) fn add(&mut self, other: &Self) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.deletes += other.deletes;
        self.scans += other.scans;
        self.scanned_records += other.scanned_records;
    }
}

/// Operations that are planned, executed, and checked as a batch: at least a call's.
const BATCH: usize = 8;
/// Where values are longer than this, in bytes, a batch is one operation, so that its buffers stay small.
const MAX_BATCHED_VALUE_BYTES: usize = 16 << 10;

/// A completed read to check.
#[derive(Debug, Clone, Copy, Default)]
struct ReadDone {
    id: u64,
    floor: u32,
    found: bool,
}

/// One thread of the timed window, with all it needs allocated.
///
/// Operations go in batches: choosing keys comes before, checking values after, so that reads follow each other
/// directly, as they would in a program that has other things to do than to check, and one reading of the clock ends
/// one and starts the next.
pub(super) struct Worker<'r> {
    shared: &'r Shared<'r>,
    chooser: Chooser,
    rng: Xoshiro256PlusPlus,
    recorder: Recorder,
    counts: Counts,
    batch: usize,
    batches: u32,
    /// The next batch.
    plan: Vec<(Operation, u64)>,
    /// Room for the one after it.
    spare: Vec<(Operation, u64)>,
    /// Reads per call.
    reads_per_call: usize,
    keys: KeyBytes,
    /// The keys of a call's reads.
    call_keys: Vec<KeyBytes>,
    /// A second buffer, to decode keys while the first holds a scan's start.
    decoder: KeyBytes,
    /// The values that a batch's reads got.
    values: [Vec<u8>; MAX_READS_PER_CALL],
    reads: [ReadDone; MAX_READS_PER_CALL],
    /// Floors of the keys a scan is about to pass.
    floors: Vec<u32>,
    /// Random numbers of the measured time.
    timed_rng: Xoshiro256PlusPlus,
    /// Whether this thread asks what the store holds.
    reads_held_bytes: bool,
    /// Where the hot keys move.
    timeline: Option<Timeline>,
}

/// Results of a thread.
pub(super) struct Done {
    pub(super) counts: Counts,
    pub(super) histograms: Histograms,
    pub(super) timeline: Option<Vec<Moment>>,
}

pub(super) fn failed(operation: &'static str, id: u64, error: &leafpress::TreeError) -> LabError {
    LabError::Operation {
        operation,
        id,
        reason: error.to_string(),
    }
}

impl Target for Worker<'_> {
    type Done = Done;

    #[inline]
    fn step(&mut self, _: &AtomicBool) -> Result<bool, LabError> {
        self.batch()?;
        Ok(true)
    }

    fn begin(&mut self) {
        let spec = self.shared.spec;
        self.recorder.set_sampling(sampling(spec));
        self.rng = self.timed_rng.clone();
        self.counts = Counts::default();
        self.batches = 0;
        // The batch that was chosen for the warm-up.
        self.plan.clear();
        self.timeline = (spec.workload == Workload::HotSet).then(|| Timeline::new(spec.base.shift_at, spec.threads));
    }

    fn finish(self) -> Done {
        Done {
            counts: self.counts,
            histograms: self.recorder.finish(),
            timeline: self.timeline.map(Timeline::finish),
        }
    }
}

impl<'r> Worker<'r> {
    /// Thread number `thread`, not measuring yet. `rngs` are for the warm-up and for the measured time.
    pub(super) fn new(
        shared: &'r Shared<'r>,
        chooser: Chooser,
        [rng, timed_rng]: [Xoshiro256PlusPlus; 2],
        mut recorder: Recorder,
        thread: usize,
    ) -> Self {
        recorder.set_sampling(Sampling::Off);
        let longest = shared.ledger.corpus().longest();
        let reads_per_call = shared.spec.base.reads_per_call.clamp(1, MAX_READS_PER_CALL);
        let batch = if longest > MAX_BATCHED_VALUE_BYTES || reads_per_call > BATCH {
            reads_per_call
        } else {
            BATCH - BATCH % reads_per_call
        };
        let call_keys = if reads_per_call == 1 { 0 } else { reads_per_call };
        Self {
            shared,
            chooser,
            rng,
            recorder,
            counts: Counts::default(),
            batch,
            batches: 0,
            plan: Vec::with_capacity(batch),
            spare: Vec::with_capacity(batch),
            reads_per_call,
            keys: shared.key_bytes(),
            call_keys: (0..call_keys).map(|_| shared.key_bytes()).collect(),
            decoder: shared.key_bytes(),
            values: std::array::from_fn(|slot| Vec::with_capacity(if slot < batch { longest } else { 0 })),
            reads: [ReadDone::default(); MAX_READS_PER_CALL],
            floors: Vec::with_capacity(shared.spec.base.scan_records),
            timed_rng,
            reads_held_bytes: thread == 0,
            timeline: None,
        }
    }

    /// Whether the values that batch number `batch` reads are checked.
    fn is_checked(&self, batch: u32) -> bool {
        batch.is_multiple_of(self.shared.spec.check_one_in.max(1))
    }

    /// Chooses the next batch, and asks for its keys' states.
    fn choose(&mut self) {
        let checked = self.is_checked(self.batches);
        self.plan.clear();
        for _ in 0..self.batch {
            let operation = self.shared.spec.workload.pick(below(self.rng.next_u64(), 100) as u32);
            let id = match operation {
                Operation::Mutate => self.chooser.write(&mut self.rng),
                Operation::Read | Operation::Scan => self.chooser.read(&mut self.rng),
            };
            if checked || matches!(operation, Operation::Mutate) {
                self.shared.ledger.prefetch_state(id);
            }
            if let Some(key) = self.keys.place(id) {
                prefetch(key.as_ptr());
            }
            self.plan.push((operation, id));
        }
    }

    fn batch(&mut self) -> Result<(), LabError> {
        if self.plan.is_empty() {
            self.choose();
        }
        let checked = self.is_checked(self.batches);
        self.batches = self.batches.wrapping_add(1);
        let plan = std::mem::replace(&mut self.plan, std::mem::take(&mut self.spare));
        // Data of puts and checks is prefetched, so that the harness does not add its own cache misses to
        // the tree's. Its address follows from the keys' states, prefetched a batch ago.
        for &(operation, id) in &plan {
            let mutates = matches!(operation, Operation::Mutate);
            if checked || mutates {
                self.shared.ledger.prefetch_value(id, mutates);
            }
        }
        self.choose();
        let mut reads = 0;
        let mut rest = plan.as_slice();
        while let Some((&(operation, id), behind)) = rest.split_first() {
            rest = behind;
            match operation {
                Operation::Read if self.reads_per_call > 1 => {
                    let more = behind.iter().take(self.reads_per_call - 1);
                    let more = more.take_while(|(next, _)| matches!(next, Operation::Read)).count();
                    rest = &behind[more..];
                    let ids = std::iter::once(id).chain(behind[..more].iter().map(|&(_, id)| id));
                    self.read_many(ids, reads, checked)?;
                    reads += 1 + more;
                }
                Operation::Read => {
                    self.read(id, reads, checked)?;
                    reads += 1;
                }
                Operation::Mutate => self.mutate(id)?,
                Operation::Scan => self.scan(id)?,
            }
        }
        self.recorder.flush();
        self.counts.reads += reads as u64;
        self.advance(plan.len() as u64);
        self.spare = plan;
        let to_check = if checked { reads } else { 0 };
        for (done, value) in self.reads[..to_check].iter().zip(&self.values) {
            let answer = done.found.then_some(value.as_slice());
            if !self.shared.ledger.allows(done.id, done.floor, answer) {
                self.shared.mismatches.add_read("read", done.id, answer);
            }
        }
        Ok(())
    }

    /// This many operations were done.
    fn advance(&mut self, operations: u64) {
        let Some(timeline) = &mut self.timeline else {
            return;
        };
        let due = timeline.advance(operations);
        if due.moment {
            let held = if self.reads_held_bytes {
                self.shared.store.stats().bytes_held
            } else {
                0
            };
            timeline.push(self.recorder.take_mean_ns().unwrap_or(0.0), held);
        }
        if due.move_hot_keys {
            self.chooser.move_hot_keys();
        }
    }

    #[inline]
    fn read(&mut self, id: u64, slot: usize, checked: bool) -> Result<(), LabError> {
        let key = self.keys.encode(id);
        let floor = if checked { self.shared.ledger.floor(id) } else { 0 };
        let start = self.recorder.start();
        let found = self
            .shared
            .store
            .get_into(key, &mut self.values[slot])
            .map_err(|e| failed("get", id, &e))?;
        self.recorder.end(Kind::Read, start);
        self.reads[slot] = ReadDone { id, floor, found };
        Ok(())
    }

    /// Reads these keys in one call, into the slots from `first` on.
    fn read_many(&mut self, ids: impl Iterator<Item = u64>, first: usize, checked: bool) -> Result<(), LabError> {
        let mut keys = [&[][..]; MAX_READS_PER_CALL];
        let mut count = 0;
        for ((id, bytes), key) in ids.zip(&mut self.call_keys).zip(&mut keys) {
            *key = bytes.encode(id);
            let floor = if checked { self.shared.ledger.floor(id) } else { 0 };
            self.reads[first + count] = ReadDone {
                id,
                floor,
                found: false,
            };
            count += 1;
        }
        let mut found = [false; MAX_READS_PER_CALL];
        let values = &mut self.values[first..first + count];
        let start = self.recorder.start();
        self.shared
            .store
            .get_many_into(&keys[..count], values, &mut found[..count])
            .map_err(|e| failed("get", self.reads[first].id, &e))?;
        self.recorder.end_all(Kind::Read, start, count);
        for (done, found) in self.reads[first..first + count].iter_mut().zip(found) {
            done.found = found;
        }
        Ok(())
    }

    #[inline]
    fn mutate(&mut self, id: u64) -> Result<(), LabError> {
        let key = self.keys.encode(id);
        let ticket = self.shared.ledger.issue(id);
        let mutation = self.shared.ledger.mutation_of(ticket);
        self.recorder.interrupt();
        let start = self.recorder.start();
        let was_there = match mutation {
            Mutation::Put(value) => {
                let new = self.shared.store.put(key, value).map_err(|e| failed("put", id, &e))?;
                self.recorder.end(Kind::Write, start);
                self.counts.writes += 1;
                !new
            }
            Mutation::Delete => {
                let was_there = self.shared.store.remove(key).map_err(|e| failed("remove", id, &e))?;
                self.recorder.end(Kind::Delete, start);
                self.counts.deletes += 1;
                was_there
            }
        };
        if !self.shared.ledger.settle(ticket, was_there) {
            self.shared.mismatches.add(|| {
                let (what, state) = match mutation {
                    Mutation::Put(_) => ("put", if was_there { "there" } else { "absent" }),
                    Mutation::Delete => ("remove", if was_there { "there" } else { "absent" }),
                };
                format!("{what}: key {id} was reported as {state}, which is impossible")
            });
        }
        self.recorder.interrupt();
        Ok(())
    }

    fn scan(&mut self, first: u64) -> Result<(), LabError> {
        let Self {
            shared,
            keys,
            decoder,
            floors,
            ..
        } = self;
        let limit = shared.spec.base.scan_records;
        let end = (first + limit as u64).min(shared.ledger.keys());
        floors.clear();
        floors.extend((first..end).map(|id| shared.ledger.floor(id)));
        // Every key from `expected` on is still to come; those passed over must have been absent.
        let mut expected = first;
        let mut records = 0;
        let passed = |ids: std::ops::Range<u64>| {
            for id in ids {
                if !shared.ledger.allows(id, floors[(id - first) as usize], None) {
                    shared.mismatches.add_read("scan", id, None);
                }
            }
        };
        self.recorder.interrupt();
        let start = self.recorder.start();
        let scanned = shared.store.scan(keys.encode(first), limit, &mut |key, value| {
            records += 1;
            let Some(id) = decoder.decode(key, expected).filter(|&id| id >= expected) else {
                shared
                    .mismatches
                    .add(|| format!("scan: key {} out of order or unknown", key.escape_ascii()));
                return;
            };
            // With deletes, a scan passes keys whose floors were not taken; those are not checked.
            passed(expected..id.min(end));
            if id < end && !shared.ledger.allows(id, floors[(id - first) as usize], Some(value)) {
                shared.mismatches.add_read("scan", id, Some(value));
            }
            expected = id + 1;
        });
        self.recorder.end(Kind::Scan, start);
        scanned.map_err(|e| failed("scan", first, &e))?;
        if records < limit {
            passed(expected.min(end)..end);
        }
        self.recorder.interrupt();
        self.counts.scans += 1;
        self.counts.scanned_records += records as u64;
        Ok(())
    }
}
