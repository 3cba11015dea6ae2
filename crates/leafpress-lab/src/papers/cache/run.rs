//! The scenarios of a figure in turn.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::{FigureOptions, FigureOutcome, ScenarioOutcome};
use crate::cache::run::{KnownCapacities, Step, run_knowing};
use crate::core::LabError;
use crate::harness::child::Launcher;

/// Runs a figure; output of the caches' processes goes to files in `logs`, a directory per scenario. A failed cache is
/// not an error but a line that says so.
///
/// # Errors
/// As [`run_caches`](crate::cache::run_caches).
pub fn run_figure(
    options: &FigureOptions,
    logs: &Path,
    cancel: &AtomicBool,
    steps: &mut dyn FnMut(Step<'_>),
) -> Result<FigureOutcome, LabError> {
    run_figure_with(&Launcher::current_exe()?, options, logs, cancel, steps)
}

/// Runs as [`run_figure`] does, with processes of the caller's own.
///
/// # Errors
/// As [`run_figure`].
pub fn run_figure_with(
    launcher: &Launcher,
    options: &FigureOptions,
    logs: &Path,
    cancel: &AtomicBool,
    steps: &mut dyn FnMut(Step<'_>),
) -> Result<FigureOutcome, LabError> {
    options.validate()?;
    let scenarios = options.scenarios();
    let mut figure = FigureOutcome {
        options: options.clone(),
        scenarios: Vec::with_capacity(scenarios.len()),
        wanted_runs: scenarios.len() * options.engines().len(),
        cancelled: false,
    };
    let mut capacities = KnownCapacities::default();
    for (number, scenario) in scenarios.into_iter().enumerate() {
        steps(Step::Scenario(number, &scenario.name));
        let logs = logs.join(format!("scenario-{}", number + 1));
        let mut outcome = run_knowing(&mut capacities, launcher, &scenario.options, &logs, cancel, steps)?;
        // The figure reports it once.
        figure.cancelled = std::mem::take(&mut outcome.cancelled);
        if !outcome.lines.is_empty() {
            figure.scenarios.push(ScenarioOutcome {
                name: scenario.name,
                paper: scenario.paper.map(str::to_owned),
                outcome,
            });
        }
        if figure.cancelled {
            break;
        }
    }
    Ok(figure)
}
