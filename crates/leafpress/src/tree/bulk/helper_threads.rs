//! The threads that put batches into the tree: the thread that provides the records, and helpers if the tree is
//! configured to use some.

use std::collections::VecDeque;

use crate::tree::bulk::batch::Batch;
use crate::tree::error::TreeError;
use crate::tree::inner::TreeInner;
use leafpress_base::mem::room::TryGrow;
use leafpress_base::sync::{Condvar, Mutex};

/// A batch of a shard to be put into the tree.
struct Job {
    shard: usize,
    batch: Batch,
    least_bytes: usize,
}

/// Threads that put batches into the tree.
pub(super) struct HelperThreads<'c> {
    core: &'c TreeInner,
    state: Mutex<HelpersState>,
    /// Notified when a job was added, taken or done, or the helpers are dismissed.
    changed: Condvar,
}

#[derive(Default)]
struct HelpersState {
    jobs: VecDeque<Job>,
    /// Number of helper threads.
    helpers: usize,
    at_work: usize,
    dismissed: bool,
    new: u64,
    error: Option<TreeError>,
    /// Batches that were put into the tree, kept for their allocations.
    spare: Vec<Batch>,
}

impl<'c> HelperThreads<'c> {
    pub(super) fn new(core: &'c TreeInner) -> Self {
        Self {
            core,
            state: Mutex::new(HelpersState::default()),
            changed: Condvar::default(),
        }
    }

    /// Returns an empty batch.
    pub(super) fn spare(&self) -> Batch {
        self.state.lock().spare.pop().unwrap_or_default()
    }

    /// Takes back a batch whose records are not needed any more, for its allocation.
    pub(super) fn take_back(&self, mut batch: Batch) {
        batch.clear();
        let mut state = self.state.lock();
        if state.spare.len() <= state.helpers {
            // If there is no memory for the list, the batch is freed.
            let _ = state.spare.try_push(batch);
        }
    }

    /// Returns how many new keys were put into the tree since the last call.
    pub(super) fn take_new(&self) -> u64 {
        std::mem::take(&mut self.state.lock().new)
    }

    /// Puts the batch into the tree: by a helper, or by the calling thread if as many batches are waiting as there are
    /// helpers.
    ///
    /// # Errors
    /// As [`TreeInner::place`], for this batch or an earlier one.
    pub(super) fn submit(&self, shard: usize, batch: Batch, least_bytes: usize) -> Result<(), TreeError> {
        let job = Job {
            shard,
            batch,
            least_bytes,
        };
        let mut state = self.state.lock();
        if state.jobs.len() < state.helpers && state.jobs.try_reserve(1).is_ok() {
            state.jobs.push_back(job);
            let earlier = state.error.take();
            drop(state);
            self.changed.notify_one();
            return earlier.map_or(Ok(()), Err);
        }
        state.at_work += 1;
        drop(state);
        self.place(job);
        self.state.lock().error.take().map_or(Ok(()), Err)
    }

    /// Waits until every batch is in the tree, and takes part in the work.
    ///
    /// # Errors
    /// As [`TreeInner::place`], for one of them.
    pub(super) fn wait(&self) -> Result<(), TreeError> {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                state.at_work += 1;
                drop(state);
                self.place(job);
                state = self.state.lock();
            } else if state.at_work > 0 {
                self.changed.wait(&mut state);
            } else {
                return state.error.take().map_or(Ok(()), Err);
            }
        }
    }

    /// Records that one more thread calls [`HelperThreads::work`].
    pub(super) fn helper_started(&self) {
        self.state.lock().helpers += 1;
    }

    /// The main loop of each helper, until the helpers are dismissed.
    pub(super) fn work(&self) {
        let mut state = self.state.lock();
        loop {
            if state.dismissed {
                return;
            }
            if let Some(job) = state.jobs.pop_front() {
                state.at_work += 1;
                drop(state);
                self.place(job);
                state = self.state.lock();
            } else {
                self.changed.wait(&mut state);
            }
        }
    }

    /// Puts a batch into the tree. It is already counted as in progress.
    fn place(&self, job: Job) {
        let _at_work = AtWork(self);
        let placed = self.core.place(job.shard, &job.batch, job.least_bytes);
        self.take_back(job.batch);
        let mut state = self.state.lock();
        match placed {
            Ok(new) => state.new += new,
            Err(error) => _ = state.error.get_or_insert(error),
        }
    }
}

/// A batch in progress, until dropped, also by a panic.
struct AtWork<'a, 'c>(&'a HelperThreads<'c>);

impl Drop for AtWork<'_, '_> {
    fn drop(&mut self) {
        self.0.state.lock().at_work -= 1;
        self.0.changed.notify_all();
    }
}

/// Dismisses the helpers when dropped, also by a panic in the caller's iterator, which would otherwise leave the
/// helpers waiting for ever.
pub(super) struct DismissOnDrop<'a, 'c>(pub &'a HelperThreads<'c>);

impl Drop for DismissOnDrop<'_, '_> {
    fn drop(&mut self) {
        self.0.state.lock().dismissed = true;
        self.0.changed.notify_all();
    }
}
