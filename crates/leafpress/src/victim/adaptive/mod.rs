//! The share that adapts: how much of the memory keeps blocks raw that could be compressed, so that a lookup takes least.
//!
//! As in the page pool, a sample of the blocks is followed, chosen by hash; miniatures of the cache, each with another share, are run on
//! what is looked up and put in; and what happens in each, times what it costs here, is what its share would cost. The costs, the sample
//! and the way the share goes are the pool's own ([`crate::share`]); the miniatures are this cache's.
//!
//! What is noted waits in a queue until the cache's thread calls [`Adaptive::step`].

mod miniature;
mod model;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use crossbeam_queue::ArrayQueue;
use parking_lot::Mutex;

use super::Taking;
use crate::share::costs::{Costs, UNSHRINKABLE};
use crate::share::course::Course;
use crate::share::effort::{Effort, Pace, Spent};
use crate::share::watch::Sight;
use model::{Event, Model};

/// The share to begin with: nothing is known of misses then, and all is known of the codec after some blocks.
const FIRST_SHARE: f64 = 0.0;
/// Events that may wait.
const QUEUE: usize = 256;
/// With a smaller budget nothing is followed, and the share stays: of so few blocks no sample would tell anything.
const LEAST_BUDGET_BYTES: usize = 3 << 20;
/// Followed blocks that there are before fewer are followed, rather than only now and then, when following takes too long.
const BLOCKS_TO_KEEP: usize = 1024;

/// The adaptive share of a cache.
pub(super) struct Adaptive {
    /// A block is followed if its hash is at most this.
    threshold: AtomicU64,
    events: ArrayQueue<Event>,
    /// The bits of an `f64`.
    share: AtomicU64,
    bytes: AtomicUsize,
    deciding_ns: AtomicU64,
    costs: Arc<Costs>,
    inner: Mutex<Inner>,
}

struct Inner {
    /// [`None`] while the budget is too small.
    model: Option<Model>,
    /// The budget that the model was made for.
    made_for: usize,
    course: Course,
    effort: Option<Effort>,
    paused: bool,
}

impl Adaptive {
    /// Follows nothing until there is a budget.
    pub(super) fn new(costs: Arc<Costs>) -> Self {
        Self {
            threshold: AtomicU64::new(0),
            events: ArrayQueue::new(QUEUE),
            share: AtomicU64::new(FIRST_SHARE.to_bits()),
            bytes: AtomicUsize::new(0),
            deciding_ns: AtomicU64::new(0),
            costs,
            inner: Mutex::new(Inner {
                model: None,
                made_for: 0,
                course: Course::new(FIRST_SHARE),
                effort: Some(Effort::new(Spent::now())),
                paused: false,
            }),
        }
    }

    /// Whether a block with this hash is followed. Hashes have to be spread evenly over all 64 bits.
    #[inline]
    pub(super) fn follows(&self, hash: u64) -> bool {
        hash <= self.threshold.load(Relaxed)
    }

    /// A followed block was looked up, and was here if it has a length. `asked`: how often it was asked for lately.
    pub(super) fn looked(&self, hash: u64, asked: u8, raw_bytes: Option<u32>, taking: Taking) {
        self.note(Event::Looked {
            hash,
            asked,
            found: raw_bytes.unwrap_or(0),
            taking,
        });
    }

    /// A followed block that could be compressed was to be put in.
    pub(super) fn offered(&self, hash: u64, asked: u8, raw_bytes: u32, force: bool) {
        self.note(Event::Offered {
            hash,
            asked,
            raw_bytes,
            force,
        });
    }

    /// A followed block was erased by name.
    pub(super) fn erased(&self, hash: u64) {
        self.note(Event::Erased { hash });
    }

    /// A followed block was compressed to `stored` bytes, or did not shrink enough to be kept compressed.
    pub(super) fn sized(&self, hash: u64, stored: Option<u32>) {
        let stored = stored.unwrap_or(UNSHRINKABLE);
        self.note(Event::Sized { hash, stored });
    }

    /// What finds no place in the queue is as if it was not followed.
    fn note(&self, event: Event) {
        let _ = self.events.push(event);
    }

    /// Whether [`Adaptive::step`] should be called soon.
    pub(super) fn is_due(&self) -> bool {
        self.events.len() >= QUEUE / 2
    }

    /// Works off what was noted. Returns the share, 0 to 1, when it has changed.
    pub(super) fn step(&self) -> Option<f64> {
        let mut inner = self.inner.try_lock()?;
        let before = Spent::now();
        // What comes meanwhile waits for the next step.
        let waiting = self.events.len();
        let events = (0..waiting).map_while(|_| self.events.pop());
        let (changed, lookups) = inner.step(events, &self.costs);
        let after = Spent::now();
        inner.pace(before, after, lookups);
        let took = after.thread.saturating_sub(before.thread).as_nanos();
        self.deciding_ns
            .fetch_add(u64::try_from(took).unwrap_or(u64::MAX), Relaxed);
        self.publish(&inner);
        changed
    }

    /// The cache has another budget for blocks. Returns the memory, in bytes, that deciding takes of it at most.
    pub(super) fn resize(&self, budget_bytes: usize) -> usize {
        let mut inner = self.inner.lock();
        inner.resize(budget_bytes);
        self.publish(&inner);
        // Tables grow by some blocks now and then.
        self.bytes() + self.bytes() / 16
    }

    /// The share for raw blocks, 0 to 1.
    pub(super) fn share(&self) -> f64 {
        f64::from_bits(self.share.load(Relaxed))
    }

    /// Memory held, in bytes, besides this itself.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Processor time that steps took, in nanoseconds.
    pub(super) fn deciding_ns(&self) -> u64 {
        self.deciding_ns.load(Relaxed)
    }

    fn publish(&self, inner: &Inner) {
        let followed = inner.model.as_ref().filter(|_| !inner.paused);
        // Hardly any hash is 0.
        let threshold = followed.map_or(0, Model::threshold);
        // Readers on other processors keep their copy of the line while nothing changes.
        if self.threshold.load(Relaxed) != threshold {
            self.threshold.store(threshold, Relaxed);
        }
        self.share.store(inner.course.share().to_bits(), Relaxed);
        // Each place of the queue has a stamp.
        let queue = QUEUE * (size_of::<Event>() + size_of::<usize>());
        let bytes = queue + inner.model.as_ref().map_or(0, Model::bytes);
        self.bytes.store(bytes, Relaxed);
    }
}

impl Inner {
    /// The share, when it has changed, and the lookups among the events.
    fn step(&mut self, events: impl Iterator<Item = Event>, costs: &Costs) -> (Option<f64>, usize) {
        let Some(model) = &mut self.model else {
            events.for_each(drop);
            return (None, 0);
        };
        model.set_sizes(costs.sizes());
        let lookups = model.run(events);
        let changed = match model.look() {
            Sight::TooLittle => None,
            Sight::Filling => {
                self.course.rest();
                None
            }
            Sight::Enough => costs
                .prices()
                .and_then(|prices| self.course.decide(model.shares(), &model.costs(&prices))),
        };
        (changed, lookups)
    }

    /// Keeps to the processor time that is allowed.
    fn pace(&mut self, before: Spent, after: Spent, lookups: usize) {
        let (Some(effort), Some(model)) = (&mut self.effort, &mut self.model) else {
            return;
        };
        let run = (2 * model.len()).max(1024);
        match effort.account(before, after, lookups, run) {
            Pace::Same => {}
            Pace::Pause => {
                self.paused = true;
                if model.len() > BLOCKS_TO_KEEP {
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
            _ if budget_bytes < LEAST_BUDGET_BYTES => self.model = None,
            Some(model) if fits.contains(&budget_bytes) => model.resize(budget_bytes),
            _ => {
                self.made_for = budget_bytes;
                self.model = Some(Model::new(budget_bytes));
                self.course.rest();
            }
        }
    }
}
