//! Selection of the upkeep that is due, for the upkeep task and for upkeep by the caller.

use std::mem::take;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::tree::inner::TreeInner;
use crate::tree::upkeep::defragment::PassKind;
use crate::tree::upkeep::idle::{IdleCheck, IdleDetector};
use crate::tree::upkeep::scheduler::UpkeepState;

/// After a pass, or a training, the rest period is this multiple of its duration: each takes at most 2% of a core.
const REST: u32 = 50;
/// Minimum length of the rest period.
const MIN_REST: Duration = Duration::from_millis(10);
/// The scratchpad of a thread that is outside any operation for one or two of these intervals is freed.
const SCRATCHPAD_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Interval between checks of leaves' temperatures: at least this, and at least a multiple of the duration of a check.
const TEMPER_EVERY: Duration = Duration::from_millis(250);
const TEMPER_REST: u32 = 20;

/// Work that is due.
pub(super) enum Due {
    Training,
    Interpolation,
    Temperatures,
    /// A pass over all leaves.
    Pass(PassKind),
    Scratchpads,
}

/// What is to be done next.
pub(super) enum NextWork {
    Due(Due),
    /// Nothing is due; something is after this time, if there is one.
    Idle(Option<Duration>),
}

/// The rest periods before each kind of work.
#[derive(Default)]
pub(super) struct Rests {
    idle: IdleDetector,
    /// Before this time no pass begins, except one that a caller waits for; `None` before the first pass.
    rest_until: Option<Instant>,
    last_rest: Duration,
    /// Before this time no training begins because records have changed, except one that a caller waits for.
    train_after: Option<Instant>,
    /// Time of the next search for idle scratchpads.
    scratchpad_check_at: Option<Instant>,
    /// Time of the next check of leaves' temperatures; `None` if they are not checked.
    temper_at: Option<Instant>,
}

impl Rests {
    /// Schedules the checks of leaves' temperatures.
    pub(super) fn with_temperatures() -> Self {
        Self {
            temper_at: Some(Instant::now() + TEMPER_EVERY),
            ..Self::default()
        }
    }

    /// Returns due work, which is marked as begun. With `settles` there are no rest periods before passes.
    pub(super) fn due(&mut self, core: &TreeInner, state: &mut UpkeepState, settles: bool) -> NextWork {
        // No pass is running while work is selected: one that was requested has ended, or has panicked.
        core.background.set_compacting(state.compaction_due);
        if take(&mut state.training_due) || settles && take(&mut state.renewal_due) {
            return NextWork::Due(Due::Training);
        }
        if take(&mut state.interpolation_due) {
            return NextWork::Due(Due::Interpolation);
        }
        if take(&mut state.compaction_due) {
            core.background.set_compacting(true);
            return NextWork::Due(Self::begin_pass(state, PassKind::Landed));
        }
        let is_any_due =
            state.renewal_due || state.defragmentation_due || state.idle_check_due || state.scratchpads_due;
        if !is_any_due && self.temper_at.is_none() {
            return NextWork::Idle(None);
        }
        let now = Instant::now();
        let train_at = self.train_after.unwrap_or(now);
        if train_at <= now && take(&mut state.renewal_due) {
            return NextWork::Due(Due::Training);
        }
        if self.temper_at.is_some_and(|at| at <= now) {
            return NextWork::Due(Due::Temperatures);
        }
        let may_pass = settles || self.rest_until.is_none_or(|until| until <= now);
        if state.defragmentation_due && may_pass {
            if settles || !core.memory.is_rewritten() {
                return NextWork::Due(Self::begin_pass(state, PassKind::Defragment));
            }
            // A pass would take a core from the writers, which would undo it during the rest period. It is postponed
            // until they write less: it stays due, and the next check is when the pass after this one would have been.
            self.rest_until = Some(now + self.last_rest.max(MIN_REST));
        }
        if state.idle_check_due && may_pass && self.idle.next(core) <= now {
            // Set before the check: a buffer allocated after it, or after the pass, is then checked again.
            core.background.may_request_idle_check.store(true, Ordering::Relaxed);
            match self.idle.look(core) {
                IdleCheck::Writers => {}
                IdleCheck::Few => state.idle_check_due = false,
                IdleCheck::Left => return NextWork::Due(Self::begin_pass(state, PassKind::Landed)),
            }
        }
        let scratchpad_check_at = *self
            .scratchpad_check_at
            .get_or_insert_with(|| now + SCRATCHPAD_CHECK_INTERVAL);
        if state.scratchpads_due && scratchpad_check_at <= now {
            state.scratchpads_due = false;
            return NextWork::Due(Due::Scratchpads);
        }
        let pass_at = self.rest_until.unwrap_or(now);
        let times = [
            self.temper_at,
            state.renewal_due.then_some(train_at),
            state.defragmentation_due.then_some(pass_at),
            state.idle_check_due.then(|| self.idle.next(core).max(pass_at)),
            state.scratchpads_due.then_some(scratchpad_check_at),
        ];
        let next = times.into_iter().flatten().min();
        NextWork::Idle(next.map(|next| next.saturating_duration_since(now)))
    }

    fn begin_pass(state: &mut UpkeepState, kind: PassKind) -> Due {
        // Every pass moves all leaves.
        state.defragmentation_due = false;
        state.idle_check_due &= kind != PassKind::Landed;
        Due::Pass(kind)
    }

    /// Records the end of a pass that took this time: a rest period begins.
    pub(super) fn passed(&mut self, took: Duration) {
        self.last_rest = (took * REST).max(MIN_REST);
        self.rest_until = Some(Instant::now() + self.last_rest);
    }

    /// Records the end of a training that took this time: the rest period before one because records have changed
    /// begins.
    pub(super) fn trained(&mut self, took: Duration) {
        self.train_after = Some(Instant::now() + took * REST);
    }

    /// Records the end of a check of leaves' temperatures that took this time.
    pub(super) fn tempered(&mut self, took: Duration) {
        self.temper_at = Some(Instant::now() + TEMPER_EVERY.max(took * TEMPER_REST));
    }

    /// Frees the scratchpads of idle threads. If some are left, the next search is after an interval.
    pub(super) fn free_scratchpads(&mut self, core: &TreeInner) {
        let left = core.free_scratchpads(true);
        self.scratchpad_check_at = Some(Instant::now() + SCRATCHPAD_CHECK_INTERVAL);
        core.background.state.lock().scratchpads_due |= left;
    }
}
