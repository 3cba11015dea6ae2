//! The page of benchmarks: one file, readable without a network.

use leafpress_lab::LabError;
use leafpress_lab::report::draw::{Bars, bars, microseconds, quantile_lines};
use leafpress_lab::report::html::{self, document, figure, lines, pair};
use leafpress_lab::report::numbers::thousands;
use leafpress_lab::report::palette::colours;
use maud::{Markup, html};
use plotters::style::RGBColor;

use super::{Report, text};

const NOTES: [&str; 5] = [
    "Each benchmark ran in a process of its own, its instances in one: background threads, their memory and their CPU time are that \
     benchmark's alone.",
    "The load is closed-loop, as db_bench's: each thread starts its next operation when the last one ends.",
    "Every read is looked at: its key must be there, and its value of the right length; with <code>--verify</code> its bytes are compared too. \
     The cost of choosing keys and looking is in the throughput, not in the latency.",
    "<b>CPU</b> is the process's over the measured time, RocksDB's background threads included.",
    "<b>SST</b> is all live files, with their indexes and filters, once flushes and compactions that were due are done.",
];

/// Returns the page.
pub(super) fn page(report: &Report, command_line: &str) -> Result<String, LabError> {
    let title = "Leafpress in RocksDB: benchmarks";
    let hues = colours(report.rows.iter().map(|_| None));
    let names: Vec<&str> = report.rows.iter().map(|row| row.run.workload.name()).collect();
    let throughput = bars(&Bars {
        name: "throughput",
        size: (1080, 340),
        unit: "Mops/s",
        groups: &names,
        colours: &[RGBColor(0x1f, 0x83, 0xd6)],
        figure: &|group, _| Some(report.rows[group].outcome.throughput() / 1e6),
    })?;
    let latencies = latencies(report, &hues)?;
    let body = html! {
        (head(title, &text::head(report), &text::troubles(report)))
        (text::grid(report).html(|row| swatch(hues.get(row).copied())))
        @if let Some(svg) = throughput { (figure("Throughput", &svg)) }
        @if let Some(svg) = latencies {
            (pair(&[figure("Latency: point reads where there are any, else scans or puts", &svg)]))
        }
        (tickers(report))
        (how(command_line, report))
    };
    Ok(document(title, &body))
}

/// Returns the heading, what was measured in lines, and what went wrong.
pub(crate) fn head(title: &str, what: &[impl AsRef<str>], troubles: &[impl AsRef<str>]) -> Markup {
    let joined = |lines: &[&str]| lines.join("\n");
    let what: Vec<&str> = what.iter().map(AsRef::as_ref).collect();
    let troubles: Vec<&str> = troubles.iter().map(AsRef::as_ref).collect();
    html! {
        h1 { (title) }
        p { (lines(&joined(&what))) }
        @if !troubles.is_empty() { p.bad { (lines(&joined(&troubles))) } }
    }
}

/// Returns a square of a colour.
pub(crate) fn swatch(hue: Option<RGBColor>) -> Markup {
    hue.map(html::swatch).unwrap_or_default()
}

fn latencies(report: &Report, hues: &[RGBColor]) -> Result<Option<String>, LabError> {
    let lines: Vec<_> = report
        .rows
        .iter()
        .zip(hues)
        .filter_map(|(row, hue)| Some((*hue, microseconds(row.outcome.latency()?))))
        .collect();
    quantile_lines("latency", "latency", &lines)
}

fn tickers(report: &Report) -> Markup {
    html! {
        @for row in report.rows.iter().filter(|row| !row.outcome.tickers.is_empty()) {
            details {
                summary { "Tickers of " (row.run.workload) " " (row.run.shape.compression) }
                dl { @for (name, count) in &row.outcome.tickers { dt { (name) } dd { (thousands(*count)) } } }
            }
        }
    }
}

fn how(command_line: &str, report: &Report) -> Markup {
    let options = report.rows.first().map(|row| row.options.as_str());
    how_measured(command_line, &rocksdb_options("RocksDB's options", options), &NOTES)
}

/// Returns the options as RocksDB writes them, if there are some.
pub(crate) fn rocksdb_options(title: &str, options: Option<&str>) -> Markup {
    html! {
        @if let Some(options) = options {
            h3 { (title) }
            pre { (options.replace(';', "; ")) }
        }
    }
}

/// Returns the section on how things were measured.
pub(crate) fn how_measured(command_line: &str, more: &Markup, notes: &[&str]) -> Markup {
    html! {
        h2 { "How it was measured" }
        h3 { "Command" }
        pre { (command_line) }
        (more)
        (html::notes(notes))
    }
}
