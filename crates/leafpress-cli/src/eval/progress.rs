//! Progress on standard error: a bar on a terminal, one line per finished run in a pipe.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use leafpress_lab::{Phase, Progress, Row};

/// Shows how far an evaluation is.
pub struct Reporter {
    /// Hidden when standard error is not a terminal.
    bar: ProgressBar,
    /// The run in progress.
    index: usize,
    total: usize,
    seconds: f64,
}

/// Steps of the bar per run.
const STEPS: u64 = 1000;

impl Reporter {
    pub fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3}%  {prefix}  {msg}") {
            bar.set_style(style);
        }
        Self {
            bar,
            index: 0,
            total: 0,
            seconds: 0.0,
        }
    }

    pub fn show(&mut self, progress: &Progress) {
        match progress {
            Progress::Started { index, total, spec } => {
                (self.index, self.total, self.seconds) = (*index, *total, spec.base.seconds);
                self.bar.set_length(*total as u64 * STEPS);
                self.bar.set_position(*index as u64 * STEPS);
                let threads = if spec.threads == 1 {
                    "1 thread".to_owned()
                } else {
                    format!("{} threads", spec.threads)
                };
                self.bar.set_prefix(format!("run {}/{total}", index + 1));
                self.bar
                    .set_message(format!("{} {}, {threads}", spec.codec, spec.workload));
                self.bar.enable_steady_tick(Duration::from_millis(200));
            }
            Progress::Phase { phase, fraction } => {
                let done = self.share(*phase, fraction.clamp(0.0, 1.0));
                self.bar
                    .set_position(self.index as u64 * STEPS + (done * STEPS as f64) as u64);
            }
            Progress::Finished(row) => self.line(&finished(self.index, self.total, row)),
            Progress::Failed(failure) => self.line(&format!(
                "[{}/{}] {}: failed: {}",
                self.index + 1,
                self.total,
                failure.spec.label(),
                failure.reason
            )),
        }
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// How much of a run is done, 0 to 1: the timed window is nearly all of it.
    fn share(&self, phase: Phase, fraction: f64) -> f64 {
        let (before, length) = match phase {
            Phase::Corpus => (0.0, 0.02),
            Phase::Load => (0.02, 0.13),
            Phase::WarmUp => (0.15, 0.05),
            Phase::Timed => (0.2, 0.75),
            Phase::Verify => (0.95, 0.05),
        };
        before + length * fraction
    }

    /// Above the bar on a terminal, plainly in a pipe.
    fn line(&self, line: &str) {
        if self.bar.is_hidden() {
            eprintln!("{line}");
        } else {
            self.bar.println(line);
        }
    }
}

fn finished(index: usize, total: usize, row: &Row) -> String {
    let (spec, result) = (&row.spec, &row.result);
    let width = total.to_string().len();
    let mut line = format!(
        "[{:>width$}/{total}] {:<18} {:<14} {:>2} threads  {:>8.3} Mops/s",
        index + 1,
        spec.codec,
        spec.workload,
        spec.threads,
        result.qps() / 1e6
    );
    for (name, latency) in [
        ("read", &result.read_latency),
        ("write", &result.write_latency),
        ("scan", &result.scan_latency),
    ] {
        if let Some(latency) = latency {
            line += &format!("  {name} p99 {:.1} us", latency.p99_ns as f64 / 1e3);
        }
    }
    if result.ended.user_bytes > 0 {
        line += &format!(
            "  holds {:.2} per user byte",
            result.ended.bytes_held as f64 / result.ended.user_bytes as f64
        );
    }
    if result.mismatches > 0 {
        line += &format!("  {} MISMATCHES", result.mismatches);
    }
    line
}
