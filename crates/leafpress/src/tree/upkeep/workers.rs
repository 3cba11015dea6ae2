//! The threads that compact, and the tree's task of the upkeep runtime.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::tree::inner::TreeInner;
use crate::tree::thread_state::Count;
use crate::tree::upkeep::defragment::Sweep;
use crate::tree::upkeep::idle::{Found, IdleDetector};
use crate::tree::upkeep::scheduler::{SetWhenDropped, State};
use crate::tree::upkeep::temperature::Share;
use leafpress_base::sync::MutexGuard;
use leafpress_base::sync::runtime::{Next, Task};
use leafpress_base::sync::worker::{Health, Worker};

/// After a pass of defragmentation the rest period is this multiple of its duration, so that it takes at most 2% of a
/// core.
pub(super) const REST: u32 = 50;
/// Minimum length of the rest period.
pub(super) const MIN_REST: Duration = Duration::from_millis(10);
/// The scratchpad of a thread that is outside any operation for one or two of these intervals is freed.
pub(super) const TOOLS_LOOK_EVERY: Duration = Duration::from_millis(500);

/// Interval between checks of leaves' temperatures: at least this, and at least a multiple of the duration of a check.
const TEMPER_EVERY: Duration = Duration::from_millis(250);
const TEMPER_REST: u32 = 20;

/// A thread that compacts queued leaves.
pub(super) struct Compactor(pub(super) Arc<TreeInner>);

impl Worker for Compactor {
    fn work(&mut self) -> ControlFlow<()> {
        let (core, background) = (&self.0, &self.0.background);
        let mut state = background.state.lock();
        let (shard, key) = loop {
            if state.stop {
                return ControlFlow::Break(());
            }
            if let Some(leaf) = state.queue.pop_front() {
                break leaf;
            }
            background.queued.wait(&mut state);
            core.contexts
                .get()
                .inspect(|context| context.count(Count::BgPasses))
                .ok();
        };
        background.work_unlocked(
            state,
            |_| {},
            || core.compact_one(shard, &key, background.watermark_pct.unwrap_or(100)),
        );
        ControlFlow::Continue(())
    }

    fn health(&self) -> &Health {
        &self.0.background.health
    }

    fn give_up(&mut self) {
        let mut state = self.0.background.state.lock();
        state.compactors -= 1;
        if state.compactors == 0 {
            // Writers compact leaves whose buffers are full.
            state.queue.clear();
        }
        self.0.background.done.notify_all();
    }
}

/// The task for all other upkeep.
pub(super) struct UpkeepTask {
    core: Arc<TreeInner>,
    rest_until: Instant,
    last_rest: Duration,
    idle: IdleDetector,
    /// Time of the next search for idle scratchpads.
    tools_look: Instant,
    /// Time of the next check of leaves' temperatures, if they have any.
    temper_at: Option<Instant>,
}

impl Task for UpkeepTask {
    fn work(&mut self) -> Next {
        let core = Arc::clone(&self.core);
        let background = &core.background;
        let mut state = background.state.lock();
        while !state.stop {
            let rest = self.rest_until.saturating_duration_since(Instant::now());
            if state.training_due {
                background.work_unlocked(
                    state,
                    |state| state.training_due = false,
                    || {
                        // On an error the tree continues without a new dictionary.
                        let _ = core.train_dictionary();
                    },
                );
                return Next::Again;
            } else if state.interpolation_due {
                background.work_unlocked(
                    state,
                    |state| state.interpolation_due = false,
                    || core.renew_interpolation(),
                );
                return Next::Again;
            } else if self.temper_at.is_some_and(|at| at <= Instant::now()) {
                let mut looked = Duration::ZERO;
                background.work_unlocked(
                    state,
                    |_| {},
                    || {
                        // On an error leaves stay unchanged.
                        looked = core.temper(Share::Passing).unwrap_or_default();
                    },
                );
                self.temper_at = Some(Instant::now() + TEMPER_EVERY.max(looked * TEMPER_REST));
                return Next::Again;
            } else if state.defragmentation_due && rest.is_zero() && state.settling == 0 && core.memory.is_rewritten() {
                // A pass would take a core from the writers, which would undo it during the rest period. It is postponed
                // until they write less: it stays due, and the next check is when the pass after this one would have
                // been.
                self.rest_until = Instant::now() + self.last_rest;
            } else if state.defragmentation_due && (rest.is_zero() || state.settling > 0) {
                self.pass(&core, state, Sweep::Defragment);
                return Next::Again;
            } else if state.looks_due && rest.is_zero() && self.idle.until_next(&core).is_zero() {
                // Set before the check: a buffer allocated after it, or after the pass, is then checked again.
                background.may_ask_to_look.store(true, Ordering::Relaxed);
                match self.idle.look(&core) {
                    Found::Writers => {}
                    Found::Few => state.looks_due = false,
                    Found::Left => {
                        self.pass(&core, state, Sweep::Landed);
                        return Next::Again;
                    }
                }
            } else if state.tools_due && self.tools_look <= Instant::now() {
                let mut left = false;
                background.work_unlocked(
                    state,
                    |state| state.tools_due = false,
                    || {
                        left = core.free_tools(true);
                    },
                );
                self.tools_look = Instant::now() + TOOLS_LOOK_EVERY;
                background.state.lock().tools_due |= left;
                return Next::Again;
            } else {
                let tidying = state.defragmentation_due.then_some(rest);
                let look = state.looks_due.then(|| self.idle.until_next(&core).max(rest));
                let tools = state
                    .tools_due
                    .then(|| self.tools_look.saturating_duration_since(Instant::now()));
                let temper = self.temper_at.map(|at| at.saturating_duration_since(Instant::now()));
                return Next::Idle(tidying.into_iter().chain(look).chain(tools).chain(temper).min());
            }
        }
        Next::End
    }

    fn health(&self) -> &Health {
        &self.core.background.health
    }

    fn give_up(&mut self) {
        self.core.background.state.lock().has_upkeep_task = false;
        self.core.background.done.notify_all();
    }
}

impl UpkeepTask {
    pub(super) fn new(core: Arc<TreeInner>) -> Self {
        Self {
            // There is no clock in a model checker.
            temper_at: (core.temperatures.is_some() && !cfg!(any(shuttle, miri)))
                .then(|| Instant::now() + TEMPER_EVERY),
            core,
            rest_until: Instant::now(),
            last_rest: Duration::ZERO,
            idle: IdleDetector::default(),
            tools_look: Instant::now() + TOOLS_LOOK_EVERY,
        }
    }

    /// Runs a pass over all leaves, followed by a rest period. Leaves that cannot be moved or compacted stay unchanged.
    fn pass(&mut self, core: &TreeInner, state: MutexGuard<'_, State>, sweep: Sweep) {
        let background = &core.background;
        let mut start = Instant::now();
        let begin = |state: &mut State| {
            // Every pass moves all leaves.
            state.defragmentation_due = false;
            state.looks_due &= sweep != Sweep::Landed;
        };
        background.work_unlocked(state, begin, || {
            // Waiting for another pass does not count as work for the rest period.
            drop(background.sweeping.lock());
            start = Instant::now();
            let _asked_again = SetWhenDropped {
                flag: &background.may_ask_to_defragment,
                to: true,
            };
            let _ = core.sweep(sweep);
        });
        self.last_rest = (start.elapsed() * REST).max(MIN_REST);
        self.rest_until = Instant::now() + self.last_rest;
    }
}
