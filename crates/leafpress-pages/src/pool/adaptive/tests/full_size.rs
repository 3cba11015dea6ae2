//! An exact simulation of the pool in full size, without bytes: the reference for the miniatures.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;

use super::super::{Adaptive, Costs};
use crate::eviction::{MAX_POPULARITY, Pages, Policy, another_round};
use crate::pool::PolicyKind;

pub(super) const TABLE_BYTES: usize = 56;
pub(super) const PAGE_BYTES: usize = 4096;

/// Properties of pages and machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct World {
    pub(super) pages: u32,
    pub(super) budget_bytes: usize,
    /// 1: incompressible.
    pub(super) ratio: f64,
    pub(super) read_ns: u64,
    pub(super) compress_ns: u64,
    pub(super) decompress_ns: u64,
    /// The fraction of the pages that is hot, and the fraction of the accesses to them; 0 and 0 for uniform.
    pub(super) hot: (f64, f64),
    pub(super) policy: PolicyKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Absent,
    Raw,
    Compressed,
}

struct Table(Vec<Cell<(Place, u8)>>);

impl Pages for Table {
    fn popularity(&self, slot: u32) -> u8 {
        self.0[slot as usize].get().1
    }
    fn set_popularity(&self, slot: u32, popularity: u8) {
        let cell = &self.0[slot as usize];
        cell.set((cell.get().0, popularity));
    }
    fn is_pinned(&self, _slot: u32) -> bool {
        false
    }
}

/// Counters.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally {
    pub(super) accesses: u64,
    pub(super) misses: u64,
    pub(super) compressed_hits: u64,
    pub(super) compressions: u64,
}

impl Tally {
    /// Nanoseconds per access.
    pub(super) fn cost(&self, world: &World) -> f64 {
        let work = self.misses * world.read_ns
            + self.compressed_hits * world.decompress_ns
            + self.compressions * world.compress_ns;
        150.0 + work as f64 / self.accesses as f64
    }

    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            accesses: self.accesses - before.accesses,
            misses: self.misses - before.misses,
            compressed_hits: self.compressed_hits - before.compressed_hits,
            compressions: self.compressions - before.compressions,
        }
    }
}

pub(super) struct FullSize {
    pub(super) world: World,
    pub(super) share: f64,
    pub(super) tally: Tally,
    pub(super) adaptive: Option<Adaptive>,
    pub(super) costs: Arc<Costs>,
    table: Table,
    policy: Box<dyn Policy>,
    raw_bytes: usize,
    /// Page, bytes, and whether the block is live: a page that was restored and compressed again has two blocks.
    log: VecDeque<(u32, usize, bool)>,
    log_passed: usize,
    log_bytes: usize,
    places: Vec<usize>,
    victims: u64,
    random: fastrand::Rng,
    /// Added to the drawn page numbers, to select another hot set.
    shift: u32,
}

/// A hash of the pool's quality: SplitMix64's finalizer.
pub(super) fn hash(page: u32) -> u64 {
    let mut hash = u64::from(page).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

impl FullSize {
    /// A pool with a fixed share.
    pub(super) fn fixed(world: World, share: f64) -> Self {
        Self {
            world,
            share,
            tally: Tally::default(),
            adaptive: None,
            costs: Arc::default(),
            table: Table(vec![Cell::new((Place::Absent, 0)); world.pages as usize]),
            policy: world.policy.build().unwrap(),
            raw_bytes: 0,
            log: VecDeque::new(),
            log_passed: 0,
            log_bytes: 0,
            places: vec![0; world.pages as usize],
            victims: 0,
            random: fastrand::Rng::with_seed(7),
            shift: 0,
        }
    }

    /// A pool whose share adapts.
    pub(super) fn adaptive(world: World, start: f64) -> Self {
        let mut pool = Self::fixed(world, start);
        let costs = Arc::clone(&pool.costs);
        let adaptive = Adaptive::of_pool(world.policy, 8, world.budget_bytes, PAGE_BYTES, start, costs).unwrap();
        // The available processor time must not affect a test's result.
        adaptive.inner.lock().cpu_budget = None;
        pool.adaptive = Some(adaptive);
        pool
    }

    /// Changes the hot set.
    pub(super) fn switch_hot_set(&mut self) {
        self.shift += self.world.pages / 2;
    }

    /// Runs accesses; returns the nanoseconds per access.
    pub(super) fn run(&mut self, accesses: usize) -> f64 {
        let before = self.tally;
        for n in 0..accesses {
            let page = self.draw();
            self.get(page);
            if n % 500 == 0 {
                self.step();
            }
        }
        self.tally.since(&before).cost(&self.world)
    }

    pub(super) fn draw(&mut self) -> u32 {
        let (pages, (hot_pages, hot_accesses)) = (self.world.pages, self.world.hot);
        let hot = (f64::from(pages) * hot_pages) as u32;
        let drawn = if self.random.f64() < hot_accesses {
            self.random.u32(0..hot)
        } else {
            self.random.u32(hot..pages)
        };
        (drawn + self.shift) % pages
    }

    fn step(&mut self) {
        if let Some(share) = self.adaptive.as_ref().and_then(Adaptive::step) {
            self.share = share;
        }
    }

    /// A few calls take much longer than they should.
    fn noisy(&mut self, ns: u64) -> u64 {
        let ns = ns * self.random.u64(80..120) / 100;
        if self.random.u32(0..500) == 0 {
            ns + 5_000_000
        } else {
            ns
        }
    }

    pub(super) fn get(&mut self, page: u32) {
        self.tally.accesses += 1;
        let (place, popularity) = self.table.0[page as usize].get();
        let popularity = (popularity + 1).min(MAX_POPULARITY);
        match place {
            Place::Raw => {
                self.table.set_popularity(page, popularity);
                if self.policy.wants_hits() {
                    self.policy.hit(page);
                }
            }
            Place::Compressed => {
                self.tally.compressed_hits += 1;
                let ns = self.noisy(self.world.decompress_ns);
                self.costs.decompress(PAGE_BYTES as u32, ns);
                self.table.set_popularity(page, popularity);
                if popularity >= 8 {
                    self.log[self.places[page as usize] - self.log_passed].2 = false;
                    self.enter_raw(page, popularity);
                }
            }
            Place::Absent => {
                self.tally.misses += 1;
                let ns = self.noisy(self.world.read_ns);
                self.costs.read(PAGE_BYTES as u32, ns);
                self.enter_raw(page, 0);
            }
        }
        let half_full = self
            .adaptive
            .as_ref()
            .is_some_and(|adaptive| adaptive.follows(hash(page)) && adaptive.accessed(hash(page), PAGE_BYTES as u32));
        if half_full {
            self.step();
        }
    }

    fn enter_raw(&mut self, page: u32, popularity: u8) {
        self.table.0[page as usize].set((Place::Raw, popularity));
        self.policy.insert(page, hash(page));
        self.raw_bytes += PAGE_BYTES + TABLE_BYTES;
        let limit = (self.world.budget_bytes as f64 * self.share) as usize;
        if self.raw_bytes <= limit {
            return;
        }
        // Victims are chosen in batches.
        let batch = (limit / 50).min(self.raw_bytes);
        while self.raw_bytes > limit - batch.min(limit) {
            let Some(victim) = self.policy.victim(&self.table, &hash) else {
                break;
            };
            self.raw_bytes -= PAGE_BYTES + TABLE_BYTES;
            self.press(victim);
        }
        self.clean();
    }

    /// The compressed length of the page.
    pub(super) fn stored(&self, page: u32) -> Option<u32> {
        // Whether a page is sampled is independent of its size.
        let spread = 0.8 + 0.4 * (hash(!page) >> 40) as f64 / f64::from(1 << 24);
        let bytes = PAGE_BYTES as f64 / self.world.ratio * spread;
        (bytes < PAGE_BYTES as f64 * 0.875).then_some(bytes as u32)
    }

    fn press(&mut self, page: u32) {
        self.victims += 1;
        let stored = self.stored(page);
        let compresses = self.share < 1.0;
        if compresses || self.victims.is_multiple_of(64) {
            let ns = self.noisy(self.world.compress_ns);
            self.costs.compress(PAGE_BYTES as u32, ns, stored);
            if !compresses {
                let ns = self.noisy(self.world.decompress_ns);
                self.costs.decompress(PAGE_BYTES as u32, ns);
            }
            if let Some(adaptive) = &self.adaptive
                && adaptive.follows(hash(page))
            {
                adaptive.sized(hash(page), stored);
            }
        }
        self.table.0[page as usize].set((Place::Absent, 0));
        if compresses {
            self.tally.compressions += 1;
            if let Some(stored) = stored {
                self.append(page, stored as usize + 16 + TABLE_BYTES, 0);
            }
        }
    }

    fn append(&mut self, page: u32, bytes: usize, popularity: u8) {
        self.table.0[page as usize].set((Place::Compressed, popularity));
        self.places[page as usize] = self.log_passed + self.log.len();
        self.log.push_back((page, bytes, true));
        self.log_bytes += bytes;
    }

    fn clean(&mut self) {
        let limit = (self.world.budget_bytes as f64 * (1.0 - self.share)) as usize;
        if self.log_bytes <= limit {
            return;
        }
        // Segments are reclaimed as a whole.
        let segment = self.world.budget_bytes / 64;
        while self.log_bytes > limit.saturating_sub(segment) {
            let Some((page, bytes, live)) = self.log.pop_front() else {
                break;
            };
            self.log_passed += 1;
            self.log_bytes -= bytes;
            if !live {
                continue;
            }
            match another_round(self.world.policy, self.table.popularity(page)) {
                Some(popularity) => self.append(page, bytes, popularity),
                None => self.table.0[page as usize].set((Place::Absent, 0)),
            }
        }
    }
}
