//! `leafpress bench`: parses PiBench's command line, runs the laboratory's benchmark, prints PiBench's report.

mod args;
mod files;
mod library;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use leafpress_lab::bench::{self, Comparison, Event, Input, Line, Operation, Options, Outcome, Report, Weight, text};
use leafpress_lab::{LabError, Launcher, Phase, report};

pub use self::args::BenchArgs;
use self::args::{Layout, Plan, bad_input};
use self::files::Output;
pub use self::library::open as open_library;
use crate::failure::Failure;
use crate::progress::Bar;
use crate::{interrupt, output};

/// Runs the benchmark.
pub fn run(args: &BenchArgs) -> Result<(), Failure> {
    let plan = args.plan()?;
    let runs: Vec<&Options> = match &plan {
        Plan::One(options) => vec![options],
        Plan::Several(runs) => runs.iter().collect(),
    };
    if let Plan::Several(_) = &plan {
        args.check_layout_of_several()?;
    }
    check_libraries(&runs)?;
    for note in bench::check_values(runs.iter().copied()).map_err(|e| bad_input(&e))? {
        output::print_message(&note);
    }
    let files = Files::of(args)?;
    if let (Some(json), Some(html)) = (&files.json, &files.html)
        && json.is_same_file(html)
    {
        return Err(Failure::bad_input("--html: the same file as --json"));
    }
    for note in args.notes(&runs) {
        output::print_message(&note);
    }
    let cancel = interrupt::flag()?;
    match &plan {
        Plan::One(options) => one(options, args.layout(), files, &cancel),
        Plan::Several(runs) => several(runs, files, &cancel),
    }
}

/// Checks that a library exists before anything runs; loading is checked when it is opened.
fn check_libraries(runs: &[&Options]) -> Result<(), Failure> {
    for options in runs {
        let Input::Library(path) = &options.input else { continue };
        // Checked before opening: opening a pipe blocks until it has a writer.
        let fault = match path.metadata() {
            Err(e) => e.to_string(),
            Ok(about) if about.is_dir() => "is a directory; name a shared library".into(),
            Ok(about) if !about.is_file() => "is not a regular file".into(),
            Ok(about) if about.len() == 0 => "it is empty".into(),
            Ok(_) => match std::fs::File::open(path) {
                Err(e) => e.to_string(),
                Ok(_) => continue,
            },
        };
        return Err(Failure::bad_input(format!("INPUT {}: {fault}", path.display())));
    }
    Ok(())
}

/// The requested output files.
struct Files {
    json: Option<Output>,
    html: Option<Output>,
}

impl Files {
    fn of(args: &BenchArgs) -> Result<Self, Failure> {
        if let Some(out) = &args.out {
            output::make_directory("out", out)?;
            return Ok(Self {
                json: Some(Output::in_directory("--out", out.join("results.json"))?),
                html: Some(Output::in_directory("--out", out.join("report.html"))?),
            });
        }
        let open = |name, path: Option<PathBuf>| path.map(|path| Output::new(name, &path)).transpose();
        Ok(Self {
            json: open("--json", args.json.clone())?,
            html: open("--html", args.html.clone())?,
        })
    }

    fn write(self, comparison: &Comparison) -> Result<(), Failure> {
        let command_line = crate::command_line();
        let failed = |e: LabError| Failure::failed(e.to_string());
        if let Some(html) = self.html {
            html.write(&bench::document(comparison).page(&command_line).map_err(failed)?)?;
        }
        if let Some(json) = self.json {
            json.write(&report::json(&command_line, comparison).map_err(failed)?)?;
        }
        Ok(())
    }
}

/// Runs one index: prints PiBench's report as it goes, or a table at the end.
fn one(options: &Options, layout: Layout, files: Files, cancel: &Arc<AtomicBool>) -> Result<(), Failure> {
    let repeated = options.repeat > 1;
    let is_table = layout == Layout::Table;
    let mut bar = Bar::new();
    let mut printed = Ok(());
    // With repetitions, the reported run is known only at the end.
    let mut print_above = |bar: &Bar, text: &str| {
        if !repeated && !text.is_empty() && printed.is_ok() {
            printed = bar.suspend(|| output::print(text));
        }
    };
    let as_it_comes = |text: String| if is_table { String::new() } else { text };
    let so_far = Report {
        options: options.clone(),
        environment: bench::Environment::here(),
        sampled: None,
        repeated_values: None,
        outcomes: Vec::new(),
    };
    print_above(&bar, &as_it_comes(text::head(&so_far.environment, options)));
    let logs = directory_of_logs()?;
    let (log, launcher) = (
        logs.path().join("weigh.log"),
        Launcher::current_exe().map_err(|e| failure(&e))?,
    );
    let mut weight = None;
    let result = bench::run(options, Some(open_library), cancel, &mut |event| match event {
        Event::Repetition(number) => bar.start(number, options.repeat, options.input.short_name()),
        Event::LoadSkipped => print_above(&bar, &as_it_comes(text::LOAD_SKIPPED.into())),
        Event::LoadStarted => print_above(&bar, &as_it_comes(text::LOAD_STARTED.into())),
        Event::Loaded(load) => print_above(&bar, &as_it_comes(text::loaded(load))),
        Event::Verified(_) => print_above(&bar, &as_it_comes(text::LOAD_VERIFIED.into())),
        // Before the index is dropped, which some wrappers do not survive.
        Event::Measured(outcome) => {
            // All repetitions load the same records.
            weight = weight
                .take()
                .or_else(|| Weight::of(&launcher, options, outcome, &log, cancel));
            let mut outcome = outcome.clone();
            weight.iter().for_each(|weight| weight.put_into(&mut outcome));
            if is_table {
                let report = Report {
                    outcomes: vec![outcome],
                    ..so_far.clone()
                };
                print_above(&bar, &table(&of_one(report)));
            } else {
                print_above(&bar, &(text::results(&outcome) + &text::extras(&so_far, &outcome)));
            }
        }
        Event::Progress(phase, done) => bar.advance(share(phase, done, options.skip_load)),
    });
    bar.finish();
    let mut measured = result.map_err(|e| failure(&e))?;
    for outcome in &mut measured.outcomes {
        weight.iter().for_each(|weight| weight.put_into(outcome));
    }
    let comparison = of_one(measured);
    if !is_table {
        // The PiBench layout is for programs.
        comparison
            .cautions()
            .iter()
            .for_each(|caution| output::print_message(caution));
    }
    if repeated {
        printed = output::print(&match &comparison.lines[0].report {
            Some(report) if !is_table => text::whole(report),
            _ => table(&comparison),
        });
    }
    files.write(&comparison)?;
    report_empty_indexes(&comparison);
    judge(&comparison)?;
    printed
}

/// Warns about indexes in which nothing was found: they were not loaded.
fn report_empty_indexes(comparison: &Comparison) {
    const LOOK_FOR_RECORDS: [Operation; 4] = [Operation::Read, Operation::Update, Operation::Remove, Operation::Scan];
    for line in &comparison.lines {
        let outcomes = line.report.iter().flat_map(|report| &report.outcomes);
        let counts = outcomes.flat_map(|outcome| LOOK_FOR_RECORDS.map(|operation| outcome.of(operation)));
        let (completed, succeeded) = counts.fold((0, 0), |(completed, succeeded), counts| {
            (completed + counts.completed, succeeded + counts.succeeded)
        });
        if line.options.skip_load && completed > 0 && succeeded == 0 {
            output::print_message(&format!(
                "note: the index {} is empty: with --skip_load nothing is loaded, and none of {completed} operations \
                 found a record",
                line.options.input
            ));
        }
    }
}

/// A report as a comparison with a single line.
fn of_one(report: Report) -> Comparison {
    Comparison {
        lines: vec![Line {
            options: report.options.clone(),
            report: Some(report),
            failures: Vec::new(),
        }],
        cancelled: false,
    }
}

/// The report of a comparison as text.
fn table(comparison: &Comparison) -> String {
    report::narrow(&bench::document(comparison).text())
}

fn directory_of_logs() -> Result<tempfile::TempDir, Failure> {
    tempfile::tempdir().map_err(|e| Failure::failed(format!("no temporary directory for logs: {e}")))
}

/// Several indexes or workloads: a table.
fn several(runs: &[Options], files: Files, cancel: &Arc<AtomicBool>) -> Result<(), Failure> {
    let logs = directory_of_logs()?;
    let mut bar = Bar::new();
    let mut current = usize::MAX;
    let comparison = bench::compare(runs, logs.path(), cancel, &mut |number, total, options, phase, done| {
        if current != number {
            current = number;
            let what = format!("{}, {}", options.input.short_name(), options.workload());
            bar.start(number, total, what);
        }
        bar.advance(share(phase, done, options.skip_load));
    });
    bar.finish();
    let comparison = comparison.map_err(|e| failure(&e))?;
    if comparison.lines.iter().all(|line| line.report.is_none()) && comparison.cancelled {
        return Err(Failure::Interrupted(
            "interrupted: no run finished, nothing was written".into(),
        ));
    }
    let printed = output::print(&table(&comparison));
    files.write(&comparison)?;
    report_empty_indexes(&comparison);
    judge(&comparison)?;
    printed
}

/// Returns an error if any run cannot be trusted.
fn judge(comparison: &Comparison) -> Result<(), Failure> {
    if comparison.cancelled {
        return Err(Failure::Interrupted(
            "interrupted: the table contains the finished runs".into(),
        ));
    }
    for line in &comparison.lines {
        if let Some(failure) = line.failures.first() {
            return Err(Failure::failed(failure.clone()));
        }
    }
    for line in &comparison.lines {
        let outcomes = line.report.iter().flat_map(|report: &Report| &report.outcomes);
        for Outcome { scan_errors, .. } in outcomes {
            if scan_errors.scans > 0 {
                return Err(Failure::failed(format!(
                    "{}: {} scans returned wrong records; the first: {}",
                    line.options.input,
                    scan_errors.scans,
                    scan_errors.example.as_deref().unwrap_or("unknown")
                )));
            }
        }
    }
    Ok(())
}

fn failure(error: &LabError) -> Failure {
    match error {
        LabError::Cancelled => Failure::Interrupted("interrupted".into()),
        e => bad_input(e),
    }
}

/// Progress of a repetition, 0 to 1.
fn share(phase: Phase, done: f64, skip_load: bool) -> f64 {
    let (before, length) = match phase {
        Phase::Corpus => (0.0, 0.02),
        Phase::Load => (0.02, 0.3),
        Phase::Verify => (0.32, 0.13),
        Phase::WarmUp if skip_load => (0.02, 0.05),
        Phase::WarmUp => (0.45, 0.05),
        Phase::Timed if skip_load => (0.05, 0.95),
        Phase::Timed => (0.5, 0.5),
    };
    before + length * done.clamp(0.0, 1.0)
}
