//! Compares caches at the same total memory: a block cache alone, with RocksDB's `CompressedSecondaryCache` behind it,
//! and with ours.

mod document;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use serde::Serialize;

pub use document::document;

use crate::report::Row;
use crate::session::Session;
use crate::study::Event;
use crate::{BenchError, Cache, Outcome, Run, Shape, Tuning, Work, Workload};

/// Puts of a batch while loading.
const LOAD_BATCH: u64 = 100;

/// The plan of a comparison.
#[derive(Debug, Clone, Serialize)]
pub struct Plan {
    /// The databases.
    pub shape: Shape,
    /// RocksDB's settings, except for the cache.
    pub tuning: Tuning,
    /// The workload.
    pub work: Work,
    /// The benchmark.
    pub workload: Workload,
    /// The caches; the others are compared with the first.
    pub caches: Vec<Cache>,
    /// Runs of each, alternately.
    pub rounds: usize,
}

impl Plan {
    /// Runs that it takes.
    pub fn runs(&self) -> usize {
        1 + self.caches.len() * self.rounds
    }
}

/// The results of a comparison.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// The machine.
    pub host: String,
    /// The plan.
    pub plan: Plan,
    /// SST bytes of the databases.
    pub sst_bytes: u64,
    /// For each cache its rounds.
    pub rounds: Vec<Vec<Outcome>>,
    /// Every run, in order.
    pub runs: Vec<Row>,
    /// The user stopped it.
    pub cancelled: bool,
}

/// Loads the databases in `directory`, measures the caches alternately, and removes the databases. A cancelled
/// comparison keeps what it has.
///
/// # Errors
/// The errors of the plan, or of a run.
pub fn compare(
    plan: &Plan,
    directory: &Path,
    session: &mut Session,
    cancel: &AtomicBool,
    events: &mut dyn FnMut(Event<'_>),
) -> Result<Comparison, BenchError> {
    let mut comparison = Comparison {
        host: leafpress_lab::core::resources::host(),
        plan: plan.clone(),
        sst_bytes: 0,
        rounds: vec![Vec::new(); plan.caches.len()],
        runs: Vec::new(),
        cancelled: false,
    };
    let database = directory.join("loaded-0");
    let result = conduct(&mut comparison, &database, session, cancel, events);
    let _ = std::fs::remove_dir_all(&database);
    match result {
        Err(error) if error.is_cancelled() => comparison.cancelled = true,
        other => other?,
    }
    Ok(comparison)
}

fn conduct(
    comparison: &mut Comparison,
    database: &Path,
    session: &mut Session,
    cancel: &AtomicBool,
    events: &mut dyn FnMut(Event<'_>),
) -> Result<(), BenchError> {
    let plan = comparison.plan.clone();
    let mut load = request(&plan, database, Workload::FillSeq, &Cache::default());
    load.work.batch = LOAD_BATCH;
    // Loaded through the page cache, read as requested.
    load.tuning.use_direct_reads = false;
    comparison.sst_bytes = one(comparison, &load, session, cancel, events)?.sst_bytes;
    for _ in 0..plan.rounds {
        for (number, cache) in plan.caches.iter().enumerate() {
            let run = request(&plan, database, plan.workload, cache);
            let outcome = one(comparison, &run, session, cancel, events)?;
            comparison.rounds[number].push(outcome);
        }
    }
    Ok(())
}

fn request(plan: &Plan, database: &Path, workload: Workload, cache: &Cache) -> Run {
    let mut tuning = plan.tuning.clone();
    tuning.cache = cache.clone();
    Run {
        workload,
        directory: database.to_owned(),
        shape: plan.shape.clone(),
        tuning,
        work: plan.work.clone(),
        on_copy: workload.writes() && !workload.is_fresh(),
    }
}

fn one(
    comparison: &mut Comparison,
    run: &Run,
    session: &mut Session,
    cancel: &AtomicBool,
    events: &mut dyn FnMut(Event<'_>),
) -> Result<Outcome, BenchError> {
    events(Event::Started(run));
    let outcome = session.run(run, cancel, &mut |phase, done| events(Event::Progress(phase, done)))?;
    events(Event::Finished(run, &outcome));
    comparison.runs.push(Row::new(run, outcome.clone()));
    Ok(outcome)
}
