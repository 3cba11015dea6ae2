//! Several runs in turn, each in its own process, and one table of them.
//!
//! With repetitions, rounds go through the runs in alternating order, so that a disturbance hits one repetition and not
//! one index.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;

use super::{Options, Outcome, Ratios, Report, Weight};
use crate::core::LabError;
use crate::harness::Phase;
use crate::harness::child::{Job, Launcher};
use crate::harness::machine_load;

/// One run of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// The options of the run.
    pub options: Options,
    /// Its measurements; `None` when no repetition finished.
    pub report: Option<Report>,
    /// Why a repetition failed, in one line each.
    pub failures: Vec<String>,
}

/// A comparison of runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The runs, in the order they were given.
    pub lines: Vec<Line>,
    /// Whether it was cancelled before the last one.
    pub cancelled: bool,
}

/// Runs each of `runs`; their output goes to logs in `log_dir`. `progress` receives the number of the child, the number
/// of children, its options, and what it is doing.
///
/// # Errors
/// Options out of bounds, a `log_dir` that cannot be written. A failed run is reported in its line.
pub fn compare(
    runs: &[Options],
    log_dir: &Path,
    cancel: &Arc<AtomicBool>,
    progress: &mut dyn FnMut(usize, usize, &Options, Phase, f64),
) -> Result<Comparison, LabError> {
    compare_with(&Launcher::current_exe()?, runs, log_dir, cancel, progress)
}

/// Compares as [`compare`] does, with children started in another way.
///
/// # Errors
/// As [`compare`].
pub fn compare_with(
    launcher: &Launcher,
    runs: &[Options],
    log_dir: &Path,
    cancel: &Arc<AtomicBool>,
    progress: &mut dyn FnMut(usize, usize, &Options, Phase, f64),
) -> Result<Comparison, LabError> {
    for options in runs {
        options.validate()?;
    }
    let mut comparison = Comparison {
        lines: runs
            .iter()
            .map(|options| Line {
                options: options.clone(),
                report: None,
                failures: Vec::new(),
            })
            .collect(),
        cancelled: false,
    };
    let rounds = runs.iter().map(|options| options.repeat).max().unwrap_or(0);
    let mut order = Vec::new();
    for round in 0..rounds {
        let of_round = (0..runs.len()).filter(|run| round < runs[*run].repeat);
        if round.is_multiple_of(2) {
            order.extend(of_round);
        } else {
            order.extend(of_round.rev());
        }
    }
    // Repetitions load alike.
    let mut weights: Vec<Option<Weight>> = vec![None; runs.len()];
    for (number, &run) in order.iter().enumerate() {
        let mut once = runs[run].clone();
        once.repeat = 1;
        let log = log_dir.join(format!("bench-{number:03}.log"));
        let request = Job {
            name: super::RUN,
            request: &once,
        };
        let mut phases = |phase, done| progress(number, order.len(), &once, phase, done);
        match launcher.call::<_, Report>(&request, None, &log, cancel, &mut phases) {
            Ok(mut report) => {
                for outcome in &mut report.outcomes {
                    let log = log.with_extension("weigh.log");
                    let weight = weights[run]
                        .take()
                        .or_else(|| Weight::of(launcher, &once, outcome, &log, cancel));
                    if let Some(weight) = &weight {
                        weight.put_into(outcome);
                    }
                    weights[run] = weight;
                }
                comparison.lines[run].add(report);
            }
            Err(LabError::Cancelled) => {
                comparison.cancelled = true;
                break;
            }
            Err(error) => comparison.lines[run].failures.push(error.to_string()),
        }
    }
    Ok(comparison)
}

impl Line {
    fn add(&mut self, report: Report) {
        match &mut self.report {
            None => {
                let options = self.options.clone();
                self.report = Some(Report { options, ..report });
            }
            Some(so_far) => so_far.outcomes.extend(report.outcomes),
        }
    }

    /// Returns the repetition of median throughput.
    pub fn median(&self) -> Option<&Outcome> {
        self.report.as_ref()?.median()
    }
}

impl Options {
    /// Returns the mix and the key choice in a few words.
    pub fn workload(&self) -> String {
        match self.ycsb {
            Some(workload) => format!("YCSB {workload}"),
            None => self.ratios.in_words(),
        }
    }
}

impl Ratios {
    fn in_words(&self) -> String {
        let shares = [
            ("read", self.read),
            ("insert", self.insert),
            ("update", self.update),
            ("remove", self.remove),
            ("scan", self.scan),
            ("read-modify-write", self.read_modify_write),
        ];
        let words = shares.iter().filter(|(_, share)| *share > 0.0);
        let words: Vec<_> = words
            .map(|(name, share)| format!("{}% {name}", (share * 1e6).round() / 1e4))
            .collect();
        words.join(", ")
    }
}

impl Comparison {
    /// The workloads, in order, each once.
    pub(super) fn workloads(&self) -> Vec<String> {
        let mut workloads = Vec::new();
        for line in &self.lines {
            let workload = line.options.workload();
            if !workloads.contains(&workload) {
                workloads.push(workload);
            }
        }
        workloads
    }

    /// The lines of a workload.
    pub(super) fn of<'c>(&'c self, workload: &'c str) -> impl Iterator<Item = &'c Line> {
        self.lines
            .iter()
            .filter(move |line| line.options.workload() == workload)
    }

    /// Returns the caveats of the figures, a sentence or two each.
    pub fn cautions(&self) -> Vec<String> {
        let reports = || self.lines.iter().filter_map(|line| line.report.as_ref());
        let mut cautions: Vec<String> = Vec::new();
        for repeated in reports().filter_map(|report| report.repeated_values.as_ref()) {
            if !cautions.contains(repeated) {
                cautions.push(repeated.clone());
            }
        }
        let outcomes = reports().flat_map(|report| &report.outcomes);
        let busiest = outcomes.filter_map(|outcome| outcome.cpu.other_cores).reduce(f64::max);
        cautions.extend(machine_load::caution(busiest, "bytes per record"));
        cautions
    }
}

pub(super) fn per_record(outcome: &Outcome, bytes: impl Fn(&super::Load) -> Option<u64>) -> Option<f64> {
    let load = outcome.load.as_ref().filter(|load| load.records > 0)?;
    Some(bytes(load)? as f64 / load.records as f64)
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
