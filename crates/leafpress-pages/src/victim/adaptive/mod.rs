//! The fraction that adapts: how much of the memory keeps blocks raw that could be compressed, so that a lookup takes least.
//! [`crate::tuner`] decides, as for the page pool; here is what it decides by, the cache in small ([`miniature`]) and the events that it is
//! run on ([`model`]).

mod miniature;
mod model;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::OnHit;
use crate::tuner::costs::{Costs, UNSHRINKABLE};
use crate::tuner::{Settings, Tuner};
use model::{Event, Model};

/// The fraction to begin with: nothing is known of misses then, and all is known of the codec after some blocks.
const FIRST_FRACTION: f64 = 0.0;
/// Events that may wait.
const QUEUE: usize = 256;
/// With a smaller budget nothing is followed, and the fraction stays: of so few blocks no sample would tell anything.
const MIN_BUDGET_BYTES: usize = 3 << 20;
/// Followed blocks that there are before fewer are followed, rather than only now and then, when following takes too long.
const BLOCKS_TO_KEEP: usize = 1024;

/// What adapts a cache's fraction.
pub(super) type Adaptive = Tuner<Model>;

impl Tuner<Model> {
    /// Follows nothing until there is a budget.
    pub(super) fn of_victim_cache(costs: Arc<Costs>) -> Self {
        let settings = Settings {
            make: Box::new(Model::new),
            first: None,
            least_budget_bytes: MIN_BUDGET_BYTES,
            fraction: FIRST_FRACTION,
            events: QUEUE,
            keys_to_keep: BLOCKS_TO_KEEP,
            // Insertions compress, and wait for it.
            looks_at_load: false,
            // It is counted with the cache that it is a part of.
            besides_bytes: 0,
        };
        Self::new(settings, costs)
    }

    /// A followed block was looked up, and was here if it has a length. `asked`: how often it was asked for lately.
    pub(super) fn looked(&self, hash: u64, asked: u8, raw_bytes: Option<u32>, on_hit: OnHit) {
        self.note(Event::Looked {
            hash,
            asked,
            found: raw_bytes.unwrap_or(0),
            on_hit,
        });
    }

    /// A followed block that could be compressed was to be put in.
    pub(super) fn offered(&self, hash: u64, asked: u8, raw_bytes: u32, force: bool) {
        self.note(Event::Offered {
            hash,
            asked,
            raw_bytes,
            force,
        });
    }

    /// A followed block was erased by name.
    pub(super) fn erased(&self, hash: u64) {
        self.note(Event::Erased { hash });
    }

    /// A followed block was compressed to `stored` bytes, or did not shrink enough to be kept compressed.
    pub(super) fn sized(&self, hash: u64, stored: Option<u32>) {
        let stored = stored.unwrap_or(UNSHRINKABLE);
        self.note(Event::Sized { hash, stored });
    }

    /// The cache has another budget for blocks. Returns the memory, in bytes, that deciding takes of it at most.
    pub(super) fn resize_within(&self, budget_bytes: usize) -> usize {
        self.resize(budget_bytes);
        // Tables grow by some blocks now and then.
        self.bytes() + self.bytes() / 16
    }
}
