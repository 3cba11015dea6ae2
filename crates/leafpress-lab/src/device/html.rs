//! The page of a probe: one file, readable without a network.

use maud::{Markup, html};

use super::{Measurement, Operation, Report, tables, text};
use crate::core::{Bytes, LabError};
use crate::report::draw::{Bars, bars, quantile_lines};
use crate::report::html::{self, document, figure, legend, lines, pair, row};
use crate::report::palette::colours;
use crate::report::verdict;

const NOTES: [&str; 4] = [
    "<b>IOPS</b> are requests per second, MB are 10<sup>6</sup> bytes.",
    "<b>us per block</b> is 1 / IOPS: the time between the completions of two requests, a measure of throughput. With Q requests in flight each \
     takes about Q times as long (Little's law). Harper's thesis (2018) used it as the latency: its SSD's 110 us at queue depth 4 are a \
     latency of about 463 us.",
    "<b>Latency</b> is the time of a request, from before the system call that submits it until its completion is seen, as fio's \
     <code>lat</code>: a read may complete within that call. The call itself, fio's <code>slat</code>, is <code>submit_us</code> in \
     <code>summary.tsv</code>. Percentiles of fio's own results exclude it; its mean was added to them.",
    "Requests go where fio's <code>rw=randread:N</code> sends them: one in N to a random block not visited yet, the others directly after the \
     previous one.",
];

/// Bars of one operation and depth.
type Series = (Operation, u32);

/// The page.
///
/// # Errors
/// [`LabError::Chart`] when a chart cannot be drawn.
pub fn page(report: &Report, command_line: &str) -> Result<String, LabError> {
    let title = "Leafpress device";
    let body = html! {
        h1 { (title) }
        (verdict::html(&super::verdict::verdict(report).into_iter().collect::<Vec<_>>()))
        p { (lines(&text::head(report))) }
        @if report.interrupted { p.bad { "Interrupted: only finished measurements are shown." } }
        (html::cautions(&report.notes.iter().map(|note| note.text.to_string()).collect::<Vec<_>>()))
        (table(report))
        (against_block_size(report)?)
        (distributions(report)?)
        h2 { "How it was measured" }
        pre { (command_line) }
        (html::notes(&NOTES))
    };
    Ok(document(title, &body))
}

fn table(report: &Report) -> Markup {
    let (headings, rows) = tables::for_people(report);
    let rows = rows.iter().map(|cells| row(cells));
    html! {
        (html::table(headings, rows))
        p.faint { (lines(&text::legend(report))) }
    }
}

/// The operations and depths, each once.
fn series(report: &Report) -> Vec<Series> {
    let mut series: Vec<Series> = report
        .measurements
        .iter()
        .map(|m| (m.operation, m.queue_depth))
        .collect();
    series.sort_unstable();
    series.dedup();
    series
}

/// The block sizes, each once.
fn sizes(report: &Report) -> Vec<u64> {
    let mut sizes: Vec<u64> = report.measurements.iter().map(|m| m.block_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Rate, bandwidth and latency against the block size.
fn against_block_size(report: &Report) -> Result<Markup, LabError> {
    let (series, sizes) = (series(report), sizes(report));
    let names: Vec<String> = sizes.iter().map(|size| Bytes(*size).to_string()).collect();
    let groups: Vec<&str> = names.iter().map(String::as_str).collect();
    let hues = colours(series.iter().map(|_| None));
    let find = |size: usize, of: Series| report.find(of.0, *sizes.get(size)?, of.1);
    let chart = |name: &'static str, unit: &str, of: &dyn Fn(&Measurement) -> Option<f64>| {
        bars(&Bars {
            name,
            size: (530, 300),
            unit,
            groups: &groups,
            colours: &hues,
            figure: &|size, at| of(find(size, *series.get(at)?)?),
        })
    };
    let mut charts = Vec::new();
    let mut add = |title: &str, svg: Option<String>| charts.extend(svg.map(|svg| figure(title, &svg)));
    add(
        "IOPS",
        chart("IOPS", "thousand requests per second", &|m| Some(m.iops / 1e3))?,
    );
    add("Bandwidth", chart("bandwidth", "MB/s", &|m| Some(m.mb_per_s))?);
    add("Latency, median", chart("latency", "us (p50)", &|m| m.latency.p50_us)?);
    add(
        "Latency, 99th percentile",
        chart("latency", "us (p99)", &|m| m.latency.p99_us)?,
    );
    let names = series
        .iter()
        .map(|(operation, depth)| format!("{operation}, {depth} in flight"));
    let names: Vec<String> = names.collect();
    // With one request in flight the two are the same.
    let deep = series.iter().filter(|(_, depth)| *depth > 1);
    let deepest = deep.min_by_key(|(operation, depth)| (*operation, std::cmp::Reverse(*depth)));
    Ok(html! {
        @if !charts.is_empty() {
            h2 { "By block size" }
            (legend(hues.iter().copied().zip(names.iter().map(String::as_str))))
            (pair(&charts))
        }
        @if let Some(&of) = deepest { (latency_vs_throughput(of, &groups, &|size| find(size, of))?) }
    })
}

/// 1 / IOPS and the latency.
fn latency_vs_throughput<'m>(
    (operation, depth): Series,
    groups: &[&str],
    of: &dyn Fn(usize) -> Option<&'m Measurement>,
) -> Result<Markup, LabError> {
    let hues = colours([None, None]);
    let svg = bars(&Bars {
        name: "latency and 1 / IOPS",
        size: (530, 300),
        unit: "us",
        groups,
        colours: &hues,
        figure: &|size, bar| {
            let m = of(size)?;
            Some(if bar == 0 { m.us_per_block } else { m.latency.mean_us })
        },
    })?;
    let title = format!("{operation}, {depth} in flight");
    Ok(html! {
        @if let Some(svg) = svg {
            h3 { "Latency is not 1 / IOPS" }
            (legend(hues.into_iter().zip(["us per block, 1 / IOPS", "mean latency"])))
            (pair(&[figure(&title, &svg)]))
        }
    })
}

/// Quantiles of the latency, a chart for each operation and depth.
fn distributions(report: &Report) -> Result<Markup, LabError> {
    let series = series(report);
    let mut charts = Vec::new();
    let sizes = sizes(report);
    let hues = colours(sizes.iter().map(|_| None));
    let names: Vec<String> = sizes.iter().map(|size| Bytes(*size).to_string()).collect();
    for of in series {
        let row: Vec<_> = report
            .measurements
            .iter()
            .filter(|m| (m.operation, m.queue_depth) == of)
            .filter_map(|m| Some((m, tables::quantiles(&m.latency)?)))
            .collect();
        // A size has the same colour in every chart.
        let hue = |m: &Measurement| {
            let at = sizes.iter().position(|size| *size == m.block_bytes)?;
            hues.get(at).copied()
        };
        let lines: Vec<_> = row
            .iter()
            .filter_map(|(m, figures)| Some((hue(m)?, *figures)))
            .collect();
        let title = format!("{}, {} in flight", of.0, of.1);
        charts.extend(quantile_lines("latency", "latency", &lines)?.map(|svg| figure(&title, &svg)));
    }
    Ok(html! {
        @if !charts.is_empty() {
            h2 { "Latency percentiles" }
            (legend(hues.iter().copied().zip(names.iter().map(String::as_str))))
            (pair(&charts))
        }
    })
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
