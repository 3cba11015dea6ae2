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
    "<b>Each alone</b>: values are compressed separately, as in a cache that finds each record by its key. \
     <b>Frames</b>: as many values as fit, neighbours by key, as in a block store; a longer value has its own frame.",
    "<b>Read</b> is the mean time to decode one frame, the cost of reading one record. <b>Compress</b> and <b>decompress</b> are \
     times per record when all are processed in sequence.",
    "<b>Ratio</b> is bytes of values over stored bytes. A dictionary counts as stored bytes. Keys are not included.",
    "<b>Dictionaries</b> are trained from values of the dump, evenly spread over its keys, for each codec that supports one. The training \
     values are among those measured.",
    "<b>One piece</b> is all values concatenated as one frame of <code>zstd -19</code>: the limit. Nothing can be read from it \
     without decoding everything before it.",
    "Incompressible values are stored raw. <b>memcpy</b> copies the bytes: the floor. Every record is compared with the original.",
    "Passes of all settings are interleaved; <b>median</b> is the median pass, the other times are those of the fastest.",
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
                (legend_and(named().map(|(name, hue)| (hue, name)), "filled: with a dictionary, or where none applies; rings: without"))
                (figure("Ratio vs the time to read one record", &chart))
                p.faint {
                    "Each line goes from single records to ever larger frames. The broad line is the Pareto frontier."
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
        // A codec without dictionary support needs no distinction.
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
        x: "time to read one record",
        y: "ratio",
        lines: &drawn,
        limit: limit.zip(name.as_deref()),
    })
}
