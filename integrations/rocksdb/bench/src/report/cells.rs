//! Cells of tables for people; `NA` without a figure.

use leafpress_lab::core::about;
use leafpress_lab::report::NOT_APPLICABLE;
use leafpress_lab::report::numbers::{mops, three_digits};

fn or_none(figure: Option<f64>, text: impl Fn(f64) -> String) -> String {
    figure.map_or_else(|| NOT_APPLICABLE.into(), text)
}

/// A figure with three digits.
pub fn figure(figure: Option<f64>) -> String {
    or_none(figure, three_digits)
}

/// Operations per second, in millions.
pub fn throughput(per_second: Option<f64>) -> String {
    or_none(per_second, mops)
}

/// Bytes, as `12.3M`.
pub fn size(bytes: Option<f64>) -> String {
    or_none(bytes, about)
}

/// A change in percent with its sign.
pub fn change(percent: Option<f64>) -> String {
    or_none(percent, |percent| format!("{percent:+.1}"))
}

/// A ratio.
pub fn times(ratio: Option<f64>) -> String {
    or_none(ratio, |ratio| format!("{ratio:.2}x"))
}
