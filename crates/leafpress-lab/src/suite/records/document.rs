//! The report of a suite over records.

use maud::html;
use plotters::style::RGBColor;

use super::verdict::verdicts;
use super::{Report, Row, tables};
use crate::core::{Bytes, LabError, about};
use crate::report::Part;
use crate::report::document::{Document, Table};
use crate::report::html::{figure, legend_and};
use crate::report::numbers::thousands;
use crate::report::palette::colours;
use crate::report::paragraph::wrapped;
use crate::report::trade_off::{Line, TradeOff, trade_off};
use crate::suite::MEMCPY;
use crate::suite::phrases::{in_words, libraries, not_available, us};

const NOTES: [&str; 7] = [
    "<b>Each alone</b>: values are compressed separately, as in a cache that finds each record by its key. \
     <b>Frames</b>: as many values as fit, neighbours by key, as in a block store; a longer value has its own frame.",
    "<b>Read</b> is the mean time to decode one frame, the cost of reading one record. <b>Compress</b> and \
     <b>decompress</b> are times per record when all are processed in sequence.",
    "<b>Ratio</b> is bytes of values over stored bytes. A dictionary counts as stored bytes. Keys are not included.",
    "<b>Dictionaries</b> are trained from values of the dump, evenly spread over its keys, for each codec that \
     supports one. The training values are among those measured.",
    "<b>One piece</b> is all values concatenated as one frame of <code>zstd -19</code>: the limit. Nothing can be read \
     from it without decoding everything before it.",
    "Incompressible values are stored raw. <b>memcpy</b> copies the bytes: the floor. Every record is compared with \
     the original.",
    "Passes of all settings are interleaved; <b>median</b> is the median pass, the other times are those of the \
     fastest.",
];

/// Builds the report. Its table is `records.tsv`, a line for each codec, place and number of threads and one for the
/// limit.
pub fn document(report: &Report) -> Document<'_> {
    let mut document = Document::new("Leafpress compression suite: records");
    document.verdicts = verdicts(report);
    document.head = head(report);
    document.remarks = remarks(report);
    document.notes.extend(NOTES);
    if report.interrupted {
        document
            .troubles
            .push("INTERRUPTED: only finished measurements are shown".into());
    }
    for &threads in &report.options.threads {
        let rows = report.of_threads(threads);
        if rows.is_empty() {
            continue;
        }
        document.heading(in_words(threads));
        document.page_only(move || {
            let names: Vec<&str> = report.codecs.iter().map(|codec| codec.codec.as_str()).collect();
            let hues = colours(names.iter().map(|name| Some(*name)));
            let named = || names.iter().copied().zip(hues.iter().copied());
            let chart = frontier(report, threads, named())?;
            Ok(html! {
                @if let Some(chart) = chart {
                    (legend_and(named().map(|(name, hue)| (hue, name)), "filled: with a dictionary, or where none \
                                                                         applies; rings: without"))
                    (figure("Ratio vs the time to read one record", &chart))
                    p.faint {
                        "Each line goes from single records to ever larger frames. The broad line is the Pareto \
                         frontier."
                    }
                }
            })
        });
        document.table(Table {
            is_grouped: true,
            ..Table::new(HEADINGS, cells(report, &rows)).parts(&PARTS)
        });
    }
    document.text_only(format!("\n{}", CAPTION.map(|line| wrapped(line, "", "")).concat()));
    document.tsv("records", "records.tsv", || tables::table(report));
    document.results(report);
    document
}

/// The tables of [`HEADINGS`] behind the first. Medians are in the files.
const PARTS: [Part<'_>; 2] = [
    ("", &[1, 3, 4, 7]),
    ("Throughput in MB/s of values, and frames stored raw", &[6, 9, 2]),
];

const CAPTION: [&str; 4] = [
    "Records are compressed separately, or in frames of neighbours by key, as many as fit. Ratio: bytes of values over \
     stored bytes, dictionary included.",
    "Compress, decompress: microseconds per record, wall time of the best pass over all; medians are in the files of \
     --out.",
    "Read: microseconds to decode one frame, the cost of reading a record.",
    "◆ on the Pareto frontier of ratio and read time.",
];

/// Describes the measurement.
fn head(report: &Report) -> Vec<String> {
    let (options, census) = (&report.options, &report.census);
    let some = if report.records < census.records {
        format!(" of {}", thousands(census.records))
    } else {
        String::new()
    };
    let (shortest, longest) = report.value_bytes;
    let mean = report.raw_bytes as f64 / report.records.max(1) as f64;
    let mut lines = vec![format!(
        "{}{some} records of {} ({}), {} of values: {} to {} bytes each, {mean:.0} on average",
        thousands(report.records),
        options.path.display(),
        options.records,
        about(report.raw_bytes as f64),
        thousands(shortest as u64),
        thousands(longest as u64),
    )];
    if let Some(most) = options.max_bytes.filter(|_| report.records < census.records) {
        lines.push(format!(
            "a sample of the {} of values (--max-bytes {}), in runs of neighbours evenly spread over the keys",
            about(report.found_bytes as f64),
            Bytes(most)
        ));
    }
    lines.push(format!(
        "their keys have {} more, not included in any figure",
        about(report.key_bytes as f64)
    ));
    lines.extend(census.left_out());
    lines.push(format!(
        "{} · {} · {} pass{}, every record compared",
        report.host,
        libraries(&report.codecs),
        report.passes,
        if report.passes == 1 { "" } else { "es" }
    ));
    lines
}

const HEADINGS: [&str; 11] = [
    "records\nin",
    "codec",
    "ratio",
    "stored\nraw %",
    "read\nus",
    "compress\nus/record",
    "\nmedian",
    "\nMB/s",
    "decompress\nus/record",
    "\nmedian",
    "\nMB/s",
];

/// The cells of some rows, followed by the limit.
fn cells(report: &Report, rows: &[(&Row, bool)]) -> Vec<Vec<String>> {
    let mut cells: Vec<Vec<String>> = Vec::new();
    for (row, best) in rows {
        let raw = if row.codec == MEMCPY {
            "-".to_owned()
        } else {
            format!("{:.1}", row.stored_raw_frames as f64 * 100.0 / row.frames.max(1) as f64)
        };
        let mark = if *best { '◆' } else { ' ' };
        let mut line = vec![
            row.place.in_words(),
            row.name().replace("dictionary", "dict."),
            format!("{:.3}{mark}", row.ratio),
            raw,
            us(row.read_us),
        ];
        for speed in [&row.compress, &row.decompress] {
            line.extend([us(speed.us), us(speed.median_us), mb_per_s(speed.mb_per_s)]);
        }
        cells.push(line);
    }
    if let Some(limit) = &report.limit {
        let per_record = |seconds: f64| us(seconds * 1e6 / report.records.max(1) as f64);
        let none = || "-".to_owned();
        let raw_mb = report.raw_bytes as f64 / 1e6;
        let mut line = vec![
            "one piece".to_owned(),
            limit.codec.clone(),
            format!("{:.3} ", limit.ratio),
        ];
        line.extend([none(), none()]);
        for seconds in [limit.compress_seconds, limit.decompress_seconds] {
            line.extend([
                per_record(seconds),
                none(),
                mb_per_s(raw_mb / seconds.max(f64::MIN_POSITIVE)),
            ]);
        }
        cells.push(line);
    }
    cells
}

/// Megabytes a second with as many digits as help.
fn mb_per_s(figure: f64) -> String {
    if figure >= 10.0 {
        format!("{figure:.0}")
    } else {
        format!("{figure:.1}")
    }
}

/// Missing figures, and why.
fn remarks(report: &Report) -> Vec<String> {
    let untrained = report.untrained.iter();
    let mut lines: Vec<String> = untrained
        .map(|one| format!("No dictionary for {}: {}", one.codec, one.reason))
        .collect();
    lines.extend(not_available(&report.absent));
    lines
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
