//! The fraction that adapts: how much of the budget raw pages get so that an access takes least. [`crate::tuner`] decides; here is what it
//! decides by, the pool in small ([`miniature`]) and the events that it is run on ([`model`]).

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

/// The fraction to start with where none is given.
pub(super) const DEFAULT_RAW_FRACTION: f64 = 0.5;

/// The fewest raw pages that are left, where they are no large part of all: with fewer, threads that read pages wait for frames, which no
/// model of hits and misses sees.
const MIN_RAW_PAGES: usize = 48;
/// The least part of the memory for pages that raw ones get where that is many pages, and the part that the fewest are at most.
const MIN_PART: f64 = 1.0 / 64.0;
const LARGE_PART: f64 = 1.0 / 4.0;

/// The least part of the memory for pages that raw ones get.
fn least_raw_fraction(budget_bytes: usize, typical_page_bytes: usize) -> f64 {
    let part = (MIN_RAW_PAGES * typical_page_bytes) as f64 / budget_bytes.max(1) as f64;
    part.clamp(MIN_PART, LARGE_PART)
}

/// Followed pages that there are before fewer are followed, rather than only now and then, when following takes too long.
const PAGES_TO_KEEP: usize = 1024;

/// What adapts a pool's fraction.
pub(super) type Adaptive = Tuner<Model>;

impl Tuner<Model> {
    /// For a pool of `budget_bytes` and pages of about `typical_page_bytes`, which starts with `raw_fraction` of the budget for raw
    /// pages, 0 to 1, though never less than [`least_raw_fraction`].
    pub(super) fn of_pool(
        policy: PolicyKind,
        restore_after: u8,
        budget_bytes: usize,
        typical_page_bytes: usize,
        raw_fraction: f64,
        costs: Arc<Costs>,
    ) -> Result<Self, OutOfMemory> {
        let make = move |budget_bytes| Model::new(policy, restore_after, budget_bytes, typical_page_bytes);
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
            besides_bytes: size_of::<Self>() + size_of::<Costs>(),
        };
        Ok(Self::new(settings, costs))
    }

    /// A followed page of this length was got, wherever it was. Returns whether [`Tuner::step`] should be called soon.
    pub(super) fn accessed(&self, hash: u64, raw_bytes: u32) -> bool {
        self.note(Event::Accessed { hash, raw_bytes });
        self.is_due()
    }

    /// A followed page was removed from the pool and the store. Not for pages that leave to make room.
    pub(super) fn removed(&self, hash: u64) {
        self.note(Event::Removed { hash });
    }

    /// A followed page was compressed to `stored` bytes, or did not shrink enough to be kept compressed.
    pub(super) fn sized(&self, hash: u64, stored: Option<u32>) {
        let stored = stored.unwrap_or(UNSHRINKABLE);
        self.note(Event::Sized { hash, stored });
    }
}
