//! The results as a tab-separated table, for programs.

use super::{CompressionUnit, Report, Row};
use crate::report::NOT_APPLICABLE;
use crate::suite::tables::{SPEEDS, line, number};

type Column = (&'static str, fn(&Row) -> String);

/// The columns of a row, in order: after those of the dump, before [`SPEEDS`].
const COLUMNS: [Column; 9] = [
    ("records_in", |r| match r.place {
        CompressionUnit::Record => "record".to_owned(),
        CompressionUnit::Frame(bytes) => bytes.to_string(),
    }),
    ("codec", |r| r.codec.clone()),
    ("dictionary_bytes", |r| r.dictionary_bytes.to_string()),
    ("threads", |r| r.threads.to_string()),
    ("frames", |r| r.frames.to_string()),
    ("stored_raw_frames", |r| r.stored_raw_frames.to_string()),
    ("stored_bytes", |r| r.stored_bytes.to_string()),
    ("ratio", |r| number(r.ratio)),
    ("read_us", |r| number(r.read_us)),
];

/// Formats `records.tsv`: a line for each codec, with a dictionary and without, each place and number of threads; the
/// last is the limit, `all` records in one piece. Times are microseconds per record, `read_us` those to decode one
/// frame.
pub fn table(report: &Report) -> String {
    let dump = || {
        [
            report.options.path.display().to_string(),
            report.options.records.to_string(),
            report.records.to_string(),
            report.raw_bytes.to_string(),
        ]
    };
    let names = ["file", "format", "records", "raw_bytes"].map(str::to_owned);
    let columns = COLUMNS.iter().map(|(name, _)| *name);
    let columns: Vec<&str> = columns.chain(SPEEDS.iter().map(|(name, _)| *name)).collect();
    let mut table = line(names.into_iter().chain(columns.iter().map(|name| (*name).to_owned())));
    for row in &report.rows {
        let speeds = SPEEDS.iter().map(|(_, cell)| cell(&row.compress, &row.decompress));
        let cells = COLUMNS.iter().map(|(_, cell)| cell(row)).chain(speeds);
        table += &line(dump().into_iter().chain(cells));
    }
    if let Some(limit) = &report.limit {
        let us = |seconds: f64| number(seconds * 1e6 / report.records.max(1) as f64);
        let cell = |name: &str| match name {
            "records_in" => "all".to_owned(),
            "codec" => limit.codec.clone(),
            "dictionary_bytes" | "stored_raw_frames" => "0".to_owned(),
            "threads" | "frames" => "1".to_owned(),
            "stored_bytes" => limit.stored_bytes.to_string(),
            "ratio" => number(limit.ratio),
            "compress_us" => us(limit.compress_seconds),
            "decompress_us" => us(limit.decompress_seconds),
            _ => NOT_APPLICABLE.to_owned(),
        };
        table += &line(dump().into_iter().chain(columns.iter().map(|name| cell(name))));
    }
    table
}
