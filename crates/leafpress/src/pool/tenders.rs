//! The pool's own threads.

use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use super::PoolError;
use super::core::Core;
use crate::sync::{Condvar, Mutex};

/// How often a thread looks whether there is something to do, unless it is woken.
const TICK: Duration = Duration::from_millis(50);

/// What the pool tells its threads.
#[derive(Default)]
pub(super) struct Tenders {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    woken: bool,
    stopping: bool,
}

impl Tenders {
    /// There is something to do.
    pub(super) fn wake(&self) {
        let mut state = self.state.lock();
        if !state.woken {
            state.woken = true;
            self.changed.notify_one();
        }
    }

    fn stop(&self) {
        self.state.lock().stopping = true;
        self.changed.notify_all();
    }

    fn is_stopping(&self) -> bool {
        self.state.lock().stopping
    }

    /// Waits for a while, or for a call; returns whether to go on.
    fn wait(&self) -> bool {
        let mut state = self.state.lock();
        if !state.woken && !state.stopping {
            self.changed.wait_for(&mut state, TICK);
        }
        state.woken = false;
        !state.stopping
    }
}

/// The threads, stopped and joined when dropped.
pub(super) struct Threads {
    core: Weak<Core>,
    threads: Vec<JoinHandle<()>>,
}

impl Threads {
    pub(super) fn start(core: &Arc<Core>, count: usize) -> Result<Self, PoolError> {
        let mut threads = Self {
            core: Arc::downgrade(core),
            threads: Vec::with_capacity(count),
        };
        for number in 0..count {
            let core = core.clone();
            let run = move || {
                while core.tenders.wait() {
                    // One thread is enough to decide.
                    if number == 0 {
                        core.decide();
                    }
                    core.tend(|| core.tenders.is_stopping());
                }
            };
            let thread = std::thread::Builder::new().name("leafpress-sweep".into()).spawn(run);
            threads.threads.push(thread.map_err(|error| PoolError::Thread {
                reason: error.to_string(),
            })?);
        }
        Ok(threads)
    }
}

impl Threads {
    /// Stops the threads and waits until they are gone.
    pub(super) fn stop(&mut self) {
        if let Some(core) = self.core.upgrade() {
            core.tenders.stop();
        }
        for thread in self.threads.drain(..) {
            // A thread that panicked said so already.
            let _ = thread.join();
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.stop();
    }
}
