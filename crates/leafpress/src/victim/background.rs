//! The thread that trains dictionaries.

use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};

use super::core::Core;
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

    fn stop(&self) {
        self.due.lock().stop = true;
        self.changed.notify_all();
    }

    /// Waits until nothing is due.
    pub(super) fn settle(&self) {
        let mut due = self.due.lock();
        while (due.families != 0 || due.at_work) && !due.stop {
            self.changed.wait(&mut due);
        }
    }

    /// The next family; [`None`] when the thread is to end.
    fn next(&self) -> Option<usize> {
        let mut due = self.due.lock();
        due.at_work = false;
        loop {
            if due.stop {
                return None;
            }
            if due.families != 0 {
                let family = (due.families.trailing_zeros() as usize).min(FAMILIES - 1);
                due.families &= due.families - 1;
                due.at_work = true;
                return Some(family);
            }
            self.changed.notify_all();
            self.changed.wait(&mut due);
        }
    }
}

/// The thread, stopped when this is dropped.
pub(super) struct Thread {
    core: Arc<Core>,
    handle: Option<JoinHandle<()>>,
}

impl Thread {
    pub(super) fn start(core: &Arc<Core>) -> std::io::Result<Self> {
        let own = Arc::clone(core);
        let work = move || {
            while let Some(family) = own.wake.next() {
                own.train(family);
            }
        };
        let handle = std::thread::Builder::new()
            .name("leafpress-victim".to_owned())
            .spawn(work)?;
        Ok(Self {
            core: Arc::clone(core),
            handle: Some(handle),
        })
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.core.wake.stop();
        if let Some(handle) = self.handle.take() {
            // A thread that panicked has nothing to tell.
            let _ = handle.join();
        }
    }
}
