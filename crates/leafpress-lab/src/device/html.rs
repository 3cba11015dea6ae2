//! The page of a probe: one file, readable without a network.

use plotters::style::RGBColor;

use super::{Measurement, Operation, Report, tables, text};
use crate::core::{Bytes, LabError};
use crate::report::draw::{Bars, bars, quantile_lines};
use crate::report::html::{document, escape, figure};
use crate::report::palette::{colours, css};

const NOTES: [&str; 4] = [
    "<b>IOPS</b> are requests per second, MB are 10<sup>6</sup> bytes.",
    "<b>us per block</b> is 1 / IOPS: the time between the ends of two requests, a measure of throughput. With Q requests in flight each of them \
     takes about Q times as long (Little's law). Harper's thesis (2018) took it for the latency: 110 us of its SSD at queue depth 4 are a \
     latency of about 463 us.",
    "<b>Latency</b> is completion latency: from the return of the system call that hands a request over to the kernel until its end is seen, as \
     fio's <code>clat</code>. fio's <code>slat</code>, the call itself, is <code>submit_us</code> in <code>summary.tsv</code>; \
     <code>wait_us</code> is both.",
    "Requests go where fio's <code>rw=randread:N</code> sends them: one in N to a random block that was not visited yet, the others to where the \
     one before ended.",
];

/// Bars of one operation and depth.
type Series = (Operation, u32);

/// The page.
///
/// # Errors
/// [`LabError::Chart`] when a chart cannot be drawn.
pub fn page(report: &Report, command_line: &str) -> Result<String, LabError> {
    let title = "Leafpress device";
    let lines: Vec<_> = text::head(report).lines().map(escape).collect();
    let mut body = format!("<h1>{title}</h1>\n<p>{}</p>\n", lines.join("<br>"));
    if report.interrupted {
        body += "<p class=\"bad\">Interrupted: these are the measurements that had ended.</p>\n";
    }
    if !report.notes.is_empty() {
        let notes = report
            .notes
            .iter()
            .map(|note| format!("<li>{}</li>\n", escape(&note.text)));
        body += &format!(
            "<h2>Before you believe it</h2>\n<ul class=\"bad\">\n{}</ul>\n",
            notes.collect::<String>()
        );
    }
    body += &table(report);
    body += &against_block_size(report)?;
    body += &distributions(report)?;
    body += &format!("<h2>How it was measured</h2>\n<pre>{}</pre>\n", escape(command_line));
    let notes: String = NOTES.iter().map(|note| format!("<li>{note}</li>\n")).collect();
    body += &format!("<ul>\n{notes}</ul>\n");
    Ok(document(title, &body))
}

fn table(report: &Report) -> String {
    let (headings, rows) = tables::for_people(report);
    let header: String = headings
        .iter()
        .map(|heading| format!("<th>{}</th>", escape(heading).replace('\n', "<br>")))
        .collect();
    let body: String = rows
        .iter()
        .map(|row| {
            let cells: String = row.iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
            format!("<tr>{cells}</tr>\n")
        })
        .collect();
    format!(
        "<div class=\"scroll\"><table><thead><tr>{header}</tr></thead><tbody>\n{body}</tbody></table></div>\n<p class=\"faint\">{}</p>\n",
        escape(&text::legend(report)).replace('\n', "<br>")
    )
}

fn legend(entries: &[(RGBColor, String)]) -> String {
    let entries: String = entries
        .iter()
        .map(|(hue, name)| {
            let hue = css(*hue);
            format!(
                "<span><span class=\"swatch\" style=\"background:{hue}\"></span>{}</span>",
                escape(name)
            )
        })
        .collect();
    format!("<div class=\"legend\">{entries}</div>\n")
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
fn against_block_size(report: &Report) -> Result<String, LabError> {
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
    let mut charts = String::new();
    let mut add = |title: &str, svg: Option<String>| {
        charts += &svg.map_or_else(String::new, |svg| figure(title, &svg));
    };
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
    let entries: Vec<_> = series
        .iter()
        .zip(&hues)
        .map(|((operation, depth), hue)| (*hue, format!("{operation}, {depth} in flight")))
        .collect();
    let mut html = format!(
        "<h2>Against the block size</h2>\n{}<div class=\"pair\">{charts}</div>\n",
        legend(&entries)
    );
    // With one request in flight the two are the same.
    let deep = series.iter().filter(|(_, depth)| *depth > 1);
    if let Some(&of) = deep.min_by_key(|(operation, depth)| (*operation, std::cmp::Reverse(*depth))) {
        html += &latency_vs_throughput(of, &groups, &|size| find(size, of))?;
    }
    Ok(html)
}

/// 1 / IOPS beside the latency.
fn latency_vs_throughput<'m>(
    (operation, depth): Series,
    groups: &[&str],
    of: &dyn Fn(usize) -> Option<&'m Measurement>,
) -> Result<String, LabError> {
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
    let entries: Vec<_> = hues
        .into_iter()
        .zip(["us per block, 1 / IOPS".to_owned(), "mean latency".to_owned()])
        .collect();
    let title = format!("{operation}, {depth} in flight");
    Ok(svg.map_or_else(String::new, |svg| {
        format!(
            "<h3>Latency is not 1 / IOPS</h3>\n{}<div class=\"pair\">{}</div>\n",
            legend(&entries),
            figure(&title, &svg)
        )
    }))
}

/// Quantiles of the latency, a chart for each operation and depth.
fn distributions(report: &Report) -> Result<String, LabError> {
    let series = series(report);
    let mut charts = String::new();
    let sizes = sizes(report);
    let hues = colours(sizes.iter().map(|_| None));
    let names = sizes.iter().map(|size| Bytes(*size).to_string());
    let named: Vec<(RGBColor, String)> = hues.iter().copied().zip(names).collect();
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
        charts += &quantile_lines("latency", "latency", &lines)?.map_or_else(String::new, |svg| figure(&title, &svg));
    }
    if charts.is_empty() {
        return Ok(charts);
    }
    Ok(format!(
        "<h2>Latency, from half of the requests to all</h2>\n{}<div class=\"pair\">{charts}</div>\n",
        legend(&named)
    ))
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
