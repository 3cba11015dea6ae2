//! Runs the client threads, and looks at hits and memory meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use quanta::Clock;

use super::outcome::{DiskFigures, Measured, Milestone, Mismatches, RateFigures, Sample};
use super::worker::{COUNTED, Latencies, Scratch, Shared, Worker, by_kind, histograms};
use super::workload::Workload;
use super::{Length, Options};
use crate::core::LabError;
use crate::core::latency::{histogram, summary};
use crate::core::resources::resident_anonymous_bytes;
use crate::driver::{Observer, Plan, UNTIL_DONE, drive};
use crate::harness::Phase;
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

/// Looks at hits and memory.
struct Watcher<'d> {
    shared: &'d Shared<'d>,
    progress: &'d mut dyn FnMut(Phase, f64),
    growth: Growth,
    /// The warm-up and the measured stage.
    stages: [Bounds; 2],
    /// When the warm-up began.
    started: Instant,
    every: Duration,
    samples: Vec<Sample>,
    /// When the last window ended, and the operations of its stage until then.
    last: (Duration, [u64; COUNTED]),
    /// Operations of the warm-up, and what the disk had done by then.
    warmup_operations: u64,
    disk: Option<DiskFigures>,
}

/// A stage: how many operations it may have, and how long it may take.
#[derive(Clone, Copy)]
struct Bounds {
    operations: Option<u64>,
    length: Option<Duration>,
}

/// Runs warm-up and measurement, a thread for each of `scratch`; the process has grown by `growth` before.
pub(super) fn measure(
    shared: &Shared<'_>,
    scratch: Vec<Scratch>,
    growth: Growth,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(Phase, f64),
) -> Result<Measured, LabError> {
    let stages = stages(shared.options, shared.workload);
    let every = stages[1].length.map_or(SAMPLE_EVERY.0, |length| length / SAMPLES);
    let mut watcher = Watcher {
        shared,
        progress,
        growth,
        stages,
        started: Instant::now(),
        every: every.clamp(SAMPLE_EVERY.0, SAMPLE_EVERY.1),
        // As many as a long run has: they must not be growth either.
        samples: Vec::with_capacity(4 * SAMPLES as usize),
        last: (Duration::ZERO, [0; COUNTED]),
        warmup_operations: 0,
        disk: None,
    };
    let plan = Plan {
        warm_up: Some(UNTIL_DONE),
        timed: stages[1].length.unwrap_or(UNTIL_DONE),
        cancel,
        panicked: &|number| LabError::System(format!("thread {number} panicked")),
    };
    let clock = Clock::new();
    let make = |number, scratch| Ok(Worker::new(shared, number, clock.clone(), scratch));
    let run = drive(&plan, scratch, make, &mut watcher)?.whole()?;
    let [hits, misses, writes, removes] = done(shared);
    let standing = shared.engine.standing();
    if let Some(error) = standing.disk_error {
        return Err(LabError::System(error));
    }
    watcher.growth.look();
    let (mut latencies, mut by_kind) = (histograms()?, by_kind(shared.workload)?);
    let (mut backlog, mut timelines, mut milestones) = (0, Vec::new(), Vec::new());
    let mut mismatches = Mismatches::default();
    for one in run.done {
        mismatches.add(one.mismatches);
        backlog += one.backlog;
        timelines.push(one.timeline);
        milestones.push(one.milestones);
        let both = one.latencies.iter().chain(&one.by_kind);
        for (all, one) in latencies.iter_mut().chain(&mut by_kind).zip(both) {
            // Cannot fail: all histograms have the same bounds.
            let _ = all.add(one);
        }
    }
    let [hit_latency, miss_latency, write_latency, remove_latency, wait_latency] = latencies.each_ref().map(summary);
    Ok(Measured {
        warmup_seconds: run.warmup_seconds,
        warmup_operations: watcher.warmup_operations,
        seconds: run.seconds,
        hits,
        misses,
        writes,
        removes,
        records: standing.records,
        bytes_held: standing.bytes_held,
        chosen_codec: standing.chosen_codec,
        codec_reason: standing.codec_reason,
        raw_share: standing.raw_share,
        cpu_seconds: run.cpu.user_seconds + run.cpu.system_seconds,
        other_cores: run.cpu.other_cores,
        disk: standing
            .disk
            .zip(watcher.disk)
            .map(|(after, before)| after.since(&before)),
        read_latency: summary(&reads(&latencies, shared.options.charge_ns())?),
        hit_latency,
        miss_latency,
        write_latency,
        remove_latency,
        latency_by_length: by_kind.iter().map(summary).collect(),
        timeline: merge(&timelines),
        milestones: passed_by_all(&milestones),
        mismatches,
        rate: shared.options.rate.map(|asked| RateFigures {
            asked,
            backlog,
            wait_latency,
        }),
        growth_bytes: watcher.growth.now,
        peak_growth_bytes: watcher.growth.peak,
        samples: watcher.samples,
    })
}

impl Observer for Watcher<'_> {
    fn begin(&mut self, stage: Phase) {
        let shared = self.shared;
        if stage == Phase::WarmUp {
            self.started = Instant::now();
        } else {
            self.warmup_operations = done(shared).iter().sum();
            self.disk = shared.engine.standing().disk;
            shared.workload.rewind();
            self.last = (self.started.elapsed(), [0; COUNTED]);
        }
        let operations = self.bounds(stage).operations.and_then(|all| i64::try_from(all).ok());
        shared.left.store(operations.unwrap_or(i64::MAX / 2), Ordering::Relaxed);
        for count in shared.shown.iter().flat_map(|shown| shown.counts()) {
            count.store(0, Ordering::Relaxed);
        }
    }

    fn look(&mut self, stage: Phase, elapsed: Duration) -> Option<Duration> {
        self.growth.look();
        if self.started.elapsed().saturating_sub(self.last.0) >= self.every {
            self.sample(stage);
        }
        let bounds = self.bounds(stage);
        let operations: u64 = done(self.shared).iter().sum();
        let of_load = self.shared.loaded().filter(|_| stage == Phase::WarmUp);
        let of_operations = bounds
            .operations
            .map_or(0.0, |all| operations as f64 / all.max(1) as f64);
        let of_time = bounds
            .length
            .map_or(0.0, |length| elapsed.as_secs_f64() / length.as_secs_f64());
        let done = of_operations.max(of_time).min(1.0);
        let done = of_load.map_or(done, |loaded| (loaded + done) / 2.0);
        (self.progress)(stage, done);
        Some(LOOK_EVERY)
    }

    fn end(&mut self, stage: Phase) {
        self.growth.look();
        self.sample(stage);
    }
}

impl Watcher<'_> {
    fn bounds(&self, stage: Phase) -> Bounds {
        self.stages[usize::from(stage == Phase::Timed)]
    }

    /// Ends a window.
    fn sample(&mut self, stage: Phase) {
        let (now, done) = (self.started.elapsed(), done(self.shared));
        let (before, had) = self.last;
        self.samples.push(Sample {
            at_seconds: now.as_secs_f64(),
            length_seconds: now.saturating_sub(before).as_secs_f64(),
            measured: stage == Phase::Timed,
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
fn stages(options: &Options, workload: &Workload) -> [Bounds; 2] {
    let default = if options.is_of_a_file() { 0 } else { 2 * workload.keys() };
    let warmup = Bounds {
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
    [warmup, Bounds { operations, length }]
}
