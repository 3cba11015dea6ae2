//! Runs the threads of a measurement in step: they start together, warm up, and are measured, until their time is over,
//! they have nothing left to do, one of them fails, or the run is interrupted.
//!
//! What a thread does is a [`Target`], and what the driving thread does meanwhile is an [`Observer`]. A closed loop is
//! a target whose operations follow each other; an open loop is one that waits for its turn (`pace`).

mod gate;
#[cfg(any(feature = "bench", feature = "cache"))]
mod pace;
mod parallel_for;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::core::LabError;
use crate::core::resources::{CpuTime, usage};
use crate::harness::Phase;
use gate::{Gate, Stage};
#[cfg(any(feature = "bench", feature = "cache"))]
pub(crate) use pace::{Arrivals, Pace};
pub(crate) use parallel_for::{Deal, for_every, in_order};

/// Longest interval at which the driving thread checks the others.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The shortest one, at the end of a stage.
const LOOK_SOON: Duration = Duration::from_micros(100);

/// Does the work of one thread, with errors `E`. It is made, used and dropped by its own thread, so that its small
/// buffers share no cache line with another's.
pub trait Target<E = LabError> {
    /// Results of the thread.
    type Done: Send;

    /// Does the next operations: few, because `stop` is checked only between two steps. Returns false if none are left
    /// in this stage.
    ///
    /// # Errors
    /// The error of an operation. It ends the run.
    fn step(&mut self, stop: &AtomicBool) -> Result<bool, E>;

    /// Begins the measured time: counts and latencies start at zero here.
    fn begin(&mut self);

    /// The measured time is over.
    fn finish(self) -> Self::Done;
}

/// Watches a run from the driving thread while the others work.
pub trait Observer {
    /// Called before a stage, [`Phase::WarmUp`] or [`Phase::Timed`], while all threads wait.
    fn begin(&mut self, _stage: Phase) {}

    /// Called while a stage runs, `elapsed` after its start, at least once. Returns the time until the next call;
    /// `None` ends the stage.
    fn look(&mut self, stage: Phase, elapsed: Duration) -> Option<Duration>;

    /// Called after a stage, when all threads wait or have ended.
    fn end(&mut self, _stage: Phase) {}
}

/// Length of a stage that ends when its targets have nothing left to do.
pub const UNTIL_DONE: Duration = Duration::MAX;

/// How threads are driven.
pub struct Plan<'p, E = LabError> {
    /// Length of the warm-up, if there is one.
    pub warm_up: Option<Duration>,
    /// Length of the measured time.
    pub timed: Duration,
    /// Set by an interrupt.
    pub cancel: &'p AtomicBool,
    /// The error of a thread, by its number, that panicked.
    pub panicked: &'p (dyn Fn(usize) -> E + Sync),
}

/// What a run measured.
pub struct Measured<D> {
    /// Results of the threads, in their order.
    pub done: Vec<D>,
    /// Length of the warm-up in seconds.
    pub warmup_seconds: f64,
    /// Length of the measured time in seconds, until the last thread had ended.
    pub seconds: f64,
    /// What the process used in the measured time.
    pub cpu: CpuTime,
    /// Whether it was interrupted in the measured time.
    pub interrupted: bool,
}

impl<D> Measured<D> {
    /// Creates a run that is of use only as a whole.
    ///
    /// # Errors
    /// [`LabError::Cancelled`] if it was interrupted.
    pub fn whole(self) -> Result<Self, LabError> {
        if self.interrupted {
            Err(LabError::Cancelled)
        } else {
            Ok(self)
        }
    }
}

/// Drives a thread for each of `parts`; `make` turns a part, and the thread's number, into a target.
///
/// # Errors
/// The first error of a thread, [`LabError::System`] if one cannot be started, [`LabError::Cancelled`] if the run was
/// interrupted before the measured time.
pub fn drive<P: Send, E: From<LabError> + Send, T: Target<E>>(
    plan: &Plan<'_, E>,
    parts: Vec<P>,
    make: impl Fn(usize, P) -> Result<T, E> + Sync,
    observer: &mut dyn Observer,
) -> Result<Measured<T::Done>, E> {
    let gate = &Gate::new(plan.panicked);
    let make = &make;
    let threads = parts.len();
    let warms_up = plan.warm_up.is_some();
    let mut warmup_seconds = 0.0;
    let mut done = Vec::with_capacity(threads);
    let timed = std::thread::scope(|scope| {
        let mut handles = Vec::with_capacity(threads);
        for (number, part) in parts.into_iter().enumerate() {
            handles.push(gate.start(scope, number, move || {
                live(gate, number, warms_up, || make(number, part))
            })?);
        }
        gate.await_arrivals(threads);
        if let Some(length) = plan.warm_up {
            let started = Instant::now();
            let all_came = || gate.arrivals() >= 2 * threads;
            watch(plan, gate, Phase::WarmUp, length, observer, &all_came);
            warmup_seconds = started.elapsed().as_secs_f64();
        }
        let (counted_from, before) = (Instant::now(), usage());
        let before = match before {
            Ok(before) if !gate.failed() && !plan.cancel.load(Ordering::Relaxed) => before,
            before => {
                gate.open(Stage::Abandoned);
                before?;
                return Ok(None);
            }
        };
        let seconds = watch(plan, gate, Phase::Timed, plan.timed, observer, &|| !gate.at_work());
        let cpu = usage()?.since(&before, counted_from.elapsed());
        for (number, handle) in handles.into_iter().enumerate() {
            match handle.join() {
                Ok(one) => done.extend(one),
                Err(_) => gate.fail((plan.panicked)(number)),
            }
        }
        Ok::<_, E>(Some((seconds, cpu)))
    });
    gate.failure()?;
    let (seconds, cpu) = timed?.ok_or(LabError::Cancelled)?;
    Ok(Measured {
        done,
        warmup_seconds,
        seconds: seconds.as_secs_f64(),
        cpu,
        interrupted: plan.cancel.load(Ordering::Relaxed),
    })
}

/// A thread, from making its target to its results; `None` if the run was called off or it failed.
fn live<E, T: Target<E>>(
    gate: &Gate<'_, E>,
    number: usize,
    warms_up: bool,
    make: impl FnOnce() -> Result<T, E>,
) -> Option<T::Done> {
    let stop = gate.stopping();
    let mut target = gate.work(number, make);
    if warms_up {
        if !gate.pass(Stage::WarmUp) {
            return None;
        }
        target = target.and_then(|mut target| {
            gate.work(number, move || {
                while !stop.load(Ordering::Relaxed) && target.step(stop)? {}
                Ok(target)
            })
        });
    }
    if !gate.pass(Stage::Timed) {
        return None;
    }
    let mut target = target?;
    gate.work(number, move || {
        target.begin();
        // A machine so busy that the time is over before the thread runs still gives a figure.
        while target.step(stop)? && !stop.load(Ordering::Relaxed) {}
        Ok(target.finish())
    })
}

/// Opens a stage and waits until all threads have done it; returns its length.
fn watch<E>(
    plan: &Plan<'_, E>,
    gate: &Gate<'_, E>,
    stage: Phase,
    length: Duration,
    observer: &mut dyn Observer,
    is_over: &dyn Fn() -> bool,
) -> Duration {
    observer.begin(stage);
    let from = Instant::now();
    gate.open(if stage == Phase::WarmUp {
        Stage::WarmUp
    } else {
        Stage::Timed
    });
    loop {
        let elapsed = from.elapsed();
        if elapsed >= length || plan.cancel.load(Ordering::Relaxed) {
            gate.stop();
        }
        let next = observer.look(stage, elapsed).unwrap_or_else(|| {
            gate.stop();
            LOOK_EVERY
        });
        if is_over() {
            break;
        }
        // A thread that ends or waits wakes this one. A stopped stage is over as soon as its last step is.
        let left = if gate.stopping().load(Ordering::Relaxed) {
            LOOK_EVERY
        } else {
            length.saturating_sub(from.elapsed())
        };
        std::thread::park_timeout(next.min(left).clamp(LOOK_SOON, LOOK_EVERY));
        if is_over() {
            break;
        }
    }
    let elapsed = from.elapsed();
    observer.end(stage);
    elapsed
}

#[cfg(test)]
mod tests;
