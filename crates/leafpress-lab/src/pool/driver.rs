//! Runs the workers, and samples their progress.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use leafpress::store::PageStore;
use leafpress_pages::PagePool;
use quanta::Clock;

use super::ledger::Ledger;
use super::outcome::{Cpu, Held};
use super::worker::{Shared, Shown, Worker};
use super::{Counters, Options, Outcome, Sample, Warmup};
use crate::core::LabError;
use crate::core::keys::{Chooser, mix};
use crate::core::latency::{Histograms, Kind};
use crate::core::resources::resident_anonymous_bytes;
use crate::driver::{Observer, Plan, drive};
use crate::harness::Phase;

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

/// Samples the workers' progress.
struct Watcher<'c> {
    pages: u64,
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
    shared: &'c Shared<'c>,
    /// The most that the pool held, and when it had grown to that.
    most_held: (usize, Duration),
    /// Whether the pool was full after the warm-up.
    full: bool,
    /// The pool's counters at the start of the measured time.
    counters_before: Counters,
}

/// The state at one moment.
#[derive(Debug, Clone, Copy, Default)]
struct Standing {
    at: Duration,
    acquisitions: u64,
    counters: Counters,
}

/// Lets workers warm up and run, each with one of `histograms`, and measures.
pub(super) fn measure(
    (options, pool): (&Options, &PagePool),
    (origin, ledger, pages): (&dyn PageStore, &Ledger, u64),
    histograms: Vec<Histograms>,
    resident_before: Option<u64>,
    cancel: &AtomicBool,
    events: &mut dyn FnMut(Event<'_>),
) -> Result<Outcome, LabError> {
    let chooser = |seed| Chooser::new(options.distribution, pages, seed);
    let shared = Shared {
        options,
        pool,
        origin,
        ledger,
        choosers: [chooser(options.seed), chooser(mix(!options.seed))],
        switched: AtomicBool::new(false),
        shown: (0..options.workers).map(|_| Shown::default()).collect(),
    };
    let every = Duration::from_secs_f64(options.seconds) / SAMPLES;
    let mut watcher = Watcher {
        shared: &shared,
        pages,
        events,
        started: Instant::now(),
        measured_from: Instant::now(),
        resident_before,
        every: every.clamp(SAMPLE_EVERY.0, SAMPLE_EVERY.1),
        samples: Vec::with_capacity(2 * SAMPLES as usize),
        last: Standing::default(),
        most_held: (0, Duration::ZERO),
        full: false,
        counters_before: Counters::default(),
    };
    let plan = Plan {
        warm_up: Some(match options.warmup {
            Warmup::Full => LONGEST_WARMUP,
            Warmup::Seconds(seconds) => Duration::from_secs_f64(seconds),
        }),
        timed: Duration::from_secs_f64(options.seconds),
        cancel,
        panicked: &|_| LabError::System("a worker panicked in the pool".into()),
    };
    let clock = Clock::new();
    let make = |number, histograms| Ok(Worker::new(&shared, number, clock.clone(), histograms));
    let measured = drive(&plan, histograms, make, &mut watcher)?;
    let stats = pool.stats();
    let mut outcome = Outcome {
        warmup_seconds: measured.warmup_seconds,
        full: watcher.full,
        interrupted: measured.interrupted,
        counters: Counters::from(&stats).since(&watcher.counters_before),
        held: Held::from(&stats),
        cpu: Cpu {
            user_seconds: measured.cpu.user_seconds,
            system_seconds: measured.cpu.system_seconds,
        },
        other_cores: measured.cpu.other_cores,
        samples: watcher.samples,
        ..Outcome::default()
    };
    let mut latencies = Histograms::new()?;
    for one in measured.done {
        outcome.work.add(&one.work);
        outcome.checks.checked += one.warmup_checked + one.work.checked;
        latencies.add(&one.latencies);
        let seconds = one.end.saturating_duration_since(watcher.measured_from).as_secs_f64();
        outcome.seconds = outcome.seconds.max(seconds);
    }
    outcome.acquire = latencies.summary(Kind::Read);
    outcome.update = latencies.summary(Kind::Write);
    outcome.delete = latencies.summary(Kind::Delete);
    Ok(outcome)
}

impl Observer for Watcher<'_> {
    fn begin(&mut self, stage: Phase) {
        if stage == Phase::WarmUp {
            self.started = Instant::now();
            return;
        }
        for shown in &self.shared.shown {
            shown.acquisitions.store(0, Ordering::Relaxed);
        }
        self.counters_before = Counters::from(&self.shared.pool.stats());
        self.last = Standing {
            at: self.started.elapsed(),
            acquisitions: 0,
            counters: self.counters_before,
        };
        self.measured_from = Instant::now();
    }

    fn look(&mut self, stage: Phase, elapsed: Duration) -> Option<Duration> {
        if stage == Phase::WarmUp {
            return self.look_at_warm_up(elapsed);
        }
        let options = self.shared.options;
        if options.switch_at_seconds.is_some_and(|at| elapsed.as_secs_f64() >= at) {
            self.shared.switched.store(true, Ordering::Relaxed);
        }
        self.sample_if_due(true);
        let done = elapsed.as_secs_f64() / options.seconds;
        (self.events)(Event::Progress(Phase::Timed, done.min(1.0)));
        Some(LOOK_EVERY)
    }

    fn end(&mut self, stage: Phase) {
        if stage == Phase::Timed {
            self.sample(true);
        }
    }
}

impl Watcher<'_> {
    /// Ends a warm-up "until full" once the pool is.
    fn look_at_warm_up(&mut self, elapsed: Duration) -> Option<Duration> {
        let options = self.shared.options;
        if self.full && options.warmup == Warmup::Full {
            // Workers finish their rounds.
            return None;
        }
        let stats = self.shared.pool.stats();
        if stats.bytes_held > self.most_held.0 {
            self.most_held = (stats.bytes_held, elapsed);
        }
        // A pool sweeps in batches and ahead of need, so it is seldom full to the last byte.
        let filled = stats.bytes_held as f64 / options.budget_bytes as f64 / 0.95;
        self.full = filled >= 1.0
            || stats.compressed_evictions > 0
            || stats.raw_pages + stats.compressed_pages >= self.pages
            || elapsed.saturating_sub(self.most_held.1) >= STILL_FOR;
        let done = match options.warmup {
            Warmup::Full if self.full => return None,
            Warmup::Full => filled,
            Warmup::Seconds(seconds) => elapsed.as_secs_f64() / seconds,
        };
        self.sample_if_due(false);
        (self.events)(Event::Progress(Phase::WarmUp, done.min(1.0)));
        Some(LOOK_EVERY)
    }

    fn sample_if_due(&mut self, measured: bool) {
        if self.started.elapsed().saturating_sub(self.last.at) >= self.every {
            self.sample(measured);
        }
    }

    /// Ends a window.
    fn sample(&mut self, measured: bool) {
        let shared = self.shared;
        let now = self.started.elapsed();
        let stats = shared.pool.stats();
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
        let left = (shared.options.seconds - self.measured_from.elapsed().as_secs_f64()).max(0.0);
        (self.events)(Event::Sample(&sample, left));
        self.samples.push(sample);
        self.last = standing;
    }
}
