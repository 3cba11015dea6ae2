//! The common part of `bench`, `matrix`, `frontier` and `caches`.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use leafpress_console::failure::Failure;
use leafpress_console::{interrupt, output};
use leafpress_lab::report::Document;
use leafpress_rocksdb_arguments::OutputArgs;
use leafpress_rocksdb_bench::report::{self, Row};
use leafpress_rocksdb_bench::session::Session;
use leafpress_rocksdb_bench::study::Event;

use super::failure::failure;
use super::reporter::Reporter;
use super::scratch::Scratch;

/// Everything a command needs while it runs.
pub struct Stage {
    pub scratch: Scratch,
    pub session: Session,
    pub cancel: Arc<AtomicBool>,
    pub reporter: Reporter,
    started: usize,
    total: usize,
}

impl Stage {
    /// Makes the directories, after the arguments were checked.
    pub fn new(mut scratch: Scratch, args: &OutputArgs, total: usize) -> Result<Self, Failure> {
        scratch.make()?;
        if let Some(out) = &args.out {
            output::make_directory("out", out)?;
        }
        let session = Session::new(scratch.logs().to_owned()).map_err(|e| failure(&e))?;
        Ok(Self {
            session,
            cancel: interrupt::flag()?,
            reporter: Reporter::new(args.quiet),
            scratch,
            started: 0,
            total,
        })
    }

    /// Returns the parts that a study borrows at once.
    pub fn parts(
        &mut self,
    ) -> (
        std::path::PathBuf,
        &mut Session,
        &AtomicBool,
        impl FnMut(Event<'_>) + '_,
    ) {
        let (reporter, started, total) = (&mut self.reporter, &mut self.started, self.total);
        let events = move |event: Event<'_>| match event {
            Event::Started(run) => {
                let index = *started;
                *started += 1;
                let what = format!("{} {}", run.workload, run.shape.compression);
                reporter.start(index, total.max(index + 1), what);
            }
            Event::Progress(phase, done) => reporter.advance(phase, done),
            Event::Finished(run, outcome) => {
                let cache = match run.tuning.cache.bytes {
                    0 => String::new(),
                    _ => format!("  cache {}", run.tuning.cache),
                };
                reporter.finished(&(report::line(&Row::new(run, outcome.clone())) + &cache));
            }
            Event::Failed(run, error) => {
                reporter.finished(&format!("{} {}: failed: {error}", run.workload, run.shape.compression));
            }
        };
        (
            self.scratch.databases().to_owned(),
            &mut self.session,
            &*self.cancel,
            events,
        )
    }

    /// Returns whether the user has stopped it.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// How a command ended.
pub struct Ending {
    pub mismatches: u64,
    pub failure: Option<String>,
    pub cancelled: bool,
    /// Runs that finished.
    pub runs: usize,
    /// Runs that were requested, where their number is known.
    pub wanted: Option<usize>,
}

/// Prints the report, writes its files, and returns the verdict.
pub fn finish(report: &Document<'_>, ending: Ending, args: &OutputArgs) -> Result<(), Failure> {
    let printed = match ending.runs {
        0 => Ok(()),
        _ => {
            let command_line = output::command_line("leafpress-rocksdb", std::env::args_os());
            output::show(report, &command_line, args.out.as_deref())
        }
    };
    if ending.cancelled {
        let finished = match ending.wanted {
            Some(wanted) => format!("{} of {wanted} benchmarks", ending.runs),
            None => format!("{} runs", ending.runs),
        };
        return Err(Failure::Interrupted(format!("interrupted: {finished} had finished")));
    }
    if let Some(trouble) = ending.failure {
        return Err(Failure::failed(trouble));
    }
    if ending.mismatches > 0 {
        return Err(Failure::failed(format!(
            "{} reads did not return what their keys hold",
            ending.mismatches
        )));
    }
    printed
}
