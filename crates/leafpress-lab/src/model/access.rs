//! Access distributions of pages: independent, or from a trace.

use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::Trace;
use super::formulas::{Tier, mass_of_hottest, mass_of_tiers, tiers};
use super::replacement::lru_hit_ratio;
use crate::core::LabError;
use crate::core::keys::Distribution;

/// The access distribution of pages.
#[derive(Debug, Clone, PartialEq)]
pub enum Access {
    /// Independent accesses, by a distribution.
    Distribution(Distribution),
    /// As measured.
    Trace(Arc<Trace>),
}

impl Access {
    /// Parses a distribution: `uniform` (or `even`), `X,Y` (the hot X percent of the pages get Y percent of the
    /// accesses), `hotset:X:Y`, `zipfian[:THETA]`, `self-similar[:H]`.
    ///
    /// # Errors
    /// [`LabError::Option`] of `distribution`.
    pub fn parse(text: &str) -> Result<Self, LabError> {
        let refuse = |reason: String| {
            LabError::option(
                "distribution",
                format!(
                    "`{text}`: {reason}; known: uniform, X,Y (the hot X% of the pages get Y% of the accesses, as in \
                     20,80), zipfian[:THETA] with THETA > 0, self-similar[:H] with 0 < H < 0.5"
                ),
            )
        };
        match text.parse::<Distribution>() {
            Ok(Distribution::Latest { .. }) => Err(refuse(
                "latest needs an insertion order, which pages do not have".into(),
            )),
            // With all or none of the accesses on the hot set, some pages are never requested: they are not part of the
            // data.
            Ok(law) => Ok(Self::Distribution(law)),
            Err(_) => Err(refuse("unknown distribution".into())),
        }
    }

    /// Returns the name used in reports.
    pub fn name(&self) -> String {
        match self {
            Self::Distribution(law) => law.to_string(),
            Self::Trace(trace) => format!("trace {}", trace.name),
        }
    }

    /// Pages by access frequency, the hottest first.
    pub(super) fn tiers(&self, pages: f64) -> Vec<Tier> {
        match self {
            Self::Distribution(law) => tiers(*law, pages),
            Self::Trace(trace) => trace.tiers.clone(),
        }
    }

    /// The share of the accesses on the hottest `hottest` of `pages`.
    pub(super) fn mass(&self, pages: f64, hottest: f64) -> f64 {
        match self {
            Self::Distribution(law) => mass_of_hottest(*law, pages, hottest / pages),
            Self::Trace(trace) => mass_of_tiers(&trace.tiers, hottest),
        }
    }

    /// The hit ratio of an LRU cache of `room` pages; `tiers` are those of [`Access::tiers`].
    pub(super) fn lru_hits(&self, tiers: &[Tier], room: f64) -> f64 {
        match self {
            Self::Distribution(_) => lru_hit_ratio(tiers, room),
            Self::Trace(trace) => trace.curve.hit_ratio(room),
        }
    }
}

impl Serialize for Access {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.name())
    }
}
