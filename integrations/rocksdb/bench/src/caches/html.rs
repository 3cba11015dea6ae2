//! The page of caches.

use leafpress_lab::LabError;
use leafpress_lab::report::draw::{Bars, bars, microseconds, quantile_lines};
use leafpress_lab::report::html::{document, figure, pair};
use leafpress_lab::report::palette::colours;
use maud::{Markup, html};
use plotters::style::RGBColor;

use super::Comparison;
use super::text::{CAPTION, figures, grid, head, name};
use crate::report::html::{self, swatch};

const NOTES: [&str; 4] = [
    "All caches have the same memory in total; a secondary cache's is taken from the block cache.",
    "The databases are loaded once; each run is a process of its own that begins with empty caches and warms them up before it is measured.",
    "Every read is looked at: its key must be there and its value of the right length.",
    "A hit of the secondary cache is decompressed; it may be promoted to the block cache.",
];

/// Returns the page.
///
/// # Errors
/// [`LabError::Chart`] when a chart cannot be drawn.
pub fn page(comparison: &Comparison, command_line: &str) -> Result<String, LabError> {
    let title = "Leafpress in RocksDB: caches";
    let hues = colours(comparison.plan.caches.iter().map(|_| None));
    let measured: Vec<usize> = (0..comparison.plan.caches.len())
        .filter(|number| !comparison.rounds[*number].is_empty())
        .collect();
    let rounds: Vec<String> = (0..comparison.plan.rounds)
        .map(|round| format!("round {}", round + 1))
        .collect();
    let mut groups: Vec<&str> = vec!["median"];
    groups.extend(rounds.iter().map(String::as_str));
    let throughput = bars(&Bars {
        name: "throughput",
        size: (1080, 360),
        unit: "Mops/s",
        groups: &groups,
        colours: &hues,
        figure: &|group, bar| match group {
            0 => figures(comparison, bar).throughput.map(|ops| ops / 1e6),
            round => comparison.rounds[bar]
                .get(round - 1)
                .map(|outcome| outcome.throughput() / 1e6),
        },
    })?;
    let charts = charts(comparison, &measured, &hues)?;
    let names: Vec<String> = comparison.plan.caches.iter().map(name).collect();
    let last = comparison.runs.last();
    let more = html! {
        @if last.is_some() {
            h3 { "Caches" }
            pre { (names.join("\n")) }
        }
        (html::rocksdb_options("RocksDB's options of the last run", last.map(|row| row.options.as_str())))
    };
    let hue = |row: usize| measured.get(row).and_then(|number| hues.get(*number)).copied();
    let body = html! {
        (html::head(title, &head(comparison), &[""; 0]))
        (grid(comparison).html(|row| swatch(hue(row))))
        p.faint { (CAPTION) }
        @if let Some(svg) = throughput { (figure("Throughput", &svg)) }
        (pair(&charts))
        (html::how_measured(command_line, &more, &NOTES))
    };
    Ok(document(title, &body))
}

/// Hits, and latency of the last round.
fn charts(comparison: &Comparison, measured: &[usize], hues: &[RGBColor]) -> Result<Vec<Markup>, LabError> {
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
    let lines: Vec<_> = measured
        .iter()
        .filter_map(|number| {
            let last = comparison.rounds[*number].last()?;
            Some((hues[*number], microseconds(last.latency()?)))
        })
        .collect();
    let latency = quantile_lines("latency", "latency", &lines)?;
    let hits = hits.map(|svg| figure("Hits", &svg));
    let latency = latency.map(|svg| figure("Latency of the last round", &svg));
    Ok(hits.into_iter().chain(latency).collect())
}
