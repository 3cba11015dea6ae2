//! The page of a suite over records: one file, readable without a network.

use maud::html;
use plotters::style::RGBColor;

use super::{Report, text};
use crate::core::LabError;
use crate::report::html::{self, document, figure, legend_and, lines, row};
use crate::report::palette::colours;
use crate::report::trade_off::{Line, TradeOff, trade_off};
use crate::report::verdict;
use crate::suite::text::in_words;

const NOTES: [&str; 7] = [
    "<b>Each alone</b>: a value is compressed by itself, as a cache keeps it that finds each record by its key. \
     <b>Frames</b>: as many values as fit, neighbours by key, as a store of blocks keeps them; a longer value is a frame of its own.",
    "<b>Read</b> is the mean time in which a thread decodes one frame, which is what reading one record takes. <b>Compress</b> and <b>decompress</b> are \
     times per record when all are done in a row.",
    "<b>Ratio</b> is bytes of values over stored bytes. A dictionary counts among the stored bytes. Keys do not count on either side.",
    "<b>Dictionaries</b> are trained from values of the dump, evenly spread over its keys, for each codec that takes one. The values they \
     are trained from are among those that are measured.",
    "<b>One piece</b> is all values one behind the other as one frame of <code>zstd -19</code>: the limit. Nothing can be read from it \
     without decoding what stands before.",
    "What does not shrink is stored raw. <b>memcpy</b> copies the bytes: the floor. Every record is compared with what it was.",
    "Passes of all settings are done by turns; <b>median</b> is the pass in the middle, the other times are those of the fastest.",
];

/// The page.
///
/// # Errors
/// [`LabError::Chart`] when a chart cannot be drawn.
pub fn page(report: &Report, command_line: &str) -> Result<String, LabError> {
    let title = "Leafpress compression suite: records";
    let troubles = text::troubles(report);
    let names: Vec<&str> = report.codecs.iter().map(|codec| codec.codec.as_str()).collect();
    let hues = colours(names.iter().map(|name| Some(*name)));
    let named = || names.iter().copied().zip(hues.iter().copied());
    let mut parts = Vec::new();
    for &threads in &report.options.threads {
        let rows = report.of_threads(threads);
        if rows.is_empty() {
            continue;
        }
        let chart = frontier(report, threads, named())?;
        let cells = text::cells(report, &rows);
        parts.push(html! {
            h2 { (in_words(threads)) }
            @if let Some(chart) = chart {
                (legend_and(named().map(|(name, hue)| (hue, name)), "filled: with a dictionary or for want of one, rings: without"))
                (figure("Ratio against the time to read one record", &chart))
                p.faint {
                    "Each line goes from records alone to ever longer frames. The broad line joins what nothing beats."
                }
            }
            (html::table(text::HEADINGS, cells.iter().map(|cells| row(cells))))
        });
    }
    let body = html! {
        h1 { (title) }
        (verdict::html(&super::verdict::verdicts(report)))
        p { (lines(&text::head(report).join("\n"))) }
        @if !troubles.is_empty() { p.faint { (lines(&troubles.join("\n"))) } }
        (html::all(&parts))
        h2 { "How it was measured" }
        pre { (command_line) }
        p { "leafpress " (env!("CARGO_PKG_VERSION")) }
        (html::notes(&NOTES))
    };
    Ok(document(title, &body))
}

/// The chart of ratio against the time of a read: a line for each codec with a dictionary and one without.
fn frontier<'n>(
    report: &Report,
    threads: usize,
    codecs: impl Iterator<Item = (&'n str, RGBColor)>,
) -> Result<Option<String>, LabError> {
    let mut drawn = Vec::new();
    for (codec, colour) in codecs {
        let of_codec = |with: bool| {
            let rows = report
                .rows
                .iter()
                .filter(move |row| row.threads == threads && row.codec == codec);
            let rows = rows.filter(move |row| (row.dictionary_bytes > 0) == with);
            rows.map(|row| (row.read_us, row.ratio)).collect::<Vec<_>>()
        };
        let (with, without) = (of_codec(true), of_codec(false));
        // A codec that takes no dictionary has nothing to be told apart from.
        let variant = !with.is_empty();
        for (points, variant) in [(without, variant), (with, false)] {
            if !points.is_empty() {
                drawn.push(Line {
                    colour,
                    points,
                    variant,
                });
            }
        }
    }
    let name = report
        .limit
        .as_ref()
        .map(|limit| format!("{} of all in one piece", limit.codec));
    let limit = report.limit.as_ref().map(|limit| limit.ratio);
    trade_off(&TradeOff {
        name: "frontier",
        x: "time to decode what one record is in",
        y: "ratio",
        lines: &drawn,
        limit: limit.zip(name.as_deref()),
    })
}
