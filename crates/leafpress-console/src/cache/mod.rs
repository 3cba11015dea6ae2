//! `cache` of a command: compares caches in the same memory, including engines that the command
//! [adds](leafpress_lab::cache::add_engines).

mod args;
mod mrc_args;
mod paper_args;
mod reporter;

use std::path::Path;

use leafpress_lab::LabError;
use leafpress_lab::cache::{self, Options, Outcome};
use leafpress_lab::papers::cache::{FigureOptions, figure_document, run_figure as reproduce};

pub use self::args::CacheArgs;
pub use self::args::parse;
use self::args::{failure, failure_of};
use self::reporter::Reporter;
use crate::failure::Failure;
use crate::{interrupt, output};

/// Runs the comparison, or a figure of the paper, for `program`, the command's name.
///
/// # Errors
/// [`Failure::BadInput`] for arguments and data, [`Failure::Failed`] for a cache that failed or returned wrong values,
/// [`Failure::Interrupted`].
pub fn run(args: &CacheArgs, program: &str) -> Result<(), Failure> {
    let out = args.out.clone().unwrap_or_else(|| output::default_directory("cache"));
    match args.figure(&out)? {
        Some(figure) => run_figure(&figure, program, &out),
        None => run_comparison(&args.options(&out)?, program, &out),
    }
}

/// Runs the comparison that `options` describe, for `program`, with files under `out`.
///
/// # Errors
/// See [`run`].
pub fn run_comparison(options: &Options, program: &str, out: &Path) -> Result<(), Failure> {
    options.validate().map_err(|e| failure_of(&options.work, &e))?;
    let cancel = interrupt::flag()?;
    let mut reporter = Reporter::new(options.engines.len(), options.engines.len());
    let outcome = cache::run_caches(options, &out.join("logs"), &cancel, &mut |step| reporter.show(&step));
    reporter.finish();
    let outcome = outcome.map_err(|e| failure_of(&options.work, &e))?;
    if outcome.lines.is_empty() && outcome.mrc.is_none() {
        return Err(failure(&LabError::Cancelled));
    }
    let command_line = output::command_line(program, std::env::args_os());
    let printed = output::show(&cache::document(&outcome), &command_line, Some(out));
    judge([&outcome], outcome.troubles())?;
    printed
}

fn run_figure(options: &FigureOptions, program: &str, out: &Path) -> Result<(), Failure> {
    options.validate().map_err(|e| failure(&e))?;
    let cancel = interrupt::flag()?;
    let engines = options.engines().len();
    let mut reporter = Reporter::new(engines, engines * options.scenarios().len());
    let figure = reproduce(options, &out.join("logs"), &cancel, &mut |step| reporter.show(&step));
    reporter.finish();
    let figure = figure.map_err(|e| failure(&e))?;
    if figure.scenarios.is_empty() {
        return Err(failure(&LabError::Cancelled));
    }
    let command_line = output::command_line(program, std::env::args_os());
    let printed = output::show(&figure_document(&figure), &command_line, Some(out));
    judge(figure.scenarios.iter().map(|one| &one.outcome), figure.troubles())?;
    printed
}

/// Returns an error if any cache cannot be trusted.
fn judge<'o>(outcomes: impl IntoIterator<Item = &'o Outcome>, troubles: Vec<String>) -> Result<(), Failure> {
    let mut lines = outcomes.into_iter().flat_map(|outcome| &outcome.lines);
    let is_bad = lines.any(|line| {
        let measured = line.measured.as_ref();
        measured.is_none_or(|measured| measured.mismatches.total() > 0)
    });
    match troubles.into_iter().next() {
        Some(first) if is_bad => Err(Failure::failed(first)),
        Some(first) => Err(Failure::Interrupted(first)),
        None => Ok(()),
    }
}
