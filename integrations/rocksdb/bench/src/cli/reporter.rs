//! Progress output of runs.

use leafpress_console::progress::Bar;
use leafpress_lab::Phase;

/// Shows how far the runs are: a bar on a terminal, a line for each finished run in a pipe as well.
pub struct Reporter {
    quiet: bool,
    bar: Bar,
    index: usize,
    total: usize,
}

impl Reporter {
    pub fn new(quiet: bool) -> Self {
        Self {
            quiet,
            bar: Bar::new(),
            index: 0,
            total: 0,
        }
    }

    /// Run `index` of `total` starts.
    pub fn start(&mut self, index: usize, total: usize, what: String) {
        (self.index, self.total) = (index, total);
        if !self.quiet {
            self.bar.start(index, total, what);
        }
    }

    /// Shows the share of a phase that is done, 0 to 1.
    pub fn advance(&self, phase: Phase, done: f64) {
        let (before, length) = match phase {
            Phase::Corpus => (0.0, 0.02),
            Phase::Load => (0.02, 0.9),
            Phase::WarmUp => (0.02, 0.13),
            Phase::Timed => (0.15, 0.8),
            Phase::Verify => (0.95, 0.05),
        };
        if !self.quiet {
            self.bar.advance(before + length * done.clamp(0.0, 1.0));
        }
    }

    /// The run ended so.
    pub fn finished(&self, what: &str) {
        if !self.quiet {
            let width = self.total.to_string().len();
            self.bar
                .line(&format!("[{:>width$}/{}] {what}", self.index + 1, self.total));
        }
    }

    pub fn finish(&self) {
        self.bar.finish();
    }
}
