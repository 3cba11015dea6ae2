//! The figure's table, a row per scenario and cache, and the paper's results.

use super::{Figure, FigureOutcome};
use crate::cache::document::microseconds;
use crate::cache::outcome::{Line, Measured, Outcome};
use crate::cache::{Options, Work};
use crate::core::Bytes;
use crate::core::latency::Latency;
use crate::report::document::Table;
use crate::report::numbers::{mops, percent, thousands};
use crate::report::table::{Best, Marked, Part, ranked};

/// The text of a cell, and the value it is ranked by.
type Shown = Option<(String, f64)>;

/// A column's value for a run.
type Figured = dyn Fn(&Options, &Measured) -> Shown;

struct Column {
    heading: String,
    best: Option<Best>,
    figure: Box<Figured>,
}

impl Column {
    fn new(
        heading: impl Into<String>,
        best: impl Into<Option<Best>>,
        figure: impl Fn(&Options, &Measured) -> Shown + 'static,
    ) -> Self {
        Self {
            heading: heading.into(),
            best: best.into(),
            figure: Box::new(figure),
        }
    }
}

fn plain(figure: f64, decimals: usize) -> Shown {
    Some((format!("{figure:.decimals$}"), figure))
}

fn rate(per_second: f64) -> Shown {
    Some((mops(per_second), per_second))
}

fn share(ratio: Option<f64>) -> Shown {
    ratio.map(|ratio| (percent(ratio, 1), ratio))
}

fn us(ns: f64) -> Shown {
    Some((microseconds(ns / 1e3), ns))
}

/// Where the columns begin that not every figure has, the cache's name counted.
const OWN: usize = 9;

/// The columns after the cache's name.
fn columns(figure: &FigureOutcome) -> Vec<Column> {
    let read = |ns: fn(&Latency) -> u64| move |_: &Options, m: &Measured| us(ns(m.read_latency.as_ref()?) as f64);
    let mut columns = vec![
        Column::new("hits %\nmemory", Best::Most, |_, m| share(m.memory_hit_ratio())),
        Column::new("\ndisk", None, |_, m| share(m.disk_hit_ratio())),
        Column::new("\nboth", Best::Most, |_, m| share(m.hit_ratio())),
        Column::new("Mops/s\nas run", Best::Most, |_, m| rate(m.throughput())),
        Column::new("\ncharged", Best::Most, |options, m| {
            rate(m.charged_throughput(options)?)
        }),
        Column::new("read us\np50", Best::Least, read(|l| l.p50_ns)),
        Column::new("\np90", Best::Least, read(|l| l.p90_ns)),
        Column::new("\np99", Best::Least, read(|l| l.p99_ns)),
    ];
    match figure.options.figure {
        Figure::Fig11 => columns.push(Column::new("written\nper byte", Best::Least, |_, m| {
            plain(m.written_per_evicted()?, 2)
        })),
        Figure::Fig13 => columns.extend([
            Column::new("mean us\nbefore", Best::Least, |options, m| {
                us(m.moved(options)?.before_ns)
            }),
            Column::new("at\nworst", Best::Least, |options, m| us(m.moved(options)?.worst_ns)),
            Column::new("\nafter", Best::Least, |options, m| us(m.moved(options)?.end_ns)),
            Column::new("back after\noperations", Best::Least, |options, m| {
                let after = m.moved(options)?.back_after?;
                Some((thousands(after), after as f64))
            }),
        ]),
        Figure::Fig16 => columns.extend(lengths(figure).into_iter().enumerate().map(|(at, bytes)| {
            let heading = format!("{}\n{}", if at == 0 { "p50 of" } else { "" }, Bytes(bytes.into()));
            Column::new(heading, Best::Least, move |_, m| {
                us(m.latency_by_length.get(at)?.as_ref()?.p50_ns as f64)
            })
        })),
        _ => {}
    }
    columns.push(Column::new("peak of\nmemory", None, |options, m| {
        let part = m.peak_over_memory(options);
        Some((format!("{part:.2}x"), part))
    }));
    columns
}

/// Lengths of the first scenario's values.
fn lengths(figure: &FigureOutcome) -> Vec<u32> {
    match figure.scenarios.first().map(|one| &one.outcome.options.work) {
        Some(Work::Paper(objects)) => objects.value_bytes.clone(),
        _ => Vec::new(),
    }
}

/// The rows. Of each column the best of a scenario is marked.
fn rows(figure: &FigureOutcome) -> Vec<Vec<Marked>> {
    let columns = columns(figure);
    let of = |one: &super::ScenarioOutcome| {
        let mut rows = of_scenario(&one.outcome, &columns);
        for row in &mut rows {
            row.insert(0, unmarked(&one.name));
        }
        rows
    };
    figure.scenarios.iter().flat_map(of).collect()
}

/// The table for people, caches under their scenarios.
pub(super) fn table(figure: &FigureOutcome) -> Table {
    let ours = columns(figure).into_iter().map(|column| column.heading);
    let headings: Vec<String> = ["scenario", "cache"]
        .map(str::to_owned)
        .into_iter()
        .chain(ours)
        .collect();
    // Behind that of the scenario.
    let last = headings.len() - 2;
    let own: Vec<usize> = (OWN..last).collect();
    let parts: [Part<'_>; 3] = [
        ("", &[1, 3, 4, 5]),
        ("Disk hits, read latency, peak memory", &[2, 6, 7, 8, last]),
        ("This figure's measure", &own),
    ];
    Table {
        is_grouped: true,
        ..Table::marked(headings, rows(figure)).parts(&parts)
    }
}

/// The paper's results by scenario.
pub(super) fn papers(figure: &FigureOutcome) -> Vec<String> {
    let results = figure.scenarios.iter().filter_map(|one| {
        let paper = one.paper.as_deref()?;
        Some(format!("{}: {paper}", one.name))
    });
    results.collect()
}

fn of_scenario(outcome: &Outcome, columns: &[Column]) -> Vec<Vec<Marked>> {
    let name = |line: &Line| vec![unmarked(&line.engine.to_string())];
    let mut rows: Vec<Vec<Marked>> = outcome.lines.iter().map(name).collect();
    for column in columns {
        let lines = outcome.lines.iter();
        let cells: Vec<Shown> = lines
            .map(|line| (column.figure)(&outcome.options, line.measured.as_ref()?))
            .collect();
        let absent: Vec<bool> = cells.iter().map(Option::is_none).collect();
        for ((row, mut cell), absent) in rows.iter_mut().zip(ranked(cells, column.best)).zip(absent) {
            if absent {
                cell.text = "-".into();
            }
            row.push(cell);
        }
    }
    rows
}

fn unmarked(text: &str) -> Marked {
    Marked {
        text: text.to_owned(),
        best: false,
    }
}
