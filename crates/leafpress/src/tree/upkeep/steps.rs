//! Upkeep in steps, for trees with [`Upkeep::Caller`]: the work of a background thread, a leaf at a time.
//!
//! Work in progress is stored between the steps as keys and numbers, and holds neither lock nor guard: writers, readers
//! and whole passes may run in between. Leaves before the key that a pass has reached are done, even if they are
//! replaced: their successors have their ranges.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::tree::error::TreeError;
use crate::tree::inner::TreeInner;
use crate::tree::options::Upkeep;
use crate::tree::upkeep::defragment::{Pass, Step, Sweep};
use crate::tree::upkeep::idle::{Found, IdleDetector};
use crate::tree::upkeep::scheduler::State;
use crate::tree::upkeep::steps_of_training::{Collecting, Running};
use crate::tree::upkeep::workers::{MIN_REST, REST, TOOLS_LOOK_EVERY};
use leafpress_base::sync::MutexGuard;

/// Polling interval while waiting for a running training.
const TRAINING_LOOK_EVERY: Duration = Duration::from_millis(1);

/// A shard's interpolation index is built in one step, some ten nanoseconds per leaf. With more leaves than this the
/// current table is kept: leaves that were split since, or are beyond its span, are found from the root.
const MAX_LEAVES_OF_A_TABLE: usize = 64 << 10;

/// The work in progress, and the times of the next checks.
#[derive(Default)]
pub(crate) struct Steps {
    job: Option<Job>,
    /// A training on its thread.
    training: Option<Running>,
    idle: IdleDetector,
    /// Before this time no pass begins, except one that a caller waits for; `None` before the first pass.
    rest_until: Option<Instant>,
    last_rest: Duration,
    /// Time of the next search for idle scratchpads.
    tools_look: Option<Instant>,
}

/// Work of many steps.
enum Job {
    /// Collecting samples for a training.
    Collecting(Box<Collecting>),
    Passing(Box<Passing>),
    /// Rebuilding interpolation indexes, from the shard with this number on.
    Renewing(usize),
}

/// A pass over all leaves.
struct Passing {
    pass: Pass,
    sweep: Sweep,
    /// The dictionary of all leaves after the pass; older ones are retired then.
    dictionary: Option<u64>,
    /// Accumulated time of its steps.
    took: Duration,
}

/// Work that is due.
enum Due {
    Training,
    Interpolation,
    Defragmentation,
    Look,
    Scratchpad,
}

impl TreeInner {
    /// Runs due work in steps until `budget` has passed; returns whether more is due.
    pub(crate) fn run_upkeep(&self, budget: Duration) -> Result<bool, TreeError> {
        if self.background.upkeep != Upkeep::Caller {
            return Ok(false);
        }
        let begin = Instant::now();
        let mut steps = self.background.steps.lock();
        loop {
            if !steps.step(self, false)? {
                return Ok(false);
            }
            if begin.elapsed() >= budget {
                return Ok(true);
            }
        }
    }

    /// Runs all due work, trainings and their consequences included, without rest periods. Failed work is skipped.
    pub(super) fn run_upkeep_until_idle(&self) {
        let mut steps = self.background.steps.lock();
        loop {
            if matches!(steps.step(self, true), Ok(false)) {
                if steps.training.is_none() {
                    return;
                }
                std::thread::sleep(TRAINING_LOOK_EVERY);
            }
        }
    }
}

impl Steps {
    /// Runs the next step; returns false if nothing is due. With `settles` there are no rest periods.
    fn step(&mut self, core: &TreeInner, settles: bool) -> Result<bool, TreeError> {
        if let Some(job) = self.job.take() {
            return self.go_on(core, job).map(|()| true);
        }
        if self.training.as_ref().is_some_and(Running::has_ended)
            && let Some(training) = self.training.take()
        {
            core.background.set_training(false);
            let found = training.found(core)?;
            let sweep = {
                let _training = core.dictionaries.training.lock();
                core.put_in_force(found)?
            };
            if let Some(sweep) = sweep {
                self.pass(core, sweep, core.dictionaries.current_serial());
            }
            return Ok(true);
        }
        let Some(due) = self.take_due(core, settles) else {
            return Ok(false);
        };
        match due {
            Due::Training => self.job = Some(Job::Collecting(Box::new(Collecting::begin()))),
            Due::Interpolation => {
                core.background.interpolation_renewed();
                self.job = Some(Job::Renewing(0));
            }
            Due::Defragmentation => self.pass(core, Sweep::Defragment, None),
            Due::Look => self.look(core),
            Due::Scratchpad => {
                let left = core.free_tools(true);
                self.tools_look = Some(Instant::now() + TOOLS_LOOK_EVERY);
                core.background.state.lock().tools_due |= left;
            }
        }
        Ok(true)
    }

    /// Returns due work that has not begun, and marks it as begun.
    fn take_due(&mut self, core: &TreeInner, settles: bool) -> Option<Due> {
        let mut state: MutexGuard<'_, State> = core.background.state.lock();
        if state.training_due && self.training.is_none() {
            state.training_due = false;
            return Some(Due::Training);
        }
        if state.interpolation_due {
            state.interpolation_due = false;
            return Some(Due::Interpolation);
        }
        if !(state.defragmentation_due || state.looks_due || state.tools_due) {
            return None;
        }
        let now = Instant::now();
        let is_rested = settles || self.rest_until.is_none_or(|until| until <= now);
        if state.defragmentation_due && is_rested {
            if settles || !core.memory.is_rewritten() {
                state.defragmentation_due = false;
                return Some(Due::Defragmentation);
            }
            // Active writers would undo the pass during the rest period. It stays due.
            self.rest_until = Some(now + self.last_rest.max(MIN_REST));
        }
        if state.looks_due && is_rested && self.idle.until_next(core).is_zero() {
            return Some(Due::Look);
        }
        if state.tools_due && self.tools_look.is_none_or(|at| at <= now) {
            state.tools_due = false;
            return Some(Due::Scratchpad);
        }
        None
    }

    fn pass(&mut self, core: &TreeInner, sweep: Sweep, dictionary: Option<u64>) {
        self.job = Some(Job::Passing(Box::new(Passing {
            pass: Pass::begin(core, sweep, false),
            sweep,
            dictionary,
            took: Duration::ZERO,
        })));
    }

    /// Checks whether writers have left landing buffers that are worth a pass.
    fn look(&mut self, core: &TreeInner) {
        // Set before the check: a buffer allocated after it, or after the pass, is then checked again.
        core.background.may_ask_to_look.store(true, Ordering::Relaxed);
        match self.idle.look(core) {
            Found::Writers => {}
            Found::Few => core.background.state.lock().looks_due = false,
            Found::Left => {
                core.background.state.lock().looks_due = false;
                self.pass(core, Sweep::Landed, None);
            }
        }
    }

    /// Runs the next step of the work in progress. After an error or a panic the work is abandoned.
    fn go_on(&mut self, core: &TreeInner, job: Job) -> Result<(), TreeError> {
        match job {
            Job::Collecting(mut collecting) => {
                if collecting.step(core)? {
                    self.job = Some(Job::Collecting(collecting));
                    return Ok(());
                }
                let job = {
                    let _training = core.dictionaries.training.lock();
                    collecting.collected(core, true)?
                };
                self.training = job.map(|job| Running::start(job, core)).transpose()?;
            }
            Job::Passing(mut passing) => {
                let begin = Instant::now();
                let step = passing.pass.step_alone(core);
                passing.took += begin.elapsed();
                match step {
                    Ok(Step::More) => self.job = Some(Job::Passing(passing)),
                    Ok(Step::Last) => self.passed(core, *passing)?,
                    Ok(Step::Stopped) => {}
                    Err(error) => {
                        self.rest(core, &passing);
                        return Err(error);
                    }
                }
            }
            Job::Renewing(number) => {
                if let Some(shard) = core.shards.get(number) {
                    if core.background.leaves() / core.shards.len() <= MAX_LEAVES_OF_A_TABLE {
                        core.renew_interpolation_of(shard);
                    }
                    self.job = Some(Job::Renewing(number + 1));
                }
            }
        }
        Ok(())
    }

    fn passed(&mut self, core: &TreeInner, passing: Passing) -> Result<(), TreeError> {
        self.rest(core, &passing);
        let Passing { pass, dictionary, .. } = passing;
        pass.end_alone(core)?;
        if let Some(dictionary) = dictionary {
            core.retire_dictionaries_older_than(dictionary);
        }
        Ok(())
    }

    fn rest(&mut self, core: &TreeInner, passing: &Passing) {
        if passing.sweep == Sweep::Defragment {
            core.background.may_ask_to_defragment.store(true, Ordering::Relaxed);
        }
        self.last_rest = (passing.took * REST).max(MIN_REST);
        self.rest_until = Some(Instant::now() + self.last_rest);
    }

    /// Makes the training's thread end early, without a result.
    pub(super) fn abandon_training(&mut self) {
        self.training = None;
    }
}
