//! What the cache's thread is woken for.

use crate::sync::plain::{Condvar, Mutex};

use super::dictionaries::FAMILIES;

/// What the thread is woken for.
#[derive(Default)]
pub(super) struct Wake {
    due: Mutex<Due>,
    changed: Condvar,
}

#[derive(Default)]
struct Due {
    /// A bit for each family whose training is due.
    families: u32,
    /// There is enough to work off for the share.
    adapting: bool,
    at_work: bool,
    stop: bool,
}

impl Wake {
    /// A training is due.
    pub(super) fn training(&self, family: usize) {
        let mut due = self.due.lock();
        due.families |= 1 << family;
        self.changed.notify_all();
    }

    /// There is enough to work off for the share.
    pub(super) fn adapting(&self) {
        let mut due = self.due.lock();
        if !due.adapting {
            due.adapting = true;
            self.changed.notify_all();
        }
    }

    pub(super) fn stop(&self) {
        self.due.lock().stop = true;
        self.changed.notify_all();
    }

    /// Waits until nothing is due.
    pub(super) fn settle(&self) {
        let mut due = self.due.lock();
        while (due.families != 0 || due.adapting || due.at_work) && !due.stop {
            self.changed.wait(&mut due);
        }
    }

    /// The next work; [`None`] when the thread is to end.
    pub(super) fn next(&self) -> Option<Work> {
        let mut due = self.due.lock();
        due.at_work = false;
        loop {
            if due.stop {
                return None;
            }
            if due.adapting {
                due.adapting = false;
                due.at_work = true;
                return Some(Work::Adapt);
            }
            if due.families != 0 {
                let family = (due.families.trailing_zeros() as usize).min(FAMILIES - 1);
                due.families &= due.families - 1;
                due.at_work = true;
                return Some(Work::Train(family));
            }
            self.changed.notify_all();
            self.changed.wait(&mut due);
        }
    }
}

/// What the thread does next.
#[derive(Debug, Clone, Copy)]
pub(super) enum Work {
    /// Trains a dictionary for a family.
    Train(usize),
    /// Works off what was noted for the share.
    Adapt,
}
