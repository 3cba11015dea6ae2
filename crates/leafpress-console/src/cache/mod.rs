//! `cache` of a command: our cache beside others, in the same memory. Those that the command
//! [adds](leafpress_lab::cache::add_engines) are among them.

mod args;
mod mrc_args;

use std::path::Path;

use leafpress_lab::Phase;
use leafpress_lab::cache::{self, Outcome, Step};

pub use self::args::CacheArgs;
use self::args::failure;
use crate::failure::Failure;
use crate::progress::Bar;
use crate::{interrupt, output};

/// Runs the comparison for `program`, the command's name.
///
/// # Errors
/// [`Failure::BadInput`] of arguments and data, [`Failure::Failed`] of a cache that failed or was not right, [`Failure::Interrupted`].
pub fn run(args: &CacheArgs, program: &str) -> Result<(), Failure> {
    let out = args.out.clone().unwrap_or_else(|| output::default_directory("cache"));
    let options = args.options(&out)?;
    options.validate().map_err(|e| failure(&e))?;
    let cancel = interrupt::flag()?;
    let mut reporter = Reporter {
        bar: Bar::new(),
        index: 0,
        total: options.engines.len(),
        name: String::new(),
        fills: 0,
    };
    let outcome = cache::run_caches(&options, &out.join("logs"), &cancel, &mut |step| reporter.show(&step));
    reporter.bar.finish();
    let outcome = outcome.map_err(|e| failure(&e))?;
    if outcome.lines.is_empty() && outcome.mrc.is_none() {
        return Err(failure(&leafpress_lab::LabError::Cancelled));
    }
    let printed = output::print(&cache::report(&outcome)).and_then(|()| write(&outcome, program, &out));
    judge(&outcome)?;
    printed
}

/// Writes the files and says where they are.
fn write(outcome: &Outcome, program: &str, out: &Path) -> Result<(), Failure> {
    let command_line = output::command_line(program, std::env::args_os());
    let files = cache::write_files(outcome, &command_line, out);
    let files = files.map_err(|e| Failure::failed(e.to_string()))?;
    output::print(&format!("\n{files}"))
}

/// Whether everything that ran can be trusted.
fn judge(outcome: &Outcome) -> Result<(), Failure> {
    let is_bad = outcome.lines.iter().any(|line| {
        let measured = line.measured.as_ref();
        measured.is_none_or(|measured| measured.mismatches.total() > 0)
    });
    match outcome.troubles().into_iter().next() {
        Some(first) if is_bad => Err(Failure::failed(first)),
        Some(first) => Err(Failure::Interrupted(first)),
        None => Ok(()),
    }
}

/// Says what is going on.
struct Reporter {
    bar: Bar,
    index: usize,
    total: usize,
    /// The cache in progress.
    name: String,
    /// Fills until its knob is found.
    fills: usize,
}

/// Fills that the search for a knob mostly takes.
const USUAL_FILLS: usize = 3;

impl Reporter {
    fn show(&mut self, step: &Step<'_>) {
        match step {
            Step::Curves(done) => {
                if self.name.is_empty() {
                    self.name = "hits by memory".into();
                    self.bar.start(0, 1, self.name.clone());
                }
                self.bar.advance(*done);
            }
            Step::Started(index, engine) => {
                (self.index, self.name, self.fills) = (*index, engine.to_string(), 0);
                self.bar.start(self.index, self.total, self.name.clone());
            }
            Step::Fill(number) => {
                self.fills = number + 1;
                let fills = self.fills;
                self.bar
                    .say(format!("{}: fill {fills}, for what it may be told to hold", self.name));
            }
            Step::Progress(phase, done) => {
                if matches!(phase, Phase::WarmUp | Phase::Timed) {
                    let what = if *phase == Phase::Timed { "measured" } else { "warm-up" };
                    self.bar.say(format!("{}: {what}", self.name));
                }
                self.bar.advance(self.share(*phase, *done));
            }
            Step::Finished(options, line) => {
                let (number, total) = (self.index + 1, self.total);
                self.bar
                    .line(&format!("[{number}/{total}] {}", cache::line(options, line)));
            }
        }
    }

    /// How much of a cache's run is done, 0 to 1.
    fn share(&self, phase: Phase, done: f64) -> f64 {
        let (before, length) = match (phase, self.fills) {
            (Phase::Corpus, 0) => (0.0, 0.0),
            (Phase::Load, fills) => {
                let fill = 0.3 / USUAL_FILLS as f64;
                ((fills.clamp(1, USUAL_FILLS) - 1) as f64 * fill, fill)
            }
            (Phase::WarmUp, 0) => (0.0, 0.5),
            (Phase::Timed, 0) => (0.5, 0.5),
            (Phase::WarmUp, _) => (0.3, 0.3),
            (Phase::Timed, _) => (0.6, 0.4),
            (Phase::Corpus | Phase::Verify, _) => (0.3, 0.0),
        };
        before + length * done.clamp(0.0, 1.0)
    }
}
