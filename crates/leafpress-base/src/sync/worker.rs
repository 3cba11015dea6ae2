//! Dedicated background threads of a tree, a pool or a cache: those that wait for a disk, and those that the caller
//! requested.
//!
//! A worker does one piece of work after another until its owner is dropped. Work that panics (a caller's engine or
//! store may) is counted and lost, and the thread continues with the next. A worker with too many consecutive panics
//! ends: its owner's statistics and calls then report that. No background thread ends silently.

use std::any::Any;
use std::io;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use super::threads::{self, Thread};

/// A worker ends after this number of consecutive panics.
pub(super) const MAX_PANICS_IN_A_ROW: u32 = 16;

/// The work of a background thread.
pub trait Worker: Send + 'static {
    /// Waits for a piece of work and does it; [`ControlFlow::Break`] when the owner is being dropped. After a panic it
    /// is called again, so it must leave no lock held, and nothing marked as in progress.
    fn work(&mut self) -> ControlFlow<()>;

    /// Returns the health shared with the owner.
    fn health(&self) -> &Health;

    /// Called when the thread is about to end while its owner stays: nothing may wait for its work from now on.
    fn give_up(&mut self);
}

/// Payload that replaces a panic that is recorded already.
struct Noted;

/// The health of an owner's workers.
#[derive(Debug, Default)]
pub struct Health {
    panics: AtomicU64,
    ended: AtomicU64,
    /// Message of the last panic.
    last_message: Mutex<String>,
}

impl Health {
    /// Returns the number of pieces of work that panicked.
    pub fn panics(&self) -> u64 {
        self.panics.load(Relaxed)
    }

    /// Returns the number of threads that ended before their owner.
    pub fn ended(&self) -> u64 {
        self.ended.load(Relaxed)
    }

    /// Returns why background work is not done any more, if a thread has ended.
    pub fn failure(&self) -> Option<String> {
        let last_message = self.last_message.lock().unwrap_or_else(PoisonError::into_inner);
        (self.ended() > 0).then(|| {
            format!("a background thread ended after {MAX_PANICS_IN_A_ROW} panics in a row, the last: {last_message}")
        })
    }

    /// Does a piece of work that others wait for. A panic is recorded before they can observe the end of the work.
    pub fn noting<R>(&self, work: impl FnOnce() -> R) -> R {
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
            self.note(panic);
            resume_unwind(Box::new(Noted))
        })
    }

    /// Records that a thread or a task has ended before its owner. To be called before callers that wait for its work
    /// are woken, because they request the reason.
    pub(super) fn end(&self) {
        self.ended.fetch_add(1, Relaxed);
        #[cfg(feature = "tracing")]
        let _ = catch_unwind(|| {
            warn_event!(thread = threads::current_name(), "background thread ended");
        });
    }

    /// Records a panic.
    pub fn note(&self, panic: Box<dyn Any + Send>) {
        if panic.is::<Noted>() {
            return;
        }
        self.panics.fetch_add(1, Relaxed);
        let mut last_message = self.last_message.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = panic.downcast_ref::<&str>() {
            (*text).clone_into(&mut last_message);
        } else if let Some(text) = panic.downcast_ref::<String>() {
            last_message.clone_from(text);
        } else {
            "no message".clone_into(&mut last_message);
            // The payload's destructor might panic.
            std::mem::forget(panic);
        }
        #[cfg(feature = "tracing")]
        {
            let reason = last_message.clone();
            drop(last_message);
            // A panic in the subscriber must not end the thread.
            let _ = catch_unwind(AssertUnwindSafe(|| {
                warn_event!(thread = threads::current_name(), reason, "background work panicked");
            }));
        }
    }
}

/// An owner's threads, joined on drop. The owner signals them to stop before that.
#[derive(Debug, Default)]
pub struct Workers(Vec<Thread<()>>);

impl Workers {
    /// Starts one more thread.
    pub fn start(&mut self, name: String, worker: impl Worker) -> io::Result<()> {
        self.0.push(threads::spawn(&name, move || run(worker))?);
        Ok(())
    }

    /// Joins all threads, which were signalled to stop.
    pub fn join(&mut self) {
        for thread in self.0.drain(..) {
            // The last reference to the owner may be dropped by one of its own threads: that one ends by itself.
            if thread.is_current() {
                continue;
            }
            // Panics are caught and counted in the thread.
            let _ = thread.join();
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.join();
    }
}

fn run(mut worker: impl Worker) {
    let mut panics_in_a_row = 0;
    while panics_in_a_row < MAX_PANICS_IN_A_ROW {
        match catch_unwind(AssertUnwindSafe(|| worker.work())) {
            Ok(ControlFlow::Continue(())) => panics_in_a_row = 0,
            Ok(ControlFlow::Break(())) => return,
            Err(panic) => {
                panics_in_a_row += 1;
                worker.health().note(panic);
            }
        }
    }
    worker.health().end();
    worker.give_up();
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn a_panic_is_recorded_once_before_the_end_of_work_is_observed() {
        struct Observer<'h>(&'h Health, u64);

        impl Drop for Observer<'_> {
            fn drop(&mut self) {
                assert_eq!(self.0.panics(), self.1);
            }
        }

        let health = Health::default();
        for panics in 1..4 {
            let work = || {
                let _observer = Observer(&health, panics);
                health.noting(|| panic!("a bug"))
            };
            let panic = catch_unwind(AssertUnwindSafe(work)).unwrap_err();
            health.note(panic);
            assert_eq!(health.panics(), panics);
        }
        assert_eq!(health.noting(|| 7), 7);
    }

    /// A worker that panics in the first `panics` calls, works in the next `works`, and so on until `until` pieces of
    /// work are done.
    struct Script {
        health: Arc<Health>,
        gave_up: Arc<AtomicBool>,
        panics: u64,
        works: u64,
        until: u64,
        calls: u64,
        worked: Arc<AtomicU64>,
    }

    impl Worker for Script {
        fn work(&mut self) -> ControlFlow<()> {
            if self.worked.load(Relaxed) == self.until {
                return ControlFlow::Break(());
            }
            let call = self.calls;
            self.calls += 1;
            assert!(call % (self.panics + self.works) >= self.panics, "call {call} panics");
            self.worked.fetch_add(1, Relaxed);
            ControlFlow::Continue(())
        }

        fn health(&self) -> &Health {
            &self.health
        }

        fn give_up(&mut self) {
            assert!(self.health.failure().is_some(), "waiting callers can ask why");
            self.gave_up.store(true, Relaxed);
        }
    }

    /// Returns the panics, the pieces of work done, and why the worker ended.
    fn run_script(panics: u64, works: u64, until: u64) -> (u64, u64, Option<String>) {
        let (health, gave_up, worked) = (Arc::<Health>::default(), Arc::default(), Arc::default());
        let script = Script {
            health: Arc::clone(&health),
            gave_up: Arc::clone(&gave_up),
            panics,
            works,
            until,
            calls: 0,
            worked: Arc::clone(&worked),
        };
        let mut workers = Workers::default();
        workers.start("leafpress-test".to_owned(), script).unwrap();
        workers.join();
        assert_eq!(gave_up.load(Relaxed), health.failure().is_some());
        assert_eq!(health.ended(), u64::from(health.failure().is_some()));
        (health.panics(), worked.load(Relaxed), health.failure())
    }

    #[test]
    fn work_that_panics_now_and_then_ends_nothing() {
        assert_eq!(run_script(0, 1, 5), (0, 5, None));
        assert_eq!(run_script(3, 2, 6), (9, 6, None));
        let one_less = u64::from(MAX_PANICS_IN_A_ROW) - 1;
        assert_eq!(run_script(one_less, 1, 10), (one_less * 10, 10, None));
    }

    #[test]
    fn a_worker_that_only_panics_ends_with_a_reason() {
        let (panics, worked, failure) = run_script(u64::MAX - 1, 1, 1);
        assert_eq!((panics, worked), (u64::from(MAX_PANICS_IN_A_ROW), 0));
        let failure = failure.unwrap();
        assert!(failure.ends_with("the last: call 15 panics"), "{failure}");
    }
}
