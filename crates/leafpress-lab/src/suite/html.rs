//! The page of a suite: one file, readable without a network.

use maud::{Markup, html};

use super::{Report, Row, charts, text};
use crate::core::{Bytes, LabError, about};
use crate::report::html::{self, document, legend, lines, pair, row};
use crate::report::verdict;

const NOTES: [&str; 8] = [
    "Each block is compressed separately, as in a cache, without a dictionary.",
    "<b>Microseconds per block</b> are wall time: the blocks of a batch of 64M are processed one after the other, each \
     with its own buffer. With several threads it is the time per block in bulk: \
     threads work in parallel. <b>CPU</b> is the time of all threads.",
    "<b>Best</b> is the fastest pass, <b>median</b> the median pass. Passes of all settings are interleaved; before each, every thread \
     warms up on 512K. A sample of less than 8M for each thread is processed several times per pass.",
    "A short block at the end of a file is a separate block; in microseconds per block it counts as a fraction of a block.",
    "A block that does not shrink is stored raw: it counts as its raw bytes, and restoring it is a copy.",
    "<b>Ratio</b> is raw bytes over stored bytes; over all files that is weighted by size. A stored block is the codec's output in the library: \
     without a frame's header, length or checksum.",
    "<b>memcpy</b> copies each block to where compressed blocks go, and back: the floor.",
    "After each pass every block is compared with the original, outside of the measured time.",
];

/// The page.
///
/// # Errors
/// [`LabError::Chart`] when a chart cannot be drawn.
pub fn page(report: &Report, command_line: &str) -> Result<String, LabError> {
    let title = "Leafpress compression suite";
    let hues = charts::hues(report);
    let named = legend(hues.iter().map(|(name, hue)| (*hue, *name)));
    let mut over_lengths = charts::ratio(report)?;
    for &threads in &report.options.threads {
        over_lengths.extend(charts::times(report, threads)?);
    }
    let troubles = text::troubles(report);
    let body = html! {
        h1 { (title) }
        (verdict::html(&super::verdict::verdicts(report)))
        p { (lines(&text::head(report).join("\n"))) }
        @if !troubles.is_empty() { p.faint { (lines(&troubles.join("\n"))) } }
        (html::cautions(&text::cautions(report)))
        h2 { "All files" }
        (named)
        @if let Some(trade_off) = charts::trade_off(report)? { (trade_off) }
        (pair(&over_lengths))
        @for &threads in &report.options.threads {
            @let rows: Vec<&Row> = report.overall.iter().filter(|row| row.threads == threads).collect();
            @if !rows.is_empty() {
                h3 { (text::in_words(threads)) }
                (html::table(headings(), cells(&rows)))
            }
        }
        (by_file(report, &named)?)
        h2 { "How it was measured" }
        pre { (command_line) }
        p { "leafpress " (env!("CARGO_PKG_VERSION")) }
        (html::notes(&NOTES))
    };
    Ok(document(title, &body))
}

/// [`text::headings`], the first two as one: what a row is about stays in sight where its figures are scrolled.
fn headings() -> Vec<&'static str> {
    let mut headings = vec!["block, codec"];
    headings.extend(&text::headings()[2..]);
    headings
}

fn cells(rows: &[&Row]) -> Vec<Vec<Markup>> {
    let cells = rows.iter().zip(text::all(rows)).map(|(measured, cells)| {
        let mut one = vec![format!("{} {}", Bytes(measured.block_bytes as u64), measured.codec)];
        one.extend_from_slice(&cells[2..]);
        row(&one)
    });
    cells.collect()
}

/// Comparison by file; nothing for a single file, which is the total.
fn by_file(report: &Report, named: &Markup) -> Result<Markup, LabError> {
    let Some(setting) = text::common_setting(report).filter(|_| report.files.len() > 1) else {
        return Ok(Markup::default());
    };
    let mut tables = Vec::new();
    for (name, cell, with_memcpy) in text::FIGURES {
        let codecs = text::codecs_of(report, with_memcpy);
        let mut headings = vec!["file", "size"];
        headings.extend(&codecs);
        let rows = report.files.iter().map(|file| {
            let bytes = file.rows.first().map_or(0, |row| row.raw_bytes);
            let mut cells = vec![file.file.clone(), about(bytes as f64)];
            cells.extend(text::file_cells(file, &codecs, setting, cell));
            row(&cells)
        });
        tables.push(html! {
            h3 { (name) "; blocks of " (Bytes(setting.0 as u64)) ", " (text::in_words(setting.1)) }
            (html::table(headings, rows))
        });
    }
    let (files, figures) = charts::ratio_by_file(report)?;
    Ok(html! {
        h2 { "By file" }
        (named)
        (html::all(&charts::by_file(report)?))
        (html::all(&tables))
        @if !figures.is_empty() {
            (legend(files.iter().map(|(name, hue)| (*hue, name.as_str()))))
            (pair(&figures))
        }
    })
}
