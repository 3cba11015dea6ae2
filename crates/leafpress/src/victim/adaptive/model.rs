//! Miniatures of the cache at several shares, over one sample of its blocks.
//!
//! A block is followed if its hash is low enough, so that of a sample all lookups are seen, and a cache scaled down as the sample is has
//! the misses of the whole one, scaled down (Waldspurger, Park, Garthwaite, Ahmad, "Efficient MRC construction with SHARDS", FAST 2015).
//!
//! The cache in front of this one is not in the miniatures. What it asks for and evicts is what it does with this cache as it is; where a
//! miniature would have missed and this cache had the block, the miniature is offered it at once, since it would have come from elsewhere.

use super::miniature::{Block, Miniature, World};
use crate::share::costs::{Prices, Sizes, UNSHRINKABLE};
use crate::share::followed::Followed;
use crate::share::watch::{Sight, Watch};
use crate::victim::Taking;

/// The shares that are followed, falling from 1.
const SHARES: [f64; 9] = [1.0, 0.8, 0.6, 0.45, 0.3, 0.2, 0.1, 0.04, 0.0];

/// More blocks than this would tell nothing more.
const MOST_BLOCKS: usize = 4096;
/// Memory for the miniatures: one in so many bytes of the budget, and this, but no more of that than one in so many bytes of a small
/// budget.
const BUDGET_PART: usize = 128;
const BESIDES_BYTES: usize = 64 << 10;
const BESIDES_PART: usize = 32;
/// What a followed block takes: in a miniature, and in what they have in common, with what doubling leaves unused.
const MINIATURE_BYTES: usize = 18;
const FOLLOWED_BYTES: usize = 96;
/// Raw bytes of a block that the sample is chosen for, before any is seen.
const TYPICAL_BYTES: usize = 4096;
/// The part of the memory that is neither slack nor holes.
const USED_PART: f64 = 0.95;
/// A miniature with raw blocks costs this much more than it says: it does not see what it takes others to wait while blocks are
/// swapped between raw and compressed. With 16 KiB blocks that shrink by half one promised some percent and cost a tenth.
const RAW_DOUBT: f64 = 1.1;
/// What a lookup takes besides its costs, in nanoseconds: gains are small where costs are.
const LOOKUP_NS: f64 = 500.0;
/// Counts of a block are halved after so many lookups for each block that the cache's tables count on, as its sketch does.
const SAMPLE_PER_ENTRY: f64 = 16.0;
const BYTES_PER_ENTRY: f64 = 1536.0;

/// Something that happened to a followed block.
#[derive(Debug, Clone, Copy)]
pub(super) enum Event {
    /// A lookup; `found` has the length where it found the block.
    Looked {
        hash: u64,
        found: u32,
        asked: u8,
        taking: Taking,
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

/// While one access in so many is a new one's and there is room, the caches are filling up.
const FILLING: usize = 16;

/// The miniatures.
pub(super) struct Model {
    minis: Vec<Miniature>,
    followed: Followed,
    blocks: Vec<Block>,
    /// Lookups of followed blocks.
    clock: u32,
    /// Lookups since the counts of blocks were halved.
    counted: f64,
    most_blocks: usize,
    budget_bytes: usize,
    /// The part of all blocks that is followed.
    rate: f64,
    /// The rate may rise up to this.
    most_rate: f64,
    /// All lookups, where the past counts for less and less.
    lookups: f64,
    watch: Watch,
}

impl Model {
    /// Miniatures of a cache of so many bytes.
    pub(super) fn new(budget_bytes: usize) -> Self {
        let memory = budget_bytes / BUDGET_PART + BESIDES_BYTES.min(budget_bytes / BESIDES_PART);
        let blocks_of = |ratio: usize| budget_bytes / (TYPICAL_BYTES / ratio + 96) + 16;
        let most_blocks = memory / (SHARES.len() * MINIATURE_BYTES + FOLLOWED_BYTES);
        let most_blocks = most_blocks.min(MOST_BLOCKS).min(blocks_of(8)).max(16);
        let tables = most_blocks + most_blocks / 8;
        let mut model = Self {
            minis: (1..)
                .zip(SHARES)
                .map(|(seed, share)| Miniature::new(seed, share, tables))
                .collect(),
            followed: Followed::new(tables),
            blocks: Vec::with_capacity(tables),
            clock: 0,
            counted: 0.0,
            most_blocks,
            budget_bytes,
            rate: (0.7 * most_blocks as f64 / blocks_of(3) as f64).min(1.0),
            most_rate: 1.0,
            lookups: 0.0,
            watch: Watch::default(),
        };
        model.set_limits();
        model
    }

    /// Another budget.
    pub(super) fn resize(&mut self, budget_bytes: usize) {
        self.budget_bytes = budget_bytes;
        self.set_limits();
    }

    /// The shares, falling from 1.
    #[allow(clippy::unused_self, reason = "they belong to this model")]
    pub(super) fn shares(&self) -> &[f64] {
        &SHARES
    }

    /// Blocks followed.
    pub(super) fn len(&self) -> usize {
        self.followed.len()
    }

    /// A block is followed if its hash is at most this.
    pub(super) fn threshold(&self) -> u64 {
        // The conversion saturates.
        (self.rate * u64::MAX as f64) as u64
    }

    /// Memory held, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let minis: usize = self.minis.iter().map(Miniature::bytes).sum();
        size_of::<Self>() + minis + self.followed.bytes() + self.blocks.capacity() * size_of::<Block>()
    }

    /// Sizes to guess by.
    pub(super) fn set_sizes(&mut self, sizes: Sizes) {
        self.followed.set_sizes(sizes);
    }

    /// Runs events through the miniatures; returns the number of lookups among them.
    pub(super) fn run(&mut self, events: impl Iterator<Item = Event>) -> usize {
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
                self.followed.tidy();
            }
            if self.followed.len() > self.most_blocks {
                self.follow_less(0.75);
            }
        }
        lookups
    }

    fn take_in(&mut self, event: Event) {
        let weight = if self.watch.counts() { 1.0 } else { 0.0 };
        match event {
            Event::Looked {
                hash,
                found,
                asked,
                taking,
            } => {
                self.count_lookup();
                let known = self.followed.find(hash);
                if known.is_none() && found == 0 {
                    // All miss it alike.
                    for mini in &mut self.minis {
                        mini.miss(weight);
                    }
                    return;
                }
                let slot = known.unwrap_or_else(|| self.followed.add(hash, found));
                self.mark(slot, asked);
                let is_here = found > 0;
                self.each(|mini, world| match known {
                    Some(_) => mini.look(slot, is_here, taking, weight, world),
                    None if taking == Taking::Keep => mini.offer(slot, false, 0.0, world),
                    None => {}
                });
            }
            Event::Offered {
                hash,
                raw_bytes,
                asked,
                force,
            } => {
                let known = self.followed.find(hash);
                let same = known.filter(|&slot| self.followed.raw_bytes(slot) == raw_bytes);
                if same.is_none() {
                    // A block of another length is another block.
                    self.drop_block(known);
                }
                let slot = same.unwrap_or_else(|| self.followed.add(hash, raw_bytes));
                self.mark(slot, asked);
                self.each(|mini, world| mini.offer(slot, force, weight, world));
            }
            Event::Sized { hash, stored } => {
                let slot = self.followed.set_stored(hash, stored);
                if let Some(slot) = slot.filter(|_| stored == UNSHRINKABLE) {
                    self.each(|mini, world| mini.is_unshrinkable(slot, world));
                }
            }
            Event::Erased { hash } => self.drop_block(self.followed.find(hash)),
        }
    }

    fn each(&mut self, mut work: impl FnMut(&mut Miniature, &mut World<'_>)) {
        let mut world = World {
            followed: &mut self.followed,
            blocks: &self.blocks,
            clock: self.clock,
        };
        for mini in &mut self.minis {
            work(mini, &mut world);
        }
    }

    fn count_lookup(&mut self) {
        self.clock = self.clock.wrapping_add(1);
        if self.watch.counts() {
            self.lookups += 1.0;
        }
        self.watch.saw(1);
        self.counted += 1.0;
        let sample = (self.budget_bytes as f64 / BYTES_PER_ENTRY * SAMPLE_PER_ENTRY * self.rate).max(64.0);
        if self.counted >= sample {
            self.counted /= 2.0;
            self.blocks.iter_mut().for_each(|block| block.asked /= 2);
        }
    }

    /// Notes when a block was asked for or put in, and how often it was asked for.
    fn mark(&mut self, slot: u32, asked: u8) {
        let len = self.blocks.len().max(slot as usize + 1);
        self.blocks.resize(len, Block::default());
        self.blocks[slot as usize] = Block {
            touched: self.clock,
            asked,
        };
    }

    fn drop_block(&mut self, slot: Option<u32>) {
        if let Some(slot) = slot {
            self.followed.unlist(slot);
            self.each(|mini, world| mini.remove(slot, world));
            self.followed.tidy();
        }
    }

    /// Goes on after a pause: the first lookups find the miniatures as the world was before, and do not count.
    pub(super) fn resume(&mut self) {
        self.watch.skip(self.followed.len() / 4);
    }

    /// Follows a part of what is followed.
    pub(super) fn follow_less(&mut self, part: f64) {
        self.rate *= part;
        self.most_rate = self.rate;
        self.set_limits();
        for slot in self.followed.above(self.threshold()) {
            self.drop_block(Some(slot));
        }
    }

    fn set_limits(&mut self) {
        for mini in &mut self.minis {
            mini.set_limit(self.budget_bytes as f64 * self.rate * USED_PART);
        }
    }

    /// Whether there is enough to decide on since the last look; then a new look begins.
    pub(super) fn look(&mut self) -> Sight {
        let len = self.followed.len();
        // The one that compresses all is full last, and what it gains is seen only then.
        let evictions = self.minis.last().map_or(0, Miniature::evictions);
        let Some(look) = self.watch.look(len, evictions, FILLING) else {
            return Sight::TooLittle;
        };
        let finds_room = look.is_full && len * 3 < self.most_blocks && self.rate * 2.0 <= self.most_rate;
        if look.sight == Sight::Enough && finds_room {
            self.rate *= 2.0;
            self.set_limits();
            self.watch.skip(4 * len);
        }
        self.age(look.aging);
        look.sight
    }

    fn age(&mut self, factor: f32) {
        self.lookups *= f64::from(factor);
        for mini in &mut self.minis {
            mini.age(factor);
        }
    }

    /// What each share would cost, in any unit.
    pub(super) fn costs(&self, prices: &Prices) -> Vec<f64> {
        let base = self.lookups * LOOKUP_NS;
        let all_compressed = self.minis.len().saturating_sub(1);
        let doubt = |index: usize| if index == all_compressed { 1.0 } else { RAW_DOUBT };
        let costs = self.minis.iter().map(|mini| base + mini.cost(prices));
        costs.enumerate().map(|(index, cost)| cost * doubt(index)).collect()
    }
}

#[cfg(test)]
impl Model {
    /// Panics where the parts contradict each other.
    pub(super) fn validate(&self) {
        let mut holders = vec![0; self.followed.slots()];
        for mini in &self.minis {
            mini.validate(&mut holders);
        }
        self.followed.validate(&holders);
    }
}
