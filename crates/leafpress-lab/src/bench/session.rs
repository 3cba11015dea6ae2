//! A run from opening the index to its measurements, with the configured repetitions.

use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use super::driver::Run;
use super::hardware::Counters;
use super::load::Loader;
use super::repeat::median_of;
use super::values::Values;
use super::{Environment, Index, KeyFormat, Load, OpenLibrary, Options, Outcome, Spread};
use crate::core::{LabError, resources};
use crate::harness::Phase;

/// Growth of less than this is the benchmark's own: stacks, buffers, the allocator's rounding.
const MIN_GROWTH_BYTES: u64 = 4 << 20;

/// Progress of a run.
#[derive(Debug)]
pub enum Event<'e> {
    /// A repetition starts; the first is 0.
    Repetition(usize),
    /// The load is left out.
    LoadSkipped,
    /// The load starts.
    LoadStarted,
    /// The load is done.
    Loaded(&'e Load),
    /// The load was read back, if the index stores anything.
    Verified(&'e Load),
    /// A repetition was measured; its index is still there.
    Measured(&'e Outcome),
    /// Progress of a phase, 0 to 1.
    Progress(Phase, f64),
}

/// Measurements of a run, over all repetitions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The options it was run with.
    pub options: Options,
    /// Where.
    pub environment: Environment,
    /// The sampled part of the values' source, in words, if it was sampled.
    #[serde(default)]
    pub sampled: Option<String>,
    /// A caveat if values repeat, and so compress better than the data.
    #[serde(default)]
    pub repeated_values: Option<String>,
    /// The repetitions, at least one.
    pub outcomes: Vec<Outcome>,
}

impl Report {
    /// Returns the repetition of median throughput: the lower of the middle two.
    pub fn median(&self) -> Option<&Outcome> {
        median_of(&self.outcomes, Outcome::throughput)
    }

    /// Returns the completed operations per second over the repetitions.
    pub fn throughput(&self) -> Option<Spread> {
        Spread::of(self.outcomes.iter().map(Outcome::throughput))
    }
}

/// Runs the benchmark, in this process. `library` opens an input that is a shared library.
///
/// # Errors
/// Options out of bounds, an index that cannot be opened, loses records, or fails at an operation; unusable data;
/// [`LabError::Cancelled`].
pub fn run(
    options: &Options,
    library: Option<OpenLibrary>,
    cancel: &AtomicBool,
    events: &mut dyn FnMut(Event<'_>),
) -> Result<Report, LabError> {
    run_with(options, &|| options.input.open(options, library), cancel, events)
}

/// Runs as [`run`] does, on an index of the caller's own, made anew by `open` for each repetition.
///
/// # Errors
/// As [`run`].
pub fn run_with(
    options: &Options,
    open: &dyn Fn() -> Result<Box<dyn Index>, LabError>,
    cancel: &AtomicBool,
    events: &mut dyn FnMut(Event<'_>),
) -> Result<Report, LabError> {
    options.validate()?;
    // Code that runs for the first time would count as growth of the index.
    resources::make_program_resident();
    events(Event::Progress(Phase::Corpus, 0.0));
    let (format, values) = Values::of(options, cancel)?;
    let mut report = Report {
        options: options.clone(),
        environment: Environment::here(),
        sampled: values.sampled(),
        repeated_values: values.repeated(options.records),
        outcomes: Vec::with_capacity(options.repeat),
    };
    for repetition in 0..options.repeat {
        events(Event::Repetition(repetition));
        report
            .outcomes
            .push(once(options, (&format, &values), open, cancel, events)?);
    }
    Ok(report)
}

fn once(
    options: &Options,
    (format, values): (&KeyFormat, &Values),
    open: &dyn Fn() -> Result<Box<dyn Index>, LabError>,
    cancel: &AtomicBool,
    events: &mut dyn FnMut(Event<'_>),
) -> Result<Outcome, LabError> {
    // Opened first: what threads do that exist before is not counted, and the index may start some.
    let counters = options.hardware.then(Counters::open);
    // Memory freed before must not hide the index's growth.
    resources::release_free_memory();
    let resident_before = resources::resident_bytes();
    let index = open()?;
    let mut load = None;
    if options.skip_load {
        events(Event::LoadSkipped);
    } else {
        events(Event::LoadStarted);
        let loader = Loader {
            options,
            index: index.as_ref(),
            format,
            values,
            cancel,
        };
        let mut loaded = loader.load(resident_before, &mut |done| events(Event::Progress(Phase::Load, done)))?;
        loaded.resident = loaded.resident.at_least(MIN_GROWTH_BYTES);
        events(Event::Loaded(&loaded));
        loader.verify(&mut loaded, &mut |done| events(Event::Progress(Phase::Verify, done)))?;
        events(Event::Verified(&loaded));
        load = Some(loaded);
    }
    let run = Run {
        options,
        index: index.as_ref(),
        format,
        values,
        cancel,
    };
    let outcome = run.run(load, counters, &mut |phase, done| events(Event::Progress(phase, done)))?;
    events(Event::Measured(&outcome));
    Ok(outcome)
}

#[cfg(test)]
#[path = "session_tests/mod.rs"]
mod tests;
