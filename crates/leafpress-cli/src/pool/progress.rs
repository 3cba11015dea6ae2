//! Progress of the runs.

use leafpress_lab::Phase;
use leafpress_lab::core::about;
use leafpress_lab::pool::{Event, Line, Sample, text};

use super::args::Talk;
use crate::progress::Bar;

/// Shows the progress of the runs.
pub struct Reporter {
    talk: Talk,
    bar: Bar,
    /// When the last line was written, in seconds of the run.
    reported_at: f64,
    /// The run in progress.
    index: usize,
    total: usize,
}

impl Reporter {
    pub fn new(talk: Talk) -> Self {
        Self {
            talk,
            bar: Bar::new(),
            reported_at: 0.0,
            index: 0,
            total: 0,
        }
    }

    /// Begins run `index` of `total`.
    pub fn start(&mut self, index: usize, total: usize, name: String) {
        if self.talk != Talk::Quiet {
            self.bar.start(index, total, name);
        }
        self.reported_at = 0.0;
        (self.index, self.total) = (index, total);
    }

    /// Reports that one of several runs has ended.
    pub fn finished(&self, line: &Line) {
        if self.talk != Talk::Quiet {
            self.bar.line(&result(self.index, self.total, line));
        }
    }

    /// Sets the completed part of a phase, 0 to 1.
    pub fn advance(&self, phase: Phase, done: f64) {
        if self.talk != Talk::Quiet {
            self.bar.advance(share(phase, done));
        }
    }

    pub fn show(&mut self, event: &Event<'_>) {
        match event {
            Event::Progress(phase, done) => self.advance(*phase, *done),
            Event::Sample(sample, _) => self.sample(sample),
        }
    }

    fn sample(&mut self, sample: &Sample) {
        let line = status(sample);
        match self.talk {
            Talk::Quiet => {}
            Talk::Bar => self.bar.set_text(line),
            Talk::Seconds | Talk::Samples => {
                if self.talk == Talk::Samples || sample.at_seconds - self.reported_at >= 1.0 {
                    let stage = if sample.measured { "" } else { ", warm-up" };
                    self.bar.line(&format!("{:>5.1} s {line}{stage}", sample.at_seconds));
                    self.reported_at = sample.at_seconds;
                }
            }
        }
    }

    pub fn finish(&self) {
        self.bar.finish();
    }
}

/// One sample, on one line.
fn status(sample: &Sample) -> String {
    let held = &sample.held;
    let hits = sample
        .hit_ratio()
        .map_or_else(|| "no access".into(), |ratio| format!("{:.1}% hits", ratio * 100.0));
    format!(
        "{hits}, {:.0} pages/s, raw {}, compr. {}",
        sample.acquisitions as f64 / sample.length_seconds.max(1e-9),
        about(held.raw_space_bytes as f64),
        about(held.compressed_space_bytes as f64)
    )
}

/// One run's result, on one line.
fn result(index: usize, total: usize, line: &Line) -> String {
    let width = total.to_string().len();
    let name = format!("[{:>width$}/{total}] {:<15}", index + 1, text::name(&line.options));
    match (&line.report, &line.failure) {
        (Some(report), _) => {
            let outcome = &report.outcome;
            let us = outcome
                .us_per_page()
                .map_or_else(String::new, |us| format!("{us:>8.2} us/page"));
            let wrong = match outcome.checks.wrong {
                0 => String::new(),
                wrong => format!("  {wrong} WRONG"),
            };
            format!("{name} {us} {:>6.2}% hits{wrong}", outcome.hit_ratio() * 100.0)
        }
        (None, failure) => format!("{name} failed: {}", failure.as_deref().unwrap_or("no answer")),
    }
}

/// The completed part of a run, 0 to 1: the measured time is most of it.
fn share(phase: Phase, done: f64) -> f64 {
    let (before, length) = match phase {
        Phase::Corpus | Phase::Load => (0.0, 0.05),
        Phase::WarmUp => (0.05, 0.2),
        Phase::Timed => (0.25, 0.7),
        Phase::Verify => (0.95, 0.05),
    };
    before + length * done.clamp(0.0, 1.0)
}
