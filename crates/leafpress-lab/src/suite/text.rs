//! The results, for people: all files together, then each file.

use super::verdict::verdicts;
use super::{Absent, FileRows, MEMCPY, Measured, Report, Row, Skipped};
use crate::core::{Bytes, about};
use crate::report::NOT_APPLICABLE;
use crate::report::numbers::thousands;
use crate::report::paragraph::wrapped;
use crate::report::table::{Part, of_parts, under_names};
use crate::report::verdict;

/// Files that are shown in tables; all of them are in `summary.tsv`.
const MAX_FILES: usize = 40;
/// Files that were left out and are named.
const MAX_SKIPPED: usize = 10;
/// Characters of a file's name; the end is the part that differs.
const MAX_NAME: usize = 24;

/// The report.
pub fn text(report: &Report) -> String {
    let mut text = verdict::text(&verdicts(report)) + &head(report).join("\n") + "\n";
    for &threads in &report.options.threads {
        let rows: Vec<&Row> = report.overall.iter().filter(|row| row.threads == threads).collect();
        if rows.is_empty() {
            continue;
        }
        text += &format!(
            "\nAll files, {}\n{}\n",
            in_words(threads),
            of_parts(
                headings().split_at(1).1.to_vec(),
                under_names(named(all(&rows))),
                1,
                &PARTS
            )
        );
    }
    text += &CAPTION.map(|line| wrapped(line, "", "")).concat();
    text += &per_file(report);
    for trouble in cautions(report).into_iter().chain(troubles(report)) {
        text += &format!("{trouble}\n");
    }
    text
}

/// The tables of [`headings`] without the first. Medians are in the files.
const PARTS: [Part<'_>; 2] = [
    ("", &[1, 3, 7, 2]),
    ("CPU time in us per block, and MB/s of raw bytes", &[5, 6, 9, 10]),
];

/// Names of the groups of rows, instead of block sizes.
fn named(rows: Vec<Vec<String>>) -> impl Iterator<Item = Vec<String>> {
    rows.into_iter().map(|mut row| {
        if !row[0].is_empty() {
            row[0].insert_str(0, "blocks of ");
        }
        row
    })
}

const CAPTION: [&str; 3] = [
    "us: microseconds per block, wall time of the best pass; medians are in the files of --out. CPU: all threads. A short block at the \
     end of a file counts as a fraction of a block.",
    "Ratio: raw bytes over stored bytes; a block that does not shrink is stored raw, and counts as its raw bytes.",
    "memcpy copies blocks and copies them back: the floor.",
];

pub(super) fn in_words(threads: usize) -> String {
    match threads {
        1 => "1 thread".into(),
        threads => format!("{threads} threads"),
    }
}

/// Describes the measurement.
pub(super) fn head(report: &Report) -> Vec<String> {
    let (sample, options) = (&report.sample, &report.options);
    let files = |count: u64| format!("{} file{}", thousands(count), if count == 1 { "" } else { "s" });
    let mut lines = vec![format!("{}, {}", files(sample.files), about(sample.bytes as f64))];
    if sample.is_part() {
        let caps = [
            ("--max-bytes", options.max_bytes),
            ("--max-file-bytes", options.max_file_bytes),
        ];
        let caps = caps
            .iter()
            .filter_map(|(name, most)| Some(format!("{name} {}", Bytes((*most)?))));
        lines[0] += &format!(
            ": a sample of the {} of {} ({})",
            about(sample.found_bytes as f64),
            files(sample.found_files),
            caps.collect::<Vec<_>>().join(", ")
        );
        lines.push(format!(
            "in pieces of {}, evenly spread over each file",
            Bytes(sample.piece_bytes)
        ));
    }
    lines.push(format!(
        "{} · {} · {} pass{}, every block compared",
        report.host,
        libraries(&report.codecs),
        report.passes,
        if report.passes == 1 { "" } else { "es" }
    ));
    if report.interrupted {
        lines.push("INTERRUPTED: only finished measurements are shown".into());
    }
    lines
}

/// The libraries of the codecs, without duplicates.
pub(super) fn libraries(codecs: &[Measured]) -> String {
    let mut libraries: Vec<&str> = Vec::new();
    for codec in codecs {
        if let Some(library) = codec.provided_by.as_deref().filter(|known| !libraries.contains(known)) {
            libraries.push(library);
        }
    }
    libraries.join(", ")
}

pub(super) fn headings() -> [&'static str; 12] {
    [
        "block",
        "codec",
        "ratio",
        "stored\nraw %",
        "compress\nus",
        "\nmedian",
        "\nCPU",
        "\nMB/s",
        "decompress\nus",
        "\nmedian",
        "\nCPU",
        "\nMB/s",
    ]
}

/// The rows of the table of all files.
pub(super) fn all(rows: &[&Row]) -> Vec<Vec<String>> {
    let mut last = 0;
    let cells = rows.iter().map(|row| {
        let block = if row.block_bytes == last {
            String::new()
        } else {
            Bytes(row.block_bytes as u64).to_string()
        };
        last = row.block_bytes;
        let raw = if row.codec == MEMCPY {
            "-".to_owned()
        } else {
            format!("{:.1}", row.stored_blocks as f64 * 100.0 / row.blocks.max(1) as f64)
        };
        let mut cells = vec![block, row.codec.clone(), format!("{:.3}", row.ratio), raw];
        for speed in [&row.compress, &row.decompress] {
            cells.extend([speed.us, speed.median_us, speed.cpu_us].map(us));
            cells.push(format!("{:.0}", speed.mb_per_s));
        }
        cells
    });
    cells.collect()
}

/// Microseconds with as many digits as help.
pub(super) fn us(us: f64) -> String {
    match us {
        us if us >= 1000.0 => format!("{us:.0}"),
        us if us >= 100.0 => format!("{us:.1}"),
        us if us >= 1.0 => format!("{us:.2}"),
        us => format!("{us:.3}"),
    }
}

/// The length of blocks and the number of threads that files are compared with: the thesis' pages of 8 KB, on the first
/// number of threads, where that was measured.
pub(super) fn common_setting(report: &Report) -> Option<(usize, usize)> {
    let threads = report.overall.first()?.threads;
    let of_threads = report.overall.iter().filter(|row| row.threads == threads);
    let lengths = of_threads.map(|row| row.block_bytes);
    let nearest = lengths.min_by_key(|length| length.abs_diff(8192))?;
    Some((nearest, threads))
}

/// A figure of a row, as files are compared by it.
type Figure = (&'static str, fn(&Row) -> String, bool);

pub(super) const FIGURES: [Figure; 3] = [
    ("ratio", |row| format!("{:.3}", row.ratio), false),
    ("compress, us per block", |row| us(row.compress.us), true),
    ("decompress, us per block", |row| us(row.decompress.us), true),
];

/// A file's row of a figure: one cell for each of `codecs`.
pub(super) fn file_cells(
    file: &FileRows,
    codecs: &[&str],
    (block_bytes, threads): (usize, usize),
    cell: fn(&Row) -> String,
) -> Vec<String> {
    let of_codec = |codec: &&str| {
        let mut rows = file.rows.iter();
        let row = rows.find(|row| (row.codec.as_str(), row.block_bytes, row.threads) == (*codec, block_bytes, threads));
        row.map_or_else(|| NOT_APPLICABLE.to_owned(), cell)
    };
    codecs.iter().map(of_codec).collect()
}

/// The codecs, with the floor first where it is meaningful.
pub(super) fn codecs_of(report: &Report, with_memcpy: bool) -> Vec<&str> {
    let codecs = report.codecs.iter().map(|codec| codec.codec.as_str());
    with_memcpy.then_some(MEMCPY).into_iter().chain(codecs).collect()
}

fn per_file(report: &Report) -> String {
    let Some((block_bytes, threads)) = common_setting(report) else {
        return String::new();
    };
    // One file is all files.
    if report.files.len() < 2 {
        return String::new();
    }
    let codecs = codecs_of(report, false);
    let rows = report.files.iter().take(MAX_FILES).flat_map(|file| {
        let figures = FIGURES.map(|(_, cell, _)| file_cells(file, &codecs, (block_bytes, threads), cell));
        let row = |(at, codec): (usize, &&str)| {
            let cells = figures.each_ref().map(|cells| cells[at].clone());
            [vec![short(&file.file), (*codec).to_owned()], cells.to_vec()].concat()
        };
        codecs.iter().enumerate().map(row).collect::<Vec<_>>()
    });
    let headings = ["file", "ratio", "compress\nus", "decompress\nus"];
    let mut text = format!(
        "\nPer file, blocks of {}, {}\n{}\n",
        Bytes(block_bytes as u64),
        in_words(threads),
        of_parts(headings, under_names(rows), 1, &[("", &[1, 2, 3])])
    );
    if let Some(more) = report.files.len().checked_sub(MAX_FILES).filter(|more| *more > 0) {
        text += &format!("and {more} more files\n");
    }
    text + "Other block sizes and threads by file are in summary.tsv (--out).\n"
}

/// The end of a long name.
fn short(name: &str) -> String {
    let length = name.chars().count();
    if length <= MAX_NAME {
        return name.to_owned();
    }
    let end: String = name.chars().skip(length - MAX_NAME + 3).collect();
    format!("...{end}")
}

/// Caveats of the figures.
pub(super) fn cautions(report: &Report) -> Vec<String> {
    let busy = report.waited_pct().filter(|_| report.is_busy()).map(|waited| {
        format!(
            "The machine was busy: {waited:.0}% of the wall time of one thread was spent waiting for a CPU. Use the CPU columns, as the verdict does."
        )
    });
    busy.into_iter().collect()
}

/// Missing figures, and why.
pub(super) fn troubles(report: &Report) -> Vec<String> {
    let mut lines = not_available(&report.absent);
    let skipped = report.skipped.len();
    if skipped > 0 {
        lines.push(format!(
            "Skipped {skipped} file{}:",
            if skipped == 1 { "" } else { "s" }
        ));
        let named = report.skipped.iter().take(MAX_SKIPPED);
        lines.extend(named.map(|Skipped { file, reason }| format!("  {file}: {reason}")));
        if skipped > MAX_SKIPPED {
            lines.push(format!("  and {} more", skipped - MAX_SKIPPED));
        }
    }
    lines
}

/// The codecs that are not available here: a line for each reason.
pub(super) fn not_available(absent: &[Absent]) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for absent in absent {
        match reasons.iter_mut().find(|(reason, _)| *reason == absent.reason) {
            Some((_, codecs)) => codecs.push(&absent.codec),
            None => reasons.push((&absent.reason, vec![&absent.codec])),
        }
    }
    let lines = reasons.into_iter();
    lines
        .map(|(reason, codecs)| format!("Not available: {}: {reason}", codecs.join(", ")))
        .collect()
}
