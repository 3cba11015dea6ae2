//! The model as tables: for people, and tab-separated for programs.

use super::{CodecOutcome, Outcome, Point};
pub(super) use crate::report::numbers::percent;
use crate::report::numbers::share_of_memory;
use crate::report::table::Marked;
use crate::report::{NOT_APPLICABLE, tsv};

type Column = (&'static str, fn(&Row<'_>) -> String);

/// A codec at a share.
struct Row<'o> {
    outcome: &'o Outcome,
    codec: &'o CodecOutcome,
    point: &'o Point,
}

/// The columns of `summary.tsv`, in order.
const COLUMNS: [Column; 22] = [
    ("method", |r| name(&r.outcome.options.method)),
    ("replacement", |r| name(&r.outcome.options.replacement)),
    ("access", |r| r.outcome.options.access.name()),
    ("data_bytes", |r| format!("{:.0}", r.outcome.options.data_bytes())),
    ("memory_bytes", |r| r.outcome.options.memory_bytes.to_string()),
    ("page_bytes", |r| r.outcome.options.page_bytes.to_string()),
    ("access_bytes", |r| r.outcome.options.access_bytes().to_string()),
    ("device_us", |r| r.outcome.options.device_us.to_string()),
    ("hit_us", |r| r.outcome.options.hit_us.to_string()),
    ("workers", |r| r.outcome.options.workers.to_string()),
    ("codec", |r| r.codec.codec.name.clone()),
    ("ratio", |r| r.codec.codec.ratio.to_string()),
    ("compress_us", |r| r.codec.codec.compress_us.to_string()),
    ("decompress_us", |r| r.codec.codec.decompress_us.to_string()),
    ("compressed_share_pct", |r| percent(r.point.share, 3)),
    ("fits_pct", |r| percent(r.point.fits, 4)),
    ("hit_pct", |r| percent(r.point.hit_ratio, 4)),
    ("hit_is_compressed_pct", |r| percent(r.point.chance_compressed, 4)),
    ("compressions_per_page", |r| format!("{:.6}", r.point.compressions)),
    ("us_per_page", |r| format!("{:.6}", r.point.us_per_page)),
    ("pages_per_second", |r| pages(r.point.pages_per_second, 1)),
    ("raw_us_per_page", |r| format!("{:.6}", r.outcome.raw.us_per_page)),
];

/// Pages per second; unlimited if a page costs no time.
pub(super) fn pages(per_second: f64, decimals: usize) -> String {
    if per_second.is_finite() {
        format!("{per_second:.decimals$}")
    } else {
        NOT_APPLICABLE.into()
    }
}

/// The name of a variant, as in JSON.
fn name(variant: &impl serde::Serialize) -> String {
    match serde_json::to_value(variant) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}

/// Formats `summary.tsv`: a line for each codec and share.
pub fn summary(outcome: &Outcome) -> String {
    let rows = outcome.codecs.iter().flat_map(|codec| {
        let points = codec.points.iter();
        points.map(move |point| Row { outcome, codec, point })
    });
    tsv::columns(COLUMNS, rows, |cell, row| cell(row))
}

pub(super) const HEADINGS: [&str; 6] = [
    "compressed\n% of memory",
    "cached\n% of data",
    "hit\n%",
    "hit is\ncompr. %",
    "us per\npage",
    "pages\nper sec",
];

/// The rows of the table for people; of the codec's best, which is always included, the time is marked.
pub(super) fn rows(codec: &CodecOutcome) -> Vec<Vec<Marked>> {
    let best = Some(codec.best).filter(|best| best.share > 0.0);
    let is_best = |point: &Point| best.is_some_and(|best| best.share == point.share);
    let mut points = codec.points.clone();
    if let Some(best) = best.filter(|_| !codec.points.iter().any(is_best)) {
        points.push(best);
        points.sort_by(|one, other| one.share.total_cmp(&other.share));
    }
    let cells = |point: &Point| {
        let cell = |text, best| Marked { text, best };
        vec![
            cell(share_of_memory(point.share), false),
            cell(percent(point.fits, 2), false),
            cell(percent(point.hit_ratio, 2), false),
            cell(percent(point.chance_compressed, 1), false),
            cell(us(point.us_per_page), is_best(point)),
            cell(pages(point.pages_per_second, 0), false),
        ]
    };
    points.iter().map(cells).collect()
}

/// Microseconds with as many digits as help.
pub(super) fn us(us: f64) -> String {
    format!("{us:.2}")
}

#[cfg(test)]
#[path = "tables_tests.rs"]
mod tests;
