//! How operations choose ids.
//!
//! Ids are 1 to n, where n grows with the inserts. Rank 0, the hottest, is id 1, but for `latest`, where it is the
//! newest. Keys are hashes of ids, so hot keys lie scattered over the key space.

use rand_xoshiro::rand_core::Rng;
use serde::{Deserialize, Serialize};

use crate::core::LabError;
use crate::core::keys::{Distribution, Ranks};

/// Default skew of `latest`: YCSB's. (PiBench's 0.2 is for PiBench's distributions.)
pub const DEFAULT_LATEST_SKEW: f64 = 0.99;

/// A distribution without its parameters, as named on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Law {
    /// Every id alike.
    Uniform,
    /// `1 + floor(n u^(ln s / ln(1 - s)))` for a uniform u (Gray et al. 1994): the first share s of the ids takes the
    /// share 1 - s.
    SelfSimilar,
    /// Zipfian: see `Zipf`.
    Zipfian,
    /// Zipfian by age: the newest ids are the hottest.
    Latest,
    /// A share of the operations is on a share of the ids.
    HotSet,
}

impl Law {
    /// Parses the distribution of this name, in any case.
    ///
    /// # Errors
    /// [`LabError::Option`] with the names there are.
    pub fn named(name: &str) -> Result<Self, LabError> {
        Ok(match name.to_ascii_lowercase().as_str() {
            "uniform" => Self::Uniform,
            "selfsimilar" | "self-similar" => Self::SelfSimilar,
            "zipfian" | "zipf" => Self::Zipfian,
            "latest" => Self::Latest,
            "hotset" => Self::HotSet,
            _ => {
                return Err(LabError::option(
                    "distribution",
                    format!("unknown distribution `{name}`; known: UNIFORM SELFSIMILAR ZIPFIAN latest hotset"),
                ));
            }
        })
    }

    /// Returns the distribution with its parameters.
    ///
    /// # Errors
    /// [`LabError::Option`] when the skew is out of the distribution's bounds.
    pub fn with(self, skew: f64, hot_keys_pct: f64, hot_operations_pct: f64) -> Result<Distribution, LabError> {
        let zipfian = |skew: f64| {
            if skew >= 0.0 && skew.is_finite() {
                Ok(skew)
            } else {
                Err(LabError::option(
                    "skew",
                    format!("{skew}: the skew of zipfian must be at least 0"),
                ))
            }
        };
        Ok(match self {
            Self::Uniform => Distribution::Uniform,
            Self::SelfSimilar if skew > 0.0 && skew <= 0.5 => Distribution::SelfSimilar { h: skew },
            Self::SelfSimilar => {
                return Err(LabError::option(
                    "skew",
                    format!("{skew}: the skew of self-similar must be greater than 0 and at most 0.5"),
                ));
            }
            Self::Zipfian => Distribution::Zipfian { theta: zipfian(skew)? },
            Self::Latest => Distribution::Latest { theta: zipfian(skew)? },
            Self::HotSet => {
                let good = hot_keys_pct > 0.0 && hot_keys_pct < 100.0 && (0.0..=100.0).contains(&hot_operations_pct);
                if !good {
                    return Err(LabError::option(
                        "hotset",
                        format!(
                            "{hot_keys_pct},{hot_operations_pct}: use KEYS,OPERATIONS in percent, with 0 < KEYS < 100 \
                             and 0 <= OPERATIONS <= 100"
                        ),
                    ));
                }
                Distribution::HotSet {
                    keys_pct: hot_keys_pct,
                    operations_pct: hot_operations_pct,
                }
            }
        })
    }
}

/// Draws ids. Each thread has one; it shares nothing.
#[derive(Debug, Clone)]
pub(super) struct IdChooser {
    ranks: Ranks,
    /// Whether ranks are ages.
    by_age: bool,
}

impl IdChooser {
    /// A chooser of the ids 1 to n.
    pub(super) fn new(distribution: Distribution, n: u64) -> Self {
        Self {
            ranks: Ranks::new(distribution, n),
            by_age: matches!(distribution, Distribution::Latest { .. }),
        }
    }

    /// There are n ids now, not fewer than before.
    pub(super) fn grow(&mut self, n: u64) {
        self.ranks.grow(n);
    }

    /// Number of ids it draws from.
    pub(super) fn ids(&self) -> u64 {
        self.ranks.n()
    }

    /// An id from 1 to n; n is not 0.
    #[inline]
    pub(super) fn draw(&self, rng: &mut impl Rng) -> u64 {
        let rank = self.ranks.draw(rng);
        if self.by_age { self.ids() - rank } else { 1 + rank }
    }
}

#[cfg(test)]
#[path = "distribution_tests.rs"]
mod tests;
