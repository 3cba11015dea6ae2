//! What the pool and its threads tell each other.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use leafpress_base::sync::worker::Health;
use leafpress_base::sync::{Condvar, Mutex};

/// How often a thread looks whether there is something to do, unless it is woken.
const TICK: Duration = Duration::from_millis(50);

/// What the pool and its threads tell each other.
#[derive(Default)]
pub(super) struct Workers {
    state: Mutex<State>,
    changed: Condvar,
    running: AtomicUsize,
    pub(super) health: Health,
}

#[derive(Default)]
struct State {
    woken: bool,
    stopping: bool,
}

impl Workers {
    /// Whether there is a thread that makes room ahead of need. Without one, who needs room does it all, and who uses pages decides.
    pub(super) fn are_there(&self) -> bool {
        self.running.load(Relaxed) > 0
    }

    /// A thread has begun.
    pub(super) fn started(&self) {
        self.running.fetch_add(1, Relaxed);
    }

    /// A thread does nothing any more.
    pub(super) fn ended(&self) {
        self.running.fetch_sub(1, Relaxed);
    }

    /// There is something to do.
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

    /// Waits for a while, or for a call; returns whether to go on.
    pub(super) fn wait(&self) -> bool {
        let mut state = self.state.lock();
        if !state.woken && !state.stopping {
            self.changed.wait_for(&mut state, TICK);
        }
        state.woken = false;
        !state.stopping
    }
}
