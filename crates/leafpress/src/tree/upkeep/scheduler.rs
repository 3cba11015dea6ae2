//! Scheduling of background work: compaction of leaves past the watermark, dictionary training, defragmentation of the
//! heap, interpolation indexes, and compaction of landing buffers when writers are idle.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::tree::error::TreeError;
use crate::tree::index::shard::Shard;
use crate::tree::inner::TreeInner;
use crate::tree::node::inner::MAX_CHILDREN;
use crate::tree::node::landing::Landing;
use crate::tree::node::leaf::Leaf;
use crate::tree::options::Upkeep;
use crate::tree::thread_state::Count;
use crate::tree::upkeep::renewal::TURNED_FOR_SETTLE;
use crate::tree::upkeep::steps::Steps;
use crate::tree::upkeep::temperature::CompactionTime;
use crate::tree::upkeep::training::FIRST_TRAINING_LEAVES;
use crate::tree::upkeep::workers::{Compactor, UpkeepTask};
use crate::tree::write::WritePath;
use leafpress_base::mem::room::copied;
use leafpress_base::mem::trim;
use leafpress_base::reclaim::node_heap::NodeHeap;
use leafpress_base::sync::runtime::{self, TaskHandle, Waker};
use leafpress_base::sync::worker::{Health, Workers};
use leafpress_base::sync::{Condvar, Mutex, MutexGuard};

/// Capacity of the queue of leaves.
const QUEUE_LEAVES: usize = 1024;
/// Number of leaves at which interpolation indexes are first built: with fewer, a shard has one level of inner nodes.
const FIRST_SHORTCUTS_LEAVES: usize = MAX_CHILDREN;
/// The queue of leaves to compact, and the state shared with the background threads.
#[derive(Default)]
pub(crate) struct Background {
    pub(super) state: Mutex<UpkeepState>,
    /// Notified when a leaf was queued, or the tree is being dropped: for the threads that compact.
    pub(super) queued: Condvar,
    /// Wakes the upkeep task when a training, a defragmentation or interpolation indexes are due.
    pub(super) due: Waker,
    /// Notified when some work was done.
    pub(super) done: Condvar,
    /// The watermark: fill of a landing buffer, in percent, at which its leaf is queued; `None` when no thread
    /// compacts.
    pub landing_compaction_pct: Option<u8>,
    /// Number of leaves, without the first of each shard.
    leaves: AtomicUsize,
    /// Number of leaves at which a dictionary is trained next.
    train_at: AtomicUsize,
    /// Records replaced or removed until the last training; `u64::MAX` before the first.
    pub(super) turned_at: AtomicU64,
    /// Number of leaves at which interpolation indexes are built next.
    interpolation_at: AtomicUsize,
    /// Number of leaves when they were last built.
    interpolation_for: AtomicUsize,
    /// Held during a pass over all leaves.
    pub sweeping: Mutex<()>,
    /// Set together with the state's `stop`: dropping a tree does not wait for the end of a pass of defragmentation.
    pub stopped: AtomicBool,
    /// Whether a defragmentation may be requested: there is an upkeep task, and no request is pending.
    pub(super) may_request_defragment: AtomicBool,
    /// Whether a check for idle landing buffers may be requested: there is an upkeep task, and no request is pending.
    pub(super) may_request_idle_check: AtomicBool,
    /// Whether there is a task that frees the scratchpads of idle threads.
    looks_for_tools: AtomicBool,
    /// Whether there is a task that builds interpolation indexes.
    has_upkeep: AtomicBool,
    /// Where the upkeep runs.
    pub upkeep: Upkeep,
    /// The steps in progress, with upkeep by the caller.
    pub(super) steps: Mutex<Steps>,
    /// Whether a training is running.
    is_training: AtomicBool,
    /// Whether a requested compaction has not ended.
    is_compacting: AtomicBool,
    /// Health of the background threads and the upkeep task.
    pub health: Health,
    /// Compactions since the last pass that left shorter frames than a leaf should have.
    pub short_frames: AtomicUsize,
}

/// A tree's background work, ended when this is dropped. [`Background::stop`] has to be called before.
#[derive(Debug, Default)]
pub(crate) struct UpkeepHandle {
    task: Option<TaskHandle>,
    compactors: Workers,
}

impl UpkeepHandle {
    pub(crate) fn end(&mut self) {
        self.task = None;
        self.compactors.join();
    }
}

#[derive(Debug, Default)]
pub(super) struct UpkeepState {
    /// Any key of the leaf, and its shard.
    pub(super) queue: VecDeque<(usize, Vec<u8>)>,
    /// Number of threads that are compacting, training or defragmenting.
    at_work: usize,
    pub(super) training_due: bool,
    /// Whether a training is due because the records have changed, which has rest periods.
    pub(super) renewal_due: bool,
    pub(super) defragmentation_due: bool,
    /// Whether a pass that compacts was requested; it begins after a training that is due.
    pub(super) compaction_due: bool,
    pub(super) interpolation_due: bool,
    pub(super) idle_check_due: bool,
    /// Whether threads have scratchpads, which are to be freed once they are idle.
    pub(super) scratchpads_due: bool,
    /// Number of callers of `settle`, which wait for due work without rest periods before it.
    pub(super) settling: usize,
    /// Number of threads that compact.
    pub(super) compactors: usize,
    /// Whether there is an upkeep task.
    pub(super) has_upkeep_task: bool,
    pub(super) stop: bool,
}

impl UpkeepState {
    /// Returns whether no work is due, or nothing would do it.
    fn idle(&self) -> bool {
        let queued = self.compactors > 0 && !self.queue.is_empty();
        let trains = self.training_due || self.renewal_due;
        let passes = self.defragmentation_due || self.compaction_due;
        let due = self.has_upkeep_task && (trains || passes || self.interpolation_due);
        self.stop || (!queued && self.at_work == 0 && !due)
    }
}

impl Background {
    pub(crate) fn new(landing_compaction_pct: Option<u8>, upkeep: Upkeep) -> Self {
        Self {
            landing_compaction_pct,
            upkeep,
            train_at: AtomicUsize::new(FIRST_TRAINING_LEAVES),
            turned_at: AtomicU64::new(u64::MAX),
            interpolation_at: AtomicUsize::new(FIRST_SHORTCUTS_LEAVES),
            ..Self::default()
        }
    }

    /// Queues a leaf whose landing buffer has grown past the watermark for compaction.
    #[inline]
    pub(crate) fn offer(&self, work: &WritePath<'_>, leaf: Leaf, key: &[u8]) {
        if let Some(landing_compaction_pct) = self.landing_compaction_pct
            && past_watermark(leaf.landing(work.guard), landing_compaction_pct)
        {
            self.enqueue(work, leaf, key);
        }
    }

    fn enqueue(&self, work: &WritePath<'_>, leaf: Leaf, key: &[u8]) {
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
        // If there is no memory for its key, the leaf is compacted when its buffer is full.
        let key = copied(key);
        let mut state = self.state.lock();
        let has_room = state.queue.len() < QUEUE_LEAVES && state.compactors > 0 && state.queue.try_reserve(1).is_ok();
        let (Ok(key), true) = (key, has_room) else {
            drop(state);
            leaf.header().queued.store(false, Ordering::Relaxed);
            work.context.count(Count::BgQueueFull);
            return;
        };
        state.queue.push_back((shard, key));
        drop(state);
        work.context.count(Count::BgEnqueued);
        self.queued.notify_one();
    }

    /// Records that the tree has `more` additional leaves.
    pub(crate) fn leaves_grew(&self, core: &TreeInner, more: usize) {
        let leaves = self.leaves.fetch_add(more, Ordering::Relaxed).wrapping_add(more);
        self.renew_shortcuts_if_due(leaves);
        if !core.dictionaries.auto && !core.sizing.auto {
            return;
        }
        let due = self.train_at.load(Ordering::Relaxed);
        // The removal of a leaf may be counted before its creation: the count may be temporarily negative.
        if leaves.cast_signed() < due.cast_signed() {
            return;
        }
        let next = core.next_training_leaves(leaves);
        if self
            .train_at
            .compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
        {
            self.train();
        }
    }

    /// Returns the approximate number of leaves.
    pub(super) fn leaves(&self) -> usize {
        // The count may be temporarily negative: see `leaves_grew`.
        self.leaves.load(Ordering::Relaxed).cast_signed().max(0).cast_unsigned()
    }

    /// Requests new interpolation indexes when the tree has grown by a quarter: leaves that were split since are not in
    /// the current ones.
    fn renew_shortcuts_if_due(&self, leaves: usize) {
        let due = self.interpolation_at.load(Ordering::Relaxed);
        if leaves.cast_signed() < due.cast_signed() || !self.has_upkeep.load(Ordering::Relaxed) {
            return;
        }
        let next = leaves + leaves / 4;
        let exchanged = self
            .interpolation_at
            .compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed);
        if exchanged.is_ok() {
            self.state.lock().interpolation_due = true;
            self.due.wake();
        }
    }

    /// Records that interpolation indexes are being built.
    pub(crate) fn interpolation_renewed(&self) {
        self.interpolation_for
            .store(self.leaves.load(Ordering::Relaxed), Ordering::Relaxed);
        let next = self.leaves() * 5 / 4;
        self.interpolation_at
            .store(next.max(FIRST_SHORTCUTS_LEAVES), Ordering::Relaxed);
    }

    /// Records that a dictionary is trained without a request here: the next one is due at this number of leaves.
    pub(crate) fn will_train_at(&self, leaves: usize) {
        self.train_at.store(leaves, Ordering::Relaxed);
    }

    /// Requests a training.
    pub(crate) fn train(&self) {
        self.state.lock().training_due = true;
        self.due.wake();
    }

    /// Requests a pass that compacts all leaves, after a training where `trains`; returns false if nothing would do it.
    pub(crate) fn compact(&self, trains: bool) -> bool {
        let mut state = self.state.lock();
        if self.upkeep == Upkeep::Threads && !state.has_upkeep_task {
            return false;
        }
        state.training_due |= trains;
        state.compaction_due = true;
        self.set_compacting(true);
        drop(state);
        self.due.wake();
        true
    }

    /// Returns whether a requested compaction has not ended.
    pub(crate) fn is_compacting(&self) -> bool {
        self.is_compacting.load(Ordering::Relaxed)
    }

    /// Sets whether a requested compaction has not ended.
    pub(super) fn set_compacting(&self, is_compacting: bool) {
        self.is_compacting.store(is_compacting, Ordering::Relaxed);
    }

    pub(crate) fn is_training(&self) -> bool {
        self.is_training.load(Ordering::Relaxed)
    }

    /// Marks a training as running until the result is dropped.
    pub(super) fn mark_training(&self) -> impl Drop {
        self.set_training(true);
        SetWhenDropped {
            flag: &self.is_training,
            to: false,
        }
    }

    pub(super) fn set_training(&self, is_training: bool) {
        self.is_training.store(is_training, Ordering::Relaxed);
    }

    /// Records that the tree has `less` fewer leaves.
    pub(crate) fn leaves_shrank(&self, less: usize) {
        self.leaves.fetch_sub(less, Ordering::Relaxed);
    }

    /// Records that the tree was cleared, and has `less` fewer leaves. New records may be unlike the old ones, so a new
    /// training becomes due.
    pub(crate) fn leaves_cleared(&self, less: usize) {
        self.leaves_shrank(less);
        self.train_at.store(FIRST_TRAINING_LEAVES, Ordering::Relaxed);
    }

    /// Requests a defragmentation if the heap is fragmented by a quick estimate.
    pub(crate) fn defragment_if_due(&self, core: &TreeInner) {
        self.tidy_if(|| core.memory.is_fragmented());
    }

    /// Requests a defragmentation if there are holes in the heap by a slower check.
    pub(crate) fn defragment_if_holes(&self, core: &TreeInner) {
        self.tidy_if(|| core.memory.has_holes());
    }

    /// Records that a landing buffer was allocated.
    #[inline]
    pub(crate) fn landed_anew(&self) {
        if self.may_request_idle_check.load(Ordering::Relaxed)
            && self.may_request_idle_check.swap(false, Ordering::Relaxed)
        {
            self.state.lock().idle_check_due = true;
            self.due.wake();
        }
    }

    /// Records that a writer's compaction left shorter frames than a leaf should have.
    pub(crate) fn written_in_short_frames(&self) {
        self.short_frames.fetch_add(1, Ordering::Relaxed);
        self.landed_anew();
    }

    /// Records that a thread created a scratchpad.
    pub(crate) fn tools_made(&self) {
        if self.looks_for_tools.load(Ordering::Relaxed) {
            self.state.lock().scratchpads_due = true;
            self.due.wake();
        }
    }

    fn tidy_if(&self, due: impl FnOnce() -> bool) {
        if self.may_request_defragment.load(Ordering::Relaxed)
            && due()
            && self.may_request_defragment.swap(false, Ordering::Relaxed)
        {
            self.state.lock().defragmentation_due = true;
            self.due.wake();
        }
    }

    /// Waits until nothing is queued, due or in progress; also compacts landing buffers if `compacts_landed`.
    ///
    /// # Errors
    /// [`TreeError::Background`] where a thread has ended; the other work is done nevertheless.
    pub(crate) fn settle(&self, core: &TreeInner, compacts_landed: bool) -> Result<(), TreeError> {
        self.wait_until_idle(core);
        if core.outgrew_dictionary() {
            self.train();
            self.wait_until_idle(core);
        }
        if compacts_landed {
            // On an error leaves stay unchanged.
            let _ = core.temper(CompactionTime::Unlimited);
            core.compact_landed();
        }
        // Samples are taken from leaves only, so the newest records have to be in leaves first.
        self.renew_if_turned(core, TURNED_FOR_SETTLE);
        self.wait_until_idle(core);
        core.flush_retired();
        self.tidy_if(|| core.memory.can_be_defragmented());
        self.wait_until_idle(core);
        if self.interpolation_for.load(Ordering::Relaxed) != self.leaves.load(Ordering::Relaxed) {
            core.renew_interpolation();
        }
        core.flush_retired();
        core.free_scratchpads(false);
        self.health
            .failure()
            .map_or(Ok(()), |reason| Err(TreeError::Background { reason }))
    }

    fn wait_until_idle(&self, core: &TreeInner) {
        if self.upkeep == Upkeep::Caller {
            core.run_upkeep_until_idle();
        }
        let mut state = self.state.lock();
        state.settling += 1;
        self.due.wake();
        while !state.idle() {
            self.done.wait(&mut state);
        }
        state.settling -= 1;
    }

    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.state.lock().stop = true;
        self.queued.notify_all();
        self.done.notify_all();
        if self.upkeep == Upkeep::Caller {
            self.steps.lock().abandon_training();
        }
    }

    /// Starts `compactors` threads, and the upkeep task that trains dictionaries and defragments the heap, if the tree
    /// needs either.
    pub(crate) fn start(core: &Arc<TreeInner>, compactors: usize) -> Result<UpkeepHandle, TreeError> {
        let tidies = NodeHeap::CAN_BE_DEFRAGMENTED && !cfg!(shuttle);
        let background = &core.background;
        let by_caller = background.upkeep == Upkeep::Caller;
        let has_upkeep =
            by_caller || core.dictionaries.auto || core.sizing.auto || core.temperatures.is_some() || tidies;
        {
            let mut state = background.state.lock();
            // Nothing waits for work that the caller is to run.
            (state.compactors, state.has_upkeep_task) = (compactors, has_upkeep && !by_caller);
        }
        let upkeep =
            Self::start_upkeep(core, compactors, has_upkeep && !by_caller).map_err(|error| TreeError::Thread {
                reason: error.to_string(),
            })?;
        background.may_request_defragment.store(tidies, Ordering::Relaxed);
        background.has_upkeep.store(has_upkeep, Ordering::Relaxed);
        // There is no clock in a model checker.
        let idle = has_upkeep && !cfg!(any(shuttle, miri));
        background.may_request_idle_check.store(idle, Ordering::Relaxed);
        background.looks_for_tools.store(idle, Ordering::Relaxed);
        Ok(upkeep)
    }

    fn start_upkeep(core: &Arc<TreeInner>, compactors: usize, has_upkeep: bool) -> io::Result<UpkeepHandle> {
        let mut upkeep = UpkeepHandle::default();
        let mut start = || -> io::Result<()> {
            for index in 0..compactors {
                let compactor = Compactor(Arc::clone(core));
                upkeep.compactors.start(format!("leafpress-bg-{index}"), compactor)?;
            }
            if has_upkeep {
                upkeep.task = Some(runtime::start(
                    UpkeepTask::new(Arc::clone(core)),
                    Some(&core.background.due),
                )?);
            }
            Ok(())
        };
        // Threads already started end when they are dropped.
        start().inspect_err(|_| core.background.stop())?;
        Ok(upkeep)
    }

    /// Does a piece of work without holding the lock.
    pub(super) fn work_unlocked(&self, mut state: MutexGuard<'_, UpkeepState>, work: impl FnOnce()) {
        state.at_work += 1;
        drop(state);
        let _at_work = AtWork(self);
        self.health.noting(work);
    }
}

/// Sets a flag when this is dropped, also by a panic.
pub(super) struct SetWhenDropped<'b> {
    pub flag: &'b AtomicBool,
    pub to: bool,
}

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.flag.store(self.to, Ordering::Relaxed);
    }
}

/// A thread at work, until dropped.
struct AtWork<'b>(&'b Background);

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.at_work -= 1;
        if state.idle() {
            self.0.done.notify_all();
        }
    }
}

fn past_watermark(landing: Option<Landing>, landing_compaction_pct: u8) -> bool {
    landing.is_some_and(|landing| landing.used() * 100 >= landing.capacity() * usize::from(landing_compaction_pct))
}

/// Bytes of freed scratchpads from which on the free memory of the program's allocator is returned to the system.
const MUCH_SCRATCHPAD_BYTES: u64 = 64 << 10;

impl TreeInner {
    /// Frees the scratchpads that threads do not use at present: all of them or, if `idle_only`, those of threads that
    /// have not used theirs since the last call. Returns whether some are left.
    pub(in crate::tree) fn free_scratchpads(&self, idle_only: bool) -> bool {
        let (freed, left) = self.contexts.free_scratchpads(&self.memory, idle_only);
        if freed > 0 {
            // No other thread would free the retired nodes of an idle thread.
            self.flush_retired();
        }
        // This takes longer than a step may.
        if freed >= MUCH_SCRATCHPAD_BYTES && self.background.upkeep == Upkeep::Threads {
            trim::return_freed();
        }
        left
    }

    /// Rebuilds every shard's interpolation index. Where there is no memory for one, the old one stays.
    pub(crate) fn renew_interpolation(&self) {
        self.background.interpolation_renewed();
        for shard in &self.shards {
            self.renew_interpolation_of(shard);
        }
    }

    pub(crate) fn renew_interpolation_of(&self, shard: &Shard) {
        if let Ok(guard) = self.memory.enter() {
            let _ = shard.renew_interpolation(self.shards.len(), &self.memory, &guard);
        }
    }

    /// Compacts the leaf that holds `key` if its latch is free and it is past the watermark.
    pub(super) fn compact_one(&self, shard: usize, key: &[u8], landing_compaction_pct: u8) {
        // If there is no memory, the leaf stays unchanged.
        let (Ok(context), Ok(guard)) = (self.contexts.get(), self.memory.enter()) else {
            return;
        };
        context.count(Count::BgQueuePops);
        let work = WritePath {
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
        if !past_watermark(leaf.landing_locked(), landing_compaction_pct) {
            context.count(Count::BgSkipped);
            return;
        }
        let Ok(mut tools) = self.take_tools(context, &guard) else {
            context.count(Count::BgErrors);
            return;
        };
        match work.compact_locked(&locked, parent, key, None, &mut tools) {
            Ok(true) => context.count(Count::BgCompactions),
            Ok(false) => context.count(Count::BgSkipped),
            Err(_) => context.count(Count::BgErrors),
        }
        self.return_tools(context, tools, &guard);
    }
}
