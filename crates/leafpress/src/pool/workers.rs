//! The pool's own threads.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::PoolError;
use super::core::Core;
use crate::sync::worker::{self, Health, Worker};
use crate::sync::{Condvar, Mutex};

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

/// One of the threads.
struct Sweeping {
    core: Arc<Core>,
    /// One thread is enough to decide on the share.
    decides: bool,
}

impl Worker for Sweeping {
    fn work(&mut self) -> ControlFlow<()> {
        let workers = &self.core.workers;
        if !workers.wait() {
            return ControlFlow::Break(());
        }
        if self.decides || workers.health.ended() > 0 {
            self.core.decide();
        }
        self.core.tend(|| workers.is_stopping());
        ControlFlow::Continue(())
    }

    fn health(&self) -> &Health {
        &self.core.workers.health
    }

    fn give_up(&mut self) {
        self.core.workers.running.fetch_sub(1, Relaxed);
    }
}

/// The threads, stopped and joined when dropped.
pub(super) struct Threads {
    core: Weak<Core>,
    threads: worker::Workers,
}

impl Threads {
    pub(super) fn start(core: &Arc<Core>, count: usize) -> Result<Self, PoolError> {
        let mut threads = Self {
            core: Arc::downgrade(core),
            threads: worker::Workers::default(),
        };
        for number in 0..count {
            let sweeping = Sweeping {
                core: core.clone(),
                decides: number == 0,
            };
            let started = threads.threads.start("leafpress-sweep".into(), sweeping);
            started.map_err(|error| PoolError::Thread {
                reason: error.to_string(),
            })?;
            core.workers.running.fetch_add(1, Relaxed);
        }
        Ok(threads)
    }

    /// Stops the threads and waits until they are gone.
    pub(super) fn stop(&mut self) {
        if let Some(core) = self.core.upgrade() {
            core.workers.stop();
        }
        self.threads.join();
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.stop();
    }
}
