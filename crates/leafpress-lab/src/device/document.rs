//! The report of a probe, or of a result of fio.

use maud::{Markup, html};

use super::tables::{self, Column};
use super::verdict::verdict;
use super::{Measurement, Operation, Probed, Report, Source, Subject};
use crate::core::{Bytes, LabError};
use crate::report::NOT_APPLICABLE;
use crate::report::document::{Document, Table};
use crate::report::draw::{Bars, bars, quantile_lines};
use crate::report::html::{figure, legend, pair};
use crate::report::palette::colours;
use crate::report::tsv::{Cell, number, word};

const NOTES: [&str; 4] = [
    "<b>IOPS</b> are requests per second, MB are 10<sup>6</sup> bytes.",
    "<b>us per block</b> is 1 / IOPS: the time between the completions of two requests, a measure of throughput. With \
     Q requests in flight each takes about Q times as long (Little's law). Harper's thesis (2018) used it as the \
     latency: its SSD's 110 us at queue depth 4 are a latency of about 463 us.",
    "<b>Latency</b> is the time of a request, from before the system call that submits it until its completion is \
     seen, as fio's <code>lat</code>: a read may complete within that call. The call itself, fio's <code>slat</code>, \
     is <code>submit_us</code> in <code>summary.tsv</code>. Percentiles of fio's own results exclude it; its mean was \
     added to them.",
    "Requests go where fio's <code>rw=randread:N</code> sends them: one in N to a random block not visited yet, the \
     others directly after the previous one.",
];

/// Builds the report. Its table is `summary.tsv`, a line for each measurement.
pub fn document(report: &Report) -> Document<'_> {
    let mut document = Document::new("Leafpress device");
    document.verdicts = verdict(report).into_iter().collect();
    document.cautions = report.notes.iter().map(|note| note.text.to_string()).collect();
    document.head = head(report);
    document.notes.extend(NOTES);
    if report.interrupted {
        let trouble = "INTERRUPTED: only finished measurements are shown.";
        document.troubles.push(trouble.into());
    }
    document.table(table(report));
    legend_of(report).into_iter().for_each(|line| document.caption(line));
    document.page_only(|| against_block_size(report));
    document.page_only(|| distributions(report));
    document.tsv("summary", "summary.tsv", || tables::summary(report));
    document.results(report);
    document
}

/// Describes the probe, in some lines.
fn head(report: &Report) -> Vec<String> {
    match &report.source {
        Source::Probe(probed) => of_probe(probed, &report.host),
        Source::Fio {
            path,
            version,
            engine,
            pattern,
        } => {
            let more: Vec<_> = [pattern, engine].into_iter().flatten().map(String::as_str).collect();
            let more = if more.is_empty() {
                String::new()
            } else {
                format!(": {}", more.join(", "))
            };
            vec![format!("{}, a result of {version}{more}", path.display())]
        }
    }
}

fn of_probe(probed: &Probed, host: &str) -> Vec<String> {
    let options = &probed.options;
    let subject = match probed.subject {
        Subject::ProbeFile => format!("a temporary file of {}, random bytes", Bytes(probed.bytes)),
        Subject::File => format!("{} of the file, read only", Bytes(probed.bytes)),
        Subject::BlockDevice => format!("{} of the block device, read only", Bytes(probed.bytes)),
    };
    let direct = match &probed.direct {
        Ok(()) => "direct I/O".to_owned(),
        Err(reason) => format!("no direct I/O ({reason})"),
    };
    vec![
        format!("{}: {subject}", options.path.display()),
        format!("on {}", beneath(probed)),
        format!(
            "{direct} through {} · {} · {} s each · {host}",
            probed.engine,
            pattern(probed),
            options.seconds
        ),
    ]
}

/// The file system and the disk.
fn beneath(probed: &Probed) -> String {
    let medium = &probed.medium;
    let mut parts = Vec::new();
    parts.extend(medium.file_system.clone());
    parts.extend(medium.device.clone());
    parts.extend(medium.model.clone());
    if let Some(file) = &medium.backing_file {
        parts.push(format!("the file {}", file.display()));
        return parts.join(", ");
    }
    match (medium.rotational, medium.virtual_by.as_deref()) {
        // A hypervisor's report is unreliable.
        (_, Some(by)) => parts.push(format!("a virtual disk ({by})")),
        (Some(true), None) => parts.push("a rotating disk".into()),
        (Some(false), None) => parts.push("not a rotating disk".into()),
        (None, None) => {}
    }
    if parts.is_empty() {
        "an unknown medium".into()
    } else {
        parts.join(", ")
    }
}

/// The order of places, in fio's words too.
fn pattern(probed: &Probed) -> String {
    match probed.options.run_blocks() {
        None => "all sequential, as fio's rw=read".into(),
        Some(1) => "all at random offsets, as fio's rw=randread".into(),
        Some(run) => format!(
            "one in {run} at a random offset, {:.1}% sequential, as fio's rw=randread:{run}",
            (run - 1) as f64 / run as f64 * 100.0
        ),
    }
}

/// Explanation of the columns.
fn legend_of(report: &Report) -> Vec<String> {
    let mut lines = vec![
        "us per block: 1 / IOPS, the reciprocal of throughput; with several requests in flight it is not latency."
            .into(),
        "min to max: latency of a request, from before its submission until its completion is seen, as fio's lat."
            .into(),
    ];
    let submits: Vec<f64> = report.measurements.iter().filter_map(|m| m.submit_us).collect();
    if let (Some(least), Some(most)) = (
        submits.iter().copied().reduce(f64::min),
        submits.iter().copied().reduce(f64::max),
    ) {
        let (least, most) = (format!("{least:.1}"), format!("{most:.1}"));
        let range = if least == most {
            least
        } else {
            format!("{least} to {most}")
        };
        lines.push(format!("Submission (fio's slat) takes {range} us of that on average."));
        if matches!(report.source, Source::Fio { .. }) {
            lines.push("Percentiles of fio exclude it; its mean was added to them.".into());
        }
    }
    lines
}

/// The columns for people after the job.
const PEOPLE: [Column; 13] = [
    ("", |m| word(m.operation)),
    ("block", |m| word(Bytes(m.block_bytes))),
    ("depth", |m| word(m.queue_depth)),
    ("IOPS", |m| number(m.iops, 0)),
    ("MB/s", |m| number(m.mb_per_s, 1)),
    ("us per\nblock", |m| brief(m.us_per_block)),
    ("min\nus", |m| brief(m.latency.min_us)),
    ("mean\nus", |m| brief(m.latency.mean_us)),
    ("p50\nus", |m| brief(m.latency.p50_us?)),
    ("p90\nus", |m| brief(m.latency.p90_us?)),
    ("p99\nus", |m| brief(m.latency.p99_us?)),
    ("p99.9\nus", |m| brief(m.latency.p999_us?)),
    ("max\nus", |m| brief(m.latency.max_us)),
];

/// A number of microseconds in as many digits as mean something.
fn brief(us: f64) -> Cell {
    number(us, if us < 100.0 { 1 } else { 0 })
}

fn table(report: &Report) -> Table {
    // The name is redundant for a single job.
    let named = report.measurements.iter().any(|m| m.job.is_some());
    let job = named.then_some(("job", (|m| word(m.job.as_deref()?)) as fn(&Measurement) -> Cell));
    let columns: Vec<_> = job.into_iter().chain(PEOPLE).collect();
    let rows = report.measurements.iter().map(|m| {
        let cells = columns
            .iter()
            .map(|(_, cell)| cell(m).unwrap_or_else(|| NOT_APPLICABLE.into()));
        cells.collect()
    });
    // Operation, block and depth identify rows.
    let words = usize::from(named) + 3;
    let table = Table::new(columns.iter().map(|(name, _)| *name), rows);
    Table {
        words,
        ..table.parts(&[
            ("", &[0, 1, 2, 5, 7].map(|at| words + at)),
            ("Other latency figures", &[3, 4, 6, 8, 9].map(|at| words + at)),
        ])
    }
}

/// Bars of one operation and depth.
type Series = (Operation, u32);

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
#[path = "document_tests.rs"]
mod tests;
