//! The results as tab-separated tables, for programs.

use super::outcome::Speed;
use super::{Report, Row};
use crate::report::NOT_APPLICABLE;
use crate::report::tsv::{self, word};

type Column = (&'static str, fn(&Row) -> String);

/// The columns of a row, in order, before [`SPEEDS`].
const COLUMNS: [Column; 8] = [
    ("codec", |r| r.codec.clone()),
    ("block_bytes", |r| r.block_bytes.to_string()),
    ("threads", |r| r.threads.to_string()),
    ("raw_bytes", |r| r.raw_bytes.to_string()),
    ("blocks", |r| r.blocks.to_string()),
    ("stored_bytes", |r| r.stored_bytes.to_string()),
    ("stored_raw_blocks", |r| r.stored_blocks.to_string()),
    ("ratio", |r| number(r.ratio)),
];

/// A figure of compression and decompression.
type SpeedColumn = (&'static str, fn(&Speed, &Speed) -> String);

/// The columns of the times of a row.
pub(super) const SPEEDS: [SpeedColumn; 10] = [
    ("compress_us", |c, _| number(c.us)),
    ("decompress_us", |_, d| number(d.us)),
    ("compress_median_us", |c, _| number(c.median_us)),
    ("decompress_median_us", |_, d| number(d.median_us)),
    ("compress_cpu_us", |c, _| number(c.cpu_us)),
    ("decompress_cpu_us", |_, d| number(d.cpu_us)),
    ("compress_cpu_median_us", |c, _| number(c.cpu_median_us)),
    ("decompress_cpu_median_us", |_, d| number(d.cpu_median_us)),
    ("compress_mb_per_s", |c, _| format!("{:.1}", c.mb_per_s)),
    ("decompress_mb_per_s", |_, d| format!("{:.1}", d.mb_per_s)),
];

pub(super) fn number(figure: f64) -> String {
    format!("{figure:.4}")
}

pub(super) fn line(cells: impl IntoIterator<Item = String>) -> String {
    tsv::line(cells.into_iter().map(word))
}

fn names() -> impl Iterator<Item = String> {
    let names = COLUMNS.iter().map(|(name, _)| *name);
    names.chain(SPEEDS.iter().map(|(name, _)| *name)).map(str::to_owned)
}

fn cells(row: &Row) -> impl Iterator<Item = String> {
    let speeds = SPEEDS.iter().map(|(_, cell)| cell(&row.compress, &row.decompress));
    COLUMNS.iter().map(|(_, cell)| cell(row)).chain(speeds)
}

/// Formats `overall.tsv`: all files together, a line for each codec, length of blocks and number of threads.
pub fn overall(report: &Report) -> String {
    line(names()) + &report.overall.iter().map(|row| line(cells(row))).collect::<String>()
}

/// Formats `summary.tsv`: a line for each file, codec, length of blocks and number of threads.
pub fn summary(report: &Report) -> String {
    let head = ["file", "file_bytes"].map(str::to_owned);
    let mut table = line(head.into_iter().chain(names()));
    for file in &report.files {
        for row in &file.rows {
            let head = [file.file.clone(), file.file_bytes.to_string()];
            table += &line(head.into_iter().chain(cells(row)));
        }
    }
    table
}

/// Formats `suite_wide_Nt.tsv`: the table of the thesis' program for one number of threads. A line for each file and
/// length of blocks with the size that was measured, the blocks, and then by method, memcpy first: compressed sizes,
/// compression times, decompression times. Sizes are in bytes, times are wall times in microseconds for all blocks of
/// the line, best pass.
pub fn wide(report: &Report, threads: usize) -> String {
    let mut methods: Vec<&str> = Vec::new();
    for row in &report.overall {
        if !methods.contains(&row.codec.as_str()) {
            methods.push(&row.codec);
        }
    }
    type Part = (&'static str, fn(&Row) -> String);
    let parts: [Part; 3] = [
        ("compressed_bytes", |r| r.stored_bytes.to_string()),
        ("compress_us", |r| format!("{:.1}", r.total_us(&r.compress))),
        ("decompress_us", |r| format!("{:.1}", r.total_us(&r.decompress))),
    ];
    let head = ["file", "size_bytes", "block_bytes", "blocks"].map(str::to_owned);
    let named = parts
        .iter()
        .flat_map(|(part, _)| methods.iter().map(move |method| format!("{method}_{part}")));
    let mut table = line(head.into_iter().chain(named));
    for file in &report.files {
        for &block_bytes in &report.block_bytes {
            let of_line = |row: &&Row| (row.block_bytes, row.threads) == (block_bytes, threads);
            let rows: Vec<&Row> = file.rows.iter().filter(of_line).collect();
            let Some(any) = rows.first() else {
                continue;
            };
            let head = [
                file.file.clone(),
                any.raw_bytes.to_string(),
                block_bytes.to_string(),
                any.blocks.to_string(),
            ];
            let figures = parts.iter().flat_map(|(_, cell)| {
                let rows = &rows;
                methods.iter().map(move |method| {
                    let row = rows.iter().find(|row| row.codec == *method);
                    row.map_or_else(|| NOT_APPLICABLE.to_owned(), |row| cell(row))
                })
            });
            table += &line(head.into_iter().chain(figures));
        }
    }
    table
}
