//! The threads that compact, and the tree's task of the upkeep runtime.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use crate::tree::inner::TreeInner;
use crate::tree::thread_state::Count;
use crate::tree::upkeep::defragment::PassKind;
use crate::tree::upkeep::due::{Due, NextWork, Rests};
use crate::tree::upkeep::scheduler::SetWhenDropped;
use crate::tree::upkeep::temperature::CompactionTime;
use leafpress_base::sync::runtime::{Next, Task};
use leafpress_base::sync::worker::{Health, Worker};

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
        background.work_unlocked(state, || {
            core.compact_one(shard, &key, background.landing_compaction_pct.unwrap_or(100));
        });
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
    rests: Rests,
}

impl Task for UpkeepTask {
    fn work(&mut self) -> Next {
        let Self { core, rests } = self;
        let mut state = core.background.state.lock();
        if state.stop {
            return Next::End;
        }
        let settles = state.settling > 0;
        let due = match rests.due(core, &mut state, settles) {
            NextWork::Due(due) => due,
            NextWork::Idle(wait) => return Next::Idle(wait),
        };
        core.background.work_unlocked(state, || match due {
            // On an error the tree continues without a new dictionary.
            Due::Training => {
                let start = Instant::now();
                let _ = core.train_dictionary();
                rests.trained(start.elapsed());
            }
            Due::Interpolation => core.renew_interpolation(),
            // On an error leaves stay unchanged.
            Due::Temperatures => rests.tempered(core.temper(CompactionTime::Limited).unwrap_or_default()),
            Due::Pass(kind) => pass(core, rests, kind),
            Due::Scratchpads => rests.free_scratchpads(core),
        });
        Next::Again
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
            rests: if core.temperatures.is_some() && !cfg!(any(shuttle, miri)) {
                Rests::with_temperatures()
            } else {
                Rests::default()
            },
            core,
        }
    }
}

/// Runs a pass over all leaves, followed by a rest period. Leaves that cannot be moved or compacted stay unchanged.
fn pass(core: &TreeInner, rests: &mut Rests, kind: PassKind) {
    // Waiting for another pass does not count as work for the rest period.
    drop(core.background.sweeping.lock());
    let start = Instant::now();
    let _rearms = SetWhenDropped {
        flag: &core.background.may_request_defragment,
        to: true,
    };
    let _ = core.sweep(kind);
    rests.passed(start.elapsed());
}
