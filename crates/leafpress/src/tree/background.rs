//! Work that is done beside the writers: compaction of leaves past the watermark, and dictionary training.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use super::Error;
use super::context::Count;
use super::core::Core;
use super::dictionary::FIRST_TRAINING_LEAVES;
use super::leaf::Leaf;
use super::memory::Memory;
use super::sync::{Condvar, Mutex};
use super::work::{Locked, Work};

/// Leaves the queue holds.
const QUEUE_LEAVES: usize = 1024;

/// The queue of leaves to compact, and what the background threads are told.
#[derive(Default)]
pub(crate) struct Background {
    state: Mutex<State>,
    /// A leaf was queued, or the tree is going: for the threads that compact.
    queued: Condvar,
    /// A training is due, or the tree is going: for the thread that trains.
    due: Condvar,
    /// Some work was done.
    done: Condvar,
    /// Fill of a landing buffer, in percent, at which its leaf is offered; `None` when no thread compacts.
    pub watermark_pct: Option<u8>,
    leaves: AtomicUsize,
    /// Leaves at which a dictionary is trained next.
    train_at: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    /// Any key of the leaf, and its shard.
    queue: VecDeque<(usize, Vec<u8>)>,
    /// Threads that compact or train now.
    at_work: usize,
    training_due: bool,
    stop: bool,
}

impl State {
    fn idle(&self) -> bool {
        self.stop || (self.queue.is_empty() && self.at_work == 0 && !self.training_due)
    }
}

impl Background {
    pub(crate) fn new(watermark_pct: Option<u8>) -> Self {
        Self {
            watermark_pct,
            train_at: AtomicUsize::new(FIRST_TRAINING_LEAVES),
            ..Self::default()
        }
    }

    /// Offers a leaf whose landing buffer has grown, to be compacted if it is past the watermark.
    #[inline]
    pub(crate) fn offer(&self, work: &Work<'_>, leaf: Leaf, key: &[u8]) {
        if let Some(watermark_pct) = self.watermark_pct
            && past_watermark(leaf, watermark_pct)
        {
            self.enqueue(work, leaf, key);
        }
    }

    fn enqueue(&self, work: &Work<'_>, leaf: Leaf, key: &[u8]) {
        work.context.count(Count::BgEnqueueAttempts);
        if leaf.header().queued.swap(true, Ordering::Relaxed) {
            work.context.count(Count::BgEnqueueDuplicates);
            return;
        }
        let shard = work
            .core
            .shards
            .iter()
            .position(|shard| std::ptr::eq(shard, work.shard))
            .unwrap_or_default();
        let mut state = self.state.lock();
        if state.queue.len() >= QUEUE_LEAVES {
            drop(state);
            leaf.header().queued.store(false, Ordering::Relaxed);
            work.context.count(Count::BgQueueFull);
            return;
        }
        state.queue.push_back((shard, key.to_vec()));
        drop(state);
        work.context.count(Count::BgEnqueued);
        self.queued.notify_one();
    }

    /// The tree has this many leaves more.
    pub(crate) fn leaves_grew(&self, core: &Core, more: usize) {
        if !core.dictionaries.auto {
            return;
        }
        let leaves = self.leaves.fetch_add(more, Ordering::Relaxed) + more;
        let due = self.train_at.load(Ordering::Relaxed);
        if leaves < due {
            return;
        }
        let next = leaves.next_power_of_two().saturating_mul(4);
        if self
            .train_at
            .compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
        {
            self.state.lock().training_due = true;
            self.due.notify_one();
        }
    }

    /// Waits until nothing is queued or at work.
    pub(crate) fn settle(&self) {
        let mut state = self.state.lock();
        while !state.idle() {
            self.done.wait(&mut state);
        }
    }

    pub(crate) fn stop(&self) {
        self.state.lock().stop = true;
        self.queued.notify_all();
        self.due.notify_all();
        self.done.notify_all();
    }

    /// Starts the threads: `compactors` of them, and one that trains if the tree trains.
    pub(crate) fn start(core: &Arc<Core>, compactors: usize) -> Result<Vec<JoinHandle<()>>, Error> {
        let mut threads = Vec::new();
        let trainer = usize::from(core.dictionaries.auto);
        for index in 0..compactors + trainer {
            let core_of_thread = Arc::clone(core);
            let compacts = index < compactors;
            let name = if compacts {
                format!("leafpress-bg-{index}")
            } else {
                "leafpress-dict".to_owned()
            };
            let spawned = std::thread::Builder::new().name(name).spawn(move || {
                if compacts {
                    core_of_thread.background.compact_loop(&core_of_thread);
                } else {
                    core_of_thread.background.train_loop(&core_of_thread);
                }
            });
            match spawned {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    core.background.stop();
                    for thread in threads {
                        let _ = thread.join();
                    }
                    return Err(Error::Thread {
                        reason: error.to_string(),
                    });
                }
            }
        }
        Ok(threads)
    }

    fn compact_loop(&self, core: &Core) {
        let mut state = self.state.lock();
        while !state.stop {
            let Some((shard, key)) = state.queue.pop_front() else {
                self.queued.wait(&mut state);
                core.contexts.get().count(Count::BgPasses);
                continue;
            };
            state.at_work += 1;
            drop(state);
            let at_work = AtWork(self);
            core.contexts.get().count(Count::BgQueuePops);
            core.compact_one(shard, &key, self.watermark_pct.unwrap_or(100));
            drop(at_work);
            state = self.state.lock();
        }
    }

    fn train_loop(&self, core: &Core) {
        let mut state = self.state.lock();
        while !state.stop {
            if !state.training_due {
                self.due.wait(&mut state);
                continue;
            }
            state.training_due = false;
            state.at_work += 1;
            drop(state);
            let at_work = AtWork(self);
            // A tree does as well as it can without a dictionary.
            let _ = core.train_dictionary();
            drop(at_work);
            state = self.state.lock();
        }
    }
}

/// A thread at work, until dropped.
struct AtWork<'b>(&'b Background);

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.at_work -= 1;
        // A caller's engine that panics ends the background's work, so that nobody waits for it for ever.
        state.stop |= std::thread::panicking();
        if state.idle() {
            self.0.done.notify_all();
        }
    }
}

fn past_watermark(leaf: Leaf, watermark_pct: u8) -> bool {
    leaf.landing_locked()
        .is_some_and(|landing| landing.used() * 100 >= landing.capacity() * usize::from(watermark_pct))
}

impl Core {
    /// Compacts the leaf that holds `key` if it is free and past the watermark.
    fn compact_one(&self, shard: usize, key: &[u8], watermark_pct: u8) {
        let context = self.contexts.get();
        let guard = self.collector.enter();
        let work = Work {
            core: self,
            shard: &self.shards[shard],
            context,
            guard: &guard,
        };
        let (leaf, parent) = work.shard.descend(key, &guard);
        let Some(locked) = work.try_lock(leaf) else {
            leaf.header().queued.store(false, Ordering::Relaxed);
            context.count(Count::BgTrylockMisses);
            return;
        };
        leaf.header().queued.store(false, Ordering::Relaxed);
        if !past_watermark(leaf, watermark_pct) {
            context.count(Count::BgSkipped);
            return;
        }
        let mut tools = context.take_tools();
        match work.compact_locked(&locked, parent, key, None, &mut tools) {
            Ok(true) => context.count(Count::BgCompactions),
            Ok(false) => context.count(Count::BgSkipped),
            Err(_) => context.count(Count::BgErrors),
        }
        context.return_tools(tools);
    }

    /// Takes each leaf's lock in turn and compacts it if its dictionary is not the current one or, with `landed`, if it has a
    /// landing buffer.
    pub(crate) fn sweep(&self, landed: bool) -> Result<(), Error> {
        let context = self.contexts.get();
        for shard in &self.shards {
            let mut key = Vec::new();
            loop {
                let guard = self.collector.enter();
                let work = Work {
                    core: self,
                    shard,
                    context,
                    guard: &guard,
                };
                let (leaf, end) = shard.descend_up(&key, &guard);
                leaf.header().lock.lock();
                let locked = Locked(leaf);
                if leaf.header().obsolete.load(Ordering::Relaxed) {
                    continue;
                }
                let current = self.dictionaries.current().map_or(std::ptr::null(), std::ptr::from_ref);
                let old = !std::ptr::eq(current, leaf.header().dictionary);
                if old || (landed && leaf.landing_locked().is_some()) {
                    // SAFETY: the guard protects the leaf.
                    let _own_heap = unsafe { Memory::follow(leaf.node()) };
                    let mut tools = context.take_tools();
                    let compacted = work.compact_locked(&locked, None, &key, None, &mut tools);
                    context.return_tools(tools);
                    if !compacted? {
                        continue;
                    }
                }
                match end {
                    Some(end) => key = end,
                    None => break,
                }
            }
        }
        Ok(())
    }
}
