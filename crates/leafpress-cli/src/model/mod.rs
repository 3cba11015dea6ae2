//! `leafpress model`: predicts the gain of compression by formulas; prints tables and writes files.

mod args;

use std::sync::Arc;

use leafpress_lab::LabError;
use leafpress_lab::model::{self, Options, tco};
use leafpress_lab::papers::{text, thesis, white_paper};

pub use self::args::ModelArgs;
use crate::failure::Failure;
use crate::progress::Bar;
use crate::{interrupt, output};

/// Runs the command.
pub fn run(args: &ModelArgs) -> Result<(), Failure> {
    if args.reproduce_thesis {
        return reproduce_thesis();
    }
    if args.reproduce_white_paper {
        return output::print_report(&text::white_paper(&white_paper::figures()));
    }
    let options = options(args)?;
    let prices = args.cost.prices().map_err(|e| failure(&e))?;
    let outcome = model::evaluate(&options).map_err(|e| failure(&e))?;
    let savings = prices.map(|prices| tco::savings(&outcome, &prices)).transpose();
    let savings = savings.map_err(|e| failure(&e))?;
    let report = model::document(&outcome, savings.as_deref().zip(prices.as_ref()));
    let command_line = crate::command_line();
    if let Some(out) = &args.out {
        output::make_directory("out", out)?;
    }
    if args.tsv || args.json {
        if let Some(out) = &args.out {
            report
                .write(&command_line, out)
                .map_err(|e| Failure::failed(e.to_string()))?;
        }
        let json = || model::json(&outcome, savings.as_deref(), &command_line).map_err(|e| failure(&e));
        return output::print(&if args.json { json()? } else { model::summary(&outcome) });
    }
    output::show(&report, &command_line, args.out.as_deref())
}

/// The options, with the trace read.
fn options(args: &ModelArgs) -> Result<Options, Failure> {
    // Validate before reading a long file.
    let mut without = args.options(None).map_err(|e| failure(&e))?;
    let Some((path, how)) = args.trace().map_err(|e| failure(&e))? else {
        return Ok(without);
    };
    // The size of the data is not known yet.
    without.data_bytes = without.data_bytes.max(without.page_bytes);
    without.validate().map_err(|e| failure(&e))?;
    let cancel = interrupt::flag()?;
    let mut bar = Bar::new();
    bar.start(0, 1, format!("reading {}", path.display()));
    let trace = model::read_trace(&path, how, &cancel, &mut |done| bar.advance(done));
    bar.finish();
    let trace = trace.map_err(|e| failure(&e))?;
    args.options(Some(Arc::new(trace))).map_err(|e| failure(&e))
}

fn reproduce_thesis() -> Result<(), Failure> {
    let reproduction = thesis::reproduce().map_err(|e| failure(&e))?;
    output::print_report(&text::reproduction(&reproduction))?;
    match reproduction.count(thesis::Verdict::Differs) {
        0 => Ok(()),
        differ => Err(Failure::failed(format!(
            "{differ} figures differ from the thesis's formulas"
        ))),
    }
}

/// Converts an error of the laboratory to this command's report.
fn failure(error: &LabError) -> Failure {
    match error {
        LabError::Cancelled => Failure::Interrupted("interrupted: the trace was not read completely".into()),
        LabError::Option { option, reason } => Failure::bad_input(format!("--{option}: {reason}")),
        LabError::Data { source_name, reason } => {
            Failure::bad_input(format!("--distribution trace:{source_name}: {reason}"))
        }
        LabError::Io { path, source } => {
            Failure::bad_input(format!("--distribution trace:{}: {source}", path.display()))
        }
        e => Failure::failed(e.to_string()),
    }
}
