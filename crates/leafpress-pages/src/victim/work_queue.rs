//! The work queue of the cache's task of the upkeep runtime.

use leafpress_base::sync::plain::{Condvar, Mutex};
use leafpress_base::sync::runtime::Waker;

use super::dictionaries::FAMILIES;

/// Due work.
#[derive(Default)]
pub(super) struct WorkQueue {
    due: Mutex<Due>,
    /// Signals that nothing is due any more, or that the task has ended.
    done: Condvar,
    pub(super) task: Waker,
}

#[derive(Default)]
struct Due {
    /// A bit for each family whose training is due.
    families: u32,
    /// There are enough events for a step of the adaptive share.
    adapting: bool,
    at_work: bool,
    stop: bool,
}

impl WorkQueue {
    /// Schedules a training.
    pub(super) fn training(&self, family: usize) {
        self.due.lock().families |= 1 << family;
        self.task.wake();
    }

    /// Schedules a step of the adaptive share.
    pub(super) fn adapting(&self) {
        if !std::mem::replace(&mut self.due.lock().adapting, true) {
            self.task.wake();
        }
    }

    pub(super) fn stop(&self) {
        self.due.lock().stop = true;
        self.done.notify_all();
    }

    /// Waits until nothing is due.
    pub(super) fn settle(&self) {
        let mut due = self.due.lock();
        while (due.families != 0 || due.adapting || due.at_work) && !due.stop {
            self.done.wait(&mut due);
        }
    }

    /// Returns the next work, which counts as being in progress until the next call.
    pub(super) fn next(&self) -> Option<Work> {
        let mut due = self.due.lock();
        due.at_work = true;
        if due.adapting {
            due.adapting = false;
            return Some(Work::Adapt);
        }
        if due.families != 0 {
            let family = (due.families.trailing_zeros() as usize).min(FAMILIES - 1);
            due.families &= due.families - 1;
            return Some(Work::Train(family));
        }
        due.at_work = false;
        self.done.notify_all();
        None
    }
}

/// What the task does next.
#[derive(Debug, Clone, Copy)]
pub(super) enum Work {
    /// Trains a dictionary for a family.
    Train(usize),
    /// Runs a step of the adaptive share.
    Adapt,
}
