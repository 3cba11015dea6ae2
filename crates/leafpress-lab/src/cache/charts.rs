//! The charts of the comparison.

use maud::{Markup, html};
use plotters::style::RGBColor;

use super::outcome::{Line, Measured, Outcome, Sample};
use crate::core::LabError;
use crate::report::draw::{microseconds, quantile_lines};
use crate::report::hot_set_move;
use crate::report::html::{figure, legend, pair};
use crate::report::numbers::three_digits;
use crate::report::over_time::{OverTime, over_time};
use crate::report::palette::colours;
use crate::report::rows::{Bar, rows};
use crate::report::scatter::Point;

const MIB: f64 = (1 << 20) as f64;

/// A cache that ended well, in its colour.
pub(super) struct Run<'r> {
    hue: RGBColor,
    line: &'r Line,
    measured: &'r Measured,
}

/// The caches that ended well.
pub(super) fn runs(outcome: &Outcome) -> Vec<Run<'_>> {
    let codecs: Vec<_> = outcome.lines.iter().map(|line| line.engine.hue()).collect();
    let hues = colours(codecs.iter().map(Option::as_deref));
    let runs = outcome.lines.iter().zip(hues).filter_map(|(line, hue)| {
        Some(Run {
            hue,
            line,
            measured: line.measured.as_ref()?,
        })
    });
    runs.collect()
}

/// The caches where they stand among sizes: at the memory that they took, and the share of the reads that they answered
/// from it.
pub(super) fn points(runs: &[Run<'_>]) -> Vec<Point> {
    let points = runs.iter().filter_map(|run| {
        Some(Point {
            label: run.line.engine.to_string(),
            colour: run.hue,
            at: (run.measured.peak_growth_bytes as f64, run.measured.memory_hit_ratio()?),
            hollow: false,
        })
    });
    points.collect()
}

/// The main results: hit ratio, throughput and memory.
pub(super) fn answers(outcome: &Outcome, runs: &[Run<'_>]) -> Vec<Markup> {
    let options = &outcome.options;
    let names: Vec<String> = runs.iter().map(|run| run.line.engine.to_string()).collect();
    let by_cache = |title: &str, text: fn(f64) -> String, of: &dyn Fn(&Measured) -> Option<f64>| {
        let bars = runs.iter().zip(&names).filter_map(|(run, name)| {
            let figure = of(run.measured)?;
            Some(Bar {
                name,
                colour: run.hue,
                figure,
                text: text(figure),
            })
        });
        rows(title, &bars.collect::<Vec<_>>())
    };
    let charts = [
        by_cache("Hit ratio, %", |pct| format!("{pct:.1}"), &|m| {
            Some(m.hit_ratio()? * 100.0)
        }),
        by_cache("Throughput with miss cost, Mops/s", three_digits, &|m| {
            Some(m.charged_throughput(options)? / 1e6)
        }),
        by_cache("Throughput, Mops/s", three_digits, &|m| Some(m.throughput() / 1e6)),
        by_cache(
            "Peak memory over configured memory",
            |part| format!("{part:.2}x"),
            &|m| Some(m.peak_over_memory(options)),
        ),
    ];
    charts.into_iter().flatten().collect()
}

pub(super) fn charts(outcome: &Outcome, runs: &[Run<'_>]) -> Result<Markup, LabError> {
    let names: Vec<String> = runs.iter().map(|run| run.line.engine.to_string()).collect();
    let hues: Vec<RGBColor> = runs.iter().map(|run| run.hue).collect();
    let at_a_rate = outcome.options.rate.is_some();
    let mut first = Vec::new();
    let mut add = |title: &str, svg: Option<String>| first.extend(svg.map(|svg| figure(title, &svg)));
    let hits: Vec<_> = runs
        .iter()
        .filter_map(|run| Some((run.hue, microseconds(run.measured.hit_latency.as_ref()?))))
        .collect();
    add(
        if at_a_rate {
            "Hits: latency from the intended start"
        } else {
            "Hits: latency"
        },
        quantile_lines("latency of hits", "latency", &hits)?,
    );
    let misses: Vec<_> = runs
        .iter()
        .filter_map(|run| Some((run.hue, microseconds(run.measured.miss_latency.as_ref()?))))
        .collect();
    add(
        if at_a_rate {
            "Misses: latency from the intended start, without the backend"
        } else {
            "Misses: latency with the insertion, without the backend"
        },
        quantile_lines("latency of misses", "latency", &misses)?,
    );
    let over = |name, description, of: &dyn Fn(&Sample) -> Option<f64>| {
        let lines = runs.iter().map(|run| {
            let samples = run.measured.samples.iter();
            (
                run.hue,
                samples
                    .filter_map(|sample| Some((sample.at_seconds, of(sample)?)))
                    .collect(),
            )
        });
        over_time(&OverTime {
            name,
            description,
            latency: false,
            lines: &lines.collect::<Vec<_>>(),
        })
    };
    let hits = over("hits over time", "hit ratio, %", &|sample| {
        Some(sample.hit_ratio()? * 100.0)
    })?;
    let memory = over("memory over time", "memory, M", &|sample| {
        Some(sample.growth_bytes as f64 / MIB)
    })?;
    let hits = hits.map(|svg| figure("Hits over time", &svg));
    let memory = memory.map(|svg| figure("Memory over time", &svg));
    let moved = around_move(outcome, runs)?.map(|svg| figure("Mean of reads while the hot keys move", &svg));
    let second: Vec<Markup> = hits.into_iter().chain(memory).chain(moved).collect();
    let key = || legend(hues.iter().copied().zip(names.iter().map(String::as_str)));
    Ok(html! {
        h2 { "Read latency" }
        (key())
        (pair(&first))
        @if !second.is_empty() {
            h2 { "Over time, from the start of the warm-up" }
            (key())
            (pair(&second))
        }
    })
}

/// Mean times of reads around a move of the hot keys, if there was one.
fn around_move(outcome: &Outcome, runs: &[Run<'_>]) -> Result<Option<String>, LabError> {
    let lines = runs.iter().map(|run| (run.hue, run.measured.timeline.as_slice()));
    hot_set_move::mean_reads(outcome.options.shift_at, &lines.collect::<Vec<_>>())
}
