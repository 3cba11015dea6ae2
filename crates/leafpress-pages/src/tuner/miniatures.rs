//! Miniature simulations of a cache with different fractions of its budget for raw pages, over one sample of its keys.
//!
//! A key is sampled if its hash is below a threshold, so that all accesses of a sampled key are observed, and a cache
//! scaled down by the sampling rate has the misses of the whole one, scaled down (Waldspurger, Park, Garthwaite, Ahmad,
//! "Efficient MRC construction with SHARDS", FAST 2015; Waldspurger, Saemundsson, Ahmad, Park, "Cache modeling and
//! optimization using miniature simulations", ATC 2017). When more keys are sampled than there is memory for, the
//! threshold is lowered, as in the paper's fixed-size SHARDS.

use super::costs::{Prices, Sizes};
use super::readiness::{Progress, Readiness};
use super::sampled_keys::SampledKeys;
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::{collected, room_for};

/// A miniature of a cache: scaled down to the sampled keys, without bytes.
pub(crate) trait Miniature {
    /// Sets the budget in bytes. Any excess is evicted by the following operations.
    fn set_limit(&mut self, bytes: f64);

    /// Reserves memory for pages below `pages`.
    fn reserve(&mut self, pages: usize) -> Result<(), OutOfMemory>;

    /// Number of pages evicted.
    fn evictions(&self) -> u64;

    /// Memory held, in bytes.
    fn bytes(&self) -> usize;

    /// Expected cost of the counted work, in nanoseconds.
    fn cost(&self, prices: &Prices) -> f64;

    /// Multiplies the counters by `factor`.
    fn age(&mut self, factor: f32);
}

/// The miniature whose fullness is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fullest {
    /// The one with the largest raw fraction.
    First,
    /// The one with the smallest raw fraction: it is full last.
    Last,
}

/// Parameters of a kind of cache.
pub(crate) struct Shape {
    /// The simulated fractions of the budget for raw pages, descending from 1.
    pub(crate) fractions: Vec<f64>,
    /// Number of keys for which there is memory.
    pub(crate) most_keys: usize,
    /// Expected number of keys in the whole cache.
    pub(crate) expected_keys: usize,
    /// The fraction of the budget that is neither slack nor holes.
    pub(crate) used_fraction: f64,
    /// While one access in this many is for a new key and there is room, the caches are filling up.
    pub(crate) filling: usize,
    pub(crate) fullness_indicator: Fullest,
    /// Cost of an access besides the simulated costs, in nanoseconds: it makes gains small if costs are.
    pub(crate) access_ns: f64,
}

/// The miniatures and their sample.
pub(crate) struct Miniatures<M> {
    pub(crate) minis: Vec<M>,
    pub(crate) sampled: SampledKeys,
    /// Whether events count, and whether there were enough of them.
    pub(crate) progress: Progress,
    /// Aged number of accesses.
    pub(crate) accesses: f64,
    shape: Shape,
    budget_bytes: usize,
    /// The sampling rate.
    rate: f64,
    /// Maximum of the rate.
    most_rate: f64,
}

impl<M: Miniature> Miniatures<M> {
    /// Creates miniatures for a budget in bytes; `make` is called with each miniature's index, its fraction and the
    /// number of keys.
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

    /// Samples a page that is not sampled yet; it then has a slot in all tables. It stays at least until
    /// [`SampledKeys::tidy`].
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

    /// Changes the budget.
    pub(crate) fn resize(&mut self, budget_bytes: usize) {
        self.budget_bytes = budget_bytes;
        self.set_limits();
    }

    /// The budget, scaled down to the sample, in bytes.
    pub(crate) fn scaled_budget(&self) -> f64 {
        self.budget_bytes as f64 * self.rate
    }

    fn set_limits(&mut self) {
        let bytes = self.scaled_budget() * self.shape.used_fraction;
        for mini in &mut self.minis {
            mini.set_limit(bytes);
        }
    }

    /// The fractions, descending from 1.
    pub(crate) fn fractions(&self) -> &[f64] {
        &self.shape.fractions
    }

    /// Number of sampled keys.
    pub(crate) fn len(&self) -> usize {
        self.sampled.len()
    }

    /// Number of keys for which there is memory.
    pub(crate) fn most_keys(&self) -> usize {
        self.shape.most_keys
    }

    /// The threshold: a key is sampled if its hash is at most this.
    pub(crate) fn threshold(&self) -> u64 {
        // The conversion saturates.
        (self.rate * u64::MAX as f64) as u64
    }

    /// Heap memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let minis: usize = self.minis.iter().map(Miniature::bytes).sum();
        minis + self.sampled.bytes()
    }

    /// Sets the sample of sizes for pages of unknown size: see [`Costs::sizes`](super::costs::Costs::sizes).
    pub(crate) fn set_sizes(&mut self, sizes: Sizes) {
        self.sampled.set_sizes(sizes);
    }

    /// Resumes after a pause: the first accesses meet miniatures in an outdated state, and do not count.
    pub(crate) fn resume(&mut self) {
        self.progress.skip(self.sampled.len() / 4);
    }

    /// Multiplies the threshold by `part`. The keys above it have to be dropped.
    pub(crate) fn lower_threshold(&mut self, part: f64) {
        self.rate *= part;
        self.most_rate = self.rate;
        self.set_limits();
    }

    /// Checks whether enough was observed since the last decision; if so, a new period begins.
    pub(crate) fn look(&mut self) -> Readiness {
        let len = self.sampled.len();
        let indicator = match self.shape.fullness_indicator {
            Fullest::First => self.minis.first(),
            Fullest::Last => self.minis.last(),
        };
        let evictions = indicator.map_or(0, Miniature::evictions);
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

    /// Returns the simulated cost of each fraction, in nanoseconds.
    pub(crate) fn costs_seen(&self, prices: &Prices) -> Result<Vec<f64>, OutOfMemory> {
        let base = self.accesses * self.shape.access_ns;
        collected(self.minis.iter().map(|mini| base + mini.cost(prices)))
    }
}

/// Number of keys for which tables are sized, given memory for `most_keys`: a batch may add some more.
pub(crate) fn tables_for(most_keys: usize) -> usize {
    most_keys + most_keys / 8
}
