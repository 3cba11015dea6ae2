//! The events that drive the victim cache's miniatures.
//!
//! The cache in front of this one is not simulated. Its lookups and insertions are those with this cache in its current
//! state; if a miniature would have missed and this cache had the block, it is inserted into the miniature at once,
//! since it would have been fetched from elsewhere.

use std::ops::{Deref, DerefMut};

use super::miniature::{Block, Miniature, World};
use crate::tuner;
use crate::tuner::costs::{Prices, UNSHRINKABLE};
use crate::tuner::miniatures::{Fullest, Miniatures, Shape};
use crate::victim::OnHit;
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::{TryGrow, copied, room_for};

/// The simulated fractions, descending from 1.
const FRACTIONS: [f64; 9] = [1.0, 0.8, 0.6, 0.45, 0.3, 0.2, 0.1, 0.04, 0.0];

/// More blocks than this would not improve the accuracy.
const MAX_BLOCKS: usize = 4096;
/// Memory for the miniatures: this fraction (1/128) of the budget, plus a constant, which is limited to a fraction of a
/// small budget.
const BUDGET_DIVISOR: usize = 128;
const CONSTANT_BYTES: usize = 64 << 10;
const BESIDES_DIVISOR: usize = 32;
/// Memory of a sampled block: in a miniature, and in the shared state, including the unused half after a doubling.
const MINIATURE_BYTES: usize = 18;
const SAMPLED_BYTES: usize = 96;
/// Raw size of a block that the sampling rate assumes before any is seen.
const TYPICAL_BYTES: usize = 4096;
/// The fraction of the memory that is neither slack nor holes.
const USED_FRACTION: f64 = 0.95;
/// Penalty factor for a miniature with raw blocks: it does not include how long others wait while blocks are exchanged
/// between raw and compressed. With 16 KiB blocks that compress by half, one promised some percent and cost a tenth.
const RAW_DOUBT: f64 = 1.1;
/// Cost of a lookup besides the simulated costs, in nanoseconds.
const LOOKUP_NS: f64 = 500.0;
/// Frequencies of blocks are halved after this many lookups per block that the cache's tables are sized for, as in its
/// sketch.
const SAMPLE_PER_ENTRY: f64 = 16.0;
const BYTES_PER_ENTRY: f64 = 1536.0;
/// While one access in this many is for a new block and there is room, the caches are filling up.
const FILLING: usize = 16;

/// An event of a sampled block.
#[derive(Debug, Clone, Copy)]
pub(in crate::victim) enum Event {
    /// A lookup; `found` is the length if it was a hit.
    Looked {
        hash: u64,
        found: u32,
        frequency: u8,
        on_hit: OnHit,
    },
    /// An insertion.
    Offered {
        hash: u64,
        raw_bytes: u32,
        frequency: u8,
        force: bool,
    },
    /// It was compressed to `stored` bytes, or is [`UNSHRINKABLE`].
    Sized { hash: u64, stored: u32 },
    /// It was removed.
    Erased { hash: u64 },
}

/// The miniatures, and their shared state of each block.
pub(in crate::victim) struct Model {
    base: Miniatures<Miniature>,
    blocks: Vec<Block>,
    /// Number of lookups of sampled blocks.
    clock: u32,
    /// Number of lookups since the frequencies were halved.
    counted: f64,
}

impl Deref for Model {
    type Target = Miniatures<Miniature>;

    fn deref(&self) -> &Miniatures<Miniature> {
        &self.base
    }
}

impl DerefMut for Model {
    fn deref_mut(&mut self) -> &mut Miniatures<Miniature> {
        &mut self.base
    }
}

impl Model {
    /// Creates the miniatures of a cache with this budget.
    pub(super) fn new(budget_bytes: usize) -> Result<Self, OutOfMemory> {
        let memory = budget_bytes / BUDGET_DIVISOR + CONSTANT_BYTES.min(budget_bytes / BESIDES_DIVISOR);
        let blocks_of = |ratio: usize| budget_bytes / (TYPICAL_BYTES / ratio + 96) + 16;
        let most_blocks = memory / (FRACTIONS.len() * MINIATURE_BYTES + SAMPLED_BYTES);
        let shape = Shape {
            fractions: copied(&FRACTIONS)?,
            most_keys: most_blocks.min(MAX_BLOCKS).min(blocks_of(8)).max(16),
            expected_keys: blocks_of(3),
            used_fraction: USED_FRACTION,
            filling: FILLING,
            // The benefit of compressing everything is visible only when that miniature is full.
            fullness_indicator: Fullest::Last,
            access_ns: LOOKUP_NS,
        };
        let tables = tuner::miniatures::tables_for(shape.most_keys);
        let make = |at, fraction, tables| Miniature::new(at as u64 + 1, fraction, tables);
        Ok(Self {
            base: Miniatures::new(shape, budget_bytes, make)?,
            blocks: room_for(tables)?,
            clock: 0,
            counted: 0.0,
        })
    }

    fn take_in(&mut self, event: Event) {
        let weight = if self.progress.counts() { 1.0 } else { 0.0 };
        match event {
            Event::Looked {
                hash,
                found,
                frequency,
                on_hit,
            } => {
                self.count_lookup();
                let known = self.sampled.find(hash);
                if known.is_none() && found == 0 {
                    // A miss in all miniatures.
                    for mini in &mut self.minis {
                        mini.miss(weight);
                    }
                    return;
                }
                let Some(slot) = known.or_else(|| self.follow(hash, found)) else {
                    return;
                };
                self.mark(slot, frequency);
                let is_here = found > 0;
                self.each(|mini, world| match known {
                    Some(_) => mini.look(slot, is_here, on_hit, weight, world),
                    None if on_hit == OnHit::Keep => mini.offer(slot, false, 0.0, world),
                    None => {}
                });
            }
            Event::Offered {
                hash,
                raw_bytes,
                frequency,
                force,
            } => {
                let known = self.sampled.find(hash);
                let same = known.filter(|&slot| self.sampled.raw_bytes(slot) == raw_bytes);
                if same.is_none() {
                    // A block of another length is a different block.
                    self.drop_block(known);
                }
                let Some(slot) = same.or_else(|| self.follow(hash, raw_bytes)) else {
                    return;
                };
                self.mark(slot, frequency);
                self.each(|mini, world| mini.offer(slot, force, weight, world));
            }
            Event::Sized { hash, stored } => {
                let slot = self.sampled.set_stored(hash, stored);
                if let Some(slot) = slot.filter(|_| stored == UNSHRINKABLE) {
                    self.each(|mini, world| mini.is_unshrinkable(slot, world));
                }
            }
            Event::Erased { hash } => {
                let known = self.sampled.find(hash);
                self.drop_block(known);
            }
        }
    }

    /// Samples a block that is not sampled yet; [`None`] if there is no memory for it.
    fn follow(&mut self, hash: u64, raw_bytes: u32) -> Option<u32> {
        let slot = self.base.follow(hash, raw_bytes).ok()?;
        let blocks = slot as usize + 1;
        if blocks > self.blocks.len() {
            if self.blocks.try_grow(blocks - self.blocks.len()).is_err() {
                self.sampled.unlist(slot);
                return None;
            }
            self.blocks.resize(blocks, Block::default());
        }
        Some(slot)
    }

    fn each(&mut self, mut work: impl FnMut(&mut Miniature, &mut World<'_>)) {
        let mut world = World {
            sampled: &mut self.base.sampled,
            blocks: &self.blocks,
            clock: self.clock,
        };
        for mini in &mut self.base.minis {
            work(mini, &mut world);
        }
    }

    fn count_lookup(&mut self) {
        self.clock = self.clock.wrapping_add(1);
        if self.progress.counts() {
            self.accesses += 1.0;
        }
        self.progress.saw(1);
        self.counted += 1.0;
        let sample = (self.scaled_budget() / BYTES_PER_ENTRY * SAMPLE_PER_ENTRY).max(64.0);
        if self.counted >= sample {
            self.counted /= 2.0;
            self.blocks.iter_mut().for_each(|block| block.frequency /= 2);
        }
    }

    /// Records the time of a lookup or insertion of a block, and its access frequency.
    fn mark(&mut self, slot: u32, frequency: u8) {
        self.blocks[slot as usize] = Block {
            touched: self.clock,
            frequency,
        };
    }

    fn drop_block(&mut self, slot: Option<u32>) {
        if let Some(slot) = slot {
            self.sampled.unlist(slot);
            self.each(|mini, world| mini.remove(slot, world));
            self.sampled.tidy();
        }
    }
}

impl tuner::Model for Model {
    type Event = Event;
    type Miniature = Miniature;

    fn run(&mut self, events: impl Iterator<Item = Event>) -> usize {
        let mut lookups = 0;
        for event in events {
            let (Event::Looked { hash, .. }
            | Event::Offered { hash, .. }
            | Event::Sized { hash, .. }
            | Event::Erased { hash }) = event;
            // Otherwise it was recorded before the threshold was lowered.
            if hash <= self.threshold() {
                lookups += usize::from(matches!(event, Event::Looked { .. }));
                self.take_in(event);
                self.sampled.tidy();
            }
            if self.len() > self.most_keys() {
                self.follow_less(0.75);
            }
        }
        lookups
    }

    fn follow_less(&mut self, part: f64) {
        self.lower_threshold(part);
        let (threshold, mut from) = (self.threshold(), 0);
        while let Some(slot) = self.sampled.next_above(threshold, from) {
            self.drop_block(Some(slot));
            from = slot + 1;
        }
    }

    fn costs(&self, prices: &Prices) -> Result<Vec<f64>, OutOfMemory> {
        let all_compressed = self.minis.len().saturating_sub(1);
        let mut costs = self.costs_seen(prices)?;
        for cost in costs.iter_mut().take(all_compressed) {
            *cost *= RAW_DOUBT;
        }
        Ok(costs)
    }

    fn other_bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<Block>()
    }
}

#[cfg(test)]
impl Model {
    /// Panics if the parts contradict each other.
    pub(super) fn validate(&self) {
        let mut holders = vec![0; self.sampled.slots()];
        for mini in &self.minis {
            mini.validate(&mut holders);
        }
        self.sampled.validate(&holders);
    }
}
