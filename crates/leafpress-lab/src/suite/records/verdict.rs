//! Verdict of a suite over records: for single records, and for frames.

use super::{CompressionUnit, Report, Row};
use crate::report::numbers::three_digits;
use crate::suite::MEMCPY;

/// Ratios under this are called none.
const SHRINKS: f64 = 1.05;

/// The best ratio for single records and for frames, a line each, with the benefit of a dictionary and a frame.
pub(super) fn verdicts(report: &Report) -> Vec<String> {
    let Some(threads) = report.rows.first().map(|row| row.threads) else {
        return Vec::new();
    };
    let of = |is_alone: bool| {
        let rows = report.rows.iter().filter(move |row| row.threads == threads);
        let rows = rows.filter(move |row| row.codec != MEMCPY && (row.place == CompressionUnit::Record) == is_alone);
        let smallest = rows.max_by(|one, other| one.ratio.total_cmp(&other.ratio))?;
        Some(verdict(report, smallest))
    };
    [true, false].into_iter().filter_map(of).collect()
}

fn verdict(report: &Report, smallest: &Row) -> String {
    let how = match smallest.place {
        CompressionUnit::Record => "Each record alone".to_owned(),
        frames => format!("In {}", frames.in_words()),
    };
    if smallest.ratio < SHRINKS {
        return format!(
            "{how}: the data does not compress: {} reaches {:.2}:1.",
            smallest.name(),
            smallest.ratio
        );
    }
    let mut rows = report.rows.iter();
    let without = rows.find(|row| {
        let is_same = (&row.codec, row.place, row.threads) == (&smallest.codec, smallest.place, smallest.threads);
        is_same && row.dictionary_bytes < smallest.dictionary_bytes
    });
    let without = without.map_or_else(String::new, |row| format!(" ({:.2}:1 without it)", row.ratio));
    format!(
        "{how}: {} compresses best, {:.2}:1{without}; reading a record takes {} us.",
        smallest.name(),
        smallest.ratio,
        three_digits(smallest.read_us)
    )
}
