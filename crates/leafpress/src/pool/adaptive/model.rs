//! Miniatures of the pool at several shares, over one sample of its pages.
//!
//! A page is followed if its hash is low enough, so that of a sample all accesses are seen, and a cache scaled down as the sample
//! is has the misses of the whole one, scaled down (Waldspurger, Park, Garthwaite, Ahmad, "Efficient MRC construction with SHARDS",
//! FAST 2015; Waldspurger, Saemundsson, Ahmad, Park, "Cache modeling and optimization using miniature simulations", ATC 2017).
//! When more pages are followed than memory was given for, the threshold falls, as in the paper's SHARDS of fixed size.
//!
//! The paper's correction for a sample that holds a very hot page by chance adds what the sample has too much or too little to the
//! hits. Here costs are compared, not ratios; hits that all miniatures have are no part of them; and time is told by the accesses
//! that were not a raw hit in the smallest raw space. So a hot page weighs nothing, and needs no correction.

use super::least_raw_fraction;
use super::miniature::{Access, Miniature};
use crate::pool::PolicyKind;
use crate::share::costs::{Prices, UNSHRINKABLE};
use crate::share::followed::Followed;
use crate::share::watch::{Sight, Watch};

/// The raw shares that are followed, falling from 1; in place of the last the least that there may be.
const SHARES: [f64; 11] = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0];
/// The shares where there is memory for few pages.
const FEW_SHARES: [f64; 6] = [1.0, 0.8, 0.6, 0.4, 0.2, 0.0];

/// Fewer pages than this make all the shares too noisy.
const FEW_PAGES: usize = 512;
/// More pages than this would tell nothing more.
const MOST_PAGES: usize = 4096;
/// Events that are run through one miniature after another.
const BATCH: usize = 256;

/// Memory for the miniatures: a part of the budget, and this.
const BUDGET_PART: usize = 128;
const LEAST_BYTES: usize = 32 << 10;

/// What a page takes in the table of followed pages.
const FOLLOWED_BYTES: usize = 64;

/// What an access takes besides its costs, in nanoseconds: gains are small where costs are.
const ACCESS_NS: f64 = 150.0;

/// Something that happened to a followed page.
#[derive(Debug, Clone, Copy)]
pub(super) enum Event {
    /// A get.
    Accessed { hash: u64, raw_bytes: u32 },
    /// It was compressed to so many bytes, or [`UNSHRINKABLE`].
    Sized { hash: u64, stored: u32 },
    /// It was removed from the pool and the store.
    Removed { hash: u64 },
}

#[derive(Debug, Clone, Copy)]
enum Op {
    Access(u32),
    Remove(u32),
    /// The page is compressed nowhere: it does not shrink.
    Unpress(u32),
}

/// While one access in so many is a new one's and there is room, the caches are filling up.
const FILLING: usize = 8;

/// The miniatures.
pub(super) struct Model {
    shares: Vec<f64>,
    minis: Vec<Miniature>,
    followed: Followed,
    most_pages: usize,
    budget_bytes: usize,
    /// The part of all pages that is followed.
    rate: f64,
    /// The rate may rise up to this.
    most_rate: f64,
    ops: Vec<Op>,
    /// All accesses, where the past counts for less and less.
    accesses: f64,
    watch: Watch,
}

impl Model {
    /// Miniatures of a pool of `budget_bytes` with pages of about `typical_page_bytes`.
    pub(super) fn new(kind: PolicyKind, restore_after: u8, budget_bytes: usize, typical_page_bytes: usize) -> Self {
        let memory = budget_bytes / BUDGET_PART + LEAST_BYTES;
        let pages = |shares: &[f64]| memory / (shares.len() * page_bytes(kind) + FOLLOWED_BYTES);
        let shares = if pages(&SHARES) >= FEW_PAGES {
            &SHARES[..]
        } else {
            &FEW_SHARES
        };
        let least = least_raw_fraction(budget_bytes, typical_page_bytes);
        let shares: Vec<f64> = shares
            .iter()
            .copied()
            .filter(|&share| share > least)
            .chain([least])
            .collect();
        let pages_of = |ratio: usize| budget_bytes / (typical_page_bytes / ratio + 72).max(1) + 16;
        let most_pages = pages(&shares).min(MOST_PAGES).min(pages_of(8)).max(16);
        let rate = (0.7 * most_pages as f64 / pages_of(3) as f64).min(1.0);
        let tables = most_pages + most_pages / 8;
        let minis = shares
            .iter()
            .map(|&share| Miniature::new(kind, restore_after, share, tables))
            .collect();
        let mut model = Self {
            shares,
            minis,
            followed: Followed::new(tables),
            most_pages,
            budget_bytes,
            rate,
            most_rate: 1.0,
            ops: Vec::with_capacity(BATCH),
            accesses: 0.0,
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
    pub(super) fn shares(&self) -> &[f64] {
        &self.shares
    }

    /// Pages followed.
    pub(super) fn len(&self) -> usize {
        self.followed.len()
    }

    /// Pages that there is memory for.
    pub(super) fn most_pages(&self) -> usize {
        self.most_pages
    }

    /// A page is followed if its hash is at most this.
    pub(super) fn threshold(&self) -> u64 {
        // The conversion saturates.
        (self.rate * u64::MAX as f64) as u64
    }

    /// Memory held, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let minis: usize = self.minis.iter().map(Miniature::bytes).sum();
        size_of::<Self>() + minis + self.followed.bytes() + self.ops.capacity() * size_of::<Op>()
    }

    /// Sizes to guess by: see [`Costs::sizes`](crate::share::costs::Costs::sizes).
    pub(super) fn set_sizes(&mut self, sizes: crate::share::costs::Sizes) {
        self.followed.set_sizes(sizes);
    }

    /// Runs events through the miniatures; returns the number of accesses among them.
    pub(super) fn run(&mut self, mut events: impl Iterator<Item = Event>) -> usize {
        let mut accesses = 0;
        loop {
            self.ops.clear();
            let threshold = self.threshold();
            let mut ended = true;
            for event in events.by_ref() {
                accesses += usize::from(matches!(event, Event::Accessed { .. }));
                self.take_in(event, threshold);
                if self.ops.len() + 1 >= BATCH {
                    ended = false;
                    break;
                }
            }
            self.run_batch();
            if self.followed.len() > self.most_pages {
                self.follow_less(0.75);
            }
            if ended {
                return accesses;
            }
        }
    }

    /// Notes what an event asks of the miniatures.
    fn take_in(&mut self, event: Event, threshold: u64) {
        let (Event::Accessed { hash, .. } | Event::Sized { hash, .. } | Event::Removed { hash }) = event;
        if hash > threshold {
            // It was told before the threshold fell.
            return;
        }
        let found = self.followed.find(hash);
        match event {
            Event::Accessed { raw_bytes, .. } => {
                let same = found.filter(|&slot| self.followed.raw_bytes(slot) == raw_bytes);
                if same.is_none() {
                    // A page of another length is another page.
                    self.drop_page(found);
                }
                let slot = same.unwrap_or_else(|| self.followed.add(hash, raw_bytes));
                self.ops.push(Op::Access(slot));
            }
            Event::Sized { stored, .. } => {
                let slot = self.followed.set_stored(hash, stored);
                if let Some(slot) = slot.filter(|_| stored == UNSHRINKABLE) {
                    self.ops.push(Op::Unpress(slot));
                }
            }
            Event::Removed { .. } => self.drop_page(found),
        }
    }

    fn drop_page(&mut self, slot: Option<u32>) {
        if let Some(slot) = slot {
            self.followed.unlist(slot);
            self.ops.push(Op::Remove(slot));
        }
    }

    fn run_batch(&mut self) {
        let mut cold = 0;
        let last = self.minis.len() - 1;
        for (index, mini) in self.minis.iter_mut().enumerate() {
            mini.weight = if self.watch.counts() { 1.0 } else { 0.0 };
            for &op in &self.ops {
                match op {
                    Op::Access(slot) => {
                        let access = mini.access(slot, &mut self.followed);
                        if index == last && access != Access::RawHit {
                            cold += 1;
                        }
                    }
                    Op::Remove(slot) => mini.remove(slot, &mut self.followed),
                    Op::Unpress(slot) => mini.unpress(slot, &mut self.followed),
                }
            }
        }
        self.followed.tidy();
        if self.watch.counts() {
            let gets = self.ops.iter().filter(|op| matches!(op, Op::Access(_)));
            self.accesses += gets.count() as f64;
        }
        // Raw hits in the smallest raw space are raw hits in all.
        self.watch.saw(cold);
    }

    /// Goes on after a pause: the first accesses find the miniatures as the world was before, and do not count.
    pub(super) fn resume(&mut self) {
        self.watch.skip(self.followed.len() / 4);
    }

    /// Follows a part of what is followed.
    pub(super) fn follow_less(&mut self, part: f64) {
        self.rate *= part;
        self.most_rate = self.rate;
        self.set_limits();
        self.ops.clear();
        for slot in self.followed.above(self.threshold()) {
            self.drop_page(Some(slot));
        }
        // Not a batch: nothing is seen by it.
        for mini in &mut self.minis {
            for &op in &self.ops {
                if let Op::Remove(slot) = op {
                    mini.remove(slot, &mut self.followed);
                }
            }
        }
        self.followed.tidy();
        self.ops.clear();
        self.ops.shrink_to(BATCH);
    }

    fn set_limits(&mut self) {
        for mini in &mut self.minis {
            mini.set_limit(self.budget_bytes as f64 * self.rate);
        }
    }

    /// Whether there is enough to decide on since the last look; then a new look begins.
    pub(super) fn look(&mut self) -> Sight {
        let len = self.followed.len();
        let evictions = self.minis[0].evictions();
        let Some(look) = self.watch.look(len, evictions, FILLING) else {
            return Sight::TooLittle;
        };
        let finds_room = look.is_full && len * 3 < self.most_pages && self.rate * 2.0 <= self.most_rate;
        if look.sight == Sight::Enough && finds_room {
            self.rate *= 2.0;
            self.set_limits();
            self.watch.skip(4 * len);
        }
        self.age(look.aging);
        look.sight
    }

    fn age(&mut self, factor: f32) {
        self.accesses *= f64::from(factor);
        for mini in &mut self.minis {
            mini.age(factor);
        }
    }

    /// What each share would cost, in any unit.
    pub(super) fn costs(&self, prices: &Prices) -> Vec<f64> {
        let base = self.accesses * ACCESS_NS;
        self.minis.iter().map(|mini| base + mini.cost(prices)).collect()
    }
}

#[cfg(test)]
impl Model {
    /// Gets that count so far.
    pub(super) fn followed_accesses(&self) -> f64 {
        self.accesses
    }

    /// Panics where the parts contradict each other.
    pub(super) fn validate(&self) {
        let mut holders = vec![0; self.followed.slots()];
        for mini in &self.minis {
            mini.validate(&self.followed, &mut holders);
        }
        self.followed.validate(&holders);
    }
}

/// Bytes that a followed page takes in a miniature, with what doubling leaves unused.
fn page_bytes(kind: PolicyKind) -> usize {
    let links = 8;
    let log = 8;
    let state_and_place = 5;
    let policy = match kind {
        PolicyKind::Clock | PolicyKind::Lru => 0,
        PolicyKind::S3Fifo => 13,
    };
    links + log + state_and_place + policy
}
