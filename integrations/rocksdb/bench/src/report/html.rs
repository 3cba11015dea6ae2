//! The page of benchmarks: one file, readable without a network.

use std::fmt::Write;

use leafpress_lab::LabError;
use leafpress_lab::report::draw::{Bars, bars, microseconds, quantile_lines};
use leafpress_lab::report::html::{document, escape, figure};
use leafpress_lab::report::numbers::thousands;
use leafpress_lab::report::palette::{colours, css};
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

/// The page.
pub(super) fn page(report: &Report, command_line: &str) -> Result<String, LabError> {
    let title = "Leafpress in RocksDB: benchmarks";
    let lines: Vec<_> = text::head(report).iter().map(|line| escape(line)).collect();
    let mut body = format!("<h1>{title}</h1>\n<p>{}</p>\n", lines.join("<br>"));
    let troubles: Vec<_> = text::troubles(report).iter().map(|line| escape(line)).collect();
    if !troubles.is_empty() {
        let _ = writeln!(body, "<p class=\"bad\">{}</p>", troubles.join("<br>"));
    }
    let grid = text::grid(report);
    let hues = colours(report.rows.iter().map(|_| None));
    body += &grid.html(|row| swatch(hues.get(row).copied()));
    let names: Vec<&str> = report.rows.iter().map(|row| row.run.workload.name()).collect();
    let throughput = bars(&Bars {
        name: "throughput",
        size: (1080, 340),
        unit: "Kops/s",
        groups: &names,
        colours: &[RGBColor(0x1f, 0x83, 0xd6)],
        figure: &|group, _| Some(report.rows[group].outcome.throughput() / 1e3),
    })?;
    if let Some(svg) = throughput {
        body += &figure("Throughput", &svg);
    }
    body += &latencies(report, &hues)?;
    body += &tickers(report);
    Ok(document(title, &(body + &how(command_line, report))))
}

/// A square of a colour.
pub(crate) fn swatch(hue: Option<RGBColor>) -> String {
    hue.map_or_else(String::new, |hue| {
        format!("<span class=\"swatch\" style=\"background:{}\"></span>", css(hue))
    })
}

fn latencies(report: &Report, hues: &[RGBColor]) -> Result<String, LabError> {
    let lines: Vec<_> = report
        .rows
        .iter()
        .zip(hues)
        .filter_map(|(row, hue)| Some((*hue, microseconds(row.outcome.latency()?))))
        .collect();
    let svg = quantile_lines("latency", "latency", &lines)?;
    Ok(svg.map_or_else(String::new, |svg| {
        format!(
            "<div class=\"pair\">{}</div>\n",
            figure("Latency: point reads where there are any, else scans or puts", &svg)
        )
    }))
}

fn tickers(report: &Report) -> String {
    let mut html = String::new();
    for row in report.rows.iter().filter(|row| !row.outcome.tickers.is_empty()) {
        let _ = writeln!(
            html,
            "<details><summary>Tickers of {} {}</summary><dl>",
            row.run.workload,
            escape(&row.run.shape.compression.to_string())
        );
        for (name, count) in &row.outcome.tickers {
            let _ = writeln!(html, "<dt>{}</dt><dd>{}</dd>", escape(name), thousands(*count));
        }
        html += "</dl></details>\n";
    }
    html
}

fn how(command_line: &str, report: &Report) -> String {
    let options = report.rows.first().map_or_else(String::new, |row| {
        format!(
            "<h3>RocksDB's options</h3>\n<pre>{}</pre>\n",
            escape(&row.options.replace(';', "; "))
        )
    });
    how_measured(command_line, &options, &NOTES)
}

/// The section on how things were measured.
pub(crate) fn how_measured(command_line: &str, more: &str, notes: &[&str]) -> String {
    let notes: String = notes.iter().map(|note| format!("<li>{note}</li>\n")).collect();
    format!(
        "<h2>How it was measured</h2>\n<h3>Command</h3>\n<pre>{}</pre>\n{more}<ul>{notes}</ul>\n",
        escape(command_line)
    )
}
