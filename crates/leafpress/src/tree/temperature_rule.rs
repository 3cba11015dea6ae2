//! The rule by which leaves are cold.

use std::fmt;
use std::str::FromStr;

use crate::tree::error::TreeError;

const MAX_SLOWDOWN_PCT: u32 = 1000;
/// The default bound of the slowdown, in per cent.
const DEFAULT_SLOWDOWN_PCT: u32 = 50;
const MAX_FACTOR: f64 = 1000.0;

/// How a tree with [`Codec::Auto`](leafpress_codec::Codec::Auto) decides which leaves are cold.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum TemperatureRule {
    /// By the cost of reads and the value of memory, measured on the tree's own records and its caller's reads. The
    /// least read leaves are cold: as many as possible such that the average read becomes slower by no more per cent
    /// than the tree becomes smaller, and by at most `slowdown_pct` (0 to 1000), both compared to a tree whose leaves
    /// are all warm. Where reads are so rare that their processor time is worth less than the memory saved, more leaves
    /// are cold.
    Costs {
        /// The bound of the slowdown, in per cent.
        slowdown_pct: u32,
    },
    /// The rule of the ZipCache paper (arXiv 2411.03174): warm leaves have more reads per byte than the mean of all
    /// leaves plus `factor` standard deviations; all others are cold. No record is hot. -1000 to 1000; the paper uses
    /// about 3.
    Deviation {
        /// Standard deviations above the mean.
        factor: f64,
    },
    /// The rule of [`TemperatureRule::Deviation`] with an adaptive factor: it begins with 3 and moves, by at most a
    /// quarter per pass over the leaves, towards the value with which the leaves are cold that
    /// [`TemperatureRule::Costs`] would choose without hot records; -3 to 10.
    AdaptiveDeviation {
        /// The bound of the slowdown, in per cent, as for [`TemperatureRule::Costs`].
        slowdown_pct: u32,
    },
}

impl Default for TemperatureRule {
    fn default() -> Self {
        Self::Costs {
            slowdown_pct: DEFAULT_SLOWDOWN_PCT,
        }
    }
}

impl fmt::Display for TemperatureRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Costs { slowdown_pct } => write!(f, "costs:{slowdown_pct}"),
            Self::Deviation { factor } => write!(f, "deviation:{factor}"),
            Self::AdaptiveDeviation { slowdown_pct } => write!(f, "deviation:auto:{slowdown_pct}"),
        }
    }
}

/// Parses `costs[:SLOWDOWN_PCT]`, `deviation[:FACTOR]` or `deviation:auto[:SLOWDOWN_PCT]`.
impl FromStr for TemperatureRule {
    type Err = TreeError;

    fn from_str(text: &str) -> Result<Self, TreeError> {
        let (name, figure) = text.split_once(':').unwrap_or((text, ""));
        let rule = match (name, figure) {
            ("costs", "") => Some(Self::default()),
            ("costs", pct) => pct.parse().ok().map(|slowdown_pct| Self::Costs { slowdown_pct }),
            ("deviation", "") => Some(Self::Deviation { factor: 3.0 }),
            ("deviation", "auto") => Some(Self::AdaptiveDeviation {
                slowdown_pct: DEFAULT_SLOWDOWN_PCT,
            }),
            ("deviation", figure) => match figure.strip_prefix("auto:") {
                Some(pct) => pct
                    .parse()
                    .ok()
                    .map(|slowdown_pct| Self::AdaptiveDeviation { slowdown_pct }),
                None => figure.parse().ok().map(|factor| Self::Deviation { factor }),
            },
            _ => None,
        };
        let rule = rule.ok_or_else(|| TreeError::Option {
            option: "temperature_rule",
            reason: format!(
                "unknown rule `{text}`; known: costs[:SLOWDOWN_PCT], deviation[:FACTOR], deviation:auto[:SLOWDOWN_PCT]"
            ),
        })?;
        rule.check()?;
        Ok(rule)
    }
}

impl TemperatureRule {
    pub(crate) fn check(self) -> Result<(), TreeError> {
        let (is_allowed, bounds) = match self {
            Self::Costs { slowdown_pct } | Self::AdaptiveDeviation { slowdown_pct } => {
                (slowdown_pct <= MAX_SLOWDOWN_PCT, "0 to 1000 per cent")
            }
            Self::Deviation { factor } => (factor.abs() <= MAX_FACTOR, "a factor of -1000 to 1000"),
        };
        if is_allowed {
            return Ok(());
        }
        Err(TreeError::Option {
            option: "temperature_rule",
            reason: format!("{self} is out of bounds: allowed is {bounds}"),
        })
    }
}
