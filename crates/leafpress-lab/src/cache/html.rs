//! The comparison's page: one file, readable without a network.

use maud::{Markup, html};
use plotters::style::RGBColor;

use super::outcome::{Line, Measured, Outcome, Sample};
use super::{mrc, text};
use crate::core::LabError;
use crate::report::draw::{microseconds, quantile_lines};
use crate::report::html::{self, cell, document, figure, legend, lines, pair};
use crate::report::moved;
use crate::report::numbers::three_digits;
use crate::report::over_time::{OverTime, over_time};
use crate::report::palette::colours;
use crate::report::rows::{Bar, rows};
use crate::report::scatter::Point;
use crate::report::verdict;

const NOTES: [&str; 6] = [
    "<b>Memory</b> is the growth of the process's resident memory since just before the cache was created, sampled 50 times per second. Each \
     cache ran in its own process, with this program's allocator.",
    "<b>Knob</b> is the capacity configured for a cache. For leafpress it is the memory itself; for the others, a capacity was searched at \
     which the process fits into the memory.",
    "<b>A hit</b> is a read that found its key; its value was copied out or decoded, and compared with the expected one. \
     <b>A miss</b> is followed by the insertion, whose time is included.",
    "<b>With miss cost</b>, each miss also waits for the backend, each thread for its own.",
    "<b>With --rate</b>, requests arrive as a Poisson process, each thread with an equal share of the rate, whether the cache keeps up or not. \
     Latency then counts from the intended start, queueing included. The warm-up runs at full speed.",
    "Values are derived from a hash of key and version, so that each can be verified without a second copy.",
];

const MIB: f64 = (1 << 20) as f64;

/// A cache that ended well, in its colour.
struct Run<'r> {
    hue: RGBColor,
    line: &'r Line,
    measured: &'r Measured,
}

/// The page.
///
/// # Errors
/// [`LabError::Chart`] when a chart cannot be drawn.
pub(super) fn page(outcome: &Outcome, command_line: &str) -> Result<String, LabError> {
    let codecs: Vec<_> = outcome.lines.iter().map(|line| line.engine.hue()).collect();
    let hues = colours(codecs.iter().map(Option::as_deref));
    let runs = outcome.lines.iter().zip(hues).filter_map(|(line, hue)| {
        Some(Run {
            hue,
            line,
            measured: line.measured.as_ref()?,
        })
    });
    let runs: Vec<_> = runs.collect();
    let body = html! {
        h1 { (if outcome.options.engines.is_empty() { "Memory needs of a cache" } else { "Leafpress vs other caches" }) }
        (verdict::html(&super::verdict::verdicts(outcome)))
        p { (lines(&text::head_lines(outcome).join("\n"))) }
        @for trouble in outcome.troubles() { p.bad { (trouble) } }
        (html::cautions(&outcome.cautions()))
        (pair(&answers(outcome, &runs)))
        @if !outcome.options.engines.is_empty() {
            (html::table(text::headings(&outcome.options), text::rows(outcome).iter().map(|row| {
                let cells = row.iter().enumerate();
                cells.map(|(at, one)| if at == 0 { html::head(&one.text) } else { cell(&one.text, one.best) }).collect::<Vec<_>>()
            })))
        }
        @if let Some(note) = text::different_work(outcome) { p.faint { (note) } }
        @for moved in text::moves(outcome) { p { (moved) } }
        @if let Some(curves) = &outcome.mrc { (mrc::section(curves, &outcome.options, &points(&runs))?) }
        @if !runs.is_empty() { (charts(outcome, &runs)?) }
        h2 { "How it was measured" }
        pre { (command_line) }
        @if !outcome.options.engines.is_empty() { (html::notes(&NOTES)) }
    };
    Ok(document("Leafpress cache", &body))
}

/// The caches where they stand among sizes: at the memory that they took, and the share of the reads that they answered
/// from it.
fn points(runs: &[Run<'_>]) -> Vec<Point> {
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
fn answers(outcome: &Outcome, runs: &[Run<'_>]) -> Vec<Markup> {
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

fn charts(outcome: &Outcome, runs: &[Run<'_>]) -> Result<Markup, LabError> {
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
    moved::mean_reads(outcome.options.shift_at, &lines.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use crate::report::testing::{charts, has_verdict, kept};

    #[test]
    fn a_page_has_the_table_the_charts_and_the_troubles() {
        let page = kept(super::page(&fixtures::outcome(), "leafpress cache --paper").unwrap());
        assert_eq!(charts(&page), 8, "{}", page.len());
        assert!(has_verdict(&page), "{page}");
        for part in [
            "leafpress cache --paper",
            "MISMATCHES: moka",
            "failed: foyer",
            "Memory over time",
            "quick_cache+zstd:3",
        ] {
            assert!(page.contains(part), "{part}");
        }
    }

    #[test]
    fn a_page_of_a_rate_tells_who_fell_behind_and_charges_nothing() {
        let page = super::page(&fixtures::at_a_rate(), "leafpress cache --rate 500000").unwrap();
        assert_eq!(charts(&page), 7, "{}", page.len());
        for part in [
            "FELL BEHIND: quick_cache+zstd:3",
            "log",
            "from the intended start",
            "cache_config.poolSizes",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(!page.contains("Throughput with miss cost"));
    }

    #[test]
    fn a_page_without_a_run_is_one() {
        let mut outcome = fixtures::outcome();
        outcome.lines.clear();
        outcome.cancelled = true;
        let page = super::page(&outcome, "leafpress cache").unwrap();
        assert!(
            page.contains("interrupted: 0 of 4 caches") && !page.contains("<svg"),
            "{page}"
        );
    }
}
