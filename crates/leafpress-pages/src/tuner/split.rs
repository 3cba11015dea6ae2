//! How a cache's budget is split between raw and compressed pages.

use std::fmt;
use std::str::FromStr;

/// How a budget is shared between raw and compressed pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RawShare {
    /// So many percent of the budget are for raw pages, 0 to 100; with 100 nothing is compressed.
    Fixed {
        /// Percent of the budget.
        raw_percent: u8,
    },
    /// The cache finds the share with the least expected time for a page, and follows it.
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

/// A share that is not one.
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
