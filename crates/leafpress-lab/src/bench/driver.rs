//! The run: threads in step, samples of the throughput, an end on time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::thread::Thread;
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
use crate::core::resources::{Usage, usage};

/// How often progress is told, and how soon a cancellation is seen.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Two points in time nearer to each other than this are one.
const INSTANT: Duration = Duration::from_micros(500);

/// What a run needs.
pub(super) struct Run<'r> {
    pub options: &'r Options,
    pub index: &'r dyn Index,
    pub format: &'r KeyFormat,
    pub values: &'r Values,
    pub cancel: &'r AtomicBool,
}

/// Which part of a run is told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    WarmUp,
    Timed,
}

/// What a run measured.
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

/// What one thread hands back.
struct Finished {
    start: u64,
    end: u64,
    done: Done,
    recorder: Option<Recorder>,
}

/// What all threads wait for, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum Gate {
    Closed,
    WarmUp,
    Timed,
    /// There is no run after all.
    Abandoned,
}

/// Keeps the threads and the one that drives them in step.
struct Steps {
    gate: AtomicU8,
    /// Times a thread came to the gate.
    arrived: AtomicU64,
    /// Threads that have not ended.
    working: AtomicU64,
    driver: Thread,
    failure: Mutex<Option<LabError>>,
    finished: Mutex<Vec<Finished>>,
}

impl Steps {
    fn new() -> Self {
        Self {
            gate: AtomicU8::new(Gate::Closed as u8),
            arrived: AtomicU64::new(0),
            working: AtomicU64::new(0),
            driver: std::thread::current(),
            failure: Mutex::new(None),
            finished: Mutex::new(Vec::new()),
        }
    }

    fn open(&self, gate: Gate) {
        self.gate.store(gate as u8, Ordering::Release);
    }

    /// A thread's side: waits until the gate is open so far; false when there is no run.
    fn pass(&self, gate: Gate) -> bool {
        self.arrived.fetch_add(1, Ordering::AcqRel);
        self.driver.unpark();
        loop {
            let open = self.gate.load(Ordering::Acquire);
            if open >= gate as u8 {
                return open != Gate::Abandoned as u8;
            }
            std::thread::yield_now();
        }
    }

    /// The driver's side: waits until threads came to the gate `times` times altogether.
    fn await_arrivals(&self, times: u64) {
        while self.arrived.load(Ordering::Acquire) < times {
            std::thread::park_timeout(LOOK_EVERY);
        }
    }

    fn at_work(&self) -> bool {
        self.working.load(Ordering::Acquire) > 0
    }

    fn fail(&self, shared: &Shared<'_>, error: LabError) {
        shared.stop.store(true, Ordering::Relaxed);
        if let Ok(mut failure) = self.failure.lock() {
            failure.get_or_insert(error);
        }
    }
}

/// Counts a thread out, even one that panics.
struct Working<'s>(&'s Steps);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.working.fetch_sub(1, Ordering::Release);
        self.0.driver.unpark();
    }
}

impl Run<'_> {
    /// Runs the operations and measures them.
    ///
    /// # Errors
    /// [`LabError::Index`] when an operation fails, [`LabError::Cancelled`], [`LabError::System`] when a thread cannot be started.
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
        let steps = Steps::new();
        let driven = std::thread::scope(|scope| {
            for (thread, recorder) in recorders.into_iter().enumerate() {
                let pinned_to = (!places.is_empty()).then(|| places[thread % places.len()]);
                let (shared, steps, clock) = (&shared, &steps, clock.clone());
                steps.working.fetch_add(1, Ordering::Relaxed);
                let working = Working(steps);
                let body = move || {
                    let _working = working;
                    self.work(
                        steps,
                        Worker::new(shared, thread, clock, recorder),
                        shared,
                        thread,
                        pinned_to,
                    );
                };
                if let Err(e) = std::thread::Builder::new().spawn_scoped(scope, body) {
                    steps.open(Gate::Abandoned);
                    return Err(LabError::System(format!("cannot start thread {thread}: {e}")));
                }
            }
            self.drive(&steps, &shared, &mut counters, progress)
        });
        let (samples, cpu) = driven?;
        if let Some(error) = steps.failure.into_inner().ok().flatten() {
            return Err(error);
        }
        if self.cancel.load(Ordering::Relaxed) {
            return Err(LabError::Cancelled);
        }
        let finished = steps.finished.into_inner().unwrap_or_default();
        let hardware = counters.map(|mut counters| counters.read());
        self.measured(&clock, finished, samples, cpu, hardware)
    }

    /// A thread's life.
    fn work<'r>(
        &self,
        steps: &Steps,
        worker: Worker<'r>,
        shared: &'r Shared<'r>,
        thread: usize,
        pinned_to: Option<usize>,
    ) {
        if let Some(Err(error)) = pinned_to.map(pin::to) {
            steps.fail(shared, error);
        }
        // Short waits of an open loop end when they should, not 50 microseconds later.
        let _ = nix::sys::prctl::set_timerslack(1000);
        self.index.attach_thread();
        self.operate(steps, worker, shared, thread);
        self.index.detach_thread();
    }

    /// What a thread does between its first and its last operation.
    fn operate<'r>(&self, steps: &Steps, mut worker: Worker<'r>, shared: &'r Shared<'r>, thread: usize) {
        let operate = |worker: &mut Worker<'r>, limit, measured| {
            // An index that panics must not leave the other threads waiting.
            let error = match catch_unwind(AssertUnwindSafe(|| worker.run(limit, measured))) {
                Ok(Ok(span)) => return Some(span),
                Ok(Err(error)) => error.to_string(),
                Err(_) => "a thread panicked in the index".into(),
            };
            steps.fail(shared, self.options.input.error(error));
            None
        };
        if !steps.pass(Gate::WarmUp) {
            return;
        }
        if self.options.warmup_seconds > 0.0 {
            operate(&mut worker, None, false);
            worker.forget();
        }
        if !steps.pass(Gate::Timed) {
            return;
        }
        let span = operate(&mut worker, self.options.operations_of(thread), true);
        if let (Some((start, end)), Ok(mut finished)) = (span, steps.finished.lock()) {
            finished.push(Finished {
                start,
                end,
                done: worker.done,
                recorder: worker.recorder,
            });
        }
    }

    /// Lets the threads warm up and run, and samples what they do.
    fn drive(
        &self,
        steps: &Steps,
        shared: &Shared<'_>,
        counters: &mut Option<Counters>,
        progress: &mut dyn FnMut(Part, f64),
    ) -> Result<(Vec<Sample>, CpuTime), LabError> {
        let options = self.options;
        let threads = options.threads as u64;
        steps.await_arrivals(threads);
        steps.open(Gate::WarmUp);
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
        steps.await_arrivals(2 * threads);
        let failed = steps.failure.lock().is_ok_and(|failure| failure.is_some());
        let counted_from = Instant::now();
        let before = usage();
        let before = match before {
            Ok(before) if !failed && !self.cancel.load(Ordering::Relaxed) => before,
            before => {
                steps.open(Gate::Abandoned);
                // What went wrong is told by the caller, but for this.
                return before.map(|_| (Vec::new(), CpuTime::default()));
            }
        };
        shared.stop.store(false, Ordering::Relaxed);
        if let Some(counters) = counters {
            counters.start();
        }
        let started = Instant::now();
        steps.open(Gate::Timed);
        let samples = self.sample(steps, shared, started, progress);
        if let Some(counters) = counters {
            counters.stop();
        }
        Ok((samples, CpuTime::between(&before, &usage()?, counted_from.elapsed())))
    }

    /// Whether the run is to end before its time.
    fn over(&self, shared: &Shared<'_>) -> bool {
        if self.cancel.load(Ordering::Relaxed) {
            shared.stop.store(true, Ordering::Relaxed);
        }
        shared.stop.load(Ordering::Relaxed)
    }

    /// Counts operations at the end of each window until all threads have ended; in time mode, ends them.
    fn sample(
        &self,
        steps: &Steps,
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
        while steps.at_work() {
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

/// The samples so far.
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

impl CpuTime {
    fn between(before: &Usage, after: &Usage, length: Duration) -> Self {
        Self {
            user_seconds: after.user_seconds - before.user_seconds,
            system_seconds: after.system_seconds - before.system_seconds,
            voluntary_switches: after.voluntary_switches - before.voluntary_switches,
            involuntary_switches: after.involuntary_switches - before.involuntary_switches,
            wall_seconds: length.as_secs_f64(),
        }
    }
}
