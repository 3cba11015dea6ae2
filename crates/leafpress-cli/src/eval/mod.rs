//! `leafpress eval`: resolves flags and environment, runs the laboratory's evaluation, prints a table and writes files.

mod args;
mod environment;
mod progress;
mod settings;
#[cfg(test)]
mod tests;

use std::path::Path;

use leafpress_lab::{EvalOutcome, LabError, Progress, run_eval};

pub use self::args::EvalArgs;
use self::progress::Reporter;
use self::settings::Settings;
use crate::failure::Failure;
use crate::{interrupt, output};

/// Runs the evaluation.
pub fn run(args: &EvalArgs) -> Result<(), Failure> {
    let settings = Settings::resolve(args, &|name| std::env::var_os(name), std::env::args_os())?;
    for note in &settings.notes {
        output::print_message(note);
    }
    let out_dir = args.out.clone().unwrap_or_else(|| output::default_directory("eval"));
    let cancel = interrupt::flag()?;
    let mut reporter = Reporter::new();
    let mut total = 0;
    let outcome = run_eval(&settings.config, &out_dir, &cancel, &mut |progress| {
        if let Progress::Started { total: runs, .. } = &progress {
            total = *runs;
        }
        reporter.show(&progress);
    });
    reporter.finish();
    let outcome = outcome.map_err(|e| match e {
        LabError::Cancelled => Failure::Interrupted("interrupted: no run finished, nothing was written".into()),
        e => settings.failure(&e),
    })?;
    report(&outcome, &out_dir, total)
}

/// Prints the table and returns whether the runs succeeded.
fn report(outcome: &EvalOutcome, out_dir: &Path, total: usize) -> Result<(), Failure> {
    let mut text = String::new();
    if !outcome.rows.is_empty() {
        text = format!(
            "{}\n\nsummary  {}\njson     {}\nreport   {}\n",
            outcome.table.trim_end(),
            outcome.summary_path.display(),
            outcome.json_path.display(),
            outcome.html_path.display()
        );
    }
    let printed = output::print_report(&text);
    if outcome.cancelled {
        return Err(Failure::Interrupted(format!(
            "interrupted: {} of {total} rows are in {}",
            outcome.rows.len(),
            outcome.summary_path.display()
        )));
    }
    if let Some(failure) = outcome.failures.first() {
        return Err(Failure::failed(format!(
            "{} of {total} runs failed; the first, {}: {} (log: {})",
            outcome.failures.len(),
            failure.spec.label(),
            failure.reason,
            failure.log.display()
        )));
    }
    if outcome.mismatches > 0 {
        return Err(Failure::failed(format!(
            "{} reads returned wrong values; see the column `mismatches` and the logs in {}",
            outcome.mismatches,
            out_dir.display()
        )));
    }
    printed
}
