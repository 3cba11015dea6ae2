//! The adaptive share: the fraction of the budget for raw pages with the least cost per access. [`crate::tuner`]
//! decides; this module provides the input, the miniature of the pool ([`miniature`]) and the events that drive it
//! ([`model`]).

mod miniature;
mod model;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub(super) use crate::tuner::costs::Costs;

use super::PolicyKind;
use crate::tuner::costs::UNSHRINKABLE;
use crate::tuner::{Settings, Tuner};
use leafpress_base::mem::OutOfMemory;
use model::{Event, Model};

/// The initial fraction unless one is given.
pub(super) const DEFAULT_RAW_FRACTION: f64 = 0.5;

/// Minimum number of raw pages, unless that is a large part of the memory: with fewer, threads that read pages wait for
/// frames, which no model of hits and misses includes.
const MIN_RAW_PAGES: usize = 48;
/// Minimum fraction of the memory for raw pages if that is many pages, and the maximum fraction that the minimum number
/// may take.
const MIN_FRACTION: f64 = 1.0 / 64.0;
const LARGE_FRACTION: f64 = 1.0 / 4.0;

/// Returns the minimum fraction of the memory for raw pages.
fn least_raw_fraction(budget_bytes: usize, typical_page_bytes: usize) -> f64 {
    let part = (MIN_RAW_PAGES * typical_page_bytes) as f64 / budget_bytes.max(1) as f64;
    part.clamp(MIN_FRACTION, LARGE_FRACTION)
}

/// Number of sampled pages above which the sample is reduced when sampling takes too long; below, sampling is paused
/// instead.
const PAGES_TO_KEEP: usize = 1024;

/// The tuner of a pool's fraction.
pub(super) type Adaptive = Tuner<Model>;

impl Tuner<Model> {
    /// Creates the tuner of a pool of `budget_bytes` with pages of about `typical_page_bytes`, which starts with
    /// `raw_fraction` of the budget for raw pages, 0 to 1, but at least [`least_raw_fraction`].
    pub(super) fn of_pool(
        policy: PolicyKind,
        promote_after_hits: u8,
        budget_bytes: usize,
        typical_page_bytes: usize,
        raw_fraction: f64,
        costs: Arc<Costs>,
    ) -> Result<Self, OutOfMemory> {
        let make = move |budget_bytes| Model::new(policy, promote_after_hits, budget_bytes, typical_page_bytes);
        let model = make(budget_bytes)?;
        let fraction = if raw_fraction.is_finite() {
            raw_fraction.clamp(least_raw_fraction(budget_bytes, typical_page_bytes), 1.0)
        } else {
            DEFAULT_RAW_FRACTION
        };
        let settings = Settings {
            make: Box::new(make),
            events: (model.most_keys() / 2).next_power_of_two().clamp(128, 1024),
            first: Some((budget_bytes, model)),
            least_budget_bytes: 0,
            fraction,
            keys_to_keep: PAGES_TO_KEEP,
            looks_at_load: true,
            extra_bytes: size_of::<Self>() + size_of::<Costs>(),
        };
        Ok(Self::new(settings, costs))
    }

    /// Records a `get` of a sampled page of this length, wherever it was found. Returns true if [`Tuner::step`] should
    /// be called soon.
    pub(super) fn accessed(&self, hash: u64, raw_bytes: u32) -> bool {
        self.note(Event::Accessed { hash, raw_bytes });
        self.is_due()
    }

    /// Records the removal of a sampled page from the pool and the store. Not for evictions.
    pub(super) fn removed(&self, hash: u64) {
        self.note(Event::Removed { hash });
    }

    /// Records that a sampled page was compressed to `stored` bytes, or was incompressible.
    pub(super) fn sized(&self, hash: u64, stored: Option<u32>) {
        let stored = stored.unwrap_or(UNSHRINKABLE);
        self.note(Event::Sized { hash, stored });
    }
}
