//! What a figure's scenarios measured.

use serde::{Deserialize, Serialize};

use super::super::Outcome;
use super::FigureOptions;

/// What one scenario measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScenarioOutcome {
    /// What tells it from the others of its figure.
    pub name: String,
    /// What the paper has of it, in its own units.
    pub paper: Option<String>,
    /// What was run and measured.
    pub outcome: Outcome,
}

/// What a figure's scenarios measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FigureOutcome {
    /// What was run.
    pub options: FigureOptions,
    /// The scenarios in order, those in which a cache has finished.
    pub scenarios: Vec<ScenarioOutcome>,
    /// Caches times scenarios.
    pub wanted_runs: usize,
    /// Whether it was cancelled before the last one.
    pub cancelled: bool,
}

impl FigureOutcome {
    /// Caches that have finished, in all scenarios together.
    pub fn runs(&self) -> usize {
        self.scenarios.iter().map(|one| one.outcome.lines.len()).sum()
    }

    /// What a reader must know before the figures: failures, wrong bytes, a cancellation.
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
            troubles.push(format!("interrupted: {finished} of {wanted} runs had finished"));
        }
        troubles
    }
}
