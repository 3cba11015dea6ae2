//! `leafpress device`: probes a storage device or reads a result of fio; prints a table and writes files.

mod args;

use std::path::Path;

use leafpress_lab::device::{self, Event, Report};

pub use self::args::DeviceArgs;
use self::args::failure;
use crate::failure::Failure;
use crate::progress::Bar;
use crate::{interrupt, output};

/// Probes, or reads a result of fio.
pub fn run(args: &DeviceArgs) -> Result<(), Failure> {
    let report = match &args.fio_json {
        Some(path) => {
            let report = device::fio_report(path).map_err(|e| failure(&e.into()))?;
            make(args.out.as_deref())?;
            report
        }
        None => probe(args)?,
    };
    output::show(&device::document(&report), &crate::command_line(), args.out.as_deref())?;
    if report.interrupted {
        let done = report.measurements.len();
        return Err(Failure::Interrupted(format!(
            "interrupted: {done} measurements had finished"
        )));
    }
    Ok(())
}

fn probe(args: &DeviceArgs) -> Result<Report, Failure> {
    let options = args.options()?;
    make(args.out.as_deref())?;
    let cancel = interrupt::flag()?;
    let mut bar = Bar::new();
    let report = device::probe(&options, &cancel, &mut |event| match event {
        Event::Piece { index, total, what } => bar.start(index, total, what),
        Event::Progress(done) => bar.advance(done),
        Event::Measured(_) => {}
    });
    bar.finish();
    report.map_err(|e| failure(&e))
}

/// Creates the output directory before measuring.
fn make(out: Option<&Path>) -> Result<(), Failure> {
    let Some(out) = out else { return Ok(()) };
    output::make_directory("out", out)
}
