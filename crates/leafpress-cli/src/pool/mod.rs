//! `leafpress pool`: parses Tyche's command line, runs the page pool benchmark, prints Tyche's report and tables,
//! writes files.

mod args;
mod progress;

use std::sync::atomic::AtomicBool;

use leafpress_lab::LabError;
use leafpress_lab::pool::{self, Options, Step, Sweep, text};

pub use self::args::PoolArgs;
use self::args::failure;
use self::progress::Reporter;
use crate::failure::Failure;
use crate::{interrupt, output};

/// Runs the benchmark.
pub fn run(args: &PoolArgs) -> Result<(), Failure> {
    let runs = args.plan()?;
    let baseline = args.baseline(&runs);
    if let Some(out) = &args.out {
        output::make_directory("out", out)?;
    }
    let cancel = interrupt::flag()?;
    let mut reporter = Reporter::new(args.talk());
    let sweep = match runs.as_slice() {
        [one] => alone(baseline.as_ref(), one, &cancel, &mut reporter),
        several => {
            let all: Vec<_> = baseline.iter().chain(several).cloned().collect();
            in_turn(&all, all.len(), &cancel, &mut reporter)
        }
    };
    reporter.finish();
    let sweep = sweep?;
    let report = pool::document(&sweep, runs.len() == 1);
    let shown = output::show(&report, &crate::command_line(), args.out.as_deref());
    judge(&sweep, runs.len() + usize::from(baseline.is_some()))?;
    shown
}

/// Runs one run in this process, after the one that it is compared with.
fn alone(
    baseline: Option<&Options>,
    options: &Options,
    cancel: &AtomicBool,
    reporter: &mut Reporter,
) -> Result<Sweep, Failure> {
    let total = 1 + usize::from(baseline.is_some());
    let mut lines = Vec::new();
    if let Some(baseline) = baseline {
        lines = in_turn(std::slice::from_ref(baseline), total, cancel, reporter)?.lines;
    }
    reporter.start(total - 1, total, text::name(options));
    let report = pool::run(options, cancel, &mut |event| reporter.show(&event));
    lines.extend(report.map(Sweep::of).map_err(|e| failure(&e))?.lines);
    Ok(Sweep {
        lines,
        cancelled: false,
    })
}

/// Runs several of `total`, each in its own process.
fn in_turn(runs: &[Options], total: usize, cancel: &AtomicBool, reporter: &mut Reporter) -> Result<Sweep, Failure> {
    let no_directory = |e| Failure::failed(format!("no temporary directory: {e}"));
    let logs = tempfile::tempdir().map_err(no_directory)?;
    // A run that is killed cannot clean up; this process does.
    let scratch = match runs.iter().find_map(|run| run.scratch.as_ref()) {
        Some(parent) => tempfile::tempdir_in(parent).map_err(|source| {
            let path = parent.clone();
            failure(&LabError::Io { path, source })
        })?,
        None => tempfile::tempdir().map_err(no_directory)?,
    };
    let runs: Vec<_> = runs
        .iter()
        .map(|run| Options {
            scratch: Some(scratch.path().to_owned()),
            ..run.clone()
        })
        .collect();
    let sweep = pool::sweep(&runs, logs.path(), cancel, &mut |step| match step {
        Step::Started(number, options) => reporter.start(number, total, text::name(options)),
        Step::Progress(phase, done) => reporter.advance(phase, done),
        Step::Finished(line) => reporter.finished(line),
    });
    let sweep = sweep.map_err(|e| failure(&e))?;
    if sweep.cancelled && sweep.lines.is_empty() {
        return Err(failure(&LabError::Cancelled));
    }
    Ok(sweep)
}

/// Returns an error if any run cannot be trusted.
fn judge(sweep: &Sweep, wanted: usize) -> Result<(), Failure> {
    let reports = || sweep.lines.iter().filter_map(|line| line.report.as_ref());
    let wrong = reports().any(|report| report.outcome.checks.wrong > 0 || report.outcome.counters.write_errors > 0);
    let failed = sweep.lines.iter().any(|line| line.failure.is_some());
    match sweep.troubles().first() {
        Some(first) if wrong || failed => Err(Failure::failed(first.clone())),
        _ if sweep.cancelled => Err(Failure::Interrupted(format!(
            "interrupted: {} of {wanted} runs finished",
            sweep.lines.len()
        ))),
        Some(first) => Err(Failure::Interrupted(first.clone())),
        None => Ok(()),
    }
}
