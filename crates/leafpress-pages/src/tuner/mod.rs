//! How much of a cache's budget holds pages as they are, and how much holds them compressed: one machinery for the page pool and the
//! victim cache.
//!
//! A sample of the keys is followed, chosen by hash ([`sampled_keys`]). Miniatures of the cache, each with another part of the budget for
//! raw pages, are run on what happens to them ([`miniatures`]). What happens in a miniature times what it takes here ([`costs`]) is what its
//! part would cost. Once enough was seen ([`readiness`]), the cache's own part goes towards the cheapest ([`controller`]). All that takes a
//! bounded part of the processor time that the process uses ([`cpu_budget`]).
//!
//! [`Tuner`] joins these. What a cache adds is its miniature and the events that it is run on ([`Model`]).

pub(crate) mod controller;
pub(crate) mod costs;
pub(crate) mod cpu_budget;
pub(crate) mod miniatures;
pub(crate) mod readiness;
pub(crate) mod sampled_keys;
mod split;

use std::ops::DerefMut;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use crossbeam_queue::ArrayQueue;
use leafpress_base::sync::plain::Mutex;

use controller::Controller;
use costs::{Costs, Prices};
use cpu_budget::{CpuBudget, Load, Pace, Spent};
use leafpress_base::mem::OutOfMemory;
use miniatures::Miniatures;
use readiness::Readiness;
pub use split::{ParseRawShareError, RawShare};

/// A cache's miniatures, and the events that they are run on.
pub(crate) trait Model: DerefMut<Target = Miniatures<Self::Miniature>> {
    /// The cache in small.
    type Miniature: miniatures::Miniature;
    /// Something that happened to a key that is followed.
    type Event: Copy;

    /// Runs events through the miniatures; returns the number of accesses among them.
    fn run(&mut self, events: impl Iterator<Item = Self::Event>) -> usize;

    /// Follows a part of what is followed.
    fn follow_less(&mut self, part: f64);

    /// What each of the miniatures' fractions would cost, in any unit.
    fn costs(&self, prices: &Prices) -> Result<Vec<f64>, OutOfMemory> {
        self.costs_seen(prices)
    }

    /// Memory held besides this itself and the miniatures, in bytes.
    fn other_bytes(&self) -> usize;
}

/// Makes miniatures for a budget in bytes.
type Make<M> = Box<dyn Fn(usize) -> Result<M, OutOfMemory> + Send + Sync>;

/// What differs from cache to cache.
pub(crate) struct Settings<M> {
    /// Makes miniatures for a budget in bytes.
    pub(crate) make: Make<M>,
    /// The first ones, and the budget that they were made for; [`None`] until there is a budget.
    pub(crate) first: Option<(usize, M)>,
    /// With a smaller budget nothing is followed, and the fraction stays.
    pub(crate) least_budget_bytes: usize,
    /// The part of the budget for raw pages to begin with, 0 to 1.
    pub(crate) fraction: f64,
    /// Events that may wait.
    pub(crate) events: usize,
    /// Keys that are followed before fewer are, rather than only now and then, when following takes too long.
    pub(crate) keys_to_keep: usize,
    /// Whether it matters how busy the processors are: where the cache's own threads compress.
    pub(crate) looks_at_load: bool,
    /// Memory to be counted besides the queue and the miniatures, in bytes.
    pub(crate) besides_bytes: usize,
}

/// The part of a cache's budget that is for raw pages, and what adapts it.
///
/// What is noted waits in a queue until a thread of the cache's calls [`Tuner::step`].
pub(crate) struct Tuner<M: Model> {
    /// A key is followed if its hash is at most this.
    pub(crate) threshold: AtomicU64,
    pub(crate) events: ArrayQueue<M::Event>,
    /// Events that found no place in the queue.
    dropped: AtomicU64,
    /// The bits of an `f64`.
    fraction: AtomicU64,
    besides_bytes: usize,
    bytes: AtomicUsize,
    deciding_ns: AtomicU64,
    pub(crate) costs: Arc<Costs>,
    pub(crate) inner: Mutex<Inner<M>>,
}

/// What only one thread at a time works with.
pub(crate) struct Inner<M> {
    make: Make<M>,
    /// [`None`] while the budget is too small, and where there was no memory for it.
    pub(crate) model: Option<M>,
    /// The budget that the model was made for.
    made_for: usize,
    least_budget_bytes: usize,
    keys_to_keep: usize,
    controller: Controller,
    /// [`None`]: as much as there is to do.
    pub(crate) cpu_budget: Option<CpuBudget>,
    load: Option<Load>,
    paused: bool,
}

impl<M: Model> Tuner<M> {
    /// Deciding needs costs: until a compressed page is there, the cache should compress and decode some pages on trial.
    pub(crate) fn new(settings: Settings<M>, costs: Arc<Costs>) -> Self {
        let (made_for, model) = settings
            .first
            .map_or((0, None), |(made_for, model)| (made_for, Some(model)));
        let tuner = Self {
            threshold: AtomicU64::new(0),
            events: ArrayQueue::new(settings.events),
            dropped: AtomicU64::new(0),
            fraction: AtomicU64::new(settings.fraction.to_bits()),
            besides_bytes: settings.besides_bytes,
            bytes: AtomicUsize::new(0),
            deciding_ns: AtomicU64::new(0),
            costs,
            inner: Mutex::new(Inner {
                make: settings.make,
                model,
                made_for,
                least_budget_bytes: settings.least_budget_bytes,
                keys_to_keep: settings.keys_to_keep,
                controller: Controller::new(settings.fraction),
                cpu_budget: Some(CpuBudget::new(Spent::now())),
                load: settings.looks_at_load.then(Load::new),
                paused: false,
            }),
        };
        if made_for > 0 {
            tuner.publish(&tuner.inner.lock());
        }
        tuner
    }

    /// Whether a key with this hash is followed. Hashes have to be spread evenly over all 64 bits.
    #[inline]
    pub(crate) fn follows(&self, hash: u64) -> bool {
        hash <= self.threshold.load(Relaxed)
    }

    /// Notes what happened to a key that is followed. What finds no place in the queue is as if it had not happened.
    pub(crate) fn note(&self, event: M::Event) {
        if self.events.push(event).is_err() {
            self.dropped.fetch_add(1, Relaxed);
        }
    }

    /// Whether [`Tuner::step`] should be called soon.
    pub(crate) fn is_due(&self) -> bool {
        self.events.len() >= self.events.capacity() / 2
    }

    /// Works off what was noted. Returns the part of the budget that is for raw pages, 0 to 1, when it has changed. Does nothing while
    /// another thread is at it. To be called every tenth of a second, and when [`Tuner::is_due`] says so.
    pub(crate) fn step(&self) -> Option<f64> {
        let mut inner = self.inner.try_lock()?;
        let before = Spent::now();
        // What comes meanwhile waits for the next step.
        let waiting = self.events.len();
        let events = (0..waiting).map_while(|_| self.events.pop());
        let (changed, accesses) = inner.step(events, &self.costs, before);
        let after = Spent::now();
        inner.pace(before, after, accesses);
        let took = after.thread.saturating_sub(before.thread).as_nanos();
        self.deciding_ns
            .fetch_add(u64::try_from(took).unwrap_or(u64::MAX), Relaxed);
        self.publish(&inner);
        changed
    }

    /// The cache has another budget.
    pub(crate) fn resize(&self, budget_bytes: usize) {
        let mut inner = self.inner.lock();
        inner.resize(budget_bytes);
        self.publish(&inner);
    }

    /// The part of the budget that is for raw pages, 0 to 1.
    pub(crate) fn fraction(&self) -> f64 {
        f64::from_bits(self.fraction.load(Relaxed))
    }

    /// Memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Processor time that steps took, in nanoseconds.
    pub(crate) fn deciding_ns(&self) -> u64 {
        self.deciding_ns.load(Relaxed)
    }

    /// Events that were not noted because the queue was full.
    #[cfg(test)]
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    pub(crate) fn publish(&self, inner: &Inner<M>) {
        let followed = inner.model.as_ref().filter(|_| !inner.paused);
        // Hardly any hash is 0.
        let threshold = followed.map_or(0, |model| model.threshold());
        // Readers on other processors keep their copy of the line while nothing changes.
        if self.threshold.load(Relaxed) != threshold {
            self.threshold.store(threshold, Relaxed);
        }
        self.fraction.store(inner.controller.fraction().to_bits(), Relaxed);
        // Each place of the queue has a stamp.
        let queue = self.events.capacity() * (size_of::<M::Event>() + size_of::<usize>());
        let model = inner
            .model
            .as_ref()
            .map_or(0, |model| size_of::<M>() + model.bytes() + model.other_bytes());
        self.bytes.store(self.besides_bytes + queue + model, Relaxed);
    }
}

impl<M: Model> Inner<M> {
    /// The fraction, when it has changed, and the accesses among the events.
    fn step(&mut self, events: impl Iterator<Item = M::Event>, costs: &Costs, now: Spent) -> (Option<f64>, usize) {
        let Some(model) = &mut self.model else {
            events.for_each(drop);
            return (None, 0);
        };
        model.set_sizes(costs.sizes());
        let accesses = model.run(events);
        // A test that says what everything costs bounds no time.
        if self.cpu_budget.is_some()
            && let Some(busy) = self.load.as_mut().and_then(|load| load.look(now))
        {
            costs.set_busy(busy);
        }
        let changed = match model.look() {
            Readiness::TooLittle => None,
            Readiness::Filling => {
                self.controller.rest();
                None
            }
            Readiness::Enough => costs.prices().and_then(|prices| {
                // Without memory it stays as it is until the next look.
                let seen = model.costs(&prices).ok()?;
                self.controller.decide(model.fractions(), &seen)
            }),
        };
        (changed, accesses)
    }

    /// Keeps to the processor time that is allowed.
    pub(crate) fn pace(&mut self, before: Spent, after: Spent, accesses: usize) {
        let (Some(cpu_budget), Some(model)) = (&mut self.cpu_budget, &mut self.model) else {
            return;
        };
        let run = (2 * model.len()).max(1024);
        match cpu_budget.account(before, after, accesses, run) {
            Pace::Same => {}
            Pace::Pause => {
                self.paused = true;
                if model.len() > self.keys_to_keep {
                    model.follow_less(0.75);
                }
            }
            Pace::Resume => {
                self.paused = false;
                model.resume();
            }
        }
    }

    fn resize(&mut self, budget_bytes: usize) {
        // Sizes of tables are those of the budget at the time: far from it they are too large, or too small.
        let fits = self.made_for / 2..=self.made_for.saturating_mul(2);
        match &mut self.model {
            _ if budget_bytes < self.least_budget_bytes => self.model = None,
            Some(model) if fits.contains(&budget_bytes) => model.resize(budget_bytes),
            _ => {
                self.made_for = budget_bytes;
                // Where there is no memory, nothing is followed until the budget changes again.
                self.model = (self.make)(budget_bytes).ok();
                self.controller.rest();
            }
        }
    }
}
