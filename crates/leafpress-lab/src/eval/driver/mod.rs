//! One run in this process: make the map, load it, drive it for the timed window, check every key.

mod load;
mod mismatch;
mod weigh;
mod worker;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use leafpress::TreeStats;
use quanta::Clock;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::core::LabError;
use crate::core::keys::{Chooser, KeyBytes, Permutation};
use crate::core::latency::{Histograms, Kind, Recorder, Sampling};
use crate::core::resources;
use crate::eval::dataset::Dataset;
use crate::eval::matrix::RunSpec;
use crate::eval::result::{Counters, Memory, Resources, RunResult};
use crate::eval::workload::Workload;
use crate::harness::Phase;
use crate::harness::oracle::Ledger;
use crate::harness::store::Store;
use crate::harness::timeline::{Moment, merge};
use mismatch::Mismatches;
pub(crate) use weigh::weigh;
#[cfg(feature = "peers")]
pub(crate) use weigh::weigh_store;
use worker::{Counts, Worker};

/// Interval of progress reports.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// State shared by the threads of a run.
struct Shared<'r> {
    spec: &'r RunSpec,
    store: &'r dyn Store,
    ledger: &'r Ledger,
    data: &'r Dataset,
    cancel: &'r AtomicBool,
    /// Ends the window in progress, or every window after an error.
    stop: AtomicBool,
    failure: Mutex<Option<LabError>>,
    mismatches: Mismatches,
    /// Keys done in a phase that goes over all keys.
    done: AtomicU64,
}

impl<'r> Shared<'r> {
    fn new(
        spec: &'r RunSpec,
        data: &'r Dataset,
        ledger: &'r Ledger,
        store: &'r dyn Store,
        cancel: &'r AtomicBool,
    ) -> Self {
        Self {
            spec,
            store,
            ledger,
            data,
            cancel,
            stop: AtomicBool::new(false),
            failure: Mutex::new(None),
            mismatches: Mismatches::default(),
            done: AtomicU64::new(0),
        }
    }

    fn fail(&self, error: LabError) {
        self.stop.store(true, Ordering::Relaxed);
        if let Ok(mut failure) = self.failure.lock() {
            failure.get_or_insert(error);
        }
    }

    /// The error of a thread, or the cancellation, that ended a phase early.
    fn check(&self) -> Result<(), LabError> {
        if let Some(error) = self.failure.lock().ok().and_then(|mut failure| failure.take()) {
            return Err(error);
        }
        if self.cancel.load(Ordering::Relaxed) {
            Err(LabError::Cancelled)
        } else {
            Ok(())
        }
    }

    fn key_bytes(&self) -> KeyBytes {
        self.data.key_bytes()
    }

    /// Sleeps until `until` or until the run ends, reporting progress.
    fn wait(&self, phase: Phase, from: Instant, length: Duration, progress: &mut dyn FnMut(Phase, f64)) {
        progress(phase, 0.0);
        while !self.stop.load(Ordering::Relaxed) && !self.cancel.load(Ordering::Relaxed) {
            let Some(left) = length.checked_sub(from.elapsed()).filter(|left| !left.is_zero()) else {
                return;
            };
            std::thread::sleep(PROGRESS_EVERY.min(left));
            progress(phase, (from.elapsed().as_secs_f64() / length.as_secs_f64()).min(1.0));
        }
    }
}

/// Reads the run's data, builds its tree and runs it.
///
/// # Errors
/// Unusable data, options out of bounds, an operation that failed, [`LabError::Cancelled`].
pub fn run(spec: &RunSpec, cancel: &AtomicBool, progress: &mut dyn FnMut(Phase, f64)) -> Result<RunResult, LabError> {
    progress(Phase::Corpus, 0.0);
    resources::allocate_in_small_pages();
    let data = Dataset::load(&spec.base, cancel)?;
    run_store(spec, &data, &|| tree(spec, &data), cancel, progress)
}

fn tree(spec: &RunSpec, data: &Dataset) -> Result<Box<dyn Store>, LabError> {
    Ok(Box::new(spec.builder_for(data)?.build()?))
}

/// Possible values of each key.
fn ledger(spec: &RunSpec, data: &Dataset) -> Ledger {
    let deletes = spec.workload.delete_pct_of_mutations();
    Ledger::new(data.values.clone(), data.keys, data.pairing, deletes)
}

/// Runs `spec` on the caller's map, created by `make` after all other allocations.
///
/// # Errors
/// As [`run`].
pub fn run_store(
    spec: &RunSpec,
    data: &Dataset,
    make: &dyn Fn() -> Result<Box<dyn Store>, LabError>,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(Phase, f64),
) -> Result<RunResult, LabError> {
    let base = &spec.base;
    let ledger = ledger(spec, data);
    let chooser = Chooser::new(base.distribution_of(spec.workload), data.keys, base.seed);
    let clock = Clock::new();
    resources::make_program_resident();
    // Memory freed after reading the data must not hide the tree's growth.
    resources::release_free_memory();
    let resident_before_recorders = resources::resident_bytes();
    // Histograms are made, and so their memory touched, before the baseline of resident memory is taken.
    let recorders = (0..spec.threads).map(|_| Ok(Recorder::new(clock.clone(), Histograms::new()?, sampling(spec))));
    let recorders = recorders.collect::<Result<Vec<_>, LabError>>()?;
    resources::release_free_memory();
    let resident_before = resources::resident_bytes();
    let store = make()?;
    let shared = Shared::new(spec, data, &ledger, store.as_ref(), cancel);

    let load_started = Instant::now();
    load::load(&shared, progress)?;
    let load_seconds = load_started.elapsed().as_secs_f64();
    let settle_started = Instant::now();
    store
        .settle()
        .map_err(|e| LabError::System(format!("after the load: {e}")))?;
    let settle_seconds = settle_started.elapsed().as_secs_f64();
    let loaded = memory(&store.stats(), resident_before);

    if base.warmup_seconds > 0.0 {
        let unmeasured = || Ok(Recorder::new(clock.clone(), Histograms::new()?, Sampling::Off));
        let recorders = (0..spec.threads)
            .map(|_| unmeasured())
            .collect::<Result<_, LabError>>()?;
        window(
            &shared,
            &chooser,
            recorders,
            Phase::WarmUp,
            base.warmup_seconds,
            progress,
        )?;
    }
    let timed = window(&shared, &chooser, recorders, Phase::Timed, base.seconds, progress)?;
    let [read_latency, write_latency, delete_latency, scan_latency] =
        [Kind::Read, Kind::Write, Kind::Delete, Kind::Scan].map(|kind| timed.histograms.summary(kind));
    // The recorders are gone, some megabytes a thread: measured from a baseline with them, the tree would seem smaller
    // by as much.
    drop(timed.histograms);
    let ended = memory(&timed.after, resident_before_recorders);
    load::verify(&shared, progress)?;
    store.validate()?;

    let usage = resources::usage()?;
    let (mismatches, mismatch_examples) = shared.mismatches.take();
    Ok(RunResult {
        engine: timed.after.engine_name.to_owned(),
        wall_seconds: timed.wall_seconds,
        reads: timed.counts.reads,
        writes: timed.counts.writes,
        deletes: timed.counts.deletes,
        scans: timed.counts.scans,
        scanned_records: timed.counts.scanned_records,
        mismatches,
        mismatch_examples,
        read_latency,
        write_latency,
        delete_latency,
        scan_latency,
        resources: base.collect_cpu.then_some(Resources {
            user_seconds: timed.user_seconds,
            system_seconds: timed.system_seconds,
            max_rss_kib: resources::peak_resident_kib(),
            voluntary_switches: usage.voluntary_switches,
            involuntary_switches: usage.involuntary_switches,
        }),
        keys: data.keys,
        load_seconds,
        settle_seconds,
        loaded,
        ended,
        counters: Counters::between(&timed.before, &timed.after),
        other_cores: timed.other_cores,
        timeline: timed.timeline,
    })
}

fn sampling(spec: &RunSpec) -> Sampling {
    match spec.base.latency_samples_per_thread {
        // Means of short stretches need every operation, and are what the workload is for.
        _ if spec.workload == Workload::HotSet => Sampling::All,
        _ if !spec.base.measure_latency => Sampling::Off,
        0 => Sampling::All,
        wanted => Sampling::Evenly(wanted),
    }
}

/// The tree's memory at `stats`, and the growth of the process since `resident_before`, less free memory of its
/// allocators (the harness's buffers and the loader's), which would otherwise count as the tree's.
fn memory(stats: &TreeStats, resident_before: Option<u64>) -> Memory {
    resources::release_free_memory();
    Memory {
        records: stats.records,
        user_bytes: stats.user_bytes,
        bytes_held: stats.bytes_held,
        dictionary_bytes: stats.dictionary_bytes,
        frame_limit_bytes: stats.frame_limit_bytes,
        leaf_limit_bytes: stats.leaf_limit_bytes,
        rss_growth_bytes: growth(resident_before),
        rss_growth_unknown: None,
    }
}

/// Growth of the resident memory since it was `before`.
fn growth(before: Option<u64>) -> Option<i64> {
    Some(resources::resident_bytes()? as i64 - before? as i64)
}

/// Measurements of a time window.
struct Window {
    wall_seconds: f64,
    user_seconds: f64,
    system_seconds: f64,
    other_cores: Option<f64>,
    before: TreeStats,
    after: TreeStats,
    counts: Counts,
    histograms: Histograms,
    timeline: Vec<Moment>,
}

/// Runs the workload on all threads for `seconds`. Clocks and counters are read before the first operation and after
/// the last.
fn window(
    shared: &Shared<'_>,
    chooser: &Chooser,
    recorders: Vec<Recorder>,
    phase: Phase,
    seconds: f64,
    progress: &mut dyn FnMut(Phase, f64),
) -> Result<Window, LabError> {
    let salt = if phase == Phase::WarmUp { 1 << 63 } else { 0 };
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(shared.spec.base.seed ^ salt);
    shared.stop.store(false, Ordering::Relaxed);
    let go = AtomicBool::new(false);
    let mut histograms = Histograms::new()?;
    let mut counts = Counts::default();
    let moves = phase == Phase::Timed && shared.spec.workload == Workload::HotSet;
    std::thread::scope(|scope| {
        let mut threads = Vec::with_capacity(recorders.len());
        let mut timelines = Vec::new();
        for (index, recorder) in recorders.into_iter().enumerate() {
            // Jumps of 2^128 numbers keep the threads' random streams apart.
            rng.jump();
            let (chooser, rng, go) = (chooser.clone(), rng.clone(), &go);
            // Made by its own thread, so that its small buffers, written at every operation, share no cache line with
            // another's.
            let work = move || {
                let worker = Worker::new(shared, chooser, rng, recorder);
                if moves {
                    worker.with_timeline(index == 0)
                } else {
                    worker
                }
                .run(go)
            };
            match std::thread::Builder::new().spawn_scoped(scope, work) {
                Ok(thread) => threads.push(thread),
                Err(error) => shared.fail(LabError::System(format!("cannot start a thread: {error}"))),
            }
        }
        let before = shared.store.stats();
        let usage_before = resources::usage();
        let started = Instant::now();
        go.store(true, Ordering::Release);
        threads.iter().for_each(|thread| thread.thread().unpark());
        shared.wait(phase, started, Duration::from_secs_f64(seconds), progress);
        shared.stop.store(true, Ordering::Relaxed);
        for thread in threads {
            match thread.join() {
                Ok(of_thread) => {
                    counts.add(&of_thread.counts);
                    histograms.add(&of_thread.histograms);
                    timelines.extend(of_thread.timeline);
                }
                Err(_) => shared.fail(LabError::System("a worker thread panicked".into())),
            }
        }
        let wall_seconds = started.elapsed().as_secs_f64();
        let (usage_before, usage) = (usage_before?, resources::usage()?);
        let after = shared.store.stats();
        shared.check()?;
        Ok(Window {
            wall_seconds,
            user_seconds: usage.user_seconds - usage_before.user_seconds,
            system_seconds: usage.system_seconds - usage_before.system_seconds,
            other_cores: usage.other_cores(&usage_before, wall_seconds),
            before,
            after,
            counts,
            histograms,
            timeline: merge(&timelines),
        })
    })
}

#[cfg(test)]
mod tests;
