//! Does something with every number up to a count, on all threads: loading keys, reading them back.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::{Observer, Plan, Target, UNTIL_DONE, drive};
use crate::core::LabError;
use crate::harness::Phase;

/// Interval of progress reports.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);
/// Numbers that a thread takes at a time.
const CHUNK: u64 = 256;

/// How numbers are dealt out to threads.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Deal {
    /// A thread takes the next ones when it has done the last.
    Next,
    /// Each thread has a run of its own, so that which thread does which does not depend on their speed.
    #[cfg(feature = "bench")]
    Runs,
}

/// Calls a visitor of each thread's own, made by the thread, for all numbers below `count`.
///
/// # Errors
/// As [`drive`], and [`LabError::Cancelled`].
pub(crate) fn for_every<V: FnMut(u64) -> Result<(), LabError>>(
    (count, threads): (u64, usize),
    deal: Deal,
    cancel: &AtomicBool,
    panicked: &(dyn Fn(usize) -> LabError + Sync),
    progress: &mut dyn FnMut(f64),
    make: impl Fn() -> Result<V, LabError> + Sync,
) -> Result<(), LabError> {
    let parts = match deal {
        Deal::Next => 1,
        #[cfg(feature = "bench")]
        Deal::Runs => threads as u64,
    };
    // The first runs have one number more for the remainder.
    let first = |part: u64| part * (count / parts) + part.min(count % parts);
    let parts: Vec<_> = (0..parts)
        .map(|part| Part {
            next: AtomicU64::new(first(part)),
            first: first(part),
            end: first(part + 1),
        })
        .collect();
    let plan = Plan {
        warm_up: None,
        timed: UNTIL_DONE,
        cancel,
        panicked,
    };
    let of_threads = (0..threads).map(|thread| &parts[thread % parts.len()]).collect();
    let make = |_, part| Ok(Visits { part, visit: make()? });
    let mut observer = Progress {
        parts: &parts,
        count,
        progress,
    };
    drive(&plan, of_threads, make, &mut observer)?.whole().map(drop)
}

/// The numbers below `count` in order, on the calling thread; they end early if `cancel` is set.
pub(crate) fn in_order<'p>(
    count: u64,
    cancel: &'p AtomicBool,
    progress: &'p mut dyn FnMut(f64),
) -> impl Iterator<Item = u64> + 'p {
    let mut reported = Instant::now();
    (0..count).take_while(move |&number| {
        if !number.is_multiple_of(CHUNK) {
            return true;
        }
        if reported.elapsed() >= PROGRESS_EVERY {
            reported = Instant::now();
            progress(number as f64 / count as f64);
        }
        !cancel.load(Ordering::Relaxed)
    })
}

/// Numbers that one thread, or all of them, take in order.
#[repr(align(128))]
struct Part {
    next: AtomicU64,
    first: u64,
    end: u64,
}

struct Visits<'p, V> {
    part: &'p Part,
    visit: V,
}

impl<V: FnMut(u64) -> Result<(), LabError>> Target for Visits<'_, V> {
    type Done = ();

    fn step(&mut self, _: &AtomicBool) -> Result<bool, LabError> {
        let first = self.part.next.fetch_add(CHUNK, Ordering::Relaxed);
        let end = self.part.end.min(first.saturating_add(CHUNK));
        (first..end).try_for_each(&mut self.visit)?;
        Ok(end < self.part.end)
    }

    fn begin(&mut self) {}

    fn finish(self) {}
}

struct Progress<'p> {
    parts: &'p [Part],
    count: u64,
    progress: &'p mut dyn FnMut(f64),
}

impl Observer for Progress<'_> {
    fn look(&mut self, _: Phase, _: Duration) -> Option<Duration> {
        let done = self
            .parts
            .iter()
            .map(|part| part.next.load(Ordering::Relaxed).min(part.end) - part.first);
        (self.progress)(done.sum::<u64>() as f64 / self.count.max(1) as f64);
        Some(PROGRESS_EVERY)
    }
}
