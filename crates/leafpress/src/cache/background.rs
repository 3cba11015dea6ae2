//! The cache's task of the upkeep runtime: evicts ahead of need, measures memory, removes expired records, forgets
//! expired absences, and resizes the ghost queue.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::inner::CacheInner;
#[cfg(feature = "metrics")]
use super::metrics::Schedule;
use super::warm::Warming;
use leafpress_base::sync::runtime::{self, Next, Task, TaskHandle};
use leafpress_base::sync::worker::Health;

/// Interval of the task, apart from eviction, for which it is woken.
const TICK: Duration = Duration::from_millis(100);
/// Maximum fraction of the time that is spent looking for expired records.
const EXPIRING: f64 = 0.05;
/// Minimum pause between measurements, as a multiple of the last one's duration, which grows with the memory.
const REST: u32 = 50;

struct Background {
    core: Arc<CacheInner>,
    looked: Instant,
    measures_at: Instant,
    #[cfg(feature = "metrics")]
    publishes: Schedule,
}

impl Task for Background {
    fn work(&mut self) -> Next {
        let next = if self.core.evict_ahead() {
            Next::Again
        } else {
            Next::Wait(TICK)
        };
        let passed = self.looked.elapsed().min(10 * TICK);
        if passed < TICK {
            return next;
        }
        self.looked = Instant::now();
        let began = Instant::now();
        if began >= self.measures_at && self.core.budget.is_written() {
            self.core.run_upkeep();
            self.measures_at = Instant::now() + began.elapsed() * REST;
        }
        self.core.adapt_raw_share();
        self.core.forget_absences();
        self.core.expire_for(passed.mul_f64(EXPIRING));
        #[cfg(feature = "metrics")]
        self.publishes.keep(&self.core);
        next
    }

    fn health(&self) -> &Health {
        &self.core.health
    }

    fn give_up(&mut self) {}
}

impl CacheInner {
    /// Measures memory, evicts if necessary, and resizes the ghost queue.
    pub(super) fn run_upkeep(&self) {
        enter_span!("leafpress_upkeep", cache = %self.observer.name);
        self.fit_ghost();
        self.measure();
        self.make_room();
    }
}

/// The background tasks of a cache, which end when this is dropped.
pub(super) struct Tasks(#[expect(dead_code, reason = "dropped, not looked at")] Vec<TaskHandle>);

impl Tasks {
    /// Starts the tasks. `keys` are the keys to be read back from the disk.
    pub(super) fn start(core: &Arc<CacheInner>, keys: Vec<Vec<u8>>) -> io::Result<Self> {
        let mut tasks = Vec::new();
        // Model checkers do not simulate time.
        if !cfg!(any(shuttle, miri)) {
            let background = Background {
                core: Arc::clone(core),
                looked: Instant::now(),
                measures_at: Instant::now(),
                #[cfg(feature = "metrics")]
                publishes: Schedule::default(),
            };
            tasks.push(runtime::start(background, Some(&core.upkeep))?);
            if !keys.is_empty() {
                let warming = Warming {
                    core: Arc::clone(core),
                    keys: keys.into_iter(),
                };
                tasks.push(runtime::start(warming, None)?);
            }
        }
        Ok(Self(tasks))
    }
}
