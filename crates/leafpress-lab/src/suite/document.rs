//! The report of a suite: all files together, then each file.

use maud::html;

use super::phrases::{common_setting, in_words, libraries, not_available, us};
use super::verdict::verdicts;
use super::{MEMCPY, Report, Row, Skipped, charts, tables};
use crate::core::{Bytes, about};
use crate::report::Part;
use crate::report::document::{Document, Table};
use crate::report::html::{all, legend, pair};
use crate::report::numbers::thousands;
use crate::report::paragraph::wrapped;

/// Files that are shown in tables of the text; all of them are on the page and in `summary.tsv`.
const MAX_FILES: usize = 40;
/// Files that were left out and are named.
const MAX_SKIPPED: usize = 10;

const NOTES: [&str; 8] = [
    "Each block is compressed separately, as in a cache, without a dictionary.",
    "<b>Microseconds per block</b> are wall time: the blocks of a batch of 64M are processed one after the other, each \
     with its own buffer. With several threads it is the time per block in bulk: \
     threads work in parallel. <b>CPU</b> is the time of all threads.",
    "<b>Best</b> is the fastest pass, <b>median</b> the median pass. Passes of all settings are interleaved; before \
     each, every thread warms up on 512K. A sample of less than 8M for each thread is processed several times per \
     pass.",
    "A short block at the end of a file is a separate block; in microseconds per block it counts as a fraction of a \
     block.",
    "A block that does not shrink is stored raw: it counts as its raw bytes, and restoring it is a copy.",
    "<b>Ratio</b> is raw bytes over stored bytes; over all files that is weighted by size. A stored block is the \
     codec's output in the library: without a frame's header, length or checksum.",
    "<b>memcpy</b> copies each block to where compressed blocks go, and back: the floor.",
    "After each pass every block is compared with the original, outside of the measured time.",
];

/// Builds the report. Its files are `summary.tsv`, a line for each file, codec, length of blocks and number of threads;
/// `overall.tsv`, the same without the files; `suite_wide_Nt.tsv`, the thesis' table, for each number of threads.
pub fn document(report: &Report) -> Document<'_> {
    let mut document = Document::new("Leafpress compression suite");
    document.verdicts = verdicts(report);
    document.cautions = cautions(report);
    document.head = head(report);
    document.remarks = remarks(report);
    document.notes.extend(NOTES);
    if report.interrupted {
        document
            .troubles
            .push("INTERRUPTED: only finished measurements are shown".into());
    }
    document.page_only(|| {
        let mut over_lengths = charts::ratio(report)?;
        for &threads in &report.options.threads {
            over_lengths.extend(charts::times(report, threads)?);
        }
        Ok(html! {
            h2 { "All files" }
            (legend(charts::hues(report)))
            @if let Some(trade_off) = charts::trade_off(report)? { (trade_off) }
            (pair(&over_lengths))
        })
    });
    for &threads in &report.options.threads {
        let rows: Vec<&Row> = report.overall.iter().filter(|row| row.threads == threads).collect();
        if !rows.is_empty() {
            document.table(Table {
                title: format!("All files, {}", in_words(threads)),
                is_grouped: true,
                ..Table::new(HEADINGS, cells(&rows)).parts(&PARTS)
            });
        }
    }
    CAPTION
        .iter()
        .for_each(|line| document.text_only(wrapped(line, "", "")));
    by_file(&mut document, report);
    document.tsv("summary", "summary.tsv", || tables::summary(report));
    document.tsv("overall", "overall.tsv", || tables::overall(report));
    for &threads in &report.options.threads {
        let name = format!("suite_wide_{threads}t.tsv");
        document.tsv("wide", name, move || tables::wide(report, threads));
    }
    document.results(report);
    document
}

const HEADINGS: [&str; 12] = [
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
];

/// The tables of [`HEADINGS`] without the first. Medians are in the files.
const PARTS: [Part<'_>; 2] = [
    ("", &[1, 3, 7, 2]),
    ("CPU time in us per block, and MB/s of raw bytes", &[5, 6, 9, 10]),
];

const CAPTION: [&str; 3] = [
    "us: microseconds per block, wall time of the best pass; medians are in the files of --out. CPU: all threads. A \
     short block at the end of a file counts as a fraction of a block.",
    "Ratio: raw bytes over stored bytes; a block that does not shrink is stored raw, and counts as its raw bytes.",
    "memcpy copies blocks and copies them back: the floor.",
];

/// Describes the measurement.
fn head(report: &Report) -> Vec<String> {
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
    lines
}

/// The rows of the table of all files.
fn cells(rows: &[&Row]) -> Vec<Vec<String>> {
    let cells = rows.iter().map(|row| {
        let block = format!("blocks of {}", Bytes(row.block_bytes as u64));
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

/// Comparison by file; nothing for a single file, which is the total.
fn by_file<'r>(document: &mut Document<'r>, report: &'r Report) {
    let Some(setting) = common_setting(report).filter(|_| report.files.len() > 1) else {
        return;
    };
    document.page_only(|| {
        let (files, figures) = charts::ratio_by_file(report)?;
        Ok(html! {
            h2 { "By file" }
            (legend(charts::hues(report)))
            (all(&charts::by_file(report)?))
            @if !figures.is_empty() {
                (legend(files.iter().map(|(hue, name)| (*hue, name.as_str()))))
                (pair(&figures))
            }
        })
    });
    let rows = report.files.iter().flat_map(|file| {
        let rows = file.rows.iter().filter(|row| (row.block_bytes, row.threads) == setting);
        rows.map(|row| {
            vec![
                file.file.clone(),
                row.codec.clone(),
                about(row.raw_bytes as f64),
                format!("{:.3}", row.ratio),
                us(row.compress.us),
                us(row.decompress.us),
            ]
        })
    });
    let headings = ["file", "codec", "size", "ratio", "compress\nus", "decompress\nus"];
    document.table(Table {
        title: format!(
            "Per file, blocks of {}, {}",
            Bytes(setting.0 as u64),
            in_words(setting.1)
        ),
        is_grouped: true,
        max_groups: Some(MAX_FILES),
        ..Table::new(headings, rows).parts(&[("", &[2, 3, 4])])
    });
    document.text_only("Other block sizes and threads by file are in summary.tsv (--out).\n");
}

/// Caveats of the figures.
pub(super) fn cautions(report: &Report) -> Vec<String> {
    let busy = report.waited_pct().filter(|_| report.is_busy()).map(|waited| {
        format!(
            "The machine was busy: {waited:.0}% of the wall time of one thread was spent waiting for a CPU. Use the \
             CPU columns, as the verdict does."
        )
    });
    busy.into_iter().collect()
}

/// Missing figures, and why.
fn remarks(report: &Report) -> Vec<String> {
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
