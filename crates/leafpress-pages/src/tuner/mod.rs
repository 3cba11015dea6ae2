//! The tuner: decides how much of a cache's budget is for uncompressed pages and how much for compressed ones. It is
//! shared by the page pool and the victim cache.
//!
//! A sample of the keys is chosen by hash ([`sampled_keys`]). Miniatures of the cache, each with a different fraction
//! of its budget for raw pages, are driven by the events of these keys ([`miniatures`]). The simulated events times
//! their measured costs ([`costs`]) are the cost of a fraction. Once enough was observed ([`readiness`]), the cache's
//! own fraction moves towards the cheapest ([`controller`]). All of that takes a bounded fraction of the process's
//! processor time ([`cpu_budget`]).
//!
//! [`Tuner`] combines these. A cache provides its miniature and the events that drive it ([`Model`]).

pub(crate) mod controller;
pub(crate) mod costs;
pub(crate) mod cpu_budget;
pub(crate) mod miniatures;
pub(crate) mod readiness;
pub(crate) mod sampled_keys;

use std::ops::DerefMut;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use crossbeam_queue::ArrayQueue;
use leafpress_base::sync::plain::Mutex;

use controller::Controller;
use costs::{Costs, Prices};
use cpu_budget::{CpuBudget, Load, Pace, Spent};
use leafpress_base::mem::OutOfMemory;
pub use leafpress_base::raw_share::{ParseRawShareError, RawShare};
use miniatures::Miniatures;
use readiness::Readiness;

/// A cache's miniatures, and the events that drive them.
pub(crate) trait Model: DerefMut<Target = Miniatures<Self::Miniature>> {
    /// The miniature of the cache.
    type Miniature: miniatures::Miniature;
    /// An event of a sampled key.
    type Event: Copy;

    /// Runs events through the miniatures; returns the number of accesses among them.
    fn run(&mut self, events: impl Iterator<Item = Self::Event>) -> usize;

    /// Reduces the sample to a part of it.
    fn follow_less(&mut self, part: f64);

    /// Returns the cost of each of the miniatures' fractions, in any unit.
    fn costs(&self, prices: &Prices) -> Result<Vec<f64>, OutOfMemory> {
        self.costs_seen(prices)
    }

    /// Memory besides this struct and the miniatures, in bytes.
    fn other_bytes(&self) -> usize;
}

/// Creates miniatures for a budget in bytes.
type Make<M> = Box<dyn Fn(usize) -> Result<M, OutOfMemory> + Send + Sync>;

/// Parameters of a kind of cache.
pub(crate) struct Settings<M> {
    /// Creates miniatures for a budget in bytes.
    pub(crate) make: Make<M>,
    /// The initial miniatures, and their budget; [`None`] until there is a budget.
    pub(crate) first: Option<(usize, M)>,
    /// With a smaller budget nothing is sampled, and the fraction stays.
    pub(crate) least_budget_bytes: usize,
    /// The initial fraction of the budget for raw pages, 0 to 1.
    pub(crate) fraction: f64,
    /// Capacity of the event queue.
    pub(crate) events: usize,
    /// Number of sampled keys above which the sample is reduced when sampling takes too long; below, sampling is paused
    /// instead.
    pub(crate) keys_to_keep: usize,
    /// Whether the processors' load matters: if the cache's own threads compress.
    pub(crate) looks_at_load: bool,
    /// Additional memory to account for, in bytes.
    pub(crate) extra_bytes: usize,
}

/// The fraction of a cache's budget for raw pages, and its adaptation.
///
/// Events wait in a queue until a thread of the cache calls [`Tuner::step`].
pub(crate) struct Tuner<M: Model> {
    /// A key is sampled if its hash is at most this.
    pub(crate) threshold: AtomicU64,
    pub(crate) events: ArrayQueue<M::Event>,
    /// Events dropped because the queue was full.
    dropped: AtomicU64,
    /// The bits of an `f64`.
    fraction: AtomicU64,
    extra_bytes: usize,
    bytes: AtomicUsize,
    deciding_ns: AtomicU64,
    pub(crate) costs: Arc<Costs>,
    pub(crate) inner: Mutex<TunerState<M>>,
}

/// State used by one thread at a time.
pub(crate) struct TunerState<M> {
    make: Make<M>,
    /// [`None`] while the budget is too small, and if there was no memory for it.
    pub(crate) model: Option<M>,
    /// The budget of the model's construction.
    made_for: usize,
    least_budget_bytes: usize,
    keys_to_keep: usize,
    controller: Controller,
    /// [`None`] for no limit.
    pub(crate) cpu_budget: Option<CpuBudget>,
    load: Option<Load>,
    paused: bool,
}

impl<M: Model> Tuner<M> {
    /// Creates a tuner. Decisions need costs: until there is a compressed page, the cache should compress and decode
    /// some pages as probes.
    pub(crate) fn new(settings: Settings<M>, costs: Arc<Costs>) -> Self {
        let (made_for, model) = settings
            .first
            .map_or((0, None), |(made_for, model)| (made_for, Some(model)));
        let tuner = Self {
            threshold: AtomicU64::new(0),
            events: ArrayQueue::new(settings.events),
            dropped: AtomicU64::new(0),
            fraction: AtomicU64::new(settings.fraction.to_bits()),
            extra_bytes: settings.extra_bytes,
            bytes: AtomicUsize::new(0),
            deciding_ns: AtomicU64::new(0),
            costs,
            inner: Mutex::new(TunerState {
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

    /// Returns true if a key with this hash is sampled. Hashes have to be uniform over all 64 bits.
    #[inline]
    pub(crate) fn follows(&self, hash: u64) -> bool {
        hash <= self.threshold.load(Relaxed)
    }

    /// Queues an event of a sampled key. If the queue is full, the event is dropped.
    pub(crate) fn note(&self, event: M::Event) {
        if self.events.push(event).is_err() {
            self.dropped.fetch_add(1, Relaxed);
        }
    }

    /// Returns true if [`Tuner::step`] should be called soon.
    pub(crate) fn is_due(&self) -> bool {
        self.events.len() >= self.events.capacity() / 2
    }

    /// Processes the queued events. Returns the fraction of the budget for raw pages, 0 to 1, if it has changed. Does
    /// nothing while another thread is in this method. To be called every tenth of a second, and when [`Tuner::is_due`]
    /// returns true.
    pub(crate) fn step(&self) -> Option<f64> {
        let mut inner = self.inner.try_lock()?;
        let before = Spent::now();
        // Later events wait for the next step.
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

    /// Changes the cache's budget.
    pub(crate) fn resize(&self, budget_bytes: usize) {
        let mut inner = self.inner.lock();
        inner.resize(budget_bytes);
        self.publish(&inner);
    }

    /// The fraction of the budget for raw pages, 0 to 1.
    pub(crate) fn fraction(&self) -> f64 {
        f64::from_bits(self.fraction.load(Relaxed))
    }

    /// Memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Processor time of the steps, in nanoseconds.
    pub(crate) fn deciding_ns(&self) -> u64 {
        self.deciding_ns.load(Relaxed)
    }

    /// Number of events dropped because the queue was full.
    #[cfg(test)]
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    pub(crate) fn publish(&self, inner: &TunerState<M>) {
        let followed = inner.model.as_ref().filter(|_| !inner.paused);
        // Without a model the threshold is 0, which hardly any hash matches.
        let threshold = followed.map_or(0, |model| model.threshold());
        // Not stored if unchanged, so that other processors keep their copy of the cache line.
        if self.threshold.load(Relaxed) != threshold {
            self.threshold.store(threshold, Relaxed);
        }
        self.fraction.store(inner.controller.fraction().to_bits(), Relaxed);
        // Each element of the queue has a stamp.
        let queue = self.events.capacity() * (size_of::<M::Event>() + size_of::<usize>());
        let model = inner
            .model
            .as_ref()
            .map_or(0, |model| size_of::<M>() + model.bytes() + model.other_bytes());
        self.bytes.store(self.extra_bytes + queue + model, Relaxed);
    }
}

impl<M: Model> TunerState<M> {
    /// Returns the fraction if it has changed, and the number of accesses among the events.
    fn step(&mut self, events: impl Iterator<Item = M::Event>, costs: &Costs, now: Spent) -> (Option<f64>, usize) {
        let Some(model) = &mut self.model else {
            events.for_each(drop);
            return (None, 0);
        };
        model.set_sizes(costs.sizes());
        let accesses = model.run(events);
        // A test that sets the costs does not limit the time.
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
                // Without memory there is no change until the next decision.
                let seen = model.costs(&prices).ok()?;
                self.controller.decide(model.fractions(), &seen)
            }),
        };
        (changed, accesses)
    }

    /// Enforces the limit of the processor time.
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
        // Tables are sized for the budget of their construction: with a very different one they are too large, or too
        // small.
        let fits = self.made_for / 2..=self.made_for.saturating_mul(2);
        match &mut self.model {
            _ if budget_bytes < self.least_budget_bytes => self.model = None,
            Some(model) if fits.contains(&budget_bytes) => model.resize(budget_bytes),
            _ => {
                self.made_for = budget_bytes;
                // Without memory nothing is sampled until the budget changes again.
                self.model = (self.make)(budget_bytes).ok();
                self.controller.rest();
            }
        }
    }
}
