//! A bar over a number of equal pieces of work, on standard error, shown only on a terminal.

use std::fmt::Write;
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::output;

/// Steps of the bar per piece of work.
const STEPS: u64 = 1000;

/// The completed part of the work from which an estimate of the remaining time is shown.
const ENOUGH_DONE: f32 = 0.005;

/// The remaining time, once it can be estimated.
fn left(state: &ProgressState, out: &mut dyn Write) {
    if state.fraction() >= ENOUGH_DONE {
        // A progress bar cannot report errors.
        let _ = write!(out, " {:#} left", HumanDuration(state.eta()));
    }
}

/// The bar.
pub struct Bar {
    /// Hidden when standard error is not a terminal.
    bar: ProgressBar,
    index: usize,
}

impl Default for Bar {
    fn default() -> Self {
        Self::new()
    }
}

impl Bar {
    /// Creates a bar at its start.
    pub fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{bar:10} {percent:>3}%{left} {prefix}{wide_msg}") {
            bar.set_style(style.with_key("left", left));
        }
        Self { bar, index: 0 }
    }

    /// Begins piece `index` of `total`.
    pub fn start(&mut self, index: usize, total: usize, what: String) {
        self.index = index;
        self.bar.set_length(total as u64 * STEPS);
        if total > 1 {
            self.bar.set_prefix(format!("[{}/{total}] ", index + 1));
        }
        self.set_text(what);
        self.bar.enable_steady_tick(Duration::from_millis(200));
        self.advance(0.0);
    }

    /// Sets the completed part of the piece, 0 to 1.
    pub fn advance(&self, share: f64) {
        self.bar
            .set_position(self.index as u64 * STEPS + (share.clamp(0.0, 1.0) * STEPS as f64) as u64);
    }

    /// Sets the text of the current step.
    pub fn set_text(&self, what: String) {
        self.bar.set_message(output::printable(&what).into_owned());
    }

    /// Prints lines above the bar on a terminal, wrapped there, or plain lines in a pipe.
    pub fn line(&self, text: &str) {
        for line in text.lines() {
            if self.bar.is_hidden() {
                output::print_message(line);
            } else {
                self.bar.println(output::message(line));
            }
        }
    }

    /// Runs something that writes to the terminal, with the bar out of its way.
    pub fn suspend<R>(&self, act: impl FnOnce() -> R) -> R {
        self.bar.suspend(act)
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
