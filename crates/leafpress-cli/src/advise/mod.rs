//! `leafpress advise`: runs the suite, the device probe and the model, and prints a recommendation with its reasons.
//! For a trace of records (`records`), for a number of bytes of records (`plan`) and for a running server (`keyspace`)
//! it uses other parts of the laboratory.

mod args;
mod keyspace;
mod plan;
mod records;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use leafpress_lab::advise::{self, Advice, Event, Options, Verification, VerifyOptions};
use leafpress_lab::device::DeviceError;
use leafpress_lab::{LabError, model};

pub use self::args::AdviseArgs;
use crate::failure::Failure;
use crate::progress::Bar;
use crate::{interrupt, output};

/// Runs the command.
pub fn run(args: &AdviseArgs) -> Result<(), Failure> {
    if args.keyspace.redis.is_none() {
        args.keyspace.refuse_without_server().map_err(|e| failure(&e))?;
    }
    if let Some(total) = args.plan.total {
        return plan::run(args, total);
    }
    args.plan.refuse_without_total().map_err(|e| failure(&e))?;
    if let Some(trace) = &args.records.trace {
        return records::run(args, trace);
    }
    if let Some(url) = &args.keyspace.redis {
        return keyspace::run(args, url);
    }
    let verify = args.verify().map_err(|e| failure(&e))?;
    // Validate before reading a long file.
    let without_trace = args.options(None).map_err(|e| failure(&e))?;
    let trace = args.trace().map_err(|e| failure(&e))?;
    if let Some(out) = &args.out {
        output::make_directory("out", out)?;
    }
    let cancel = interrupt::flag()?;
    let mut bar = Bar::new();
    let options = match trace {
        None => without_trace,
        Some((path, how)) => {
            if !args.quiet {
                bar.start(0, 1, format!("reading {}", path.display()));
            }
            let trace = model::read_trace(&path, how, &cancel, &mut |done| bar.advance(done));
            bar.finish();
            let trace = trace.map_err(|e| of_trace(&e))?;
            args.options(Some(Arc::new(trace))).map_err(|e| failure(&e))?
        }
    };
    let result = advise(args, &options, verify.as_ref(), &cancel, &mut bar);
    bar.finish();
    let (advice, verification) = result?;
    let (verification, stopped) = match verification {
        Some(Ok(verification)) => (Some(verification), None),
        Some(Err(e)) => (None, Some(failure(&e))),
        None => (None, None),
    };
    let report = advise::document(&advice, verification.as_ref());
    let printed = output::show(&report, &crate::command_line(), args.out.as_deref());
    drop(report);
    match (stopped, verification) {
        (Some(failure), _) => Err(failure),
        (None, Some(verification)) if verification.interrupted => Err(Failure::Interrupted(format!(
            "interrupted: {} verification runs had finished",
            verification.comparisons.len()
        ))),
        (None, Some(verification)) => match verification.failures.first() {
            Some(first) => Err(Failure::failed(format!("a verification run failed: {first}"))),
            None => printed,
        },
        (None, None) => printed,
    }
}

type Verified = Option<Result<Verification, LabError>>;

/// The advice, and the result of its verification.
fn advise(
    args: &AdviseArgs,
    options: &Options,
    verify: Option<&VerifyOptions>,
    cancel: &AtomicBool,
    bar: &mut Bar,
) -> Result<(Advice, Verified), Failure> {
    let parts = 1 + usize::from(verify.is_some());
    let show = |bar: &Bar, event: Event| {
        bar.advance(event.share);
        bar.set_text(event.what);
    };
    if !args.quiet {
        bar.start(0, parts, "reading".into());
    }
    let advice = advise::run(options, cancel, &mut |event| {
        if !args.quiet {
            show(bar, event);
        }
    });
    let advice = advice.map_err(|e| failure(&e))?;
    let Some(verify) = verify else {
        return Ok((advice, None));
    };
    if !args.quiet {
        bar.start(1, parts, "verifying".into());
    }
    let verification = advise::verify(&advice, verify, cancel, &mut |event| {
        if !args.quiet {
            show(bar, event);
        }
    });
    Ok((advice, Some(verification)))
}

fn of_trace(error: &LabError) -> Failure {
    match error {
        LabError::Cancelled => Failure::Interrupted("interrupted: the trace was not read completely".into()),
        LabError::Data { source_name, reason } => {
            Failure::bad_input(format!("--distribution trace:{source_name}: {reason}"))
        }
        LabError::Io { path, source } => {
            Failure::bad_input(format!("--distribution trace:{}: {source}", path.display()))
        }
        e => failure(e),
    }
}

/// An error of the laboratory as this command reports it.
fn failure(error: &LabError) -> Failure {
    match error {
        LabError::Cancelled => Failure::Interrupted("interrupted: nothing was computed yet".into()),
        LabError::Option { option, reason } => Failure::bad_input(format!("--{option}: {reason}")),
        LabError::Data { source_name, reason } => Failure::bad_input(format!("{source_name}: {reason}")),
        LabError::Device(DeviceError::Fio { .. }) => Failure::bad_input(format!("--fio-json {error}")),
        LabError::Device(DeviceError::Saved { .. }) => Failure::bad_input(format!("--device-json {error}")),
        LabError::Device(DeviceError::NoRoom {
            path,
            wanted_bytes,
            free_bytes,
            ..
        }) => Failure::bad_input(format!(
            "--device {}: the probe needs a file of {wanted_bytes} bytes there, and {free_bytes} are free: use another \
             directory, or give --device-us",
            path.display()
        )),
        LabError::Device(DeviceError::Path { .. } | DeviceError::NoUring(_)) => {
            Failure::bad_input(format!("--device {error}"))
        }
        e => Failure::failed(e.to_string()),
    }
}
