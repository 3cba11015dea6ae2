//! What the cache's thread is told.

use std::time::Duration;

use crate::sync::{Condvar, Mutex};

/// How often it looks.
pub(super) const TICK: Duration = Duration::from_millis(100);

/// What the thread is told.
#[derive(Default)]
pub(super) struct Wake {
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl Wake {
    pub(super) fn stop(&self) {
        *self.stopped.lock() = true;
        self.changed.notify_all();
    }

    pub(super) fn is_stopped(&self) -> bool {
        *self.stopped.lock()
    }

    /// Waits for the next look; false when the thread is to end.
    pub(super) fn wait(&self) -> bool {
        let mut stopped = self.stopped.lock();
        if !*stopped {
            self.changed.wait_for(&mut stopped, TICK);
        }
        !*stopped
    }
}
