//! Signals between the pool and its worker threads.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use leafpress_base::sync::worker::Health;
use leafpress_base::sync::{Condvar, Mutex};

/// Polling interval of a worker thread unless it is woken.
const TICK: Duration = Duration::from_millis(50);

/// Signals between the pool and its worker threads.
#[derive(Default)]
pub(super) struct Workers {
    state: Mutex<WorkersState>,
    changed: Condvar,
    running: AtomicUsize,
    pub(super) health: Health,
}

#[derive(Default)]
struct WorkersState {
    woken: bool,
    stopping: bool,
}

impl Workers {
    /// Returns true if a worker thread makes room ahead of need. Without one, calling threads make all room and adapt
    /// the share.
    pub(super) fn are_there(&self) -> bool {
        self.running.load(Relaxed) > 0
    }

    /// Counts a thread that has started.
    pub(super) fn started(&self) {
        self.running.fetch_add(1, Relaxed);
    }

    /// Counts a thread that has ended.
    pub(super) fn ended(&self) {
        self.running.fetch_sub(1, Relaxed);
    }

    /// Wakes the worker threads.
    pub(super) fn wake(&self) {
        let mut state = self.state.lock();
        if !state.woken {
            state.woken = true;
            self.changed.notify_one();
        }
    }

    pub(super) fn stop(&self) {
        self.state.lock().stopping = true;
        self.changed.notify_all();
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.state.lock().stopping
    }

    /// Waits for a while, or for a wake-up; returns true to continue.
    pub(super) fn wait(&self) -> bool {
        let mut state = self.state.lock();
        if !state.woken && !state.stopping {
            self.changed.wait_for(&mut state, TICK);
        }
        state.woken = false;
        !state.stopping
    }
}
