//! One benchmark: databases, threads that warm up and are measured together, and the cost of the measured time.
//!
//! The laboratory's driver runs the threads. Between the warm-up and the measured time they wait for the last operation
//! of each, usually less than a millisecond: too short a pause for compactions to catch up in.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use leafpress_lab::core::keys::Chooser;
use leafpress_lab::core::latency::{Histograms, Kind};
use leafpress_lab::core::resources::{peak_resident_kib, usage};
use leafpress_lab::driver::{Observer, Plan, UNTIL_DONE, drive};
use leafpress_lab::{LabError, Phase};

use crate::database::Databases;
use crate::options::Run;
use crate::values::Values;
use crate::worker::{Instance, Shared, Tally, Worker};
use crate::{BenchError, Outcome, Workload};

/// Interval of progress reports.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

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
        _ => measure(run, &values, &databases, cancel, progress)?,
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

fn measure(
    run: &Run,
    values: &Values,
    databases: &Databases,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(Phase, f64),
) -> Result<Outcome, BenchError> {
    let (work, shape) = (&run.work, &run.shape);
    let is_bounded = run.workload.is_bounded();
    let is_timed = work.seconds > 0.0 && !is_bounded;
    let instances: Vec<Instance<'_>> = (0_u64..)
        .zip(&databases.instances)
        .map(|(number, database)| Instance {
            database,
            first_piece: number * shape.num,
            chooser: Chooser::new(work.distribution, shape.num, shape.seed.wrapping_add(number)),
            next_insert: AtomicU64::new(shape.num),
        })
        .collect();
    // Filling and reading in order are one thread's work for each database.
    let threads = instances.len() * if is_bounded { 1 } else { work.threads };
    let limit = (!is_timed).then(|| work.reads.filter(|_| !is_bounded).unwrap_or(shape.num));
    let shared = Shared {
        run,
        values,
        limit: limit.unwrap_or(u64::MAX),
        complete: databases.complete,
        done: AtomicU64::new(0),
    };
    let plan = Plan {
        warm_up: (is_timed && work.warmup_seconds > 0.0).then(|| Duration::from_secs_f64(work.warmup_seconds)),
        timed: if is_timed {
            Duration::from_secs_f64(work.seconds)
        } else {
            UNTIL_DONE
        },
        cancel,
        panicked: &|_| LabError::System("a thread of the benchmark panicked".into()).into(),
    };
    let mut window = Window {
        shared: &shared,
        databases,
        total: limit.map(|limit| limit.saturating_mul(threads as u64)),
        tickers: BTreeMap::new(),
        progress,
    };
    let make = |number, instance| Worker::new(&shared, instance, number);
    let parts = instances.iter().cycle().take(threads).collect();
    let measured = drive(&plan, parts, make, &mut window)?;
    Ok(Outcome {
        seconds: measured.seconds,
        user_seconds: measured.cpu.user_seconds,
        system_seconds: measured.cpu.system_seconds,
        tickers: window.tickers,
        cancelled: measured.interrupted,
        ..sum(measured.done)?
    })
}

/// Reports progress, and reads RocksDB's counts before and after the measured time.
struct Window<'w> {
    shared: &'w Shared<'w>,
    databases: &'w Databases,
    /// Operations of all threads, if the run has no length.
    total: Option<u64>,
    tickers: BTreeMap<String, u64>,
    progress: &'w mut dyn FnMut(Phase, f64),
}

impl Observer for Window<'_> {
    fn begin(&mut self, stage: Phase) {
        if stage == Phase::Timed {
            self.tickers = self.databases.tickers(self.shared.run.tuning.statistics);
        }
    }

    fn look(&mut self, stage: Phase, elapsed: Duration) -> Option<Duration> {
        let run = self.shared.run;
        let (phase, done, all) = match self.total {
            Some(total) => {
                let phase = if run.workload.is_fresh() { Phase::Load } else { stage };
                (phase, self.shared.done.load(Ordering::Relaxed) as f64, total as f64)
            }
            None if stage == Phase::WarmUp => (stage, elapsed.as_secs_f64(), run.work.warmup_seconds),
            None => (stage, elapsed.as_secs_f64(), run.work.seconds),
        };
        (self.progress)(phase, (done / all).min(1.0));
        Some(PROGRESS_EVERY)
    }

    fn end(&mut self, stage: Phase) {
        if stage == Phase::Timed {
            let before = std::mem::take(&mut self.tickers);
            self.tickers = self.databases.tickers(self.shared.run.tuning.statistics);
            for (name, count) in self.tickers.iter_mut().filter(|(name, _)| !is_gauge(name)) {
                *count -= before.get(name).copied().unwrap_or(0).min(*count);
            }
            self.tickers.retain(|_, count| *count > 0);
        }
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

fn sum(of_threads: Vec<(Tally, Histograms)>) -> Result<Outcome, BenchError> {
    let mut outcome = Outcome::default();
    let mut histograms = Histograms::new()?;
    for (tally, of_thread) in of_threads {
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
        histograms.add(&of_thread);
    }
    outcome.read_latency = histograms.summary(Kind::Read);
    outcome.write_latency = histograms.summary(Kind::Write);
    outcome.scan_latency = histograms.summary(Kind::Scan);
    Ok(outcome)
}
