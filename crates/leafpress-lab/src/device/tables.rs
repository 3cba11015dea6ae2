//! The figures as tables: `summary.tsv` for programs, and one for people.

use super::{Latency, Measurement, Report};
use crate::core::Bytes;
use crate::report::NOT_APPLICABLE;
use crate::report::table::of_parts;
use crate::report::tsv::{self, Cell, number, word};

type Column = (&'static str, fn(&Measurement) -> Cell);

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

/// `summary.tsv`: a line for each measurement.
pub fn summary(report: &Report) -> String {
    tsv::columns(COLUMNS, &report.measurements, |cell, m| cell(m))
}

/// The columns for people after the job.
const PEOPLE: [Column; 13] = [
    ("", |m| word(m.operation)),
    ("block", |m| word(Bytes(m.block_bytes))),
    ("depth", |m| word(m.queue_depth)),
    ("IOPS", |m| number(m.iops, 0)),
    ("MB/s", |m| number(m.mb_per_s, 1)),
    ("us per\nblock", |m| brief(m.us_per_block)),
    ("min\nus", |m| brief(m.latency.min_us)),
    ("mean\nus", |m| brief(m.latency.mean_us)),
    ("p50\nus", |m| brief(m.latency.p50_us?)),
    ("p90\nus", |m| brief(m.latency.p90_us?)),
    ("p99\nus", |m| brief(m.latency.p99_us?)),
    ("p99.9\nus", |m| brief(m.latency.p999_us?)),
    ("max\nus", |m| brief(m.latency.max_us)),
];

/// A number of microseconds in as many digits as mean something.
fn brief(us: f64) -> Cell {
    number(us, if us < 100.0 { 1 } else { 0 })
}

/// Headings and rows of the table for people.
pub(super) fn for_people(report: &Report) -> (Vec<&'static str>, Vec<Vec<String>>) {
    // The name is redundant for a single job.
    let named = report.measurements.iter().any(|m| m.job.is_some());
    let job = named.then_some(("job", (|m| word(m.job.as_deref()?)) as fn(&Measurement) -> Cell));
    let columns: Vec<Column> = job.into_iter().chain(PEOPLE).collect();
    let rows = report.measurements.iter().map(|m| {
        let cells = columns
            .iter()
            .map(|(_, cell)| cell(m).unwrap_or_else(|| NOT_APPLICABLE.into()));
        cells.collect()
    });
    (columns.iter().map(|(name, _)| *name).collect(), rows.collect())
}

/// The table for people.
pub(super) fn table(report: &Report) -> String {
    let (headings, rows) = for_people(report);
    let words = headings.iter().take_while(|heading| **heading != "block").count();
    // After block and depth, which identify rows.
    let at = |column: usize| words + 2 + column;
    let parts = [
        ("", vec![at(0), at(1), at(2), at(5), at(7)]),
        ("Other latency figures", vec![at(3), at(4), at(6), at(8), at(9)]),
    ];
    let parts = parts.each_ref().map(|(name, columns)| (*name, columns.as_slice()));
    of_parts(headings, rows, words + 2, &parts)
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
