//! The results, for people.

use super::verdict::verdicts;
use super::{Place, Report, Row};
use crate::core::{Bytes, about};
use crate::report::numbers::thousands;
use crate::report::paragraph::wrapped;
use crate::report::table::{Part, of_parts, under_names};
use crate::report::verdict;
use crate::suite::MEMCPY;
use crate::suite::text::{in_words, libraries, not_available, us};

/// The report.
pub fn text(report: &Report) -> String {
    let mut text = verdict::text(&verdicts(report)) + &head(report).join("\n") + "\n";
    for &threads in &report.options.threads {
        let rows = report.of_threads(threads);
        if !rows.is_empty() {
            let rows = under_names(cells(report, &rows).into_iter().map(shortened));
            let headings = [&HEADINGS[1..2], &HEADINGS[3..]].concat();
            text += &format!("\n{}\n{}\n", in_words(threads), of_parts(headings, rows, 1, &PARTS));
        }
    }
    text.push('\n');
    text += &CAPTION.map(|line| wrapped(line, "", "")).concat();
    for trouble in troubles(report) {
        text += &format!("{trouble}\n");
    }
    text
}

/// The tables of [`HEADINGS`] without the first and the mark. Medians are in the files.
const PARTS: [Part<'_>; 2] = [
    ("", &[1, 3, 4, 7]),
    ("Throughput in MB/s of values, and frames stored raw", &[6, 9, 2]),
];

/// A row for a narrow table: the mark is part of the ratio.
fn shortened(mut row: Vec<String>) -> Vec<String> {
    let mark = row.remove(2);
    row[1] = row[1].replace("dictionary", "dict.");
    row[2].push_str(if mark.is_empty() { " " } else { &mark });
    row
}

const CAPTION: [&str; 4] = [
    "Records are compressed separately, or in frames of neighbours by key, as many as fit. Ratio: bytes of values over stored bytes, \
     dictionary included.",
    "Compress, decompress: microseconds per record, wall time of the best pass over all; medians are in the files of --out.",
    "Read: microseconds to decode one frame, the cost of reading a record.",
    "◆ on the Pareto frontier of ratio and read time.",
];

/// Describes the measurement.
pub(super) fn head(report: &Report) -> Vec<String> {
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
    if report.interrupted {
        lines.push("INTERRUPTED: only finished measurements are shown".into());
    }
    lines
}

pub(super) const HEADINGS: [&str; 12] = [
    "records\nin",
    "codec",
    "",
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
pub(super) fn cells(report: &Report, rows: &[(&Row, bool)]) -> Vec<Vec<String>> {
    let mut last = None;
    let mut cells: Vec<Vec<String>> = Vec::new();
    for (row, best) in rows {
        let place = if last == Some(row.place) {
            String::new()
        } else {
            place(row.place)
        };
        last = Some(row.place);
        let raw = if row.codec == MEMCPY {
            "-".to_owned()
        } else {
            format!("{:.1}", row.stored_raw_frames as f64 * 100.0 / row.frames.max(1) as f64)
        };
        let mark = if *best { "◆" } else { "" };
        let mut line = vec![
            place,
            row.name(),
            mark.to_owned(),
            format!("{:.3}", row.ratio),
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
            String::new(),
            format!("{:.3}", limit.ratio),
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

/// The unit of compression, for people.
pub(super) fn place(place: Place) -> String {
    match place {
        Place::Record => "each alone".to_owned(),
        Place::Frame(bytes) => format!("frames of {}", Bytes(bytes as u64)),
    }
}

/// Missing figures, and why.
pub(super) fn troubles(report: &Report) -> Vec<String> {
    let untrained = report.untrained.iter();
    let mut lines: Vec<String> = untrained
        .map(|one| format!("No dictionary for {}: {}", one.codec, one.reason))
        .collect();
    lines.extend(not_available(&report.absent));
    lines
}
