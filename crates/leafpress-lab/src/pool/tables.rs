//! Several runs as tables: for people, and tab-separated for programs.

use super::sweep::{Line, Sweep};
use super::{Options, Outcome, Sample};
use crate::core::latency::Latency;
use crate::report::table::{Best, Marked, Part, ranked};
use crate::report::tsv::{self, Cell, number, word};

/// A run that ended well.
struct Run<'r> {
    line: &'r Line,
    options: &'r Options,
    outcome: &'r Outcome,
}

impl<'r> Run<'r> {
    fn of(line: &'r Line) -> Option<Self> {
        Some(Self {
            line,
            options: &line.options,
            outcome: &line.report.as_ref()?.outcome,
        })
    }
}

type Column = (&'static str, fn(&Run<'_>) -> Cell);

/// The columns of `summary.tsv`, in order. A cell that has no meaning is `None`.
const COLUMNS: [Column; 75] = [
    ("data", |r| word(&r.options.data)),
    ("store", |r| word(&r.outcome.set.place)),
    ("pages", |r| word(r.outcome.set.pages)),
    ("data_bytes", |r| word(r.outcome.set.bytes)),
    ("budget_bytes", |r| word(r.options.budget_bytes)),
    ("codec", |r| word(r.options.codec)),
    ("share", |r| word(r.options.share)),
    ("policy", |r| word(r.options.policy)),
    ("distribution", |r| word(r.options.distribution)),
    ("device_latency_us", |r| word(r.options.device_latency_us)),
    ("workers", |r| word(r.options.workers)),
    ("round_least_pages", |r| word(r.options.round_pages.0)),
    ("round_most_pages", |r| word(r.options.round_pages.1)),
    ("update_pct", |r| word(r.options.update_pct)),
    ("delete_pct", |r| word(r.options.delete_pct)),
    ("seed", |r| word(r.options.seed)),
    ("warmup_seconds", |r| number(r.outcome.warmup_seconds, 3)),
    ("full", |r| word(u8::from(r.outcome.full))),
    ("seconds", |r| number(r.outcome.seconds, 3)),
    ("acquisitions", |r| word(r.outcome.work.acquisitions)),
    ("acquisitions_per_second", |r| number(r.outcome.throughput(), 1)),
    ("us_per_page", |r| number(r.outcome.us_per_page()?, 4)),
    ("hits", |r| word(r.outcome.hits())),
    ("misses", |r| word(r.outcome.misses())),
    ("hit_pct", |r| percent(r.outcome.hit_ratio())),
    ("theory_hit_pct", |r| percent(r.outcome.theory(r.options)?)),
    ("theory_of_held_hit_pct", |r| {
        percent(r.outcome.theory_of_held(r.options)?)
    }),
    ("raw_hits", |r| word(r.outcome.counters.raw_hits)),
    ("compressed_hits", |r| word(r.outcome.counters.compressed_hits)),
    ("acquire_p50_us", |r| us(&r.outcome.acquire, |l| l.p50_ns)),
    ("acquire_p90_us", |r| us(&r.outcome.acquire, |l| l.p90_ns)),
    ("acquire_p99_us", |r| us(&r.outcome.acquire, |l| l.p99_ns)),
    ("acquire_p999_us", |r| us(&r.outcome.acquire, |l| l.p999_ns)),
    ("acquire_max_us", |r| us(&r.outcome.acquire, |l| l.max_ns)),
    ("update_p50_us", |r| us(&r.outcome.update, |l| l.p50_ns)),
    ("update_p99_us", |r| us(&r.outcome.update, |l| l.p99_ns)),
    ("update_max_us", |r| us(&r.outcome.update, |l| l.max_ns)),
    ("delete_p99_us", |r| us(&r.outcome.delete, |l| l.p99_ns)),
    ("delete_max_us", |r| us(&r.outcome.delete, |l| l.max_ns)),
    ("rounds", |r| word(r.outcome.work.rounds)),
    ("rounds_cut", |r| word(r.outcome.work.rounds_cut)),
    ("updates", |r| word(r.outcome.work.updates)),
    ("deletes", |r| word(r.outcome.work.deletes)),
    ("creates", |r| word(r.outcome.work.creates)),
    ("compressions", |r| word(r.outcome.counters.compressions)),
    ("incompressible", |r| word(r.outcome.counters.incompressible)),
    ("restorations", |r| word(r.outcome.counters.restorations)),
    ("raw_evictions", |r| word(r.outcome.counters.raw_evictions)),
    ("compressed_evictions", |r| {
        word(r.outcome.counters.compressed_evictions)
    }),
    ("sweeps", |r| word(r.outcome.counters.sweeps)),
    ("sweep_seconds", |r| number(r.outcome.counters.sweep_ns as f64 / 1e9, 4)),
    ("compressed_share_pct", |r| percent(r.outcome.compressed_share())),
    ("compressed_share_end_pct", |r| {
        number(100.0 - r.outcome.held.raw_percent, 3)
    }),
    ("raw_pages", |r| word(r.outcome.held.raw_pages)),
    ("compressed_pages", |r| word(r.outcome.held.compressed_pages)),
    ("ratio", |r| number(r.outcome.ratio_held()?, 4)),
    ("bytes_held", |r| word(r.outcome.held.bytes_held)),
    ("raw_space_bytes", |r| word(r.outcome.held.raw_space_bytes)),
    ("compressed_space_bytes", |r| {
        word(r.outcome.held.compressed_space_bytes)
    }),
    ("table_bytes", |r| word(r.outcome.held.table_bytes)),
    ("ghost_bytes", |r| word(r.outcome.held.ghost_bytes)),
    ("pinned_copy_bytes", |r| word(r.outcome.held.pinned_copy_bytes)),
    ("most_over_budget_bytes", |r| {
        word(r.outcome.most_over_budget(r.options))
    }),
    ("most_resident_bytes", |r| word(r.outcome.most_resident_bytes()?)),
    ("store_read_bytes", |r| word(r.outcome.counters.store_read_bytes)),
    ("store_write_bytes", |r| word(r.outcome.counters.store_write_bytes)),
    ("write_errors", |r| word(r.outcome.counters.write_errors)),
    ("store_read_us", |r| number(r.outcome.held.store_read_ns / 1e3, 3)),
    ("compress_us", |r| number(r.outcome.held.compress_ns / 1e3, 3)),
    ("decompress_us", |r| number(r.outcome.held.decompress_ns / 1e3, 3)),
    ("user_seconds", |r| number(r.outcome.cpu.user_seconds, 3)),
    ("system_seconds", |r| number(r.outcome.cpu.system_seconds, 3)),
    ("deciding_pct", |r| number(r.outcome.deciding_pct(), 4)),
    ("checked", |r| word(r.outcome.checks.checked)),
    ("wrong", |r| word(r.outcome.checks.wrong)),
];

fn percent(share: f64) -> Cell {
    number(share * 100.0, 3)
}

fn us(latency: &Option<Latency>, ns: impl Fn(&Latency) -> u64) -> Cell {
    number(ns(latency.as_ref()?) as f64 / 1e3, 3)
}

/// Formats `summary.tsv`: a line for each run that ended well.
pub fn summary(sweep: &Sweep) -> String {
    tsv::columns(COLUMNS, sweep.lines.iter().filter_map(Run::of), |cell, run| cell(run))
}

type SampleColumn = (&'static str, fn(&Sample) -> Cell);

/// The columns of `over_time.tsv` after the codec and the share.
const SAMPLE_COLUMNS: [SampleColumn; 17] = [
    ("seconds", |s| number(s.at_seconds, 3)),
    ("measured", |s| word(u8::from(s.measured))),
    ("acquisitions_per_second", |s| {
        number(s.acquisitions as f64 / s.length_seconds, 1)
    }),
    ("hit_pct", |s| percent(s.hit_ratio()?)),
    ("compressed_share_pct", |s| number(100.0 - s.held.raw_percent, 3)),
    ("raw_pages", |s| word(s.held.raw_pages)),
    ("compressed_pages", |s| word(s.held.compressed_pages)),
    ("bytes_held", |s| word(s.held.bytes_held)),
    ("raw_space_bytes", |s| word(s.held.raw_space_bytes)),
    ("compressed_space_bytes", |s| word(s.held.compressed_space_bytes)),
    ("table_bytes", |s| word(s.held.table_bytes)),
    ("ghost_bytes", |s| word(s.held.ghost_bytes)),
    ("pinned_copy_bytes", |s| word(s.held.pinned_copy_bytes)),
    ("resident_bytes", |s| word(s.resident_bytes?)),
    ("store_read_bytes", |s| word(s.store_read_bytes)),
    ("store_read_us", |s| number(s.held.store_read_ns / 1e3, 3)),
    ("decompress_us", |s| number(s.held.decompress_ns / 1e3, 3)),
];

/// Formats `over_time.tsv`: a line for each window of each run.
pub fn over_time(sweep: &Sweep) -> String {
    let names = SAMPLE_COLUMNS.iter().map(|(name, _)| *name);
    let mut table = tsv::line(["codec", "share"].into_iter().chain(names).map(word));
    for run in sweep.lines.iter().filter_map(Run::of) {
        for sample in &run.outcome.samples {
            let cells = SAMPLE_COLUMNS.iter().map(|(_, cell)| cell(sample));
            let head = [word(run.options.codec), word(run.options.share)];
            table += &tsv::line(head.into_iter().chain(cells));
        }
    }
    table
}

/// The tables of [`PEOPLE`].
pub(super) const PARTS: [Part<'_>; 2] = [
    ("", &[1, 2, 3, 4, 6]),
    ("Memory by use, and the device", &[7, 8, 9, 10, 5]),
];

/// The columns of the table for people, in order, and whether the lowest figure is best.
const PEOPLE: [(Column, Option<Best>); 11] = [
    (("compressed", |r| word(r.line.share_name())), None),
    (
        ("hit\n%", |r| number(r.outcome.hit_ratio() * 100.0, 2)),
        Some(Best::Most),
    ),
    (("theory\n%", |r| number(r.outcome.theory(r.options)? * 100.0, 2)), None),
    (
        ("us per\npage", |r| number(r.outcome.us_per_page()?, 2)),
        Some(Best::Least),
    ),
    (
        ("pages\nper s", |r| number(r.outcome.throughput(), 0)),
        Some(Best::Most),
    ),
    (("p50\nus", |r| us_short(&r.outcome.acquire, |l| l.p50_ns)), None),
    (
        ("p99\nus", |r| us_short(&r.outcome.acquire, |l| l.p99_ns)),
        Some(Best::Least),
    ),
    (("raw\npages", |r| word(r.outcome.held.raw_pages)), None),
    (("compr.\npages", |r| word(r.outcome.held.compressed_pages)), None),
    (("ratio", |r| number(r.outcome.ratio_held()?, 2)), None),
    (
        ("read\nMB/s", |r| {
            number(r.outcome.per_second(r.outcome.counters.store_read_bytes) / 1e6, 1)
        }),
        None,
    ),
];

fn us_short(latency: &Option<Latency>, ns: impl Fn(&Latency) -> u64) -> Cell {
    number(ns(latency.as_ref()?) as f64 / 1e3, 2)
}

/// The headings of the table for people.
pub(super) fn headings() -> Vec<&'static str> {
    PEOPLE.iter().map(|((name, _), _)| *name).collect()
}

/// The rows of the table for people of one codec's runs.
pub(super) fn rows<'l>(lines: impl Iterator<Item = &'l Line>) -> Vec<Vec<Marked>> {
    let runs: Vec<_> = lines.filter_map(Run::of).collect();
    let mut rows: Vec<Vec<Marked>> = runs.iter().map(|_| Vec::new()).collect();
    for ((_, cell), best) in &PEOPLE {
        let cells = runs.iter().map(|run| {
            let text = cell(run)?;
            let figure = text.parse().unwrap_or(f64::NAN);
            Some((text, figure))
        });
        for (row, cell) in rows.iter_mut().zip(ranked(cells.collect(), *best)) {
            row.push(cell);
        }
    }
    rows
}

/// How the adaptive run compares with the best fixed share, in a sentence.
pub(super) fn verdict(sweep: &Sweep, codec: leafpress::Codec) -> Option<String> {
    let over = sweep.adaptive_over_best_pct(codec)?;
    let best = sweep.best_fixed(codec)?;
    let outcome = &sweep.adaptive(codec)?.report.as_ref()?.outcome;
    Some(format!(
        "Adaptive: {:.1}% of the memory compressed on average, {:.1}% {} microseconds per page than the best fixed \
         share, {}.",
        outcome.compressed_share() * 100.0,
        over.abs(),
        if over > 0.0 { "more" } else { "fewer" },
        best.share_name()
    ))
}

#[cfg(test)]
#[path = "tables_tests.rs"]
mod tests;
