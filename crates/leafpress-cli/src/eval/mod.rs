//! `leafpress eval`: flags and environment in, the laboratory's runs, a table and files out.

mod args;
mod environment;
mod progress;
mod settings;
#[cfg(test)]
mod tests;
pub mod words;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use leafpress_lab::{EvalOutcome, LabError, Progress, run_eval};

pub use self::args::EvalArgs;
use self::progress::Reporter;
use self::settings::Settings;
use crate::failure::Failure;
use crate::output;

/// Runs the evaluation.
pub fn run(args: &EvalArgs) -> Result<(), Failure> {
    let settings = Settings::resolve(args, &|name| std::env::var_os(name), std::env::args_os())?;
    for note in &settings.notes {
        eprintln!("{note}");
    }
    let out_dir = args.out.clone().unwrap_or_else(default_directory);
    let cancel = cancel_on_ctrl_c()?;
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
        LabError::Cancelled => Failure::Interrupted("interrupted: no run had finished, nothing was written".into()),
        e => settings.failure(&e),
    })?;
    report(&outcome, &out_dir, total)
}

/// Prints the table and says how it went.
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
    let printed = output::print(&text);
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
            "{} reads did not return what the key held; see the column `mismatches` and the logs in {}",
            outcome.mismatches,
            out_dir.display()
        )));
    }
    printed
}

/// `leafpress-results/eval/20260418T021637Z`, in UTC as the evaluation's own directories.
fn default_directory() -> PathBuf {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    Path::new("leafpress-results/eval").join(now.replace(['-', ':'], ""))
}

/// The first Ctrl-C ends the run in progress and keeps what is finished; the second ends the process.
fn cancel_on_ctrl_c() -> Result<Arc<AtomicBool>, Failure> {
    let cancel = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&cancel);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })
    .map_err(|e| Failure::failed(format!("cannot watch for Ctrl-C: {e}")))?;
    Ok(cancel)
}

/// The hidden subcommand that runs one configuration in its own process.
pub fn child() -> ExitCode {
    leafpress_lab::child_main()
}
