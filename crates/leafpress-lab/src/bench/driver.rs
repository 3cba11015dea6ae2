//! The run: threads in step, samples of the throughput, an end on time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quanta::Clock;

use super::hardware::Counters;
use super::mix::Mix;
use super::outcome::CpuTime;
use super::recorder::Recorder;
use super::scan::ScanCheck;
use super::values::Values;
use super::worker::{Done, Shared, Shown, Worker};
use super::{Counts, Hardware, Index, KeyFormat, Latencies, Mode, Options, Sample, ScanErrors, pin};
use crate::core::LabError;
use crate::core::resources::{Spent, usage};
use crate::harness::gate::{Gate, Stage};

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

/// The phase of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    WarmUp,
    Timed,
}

/// Measurements of a run.
pub(super) struct Measured {
    pub milliseconds: f64,
    pub counts: [Counts; 6],
    pub scanned_records: u64,
    pub scan_errors: ScanErrors,
    pub samples: Vec<Sample>,
    pub latencies: Option<Latencies>,
    pub hardware: Option<Hardware>,
    pub cpu: CpuTime,
}

/// Result of one thread.
struct Finished {
    start: u64,
    end: u64,
    done: Done,
    recorder: Option<Recorder>,
}

impl Run<'_> {
    /// Runs the operations and measures them.
    ///
    /// # Errors
    /// [`LabError::Index`] when an operation fails, [`LabError::Cancelled`], [`LabError::System`] when a thread cannot
    /// be started.
    pub(super) fn run(
        &self,
        mut counters: Option<Counters>,
        progress: &mut dyn FnMut(Part, f64),
    ) -> Result<Measured, LabError> {
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
            stop: AtomicBool::new(false),
        };
        let places = pin::places(options.pin)?;
        let wanted = options.latency_sampling > 0.0;
        let recorder = || wanted.then(|| Recorder::new(clock.clone(), options.rate.is_some(), options.sampling_ms));
        let recorders = (0..options.threads).map(|_| recorder().transpose());
        let recorders = recorders.collect::<Result<Vec<_>, _>>()?;
        let gate = Gate::new(&shared.stop);
        let driven = std::thread::scope(|scope| {
            for (thread, recorder) in recorders.into_iter().enumerate() {
                let pinned_to = (!places.is_empty()).then(|| places[thread % places.len()]);
                let (shared, gate, clock) = (&shared, &gate, clock.clone());
                gate.start(scope, thread, move || {
                    let worker = Worker::new(shared, thread, clock, recorder);
                    self.work(gate, worker, thread, pinned_to);
                })?;
            }
            self.drive(&gate, &shared, &mut counters, progress)
        });
        let (samples, cpu) = driven?;
        let finished = gate.close()?;
        if self.cancel.load(Ordering::Relaxed) {
            return Err(LabError::Cancelled);
        }
        let hardware = counters.map(|mut counters| counters.read());
        self.measured(&clock, finished, samples, cpu, hardware)
    }

    /// A thread's life.
    fn work(&self, gate: &Gate<'_, Finished>, worker: Worker<'_>, thread: usize, pinned_to: Option<usize>) {
        if let Some(Err(error)) = pinned_to.map(pin::to) {
            gate.fail(error);
        }
        // Short waits of an open loop end when they should, not 50 microseconds later.
        let _ = nix::sys::prctl::set_timerslack(1000);
        if let Err(error) = self.index.attach_thread() {
            gate.fail(self.options.input.error(error.to_string()));
        }
        self.operate(gate, worker, thread);
        self.index.detach_thread();
    }

    /// A thread's work between its first and its last operation.
    fn operate(&self, gate: &Gate<'_, Finished>, mut worker: Worker<'_>, thread: usize) {
        let operate = |worker: &mut Worker<'_>, limit, measured| {
            let error = |reason| self.options.input.error(reason);
            gate.work(
                || error("a thread panicked in the index".into()),
                || worker.run(limit, measured).map_err(|e| error(e.to_string())),
            )
        };
        if !gate.pass(Stage::WarmUp) {
            return;
        }
        if self.options.warmup_seconds > 0.0 {
            operate(&mut worker, None, false);
            worker.forget();
        }
        if !gate.pass(Stage::Timed) {
            return;
        }
        if let Some((start, end)) = operate(&mut worker, self.options.operations_of(thread), true) {
            gate.finish(Finished {
                start,
                end,
                done: worker.done,
                recorder: worker.recorder,
            });
        }
    }

    /// Starts warm-up and run of the threads, and samples their progress.
    fn drive(
        &self,
        gate: &Gate<'_, Finished>,
        shared: &Shared<'_>,
        counters: &mut Option<Counters>,
        progress: &mut dyn FnMut(Part, f64),
    ) -> Result<(Vec<Sample>, CpuTime), LabError> {
        let options = self.options;
        let threads = options.threads;
        gate.await_arrivals(threads);
        gate.open(Stage::WarmUp);
        if options.warmup_seconds > 0.0 {
            let (started, length) = (Instant::now(), Duration::from_secs_f64(options.warmup_seconds));
            while let Some(left) = length.checked_sub(started.elapsed()).filter(|left| !left.is_zero())
                && !self.over(shared)
            {
                std::thread::park_timeout(left.min(LOOK_EVERY));
                progress(Part::WarmUp, started.elapsed().as_secs_f64() / options.warmup_seconds);
            }
            shared.stop.store(true, Ordering::Relaxed);
        }
        gate.await_arrivals(2 * threads);
        let failed = gate.failed();
        let counted_from = Instant::now();
        let before = usage();
        let before = match before {
            Ok(before) if !failed && !self.cancel.load(Ordering::Relaxed) => before,
            before => {
                gate.open(Stage::Abandoned);
                // Other errors are reported by the caller.
                return before.map(|_| (Vec::new(), CpuTime::default()));
            }
        };
        shared.stop.store(false, Ordering::Relaxed);
        if let Some(counters) = counters {
            counters.start();
        }
        let started = Instant::now();
        gate.open(Stage::Timed);
        let samples = self.sample(gate, shared, started, progress);
        if let Some(counters) = counters {
            counters.stop();
        }
        Ok((samples, usage()?.since(&before, counted_from.elapsed()).into()))
    }

    /// Whether the run must end early.
    fn over(&self, shared: &Shared<'_>) -> bool {
        if self.cancel.load(Ordering::Relaxed) {
            shared.stop.store(true, Ordering::Relaxed);
        }
        shared.stop.load(Ordering::Relaxed)
    }

    /// Counts operations at the end of each window until all threads have ended; in time mode, ends them.
    fn sample(
        &self,
        gate: &Gate<'_, Finished>,
        shared: &Shared<'_>,
        started: Instant,
        progress: &mut dyn FnMut(Part, f64),
    ) -> Vec<Sample> {
        let options = self.options;
        let window = Duration::from_millis(options.sampling_ms);
        let end = (options.mode == Mode::Time).then(|| Duration::from_secs_f64(options.seconds));
        let completed = || {
            shared
                .shown
                .iter()
                .map(|shown| shown.completed.load(Ordering::Relaxed))
                .sum::<u64>()
        };
        let mut samples = Samples::default();
        let mut next = window;
        while gate.at_work() {
            let now = started.elapsed();
            if end.is_some_and(|end| now >= end) {
                shared.stop.store(true, Ordering::Relaxed);
            } else if now >= next {
                samples.take(now, completed());
                while next <= now {
                    next += window;
                }
                // The last window of time mode ends with the run.
                if let Some(end) = end.filter(|end| next + INSTANT > *end) {
                    next = end + window;
                }
            }
            self.over(shared);
            let share = match end {
                Some(end) => now.as_secs_f64() / end.as_secs_f64(),
                None => completed() as f64 / options.operations.max(1) as f64,
            };
            progress(Part::Timed, share);
            let until = end.map_or(next, |end| next.min(end));
            std::thread::park_timeout(until.saturating_sub(started.elapsed()).clamp(INSTANT / 5, LOOK_EVERY));
        }
        let count = completed();
        if count > samples.counted || samples.taken.is_empty() {
            samples.take(started.elapsed(), count);
        }
        samples.taken
    }

    fn measured(
        &self,
        clock: &Clock,
        finished: Vec<Finished>,
        samples: Vec<Sample>,
        cpu: CpuTime,
        hardware: Option<Hardware>,
    ) -> Result<Measured, LabError> {
        let start = finished.iter().map(|one| one.start).min().unwrap_or(0);
        let end = finished.iter().map(|one| one.end).max().unwrap_or(start);
        let mut counts = [Counts::default(); 6];
        let mut scanned_records = 0;
        let mut scans = ScanCheck::new(self.options, self.index.key_order());
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
        let latencies = (self.options.latency_sampling > 0.0)
            .then(|| Recorder::merge(recorders, self.options.sampling_ms))
            .transpose()?;
        Ok(Measured {
            milliseconds: clock.delta_as_nanos(start, end) as f64 / 1e6,
            counts,
            scanned_records,
            scan_errors: scans.finish(),
            samples,
            latencies,
            hardware,
            cpu,
        })
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

impl From<Spent> for CpuTime {
    fn from(spent: Spent) -> Self {
        Self {
            user_seconds: spent.user_seconds,
            system_seconds: spent.system_seconds,
            voluntary_switches: spent.voluntary_switches,
            involuntary_switches: spent.involuntary_switches,
            wall_seconds: spent.wall_seconds,
            other_cores: spent.other_cores,
        }
    }
}
