//! The report of benchmarks.

use leafpress_lab::core::about;
use leafpress_lab::core::latency::Latency;
use leafpress_lab::report::draw::{Bars, bars, microseconds, quantile_lines};
use leafpress_lab::report::html::{figure as drawn, pair};
use leafpress_lab::report::numbers::{mops, thousands};
use leafpress_lab::report::palette::colours;
use leafpress_lab::report::{Document, Table};
use leafpress_lab::{Bytes, LabError};
use maud::{Markup, html};
use plotters::style::RGBColor;

use super::cells::figure;
use super::{Report, Row, tables};
use crate::Shape;

const NOTES: [&str; 5] = [
    "Each benchmark ran in a process of its own, its instances in one: background threads, their memory and their CPU \
     time are that benchmark's alone.",
    "The load is closed-loop, as db_bench's: each thread starts its next operation when the last one ends.",
    "Every read is looked at: its key must be there, and its value of the right length; with <code>--verify</code> \
     its bytes are compared too. The cost of choosing keys and looking is in the throughput, not in the latency.",
    "<b>CPU</b> is the process's over the measured time, RocksDB's background threads included.",
    "<b>SST</b> is all live files, with their indexes and filters, once flushes and compactions that were due are \
     done.",
];

/// Tickers that are reported on a terminal; the files have all of them.
const REPORTED: [&str; 12] = [
    "rocksdb.block.cache.data.hit",
    "rocksdb.block.cache.data.miss",
    "rocksdb.secondary.cache.data.hits",
    "rocksdb.compressed.secondary.cache.hits",
    "rocksdb.number.block.compressed",
    "rocksdb.bytes.compressed.from",
    "rocksdb.bytes.compressed.to",
    "rocksdb.number.block.decompressed",
    "rocksdb.bytes.decompressed.from",
    "rocksdb.bytes.decompressed.to",
    "rocksdb.compact.write.bytes",
    "rocksdb.stall.micros",
];

/// Returns the report.
pub fn document(report: &Report) -> Document<'_> {
    let hues = colours(report.rows.iter().map(|_| None));
    let mut document = Document::new("Leafpress in RocksDB: benchmarks");
    document.head = head(report);
    document.troubles = troubles(report);
    document.terms = options_of("RocksDB's options", report.rows.first());
    document.notes = NOTES.to_vec();
    document.table(Table {
        hues: hues.clone(),
        ..table(report)
    });
    document.caption(
        "Latency of point reads where there are any, else of scans or puts. CPU is the process's over the measured \
         time, background threads included. SST: all live files once flushes and compactions that were due are \
         done.",
    );
    for row in &report.rows {
        document.text_only(reported_tickers(row));
    }
    document.page_only(move || charts(report, &hues));
    document.page_only(|| Ok(tickers(report)));
    document.tsv("summary", "summary.tsv", || tables::summary(&report.rows));
    document.results(report);
    document
}

/// The options as RocksDB writes them, if there are some.
pub(crate) fn options_of(title: &'static str, row: Option<&Row>) -> Vec<(&'static str, String)> {
    row.map(|row| (title, row.options.replace(';', "; ")))
        .into_iter()
        .collect()
}

/// Returns the content of the databases, in a line.
pub(crate) fn shape(shape: &Shape) -> String {
    let instances = match shape.instances {
        1 => "1 instance".to_owned(),
        more => format!("{more} instances"),
    };
    format!(
        "{instances} of {} keys · keys {} B, values {} B of {} ({}) · {} raw · blocks {} · bloom {} bits",
        thousands(shape.num),
        shape.key_bytes,
        shape.value_bytes,
        shape.values.data,
        shape.values.kind,
        about(shape.raw_bytes() as f64),
        Bytes(shape.block_bytes),
        shape.bloom_bits
    )
}

/// Returns a benchmark's result in a line.
pub fn line(row: &Row) -> String {
    let outcome = &row.outcome;
    let p99 = outcome
        .p99_us()
        .map_or_else(String::new, |us| format!(", p99 {} us", figure(Some(us))));
    let wrong = match outcome.mismatches {
        0 => String::new(),
        wrong => format!("  {wrong} WRONG"),
    };
    format!(
        "{} {}\n    {} Mops/s{p99}, {:.2} cores, {} of files{wrong}",
        row.run.workload.name(),
        row.run.shape.compression,
        mops(outcome.throughput()),
        outcome.cores(),
        about(outcome.sst_bytes as f64)
    )
}

fn table(report: &Report) -> Table {
    let headings = [
        "compression",
        "benchmark",
        "Mops/s",
        "MB/s",
        "p50\nus",
        "p99\nus",
        "p99.9\nus",
        "CPU s\nuser",
        "CPU s\nsystem",
        "cores",
        "CPU us\nper op",
        "SST",
        "bytes\nper key",
        "found",
    ];
    let rows = report.rows.iter().map(|row| {
        let outcome = &row.outcome;
        let us = |of: fn(&Latency) -> u64| figure(outcome.latency().map(|latency| of(latency) as f64 / 1e3));
        let found = match outcome.reads {
            0 => "NA".to_owned(),
            reads => format!("{:.1}%", outcome.found as f64 / reads as f64 * 100.0),
        };
        vec![
            row.run.shape.compression.to_string(),
            row.run.workload.name().to_owned(),
            mops(outcome.throughput()),
            figure(Some(outcome.mb_per_second())),
            us(|latency| latency.p50_ns),
            us(|latency| latency.p99_ns),
            us(|latency| latency.p999_ns),
            format!("{:.2}", outcome.user_seconds),
            format!("{:.2}", outcome.system_seconds),
            format!("{:.2}", outcome.cores()),
            figure(Some(outcome.cpu_us())),
            about(outcome.sst_bytes as f64),
            format!("{:.1}", outcome.bytes_per_key()),
            found,
        ]
    });
    let table = Table {
        is_grouped: true,
        ..Table::new(headings, rows)
    };
    table.parts(&[
        ("", &[1, 4, 9, 10]),
        ("Other rates and times, what was found", &[2, 3, 5, 12]),
        ("CPU, and bytes of files", &[6, 7, 8, 11]),
    ])
}

/// Returns the description of the runs, in lines.
fn head(report: &Report) -> Vec<String> {
    let mut lines = vec![report.host.clone()];
    if let Some(row) = report.rows.first() {
        let run = &row.run;
        lines.push(shape(&run.shape));
        lines.push(format!(
            "{} threads each · block cache {} · {}",
            run.work.threads,
            run.tuning.cache,
            match (run.work.seconds, run.work.reads) {
                (seconds, _) if seconds > 0.0 => format!("{seconds} s after {} s of warm-up", run.work.warmup_seconds),
                (_, Some(reads)) => format!("{} operations in each thread", thousands(reads)),
                _ => "as many operations in each thread as there are keys".to_owned(),
            }
        ));
    }
    lines
}

/// Returns the caveats, in lines.
fn troubles(report: &Report) -> Vec<String> {
    let of_row = |row: &Row| {
        let wrong = row.wrong_answers().map(|wrong| format!("WRONG ANSWERS: {wrong}"));
        let cut = || format!("{}: cut short after {:.1} s", row.run.workload, row.outcome.seconds);
        wrong.into_iter().chain(row.outcome.cancelled.then(cut))
    };
    report.rows.iter().flat_map(of_row).collect()
}

/// The tickers of a run that a terminal shows, in a line; nothing where it has none of them.
fn reported_tickers(row: &Row) -> String {
    let tickers = row.outcome.tickers.iter();
    let reported = tickers.filter(|(name, _)| REPORTED.contains(&name.as_str()));
    let counts = reported.map(|(name, count)| format!("{} {}", name.trim_start_matches("rocksdb."), thousands(*count)));
    match counts.collect::<Vec<_>>().join(" · ") {
        none if none.is_empty() => none,
        counts => format!("tickers of {}: {counts}\n", row.run.workload),
    }
}

/// All tickers.
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

fn charts(report: &Report, hues: &[RGBColor]) -> Result<Markup, LabError> {
    let names: Vec<&str> = report.rows.iter().map(|row| row.run.workload.name()).collect();
    let throughput = bars(&Bars {
        name: "throughput",
        size: (1080, 340),
        unit: "Mops/s",
        groups: &names,
        colours: &[RGBColor(0x1f, 0x83, 0xd6)],
        figure: &|group, _| Some(report.rows[group].outcome.throughput() / 1e6),
    })?;
    let of_row = |(row, hue): (&Row, &RGBColor)| Some((*hue, microseconds(row.outcome.latency()?)));
    let lines: Vec<_> = report.rows.iter().zip(hues).filter_map(of_row).collect();
    let latencies = quantile_lines("latency", "latency", &lines)?;
    Ok(html! {
        @if let Some(svg) = throughput { (drawn("Throughput", &svg)) }
        @if let Some(svg) = latencies {
            (pair(&[drawn("Latency: point reads where there are any, else scans or puts", &svg)]))
        }
    })
}
