//! A miniature simulation of the pool: its two spaces at one share of the budget, scaled down to the sampled pages,
//! without bytes.

use std::cell::Cell;
use std::collections::VecDeque;

use crate::eviction::{MAX_POPULARITY, Pages, Policy, another_round};
use crate::pool::PolicyKind;
use crate::tuner::costs::{CLASSES, Prices};
use crate::tuner::miniatures;
use crate::tuner::sampled_keys::SampledKeys;
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::{TryGrow, room_for};

/// Memory of a page in the pool's tables, in either space.
const TABLE_BYTES: u64 = 56;
/// Frames are multiples of this.
const FRAME_BYTES: u64 = 64;
/// Memory of a compressed page besides its stored bytes: a header, and padding.
const BLOCK_BYTES: u64 = 12;

/// Cost of restoring a compressed page besides decoding it: a frame, and two locks.
const RESTORE_NS: f64 = 300.0;

/// Marks a dead block in the log.
const DEAD: u32 = u32::MAX;

/// The state of a page, in the upper two bits of its byte; the others are its popularity.
const ABSENT: u8 = 0;
const RAW: u8 = 1 << 6;
const COMPRESSED: u8 = 2 << 6;
const SPACE: u8 = 3 << 6;

/// One byte per sampled page.
#[derive(Debug, Default)]
struct States {
    pages: Vec<Cell<u8>>,
    /// The page being accessed, which is pinned.
    pinned: u32,
}

impl States {
    fn get(&self, slot: u32) -> u8 {
        self.pages.get(slot as usize).map_or(ABSENT, Cell::get)
    }

    fn set(&self, slot: u32, space: u8, popularity: u8) {
        self.pages[slot as usize].set(space | popularity);
    }
}

impl Pages for States {
    fn popularity(&self, slot: u32) -> u8 {
        self.get(slot) & !SPACE
    }

    fn set_popularity(&self, slot: u32, popularity: u8) {
        self.set(slot, self.get(slot) & SPACE, popularity);
    }

    fn is_pinned(&self, slot: u32) -> bool {
        slot == self.pinned
    }
}

/// A compressed page in the log.
#[derive(Debug)]
struct Block {
    slot: u32,
    bytes: u32,
}

/// Events of pages of a class, exponentially aged.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    misses: f32,
    compressed_hits: f32,
    compressions: f32,
    restorations: f32,
}

/// The outcome of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    RawHit,
    CompressedHit,
    Miss,
}

/// A miniature.
pub(in crate::pool) struct Miniature {
    kind: PolicyKind,
    promote_after_hits: u8,
    /// The fraction of the budget for raw pages.
    share: f64,
    policy: Box<dyn Policy>,
    wants_hits: bool,
    states: States,

    raw_bytes: u64,
    raw_limit: u64,

    /// Compressed pages and dead blocks, oldest first.
    log: VecDeque<Block>,
    /// Number of blocks that have left the log.
    log_passed: u32,
    log_bytes: u64,
    log_limit: u64,
    /// For each compressed page, the sequence number of its block in the log.
    places: Vec<u32>,

    counts: [Counts; CLASSES],
    /// The weight of an event.
    pub(super) weight: f32,
    /// Number of pages evicted from both spaces.
    evictions: u64,
}

impl Miniature {
    /// Creates an empty miniature, with tables for `pages`.
    pub(super) fn new(kind: PolicyKind, promote_after_hits: u8, share: f64, pages: usize) -> Result<Self, OutOfMemory> {
        let policy = kind.build()?;
        let mut miniature = Self {
            kind,
            promote_after_hits: promote_after_hits.clamp(1, MAX_POPULARITY),
            share,
            wants_hits: policy.wants_hits(),
            policy,
            states: States {
                pages: room_for(pages)?,
                pinned: u32::MAX,
            },
            raw_bytes: 0,
            raw_limit: 0,
            log: VecDeque::new(),
            log_passed: 0,
            log_bytes: 0,
            log_limit: 0,
            places: room_for(pages)?,
            counts: [Counts::default(); CLASSES],
            weight: 1.0,
            evictions: 0,
        };
        miniatures::Miniature::reserve(&mut miniature, pages)?;
        Ok(miniature)
    }
}

impl miniatures::Miniature for Miniature {
    /// Tables are sized for the expected number of pages and some of a batch.
    fn reserve(&mut self, pages: usize) -> Result<(), OutOfMemory> {
        let more = pages.saturating_sub(self.places.len());
        if more > 0 {
            self.states.pages.try_grow(more)?;
            self.places.try_grow(more)?;
            if !self.policy.reserve(pages) {
                return Err(OutOfMemory { bytes: pages });
            }
            self.states.pages.resize(pages, Cell::new(ABSENT));
            self.places.resize(pages, 0);
        }
        Ok(())
    }

    fn evictions(&self) -> u64 {
        self.evictions
    }

    fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.policy.bytes()
            + self.states.pages.capacity()
            + self.places.capacity() * size_of::<u32>()
            + self.log.capacity() * size_of::<Block>()
    }

    fn set_limit(&mut self, bytes: f64) {
        self.raw_limit = (bytes * self.share) as u64;
        self.log_limit = (bytes * (1.0 - self.share)) as u64;
    }

    fn cost(&self, prices: &Prices) -> f64 {
        let classes = self.counts.iter().enumerate();
        let cost = classes.map(|(class, counts)| {
            f64::from(counts.misses) * prices.read[class]
                + f64::from(counts.compressed_hits) * prices.decompress[class]
                + f64::from(counts.compressions) * prices.compress[class]
                + f64::from(counts.restorations) * RESTORE_NS
        });
        cost.sum()
    }

    fn age(&mut self, factor: f32) {
        for counts in &mut self.counts {
            counts.misses *= factor;
            counts.compressed_hits *= factor;
            counts.compressions *= factor;
            counts.restorations *= factor;
        }
    }
}

impl Miniature {
    /// Simulates a `get` of a sampled page.
    pub(super) fn access(&mut self, slot: u32, sampled: &mut SampledKeys) -> Access {
        let state = self.states.get(slot);
        let popularity = ((state & !SPACE) + 1).min(MAX_POPULARITY);
        if state & SPACE == RAW {
            self.states.set(slot, RAW, popularity);
            if self.wants_hits {
                self.policy.hit(slot);
            }
            return Access::RawHit;
        }
        let class = sampled.class(slot);
        if state & SPACE == COMPRESSED {
            self.counts[class].compressed_hits += self.weight;
            self.states.set(slot, COMPRESSED, popularity);
            if popularity >= self.promote_after_hits {
                self.counts[class].restorations += self.weight;
                self.kill(slot);
                self.enter_raw(slot, popularity, sampled);
            }
            return Access::CompressedHit;
        }
        self.counts[class].misses += self.weight;
        sampled.hold(slot);
        self.enter_raw(slot, 0, sampled);
        Access::Miss
    }

    /// Simulates the removal of the page.
    pub(super) fn remove(&mut self, slot: u32, sampled: &mut SampledKeys) {
        match self.states.get(slot) & SPACE {
            RAW => {
                self.policy.remove(slot);
                self.leave_raw(slot, sampled);
            }
            COMPRESSED => self.kill(slot),
            _ => return,
        }
        self.states.set(slot, ABSENT, 0);
        sampled.let_go(slot);
    }

    /// Removes the page from the compressed space, after it turned out to be incompressible.
    pub(super) fn unpress(&mut self, slot: u32, sampled: &mut SampledKeys) {
        if self.states.get(slot) & SPACE == COMPRESSED {
            self.remove(slot, sampled);
        }
    }

    fn enter_raw(&mut self, slot: u32, popularity: u8, sampled: &mut SampledKeys) {
        self.states.set(slot, RAW, popularity);
        self.policy.insert(slot, scrambled(sampled.hash(slot)));
        self.raw_bytes += frame_bytes(sampled.raw_bytes(slot));
        self.states.pinned = slot;
        while self.raw_bytes > self.raw_limit {
            let Some(victim) = self.policy.victim(&self.states, &|slot| scrambled(sampled.hash(slot))) else {
                break;
            };
            self.leave_raw(victim, sampled);
            self.press(victim, sampled);
        }
        self.states.pinned = u32::MAX;
        self.clean(sampled);
    }

    fn leave_raw(&mut self, slot: u32, sampled: &SampledKeys) {
        self.raw_bytes -= frame_bytes(sampled.raw_bytes(slot));
    }

    /// Compresses a victim of the raw space, or evicts it.
    fn press(&mut self, slot: u32, sampled: &mut SampledKeys) {
        if self.share < 1.0 {
            self.counts[sampled.class(slot)].compressions += self.weight;
            // Without memory for its block, it is evicted.
            if let Some(stored) = sampled.stored(slot)
                && self.log.try_reserve(1).is_ok()
            {
                self.states.set(slot, COMPRESSED, 0);
                self.append(slot, stored + (BLOCK_BYTES + TABLE_BYTES) as u32);
                return;
            }
        }
        self.evict(slot, sampled);
    }

    fn evict(&mut self, slot: u32, sampled: &mut SampledKeys) {
        self.states.set(slot, ABSENT, 0);
        self.evictions += 1;
        sampled.let_go(slot);
    }

    /// Appends a block, for which the log has room.
    fn append(&mut self, slot: u32, bytes: u32) {
        self.places[slot as usize] = self.log_passed.wrapping_add(self.log.len() as u32);
        self.log.push_back(Block { slot, bytes });
        self.log_bytes += u64::from(bytes);
    }

    /// Marks a page's block in the log as dead. It takes memory until its segment's turn.
    fn kill(&mut self, slot: u32) {
        let index = self.places[slot as usize].wrapping_sub(self.log_passed);
        if let Some(block) = self.log.get_mut(index as usize) {
            block.slot = DEAD;
        }
    }

    /// Visits the oldest compressed pages until the others fit.
    fn clean(&mut self, sampled: &mut SampledKeys) {
        while self.log_bytes > self.log_limit {
            let Some(Block { slot, bytes }) = self.log.pop_front() else {
                break;
            };
            self.log_passed = self.log_passed.wrapping_add(1);
            self.log_bytes -= u64::from(bytes);
            if slot == DEAD {
                continue;
            }
            match another_round(self.kind, self.states.popularity(slot)) {
                Some(popularity) => {
                    self.states.set(slot, COMPRESSED, popularity);
                    self.append(slot, bytes);
                }
                None => self.evict(slot, sampled),
            }
        }
    }
}

#[cfg(test)]
impl Miniature {
    /// Panics if counters and pages disagree; counts the pages held.
    pub(super) fn validate(&self, sampled: &SampledKeys, holders: &mut [u8]) {
        let mut raw_bytes = 0;
        let mut compressed = 0;
        for (slot, holders) in holders.iter_mut().enumerate() {
            let slot = slot as u32;
            match self.states.get(slot) & SPACE {
                RAW => raw_bytes += frame_bytes(sampled.raw_bytes(slot)),
                COMPRESSED => {
                    let block = &self.log[self.places[slot as usize].wrapping_sub(self.log_passed) as usize];
                    assert_eq!(block.slot, slot);
                    compressed += 1;
                }
                _ => continue,
            }
            *holders += 1;
        }
        assert_eq!(raw_bytes, self.raw_bytes);
        assert_eq!(self.log.iter().filter(|block| block.slot != DEAD).count(), compressed);
        assert_eq!(
            self.log.iter().map(|block| u64::from(block.bytes)).sum::<u64>(),
            self.log_bytes
        );
    }
}

/// Memory of a raw page.
fn frame_bytes(raw_bytes: u32) -> u64 {
    u64::from(raw_bytes).next_multiple_of(FRAME_BYTES) + TABLE_BYTES
}

/// The hashes of sampled pages are all small; a policy needs distinct upper bits.
fn scrambled(hash: u64) -> u64 {
    hash.rotate_left(32)
}
