//! The adaptive share: the fraction of the memory for compressible blocks that are kept raw with the least cost per
//! lookup. [`crate::tuner`] decides, as for the page pool; this module provides the input, the miniature of the cache
//! ([`miniature`]) and the events that drive it ([`model`]).

mod miniature;
mod model;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::OnHit;
use crate::tuner::costs::{Costs, UNSHRINKABLE};
use crate::tuner::{Settings, Tuner};
use model::{Event, Model};

/// The initial fraction: the cost of misses is unknown then, while that of the codec is known after some blocks.
const FIRST_FRACTION: f64 = 0.0;
/// Capacity of the event queue.
const QUEUE: usize = 256;
/// With a smaller budget nothing is sampled, and the fraction stays: a sample of so few blocks would not be
/// significant.
const MIN_BUDGET_BYTES: usize = 3 << 20;
/// Number of sampled blocks above which the sample is reduced when sampling takes too long; below, sampling is paused
/// instead.
const BLOCKS_TO_KEEP: usize = 1024;

/// The tuner of a cache's fraction.
pub(super) type Adaptive = Tuner<Model>;

impl Tuner<Model> {
    /// Creates a tuner that samples nothing until there is a budget.
    pub(super) fn of_victim_cache(costs: Arc<Costs>) -> Self {
        let settings = Settings {
            make: Box::new(Model::new),
            first: None,
            least_budget_bytes: MIN_BUDGET_BYTES,
            fraction: FIRST_FRACTION,
            events: QUEUE,
            keys_to_keep: BLOCKS_TO_KEEP,
            // Insertions compress synchronously.
            looks_at_load: false,
            // Accounted for by the cache of which it is a part.
            extra_bytes: 0,
        };
        Self::new(settings, costs)
    }

    /// Records a lookup of a sampled block, which was a hit if it has a length.
    /// `frequency` is its recent access frequency.
    pub(super) fn looked(&self, hash: u64, frequency: u8, raw_bytes: Option<u32>, on_hit: OnHit) {
        self.note(Event::Looked {
            hash,
            frequency,
            found: raw_bytes.unwrap_or(0),
            on_hit,
        });
    }

    /// Records the insertion of a sampled compressible block.
    pub(super) fn offered(&self, hash: u64, frequency: u8, raw_bytes: u32, force: bool) {
        self.note(Event::Offered {
            hash,
            frequency,
            raw_bytes,
            force,
        });
    }

    /// Records the removal of a sampled block.
    pub(super) fn erased(&self, hash: u64) {
        self.note(Event::Erased { hash });
    }

    /// Records that a sampled block was compressed to `stored` bytes, or was incompressible.
    pub(super) fn sized(&self, hash: u64, stored: Option<u32>) {
        let stored = stored.unwrap_or(UNSHRINKABLE);
        self.note(Event::Sized { hash, stored });
    }

    /// Changes the budget for blocks. Returns the maximum memory, in bytes, that the tuner takes of it.
    pub(super) fn resize_within(&self, budget_bytes: usize) -> usize {
        self.resize(budget_bytes);
        // Tables occasionally grow by some blocks.
        self.bytes() + self.bytes() / 16
    }
}
