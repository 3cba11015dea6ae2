//! Runs the caches in turn, each in its own process.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::job::Task;
use super::outcome::{ConfiguredCapacity, Fill, Line, Measured, Outcome};
use super::workload::Workload;
use super::{EngineSpec, FILL, MEASURE, Options, Work, capacity_search, mrc};
use crate::core::{LabError, resources};
use crate::harness::Phase;
use crate::harness::child::{Job, Launcher};

/// Progress of a comparison.
#[derive(Debug)]
pub enum Step<'s> {
    /// Progress of the curves, 0 to 1. They precede all caches.
    Curves(f64),
    /// A scenario of a figure, of this number from 0, starts; runs are then counted anew.
    Scenario(usize, &'s str),
    /// The run of this number, from 0, starts.
    Started(usize, &'s EngineSpec),
    /// A fill, of this number from 0, of the search for a capacity.
    Fill(usize),
    /// The phase of the cache's process, and its progress, 0 to 1.
    Progress(Phase, f64),
    /// The run ended, well or not.
    Finished(&'s Line),
}

/// Compares the caches; output of their processes goes to files in `logs`. A failed cache is not an error but a
/// [`Line`] that says so.
///
/// # Errors
/// Options out of bounds, unusable data, [`LabError::Io`] when a log cannot be written.
pub fn run_caches(
    options: &Options,
    logs: &Path,
    cancel: &AtomicBool,
    steps: &mut dyn FnMut(Step<'_>),
) -> Result<Outcome, LabError> {
    run_caches_with(&Launcher::current_exe()?, options, logs, cancel, steps)
}

/// Runs as [`run_caches`] does, with processes of the caller's own.
///
/// # Errors
/// As [`run_caches`].
pub fn run_caches_with(
    launcher: &Launcher,
    options: &Options,
    logs: &Path,
    cancel: &AtomicBool,
    steps: &mut dyn FnMut(Step<'_>),
) -> Result<Outcome, LabError> {
    run_knowing(&mut KnownCapacities::default(), launcher, options, logs, cancel, steps)
}

/// KnownCapacities that were found: with the same memory and records they need not be searched again.
#[derive(Debug, Default)]
pub(crate) struct KnownCapacities(Vec<(EngineSpec, u64, Work, u64)>);

impl KnownCapacities {
    fn find(&self, engine: &EngineSpec, options: &Options) -> Option<u64> {
        let known = |entry: &&(EngineSpec, u64, Work, u64)| {
            (entry.0, entry.1) == (*engine, options.memory_bytes) && entry.2 == options.work
        };
        self.0.iter().rev().find(known).map(|entry| entry.3)
    }

    fn note(&mut self, engine: EngineSpec, options: &Options, capacity: &ConfiguredCapacity) {
        self.0
            .push((engine, options.memory_bytes, options.work.clone(), capacity.bytes));
    }
}

/// [`run_caches_with`], with capacities that were found before.
pub(crate) fn run_knowing(
    capacities: &mut KnownCapacities,
    launcher: &Launcher,
    options: &Options,
    logs: &Path,
    cancel: &AtomicBool,
    steps: &mut dyn FnMut(Step<'_>),
) -> Result<Outcome, LabError> {
    options.validate()?;
    let workload = Workload::load(options)?;
    let mut outcome = Outcome {
        options: options.clone(),
        work: workload.description.clone(),
        unused_fields: workload.unused.clone(),
        repeated_values: workload.repeated_values(),
        keys: workload.keys(),
        record_bytes: workload.record_bytes(),
        host: resources::host(),
        lines: Vec::with_capacity(options.engines.len()),
        mrc: None,
        cancelled: false,
    };
    // An unwritable directory is reported before anything takes time.
    let directory = if options.engines.is_empty() {
        logs.parent()
    } else {
        Some(logs)
    };
    if let Some(directory) = directory {
        std::fs::create_dir_all(directory).map_err(|e| LabError::io(directory, e))?;
    }
    if let Some(curves) = &options.mrc {
        let mut progress = |done| steps(Step::Curves(done));
        outcome.mrc = Some(mrc::run(&workload, options, curves, cancel, &mut progress)?);
    }
    drop(workload);
    if options.engines.is_empty() {
        return Ok(outcome);
    }
    for (number, engine) in options.engines.iter().enumerate() {
        steps(Step::Started(number, engine));
        let mut line = Line {
            engine: *engine,
            capacity: None,
            measured: None,
            failure: None,
        };
        let children = Children {
            launcher,
            options,
            engine,
            logs,
            number,
            keys: outcome.keys,
            known_capacity: capacities.find(engine, options),
            cancel,
        };
        match children.run(&mut line.capacity, steps) {
            Ok(measured) => {
                line.measured = Some(measured);
                if let Some(capacity) = &line.capacity {
                    capacities.note(*engine, options, capacity);
                }
            }
            Err(LabError::Cancelled) => {
                outcome.cancelled = true;
                break;
            }
            Err(e @ LabError::Io { .. }) => return Err(e),
            Err(e) => line.failure = Some(e.to_string()),
        }
        steps(Step::Finished(&line));
        outcome.lines.push(line);
    }
    Ok(outcome)
}

/// The means to run one cache.
struct Children<'c> {
    launcher: &'c Launcher,
    options: &'c Options,
    engine: &'c EngineSpec,
    logs: &'c Path,
    number: usize,
    /// Keys in the backend.
    keys: u64,
    /// The capacity found for the same memory and records: the run itself shows whether it fits.
    known_capacity: Option<u64>,
    cancel: &'c AtomicBool,
}

impl Children<'_> {
    fn run(
        &self,
        found: &mut Option<ConfiguredCapacity>,
        steps: &mut dyn FnMut(Step<'_>),
    ) -> Result<Measured, LabError> {
        let memory_bytes = self.options.memory_bytes;
        if self.engine.bounds_memory() {
            *found = Some(ConfiguredCapacity {
                bytes: memory_bytes,
                fills: Vec::new(),
                runs: Vec::new(),
            });
            return self.call(MEASURE, "run", memory_bytes, steps);
        }
        if let Some(bytes) = self.known_capacity {
            let capacity = ConfiguredCapacity {
                bytes,
                fills: Vec::new(),
                runs: Vec::new(),
            };
            return self.run_within(found.insert(capacity), steps);
        }
        let mut number = 0;
        let capacity = capacity_search::search(memory_bytes, |capacity_bytes| {
            steps(Step::Fill(number));
            number += 1;
            self.call::<Fill>(FILL, &format!("fill-{number}"), capacity_bytes, steps)
        })?;
        self.run_within(found.insert(capacity), steps)
    }

    /// Runs a cache under its capacity, and again under a corrected one while the process grew by too much or too
    /// little.
    fn run_within(
        &self,
        capacity: &mut ConfiguredCapacity,
        steps: &mut dyn FnMut(Step<'_>),
    ) -> Result<Measured, LabError> {
        let memory_bytes = self.options.memory_bytes;
        let mut all: Vec<Measured> = Vec::new();
        let mut capacity_bytes = capacity.bytes;
        for number in 1..=capacity_search::MAX_RUNS {
            let measured: Measured = self.call(MEASURE, &format!("run-{number}"), capacity_bytes, steps)?;
            let run = Fill {
                capacity_bytes,
                growth_bytes: measured.peak_growth_bytes,
                holds_all: measured.holds_all(self.keys),
            };
            capacity.runs.push(run);
            all.push(measured);
            match capacity_search::correction(memory_bytes, &run) {
                Some(corrected) => capacity_bytes = corrected,
                None => break,
            }
        }
        // There is at least one.
        let best = capacity_search::best_run(memory_bytes, &capacity.runs).unwrap_or(0);
        capacity.bytes = capacity.runs[best].capacity_bytes;
        let mut taken = all.swap_remove(best);
        // Wrong values count, whichever run is used.
        for other in all {
            taken.mismatches.add(other.mismatches);
        }
        Ok(taken)
    }

    fn call<T: serde::de::DeserializeOwned>(
        &self,
        name: &'static str,
        what: &str,
        capacity_bytes: u64,
        steps: &mut dyn FnMut(Step<'_>),
    ) -> Result<T, LabError> {
        let request = Job {
            name,
            request: Task {
                options: self.options.clone(),
                engine: *self.engine,
                capacity_bytes,
            },
        };
        let log = self.logs.join(format!("cache-{}-{what}.log", self.number));
        let mut progress = |phase, done| steps(Step::Progress(phase, done));
        let answer = self.launcher.call(&request, None, &log, self.cancel, &mut progress);
        if let Some(disk) = self.options.disk.as_ref().filter(|_| self.engine.needs_disk()) {
            // A process that was killed cannot clean up.
            let _ = std::fs::remove_dir_all(disk.directory());
        }
        answer
    }
}
