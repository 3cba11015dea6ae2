//! Keeps threads in step: they wait at the gate for each stage.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, Scope, ScopedJoinHandle, Thread};
use std::time::{Duration, Instant};

use super::LOOK_EVERY;
use crate::core::LabError;

/// Time that a waiting thread spins, yielding to other threads, for a low latency.
const AWAKE: Duration = Duration::from_millis(2);
/// After that it sleeps this long at a time.
const NAP: Duration = Duration::from_micros(50);

/// States that all threads wait for, in order.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
pub(super) enum Stage {
    Closed,
    WarmUp,
    Timed,
    /// The run was called off.
    Abandoned,
}

/// The gate that threads wait at.
pub(super) struct Gate<'p, E> {
    /// Ends the stage in progress; threads check it themselves.
    stop: AtomicBool,
    open: AtomicU8,
    /// Arrivals of threads at the gate.
    arrived: AtomicUsize,
    /// Threads that have not ended.
    working: AtomicUsize,
    driver: Thread,
    failure: Mutex<Option<E>>,
    panicked: &'p (dyn Fn(usize) -> E + Sync),
}

/// Counts a thread out, even one that panics.
struct Working<'g>(&'g AtomicUsize, &'g Thread);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
        self.1.unpark();
    }
}

impl<'p, E> Gate<'p, E> {
    /// A closed gate, which the calling thread drives.
    pub(super) fn new(panicked: &'p (dyn Fn(usize) -> E + Sync)) -> Self {
        Self {
            stop: AtomicBool::new(false),
            open: AtomicU8::new(Stage::Closed as u8),
            arrived: AtomicUsize::new(0),
            working: AtomicUsize::new(0),
            driver: std::thread::current(),
            failure: Mutex::new(None),
            panicked,
        }
    }

    /// Starts a thread. On failure, the run is called off for waiting threads.
    ///
    /// # Errors
    /// [`LabError::System`] with the thread's number.
    pub(super) fn start<'scope, D: Send + 'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        number: usize,
        body: impl FnOnce() -> D + Send + 'scope,
    ) -> Result<ScopedJoinHandle<'scope, D>, LabError> {
        self.working.fetch_add(1, Ordering::Relaxed);
        let working = Working(&self.working, &self.driver);
        let body = move || {
            let _working = working;
            body()
        };
        Builder::new().spawn_scoped(scope, body).map_err(|e| {
            self.open(Stage::Abandoned);
            LabError::System(format!("cannot start thread {number}: {e}"))
        })
    }

    /// Thread side: waits for a state of the gate; returns false if the run is called off.
    pub(super) fn pass(&self, stage: Stage) -> bool {
        self.arrived.fetch_add(1, Ordering::AcqRel);
        self.driver.unpark();
        let came = Instant::now();
        loop {
            let open = self.open.load(Ordering::Acquire);
            if open >= stage as u8 {
                return open != Stage::Abandoned as u8;
            }
            if came.elapsed() < AWAKE {
                std::thread::yield_now();
            } else {
                std::thread::sleep(NAP);
            }
        }
    }

    /// Thread side: works, and reports a failure. A panic counts as one, and does not leave the other threads waiting.
    pub(super) fn work<R>(&self, number: usize, work: impl FnOnce() -> Result<R, E>) -> Option<R> {
        let error = match catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(done)) => return Some(done),
            Ok(Err(error)) => error,
            Err(_) => (self.panicked)(number),
        };
        self.fail(error);
        None
    }

    /// Set when the stage in progress must end.
    pub(super) fn stopping(&self) -> &AtomicBool {
        &self.stop
    }

    /// Ends the stage in progress.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Ends the run; the first failure is reported.
    pub(super) fn fail(&self, error: E) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(error);
        self.stop();
    }

    /// Driver side: lets threads pass. Without a failure, the stage runs until it is stopped.
    pub(super) fn open(&self, stage: Stage) {
        self.stop.store(self.failed(), Ordering::Relaxed);
        self.open.store(stage as u8, Ordering::Release);
    }

    /// Driver side: waits until threads came to the gate `times` times altogether.
    pub(super) fn await_arrivals(&self, times: usize) {
        while self.arrivals() < times {
            std::thread::park_timeout(LOOK_EVERY);
        }
    }

    /// Times that a thread came to the gate.
    pub(super) fn arrivals(&self) -> usize {
        self.arrived.load(Ordering::Acquire)
    }

    /// Whether a thread has failed.
    pub(super) fn failed(&self) -> bool {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Whether a thread has not ended. The parked driver is woken when one ends.
    pub(super) fn at_work(&self) -> bool {
        self.working.load(Ordering::Acquire) > 0
    }

    /// # Errors
    /// The first failure of a thread.
    pub(super) fn failure(&self) -> Result<(), E> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        failure.map_or(Ok(()), Err)
    }
}
