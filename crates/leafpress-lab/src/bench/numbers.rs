//! Parses numbers of the command line. Errors state the expected range; [`super::Options::validate`] checks the range
//! itself.

use std::fmt::Display;
use std::str::FromStr;

use crate::core::Bytes;

/// Reads whole numbers between `least` and `most`.
pub(super) fn whole<T: FromStr>(
    least: u64,
    most: u64,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    known(format!("a whole number between {least} and {most}"))
}

/// Reads lengths in bytes between `least` and `most`, as `Bytes` does.
pub(super) fn size(least: u64, most: u64) -> impl Fn(&str) -> Result<usize, String> + Clone + Send + Sync + 'static {
    move |text: &str| {
        let unreadable = |_| format!("it is not a number of bytes between {least} and {most}");
        Bytes::parse_usize(text).map_err(unreadable)
    }
}

/// Reads numbers of `range`, in words.
pub(super) fn number(range: impl Display) -> impl Fn(&str) -> Result<f64, String> + Clone + Send + Sync + 'static {
    known(format!("a number {range}"))
}

/// Reads shares.
pub(super) fn share() -> impl Fn(&str) -> Result<f64, String> + Clone + Send + Sync + 'static {
    number("between 0 and 1")
}

/// Reads what `words` describes.
pub(super) fn known<T: FromStr>(
    words: impl Into<String>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    let words = words.into();
    move |text: &str| text.parse().map_err(|_| format!("it is not {words}"))
}
