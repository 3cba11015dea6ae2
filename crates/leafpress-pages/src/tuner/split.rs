//! The split of a cache's budget between raw and compressed pages.

use std::fmt;
use std::str::FromStr;

/// The share of raw pages in a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RawShare {
    /// A fixed percentage of the budget for raw pages, 0 to 100; with 100 nothing is compressed.
    Fixed {
        /// Percent of the budget.
        raw_percent: u8,
    },
    /// An adaptive share: the one with the least expected cost per access.
    #[default]
    Adaptive,
}

impl fmt::Display for RawShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed { raw_percent } => write!(f, "fixed:{raw_percent}"),
            Self::Adaptive => f.write_str("adaptive"),
        }
    }
}

/// The error of an invalid share.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown share {0:?}: it is adaptive, or fixed:PERCENT with the percent of the budget for raw pages, 0 to 100")]
pub struct ParseRawShareError(String);

impl FromStr for RawShare {
    type Err = ParseRawShareError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseRawShareError(text.to_owned());
        if text == "adaptive" {
            return Ok(Self::Adaptive);
        }
        let percent = text.strip_prefix("fixed:").ok_or_else(error)?;
        match percent.parse() {
            Ok(raw_percent @ 0..=100) if percent.bytes().all(|b| b.is_ascii_digit()) => Ok(Self::Fixed { raw_percent }),
            _ => Err(error()),
        }
    }
}
