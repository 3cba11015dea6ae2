//! A miniature simulation of the cache: its blocks at one share of the memory, scaled down to the sampled ones, without
//! bytes.
//!
//! It simulates the shards: a new block is admitted against the worst of a random sample, stays raw for now if there is
//! a share for that, is compressed when it is the worst of a sample of raw ones, and is evicted when it is the worst of
//! a sample of the others.

use crate::tuner::costs::{CLASSES, Prices};
use crate::tuner::miniatures;
use crate::tuner::sampled_keys::SampledKeys;
use crate::victim::{OnHit, PROMOTED_WORTH, is_worth_restoring};
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::TryGrow;
use leafpress_base::random::Random;

/// Memory of a block besides its stored bytes: header, key, and rounding.
const ENTRY_BYTES: u32 = 100;
/// Size of the sample from which a victim is chosen.
const SAMPLE: usize = 8;
/// Cost of keeping a block raw for now: one more copy.
const COPY_NS: f64 = 500.0;
/// Maximum number of evictions for one insertion.
const MAX_EVICTIONS: usize = 64;

/// A sampled block, as shared by all miniatures.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Block {
    /// The clock at its last lookup or insertion.
    pub(super) touched: u32,
    /// Its recent access frequency.
    pub(super) frequency: u8,
}

/// State shared by all miniatures.
pub(super) struct World<'w> {
    pub(super) sampled: &'w mut SampledKeys,
    pub(super) blocks: &'w [Block],
    pub(super) clock: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum BlockState {
    #[default]
    Absent,
    /// Kept raw for now.
    Raw,
    /// Compressed, or raw permanently.
    Settled,
}

/// A block in a miniature.
#[derive(Debug, Clone, Copy, Default)]
struct MiniatureBlock {
    state: BlockState,
    /// A hit on it has to decode.
    is_compressed: bool,
    /// Its reader holds it and will insert it again.
    is_promoted: bool,
    /// Index in the list of its state.
    at: u32,
    bytes: u32,
}

/// Events of blocks of a class, exponentially aged.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    misses: f32,
    decodings: f32,
    compressions: f32,
    copies: f32,
}

/// Blocks in one state, in no order.
#[derive(Debug, Default)]
struct Space {
    slots: Vec<u32>,
    bytes: u64,
}

/// A miniature.
pub(in crate::victim) struct Miniature {
    /// The fraction of the memory for raw blocks.
    share: f64,
    limit: u64,
    raw_limit: u64,
    by_slot: Vec<MiniatureBlock>,
    raw: Space,
    settled: Space,
    crowded: bool,
    random: Random,
    counts: [Counts; CLASSES],
    /// Misses of blocks of unknown length.
    unknown_misses: f32,
    evictions: u64,
}

impl Miniature {
    /// Creates an empty miniature, with tables for `blocks`.
    pub(super) fn new(seed: u64, share: f64, blocks: usize) -> Result<Self, OutOfMemory> {
        let mut miniature = Self {
            share,
            limit: 0,
            raw_limit: 0,
            by_slot: Vec::new(),
            raw: Space::default(),
            settled: Space::default(),
            crowded: false,
            random: Random::new(seed),
            counts: [Counts::default(); CLASSES],
            unknown_misses: 0.0,
            evictions: 0,
        };
        miniatures::Miniature::reserve(&mut miniature, blocks)?;
        Ok(miniature)
    }

    fn keeps_raw(&self) -> bool {
        self.share > 0.0 && self.share < 1.0
    }
}

impl miniatures::Miniature for Miniature {
    fn reserve(&mut self, blocks: usize) -> Result<(), OutOfMemory> {
        let more = blocks.saturating_sub(self.by_slot.len());
        if more > 0 {
            self.by_slot.try_grow(more)?;
            // Each list may contain all of them.
            self.settled.slots.try_grow(blocks - self.settled.slots.len())?;
            if self.keeps_raw() {
                self.raw.slots.try_grow(blocks - self.raw.slots.len())?;
            }
            self.by_slot.resize(blocks, MiniatureBlock::default());
        }
        Ok(())
    }

    fn evictions(&self) -> u64 {
        self.evictions
    }

    fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.by_slot.capacity() * size_of::<MiniatureBlock>()
            + (self.raw.slots.capacity() + self.settled.slots.capacity()) * size_of::<u32>()
    }

    fn set_limit(&mut self, bytes: f64) {
        self.limit = bytes as u64;
        self.raw_limit = (bytes * self.share) as u64;
    }

    fn cost(&self, prices: &Prices) -> f64 {
        let classes = self.counts.iter().enumerate();
        let cost = classes.map(|(class, counts)| {
            f64::from(counts.misses) * prices.read[class]
                + f64::from(counts.decodings) * prices.decompress[class]
                + f64::from(counts.compressions) * prices.compress[class]
                + f64::from(counts.copies) * COPY_NS
        });
        let typical = prices.read.iter().sum::<f64>() / CLASSES as f64;
        cost.sum::<f64>() + f64::from(self.unknown_misses) * typical
    }

    fn age(&mut self, factor: f32) {
        self.unknown_misses *= factor;
        for counts in &mut self.counts {
            counts.misses *= factor;
            counts.decodings *= factor;
            counts.compressions *= factor;
            counts.copies *= factor;
        }
    }
}

impl Miniature {
    /// Simulates a lookup of a block that no miniature holds.
    pub(super) fn miss(&mut self, weight: f32) {
        self.unknown_misses += weight;
    }

    /// Simulates a lookup of a sampled block. `is_here`: the cache itself had it.
    pub(super) fn look(&mut self, slot: u32, is_here: bool, on_hit: OnHit, weight: f32, world: &mut World<'_>) {
        let class = world.sampled.class(slot);
        let held = self.block(slot);
        if held.state == BlockState::Absent {
            self.counts[class].misses += weight;
            if is_here && on_hit == OnHit::Keep {
                self.offer(slot, false, weight, world);
            }
            return;
        }
        if held.is_compressed {
            self.counts[class].decodings += weight;
        }
        self.by_slot[slot as usize].is_promoted = on_hit == OnHit::Promote;
        if on_hit == OnHit::Remove {
            self.remove(slot, world);
        } else if on_hit == OnHit::Keep && held.is_compressed && self.is_for_raw(slot, world) {
            self.counts[class].copies += weight;
            self.leave(slot);
            self.enter(slot, BlockState::Raw, false, world.sampled.raw_bytes(slot));
            self.make_room(slot, weight, world);
        }
    }

    /// Simulates the insertion of a block.
    pub(super) fn offer(&mut self, slot: u32, force: bool, weight: f32, world: &mut World<'_>) {
        if self.block(slot).state != BlockState::Absent {
            // It returns, or was read from this miniature while the cache itself did not have it.
            self.by_slot[slot as usize].is_promoted = false;
            return;
        }
        let raw_bytes = world.sampled.raw_bytes(slot);
        let stored = if self.share < 1.0 {
            world.sampled.stored(slot)
        } else {
            None
        };
        if !force && !self.admits(slot, stored.unwrap_or(raw_bytes), world) {
            return;
        }
        world.sampled.hold(slot);
        if self.raw_limit >= u64::from(raw_bytes + ENTRY_BYTES) && self.keeps_raw() {
            self.counts[world.sampled.class(slot)].copies += weight;
            self.enter(slot, BlockState::Raw, false, raw_bytes);
        } else {
            self.settle(slot, weight, world);
        }
        self.make_room(slot, weight, world);
    }

    /// Handles a block that turned out to be incompressible.
    pub(super) fn is_unshrinkable(&mut self, slot: u32, world: &mut World<'_>) {
        if self.block(slot).is_compressed {
            self.leave(slot);
            self.enter(slot, BlockState::Settled, false, world.sampled.raw_bytes(slot));
        }
    }

    /// Simulates the removal of the block.
    pub(super) fn remove(&mut self, slot: u32, world: &mut World<'_>) {
        if self.block(slot).state != BlockState::Absent {
            self.leave(slot);
            world.sampled.let_go(slot);
        }
    }

    fn block(&self, slot: u32) -> MiniatureBlock {
        self.by_slot.get(slot as usize).copied().unwrap_or_default()
    }

    fn space(&mut self, state: BlockState) -> &mut Space {
        if state == BlockState::Raw {
            &mut self.raw
        } else {
            &mut self.settled
        }
    }

    fn enter(&mut self, slot: u32, state: BlockState, is_compressed: bool, bytes: u32) {
        let bytes = bytes.saturating_add(ENTRY_BYTES);
        let space = self.space(state);
        let at = space.slots.len() as u32;
        space.slots.push(slot);
        space.bytes += u64::from(bytes);
        self.by_slot[slot as usize] = MiniatureBlock {
            state,
            is_compressed,
            is_promoted: false,
            at,
            bytes,
        };
    }

    fn leave(&mut self, slot: u32) {
        let held = std::mem::take(&mut self.by_slot[slot as usize]);
        let space = self.space(held.state);
        space.bytes -= u64::from(held.bytes);
        space.slots.swap_remove(held.at as usize);
        if let Some(&moved) = space.slots.get(held.at as usize) {
            self.by_slot[moved as usize].at = held.at;
        }
    }

    /// Adds an absent block as compressed, or as raw permanently.
    fn settle(&mut self, slot: u32, weight: f32, world: &World<'_>) {
        let (raw_bytes, class) = (world.sampled.raw_bytes(slot), world.sampled.class(slot));
        if self.share >= 1.0 {
            self.enter(slot, BlockState::Settled, false, raw_bytes);
            return;
        }
        match world.sampled.stored(slot) {
            Some(stored) => {
                self.counts[class].compressions += weight;
                self.enter(slot, BlockState::Settled, true, stored.min(raw_bytes));
            }
            None => self.enter(slot, BlockState::Settled, false, raw_bytes),
        }
    }

    /// Returns the worth of a block per byte.
    fn worth(&self, slot: u32, world: &World<'_>) -> f32 {
        let block = world.blocks.get(slot as usize).copied().unwrap_or_default();
        let blocks = self.raw.slots.len() + self.settled.slots.len();
        let age = world.clock.wrapping_sub(block.touched) as f32 / (4 * blocks.max(64)) as f32;
        let held = self.block(slot);
        let here = if held.is_promoted { PROMOTED_WORTH } else { 1.0 };
        here * (f32::from(block.frequency) + 0.5 - 0.4 * age.min(1.0)) / held.bytes.max(1) as f32
    }

    /// Returns the block of least worth in a sample of a state, other than `except`.
    fn victim(&mut self, state: BlockState, except: Option<u32>, world: &World<'_>) -> Option<(u32, f32)> {
        let mut worst: Option<(u32, f32)> = None;
        for _ in 0..SAMPLE {
            let drawn = (self.random.next_u64() >> 32) as usize;
            let slots = &self.space(state).slots;
            let slot = *slots.get(drawn % slots.len().max(1))?;
            let worth = self.worth(slot, world);
            if Some(slot) != except && worst.is_none_or(|(_, least)| worth < least) {
                worst = Some((slot, worth));
            }
        }
        worst
    }

    /// Returns true if a block with this stored size is worth more than the victims for it.
    fn admits(&mut self, slot: u32, bytes: u32, world: &World<'_>) -> bool {
        if self.raw.bytes + self.settled.bytes < self.limit / 4 * 3 {
            self.crowded = false;
        }
        if !self.crowded {
            return true;
        }
        let frequency = world.blocks.get(slot as usize).map_or(0, |block| block.frequency);
        let worth = f32::from(frequency) / bytes.saturating_add(ENTRY_BYTES) as f32;
        let victim = self
            .victim(BlockState::Settled, None, world)
            .or_else(|| self.victim(BlockState::Raw, None, world));
        victim.is_none_or(|(_, least)| worth > least)
    }

    /// Returns true if a compressed block is accessed so often that it should be raw.
    fn is_for_raw(&mut self, slot: u32, world: &World<'_>) -> bool {
        let bytes = u64::from(world.sampled.raw_bytes(slot) + ENTRY_BYTES);
        if !self.keeps_raw() || bytes > self.raw_limit {
            return false;
        }
        let frequency = |slot: u32| world.blocks.get(slot as usize).map_or(0, |block| block.frequency);
        if self.raw.bytes + bytes <= self.raw_limit {
            return frequency(slot) > 1;
        }
        let raw = self.victim(BlockState::Raw, None, world);
        raw.is_some_and(|(raw, _)| is_worth_restoring(frequency(slot), frequency(raw)))
    }

    /// Compresses raw blocks and evicts others until there is room. `newest` stays.
    fn make_room(&mut self, newest: u32, weight: f32, world: &mut World<'_>) {
        for _ in 0..MAX_EVICTIONS {
            if self.raw.bytes <= self.raw_limit {
                break;
            }
            let Some((victim, _)) = self.victim(BlockState::Raw, None, world) else {
                break;
            };
            let is_promoted = self.block(victim).is_promoted;
            self.leave(victim);
            let stored = world.sampled.stored(victim).unwrap_or(world.sampled.raw_bytes(victim));
            if !is_promoted && self.admits(victim, stored, world) {
                self.settle(victim, weight, world);
            } else {
                self.evictions += 1;
                world.sampled.let_go(victim);
            }
        }
        for _ in 0..MAX_EVICTIONS {
            if self.raw.bytes + self.settled.bytes <= self.limit {
                break;
            }
            let victim = self
                .victim(BlockState::Settled, Some(newest), world)
                .or_else(|| self.victim(BlockState::Raw, Some(newest), world));
            let Some((victim, _)) = victim else { break };
            self.crowded = true;
            self.leave(victim);
            self.evictions += 1;
            world.sampled.let_go(victim);
        }
    }
}

#[cfg(test)]
impl Miniature {
    /// Panics if counters and blocks disagree; counts the blocks held.
    pub(super) fn validate(&self, holders: &mut [u8]) {
        let mut held = 0;
        for (slot, holders) in holders.iter_mut().enumerate() {
            let block = self.block(slot as u32);
            let space = match block.state {
                BlockState::Absent => continue,
                BlockState::Raw => &self.raw,
                BlockState::Settled => &self.settled,
            };
            assert_eq!(space.slots[block.at as usize], slot as u32);
            *holders += 1;
            held += u64::from(block.bytes);
        }
        assert_eq!(held, self.raw.bytes + self.settled.bytes);
    }
}
