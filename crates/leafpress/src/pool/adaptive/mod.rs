//! The share that adapts: how much of the budget raw pages get so that an access takes least.
//!
//! A sample of the pages is followed. Miniatures of the pool, each with another share, are run on the sample's accesses; what
//! happens in them, times what it costs here, is what their shares would cost; and the pool's share goes to the cheapest. The
//! parts: [`miniature`] the pool in small, [`model`] all miniatures, and what the pool has in common with the victim cache,
//! [`crate::share`].
//!
//! Accesses are noted in a queue and run through the miniatures by whoever calls [`Adaptive::step`].

mod miniature;
mod model;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use crossbeam_queue::ArrayQueue;
use parking_lot::Mutex;

use model::{Event, Model};

use super::PolicyKind;
pub(super) use crate::share::costs::Costs;
use crate::share::costs::UNSHRINKABLE;
use crate::share::course::Course;
use crate::share::effort::{Effort, Load, Pace, Spent};
use crate::share::watch::Sight;

/// The share to start with where none is given.
pub(super) const DEFAULT_RAW_FRACTION: f64 = 0.5;

/// The fewest raw pages that are left, where they are no large part of all: with fewer, threads that read pages wait for frames, which no
/// model of hits and misses sees.
const LEAST_RAW_PAGES: usize = 48;
/// The least part of the memory for pages that raw ones get where that is many pages, and the part that the fewest are at most.
const LEAST_PART: f64 = 1.0 / 64.0;
const LARGE_PART: f64 = 1.0 / 4.0;

/// The least part of the memory for pages that raw ones get.
fn least_raw_fraction(budget_bytes: usize, typical_page_bytes: usize) -> f64 {
    let part = (LEAST_RAW_PAGES * typical_page_bytes) as f64 / budget_bytes.max(1) as f64;
    part.clamp(LEAST_PART, LARGE_PART)
}

/// Followed pages that there are before fewer are followed, rather than only now and then, when following takes too long.
const PAGES_TO_KEEP: usize = 1024;

/// The adaptive share of a pool.
pub(super) struct Adaptive {
    /// A page is followed if its hash is at most this.
    threshold: AtomicU64,
    events: ArrayQueue<Event>,
    dropped: AtomicU64,
    /// The bits of an `f64`.
    raw_fraction: AtomicU64,
    bytes: AtomicUsize,
    deciding_ns: AtomicU64,
    costs: Arc<Costs>,
    inner: Mutex<Inner>,
}

struct Inner {
    policy: PolicyKind,
    restore_after: u8,
    typical_page_bytes: usize,
    /// The budget that the model was made for.
    made_for: usize,
    model: Model,
    course: Course,
    /// [`None`]: as much as there is to do.
    effort: Option<Effort>,
    load: Load,
    paused: bool,
}

impl Adaptive {
    /// For a pool of `budget_bytes` and pages of about `typical_page_bytes`, which starts with `raw_fraction` of the budget for raw
    /// pages, 0 to 1, though never less than [`least_raw_fraction`]. Deciding needs costs: until a compressed page is there, the pool should compress and decode some victims
    /// on trial.
    pub(super) fn new(
        policy: PolicyKind,
        restore_after: u8,
        budget_bytes: usize,
        typical_page_bytes: usize,
        raw_fraction: f64,
        costs: Arc<Costs>,
    ) -> Self {
        let model = Model::new(policy, restore_after, budget_bytes, typical_page_bytes);
        let raw_fraction = if raw_fraction.is_finite() {
            raw_fraction.clamp(least_raw_fraction(budget_bytes, typical_page_bytes), 1.0)
        } else {
            DEFAULT_RAW_FRACTION
        };
        let adaptive = Self {
            threshold: AtomicU64::new(model.threshold()),
            events: ArrayQueue::new((model.most_pages() / 2).next_power_of_two().clamp(128, 1024)),
            dropped: AtomicU64::new(0),
            raw_fraction: AtomicU64::new(raw_fraction.to_bits()),
            bytes: AtomicUsize::new(0),
            deciding_ns: AtomicU64::new(0),
            costs,
            inner: Mutex::new(Inner {
                policy,
                restore_after,
                typical_page_bytes,
                made_for: budget_bytes,
                model,
                course: Course::new(raw_fraction),
                effort: Some(Effort::new(Spent::now())),
                load: Load::new(),
                paused: false,
            }),
        };
        adaptive.publish(&adaptive.inner.lock());
        adaptive
    }

    /// Whether a page with this hash is followed. Hashes have to be spread evenly over all 64 bits.
    #[inline]
    pub(super) fn follows(&self, hash: u64) -> bool {
        hash <= self.threshold.load(Relaxed)
    }

    /// A followed page of this length was got, wherever it was. Returns whether [`Adaptive::step`] should be called soon, because the
    /// queue is half full.
    pub(super) fn accessed(&self, hash: u64, raw_bytes: u32) -> bool {
        self.note(Event::Accessed { hash, raw_bytes });
        self.events.len() >= self.events.capacity() / 2
    }

    /// A followed page was removed from the pool and the store. Not for pages that leave to make room.
    pub(super) fn removed(&self, hash: u64) {
        self.note(Event::Removed { hash });
    }

    /// A followed page was compressed to `stored` bytes, or did not shrink enough to be kept compressed.
    pub(super) fn sized(&self, hash: u64, stored: Option<u32>) {
        let stored = stored.unwrap_or(UNSHRINKABLE);
        self.note(Event::Sized { hash, stored });
    }

    fn note(&self, event: Event) {
        if self.events.push(event).is_err() {
            self.dropped.fetch_add(1, Relaxed);
        }
    }

    /// Works off what was noted. Returns the part of the budget that is for raw pages, 0 to 1, when it has changed. Does nothing
    /// while another thread is at it. To be called every tenth of a second, and when [`Adaptive::accessed`] says so.
    pub(super) fn step(&self) -> Option<f64> {
        let mut inner = self.inner.try_lock()?;
        let before = Spent::now();
        // What comes meanwhile waits for the next step.
        let waiting = self.events.len();
        inner.model.set_sizes(self.costs.sizes());
        let accesses = inner.model.run((0..waiting).map_while(|_| self.events.pop()));
        inner.look_at_load(&self.costs, before);
        let changed = inner.decide(&self.costs);
        let after = Spent::now();
        inner.pace(before, after, accesses);
        let took = after.thread.saturating_sub(before.thread).as_nanos();
        self.deciding_ns
            .fetch_add(u64::try_from(took).unwrap_or(u64::MAX), Relaxed);
        self.publish(&inner);
        changed
    }

    /// The pool has another budget.
    pub(super) fn resize(&self, budget_bytes: usize) {
        let mut inner = self.inner.lock();
        inner.resize(budget_bytes);
        self.publish(&inner);
    }

    /// The part of the budget that is for raw pages, 0 to 1.
    pub(super) fn raw_fraction(&self) -> f64 {
        f64::from_bits(self.raw_fraction.load(Relaxed))
    }

    /// Memory held, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Processor time that steps took, in nanoseconds.
    pub(super) fn deciding_ns(&self) -> u64 {
        self.deciding_ns.load(Relaxed)
    }

    /// Accesses and others that were not noted because the queue was full.
    #[cfg(test)]
    fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    fn publish(&self, inner: &Inner) {
        // Hardly any hash is 0.
        let threshold = if inner.paused { 0 } else { inner.model.threshold() };
        // Readers on other processors keep their copy of the line while nothing changes.
        if self.threshold.load(Relaxed) != threshold {
            self.threshold.store(threshold, Relaxed);
        }
        self.raw_fraction.store(inner.course.share().to_bits(), Relaxed);
        // Each place of the queue has a stamp.
        let queue = self.events.capacity() * (size_of::<Event>() + size_of::<usize>());
        let bytes = size_of::<Self>() + size_of::<Costs>() + queue + inner.model.bytes();
        self.bytes.store(bytes, Relaxed);
    }
}

impl Inner {
    fn decide(&mut self, costs: &Costs) -> Option<f64> {
        match self.model.look() {
            Sight::TooLittle => None,
            Sight::Filling => {
                self.course.rest();
                None
            }
            Sight::Enough => {
                let prices = costs.prices()?;
                self.course.decide(self.model.shares(), &self.model.costs(&prices))
            }
        }
    }

    /// Notes how busy processors are, unless a test says what everything costs.
    fn look_at_load(&mut self, costs: &Costs, now: Spent) {
        if self.effort.is_some()
            && let Some(busy) = self.load.look(now)
        {
            costs.set_busy(busy);
        }
    }

    /// Keeps to the processor time that is allowed.
    fn pace(&mut self, before: Spent, after: Spent, accesses: usize) {
        let run = (2 * self.model.len()).max(1024);
        let Some(effort) = &mut self.effort else {
            return;
        };
        match effort.account(before, after, accesses, run) {
            Pace::Same => {}
            Pace::Pause => {
                self.paused = true;
                if self.model.len() > PAGES_TO_KEEP {
                    self.model.follow_less(0.75);
                }
            }
            Pace::Resume => {
                self.paused = false;
                self.model.resume();
            }
        }
    }

    fn resize(&mut self, budget_bytes: usize) {
        // Sizes of tables are those of the budget at the time: far from it they are too large, or too small.
        let fits = self.made_for / 2..=self.made_for.saturating_mul(2);
        if fits.contains(&budget_bytes) {
            self.model.resize(budget_bytes);
        } else {
            self.made_for = budget_bytes;
            self.model = Model::new(self.policy, self.restore_after, budget_bytes, self.typical_page_bytes);
            self.course.rest();
        }
    }
}
