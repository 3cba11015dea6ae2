//! A study's runs, in order.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use serde::Serialize;

use super::ladder::{self, Ladder, Rung};
use super::{Access, Cell, Event, Pair, Plan, median};
use crate::report::Row;
use crate::session::Session;
use crate::{BenchError, Compression, Outcome, Run, Workload};

/// Puts of a batch while loading.
const LOAD_BATCH: u64 = 100;

/// The results of a study.
#[derive(Debug, Clone, Serialize)]
pub struct Study {
    /// The study's plan.
    pub plan: Plan,
    /// Compressions by access, the baseline not among them.
    pub cells: Vec<Cell>,
    /// Every run, in order.
    pub runs: Vec<Row>,
    /// Compressions that failed, and why.
    pub failures: Vec<(String, String)>,
    /// The user stopped it.
    pub cancelled: bool,
}

/// Loads the databases in `directory`, measures, and removes them. A compression that fails is left out; a cancelled
/// study keeps what it has.
///
/// # Errors
/// The errors of the plan, or of the baseline.
pub fn measure(
    plan: &Plan,
    directory: &Path,
    session: &mut Session,
    cancel: &AtomicBool,
    events: &mut dyn FnMut(Event<'_>),
) -> Result<Study, BenchError> {
    let mut conductor = Conductor {
        plan,
        directory,
        session,
        cancel,
        events,
        study: Study {
            plan: plan.clone(),
            cells: Vec::new(),
            runs: Vec::new(),
            failures: Vec::new(),
            cancelled: false,
        },
        left_out: HashSet::new(),
    };
    let result = conductor.conduct();
    let mut study = conductor.study;
    for (number, _) in plan.all().enumerate() {
        let _ = std::fs::remove_dir_all(database(directory, number));
    }
    match result {
        Ok(()) => Ok(study),
        Err(error) if error.is_cancelled() => {
            study.cancelled = true;
            Ok(study)
        }
        Err(error) => Err(error),
    }
}

fn database(directory: &Path, number: usize) -> PathBuf {
    directory.join(format!("loaded-{number}"))
}

struct Conductor<'c> {
    plan: &'c Plan,
    directory: &'c Path,
    session: &'c mut Session,
    cancel: &'c AtomicBool,
    events: &'c mut dyn FnMut(Event<'_>),
    study: Study,
    left_out: HashSet<usize>,
}

impl Conductor<'_> {
    fn conduct(&mut self) -> Result<(), BenchError> {
        let sizes = self.load()?;
        for access in self.plan.accesses.clone() {
            let first = self.study.cells.len();
            for (number, compression) in self.plan.compressions.iter().enumerate() {
                self.study.cells.push(Cell {
                    compression: compression.clone(),
                    access,
                    loaded_bytes: sizes[number + 1],
                    baseline_bytes: sizes[0],
                    pairs: Vec::new(),
                    ladder: None,
                });
            }
            for round in 0..self.plan.rounds {
                for number in 1..=self.plan.compressions.len() {
                    let threads = self.plan.threads(access);
                    if let Some(pair) = self.pair(access, number, threads, round)? {
                        self.study.cells[first + number - 1].pairs.push(pair);
                    }
                }
            }
            if self.plan.ladder {
                for number in 1..=self.plan.compressions.len() {
                    self.climb(access, number, first + number - 1)?;
                }
            }
        }
        Ok(())
    }

    /// Loads every compression's databases; their bytes.
    fn load(&mut self) -> Result<Vec<u64>, BenchError> {
        let mut sizes = Vec::new();
        for (number, compression) in self.plan.all().cloned().collect::<Vec<_>>().into_iter().enumerate() {
            let mut run = self.request(Workload::FillSeq, number, &compression, 1);
            run.work.batch = LOAD_BATCH;
            let outcome = self.attempt(&run, number)?;
            sizes.push(outcome.map_or(0, |outcome| outcome.sst_bytes));
        }
        Ok(sizes)
    }

    fn request(&self, workload: Workload, number: usize, compression: &Compression, threads: usize) -> Run {
        let mut shape = self.plan.shape.clone();
        shape.compression = compression.clone();
        let mut work = self.plan.work.clone();
        work.threads = threads;
        Run {
            workload,
            directory: database(self.directory, number),
            shape,
            tuning: self.plan.tuning.clone(),
            work,
            on_copy: workload == Workload::ReadRandomWriteRandom,
        }
    }

    /// Runs a benchmark, whose failure does not end the study unless it is the baseline's.
    fn attempt(&mut self, run: &Run, number: usize) -> Result<Option<Outcome>, BenchError> {
        if self.left_out.contains(&number) {
            return Ok(None);
        }
        (self.events)(Event::Started(run));
        let events = &mut self.events;
        let outcome = self.session.run(run, self.cancel, &mut |phase, done| {
            events(Event::Progress(phase, done))
        });
        match outcome {
            Ok(outcome) => {
                (self.events)(Event::Finished(run, &outcome));
                self.study.runs.push(Row::new(run, outcome.clone()));
                Ok(Some(outcome))
            }
            Err(error) if error.is_cancelled() || number == 0 => Err(error),
            Err(error) => {
                (self.events)(Event::Failed(run, &error));
                self.left_out.insert(number);
                let reason = format!("{}: {error}", run.workload);
                self.study.failures.push((run.shape.compression.to_string(), reason));
                Ok(None)
            }
        }
    }

    /// Measures the baseline with all its threads and a compression with `threads`, in direct succession, in
    /// alternating order.
    fn pair(
        &mut self,
        access: Access,
        number: usize,
        threads: usize,
        round: usize,
    ) -> Result<Option<Pair>, BenchError> {
        let all = self.plan.threads(access);
        let workload = access.workload();
        let baseline = self.request(workload, 0, &self.plan.baseline.clone(), all);
        let other = self.request(workload, number, &self.plan.compressions[number - 1].clone(), threads);
        if self.left_out.contains(&number) {
            return Ok(None);
        }
        let (baseline, other) = if round.is_multiple_of(2) {
            let baseline = self.attempt(&baseline, 0)?;
            (baseline, self.attempt(&other, number)?)
        } else {
            let other = self.attempt(&other, number)?;
            (self.attempt(&baseline, 0)?, other)
        };
        Ok(baseline.zip(other).map(|(baseline, other)| Pair { baseline, other }))
    }

    /// Raises a compression's threads until its throughput is the baseline's.
    fn climb(&mut self, access: Access, number: usize, cell: usize) -> Result<(), BenchError> {
        let mut ladder = Ladder::default();
        let all = self.plan.threads(access);
        for threads in ladder::rungs(all) {
            let mut pairs = Vec::new();
            for round in 0..self.plan.rounds {
                pairs.extend(self.pair(access, number, threads, round)?);
            }
            ladder.rungs.extend(rung(threads, &pairs));
            if ladder.reaches() {
                break;
            }
        }
        if !ladder.reaches() {
            ladder.rungs.extend(rung(all, &self.study.cells[cell].pairs));
        }
        self.study.cells[cell].ladder = (!ladder.rungs.is_empty()).then_some(ladder);
        Ok(())
    }
}

fn rung(threads: usize, pairs: &[Pair]) -> Option<Rung> {
    let of =
        |figure: fn(&Outcome) -> f64| median(pairs.iter().map(|pair| figure(&pair.other) / figure(&pair.baseline)));
    Some(Rung {
        threads,
        throughput: of(Outcome::throughput)?,
        cores: of(Outcome::cores)?,
    })
}
