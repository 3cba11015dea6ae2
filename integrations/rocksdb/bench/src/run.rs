//! One benchmark: databases, threads that warm up and are measured together, and the cost of the measured time.
//!
//! The stages are driven here although the laboratory has a driver (`crates/leafpress-lab/src/driver`), which could do
//! it: `Worker` would be its `Target`, `Window` its `Observer`. That needs three changes of the laboratory and of
//! this crate. The driver is private to the laboratory. Its targets fail with `LabError`, which has no variant for an
//! error of RocksDB, so that it would have to be generic over the error. `Worker::work` is one loop per workload, which
//! would have to be split into steps. The results would change too: the driver's threads wait between the warm-up and
//! the measured time, while these do not stop, so that RocksDB's compactions have no pause to catch up in.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use leafpress_lab::core::keys::Chooser;
use leafpress_lab::core::latency::{Histograms, Kind};
use leafpress_lab::core::resources::{peak_resident_kib, usage};
use leafpress_lab::{LabError, Phase};

use crate::database::Databases;
use crate::options::Run;
use crate::values::Values;
use crate::worker::{Instance, MEASURING, OVER, Shared, Tally, WARMING, Worker};
use crate::{BenchError, Outcome, Workload};

/// The interval at which the driving thread checks the run.
const POLL: Duration = Duration::from_millis(20);

/// Runs a benchmark in this process.
///
/// It should have a process of its own: RocksDB's background threads, their memory and their CPU time then belong to
/// this benchmark alone, an earlier run leaves no state behind, and a crash ends no other run.
///
/// # Errors
/// Options out of bounds, missing or different databases, data that cannot be used, and errors of RocksDB.
pub fn run(run: &Run, cancel: &AtomicBool, progress: &mut dyn FnMut(Phase, f64)) -> Result<Outcome, BenchError> {
    run.validate()?;
    progress(Phase::Corpus, 0.0);
    let values = Values::load(&run.shape.values, run.shape.value_bytes, run.shape.seed)?;
    let databases = Databases::open(run)?;
    let mut outcome = match run.workload {
        Workload::Compact => compact(&databases, run)?,
        _ => drive(run, &values, &databases, cancel, progress)?,
    };
    if cancel.load(Ordering::Relaxed) && run.workload.is_fresh() {
        return Err(LabError::Cancelled.into());
    }
    if run.workload.writes() && run.workload != Workload::Compact {
        progress(Phase::Verify, 0.0);
        let start = Instant::now();
        databases.settle(run.workload)?;
        outcome.settle_seconds = start.elapsed().as_secs_f64();
    }
    outcome.sst_bytes = databases.sst_bytes()?;
    outcome.keys = run.shape.keys();
    outcome.peak_resident_kib = peak_resident_kib();
    if run.workload.is_fresh() {
        databases.note(run)?;
    }
    Ok(outcome)
}

fn compact(databases: &Databases, run: &Run) -> Result<Outcome, BenchError> {
    let (before, start) = (usage()?, Instant::now());
    databases.settle(run.workload)?;
    let after = usage()?;
    Ok(Outcome {
        seconds: start.elapsed().as_secs_f64(),
        operations: run.shape.instances as u64,
        user_seconds: after.user_seconds - before.user_seconds,
        system_seconds: after.system_seconds - before.system_seconds,
        tickers: databases.tickers(run.tuning.statistics),
        ..Outcome::default()
    })
}

fn drive(
    run: &Run,
    values: &Values,
    databases: &Databases,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(Phase, f64),
) -> Result<Outcome, BenchError> {
    let timed = run.work.seconds > 0.0 && !run.workload.is_bounded();
    let shared = Shared {
        run,
        values,
        stage: AtomicU8::new(if timed { WARMING } else { MEASURING }),
        cancel,
        complete: databases.complete,
        done: AtomicU64::new(0),
        failure: Mutex::new(None),
    };
    let instances: Vec<Instance<'_>> = (0_u64..)
        .zip(&databases.instances)
        .map(|(number, database)| Instance {
            database,
            first_piece: number * run.shape.num,
            chooser: Chooser::new(
                run.work.distribution,
                run.shape.num,
                run.shape.seed.wrapping_add(number),
            ),
            next_insert: AtomicU64::new(run.shape.num),
        })
        .collect();
    let (tallies, window) = work(&shared, &instances, databases, timed, progress)?;
    if let Some(failure) = shared
        .failure
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
        .take()
    {
        return Err(failure);
    }
    let mut outcome = sum(tallies)?;
    window.fill(&mut outcome);
    outcome.cancelled = cancel.load(Ordering::Relaxed);
    Ok(outcome)
}

/// Starts the threads, waits for them, and returns the results of each.
fn work<'r>(
    shared: &'r Shared<'r>,
    instances: &'r [Instance<'r>],
    databases: &Databases,
    timed: bool,
    progress: &mut dyn FnMut(Phase, f64),
) -> Result<(Vec<Tally>, Window), BenchError> {
    let run = shared.run;
    // Filling and reading in order are one thread's work for each database.
    let threads = match run.workload.is_bounded() {
        true => instances.len(),
        false => run.work.threads * instances.len(),
    };
    let limit = (!timed).then(|| run.work.reads.unwrap_or(run.shape.num));
    let total = match run.workload.is_bounded() {
        true => run.shape.keys(),
        false => limit.unwrap_or(0).saturating_mul(threads as u64),
    };
    std::thread::scope(|scope| {
        let mut window = Window::open(databases, run)?;
        let workers: Vec<_> = (0..threads)
            .map(|number| {
                let instance = &instances[number % instances.len()];
                scope.spawn(move || Worker::new(shared, instance, number).work(limit))
            })
            .collect();
        if timed {
            window = measured_time(shared, databases, progress)?;
        } else {
            let phase = match run.workload.is_fresh() {
                true => Phase::Load,
                false => Phase::Timed,
            };
            while workers.iter().any(|worker| !worker.is_finished()) {
                std::thread::sleep(POLL);
                progress(phase, shared.done.load(Ordering::Relaxed) as f64 / total.max(1) as f64);
            }
            window.close(databases)?;
        }
        let tallies: Vec<Tally> = workers.into_iter().filter_map(|worker| worker.join().ok()).collect();
        if tallies.len() < threads {
            return Err(LabError::System("a thread of the benchmark panicked".into()).into());
        }
        Ok((tallies, window))
    })
}

/// Warms up, measures, and ends the work.
fn measured_time(
    shared: &Shared<'_>,
    databases: &Databases,
    progress: &mut dyn FnMut(Phase, f64),
) -> Result<Window, BenchError> {
    let work = &shared.run.work;
    // The stage ends also when an error is returned: the scope waits for the threads.
    let result = (|| {
        wait(shared, work.warmup_seconds, Phase::WarmUp, progress);
        let mut window = Window::open(databases, shared.run)?;
        let _ = shared
            .stage
            .compare_exchange(WARMING, MEASURING, Ordering::Relaxed, Ordering::Relaxed);
        wait(shared, work.seconds, Phase::Timed, progress);
        shared.stage.store(OVER, Ordering::Relaxed);
        window.close(databases)?;
        Ok(window)
    })();
    shared.stage.store(OVER, Ordering::Relaxed);
    result
}

/// Waits for `seconds`, or until the run is over.
fn wait(shared: &Shared<'_>, seconds: f64, phase: Phase, progress: &mut dyn FnMut(Phase, f64)) {
    let start = Instant::now();
    let mut reported = -1.0;
    loop {
        let left = seconds - start.elapsed().as_secs_f64();
        if left <= 0.0 || shared.stage.load(Ordering::Relaxed) == OVER || shared.cancel.load(Ordering::Relaxed) {
            return;
        }
        let done = 1.0 - left / seconds;
        if done - reported >= 0.02 {
            progress(phase, done);
            reported = done;
        }
        std::thread::sleep(POLL.min(Duration::from_secs_f64(left)));
    }
}

/// The measured time, and the CPU time and counts of RocksDB in it.
struct Window {
    start: Instant,
    user_seconds: f64,
    system_seconds: f64,
    seconds: f64,
    statistics: bool,
    tickers: BTreeMap<String, u64>,
}

impl Window {
    fn open(databases: &Databases, run: &Run) -> Result<Self, BenchError> {
        let tickers = databases.tickers(run.tuning.statistics);
        let usage = usage()?;
        Ok(Self {
            start: Instant::now(),
            user_seconds: usage.user_seconds,
            system_seconds: usage.system_seconds,
            seconds: 0.0,
            statistics: run.tuning.statistics,
            tickers,
        })
    }

    fn close(&mut self, databases: &Databases) -> Result<(), BenchError> {
        self.seconds = self.start.elapsed().as_secs_f64();
        let usage = usage()?;
        self.user_seconds = usage.user_seconds - self.user_seconds;
        self.system_seconds = usage.system_seconds - self.system_seconds;
        let mut tickers = databases.tickers(self.statistics);
        for (name, count) in tickers.iter_mut().filter(|(name, _)| !is_gauge(name)) {
            *count -= self.tickers.get(name).copied().unwrap_or(0).min(*count);
        }
        tickers.retain(|_, count| *count > 0);
        self.tickers = tickers;
        Ok(())
    }

    fn fill(self, outcome: &mut Outcome) {
        outcome.seconds = self.seconds;
        outcome.user_seconds = self.user_seconds;
        outcome.system_seconds = self.system_seconds;
        outcome.tickers = self.tickers;
    }
}

/// Returns whether a statistic of Leafpress is a gauge, not a counter.
fn is_gauge(name: &str) -> bool {
    const GAUGES: [&str; 8] = [
        ".capacity.bytes",
        ".held.bytes",
        ".entries",
        ".entries.compressed",
        ".raw.bytes",
        ".stored.bytes",
        ".ratio.pct",
        ".dictionary.bytes",
    ];
    name.starts_with("leafpress.secondary_cache.") && GAUGES.iter().any(|gauge| name.ends_with(gauge))
}

fn sum(tallies: Vec<Tally>) -> Result<Outcome, BenchError> {
    let mut outcome = Outcome::default();
    let mut histograms = Histograms::new()?;
    for tally in tallies {
        outcome.operations += tally.operations;
        outcome.reads += tally.reads;
        outcome.found += tally.found;
        outcome.writes += tally.writes;
        outcome.scans += tally.scans;
        outcome.scanned += tally.scanned;
        outcome.user_bytes += tally.user_bytes;
        outcome.mismatches += tally.mismatches;
        let room = 5_usize.saturating_sub(outcome.mismatch_examples.len());
        outcome.mismatch_examples.extend(tally.examples.into_iter().take(room));
        if let Some(one) = &tally.histograms {
            histograms.add(one);
        }
    }
    outcome.read_latency = histograms.summary(Kind::Read);
    outcome.write_latency = histograms.summary(Kind::Write);
    outcome.scan_latency = histograms.summary(Kind::Scan);
    Ok(outcome)
}
