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
use crate::tree::upkeep::defragment::{Pass, PassKind, Step};
use crate::tree::upkeep::due::{Due, NextWork, Rests};
use crate::tree::upkeep::steps_of_training::{Collecting, Running};

/// Polling interval while waiting for a running training.
const TRAINING_LOOK_EVERY: Duration = Duration::from_millis(1);

/// A shard's interpolation index is built in one step, some ten nanoseconds per leaf. With more leaves than this the
/// current table is kept: leaves that were split since, or are beyond its span, are found from the root.
const MAX_LEAVES_OF_A_TABLE: usize = 64 << 10;

/// The work in progress, and the rest periods before further work.
#[derive(Default)]
pub(crate) struct Steps {
    job: Option<Job>,
    /// A training on its thread.
    training: Option<Running>,
    /// When its samples began to be collected.
    training_since: Option<Instant>,
    rests: Rests,
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
    /// The dictionary of all leaves after the pass; older ones are retired then.
    dictionary: Option<u64>,
    /// Accumulated time of its steps.
    took: Duration,
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
            self.rests.trained(
                self.training_since
                    .take()
                    .map_or(Duration::ZERO, |since| since.elapsed()),
            );
            let found = training.found(core)?;
            let kind = {
                let _training = core.dictionaries.training.lock();
                core.put_in_force(found)?
            };
            if let Some(kind) = kind {
                self.pass(core, kind, core.dictionaries.current_serial());
            }
            return Ok(true);
        }
        let Some(due) = self.take_due(core, settles) else {
            return Ok(false);
        };
        match due {
            Due::Training => {
                self.training_since = Some(Instant::now());
                self.job = Some(Job::Collecting(Box::new(Collecting::begin())));
            }
            Due::Interpolation => {
                core.background.interpolation_renewed();
                self.job = Some(Job::Renewing(0));
            }
            // Not scheduled here: only `settle` checks the leaves' temperatures.
            Due::Temperatures => {}
            Due::Pass(kind) => self.pass(core, kind, None),
            Due::Scratchpads => self.rests.free_scratchpads(core),
        }
        Ok(true)
    }

    /// Returns due work, and marks it as begun. A training waits for the end of a running one, and so does a requested
    /// compaction, which is to use its result.
    fn take_due(&mut self, core: &TreeInner, settles: bool) -> Option<Due> {
        let mut state = core.background.state.lock();
        let is_running = self.training.is_some();
        let training = is_running && std::mem::take(&mut state.training_due);
        let renewal = is_running && std::mem::take(&mut state.renewal_due);
        let compaction = is_running && std::mem::take(&mut state.compaction_due);
        let next = self.rests.due(core, &mut state, settles);
        state.training_due |= training;
        state.renewal_due |= renewal;
        state.compaction_due |= compaction;
        if compaction {
            core.background.set_compacting(true);
        }
        match next {
            NextWork::Due(due) => Some(due),
            NextWork::Idle(_) => None,
        }
    }

    fn pass(&mut self, core: &TreeInner, kind: PassKind, dictionary: Option<u64>) {
        self.job = Some(Job::Passing(Box::new(Passing {
            pass: Pass::begin(core, kind, false),
            dictionary,
            took: Duration::ZERO,
        })));
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
                if matches!(step, Ok(Step::More)) {
                    self.job = Some(Job::Passing(passing));
                    return Ok(());
                }
                core.background.may_request_defragment.store(true, Ordering::Relaxed);
                self.rests.passed(passing.took);
                if step? == Step::Last {
                    passing.pass.end_alone(core)?;
                    if let Some(dictionary) = passing.dictionary {
                        core.retire_dictionaries_older_than(dictionary);
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

    /// Makes the training's thread end early, without a result.
    pub(super) fn abandon_training(&mut self) {
        self.training = None;
    }
}
