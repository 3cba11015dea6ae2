//! Prints the comparison of caches, for people and programs.

use std::fmt::Write;

use leafpress_lab::Bytes;

use super::Comparison;
use crate::cache::{Cache, Secondary};
use crate::report::grid::{Grid, figure, size, throughput};
use crate::report::tables::{self, NOT_APPLICABLE, decimals, line};
use crate::report::text::shape;
use crate::study::median;
use crate::{Outcome, Workload};

/// Tickers of blocks that a block cache had and had not.
const HIT: &str = "rocksdb.block.cache.data.hit";
const MISS: &str = "rocksdb.block.cache.data.miss";
/// Those of them that the cache behind it had.
const SECONDARY_HIT: &str = "rocksdb.secondary.cache.data.hits";

/// Figures of a cache: medians over its rounds.
#[derive(Debug, Clone)]
pub(super) struct Figures {
    pub(super) throughput: Option<f64>,
    /// Over the first cache's, the median of ratios within a round.
    pub(super) over_first: Option<f64>,
    /// Over the compressed secondary cache's, if there is one.
    pub(super) over_compressed: Option<f64>,
    pub(super) p50_us: Option<f64>,
    pub(super) p99_us: Option<f64>,
    pub(super) hit_pct: Option<f64>,
    pub(super) secondary_pct: Option<f64>,
    pub(super) cpu_us: Option<f64>,
    pub(super) peak_bytes: Option<f64>,
}

/// Returns the figures of cache `number`.
pub(super) fn figures(comparison: &Comparison, number: usize) -> Figures {
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

/// Returns the name of a cache in tables.
pub(super) fn name(cache: &Cache) -> String {
    cache.to_string()
}

/// Returns the table.
pub(super) fn grid(comparison: &Comparison) -> Grid {
    let mut grid = Grid::new(
        1,
        &[
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
        ],
    )
    .in_parts(&[
        ("", &[1, 2, 5, 6]),
        ("Compared with the compressed secondary cache, and the process", &[3, 9]),
        ("Other times, hits of the cache behind, CPU", &[4, 7, 8]),
    ]);
    for (number, cache) in comparison.plan.caches.iter().enumerate() {
        if comparison.rounds[number].is_empty() {
            continue;
        }
        let of = figures(comparison, number);
        let times = |ratio: Option<f64>| ratio.map_or_else(|| "NA".into(), |ratio| format!("{ratio:.2}x"));
        grid.rows.push(vec![
            name(cache),
            throughput(of.throughput),
            times(of.over_first),
            times(of.over_compressed),
            figure(of.p50_us),
            figure(of.p99_us),
            figure(of.hit_pct),
            figure(of.secondary_pct),
            figure(of.cpu_us),
            size(of.peak_bytes),
        ]);
    }
    grid
}

/// Returns the description of the runs, in lines.
pub(super) fn head(comparison: &Comparison) -> Vec<String> {
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
            "caches of {} together, data {times:.1} times that · {reads} · keys {} · {} · {} threads each · {} rounds of {} s after {} s of warm-up",
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
pub(super) const CAPTION: &str = "\
Medians over the rounds; caches take turns within a round, and a ratio is the median of the ratios within rounds.
Hits: data blocks that either cache had; secondary hits: those of them that only the one behind had.
Resident memory is the whole process's at its peak.
";

/// Everything for people.
pub fn text(comparison: &Comparison) -> String {
    let mut text = head(comparison).join("\n") + "\n";
    text += &grid(comparison).text();
    text += CAPTION;
    let wrong: u64 = comparison.runs.iter().map(|row| row.outcome.mismatches).sum();
    if wrong > 0 {
        let _ = writeln!(text, "WRONG ANSWERS: {wrong}");
    }
    text
}

/// `summary.tsv`: a line for each cache.
pub fn summary(comparison: &Comparison) -> String {
    let mut table = line(
        [
            "cache",
            "block_cache_bytes",
            "secondary_cache_bytes",
            "rounds",
            "ops_per_second",
            "over_first",
            "over_compressed_secondary",
            "p50_us",
            "p99_us",
            "hit_pct",
            "secondary_hit_pct",
            "cpu_us_per_op",
            "peak_resident_bytes",
        ]
        .map(str::to_owned),
    );
    let number = |figure: Option<f64>| figure.map_or_else(|| NOT_APPLICABLE.to_owned(), decimals);
    for (at, cache) in comparison.plan.caches.iter().enumerate() {
        let of = figures(comparison, at);
        table += &line([
            name(cache),
            cache.bytes.to_string(),
            cache.secondary.as_ref().map_or(0, Secondary::bytes).to_string(),
            comparison.rounds[at].len().to_string(),
            number(of.throughput),
            number(of.over_first),
            number(of.over_compressed),
            number(of.p50_us),
            number(of.p99_us),
            number(of.hit_pct),
            number(of.secondary_pct),
            number(of.cpu_us),
            number(of.peak_bytes),
        ]);
    }
    table
}

/// `runs.tsv`: a line for each run, in order.
pub fn runs(comparison: &Comparison) -> String {
    tables::summary(&comparison.runs)
}
