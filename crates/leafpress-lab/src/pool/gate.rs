//! Keeps workers and their driver in step.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::outcome::Work;
use super::worker::{Shared, Worker};
use crate::core::LabError;
use crate::core::latency::Histograms;

/// What all workers wait for, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Stage {
    Closed,
    WarmUp,
    Measured,
    /// There is no run after all.
    Abandoned,
}

/// Keeps the workers and the one that drives them in step.
pub(super) struct Gate {
    open: AtomicU8,
    /// Times a worker came to the gate.
    arrived: AtomicUsize,
    /// Workers that have not ended.
    pub working: AtomicUsize,
    pub failure: Mutex<Option<LabError>>,
    pub finished: Mutex<Vec<Finished>>,
}

/// What a worker hands back.
pub(super) struct Finished {
    pub end: Instant,
    pub work: Work,
    /// Pages compared before the measured time.
    pub warmup_checked: u64,
    pub latencies: Histograms,
}

/// Counts a worker out, even one that panics.
pub(super) struct Working<'g>(pub &'g Gate);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.working.fetch_sub(1, Ordering::Release);
    }
}

impl Gate {
    pub(super) fn new() -> Self {
        Self {
            open: AtomicU8::new(Stage::Closed as u8),
            arrived: AtomicUsize::new(0),
            working: AtomicUsize::new(0),
            failure: Mutex::new(None),
            finished: Mutex::new(Vec::new()),
        }
    }

    pub(super) fn open(&self, stage: Stage) {
        self.open.store(stage as u8, Ordering::Release);
    }

    /// A worker's side: waits until the gate is open so far; false when there is no run.
    fn pass(&self, stage: Stage) -> bool {
        self.arrived.fetch_add(1, Ordering::AcqRel);
        loop {
            let open = self.open.load(Ordering::Acquire);
            if open >= stage as u8 {
                return open != Stage::Abandoned as u8;
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    /// The driver's side: waits until workers came to the gate `times` times altogether.
    pub(super) fn await_arrivals(&self, times: usize) {
        while self.arrived.load(Ordering::Acquire) < times {
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    pub(super) fn failed(&self) -> bool {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn fail(&self, shared: &Shared<'_>, error: LabError) {
        shared.stop.store(true, Ordering::Relaxed);
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(error);
    }

    /// A worker's life.
    pub(super) fn work<'r>(&self, mut worker: Worker<'r>, shared: &Shared<'r>) {
        let run = |worker: &mut Worker<'r>| {
            // A panic in the pool must not leave the other workers waiting.
            let result = catch_unwind(AssertUnwindSafe(|| worker.run()));
            let error = match result {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error,
                Err(_) => LabError::System("a worker panicked in the pool".into()),
            };
            self.fail(shared, error);
        };
        if !self.pass(Stage::WarmUp) {
            return;
        }
        run(&mut worker);
        let warmup_checked = worker.work.checked;
        worker.measure();
        if !self.pass(Stage::Measured) {
            return;
        }
        run(&mut worker);
        let finished = Finished {
            end: Instant::now(),
            work: worker.work,
            warmup_checked,
            latencies: worker.latencies(),
        };
        self.finished
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(finished);
    }
}
