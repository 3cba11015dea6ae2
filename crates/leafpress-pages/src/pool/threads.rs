//! The pool's worker threads.

use std::ops::ControlFlow;
use std::sync::{Arc, Weak};

use super::PoolError;
use super::inner::PoolInner;
use leafpress_base::sync::worker::{self, Health, Worker};

/// A worker thread.
struct Sweeping {
    core: Arc<PoolInner>,
    /// Only one thread adapts the share.
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
        self.core.run_upkeep(|| workers.is_stopping());
        ControlFlow::Continue(())
    }

    fn health(&self) -> &Health {
        &self.core.workers.health
    }

    fn give_up(&mut self) {
        self.core.workers.ended();
    }
}

/// The threads, stopped and joined when dropped.
pub(super) struct Threads {
    core: Weak<PoolInner>,
    threads: worker::Workers,
}

impl Threads {
    pub(super) fn start(core: &Arc<PoolInner>, count: usize) -> Result<Self, PoolError> {
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
            core.workers.started();
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
