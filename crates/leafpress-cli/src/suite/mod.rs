//! `leafpress suite`: the compression test suite on the user's files; prints a table and writes files and a page with
//! charts.

mod args;

use std::sync::atomic::{AtomicBool, Ordering};

use leafpress_lab::LabError;
use leafpress_lab::suite::{self, Progress, records};

pub use self::args::SuiteArgs;
use self::args::{Request, failure};
use crate::failure::Failure;
use crate::progress::Bar;
use crate::{interrupt, output};

/// Runs the suite.
pub fn run(args: &SuiteArgs) -> Result<(), Failure> {
    match args.request()? {
        Request::Files(options) => {
            let report = measure(args, |cancel, progress| suite::run(&options, cancel, progress))?;
            output::show(&suite::document(&report), &crate::command_line(), args.out.as_deref())?;
            interrupted(report.interrupted, report.passes, options.passes)
        }
        Request::Records(options) => {
            let report = measure(args, |cancel, progress| records::run(&options, cancel, progress))?;
            output::show(&records::document(&report), &crate::command_line(), args.out.as_deref())?;
            interrupted(report.interrupted, report.passes, options.passes)
        }
    }
}

/// Measures under a progress bar; the output directory is created after the data has been read and validated, so that
/// bad input leaves none behind.
fn measure<R>(
    args: &SuiteArgs,
    run: impl FnOnce(&AtomicBool, &mut dyn FnMut(&Progress)) -> Result<R, LabError>,
) -> Result<R, Failure> {
    let cancel = interrupt::flag()?;
    let mut bar = Bar::new();
    if !args.quiet {
        bar.start(0, 1, "reading".into());
    }
    let mut directory = None;
    let report = run(&cancel, &mut |progress| {
        if progress.left_seconds.is_some() && directory.is_none() {
            let made = args
                .out
                .as_deref()
                .map_or(Ok(()), |out| output::make_directory("out", out));
            cancel.fetch_or(made.is_err(), Ordering::Relaxed);
            directory = Some(made);
        }
        if !args.quiet {
            show(&bar, progress);
        }
    });
    bar.finish();
    directory.unwrap_or(Ok(()))?;
    report.map_err(|e| failure(&e))
}

fn interrupted(interrupted: bool, passes: usize, wanted: usize) -> Result<(), Failure> {
    if interrupted {
        return Err(Failure::Interrupted(format!(
            "interrupted: every row has {passes} of {wanted} passes"
        )));
    }
    Ok(())
}

fn show(bar: &Bar, progress: &Progress) {
    bar.advance(progress.share);
    bar.set_text(progress.what.clone());
}
