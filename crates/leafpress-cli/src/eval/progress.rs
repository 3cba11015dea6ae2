//! Progress of an evaluation: the bar, and a line per finished run.

use leafpress_lab::{Phase, Progress, Row};

use crate::progress::Bar;

/// Shows the progress of an evaluation.
pub struct Reporter {
    bar: Bar,
    /// The run in progress.
    index: usize,
    total: usize,
}

impl Reporter {
    pub fn new() -> Self {
        Self {
            bar: Bar::new(),
            index: 0,
            total: 0,
        }
    }

    pub fn show(&mut self, progress: &Progress) {
        match progress {
            Progress::Started { index, total, spec } => {
                (self.index, self.total) = (*index, *total);
                let threads = if spec.threads == 1 {
                    "1 thread".to_owned()
                } else {
                    format!("{} threads", spec.threads)
                };
                self.bar
                    .start(*index, *total, format!("{} {}, {threads}", spec.codec, spec.workload));
            }
            Progress::Phase { phase, fraction } => self.bar.advance(share(*phase, *fraction)),
            Progress::Finished(row) => self.bar.line(&finished(self.index, self.total, row)),
            Progress::Failed(failure) => self.bar.line(&format!(
                "[{}/{}] {}: failed: {}",
                self.index + 1,
                self.total,
                failure.spec.label(),
                failure.reason
            )),
        }
    }

    pub fn finish(&self) {
        self.bar.finish();
    }
}

/// The completed part of a run, 0 to 1: the timed window is nearly all of it.
fn share(phase: Phase, fraction: f64) -> f64 {
    let (before, length) = match phase {
        Phase::Corpus => (0.0, 0.02),
        Phase::Load => (0.02, 0.13),
        Phase::WarmUp => (0.15, 0.05),
        Phase::Timed => (0.2, 0.75),
        Phase::Verify => (0.95, 0.05),
    };
    before + length * fraction
}

/// Frame and leaf sizes at the end. Other maps have none.
fn frames(row: &Row) -> Option<String> {
    let ended = &row.result.ended;
    let frame = match ended.frame_limit_bytes {
        0 => return None,
        1 => "one record".to_owned(),
        bytes => format!("{bytes} bytes"),
    };
    Some(format!("frames of {frame}, leaves of {}", ended.leaf_limit_bytes))
}

/// A run's result: throughput, and its costs below it.
fn finished(index: usize, total: usize, row: &Row) -> String {
    let (spec, result) = (&row.spec, &row.result);
    let width = total.to_string().len();
    let number = format!("[{:>width$}/{total}] ", index + 1);
    let threads = if spec.threads == 1 { "thread" } else { "threads" };
    let times: Vec<String> = [
        ("read", &result.read_latency),
        ("write", &result.write_latency),
        ("scan", &result.scan_latency),
    ]
    .into_iter()
    .filter_map(|(name, latency)| {
        let p99_us = latency.as_ref()?.p99_ns as f64 / 1e3;
        let decimals = usize::from(p99_us < 1000.0);
        Some(format!("{name} {p99_us:.decimals$}"))
    })
    .collect();
    let mut details = Vec::new();
    if !times.is_empty() {
        details.push(format!("p99 us: {}", times.join(", ")));
    }
    if result.ended.user_bytes > 0 {
        let held = result.ended.bytes_held as f64 / result.ended.user_bytes as f64;
        details.push(format!("held/user byte: {held:.2}"));
    }
    let mut line = format!(
        "{number}{:<9} {:<14} {:>2} {threads:<7} {:>7.3} Mops/s",
        spec.codec.to_string(),
        spec.workload.to_string(),
        spec.threads,
        result.qps() / 1e6
    );
    if result.mismatches > 0 {
        line += &format!(" {} MISMATCHES", result.mismatches);
    }
    for more in [details.join("; "), frames(row).unwrap_or_default()] {
        if !more.is_empty() {
            line += &format!("\n{:width$}{more}", "", width = number.len());
        }
    }
    line
}
