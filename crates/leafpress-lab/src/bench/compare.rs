//! Several runs in turn, each in its own process, and one table of them.
//!
//! With repetitions, rounds go through the runs in alternating order, so that a disturbance hits one repetition and not
//! one index.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;

use super::{Options, Outcome, Ratios, Report, Resident, Weight};
use crate::core::LabError;
use crate::harness::Phase;
use crate::harness::child::{Job, Launcher};
use crate::harness::other_work;
use crate::harness::weigh::RESIDENT;
use crate::report::paragraph::wrapped;
use crate::report::table::of_parts;

/// Note on the other memory figure.
const HELD: &str = "Held: the index's own accounting, which only Leafpress has. Both in bytes per record.";

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

/// The tables for people: their names, and the headings of their columns.
const PARTS: [(&str, &[&str]); 2] = [
    (
        "",
        &[
            "Mops/s",
            "range",
            "of the\nfastest",
            "p99\nus",
            "resident\nB/record",
            "held\nB/record",
        ],
    ),
    (
        "Other times and the CPU",
        &["p50\nus", "p99.9\nus", "max\nus", "load\ns", "cores\nbusy"],
    ),
];

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

/// [`compare`] with children started in another way.
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

    /// The repetition of median throughput.
    pub fn median(&self) -> Option<&Outcome> {
        self.report.as_ref()?.median()
    }
}

impl Options {
    /// The mix and the key choice in a few words.
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

    /// The table for people, with its notes.
    pub fn text(&self) -> String {
        let columns = self.columns();
        let mut rows: Vec<Vec<String>> = Vec::new();
        for (at, workload) in self.workloads().iter().enumerate() {
            if at > 0 {
                rows.push(columns.iter().map(|_| String::new()).collect());
            }
            let cells = |line| columns.iter().map(|column| self.cell(column, line)).collect();
            rows.extend(self.of(workload).map(cells));
        }
        let words = columns.iter().take_while(|column| !column.is_figure).count();
        let is_of = |column: &Column, part: &[&str]| part.contains(&column.heading.as_str());
        let parts = PARTS.map(|(name, headings)| {
            let at = (words..columns.len()).filter(|at| is_of(&columns[*at], headings));
            (name, at.collect::<Vec<usize>>())
        });
        let parts = parts.each_ref().map(|(name, columns)| (*name, columns.as_slice()));
        let table = of_parts(columns.iter().map(|column| &column.heading), rows, words, &parts);
        let notes = self.notes();
        let notes = notes.iter().map(|note| wrapped(note, "", "")).collect::<String>();
        format!("{table}\n{}", notes.trim_end())
    }

    /// Notes for the reader of the table.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = vec![match self.lines.as_slice() {
            [_] => format!("{RESIDENT} {HELD}"),
            _ => format!("Each index ran in its own process. {RESIDENT} {HELD}"),
        }];
        for line in &self.lines {
            let name = format!("{} in {}", line.options.input.short_name(), line.options.workload());
            notes.extend(line.failures.iter().map(|failure| format!("failed: {name}: {failure}")));
            let Some(outcome) = line.median() else { continue };
            let total = outcome.total();
            if total.succeeded < total.completed {
                let share = total.succeeded as f64 / total.completed as f64 * 100.0;
                notes.push(format!("{name}: {share:.2}% of the operations succeeded"));
            }
            if let Some(Resident::Unknown(why)) = outcome.load.as_ref().map(|load| &load.resident) {
                notes.push(format!("{name}: no resident memory: {why}"));
            }
            if outcome.scan_errors.scans > 0 {
                let example = outcome.scan_errors.example.as_deref().unwrap_or_default();
                notes.push(format!("WRONG SCANS: {name}: {}; {example}", outcome.scan_errors.scans));
            }
            if let Some(load) = outcome.load.as_ref().filter(|load| load.wrong_values > 0) {
                notes.push(format!(
                    "{name}: {} records were read back with a wrong value",
                    load.wrong_values
                ));
            }
        }
        if self.cancelled {
            notes.push("cancelled: only finished runs are included".into());
        }
        notes
    }

    /// Caveats of the figures, a sentence or two each.
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
        cautions.extend(other_work::caution(busiest, "bytes per record"));
        cautions
    }

    /// Columns that have a figure somewhere.
    pub(super) fn columns(&self) -> Vec<Column> {
        let all = [
            Column::words("workload", |line, _| Some(line.options.workload())),
            Column::words("index", |line, _| Some(line.options.input.short_name())),
            Column::figure("Mops/s", |outcome| Some(outcome.throughput() / 1e6), 3),
            Column::words("range", |line, _| {
                let report = line.report.as_ref().filter(|report| report.outcomes.len() > 1)?;
                report.throughput().map(|spread| format!("{:.1}%", spread.range_pct()))
            })
            .right(),
            Column::words("of the\nfastest", |line, comparison| {
                if comparison.lines.len() == 1 {
                    return None;
                }
                let mine = line.median()?.throughput();
                let workload = line.options.workload();
                let fastest = comparison
                    .of(&workload)
                    .filter_map(|line| Some(line.median()?.throughput()));
                let fastest = fastest.reduce(f64::max).filter(|fastest| *fastest > 0.0)?;
                Some(format!("{:.0}%", mine / fastest * 100.0))
            })
            .right(),
            Column::figure("p50\nus", |outcome| latency(outcome, |l| l.p50_ns), 2),
            Column::figure("p99\nus", |outcome| latency(outcome, |l| l.p99_ns), 2),
            Column::figure("p99.9\nus", |outcome| latency(outcome, |l| l.p999_ns), 2),
            Column::figure("max\nus", |outcome| latency(outcome, |l| l.max_ns), 0),
            Column::figure("cores\nbusy", |outcome| Some(outcome.cores()), 2),
            Column::figure("load\ns", |outcome| Some(outcome.load.as_ref()?.milliseconds / 1e3), 2),
            Column::figure(
                "resident\nB/record",
                |outcome| per_record(outcome, |load| load.resident.bytes()),
                0,
            ),
            Column::figure(
                "held\nB/record",
                |outcome| per_record(outcome, |load| load.held_bytes),
                0,
            ),
        ];
        let several = self.workloads().len() > 1;
        all.into_iter()
            .filter(|column| {
                if column.heading == "workload" {
                    return several;
                }
                column.heading == "index" || self.lines.iter().any(|line| (column.text)(line, self).is_some())
            })
            .collect()
    }

    pub(super) fn cell(&self, column: &Column, line: &Line) -> String {
        (column.text)(line, self).unwrap_or_else(|| "-".into())
    }
}

pub(super) fn per_record(outcome: &Outcome, bytes: impl Fn(&super::Load) -> Option<u64>) -> Option<f64> {
    let load = outcome.load.as_ref().filter(|load| load.records > 0)?;
    Some(bytes(load)? as f64 / load.records as f64)
}

fn latency(outcome: &Outcome, quantile: impl Fn(&crate::core::latency::Latency) -> u64) -> Option<f64> {
    Some(quantile(outcome.latencies.as_ref()?.all.as_ref()?) as f64 / 1e3)
}

type CellText = Box<dyn Fn(&Line, &Comparison) -> Option<String>>;

/// A column of the table.
pub(super) struct Column {
    pub heading: String,
    pub is_figure: bool,
    text: CellText,
}

impl Column {
    fn words(heading: &str, text: impl Fn(&Line, &Comparison) -> Option<String> + 'static) -> Self {
        Self {
            heading: heading.into(),
            is_figure: false,
            text: Box::new(text),
        }
    }

    fn figure(heading: &str, figure: impl Fn(&Outcome) -> Option<f64> + 'static, decimals: usize) -> Self {
        Self::words(heading, move |line, _| {
            figure(line.median()?).map(|figure| format!("{figure:.decimals$}"))
        })
        .right()
    }

    fn right(mut self) -> Self {
        self.is_figure = true;
        self
    }
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
