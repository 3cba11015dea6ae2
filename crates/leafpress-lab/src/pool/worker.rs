//! A thread that asks for pages in rounds, as Tyche's workers do: it gets a few pages and holds them, then perhaps
//! updates all of them or deletes some, and lets go.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use leafpress::store::{PageId, PageStore};
use leafpress_pages::PagePool;
use leafpress_pages::pool::{PageGuard, PoolError};
use quanta::Clock;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::Options;
use super::ledger::{Ledger, Version, stamp};
use super::outcome::Work;
use crate::core::LabError;
use crate::core::keys::{Chooser, below, mix, unit};
use crate::core::latency::{Histograms, Kind, Recorder, Sampling};
use crate::driver::Target;

/// A worker's counts, visible from outside while it works.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Shown {
    pub(super) acquisitions: AtomicU64,
}

/// State shared by all workers.
pub(super) struct Shared<'r> {
    pub options: &'r Options,
    pub pool: &'r PagePool,
    /// The pages as they were at the start.
    pub origin: &'r dyn PageStore,
    pub ledger: &'r Ledger,
    /// How pages are chosen, before and after the hot ones change.
    pub choosers: [Chooser; 2],
    pub switched: AtomicBool,
    pub shown: Vec<Shown>,
}

/// Results of a worker.
pub(super) struct Finished {
    pub end: Instant,
    pub work: Work,
    /// Pages compared before the measured time.
    pub warmup_checked: u64,
    pub latencies: Histograms,
}

/// A page of the round in progress.
struct Pinned<'r> {
    page: PageId,
    guard: PageGuard<'r>,
    /// The completed version at the time of the request.
    done: Version,
}

/// A worker.
pub(super) struct Worker<'r> {
    shared: &'r Shared<'r>,
    number: usize,
    rng: Xoshiro256PlusPlus,
    recorder: Recorder,
    pinned: Vec<Pinned<'r>>,
    buffer: Vec<u8>,
    work: Work,
    /// Pages compared before the measured time.
    warmup_checked: u64,
}

impl Target for Worker<'_> {
    type Done = Finished;

    #[inline]
    fn step(&mut self, _: &AtomicBool) -> Result<bool, LabError> {
        self.round()?;
        Ok(true)
    }

    fn begin(&mut self) {
        self.warmup_checked = self.work.checked;
        self.recorder.set_sampling(Sampling::All);
        self.work = Work::default();
    }

    fn finish(self) -> Finished {
        Finished {
            end: Instant::now(),
            work: self.work,
            warmup_checked: self.warmup_checked,
            latencies: self.recorder.finish(),
        }
    }
}

impl<'r> Worker<'r> {
    /// A worker with its own histograms, not measuring yet.
    pub(super) fn new(shared: &'r Shared<'r>, number: usize, clock: Clock, histograms: Histograms) -> Self {
        Self {
            shared,
            number,
            rng: Xoshiro256PlusPlus::seed_from_u64(mix(shared.options.seed ^ mix(number as u64 + 1))),
            recorder: Recorder::new(clock, histograms, Sampling::Off),
            pinned: Vec::with_capacity(shared.options.round_pages.1 as usize),
            buffer: Vec::new(),
            work: Work::default(),
            warmup_checked: 0,
        }
    }

    fn round(&mut self) -> Result<(), LabError> {
        let options = self.shared.options;
        let (least, most) = options.round_pages;
        let wanted = least + below(self.rng.next_u64(), most - least + 1);
        let chooser = &self.shared.choosers[usize::from(self.shared.switched.load(Ordering::Relaxed))];
        for _ in 0..wanted {
            let page = chooser.read(&mut self.rng);
            if !self.acquire(page)? {
                self.work.rounds_cut += 1;
                break;
            }
        }
        if self.happens(options.update_pct) {
            self.update_all()?;
        }
        if self.happens(options.delete_pct) {
            self.delete_some()?;
        }
        self.finish_round();
        Ok(())
    }

    fn happens(&mut self, percent: f64) -> bool {
        percent > 0.0 && unit(&mut self.rng) * 100.0 < percent
    }

    /// Gets a page and keeps it pinned; false when everything is pinned.
    fn acquire(&mut self, page: PageId) -> Result<bool, LabError> {
        let (ledger, writes) = (self.shared.ledger, self.shared.options.writes());
        let watched = ledger.watches(page);
        loop {
            let done = if writes { ledger.done(page) } else { 0 };
            // Time since the last operation is not part of this one.
            self.recorder.interrupt();
            let start = self.recorder.start();
            match self.shared.pool.get(page) {
                Ok(guard) => {
                    self.recorder.end(Kind::Read, start);
                    self.work.acquisitions += 1;
                    if watched {
                        self.work.checked += 1;
                        ledger.check(page, &guard, done);
                    } else {
                        black_box(guard.first());
                    }
                    self.pinned.push(Pinned { page, guard, done });
                    return Ok(true);
                }
                Err(PoolError::PoolFull { .. }) => return Ok(false),
                Err(PoolError::NotFound { .. }) if writes => {
                    let may_be_absent = ledger.check_absent(page, done);
                    if let Some(made) = self.create(page, may_be_absent)? {
                        return Ok(made);
                    }
                }
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// Makes a deleted page anew; `None` when another worker did so meanwhile, false when everything is pinned.
    fn create(&mut self, page: PageId, may_be_absent: bool) -> Result<Option<bool>, LabError> {
        let shared = self.shared;
        let turn = shared.ledger.turn(page);
        if may_be_absent && turn.current().is_multiple_of(2) {
            return Ok(None);
        }
        let read = shared.origin.page_bytes(page).and_then(|len| {
            self.buffer.resize(len, 0);
            shared.origin.read(page, &mut self.buffer)
        });
        read.map_err(|e| LabError::System(format!("cannot read page {page} again: {e}")))?;
        let version = turn.next();
        stamp(page, version, &mut self.buffer);
        turn.begin(version);
        if !self.write(page)? {
            return Ok(Some(false));
        }
        turn.finish(version);
        self.work.creates += 1;
        self.work.acquisitions += 1;
        Ok(Some(true))
    }

    /// Writes the buffer's contents; returns false if everything is pinned.
    fn write(&mut self, page: PageId) -> Result<bool, LabError> {
        self.recorder.interrupt();
        let start = self.recorder.start();
        match self.shared.pool.write(page, &self.buffer) {
            Ok(()) => {
                self.recorder.end(Kind::Write, start);
                Ok(true)
            }
            Err(PoolError::PoolFull { .. }) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    /// Updates all pages of the round: each gets a stamp, so that it compresses as before.
    fn update_all(&mut self) -> Result<(), LabError> {
        for index in 0..self.pinned.len() {
            let page = self.pinned[index].page;
            self.buffer.clear();
            self.buffer.extend_from_slice(&self.pinned[index].guard);
            let turn = self.shared.ledger.turn(page);
            if !turn.current().is_multiple_of(2) {
                // Another worker has deleted it.
                continue;
            }
            let version = turn.next();
            stamp(page, version, &mut self.buffer);
            turn.begin(version);
            if !self.write(page)? {
                self.work.rounds_cut += 1;
                break;
            }
            turn.finish(version);
            self.work.updates += 1;
        }
        Ok(())
    }

    /// Deletes a quarter of the round's pages and one more.
    fn delete_some(&mut self) -> Result<(), LabError> {
        let count = (self.pinned.len() / 4 + 1).min(self.pinned.len());
        for index in 0..count {
            let page = self.pinned[index].page;
            let turn = self.shared.ledger.turn(page);
            let version = turn.removed();
            if version == turn.current() {
                continue;
            }
            turn.begin(version);
            self.recorder.interrupt();
            let start = self.recorder.start();
            self.shared.pool.remove(page)?;
            self.recorder.end(Kind::Delete, start);
            turn.finish(version);
            self.work.deletes += 1;
        }
        Ok(())
    }

    /// Lets go of the round's pages.
    fn finish_round(&mut self) {
        // A pinned page must not change, whatever is done to it meanwhile. One page of the round is checked.
        if let Some(first) = self.pinned.first().filter(|_| self.shared.options.writes())
            && self.shared.ledger.watches(first.page)
        {
            self.work.checked += 1;
            self.shared.ledger.check(first.page, &first.guard, first.done);
        }
        if self.pinned.is_empty() {
            // Others have everything pinned.
            std::thread::yield_now();
        }
        self.pinned.clear();
        self.work.rounds += 1;
        self.recorder.flush();
        let shown = &self.shared.shown[self.number].acquisitions;
        shown.store(self.work.acquisitions, Ordering::Relaxed);
    }
}
