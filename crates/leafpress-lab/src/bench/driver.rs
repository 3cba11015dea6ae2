//! The run: threads in step, samples of the throughput, an end on time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quanta::Clock;

use super::hardware::Counters;
use super::load::Attached;
use super::mix::Mix;
use super::recorder::Recorder;
use super::scan::ScanCheck;
use super::values::Values;
use super::worker::{Shared, Shown, Worker};
use super::{Counts, Index, KeyFormat, Load, Mode, Options, Outcome, Sample, pin};
use crate::core::LabError;
use crate::driver::{Observer, Plan, UNTIL_DONE, drive};
use crate::harness::Phase;

/// Interval of progress reports and of checks for cancellation.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Two points in time nearer to each other than this are one.
const INSTANT: Duration = Duration::from_micros(500);

/// Inputs of a run.
pub(super) struct Run<'r> {
    pub options: &'r Options,
    pub index: &'r dyn Index,
    pub format: &'r KeyFormat,
    pub values: &'r Values,
    pub cancel: &'r AtomicBool,
}

impl Run<'_> {
    /// Runs the operations and measures them.
    ///
    /// # Errors
    /// [`LabError::Index`] when an operation fails, [`LabError::Cancelled`], [`LabError::System`] when a thread cannot
    /// be started.
    pub(super) fn run(
        &self,
        load: Option<Load>,
        mut counters: Option<Counters>,
        progress: &mut dyn FnMut(Phase, f64),
    ) -> Result<Outcome, LabError> {
        let options = self.options;
        let clock = Clock::new();
        let mix = Mix::new(&options.ratios)?;
        let shared = Shared {
            options,
            index: self.index,
            format: self.format,
            values: self.values,
            mix: &mix,
            distribution: options.distribution()?,
            shown: (0..options.threads).map(|_| Shown::default()).collect(),
        };
        let places = pin::places(options.pin)?;
        let wanted = options.latency_sampling > 0.0;
        let recorder = || wanted.then(|| Recorder::new(clock.clone(), options.rate.is_some(), options.sampling_ms));
        let recorders = (0..options.threads).map(|_| recorder().transpose());
        let recorders = recorders.collect::<Result<Vec<_>, _>>()?;
        let error = |reason| options.input.error(reason);
        let timed = (options.mode == Mode::Time).then(|| Duration::from_secs_f64(options.seconds));
        let plan = Plan {
            warm_up: (options.warmup_seconds > 0.0).then(|| Duration::from_secs_f64(options.warmup_seconds)),
            timed: timed.unwrap_or(UNTIL_DONE),
            cancel: self.cancel,
            panicked: &|_| error("a thread panicked in the index".into()),
        };
        let make = |thread, recorder| {
            if !places.is_empty() {
                pin::to(places[thread % places.len()])?;
            }
            let attached = Attached::new(self.index).map_err(|e| error(e.to_string()))?;
            Ok(Worker::new(&shared, thread, clock.clone(), recorder, attached))
        };
        let window = Duration::from_millis(options.sampling_ms);
        let mut sampler = Sampler {
            shared: &shared,
            counters: &mut counters,
            progress,
            end: timed,
            window,
            next: window,
            started: Instant::now(),
            samples: Samples::default(),
        };
        let measured = drive(&plan, recorders, make, &mut sampler)?.whole()?;
        let samples = sampler.samples.taken;
        let hardware = counters.map(|mut counters| counters.read());
        let finished = measured.done;
        let start = finished.iter().map(|one| one.start).min().unwrap_or(0);
        let end = finished.iter().map(|one| one.end).max().unwrap_or(start);
        let mut counts = [Counts::default(); 6];
        let mut scanned_records = 0;
        let mut scans = ScanCheck::new(options, self.index.key_order());
        let mut recorders = Vec::new();
        for one in finished {
            for (sum, counts) in counts.iter_mut().zip(one.done.counts) {
                sum.completed += counts.completed;
                sum.succeeded += counts.succeeded;
            }
            scanned_records += one.done.scanned_records;
            scans.add(&one.done.scans);
            recorders.extend(one.recorder);
        }
        Ok(Outcome {
            index: self.index.name(),
            load,
            run_milliseconds: clock.delta_as_nanos(start, end) as f64 / 1e6,
            counts,
            scanned_records,
            scan_errors: scans.finish(),
            hardware,
            samples,
            latencies: wanted
                .then(|| Recorder::merge(recorders, options.sampling_ms))
                .transpose()?,
            cpu: measured.cpu,
            held_bytes: self.index.held_bytes(),
        })
    }
}

/// Counts operations at the end of each window until all threads have ended.
struct Sampler<'s> {
    shared: &'s Shared<'s>,
    counters: &'s mut Option<Counters>,
    progress: &'s mut dyn FnMut(Phase, f64),
    /// When time mode ends.
    end: Option<Duration>,
    window: Duration,
    /// When the window in progress ends.
    next: Duration,
    started: Instant,
    samples: Samples,
}

impl Sampler<'_> {
    fn completed(&self) -> u64 {
        let shown = self.shared.shown.iter();
        shown.map(|shown| shown.completed.load(Ordering::Relaxed)).sum()
    }
}

impl Observer for Sampler<'_> {
    fn begin(&mut self, stage: Phase) {
        if stage == Phase::Timed {
            if let Some(counters) = self.counters {
                counters.start();
            }
            self.started = Instant::now();
        }
    }

    fn look(&mut self, stage: Phase, now: Duration) -> Option<Duration> {
        let options = self.shared.options;
        if stage == Phase::WarmUp {
            (self.progress)(stage, now.as_secs_f64() / options.warmup_seconds);
            return Some(LOOK_EVERY);
        }
        let is_over = self.end.is_some_and(|end| now >= end);
        if !is_over && now >= self.next {
            self.samples.take(now, self.completed());
            while self.next <= now {
                self.next += self.window;
            }
            // The last window of time mode ends with the run.
            if let Some(end) = self.end.filter(|end| self.next + INSTANT > *end) {
                self.next = end + self.window;
            }
        }
        let share = match self.end {
            Some(end) => now.as_secs_f64() / end.as_secs_f64(),
            None => self.completed() as f64 / options.operations.max(1) as f64,
        };
        (self.progress)(stage, share);
        Some(self.next.saturating_sub(self.started.elapsed()).min(LOOK_EVERY))
    }

    fn end(&mut self, stage: Phase) {
        if stage == Phase::WarmUp {
            return;
        }
        let count = self.completed();
        if count > self.samples.counted || self.samples.taken.is_empty() {
            self.samples.take(self.started.elapsed(), count);
        }
        if let Some(counters) = self.counters {
            counters.stop();
        }
    }
}

/// The samples taken.
#[derive(Default)]
struct Samples {
    taken: Vec<Sample>,
    /// When the last one was taken.
    at: Duration,
    /// Operations in all of them.
    counted: u64,
}

impl Samples {
    fn take(&mut self, at: Duration, count: u64) {
        self.taken.push(Sample {
            end_ms: at.as_secs_f64() * 1e3,
            length_ms: (at - self.at).as_secs_f64() * 1e3,
            operations: count - self.counted,
        });
        (self.at, self.counted) = (at, count);
    }
}
