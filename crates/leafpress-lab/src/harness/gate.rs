//! Keeps the threads of a run in step with their driver: they warm up, run, and return their results.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, Scope, Thread};
use std::time::{Duration, Instant};

use crate::core::LabError;

/// Maximum interval at which a driver checks its threads.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Time that a waiting thread spins, yielding to other threads, for a low latency.
const AWAKE: Duration = Duration::from_millis(2);
/// After that it sleeps this long at a time.
const NAP: Duration = Duration::from_micros(50);

/// States that all threads wait for, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Stage {
    Closed,
    WarmUp,
    Timed,
    /// The run was called off.
    Abandoned,
}

/// The gate that threads wait at. Each hands back a `T`.
pub(crate) struct Gate<'s, T> {
    /// Ends the stage in progress; threads look at it themselves.
    stop: &'s AtomicBool,
    open: AtomicU8,
    /// Arrivals of threads at the gate.
    arrived: AtomicUsize,
    /// Threads that have not ended.
    working: AtomicUsize,
    driver: Thread,
    failure: Mutex<Option<LabError>>,
    finished: Mutex<Vec<T>>,
}

/// Counts a thread out, even one that panics.
struct Working<'g, 's, T>(&'g Gate<'s, T>);

impl<T> Drop for Working<'_, '_, T> {
    fn drop(&mut self) {
        self.0.working.fetch_sub(1, Ordering::Release);
        self.0.driver.unpark();
    }
}

impl<'s, T: Send> Gate<'s, T> {
    /// A closed gate, which the calling thread drives.
    pub(crate) fn new(stop: &'s AtomicBool) -> Self {
        Self {
            stop,
            open: AtomicU8::new(Stage::Closed as u8),
            arrived: AtomicUsize::new(0),
            working: AtomicUsize::new(0),
            driver: std::thread::current(),
            failure: Mutex::new(None),
            finished: Mutex::new(Vec::new()),
        }
    }

    /// Starts a thread. On failure, the run is called off for waiting threads.
    ///
    /// # Errors
    /// [`LabError::System`] with the thread's number.
    pub(crate) fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        number: usize,
        body: impl FnOnce() + Send + 'scope,
    ) -> Result<(), LabError> {
        self.working.fetch_add(1, Ordering::Relaxed);
        let working = Working(self);
        let body = move || {
            let _working = working;
            body();
        };
        if let Err(e) = Builder::new().spawn_scoped(scope, body) {
            self.open(Stage::Abandoned);
            return Err(LabError::System(format!("cannot start thread {number}: {e}")));
        }
        Ok(())
    }

    /// Thread side: waits for a state of the gate; returns false if the run is called off.
    pub(crate) fn pass(&self, stage: Stage) -> bool {
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

    /// Thread side: works, and reports a failure. A panic counts as one, and does not leave the other threads
    /// waiting.
    pub(crate) fn work<R>(
        &self,
        panicked: impl FnOnce() -> LabError,
        work: impl FnOnce() -> Result<R, LabError>,
    ) -> Option<R> {
        let error = match catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(done)) => return Some(done),
            Ok(Err(error)) => error,
            Err(_) => panicked(),
        };
        self.fail(error);
        None
    }

    /// Thread side: returns its results.
    pub(crate) fn finish(&self, done: T) {
        self.finished.lock().unwrap_or_else(PoisonError::into_inner).push(done);
    }

    /// Ends the run; the first failure is reported.
    pub(crate) fn fail(&self, error: LabError) {
        self.stop.store(true, Ordering::Relaxed);
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(error);
    }

    /// The driver's side.
    pub(crate) fn open(&self, stage: Stage) {
        self.open.store(stage as u8, Ordering::Release);
    }

    /// The driver's side: waits until threads came to the gate `times` times altogether.
    pub(crate) fn await_arrivals(&self, times: usize) {
        while self.arrived.load(Ordering::Acquire) < times {
            std::thread::park_timeout(LOOK_EVERY);
        }
    }

    /// Times that a thread came to the gate.
    #[cfg(feature = "cache")]
    pub(crate) fn arrived(&self) -> usize {
        self.arrived.load(Ordering::Acquire)
    }

    /// Whether a thread has failed.
    pub(crate) fn failed(&self) -> bool {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Whether a thread has arrived. The parked driver is woken when one ends.
    pub(crate) fn at_work(&self) -> bool {
        self.working.load(Ordering::Acquire) > 0
    }

    /// Results of the threads.
    ///
    /// # Errors
    /// The first failure of a thread.
    pub(crate) fn close(self) -> Result<Vec<T>, LabError> {
        match self.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(self.finished.into_inner().unwrap_or_else(PoisonError::into_inner)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs three threads that warm up and run; returns their results, or why the run was called off.
    fn run(body: impl Fn(&Gate<'_, usize>, usize) + Sync, abandon: bool) -> (Result<Vec<usize>, LabError>, bool) {
        let stop = AtomicBool::new(false);
        let gate = Gate::new(&stop);
        std::thread::scope(|scope| {
            for number in 0..3 {
                let (gate, body) = (&gate, &body);
                gate.start(scope, number, move || body(gate, number)).unwrap();
            }
            gate.await_arrivals(3);
            gate.open(Stage::WarmUp);
            gate.await_arrivals(6);
            gate.open(if abandon || gate.failed() {
                Stage::Abandoned
            } else {
                Stage::Timed
            });
            while gate.at_work() {
                std::thread::park_timeout(LOOK_EVERY);
            }
        });
        (gate.close(), stop.into_inner())
    }

    fn both_stages(gate: &Gate<'_, usize>, number: usize) {
        if gate.pass(Stage::WarmUp) && gate.pass(Stage::Timed) {
            gate.finish(number);
        }
    }

    #[test]
    fn threads_go_through_together_and_hand_back_what_they_did() {
        let (done, stopped) = run(both_stages, false);
        let mut done = done.unwrap();
        done.sort_unstable();
        assert_eq!((done, stopped), (vec![0, 1, 2], false));
    }

    #[test]
    fn an_abandoned_run_hands_back_nothing() {
        let (done, _) = run(both_stages, true);
        assert!(done.unwrap().is_empty());
    }

    #[test]
    fn the_first_failure_is_told_and_a_panic_is_one() {
        for panics in [false, true] {
            let (done, stopped) = run(
                |gate, number| {
                    gate.pass(Stage::WarmUp);
                    let panicked = || LabError::System("thread 1 panicked".into());
                    gate.work(panicked, || match number {
                        1 if panics => panic!("as the test wants it"),
                        1 => Err(LabError::System("thread 1 failed".into())),
                        _ => Ok(()),
                    });
                    if gate.pass(Stage::Timed) {
                        gate.finish(number);
                    }
                },
                false,
            );
            let told = done.unwrap_err().to_string();
            assert!(
                told.contains(if panics { "panicked" } else { "failed" }) && stopped,
                "{told}"
            );
        }
    }
}
