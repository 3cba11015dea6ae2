//! The comparison of caches, for people and programs.

use leafpress_lab::report::draw::{Bars, bars, microseconds, quantile_lines};
use leafpress_lab::report::html::{figure as drawn, pair};
use leafpress_lab::report::palette::colours;
use leafpress_lab::report::{Document, Table, tsv};
use leafpress_lab::{Bytes, LabError};
use maud::{Markup, html};
use plotters::style::RGBColor;

use super::Comparison;
use crate::cache::{Cache, Secondary};
use crate::report::cells::{figure, size, throughput, times};
use crate::report::{options_of, shape, tables};
use crate::study::median;
use crate::{Outcome, Workload};

const NOTES: [&str; 4] = [
    "All caches have the same memory in total; a secondary cache's is taken from the block cache.",
    "The databases are loaded once; each run is a process of its own that begins with empty caches and warms them up \
     before it is measured.",
    "Every read is looked at: its key must be there and its value of the right length.",
    "A hit of the secondary cache is decompressed; it may be promoted to the block cache.",
];

/// Tickers of blocks that a block cache had and had not.
const HIT: &str = "rocksdb.block.cache.data.hit";
const MISS: &str = "rocksdb.block.cache.data.miss";
/// Those of them that the cache behind it had.
const SECONDARY_HIT: &str = "rocksdb.secondary.cache.data.hits";

/// Figures of a cache: medians over its rounds.
#[derive(Debug, Clone)]
struct Figures {
    throughput: Option<f64>,
    /// Over the first cache's, the median of ratios within a round.
    over_first: Option<f64>,
    /// Over the compressed secondary cache's, if there is one.
    over_compressed: Option<f64>,
    p50_us: Option<f64>,
    p99_us: Option<f64>,
    hit_pct: Option<f64>,
    secondary_pct: Option<f64>,
    cpu_us: Option<f64>,
    peak_bytes: Option<f64>,
}

/// Returns the figures of cache `number`.
fn figures(comparison: &Comparison, number: usize) -> Figures {
    let rounds = &comparison.rounds[number];
    let of = |figure: &dyn Fn(&Outcome) -> Option<f64>| median(rounds.iter().filter_map(figure));
    let ratio_to = |other: usize| {
        let pairs = rounds.iter().zip(&comparison.rounds[other]);
        median(pairs.map(|(mine, others)| mine.throughput() / others.throughput()))
    };
    let compressed = comparison
        .plan
        .caches
        .iter()
        .position(|cache| matches!(cache.secondary, Some(Secondary::Compressed(_))));
    let ticker = |outcome: &Outcome, name: &str| outcome.tickers.get(name).copied().unwrap_or(0) as f64;
    let share = |outcome: &Outcome, part: f64| {
        let all = ticker(outcome, HIT) + ticker(outcome, MISS);
        (all > 0.0).then(|| part / all * 100.0)
    };
    Figures {
        throughput: of(&|outcome| Some(outcome.throughput())),
        over_first: ratio_to(0),
        over_compressed: compressed.and_then(ratio_to),
        p50_us: of(&|outcome| outcome.latency().map(|latency| latency.p50_ns as f64 / 1e3)),
        p99_us: of(&Outcome::p99_us),
        hit_pct: of(&|outcome| share(outcome, ticker(outcome, HIT))),
        secondary_pct: of(&|outcome| share(outcome, ticker(outcome, SECONDARY_HIT))),
        cpu_us: of(&|outcome| Some(outcome.cpu_us())),
        peak_bytes: of(&|outcome| outcome.peak_resident_kib.map(|kib| kib as f64 * 1024.0)),
    }
}

/// Returns the report.
pub fn document(comparison: &Comparison) -> Document<'_> {
    let caches = &comparison.plan.caches;
    let hues = colours(caches.iter().map(|_| None));
    let mut document = Document::new("Leafpress in RocksDB: caches");
    document.head = head(comparison);
    let wrong: u64 = comparison.runs.iter().map(|row| row.outcome.mismatches).sum();
    document.troubles = (wrong > 0)
        .then(|| format!("WRONG ANSWERS: {wrong}"))
        .into_iter()
        .collect();
    document.terms = options_of("RocksDB's options of the last run", comparison.runs.last());
    document.notes = NOTES.to_vec();
    document.table(table(comparison, &hues));
    document.caption(CAPTION);
    document.page_only(move || charts(comparison, &hues));
    document.tsv("summary", "summary.tsv", || summary(comparison));
    document.tsv("runs", "runs.tsv", || tables::summary(&comparison.runs));
    document.results(comparison);
    document
}

/// The numbers of the caches that were measured.
fn measured(comparison: &Comparison) -> impl Iterator<Item = usize> {
    (0..comparison.plan.caches.len()).filter(|number| !comparison.rounds[*number].is_empty())
}

fn table(comparison: &Comparison, hues: &[RGBColor]) -> Table {
    let headings = [
        "cache",
        "Mops/s",
        "over\nfirst",
        "over compr.\nsecondary",
        "p50\nus",
        "p99\nus",
        "hits\n%",
        "secondary\nhits %",
        "CPU us\nper op",
        "resident\npeak",
    ];
    let rows = measured(comparison).map(|number| {
        let of = figures(comparison, number);
        vec![
            comparison.plan.caches[number].to_string(),
            throughput(of.throughput),
            times(of.over_first),
            times(of.over_compressed),
            figure(of.p50_us),
            figure(of.p99_us),
            figure(of.hit_pct),
            figure(of.secondary_pct),
            figure(of.cpu_us),
            size(of.peak_bytes),
        ]
    });
    let table = Table {
        hues: measured(comparison).map(|number| hues[number]).collect(),
        ..Table::new(headings, rows)
    };
    table.parts(&[
        ("", &[1, 2, 5, 6]),
        ("Compared with the compressed secondary cache, and the process", &[3, 9]),
        ("Other times, hits of the cache behind, CPU", &[4, 7, 8]),
    ])
}

/// Returns the description of the runs, in lines.
fn head(comparison: &Comparison) -> Vec<String> {
    let plan = &comparison.plan;
    let reads = match plan.tuning.use_direct_reads {
        true => "files read around the page cache",
        false => "files read through the page cache, which is memory besides",
    };
    let memory = plan.caches.first().map_or(0, Cache::total_bytes) * plan.shape.instances as u64;
    let times = plan.shape.raw_bytes() as f64 / memory.max(1) as f64;
    vec![
        comparison.host.clone(),
        format!(
            "{} · compression {} · {} of files",
            shape(&plan.shape),
            plan.shape.compression,
            size(Some(comparison.sst_bytes as f64))
        ),
        format!(
            "caches of {} together, data {times:.1} times that · {reads} · keys {} · {} · {} threads each · \
             {} rounds of {} s after {} s of warm-up",
            Bytes(memory),
            plan.work.distribution,
            match plan.workload {
                Workload::ReadRandom => "reads".to_owned(),
                other => other.to_string(),
            },
            plan.work.threads,
            plan.rounds,
            plan.work.seconds,
            plan.work.warmup_seconds
        ),
    ]
}

/// The description of the columns, under the table.
const CAPTION: &str = "Medians over the rounds; caches take turns within a round, and a ratio is the median of the \
     ratios within rounds. Hits: data blocks that either cache had; secondary hits: those of them that only the one \
     behind had. Resident memory is the whole process's at its peak.";

/// Throughput, hits, and latency of the last round.
fn charts(comparison: &Comparison, hues: &[RGBColor]) -> Result<Markup, LabError> {
    let rounds = (1..=comparison.plan.rounds).map(|round| format!("round {round}"));
    let groups: Vec<String> = std::iter::once("median".to_owned()).chain(rounds).collect();
    let throughput = bars(&Bars {
        name: "throughput",
        size: (1080, 360),
        unit: "Mops/s",
        groups: &groups.iter().map(String::as_str).collect::<Vec<_>>(),
        colours: hues,
        figure: &|group, bar| match group {
            0 => figures(comparison, bar).throughput.map(|ops| ops / 1e6),
            round => comparison.rounds[bar]
                .get(round - 1)
                .map(|outcome| outcome.throughput() / 1e6),
        },
    })?;
    let hits = bars(&Bars {
        name: "hits",
        size: (530, 340),
        unit: "% of data blocks",
        groups: &["hits", "secondary hits"],
        colours: hues,
        figure: &|group, bar| {
            let of = figures(comparison, bar);
            if group == 0 { of.hit_pct } else { of.secondary_pct }
        },
    })?;
    let lines = measured(comparison).filter_map(|number| {
        let last = comparison.rounds[number].last()?;
        Some((hues[number], microseconds(last.latency()?)))
    });
    let latency = quantile_lines("latency", "latency", &lines.collect::<Vec<_>>())?;
    let hits = hits.map(|svg| drawn("Hits", &svg));
    let latency = latency.map(|svg| drawn("Latency of the last round", &svg));
    let charts: Vec<Markup> = hits.into_iter().chain(latency).collect();
    Ok(html! {
        @if let Some(svg) = throughput { (drawn("Throughput", &svg)) }
        (pair(&charts))
    })
}

/// `summary.tsv`: a line for each cache.
fn summary(comparison: &Comparison) -> String {
    type Row<'c> = (&'c Cache, usize, Figures);
    type Column = (&'static str, fn(&Row<'_>) -> tsv::Cell);
    const COLUMNS: [Column; 13] = [
        ("cache", |(cache, ..)| tsv::word(cache)),
        ("block_cache_bytes", |(cache, ..)| tsv::word(cache.bytes)),
        ("secondary_cache_bytes", |(cache, ..)| {
            tsv::word(cache.secondary.as_ref().map_or(0, Secondary::bytes))
        }),
        ("rounds", |(_, rounds, _)| tsv::word(rounds)),
        ("ops_per_second", |(.., of)| tables::number(of.throughput)),
        ("over_first", |(.., of)| tables::number(of.over_first)),
        ("over_compressed_secondary", |(.., of)| {
            tables::number(of.over_compressed)
        }),
        ("p50_us", |(.., of)| tables::number(of.p50_us)),
        ("p99_us", |(.., of)| tables::number(of.p99_us)),
        ("hit_pct", |(.., of)| tables::number(of.hit_pct)),
        ("secondary_hit_pct", |(.., of)| tables::number(of.secondary_pct)),
        ("cpu_us_per_op", |(.., of)| tables::number(of.cpu_us)),
        ("peak_resident_bytes", |(.., of)| tables::number(of.peak_bytes)),
    ];
    let caches = comparison.plan.caches.iter().enumerate();
    let rows = caches.map(|(at, cache)| (cache, comparison.rounds[at].len(), figures(comparison, at)));
    tsv::columns(COLUMNS, rows, |cell, row| cell(row))
}
