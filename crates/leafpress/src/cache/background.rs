//! The cache's thread: it measures, lets go of what is over, and sees that enough is remembered of what left.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use super::close::Warming;
use super::core::Core;
#[cfg(feature = "metrics")]
use super::metrics::Schedule;
use super::wake::TICK;
use crate::sync::worker::{Health, Worker, Workers};

/// Part of its time that it may look for what is over.
const EXPIRING: f64 = 0.05;
/// It rests so many times as long as a measurement takes, which grows with the memory, before the next.
const REST: u32 = 50;

struct Background {
    core: Arc<Core>,
    looked: Instant,
    measures_at: Instant,
    #[cfg(feature = "metrics")]
    publishes: Schedule,
}

impl Worker for Background {
    fn work(&mut self) -> ControlFlow<()> {
        if !self.core.wake.wait() {
            return ControlFlow::Break(());
        }
        let passed = self.looked.elapsed().min(10 * TICK);
        self.looked = Instant::now();
        let began = Instant::now();
        if began >= self.measures_at && self.core.budget.is_written() {
            self.core.tend();
            self.measures_at = Instant::now() + began.elapsed() * REST;
        }
        self.core.expire_for(passed.mul_f64(EXPIRING));
        #[cfg(feature = "metrics")]
        self.publishes.keep(&self.core);
        ControlFlow::Continue(())
    }

    fn health(&self) -> &Health {
        &self.core.health
    }

    fn give_up(&mut self) {}
}

impl Core {
    /// Measures, makes room if need be, and sees that enough is remembered of what left.
    pub(super) fn tend(&self) {
        enter_span!("leafpress_tend", cache = %self.observer.name);
        self.fit_ghost();
        self.measure();
        self.make_room();
    }
}

/// The thread, stopped when this is dropped.
pub(super) struct Thread {
    core: Arc<Core>,
    workers: Workers,
}

impl Thread {
    /// `keys` are those that are to be brought back from the disk.
    pub(super) fn start(core: &Arc<Core>, keys: Vec<Vec<u8>>) -> io::Result<Self> {
        let mut workers = Workers::default();
        // Model checkers have no time to wait for.
        if !cfg!(any(shuttle, miri)) {
            let background = Background {
                core: Arc::clone(core),
                looked: Instant::now(),
                measures_at: Instant::now(),
                #[cfg(feature = "metrics")]
                publishes: Schedule::default(),
            };
            workers.start("leafpress-cache".to_owned(), background)?;
            if !keys.is_empty() {
                let warming = Warming {
                    core: Arc::clone(core),
                    keys: keys.into_iter(),
                };
                workers.start("leafpress-warm".to_owned(), warming)?;
            }
        }
        Ok(Self {
            core: Arc::clone(core),
            workers,
        })
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.core.wake.stop();
        self.workers.join();
    }
}
