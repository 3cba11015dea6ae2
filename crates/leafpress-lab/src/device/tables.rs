//! The figures for programs: `summary.tsv`.

use super::{Latency, Measurement, Report};
use crate::report::tsv::{self, Cell, number, word};

pub(super) type Column = (&'static str, fn(&Measurement) -> Cell);

/// The columns of `summary.tsv`.
const COLUMNS: [Column; 29] = [
    ("job", |m| word(m.job.as_deref()?)),
    ("operation", |m| word(m.operation)),
    ("block_bytes", |m| word(m.block_bytes)),
    ("queue_depth", |m| word(m.queue_depth)),
    ("seconds", |m| number(m.seconds, 4)),
    ("operations", |m| word(m.operations)),
    ("iops", |m| number(m.iops, 2)),
    ("mb_per_s", |m| number(m.mb_per_s, 3)),
    ("us_per_block", |m| number(m.us_per_block, 3)),
    ("min_us", |m| number(m.latency.min_us, 3)),
    ("mean_us", |m| number(m.latency.mean_us, 3)),
    ("p50_us", |m| number(m.latency.p50_us?, 3)),
    ("p90_us", |m| number(m.latency.p90_us?, 3)),
    ("p99_us", |m| number(m.latency.p99_us?, 3)),
    ("p999_us", |m| number(m.latency.p999_us?, 3)),
    ("p9999_us", |m| number(m.latency.p9999_us?, 3)),
    ("max_us", |m| number(m.latency.max_us, 3)),
    ("submit_us", |m| number(m.submit_us?, 3)),
    ("wait_us", |m| number(m.wait_us(), 3)),
    ("random_operations", |m| word(m.random_latency?.samples)),
    ("random_min_us", |m| number(m.random_latency?.min_us, 3)),
    ("random_mean_us", |m| number(m.random_latency?.mean_us, 3)),
    ("random_p50_us", |m| number(m.random_latency?.p50_us?, 3)),
    ("random_p90_us", |m| number(m.random_latency?.p90_us?, 3)),
    ("random_p99_us", |m| number(m.random_latency?.p99_us?, 3)),
    ("random_p999_us", |m| number(m.random_latency?.p999_us?, 3)),
    ("random_p9999_us", |m| number(m.random_latency?.p9999_us?, 3)),
    ("random_max_us", |m| number(m.random_latency?.max_us, 3)),
    ("cores", |m| number(m.cores?, 3)),
];

/// Formats `summary.tsv`: a line for each measurement.
pub fn summary(report: &Report) -> String {
    tsv::columns(COLUMNS, &report.measurements, |cell, m| cell(m))
}

/// Quantiles that a chart needs all of.
pub(super) fn quantiles(latency: &Latency) -> Option<[f64; 6]> {
    Some([
        latency.p50_us?,
        latency.p90_us?,
        latency.p99_us?,
        latency.p999_us?,
        latency.p9999_us?,
        latency.max_us,
    ])
}
