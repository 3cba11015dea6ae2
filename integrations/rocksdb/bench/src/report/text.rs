//! Benchmarks for people.

use std::fmt::Write;

use leafpress_lab::Bytes;
use leafpress_lab::core::about;
use leafpress_lab::report::numbers::{mops, thousands};

use super::grid::{Grid, figure};
use super::{Report, Row};
use crate::Shape;

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

/// Returns the table of benchmarks.
pub(super) fn grid(report: &Report) -> Grid {
    let mut grid = Grid::new(
        2,
        &[
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
        ],
    )
    .in_parts(&[
        ("", &[2, 5, 10, 11]),
        ("Other rates and times, what was found", &[3, 4, 6, 13]),
        ("CPU, and bytes of files", &[7, 8, 9, 12]),
    ]);
    for row in &report.rows {
        let outcome = &row.outcome;
        let us = |of: fn(&leafpress_lab::core::latency::Latency) -> u64| {
            figure(outcome.latency().map(|latency| of(latency) as f64 / 1e3))
        };
        let found = match outcome.reads {
            0 => "NA".to_owned(),
            reads => format!("{:.1}%", outcome.found as f64 / reads as f64 * 100.0),
        };
        grid.rows.push(vec![
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
        ]);
    }
    grid
}

/// Returns the description of the runs, in lines.
pub(super) fn head(report: &Report) -> Vec<String> {
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
pub(super) fn troubles(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    for row in &report.rows {
        if row.outcome.mismatches > 0 {
            let example = row.outcome.mismatch_examples.first().map_or("", String::as_str);
            lines.push(format!(
                "WRONG ANSWERS: {} {}: {} ({example})",
                row.run.workload, row.run.shape.compression, row.outcome.mismatches
            ));
        }
        if row.outcome.cancelled {
            lines.push(format!(
                "{}: cut short after {:.1} s",
                row.run.workload, row.outcome.seconds
            ));
        }
    }
    lines
}

/// Returns all of a report.
pub fn text(report: &Report) -> String {
    let mut text = head(report).join("\n") + "\n";
    text += &grid(report).text();
    text += "Latency of point reads where there are any, else of scans or puts. CPU is the process's over the measured time, background threads \
             included. SST: all live files once flushes and compactions that were due are done.\n";
    for row in &report.rows {
        let tickers: Vec<String> = row
            .outcome
            .tickers
            .iter()
            .filter(|(name, _)| REPORTED.contains(&name.as_str()))
            .map(|(name, count)| format!("{} {}", name.trim_start_matches("rocksdb."), thousands(*count)))
            .collect();
        if !tickers.is_empty() {
            let _ = writeln!(text, "tickers of {}: {}", row.run.workload, tickers.join(" · "));
        }
    }
    for trouble in troubles(report) {
        let _ = writeln!(text, "{trouble}");
    }
    text
}
