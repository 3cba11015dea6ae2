//! The thread that starts and ends the workers, and samples their progress.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use leafpress::store::PageStore;
use leafpress_pages::PagePool;
use quanta::Clock;

use super::ledger::Ledger;
use super::outcome::{Cpu, Held};
use super::worker::{Finished, Shared, Shown, Worker};
use super::{Checks, Counters, Options, Outcome, Sample, Warmup};
use crate::core::LabError;
use crate::core::keys::{Chooser, mix};
use crate::core::latency::{Histograms, Kind};
use crate::core::resources::{resident_anonymous_bytes, usage};
use crate::harness::Phase;
use crate::harness::gate::{Gate, Stage};

/// Interval of progress samples, and of checks for cancellation.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Bounds of the length of a sample's window.
const SAMPLE_EVERY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));
/// Target number of samples of the measured time.
const SAMPLES: u32 = 250;
/// A warm-up "until full" ends when the pool has not grown for this long.
const STILL_FOR: Duration = Duration::from_secs(3);
/// It ends after this time in any case.
const LONGEST_WARMUP: Duration = Duration::from_secs(600);

/// Progress of a run.
#[derive(Debug)]
pub enum Event<'e> {
    /// Progress of a phase, 0 to 1.
    Progress(Phase, f64),
    /// A window ended; this many seconds are left.
    Sample(&'e Sample, f64),
}

/// The thread that starts and ends the workers, and samples their progress.
pub(super) struct Driver<'c> {
    options: &'c Options,
    pool: &'c PagePool,
    cancel: &'c AtomicBool,
    events: &'c mut dyn FnMut(Event<'_>),
    /// When the warm-up began.
    started: Instant,
    /// When the measured time began.
    measured_from: Instant,
    /// Resident memory of the process before the pool was made.
    resident_before: Option<u64>,
    every: Duration,
    samples: Vec<Sample>,
    /// How things stood when the last window ended.
    last: Standing,
}

/// The state at one moment.
#[derive(Debug, Clone, Copy, Default)]
struct Standing {
    at: Duration,
    acquisitions: u64,
    counters: Counters,
}

impl<'c> Driver<'c> {
    pub(super) fn new(
        options: &'c Options,
        pool: &'c PagePool,
        resident_before: Option<u64>,
        cancel: &'c AtomicBool,
        events: &'c mut dyn FnMut(Event<'_>),
    ) -> Self {
        let every = Duration::from_secs_f64(options.seconds) / SAMPLES;
        Self {
            options,
            pool,
            cancel,
            events,
            started: Instant::now(),
            measured_from: Instant::now(),
            resident_before,
            every: every.clamp(SAMPLE_EVERY.0, SAMPLE_EVERY.1),
            samples: Vec::with_capacity(2 * SAMPLES as usize),
            last: Standing::default(),
        }
    }

    /// Lets workers warm up and run, each with one of `histograms`, and measures.
    pub(super) fn drive(
        mut self,
        origin: &dyn PageStore,
        ledger: &Ledger,
        pages: u64,
        histograms: Vec<Histograms>,
    ) -> Result<Outcome, LabError> {
        let options = self.options;
        let chooser = |seed| Chooser::new(options.distribution, pages, seed);
        let shared = Shared {
            options,
            pool: self.pool,
            origin,
            ledger,
            choosers: [chooser(options.seed), chooser(mix(!options.seed))],
            switched: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            shown: (0..options.workers).map(|_| Shown::default()).collect(),
        };
        let (gate, clock) = (Gate::new(&shared.stop), Clock::new());
        let mut outcome = std::thread::scope(|scope| {
            for (number, histograms) in histograms.into_iter().enumerate() {
                let (shared, gate, clock) = (&shared, &gate, clock.clone());
                gate.start(scope, number, move || {
                    Worker::new(shared, number, clock, histograms).live(gate);
                })?;
            }
            self.measure(&gate, &shared, pages)
        })?;
        let finished = gate.close()?;
        self.collect(&mut outcome, finished)?;
        outcome.samples = self.samples;
        Ok(outcome)
    }

    /// Measurements from outside of the workers.
    fn measure(&mut self, gate: &Gate<'_, Finished>, shared: &Shared<'_>, pages: u64) -> Result<Outcome, LabError> {
        let workers = self.options.workers;
        gate.await_arrivals(workers);
        self.started = Instant::now();
        gate.open(Stage::WarmUp);
        let full = self.warm_up(gate, shared, pages);
        shared.stop.store(true, Ordering::Relaxed);
        gate.await_arrivals(2 * workers);
        let warmup = self.started.elapsed();
        let cancelled = self.cancel.load(Ordering::Relaxed);
        let before = usage();
        if gate.failed() || cancelled || before.is_err() {
            gate.open(Stage::Abandoned);
            before?;
            // A failure is reported by the caller.
            return if gate.failed() {
                Ok(Outcome::default())
            } else {
                Err(LabError::Cancelled)
            };
        }
        let before = before?;
        for shown in &shared.shown {
            shown.acquisitions.store(0, Ordering::Relaxed);
        }
        shared.stop.store(false, Ordering::Relaxed);
        let counters_before = Counters::from(&self.pool.stats());
        self.last = Standing {
            at: warmup,
            acquisitions: 0,
            counters: counters_before,
        };
        self.measured_from = Instant::now();
        gate.open(Stage::Timed);
        self.watch(gate, shared);
        let after = usage()?;
        let cpu = Cpu {
            user_seconds: after.user_seconds - before.user_seconds,
            system_seconds: after.system_seconds - before.system_seconds,
        };
        let stats = self.pool.stats();
        Ok(Outcome {
            warmup_seconds: warmup.as_secs_f64(),
            full,
            interrupted: self.cancel.load(Ordering::Relaxed),
            counters: Counters::from(&stats).since(&counters_before),
            held: Held::from(&stats),
            cpu,
            other_cores: after.since(&before, self.measured_from.elapsed()).other_cores,
            ..Outcome::default()
        })
    }

    /// Waits until the pool is warm; whether it is full.
    fn warm_up(&mut self, gate: &Gate<'_, Finished>, shared: &Shared<'_>, pages: u64) -> bool {
        let longest = match self.options.warmup {
            Warmup::Full => LONGEST_WARMUP,
            Warmup::Seconds(seconds) => Duration::from_secs_f64(seconds),
        };
        let (mut most_held, mut grown_at) = (0, Duration::ZERO);
        loop {
            let now = self.started.elapsed();
            let stats = self.pool.stats();
            if stats.bytes_held > most_held {
                (most_held, grown_at) = (stats.bytes_held, now);
            }
            // A pool sweeps in batches and ahead of need, so it is seldom full to the last byte.
            let filled = stats.bytes_held as f64 / self.options.budget_bytes as f64 / 0.95;
            let is_full = filled >= 1.0
                || stats.compressed_evictions > 0
                || stats.raw_pages + stats.compressed_pages >= pages
                || now.saturating_sub(grown_at) >= STILL_FOR;
            let over = self.cancel.load(Ordering::Relaxed) || gate.failed() || now >= longest;
            if over || (is_full && self.options.warmup == Warmup::Full) {
                return is_full;
            }
            self.sample_if_due(shared, now, false);
            let done = match self.options.warmup {
                Warmup::Full => filled,
                Warmup::Seconds(seconds) => now.as_secs_f64() / seconds,
            };
            (self.events)(Event::Progress(Phase::WarmUp, done.min(1.0)));
            std::thread::sleep(LOOK_EVERY.min(longest - now));
        }
    }

    /// Samples until the time is up, and waits until all workers have ended.
    fn watch(&mut self, gate: &Gate<'_, Finished>, shared: &Shared<'_>) {
        let length = Duration::from_secs_f64(self.options.seconds);
        let switch_at = self.options.switch_at_seconds.map(Duration::from_secs_f64);
        loop {
            let now = self.measured_from.elapsed();
            if now >= length || self.cancel.load(Ordering::Relaxed) || gate.failed() {
                break;
            }
            if switch_at.is_some_and(|at| now >= at) {
                shared.switched.store(true, Ordering::Relaxed);
            }
            self.sample_if_due(shared, self.started.elapsed(), true);
            (self.events)(Event::Progress(Phase::Timed, now.as_secs_f64() / length.as_secs_f64()));
            std::thread::sleep(LOOK_EVERY.min(length - now));
        }
        shared.stop.store(true, Ordering::Relaxed);
        while gate.at_work() {
            std::thread::park_timeout(LOOK_EVERY);
        }
        self.sample(shared, self.started.elapsed(), true);
    }

    fn sample_if_due(&mut self, shared: &Shared<'_>, now: Duration, measured: bool) {
        if now.saturating_sub(self.last.at) >= self.every {
            self.sample(shared, now, measured);
        }
    }

    /// Ends a window.
    fn sample(&mut self, shared: &Shared<'_>, now: Duration, measured: bool) {
        let stats = self.pool.stats();
        let shown = shared.shown.iter();
        let standing = Standing {
            at: now,
            acquisitions: shown.map(|shown| shown.acquisitions.load(Ordering::Relaxed)).sum(),
            counters: Counters::from(&stats),
        };
        let counted = standing.counters.since(&self.last.counters);
        let resident = resident_anonymous_bytes().zip(self.resident_before);
        let sample = Sample {
            at_seconds: now.as_secs_f64(),
            length_seconds: now.saturating_sub(self.last.at).as_secs_f64(),
            measured,
            acquisitions: standing.acquisitions.saturating_sub(self.last.acquisitions),
            hits: counted.hits(),
            misses: counted.misses,
            store_read_bytes: counted.store_read_bytes,
            held: Held::from(&stats),
            resident_bytes: resident.map(|(now, before)| now as i64 - before as i64),
        };
        let left = (self.options.seconds - self.measured_from.elapsed().as_secs_f64()).max(0.0);
        (self.events)(Event::Sample(&sample, left));
        self.samples.push(sample);
        self.last = standing;
    }

    /// Adds up what the workers did.
    fn collect(&self, outcome: &mut Outcome, finished: Vec<Finished>) -> Result<(), LabError> {
        let mut latencies = Histograms::new()?;
        let mut checks = Checks::default();
        for one in finished {
            outcome.work.add(&one.work);
            checks.checked += one.warmup_checked + one.work.checked;
            latencies.add(&one.latencies);
            let seconds = one.end.saturating_duration_since(self.measured_from).as_secs_f64();
            outcome.seconds = outcome.seconds.max(seconds);
        }
        outcome.checks = checks;
        outcome.acquire = latencies.summary(Kind::Read);
        outcome.update = latencies.summary(Kind::Write);
        outcome.delete = latencies.summary(Kind::Delete);
        Ok(())
    }
}
