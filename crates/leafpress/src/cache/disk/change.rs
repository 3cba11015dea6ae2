//! Changes of what is known of the runs: noted for after a crash, and then done.

use std::sync::Arc;

use super::run::Run;
use super::state::State;
use super::tier::Tier;
use leafpress_base::mem::OutOfMemory;

/// A change of a leaf's runs.
pub(super) enum Change<'c> {
    /// A run, if there is one, takes the place of so many of the newest.
    Replace {
        leaf: usize,
        newest: usize,
        with: Option<Arc<Run>>,
    },
    /// Two leaves, what is before `key` and the rest, take the leaf's place, with a run each at most.
    Split {
        leaf: usize,
        key: &'c [u8],
        low: Option<Arc<Run>>,
        high: Option<Arc<Run>>,
    },
    /// Runs are forgotten, from one on to the oldest.
    ForgetFrom { leaf: usize, run: usize },
}

impl Change<'_> {
    /// The leaf that is changed.
    fn leaf(&self) -> usize {
        match self {
            Self::Replace { leaf, .. } | Self::Split { leaf, .. } | Self::ForgetFrom { leaf, .. } => *leaf,
        }
    }

    fn apply(&self, state: &mut State) -> Result<(), OutOfMemory> {
        match self {
            Self::Replace { leaf, newest, with } => state.replace(*leaf, 0..*newest, with.clone()),
            Self::Split { leaf, key, low, high } => state.split(*leaf, key, low.clone(), high.clone()),
            Self::ForgetFrom { leaf, run } => {
                state.forget_from(*leaf, *run);
                Ok(())
            }
        }
    }

    /// Gives back what the new runs have: nobody will know of them.
    fn give_back(&self, state: &mut State) {
        let runs = match self {
            Self::Replace { with, .. } => [with, &None],
            Self::Split { low, high, .. } => [low, high],
            Self::ForgetFrom { .. } => [&None, &None],
        };
        let runs = runs.into_iter().flatten();
        runs.for_each(|run| state.give_chunks(&run.chunks));
    }
}

impl Tier {
    /// Carries out a change, unless all was forgotten since: then there is nothing to change.
    ///
    /// What the log of runs has is at every moment no more than what memory knows. A write is noted for after a crash only where memory
    /// knows of an older record, so that none may be found there of which it did not know.
    pub(super) fn change(&self, generation: u64, change: &Change<'_>) -> Result<(), OutOfMemory> {
        // Nobody forgets all while this is held.
        let mut log = self.recovery.as_ref().map(|recovery| recovery.log());
        if let Some(log) = &mut log {
            let state = self.state.read();
            if state.generation != generation {
                return Ok(());
            }
            let epoch = state.open.epoch;
            let from = state.leaves().get(change.leaf()).map(|leaf| Arc::clone(&leaf.from));
            drop(state);
            let Some(from) = from else { return Ok(()) };
            if let Err(failure) = log.append(change, &from, epoch) {
                self.note_log_failure(&failure);
            }
        }
        let mut state = self.state.write();
        if state.generation != generation {
            return Ok(());
        }
        change.apply(&mut state).inspect_err(|_| {
            change.give_back(&mut state);
            if let Some(log) = &mut log {
                // It has what is not so.
                log.give_up();
            }
        })
    }

    /// Forgets all. What leaves memory meanwhile may be forgotten with it or not.
    pub(super) fn forget_runs_and_batches(&self) -> (u64, u64) {
        let mut log = self.recovery.as_ref().map(|recovery| recovery.log());
        if let Some(log) = &mut log
            && let Err(failure) = log.append_clear()
        {
            self.note_log_failure(&failure);
        }
        let mut state = self.state.write();
        let forgotten = (state.runs, state.records);
        state.forget();
        forgotten
    }

    /// Leaves out leaves without runs where they are most, and writes the log of runs anew where it is long. Only the writer does, so that
    /// nothing changes meanwhile but by one who forgets all.
    pub(super) fn tend_leaves(&self, head: u64, generation: u64) {
        // Nobody forgets all while this is held.
        let mut log = self.recovery.as_ref().map(|recovery| recovery.log());
        let (leaves, are_fewer, epoch) = {
            let state = self.state.read();
            let is_long = log.as_ref().is_some_and(|log| log.is_long(state.index_bytes() as u64));
            let are_fewer = state.has_many_empty_leaves();
            if state.generation != generation || !is_long && !are_fewer {
                return;
            }
            let leaves = if are_fewer {
                state.leaves_with_runs()
            } else {
                Ok(state.leaves().to_vec())
            };
            // Without memory it is done after another batch.
            let Ok(leaves) = leaves else { return };
            (leaves, are_fewer, state.open.epoch)
        };
        // The log knows leaves by their keys, and has to have the same ones.
        if let Some(log) = &mut log
            && log.is_kept()
            && let Err(failure) = log.rewrite(&leaves, head, epoch)
        {
            self.note_log_failure(&failure);
        }
        let mut state = self.state.write();
        if are_fewer && state.generation == generation {
            state.drop_empty_leaves(leaves);
        }
    }
}
