//! `leafpress pool`: Tyche's command line in, the laboratory's runs of the page pool, Tyche's report, tables and files out.

mod args;
mod progress;

use std::path::Path;
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
    if let Some(out) = &args.out {
        output::make_directory("out", out)?;
    }
    let cancel = interrupt::flag()?;
    let mut reporter = Reporter::new(args.talk());
    let sweep = match runs.as_slice() {
        [one] => alone(one, &cancel, &mut reporter),
        several => in_turn(several, &cancel, &mut reporter),
    };
    reporter.finish();
    let sweep = sweep?;
    let report = match sweep.lines.as_slice() {
        [line] if runs.len() == 1 => line.report.as_ref().map_or_else(String::new, text::report),
        _ => text::sweep(&sweep),
    };
    let printed = output::print(&report);
    if let Some(out) = &args.out {
        let written = write(&sweep, out)?;
        output::print(&written)?;
    }
    judge(&sweep, runs.len())?;
    printed
}

/// One run, in this process.
fn alone(options: &Options, cancel: &AtomicBool, reporter: &mut Reporter) -> Result<Sweep, Failure> {
    reporter.start(0, 1, text::name(options));
    let report = pool::run(options, cancel, &mut |event| reporter.show(&event));
    report.map(Sweep::of).map_err(|e| failure(&e))
}

/// Several runs, each in a process of its own.
fn in_turn(runs: &[Options], cancel: &AtomicBool, reporter: &mut Reporter) -> Result<Sweep, Failure> {
    let no_directory = |e| Failure::failed(format!("no temporary directory: {e}"));
    let logs = tempfile::tempdir().map_err(no_directory)?;
    // A run that is ended from outside cannot clean up behind itself; this one does.
    let scratch = match runs.iter().find_map(|run| run.scratch.as_ref()) {
        Some(parent) => tempfile::tempdir_in(parent),
        None => tempfile::tempdir(),
    };
    let scratch = scratch.map_err(no_directory)?;
    let runs: Vec<_> = runs
        .iter()
        .map(|run| Options {
            scratch: Some(scratch.path().to_owned()),
            ..run.clone()
        })
        .collect();
    let sweep = pool::sweep(&runs, logs.path(), cancel, &mut |step| match step {
        Step::Started(number, options) => reporter.start(number, runs.len(), text::name(options)),
        Step::Progress(phase, done) => reporter.advance(phase, done),
        Step::Finished(line) => reporter.finished(line),
    });
    let sweep = sweep.map_err(|e| failure(&e))?;
    if sweep.cancelled && sweep.lines.is_empty() {
        return Err(failure(&LabError::Cancelled));
    }
    Ok(sweep)
}

/// Writes the files and says where they are.
fn write(sweep: &Sweep, out: &Path) -> Result<String, Failure> {
    let command_line = crate::command_line();
    let files = pool::write_files(sweep, &command_line, out).map_err(|e| Failure::failed(e.to_string()))?;
    Ok(format!("\n{files}"))
}

/// Whether everything that ran can be trusted.
fn judge(sweep: &Sweep, wanted: usize) -> Result<(), Failure> {
    let reports = || sweep.lines.iter().filter_map(|line| line.report.as_ref());
    let wrong = reports().any(|report| report.outcome.checks.wrong > 0 || report.outcome.counters.write_errors > 0);
    let failed = sweep.lines.iter().any(|line| line.failure.is_some());
    match sweep.troubles().first() {
        Some(first) if wrong || failed => Err(Failure::failed(first.clone())),
        _ if sweep.cancelled => Err(Failure::Interrupted(format!(
            "interrupted: {} of {wanted} runs had finished",
            sweep.lines.len()
        ))),
        Some(first) => Err(Failure::Interrupted(first.clone())),
        None => Ok(()),
    }
}
