//! Miniatures of a cache with different parts of its budget for raw pages, over one sample of its keys.
//!
//! A key is followed if its hash is low enough, so that of a sample all accesses are seen, and a cache scaled down as the sample is has
//! the misses of the whole one, scaled down (Waldspurger, Park, Garthwaite, Ahmad, "Efficient MRC construction with SHARDS", FAST 2015;
//! Waldspurger, Saemundsson, Ahmad, Park, "Cache modeling and optimization using miniature simulations", ATC 2017). When more keys are
//! followed than memory was given for, the threshold falls, as in the paper's SHARDS of fixed size.

use super::costs::{Prices, Sizes};
use super::readiness::{Progress, Readiness};
use super::sampled_keys::SampledKeys;
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::{collected, room_for};

/// A cache in small: scaled down to the keys that are followed, without bytes.
pub(crate) trait Miniature {
    /// Sets the bytes of the budget. What is over them leaves with what happens next.
    fn set_limit(&mut self, bytes: f64);

    /// Makes sure that pages below `pages` need no more memory.
    fn reserve(&mut self, pages: usize) -> Result<(), OutOfMemory>;

    /// Pages that left altogether so far.
    fn evictions(&self) -> u64;

    /// Memory held, in bytes.
    fn bytes(&self) -> usize;

    /// Expected nanoseconds of the work that counts.
    fn cost(&self, prices: &Prices) -> f64;

    /// Multiplies what counts so far by `factor`.
    fn age(&mut self, factor: f32);
}

/// Which miniature is asked whether it is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fullest {
    /// The one that keeps most raw.
    First,
    /// The one that compresses most: it is full last.
    Last,
}

/// What differs from cache to cache.
pub(crate) struct Shape {
    /// The parts of the budget for raw pages that are followed, falling from 1.
    pub(crate) fractions: Vec<f64>,
    /// Keys that there is memory for.
    pub(crate) most_keys: usize,
    /// Keys that there may be in the whole cache.
    pub(crate) expected_keys: usize,
    /// The part of the budget that is neither slack nor holes.
    pub(crate) used_part: f64,
    /// While one access in so many is a new key's and there is room, the caches are filling up.
    pub(crate) filling: usize,
    pub(crate) asked_whether_full: Fullest,
    /// What an access takes besides its costs, in nanoseconds: gains are small where costs are.
    pub(crate) access_ns: f64,
}

/// The miniatures and their sample.
pub(crate) struct Miniatures<M> {
    pub(crate) minis: Vec<M>,
    pub(crate) sampled: SampledKeys,
    /// Whether what happens counts, and whether there was enough of it.
    pub(crate) progress: Progress,
    /// All accesses, where the past counts for less and less.
    pub(crate) accesses: f64,
    shape: Shape,
    budget_bytes: usize,
    /// The part of all keys that is followed.
    rate: f64,
    /// The rate may rise up to this.
    most_rate: f64,
}

impl<M: Miniature> Miniatures<M> {
    /// For a budget in bytes; `make` gets each miniature's place, its fraction and the keys to make tables for.
    pub(crate) fn new(
        shape: Shape,
        budget_bytes: usize,
        make: impl Fn(usize, f64, usize) -> Result<M, OutOfMemory>,
    ) -> Result<Self, OutOfMemory> {
        let tables = tables_for(shape.most_keys);
        let mut minis = room_for(shape.fractions.len())?;
        for (at, &fraction) in shape.fractions.iter().enumerate() {
            minis.push(make(at, fraction, tables)?);
        }
        let mut miniatures = Self {
            minis,
            sampled: SampledKeys::new(tables)?,
            progress: Progress::default(),
            accesses: 0.0,
            budget_bytes,
            rate: (0.7 * shape.most_keys as f64 / shape.expected_keys as f64).min(1.0),
            most_rate: 1.0,
            shape,
        };
        miniatures.set_limits();
        Ok(miniatures)
    }

    /// Follows a page that is not followed; it has a place in all tables then. It stays at least until [`SampledKeys::tidy`].
    pub(crate) fn follow(&mut self, hash: u64, raw_bytes: u32) -> Result<u32, OutOfMemory> {
        let slot = self.sampled.add(hash, raw_bytes)?;
        let reserved = self
            .minis
            .iter_mut()
            .try_for_each(|mini| mini.reserve(slot as usize + 1));
        if reserved.is_err() {
            self.sampled.unlist(slot);
        }
        reserved.map(|()| slot)
    }

    /// Another budget.
    pub(crate) fn resize(&mut self, budget_bytes: usize) {
        self.budget_bytes = budget_bytes;
        self.set_limits();
    }

    /// The budget, scaled down to the sample, in bytes.
    pub(crate) fn scaled_budget(&self) -> f64 {
        self.budget_bytes as f64 * self.rate
    }

    fn set_limits(&mut self) {
        let bytes = self.scaled_budget() * self.shape.used_part;
        for mini in &mut self.minis {
            mini.set_limit(bytes);
        }
    }

    /// The fractions, falling from 1.
    pub(crate) fn fractions(&self) -> &[f64] {
        &self.shape.fractions
    }

    /// Keys followed.
    pub(crate) fn len(&self) -> usize {
        self.sampled.len()
    }

    /// Keys that there is memory for.
    pub(crate) fn most_keys(&self) -> usize {
        self.shape.most_keys
    }

    /// A key is followed if its hash is at most this.
    pub(crate) fn threshold(&self) -> u64 {
        // The conversion saturates.
        (self.rate * u64::MAX as f64) as u64
    }

    /// Memory held besides this itself, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let minis: usize = self.minis.iter().map(Miniature::bytes).sum();
        minis + self.sampled.bytes()
    }

    /// Sizes to guess by: see [`Costs::sizes`](super::costs::Costs::sizes).
    pub(crate) fn set_sizes(&mut self, sizes: Sizes) {
        self.sampled.set_sizes(sizes);
    }

    /// Goes on after a pause: the first accesses find the miniatures as the world was before, and do not count.
    pub(crate) fn resume(&mut self) {
        self.progress.skip(self.sampled.len() / 4);
    }

    /// Lowers the threshold to a part of what it is. The keys above it are to be dropped.
    pub(crate) fn lower_threshold(&mut self, part: f64) {
        self.rate *= part;
        self.most_rate = self.rate;
        self.set_limits();
    }

    /// Whether there is enough to decide on since the last look; then a new look begins.
    pub(crate) fn look(&mut self) -> Readiness {
        let len = self.sampled.len();
        let asked = match self.shape.asked_whether_full {
            Fullest::First => self.minis.first(),
            Fullest::Last => self.minis.last(),
        };
        let evictions = asked.map_or(0, Miniature::evictions);
        let Some(look) = self.progress.look(len, evictions, self.shape.filling) else {
            return Readiness::TooLittle;
        };
        let finds_room = look.is_full && len * 3 < self.shape.most_keys && self.rate * 2.0 <= self.most_rate;
        if look.readiness == Readiness::Enough && finds_room {
            self.rate *= 2.0;
            self.set_limits();
            self.progress.skip(4 * len);
        }
        self.accesses *= f64::from(look.aging);
        for mini in &mut self.minis {
            mini.age(look.aging);
        }
        look.readiness
    }

    /// What each fraction would cost in nanoseconds, as far as the miniatures see.
    pub(crate) fn costs_seen(&self, prices: &Prices) -> Result<Vec<f64>, OutOfMemory> {
        let base = self.accesses * self.shape.access_ns;
        collected(self.minis.iter().map(|mini| base + mini.cost(prices)))
    }
}

/// Keys that tables are made for, where there is memory for so many: a batch may bring some more.
pub(crate) fn tables_for(most_keys: usize) -> usize {
    most_keys + most_keys / 8
}
