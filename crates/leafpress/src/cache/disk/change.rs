//! Changes of the list of runs: logged for crash recovery, then applied.

use std::sync::Arc;

use super::run::Run;
use super::state::TierState;
use super::tier::Tier;
use leafpress_base::mem::OutOfMemory;

/// A change of a leaf's runs.
pub(super) enum Change<'c> {
    /// Replaces the given number of newest runs by `run`, if there is one.
    Replace {
        leaf: usize,
        newest: usize,
        with: Option<Arc<Run>>,
    },
    /// Splits the leaf at `key`. Each half gets at most one run.
    Split {
        leaf: usize,
        key: &'c [u8],
        low: Option<Arc<Run>>,
        high: Option<Arc<Run>>,
    },
    /// Drops the runs from one on to the oldest.
    ForgetFrom { leaf: usize, run: usize },
}

impl Change<'_> {
    /// Index of the changed leaf.
    fn leaf(&self) -> usize {
        match self {
            Self::Replace { leaf, .. } | Self::Split { leaf, .. } | Self::ForgetFrom { leaf, .. } => *leaf,
        }
    }

    fn apply(&self, state: &mut TierState) -> Result<(), OutOfMemory> {
        match self {
            Self::Replace { leaf, newest, with } => state.replace(*leaf, 0..*newest, with.clone()),
            Self::Split { leaf, key, low, high } => state.split(*leaf, key, low.clone(), high.clone()),
            Self::ForgetFrom { leaf, run } => {
                state.forget_from(*leaf, *run);
                Ok(())
            }
        }
    }

    /// Returns the chunks of the new runs, which are not listed anywhere.
    fn give_back(&self, state: &mut TierState) {
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
    /// Applies a change, unless everything was forgotten since: then there is nothing to change.
    ///
    /// Invariant: at every moment the runs in the log are a subset of those listed in memory. A write marks older
    /// records as stale only if memory lists a run that may have one, so recovery must not find a run that memory did
    /// not list.
    pub(super) fn change(&self, generation: u64, change: &Change<'_>) -> Result<(), OutOfMemory> {
        // No other thread can forget everything while this is held.
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
            let _transfer = self.device.begin_transfer();
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
                // The log now records a change that was not applied.
                log.give_up();
            }
        })
    }

    /// Forgets everything on disk. Records that leave memory meanwhile may or may not be forgotten with it.
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

    /// Removes leaves without runs if most leaves have none, and rewrites the log of runs if it is long. Only called by
    /// the writer, so that nothing else changes the leaves meanwhile, except a thread that forgets everything.
    pub(super) fn tend_leaves(&self, head: u64, generation: u64) {
        // No other thread can forget everything while this is held.
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
            // Out of memory: retried after another batch.
            let Ok(leaves) = leaves else { return };
            (leaves, are_fewer, state.open.epoch)
        };
        // The log identifies leaves by their keys, and has to have the same ones.
        if let Some(log) = &mut log
            && log.is_kept()
        {
            let _transfer = self.device.begin_transfer();
            if let Err(failure) = log.rewrite(&leaves, head, epoch) {
                self.note_log_failure(&failure);
            }
        }
        let mut state = self.state.write();
        if are_fewer && state.generation == generation {
            state.drop_empty_leaves(leaves);
        }
    }
}
