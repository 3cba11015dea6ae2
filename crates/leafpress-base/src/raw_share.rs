//! The share of a cache's memory for uncompressed data.

use std::fmt;
use std::str::FromStr;

/// The share of a cache's memory that holds uncompressed data: pages, blocks, or copies of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RawShare {
    /// A fixed percentage of the memory. A page pool and a victim cache compress nothing with 100. 0 to 100.
    Fixed {
        /// Percent of the memory.
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
#[error(
    "unknown share {0:?}: it is adaptive, or fixed:PERCENT with the percent of the memory for uncompressed data, 0 to \
     100"
)]
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
