//! Progress on standard error.

use leafpress_lab::Phase;
use leafpress_lab::cache::{self, Step};

use crate::progress::Bar;

/// Prints progress.
pub struct Reporter {
    bar: Bar,
    index: usize,
    /// Runs of a scenario, and of all of them.
    engines: usize,
    total: usize,
    /// Runs before the scenario in progress, and its name where there are several.
    before: usize,
    scenario: Option<String>,
    /// The cache in progress.
    name: String,
    /// Fills until its capacity is found.
    fills: usize,
}

/// Fills that the search for a capacity usually needs.
const USUAL_FILLS: usize = 3;

impl Reporter {
    /// Creates a reporter for `caches` per scenario and `total` runs of all scenarios.
    pub fn new(engines: usize, total: usize) -> Self {
        Self {
            bar: Bar::new(),
            index: 0,
            engines,
            total,
            before: 0,
            scenario: None,
            name: String::new(),
            fills: 0,
        }
    }

    /// Ends the progress output.
    pub fn finish(&self) {
        self.bar.finish();
    }

    /// Prints a step.
    pub fn show(&mut self, step: &Step<'_>) {
        match step {
            Step::Curves(done) => {
                if self.name.is_empty() {
                    self.name = "miss-ratio curves".into();
                    self.bar.start(0, 1, self.name.clone());
                }
                self.bar.advance(*done);
            }
            Step::Scenario(number, name) => {
                self.before = number * self.engines;
                self.scenario = Some((*name).to_owned());
            }
            Step::Started(index, engine) => {
                let name = self
                    .scenario
                    .as_ref()
                    .map_or_else(String::new, |name| format!("{name}: "));
                (self.index, self.name, self.fills) = (self.before + index, format!("{name}{engine}"), 0);
                self.bar.start(self.index, self.total, self.name.clone());
            }
            Step::Fill(number) => {
                self.fills = number + 1;
                let fills = self.fills;
                self.bar
                    .set_text(format!("{}: fill {fills}, to find its size setting", self.name));
            }
            Step::Progress(phase, done) => {
                if matches!(phase, Phase::WarmUp | Phase::Timed) {
                    let what = if *phase == Phase::Timed { "measured" } else { "warm-up" };
                    self.bar.set_text(format!("{}: {what}", self.name));
                }
                self.bar.advance(self.share(*phase, *done));
            }
            Step::Finished(line) => {
                let (number, total) = (self.index + 1, self.total);
                let scenario = self
                    .scenario
                    .as_ref()
                    .map_or_else(String::new, |name| format!("{name}: "));
                let number = format!("[{number}/{total}] ");
                let result = cache::line(line);
                self.bar.line(&match scenario.as_str() {
                    "" => format!("{number}{result}"),
                    scenario => format!(
                        "{number}{}\n{:width$}{result}",
                        scenario.trim_end(),
                        "",
                        width = number.len()
                    ),
                });
            }
        }
    }

    /// The completed part of a cache's run, 0 to 1.
    fn share(&self, phase: Phase, done: f64) -> f64 {
        let (before, length) = match (phase, self.fills) {
            (Phase::Corpus, 0) => (0.0, 0.0),
            (Phase::Load, fills) => {
                let fill = 0.3 / USUAL_FILLS as f64;
                ((fills.clamp(1, USUAL_FILLS) - 1) as f64 * fill, fill)
            }
            (Phase::WarmUp, 0) => (0.0, 0.5),
            (Phase::Timed, 0) => (0.5, 0.5),
            (Phase::WarmUp, _) => (0.3, 0.3),
            (Phase::Timed, _) => (0.6, 0.4),
            (Phase::Corpus | Phase::Verify, _) => (0.3, 0.0),
        };
        before + length * done.clamp(0.0, 1.0)
    }
}
