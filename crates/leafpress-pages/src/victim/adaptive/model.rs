//! What the victim cache's miniatures are run on, and what for.
//!
//! The cache in front of this one is not in the miniatures. What it asks for and evicts is what it does with this cache as it is; where a
//! miniature would have missed and this cache had the block, the miniature is offered it at once, since it would have come from elsewhere.

use std::ops::{Deref, DerefMut};

use super::miniature::{Block, Miniature, World};
use crate::tuner;
use crate::tuner::costs::{Prices, UNSHRINKABLE};
use crate::tuner::miniatures::{Fullest, Miniatures, Shape};
use crate::victim::OnHit;
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::{TryGrow, copied, room_for};

/// The fractions that are followed, falling from 1.
const FRACTIONS: [f64; 9] = [1.0, 0.8, 0.6, 0.45, 0.3, 0.2, 0.1, 0.04, 0.0];

/// More blocks than this would tell nothing more.
const MAX_BLOCKS: usize = 4096;
/// Memory for the miniatures: one in so many bytes of the budget, and this, but no more of that than one in so many bytes of a small
/// budget.
const BUDGET_PART: usize = 128;
const BESIDES_BYTES: usize = 64 << 10;
const BESIDES_PART: usize = 32;
/// What a followed block takes: in a miniature, and in what they have in common, with what doubling leaves unused.
const MINIATURE_BYTES: usize = 18;
const SAMPLED_BYTES: usize = 96;
/// Raw bytes of a block that the sample is chosen for, before any is seen.
const TYPICAL_BYTES: usize = 4096;
/// The part of the memory that is neither slack nor holes.
const USED_PART: f64 = 0.95;
/// A miniature with raw blocks costs this much more than it says: it does not see what it takes others to wait while blocks are
/// swapped between raw and compressed. With 16 KiB blocks that shrink by half one promised some percent and cost a tenth.
const RAW_DOUBT: f64 = 1.1;
/// What a lookup takes besides its costs, in nanoseconds.
const LOOKUP_NS: f64 = 500.0;
/// Counts of a block are halved after so many lookups for each block that the cache's tables count on, as its sketch does.
const SAMPLE_PER_ENTRY: f64 = 16.0;
const BYTES_PER_ENTRY: f64 = 1536.0;
/// While one access in so many is a new one's and there is room, the caches are filling up.
const FILLING: usize = 16;

/// Something that happened to a followed block.
#[derive(Debug, Clone, Copy)]
pub(in crate::victim) enum Event {
    /// A lookup; `found` has the length where it found the block.
    Looked {
        hash: u64,
        found: u32,
        asked: u8,
        on_hit: OnHit,
    },
    /// It was to be put in.
    Offered {
        hash: u64,
        raw_bytes: u32,
        asked: u8,
        force: bool,
    },
    /// It was compressed to so many bytes, or [`UNSHRINKABLE`].
    Sized { hash: u64, stored: u32 },
    /// It was erased.
    Erased { hash: u64 },
}

/// The miniatures, and what they have in common of each block.
pub(in crate::victim) struct Model {
    base: Miniatures<Miniature>,
    blocks: Vec<Block>,
    /// Lookups of followed blocks.
    clock: u32,
    /// Lookups since the counts of blocks were halved.
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
    /// Miniatures of a cache of so many bytes.
    pub(super) fn new(budget_bytes: usize) -> Result<Self, OutOfMemory> {
        let memory = budget_bytes / BUDGET_PART + BESIDES_BYTES.min(budget_bytes / BESIDES_PART);
        let blocks_of = |ratio: usize| budget_bytes / (TYPICAL_BYTES / ratio + 96) + 16;
        let most_blocks = memory / (FRACTIONS.len() * MINIATURE_BYTES + SAMPLED_BYTES);
        let shape = Shape {
            fractions: copied(&FRACTIONS)?,
            most_keys: most_blocks.min(MAX_BLOCKS).min(blocks_of(8)).max(16),
            expected_keys: blocks_of(3),
            used_part: USED_PART,
            filling: FILLING,
            // What the one gains that compresses all is seen only when it is full.
            asked_whether_full: Fullest::Last,
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
                asked,
                on_hit,
            } => {
                self.count_lookup();
                let known = self.sampled.find(hash);
                if known.is_none() && found == 0 {
                    // All miss it alike.
                    for mini in &mut self.minis {
                        mini.miss(weight);
                    }
                    return;
                }
                let Some(slot) = known.or_else(|| self.follow(hash, found)) else {
                    return;
                };
                self.mark(slot, asked);
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
                asked,
                force,
            } => {
                let known = self.sampled.find(hash);
                let same = known.filter(|&slot| self.sampled.raw_bytes(slot) == raw_bytes);
                if same.is_none() {
                    // A block of another length is another block.
                    self.drop_block(known);
                }
                let Some(slot) = same.or_else(|| self.follow(hash, raw_bytes)) else {
                    return;
                };
                self.mark(slot, asked);
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

    /// Follows a block that is not followed; [`None`]: there is no memory for it.
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
            self.blocks.iter_mut().for_each(|block| block.asked /= 2);
        }
    }

    /// Notes when a block was asked for or put in, and how often it was asked for.
    fn mark(&mut self, slot: u32, asked: u8) {
        self.blocks[slot as usize] = Block {
            touched: self.clock,
            asked,
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
            // Else it was told before the threshold fell.
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
    /// Panics where the parts contradict each other.
    pub(super) fn validate(&self) {
        let mut holders = vec![0; self.sampled.slots()];
        for mini in &self.minis {
            mini.validate(&mut holders);
        }
        self.sampled.validate(&holders);
    }
}
