//! Results of a figure's scenarios.

use serde::{Deserialize, Serialize};

use super::FigureOptions;
use crate::cache::Outcome;

/// Results of one scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScenarioOutcome {
    /// Its name within the figure.
    pub name: String,
    /// The paper's result, in its own units.
    pub paper: Option<String>,
    /// The options and results.
    pub outcome: Outcome,
}

/// Results of a figure's scenarios.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FigureOutcome {
    /// The options.
    pub options: FigureOptions,
    /// The scenarios in order, those in which a cache has finished.
    pub scenarios: Vec<ScenarioOutcome>,
    /// Caches times scenarios.
    pub wanted_runs: usize,
    /// Whether it was cancelled before the last one.
    pub cancelled: bool,
}

impl FigureOutcome {
    /// Returns the number of caches that have finished, in all scenarios together.
    pub fn runs(&self) -> usize {
        self.scenarios.iter().map(|one| one.outcome.lines.len()).sum()
    }

    /// Returns problems to report before the figures: failures, wrong bytes, a cancellation.
    pub fn troubles(&self) -> Vec<String> {
        let of = |one: &ScenarioOutcome| {
            let name = one.name.clone();
            let troubles = one.outcome.troubles().into_iter();
            troubles
                .map(move |trouble| format!("{name}: {trouble}"))
                .collect::<Vec<_>>()
        };
        let mut troubles: Vec<String> = self.scenarios.iter().flat_map(of).collect();
        if self.cancelled {
            let (finished, wanted) = (self.runs(), self.wanted_runs);
            troubles.push(format!("interrupted: {finished} of {wanted} runs finished"));
        }
        troubles
    }
}
