//! The thread that starts and ends the others, and looks at hits and memory meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use quanta::Clock;

use super::outcome::{Measured, Milestone, RateFigures, Sample};
use super::worker::{COUNTED, Finished, Latencies, Scratch, Shared, Worker, by_kind, histograms};
use super::workload::Workload;
use super::{Length, Options};
use crate::core::LabError;
use crate::core::latency::{histogram, summary};
use crate::core::resources::{resident_anonymous_bytes, usage};
use crate::harness::Phase;
use crate::harness::gate::{Gate, Stage};
use crate::harness::timeline::merge;

/// Sampling interval of resident memory, and of checks for cancellation.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Bounds of the length of a sample's window.
const SAMPLE_EVERY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));
/// Target number of samples of the measured time.
const SAMPLES: u32 = 250;
/// The default length of the measurement.
pub(super) const DEFAULT_SECONDS: f64 = 5.0;

/// The growth of the process's resident memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Growth {
    before: u64,
    pub(super) now: u64,
    pub(super) peak: u64,
}

impl Growth {
    /// From now on.
    pub(super) fn from_here() -> Self {
        Self {
            before: resident_anonymous_bytes().unwrap_or(0),
            now: 0,
            peak: 0,
        }
    }

    pub(super) fn look(&mut self) {
        self.now = resident_anonymous_bytes().unwrap_or(0).saturating_sub(self.before);
        self.peak = self.peak.max(self.now);
    }
}

/// The thread that starts and ends the others.
pub(super) struct Driver<'d> {
    cancel: &'d AtomicBool,
    progress: &'d mut dyn FnMut(Phase, f64),
    growth: Growth,
    /// When the warm-up began.
    started: Instant,
    every: Duration,
    samples: Vec<Sample>,
    /// When the last window ended, and the operations of its stage until then.
    last: (Duration, [u64; COUNTED]),
}

/// A stage: how many operations it may have, and how long it may take.
#[derive(Clone, Copy)]
struct Bounds {
    phase: Phase,
    operations: Option<u64>,
    length: Option<Duration>,
}

impl<'d> Driver<'d> {
    pub(super) fn new(growth: Growth, cancel: &'d AtomicBool, progress: &'d mut dyn FnMut(Phase, f64)) -> Self {
        Self {
            cancel,
            progress,
            growth,
            started: Instant::now(),
            every: SAMPLE_EVERY.0,
            // As many as a long run has: they must not be growth either.
            samples: Vec::with_capacity(4 * SAMPLES as usize),
            last: (Duration::ZERO, [0; COUNTED]),
        }
    }

    /// Starts warm-up and run of the threads.
    pub(super) fn drive(mut self, shared: &Shared<'_>, scratch: Vec<Scratch>) -> Result<Measured, LabError> {
        let (warmup, timed) = stages(shared.options, shared.workload);
        if let Some(length) = timed.length {
            self.every = (length / SAMPLES).clamp(SAMPLE_EVERY.0, SAMPLE_EVERY.1);
        }
        let threads = shared.options.threads;
        let (gate, clock) = (Gate::new(&shared.stop), Clock::new());
        let mut measured = std::thread::scope(|scope| {
            for (number, scratch) in scratch.into_iter().enumerate() {
                let (gate, clock) = (&gate, clock.clone());
                gate.start(scope, number, move || {
                    live(Worker::new(shared, number, clock, scratch), number, gate);
                })?;
            }
            self.measure(&gate, shared, threads, warmup, timed)
        })?;
        let (mut latencies, mut by_kind) = (histograms()?, by_kind(shared.workload)?);
        let (mut backlog, mut timelines, mut milestones) = (0, Vec::new(), Vec::new());
        for one in gate.close()? {
            measured.mismatches.add(one.mismatches);
            backlog += one.backlog;
            timelines.push(one.timeline);
            milestones.push(one.milestones);
            let both = one.latencies.iter().chain(&one.by_kind);
            for (all, one) in latencies.iter_mut().chain(&mut by_kind).zip(both) {
                // Cannot fail: all histograms have the same bounds.
                let _ = all.add(one);
            }
        }
        measured.read_latency = summary(&reads(&latencies, shared.options.charge_ns())?);
        measured.latency_by_length = by_kind.iter().map(summary).collect();
        measured.timeline = merge(&timelines);
        measured.milestones = passed_by_all(&milestones);
        let wait;
        [
            measured.hit_latency,
            measured.miss_latency,
            measured.write_latency,
            measured.remove_latency,
            wait,
        ] = latencies.each_ref().map(summary);
        measured.rate = shared.options.rate.map(|asked| RateFigures {
            asked,
            backlog,
            wait_latency: wait,
        });
        (measured.growth_bytes, measured.peak_growth_bytes) = (self.growth.now, self.growth.peak);
        measured.samples = self.samples;
        Ok(measured)
    }

    fn measure(
        &mut self,
        gate: &Gate<'_, Finished>,
        shared: &Shared<'_>,
        threads: usize,
        warmup: Bounds,
        timed: Bounds,
    ) -> Result<Measured, LabError> {
        gate.await_arrivals(threads);
        self.started = Instant::now();
        begin(shared, warmup);
        gate.open(Stage::WarmUp);
        self.watch(shared, warmup, &|| gate.arrived() >= 2 * threads || gate.failed());
        gate.await_arrivals(2 * threads);
        let before = usage();
        if gate.failed() || self.cancel.load(Ordering::Relaxed) || before.is_err() {
            gate.open(Stage::Abandoned);
            before?;
            // A failure is reported by the caller.
            return if gate.failed() {
                Ok(Measured::default())
            } else {
                Err(LabError::Cancelled)
            };
        }
        let before = before?;
        let warmup_seconds = self.started.elapsed().as_secs_f64();
        let warmup_operations = done(shared).iter().sum();
        let disk = shared.engine.standing().disk;
        begin(shared, timed);
        shared.workload.rewind();
        self.last = (self.started.elapsed(), [0; COUNTED]);
        let from = Instant::now();
        gate.open(Stage::Timed);
        self.watch(shared, timed, &|| !gate.at_work());
        let seconds = from.elapsed().as_secs_f64();
        if self.cancel.load(Ordering::Relaxed) {
            return Err(LabError::Cancelled);
        }
        let after = usage()?;
        let [hits, misses, writes, removes] = done(shared);
        let standing = shared.engine.standing();
        if let Some(error) = standing.disk_error {
            return Err(LabError::System(error));
        }
        self.growth.look();
        Ok(Measured {
            warmup_seconds,
            warmup_operations,
            seconds,
            hits,
            misses,
            writes,
            removes,
            records: standing.records,
            bytes_held: standing.bytes_held,
            cpu_seconds: after.user_seconds + after.system_seconds - before.user_seconds - before.system_seconds,
            other_cores: after.since(&before, from.elapsed()).other_cores,
            disk: standing.disk.zip(disk).map(|(after, before)| after.since(&before)),
            ..Measured::default()
        })
    }

    /// Looks on until a stage is over.
    fn watch(&mut self, shared: &Shared<'_>, bounds: Bounds, is_over: &dyn Fn() -> bool) {
        let from = Instant::now();
        while !is_over() {
            let elapsed = from.elapsed();
            if self.cancel.load(Ordering::Relaxed) || bounds.length.is_some_and(|length| elapsed >= length) {
                shared.stop.store(true, Ordering::Relaxed);
            }
            self.growth.look();
            if self.started.elapsed().saturating_sub(self.last.0) >= self.every {
                self.sample(shared, bounds.phase);
            }
            let operations: u64 = done(shared).iter().sum();
            let of_load = shared.loaded().filter(|_| bounds.phase == Phase::WarmUp);
            let of_operations = bounds
                .operations
                .map_or(0.0, |all| operations as f64 / all.max(1) as f64);
            let of_time = bounds
                .length
                .map_or(0.0, |length| elapsed.as_secs_f64() / length.as_secs_f64());
            let done = of_operations.max(of_time).min(1.0);
            let done = of_load.map_or(done, |loaded| (loaded + done) / 2.0);
            (self.progress)(bounds.phase, done);
            let left = bounds
                .length
                .map_or(LOOK_EVERY, |length| length.saturating_sub(elapsed));
            // A thread that ends wakes this one.
            std::thread::park_timeout(LOOK_EVERY.min(left).max(Duration::from_millis(1)));
        }
        self.growth.look();
        self.sample(shared, bounds.phase);
    }

    /// Ends a window.
    fn sample(&mut self, shared: &Shared<'_>, phase: Phase) {
        let (now, done) = (self.started.elapsed(), done(shared));
        let (before, had) = self.last;
        self.samples.push(Sample {
            at_seconds: now.as_secs_f64(),
            length_seconds: now.saturating_sub(before).as_secs_f64(),
            measured: phase == Phase::Timed,
            hits: done[0].saturating_sub(had[0]),
            misses: done[1].saturating_sub(had[1]),
            growth_bytes: self.growth.now,
        });
        self.last = (now, done);
    }
}

/// The milestones that all threads have passed, with their totals.
fn passed_by_all(threads: &[Vec<Milestone>]) -> Vec<Milestone> {
    let passed = threads.iter().map(Vec::len).min().unwrap_or(0);
    let sums = (0..passed).map(|at| {
        threads.iter().fold(Milestone::default(), |sum, thread| Milestone {
            operations: sum.operations + thread[at].operations,
            hits: sum.hits + thread[at].hits,
            misses: sum.misses + thread[at].misses,
        })
    });
    sums.collect()
}

/// A thread, from its first stage to its last.
fn live(mut worker: Worker<'_>, number: usize, gate: &Gate<'_, Finished>) {
    let panicked = || LabError::System(format!("thread {number} panicked"));
    if !gate.pass(Stage::WarmUp) {
        return;
    }
    // A failed thread passes the next gate too: the driver counts.
    let warm = gate.work(panicked, || worker.warm_up());
    if !gate.pass(Stage::Timed) || warm.is_none() {
        return;
    }
    worker.begin_measuring();
    if gate.work(panicked, || worker.work()).is_some() {
        gate.finish(worker.finish());
    }
}

/// Latencies of reads, with this much added to misses for the backend.
fn reads([hits, misses, ..]: &Latencies, charge_ns: u64) -> Result<Histogram<u64>, LabError> {
    let mut reads = histogram()?;
    // Cannot fail: all histograms have the same bounds.
    let _ = reads.add(hits);
    for recorded in misses.iter_recorded() {
        let ns = recorded.value_iterated_to() + charge_ns;
        reads.saturating_record_n(ns, recorded.count_since_last_iteration());
    }
    Ok(reads)
}

fn begin(shared: &Shared<'_>, bounds: Bounds) {
    let operations = bounds
        .operations
        .map_or(i64::MAX / 2, |all| i64::try_from(all).unwrap_or(i64::MAX / 2));
    shared.left.store(operations, Ordering::Relaxed);
    shared.stop.store(false, Ordering::Relaxed);
    for count in shared.shown.iter().flat_map(|shown| shown.counts()) {
        count.store(0, Ordering::Relaxed);
    }
}

/// Operations of the stage so far, by kind: hits and misses first.
fn done(shared: &Shared<'_>) -> [u64; COUNTED] {
    let mut sums = [0; COUNTED];
    for shown in &shared.shown {
        for (sum, count) in sums.iter_mut().zip(shown.counts()) {
            *sum += count.load(Ordering::Relaxed);
        }
    }
    sums
}

/// The warm-up and the measured stage.
fn stages(options: &Options, workload: &Workload) -> (Bounds, Bounds) {
    let default = if options.is_of_a_file() { 0 } else { 2 * workload.keys() };
    let warmup = Bounds {
        phase: Phase::WarmUp,
        operations: Some(options.warmup_operations.unwrap_or(default)),
        length: None,
    };
    let length = options.length.unwrap_or(match workload.trace_requests() {
        Some(requests) => Length::Operations(requests),
        None => Length::Seconds(DEFAULT_SECONDS),
    });
    let (operations, length) = match length {
        Length::Seconds(seconds) => (None, Some(Duration::from_secs_f64(seconds))),
        Length::Operations(operations) => (Some(operations), None),
    };
    let timed = Bounds {
        phase: Phase::Timed,
        operations,
        length,
    };
    (warmup, timed)
}
