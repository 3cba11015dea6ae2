//! The events that drive the pool's miniatures.
//!
//! The paper's correction for a sample with a very hot page adds the sample's excess or deficit to the hits. Here costs
//! are compared, not ratios; hits common to all miniatures cancel; and progress is measured in accesses that were not a
//! raw hit in the smallest raw space. So a hot page has no weight, and needs no correction.

use std::ops::{Deref, DerefMut};

use super::least_raw_fraction;
use super::miniature::{Access, Miniature};
use crate::pool::PolicyKind;
use crate::tuner;
use crate::tuner::costs::UNSHRINKABLE;
use crate::tuner::miniatures::{Fullest, Miniatures, Shape};
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::{collected, room_for};

/// The simulated raw fractions, descending from 1; the last is replaced by the minimum.
const FRACTIONS: [f64; 11] = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0];
/// The fractions if there is memory for few pages.
const FEW_FRACTIONS: [f64; 6] = [1.0, 0.8, 0.6, 0.4, 0.2, 0.0];

/// With fewer pages than this all fractions are too noisy.
const FEW_PAGES: usize = 512;
/// More pages than this would not improve the accuracy.
const MAX_PAGES: usize = 4096;
/// Events that are run through one miniature at a time.
const BATCH: usize = 256;

/// Memory for the miniatures: this fraction (1/128) of the budget, plus a constant.
const BUDGET_DIVISOR: usize = 128;
const MIN_BYTES: usize = 32 << 10;

/// Memory of a page in the table of sampled keys.
const SAMPLED_BYTES: usize = 64;

/// Cost of an access besides the simulated costs, in nanoseconds.
const ACCESS_NS: f64 = 150.0;

/// While one access in this many is for a new page and there is room, the caches are filling up.
const FILLING: usize = 8;

/// An event of a sampled page.
#[derive(Debug, Clone, Copy)]
pub(in crate::pool) enum Event {
    /// A get.
    Accessed { hash: u64, raw_bytes: u32 },
    /// It was compressed to `stored` bytes, or is [`UNSHRINKABLE`].
    Sized { hash: u64, stored: u32 },
    /// It was removed from the pool and the store.
    Removed { hash: u64 },
}

#[derive(Debug, Clone, Copy)]
enum Op {
    Access(u32),
    Remove(u32),
    /// Remove the page from the compressed spaces: it is incompressible.
    Unpress(u32),
}

/// The miniatures, and the events waiting to be run on them.
pub(in crate::pool) struct Model {
    base: Miniatures<Miniature>,
    ops: Vec<Op>,
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
    /// Creates the miniatures of a pool of `budget_bytes` with pages of about `typical_page_bytes`.
    pub(super) fn new(
        kind: PolicyKind,
        promote_after_hits: u8,
        budget_bytes: usize,
        typical_page_bytes: usize,
    ) -> Result<Self, OutOfMemory> {
        let memory = budget_bytes / BUDGET_DIVISOR + MIN_BYTES;
        let pages = |fractions: &[f64]| memory / (fractions.len() * page_bytes(kind) + SAMPLED_BYTES);
        let fractions = if pages(&FRACTIONS) >= FEW_PAGES {
            &FRACTIONS[..]
        } else {
            &FEW_FRACTIONS
        };
        let least = least_raw_fraction(budget_bytes, typical_page_bytes);
        let above = fractions.iter().copied().filter(|&fraction| fraction > least);
        let fractions = collected(above.chain([least]))?;
        let pages_of = |ratio: usize| budget_bytes / (typical_page_bytes / ratio + 72).max(1) + 16;
        let shape = Shape {
            most_keys: pages(&fractions).min(MAX_PAGES).min(pages_of(8)).max(16),
            expected_keys: pages_of(3),
            fractions,
            used_fraction: 1.0,
            filling: FILLING,
            fullness_indicator: Fullest::First,
            access_ns: ACCESS_NS,
        };
        let make = |_, fraction, tables| Miniature::new(kind, promote_after_hits, fraction, tables);
        Ok(Self {
            base: Miniatures::new(shape, budget_bytes, make)?,
            ops: room_for(BATCH)?,
        })
    }

    /// Converts an event into operations of the miniatures.
    fn take_in(&mut self, event: Event, threshold: u64) {
        let (Event::Accessed { hash, .. } | Event::Sized { hash, .. } | Event::Removed { hash }) = event;
        if hash > threshold {
            // Recorded before the threshold was lowered.
            return;
        }
        let found = self.sampled.find(hash);
        match event {
            Event::Accessed { raw_bytes, .. } => {
                let same = found.filter(|&slot| self.sampled.raw_bytes(slot) == raw_bytes);
                if same.is_none() {
                    // A page of another length is a different page.
                    self.drop_page(found);
                }
                // Without memory it is not sampled.
                if let Some(slot) = same.or_else(|| self.follow(hash, raw_bytes).ok()) {
                    self.ops.push(Op::Access(slot));
                }
            }
            Event::Sized { stored, .. } => {
                let slot = self.sampled.set_stored(hash, stored);
                if let Some(slot) = slot.filter(|_| stored == UNSHRINKABLE) {
                    self.ops.push(Op::Unpress(slot));
                }
            }
            Event::Removed { .. } => self.drop_page(found),
        }
    }

    fn drop_page(&mut self, slot: Option<u32>) {
        if let Some(slot) = slot {
            self.sampled.unlist(slot);
            self.ops.push(Op::Remove(slot));
        }
    }

    fn run_batch(&mut self) {
        let Self { base, ops } = self;
        let mut cold = 0;
        let last = base.minis.len() - 1;
        for (index, mini) in base.minis.iter_mut().enumerate() {
            mini.weight = if base.progress.counts() { 1.0 } else { 0.0 };
            for &op in &*ops {
                match op {
                    Op::Access(slot) => {
                        let access = mini.access(slot, &mut base.sampled);
                        if index == last && access != Access::RawHit {
                            cold += 1;
                        }
                    }
                    Op::Remove(slot) => mini.remove(slot, &mut base.sampled),
                    Op::Unpress(slot) => mini.unpress(slot, &mut base.sampled),
                }
            }
        }
        base.sampled.tidy();
        if base.progress.counts() {
            let gets = ops.iter().filter(|op| matches!(op, Op::Access(_)));
            base.accesses += gets.count() as f64;
        }
        // Raw hits in the smallest raw space are raw hits in all.
        base.progress.saw(cold);
    }
}

impl tuner::Model for Model {
    type Event = Event;
    type Miniature = Miniature;

    fn run(&mut self, mut events: impl Iterator<Item = Event>) -> usize {
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
            if self.len() > self.most_keys() {
                self.follow_less(0.75);
            }
            if ended {
                return accesses;
            }
        }
    }

    fn follow_less(&mut self, part: f64) {
        self.lower_threshold(part);
        // A removal, not a batch: it yields no observations.
        let base = &mut self.base;
        let (threshold, mut from) = (base.threshold(), 0);
        while let Some(slot) = base.sampled.next_above(threshold, from) {
            base.sampled.unlist(slot);
            for mini in &mut base.minis {
                mini.remove(slot, &mut base.sampled);
            }
            from = slot + 1;
        }
        base.sampled.tidy();
    }

    fn other_bytes(&self) -> usize {
        self.ops.capacity() * size_of::<Op>()
    }
}

#[cfg(test)]
impl Model {
    /// Aged number of accesses.
    pub(super) fn followed_accesses(&self) -> f64 {
        self.accesses
    }

    /// Panics if the parts contradict each other.
    pub(super) fn validate(&self) {
        let mut holders = vec![0; self.sampled.slots()];
        for mini in &self.minis {
            mini.validate(&self.sampled, &mut holders);
        }
        self.sampled.validate(&holders);
    }
}

/// Memory of a sampled page in a miniature, including the unused half after a doubling, in bytes.
fn page_bytes(kind: PolicyKind) -> usize {
    let links = 8;
    let log = 8;
    let state_and_place = 5;
    let policy = match kind {
        PolicyKind::Clock | PolicyKind::Lru => 0,
        PolicyKind::S3Fifo => 5,
    };
    links + log + state_and_place + policy
}
