//! One run in this process: make the map, load it, drive it for the timed window, check every key.

mod load;
mod mismatch;
mod resident_memory;
mod worker;

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use leafpress::TreeStats;
use quanta::Clock;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::core::LabError;
use crate::core::keys::{Chooser, KeyBytes};
use crate::core::latency::{Histograms, Kind, Recorder, Sampling};
use crate::core::resources;
use crate::driver::{Observer, Plan, drive};
use crate::eval::dataset::Dataset;
use crate::eval::matrix::RunSpec;
use crate::eval::result::{Counters, Memory, Resources, RunResult};
use crate::eval::workload::Workload;
use crate::harness::Phase;
use crate::harness::oracle::Ledger;
use crate::harness::store::Store;
use crate::harness::timeline::merge;
use mismatch::Mismatches;
pub(crate) use resident_memory::weigh;
#[cfg(feature = "peers")]
pub(crate) use resident_memory::weigh_store;
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
    mismatches: Mismatches,
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
            mismatches: Mismatches::default(),
        }
    }

    fn key_bytes(&self) -> KeyBytes {
        self.data.key_bytes()
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

    let plan = Plan {
        warm_up: (base.warmup_seconds > 0.0).then(|| Duration::from_secs_f64(base.warmup_seconds)),
        timed: Duration::from_secs_f64(base.seconds),
        cancel,
        panicked: &panicked,
    };
    let parts = streams(base.seed).zip(recorders).collect();
    let make = |thread, (rngs, recorder)| Ok(Worker::new(&shared, chooser.clone(), rngs, recorder, thread));
    let mut stages = Stages {
        store: store.as_ref(),
        stats: [None, None],
        lengths: [base.warmup_seconds, base.seconds],
        progress,
    };
    let timed = drive(&plan, parts, make, &mut stages)?.whole()?;
    let [before, after] = stages.stats.map(|stats| stats.unwrap_or_else(|| store.stats()));
    let mut counts = Counts::default();
    let mut histograms = Histograms::new()?;
    let mut timelines = Vec::new();
    for of_thread in timed.done {
        counts.add(&of_thread.counts);
        histograms.add(&of_thread.histograms);
        timelines.extend(of_thread.timeline);
    }
    let [read_latency, write_latency, delete_latency, scan_latency] =
        [Kind::Read, Kind::Write, Kind::Delete, Kind::Scan].map(|kind| histograms.summary(kind));
    // The recorders are gone, some megabytes a thread: measured from a baseline with them, the tree would seem smaller
    // by as much.
    drop(histograms);
    let ended = memory(&after, resident_before_recorders);
    load::verify(&shared, progress)?;
    store.validate()?;

    let usage = resources::usage()?;
    let (mismatches, mismatch_examples) = shared.mismatches.take();
    Ok(RunResult {
        engine: after.engine_name.to_owned(),
        wall_seconds: timed.seconds,
        reads: counts.reads,
        writes: counts.writes,
        deletes: counts.deletes,
        scans: counts.scans,
        scanned_records: counts.scanned_records,
        mismatches,
        mismatch_examples,
        read_latency,
        write_latency,
        delete_latency,
        scan_latency,
        resources: base.collect_cpu.then_some(Resources {
            user_seconds: timed.cpu.user_seconds,
            system_seconds: timed.cpu.system_seconds,
            max_rss_kib: resources::peak_resident_kib(),
            voluntary_switches: usage.voluntary_switches,
            involuntary_switches: usage.involuntary_switches,
        }),
        keys: data.keys,
        load_seconds,
        settle_seconds,
        loaded,
        ended,
        counters: Counters::between(&before, &after),
        other_cores: timed.cpu.other_cores,
        timeline: merge(&timelines),
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
        codec: stats.codec.to_string(),
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

fn panicked(_: usize) -> LabError {
    LabError::System("a worker thread panicked".into())
}

/// Random numbers of each thread, for the warm-up and the measured time. Jumps of 2^128 numbers keep the threads'
/// streams apart.
fn streams(seed: u64) -> impl Iterator<Item = [Xoshiro256PlusPlus; 2]> {
    let mut rngs = [seed ^ 1 << 63, seed].map(Xoshiro256PlusPlus::seed_from_u64);
    std::iter::repeat_with(move || {
        rngs.iter_mut().for_each(Xoshiro256PlusPlus::jump);
        rngs.clone()
    })
}

/// Reports progress, and reads the store's counters before the first measured operation and after the last.
struct Stages<'s> {
    store: &'s dyn Store,
    stats: [Option<TreeStats>; 2],
    /// Seconds of the warm-up and of the measured time.
    lengths: [f64; 2],
    progress: &'s mut dyn FnMut(Phase, f64),
}

impl Observer for Stages<'_> {
    fn begin(&mut self, stage: Phase) {
        if stage == Phase::Timed {
            self.stats[0] = Some(self.store.stats());
        }
    }

    fn look(&mut self, stage: Phase, elapsed: Duration) -> Option<Duration> {
        let length = self.lengths[usize::from(stage == Phase::Timed)];
        (self.progress)(stage, (elapsed.as_secs_f64() / length).min(1.0));
        Some(PROGRESS_EVERY)
    }

    fn end(&mut self, stage: Phase) {
        if stage == Phase::Timed {
            self.stats[1] = Some(self.store.stats());
        }
    }
}

#[cfg(test)]
mod tests;
