//! Which share is best, and which gain counts: one rule for `model`, `advise` and the page, so that they never
//! contradict each other.

use super::{Method, Point};

/// The most of the memory that is recommended for compressed pages: with fewer raw pages threads wait for each other's
/// frames.
pub const MAX_COMPRESSED: f64 = 15.0 / 16.0;

/// A gain of less than this share of the time is within the error of the inputs.
pub const WITHIN_ERROR: f64 = 0.05;

/// Differences smaller than this, in microseconds, are rounding.
pub(crate) const NOTHING_US: f64 = 1e-9;

/// The recommended maximum of the memory for compressed pages by these formulas: the thesis has no limit.
pub(super) fn most_compressed(method: Method) -> f64 {
    match method {
        Method::Corrected => MAX_COMPRESSED,
        Method::AsPublished => 1.0,
    }
}

/// The point with the lowest microseconds per page; the first of equal ones, beginning with no compression.
pub(crate) fn least(raw: Point, points: impl IntoIterator<Item = Point>) -> Point {
    let better = |one: Point, other: Point| {
        if other.us_per_page < one.us_per_page - NOTHING_US {
            other
        } else {
            one
        }
    };
    points.into_iter().fold(raw, better)
}

/// Returns by which share of the time of `raw` a page is faster.
pub fn gain(raw: &Point, best: &Point) -> f64 {
    1.0 - best.us_per_page / raw.us_per_page.max(NOTHING_US)
}
