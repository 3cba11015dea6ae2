//! `leafpress suite`: the compression test suite on the user's files, as a table, as files, and as a page with charts.

mod args;

use std::path::Path;
use std::sync::atomic::Ordering;

use leafpress_lab::suite::{self, Progress, Report};

pub use self::args::SuiteArgs;
use self::args::failure;
use crate::failure::Failure;
use crate::progress::Bar;
use crate::{interrupt, output};

/// Runs the suite.
pub fn run(args: &SuiteArgs) -> Result<(), Failure> {
    let options = args.options()?;
    let cancel = interrupt::flag()?;
    let mut bar = Bar::new();
    if !args.quiet {
        bar.start(0, 1, "reading".into());
    }
    // The directory is made when the data was read and can be measured, so that bad input leaves none behind.
    let mut directory = None;
    let report = suite::run(&options, &cancel, &mut |progress| {
        if progress.left_seconds.is_some() && directory.is_none() {
            let made = args.out.as_deref().map_or(Ok(()), make);
            cancel.fetch_or(made.is_err(), Ordering::Relaxed);
            directory = Some(made);
        }
        if !args.quiet {
            show(&bar, progress);
        }
    });
    bar.finish();
    directory.unwrap_or(Ok(()))?;
    let report = report.map_err(|e| failure(&e))?;
    let printed = output::print(&suite::text(&report));
    if let Some(out) = &args.out {
        let written = write(&report, out)?;
        output::print(&written)?;
    }
    if report.interrupted {
        return Err(Failure::Interrupted(format!(
            "interrupted: every row has {} of {} passes",
            report.passes, options.passes
        )));
    }
    printed
}

fn make(out: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(out).map_err(|e| Failure::bad_input(format!("--out {}: {e}", out.display())))
}

fn show(bar: &Bar, progress: &Progress) {
    bar.advance(progress.share);
    let left = progress.left_seconds.map_or_else(String::new, |seconds| {
        let seconds = std::time::Duration::from_secs(seconds.ceil() as u64);
        format!("  about {}", humantime::format_duration(seconds))
    });
    bar.say(format!("{}{left}", progress.what));
}

/// Writes the files and says where they are.
fn write(report: &Report, out: &Path) -> Result<String, Failure> {
    let command_line = crate::command_line();
    let files = suite::write_files(report, &command_line, out).map_err(|e| Failure::failed(e.to_string()))?;
    let mut text = format!(
        "\nsummary {}\noverall {}\n",
        files.summary.display(),
        files.overall.display()
    );
    for wide in &files.wide {
        text += &format!("wide    {}\n", wide.display());
    }
    text += &format!("json    {}\nreport  {}\n", files.json.display(), files.html.display());
    Ok(text)
}
