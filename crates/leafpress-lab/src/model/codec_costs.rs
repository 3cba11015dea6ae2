//! Ratio and costs of a codec, as inputs of the model.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::core::LabError;

/// A codec's ratio and times for a page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CodecCosts {
    /// Its name; any text will do.
    pub name: String,
    /// Raw bytes over compressed ones, 1 to 1000.
    pub ratio: f64,
    /// Microseconds to compress a page, 0 to 1e6.
    pub compress_us: f64,
    /// Microseconds to decode a page, 0 to 1e6.
    pub decompress_us: f64,
}

impl CodecCosts {
    /// Creates a codec of this name.
    pub fn new(name: &str, ratio: f64, compress_us: f64, decompress_us: f64) -> Self {
        Self {
            name: name.to_owned(),
            ratio,
            compress_us,
            decompress_us,
        }
    }

    /// Returns LZ4 and zstd as the thesis has them: table 4, for pages of 8 KB on an i7-7700K. The times are those of
    /// eight threads that compress in bulk, wall time over pages.
    pub fn of_thesis() -> Vec<Self> {
        vec![Self::new("lz4", 2.13, 2.0, 1.0), Self::new("zstd", 2.97, 8.0, 3.0)]
    }

    pub(super) fn validate(&self) -> Result<(), LabError> {
        let refuse = |reason: String| Err(LabError::option("codec-costs", format!("{self}: {reason}")));
        if self.name.is_empty() || self.name.chars().any(char::is_control) {
            return refuse("the name is missing".into());
        }
        if !(1.0..=1000.0).contains(&self.ratio) {
            return refuse(format!(
                "the ratio, raw bytes over compressed, must be between 1 and 1000, not {}",
                self.ratio
            ));
        }
        for (what, us) in [("compress", self.compress_us), ("decode", self.decompress_us)] {
            if !(0.0..=1e6).contains(&us) {
                return refuse(format!(
                    "microseconds to {what} a page must be between 0 and 1000000, not {us}"
                ));
            }
        }
        Ok(())
    }
}

impl fmt::Display for CodecCosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}={},{},{}",
            self.name, self.ratio, self.compress_us, self.decompress_us
        )
    }
}

impl FromStr for CodecCosts {
    type Err = LabError;

    /// `NAME=RATIO,COMPRESS_US,DECOMPRESS_US`.
    fn from_str(text: &str) -> Result<Self, LabError> {
        let parsed = text.rsplit_once('=').and_then(|(name, figures)| {
            let figures: Vec<f64> = figures
                .split(',')
                .map(|word| word.trim().parse().ok())
                .collect::<Option<_>>()?;
            match figures[..] {
                [ratio, compress_us, decompress_us] => Some(Self::new(name.trim(), ratio, compress_us, decompress_us)),
                _ => None,
            }
        });
        let costs = parsed.ok_or_else(|| {
            LabError::option(
                "codec-costs",
                format!(
                    "`{text}`: use NAME=RATIO,COMPRESS_US,DECOMPRESS_US, microseconds per page, as in zstd:1=2.97,8,3"
                ),
            )
        })?;
        costs.validate()?;
        Ok(costs)
    }
}
