//! Unit tests of the runtime.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::*;

/// A value that tests wait for.
#[derive(Default)]
struct Seen<T>(Mutex<T>, Condvar);

impl<T> Seen<T> {
    fn change(&self, change: impl FnOnce(&mut T)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
        self.1.notify_all();
    }

    fn wait_until(&self, is_there: impl Fn(&T) -> bool) {
        let mut value = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while !is_there(&value) {
            value = self.1.wait(value).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A task that is a closure.
struct Closure<F> {
    work: F,
    health: Arc<Health>,
    gave_up: Arc<AtomicBool>,
}

impl<F: FnMut() -> Next + Send + 'static> Task for Closure<F> {
    fn work(&mut self) -> Next {
        (self.work)()
    }

    fn health(&self) -> &Health {
        &self.health
    }

    fn give_up(&mut self) {
        assert!(self.health.failure().is_some(), "waiting callers can ask why");
        self.gave_up.store(true, Ordering::Relaxed);
    }
}

fn closure<F: FnMut() -> Next + Send + 'static>(work: F) -> Closure<F> {
    Closure {
        work,
        health: Arc::default(),
        gave_up: Arc::default(),
    }
}

/// Creates a runtime for one test: the process's own has tasks of other tests too.
fn own() -> &'static Runtime {
    Box::leak(Box::default())
}

impl Runtime {
    fn start_own(&'static self, work: impl FnMut() -> Next + Send + 'static, waker: Option<&Waker>) -> Owned {
        let handle = self.start(Box::new(closure(work)), waker).unwrap();
        Owned(std::mem::ManuallyDrop::new(handle))
    }
}

/// A handle of a runtime that is not the process's.
struct Owned(std::mem::ManuallyDrop<TaskHandle>);

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.0.runtime.end(self.0.0.number);
    }
}

#[test]
fn many_tasks_share_few_threads_which_end_with_the_last() {
    const TASKS: usize = 200;
    let runtime = own();
    let seen = Arc::new(Seen::<(BTreeSet<String>, usize)>::default());
    let mut handles: Vec<_> = (0..TASKS)
        .map(|_| {
            let seen = Arc::clone(&seen);
            let mut calls = 0;
            let work = move || {
                calls += 1;
                let thread = format!("{:?}", std::thread::current().id());
                seen.change(|(threads, ended)| {
                    threads.insert(thread);
                    *ended += usize::from(calls == 3);
                });
                if calls < 3 { Next::Again } else { Next::Idle(None) }
            };
            runtime.start_own(work, None)
        })
        .collect();
    seen.wait_until(|(_, ended)| *ended == TASKS);
    assert!(seen.0.lock().unwrap().0.len() <= max_threads());
    let last = handles.pop();
    drop(handles);
    assert!(runtime.state.lock().threads > 0);
    drop(last);
    let state = runtime.state.lock();
    assert_eq!((state.tasks.len(), state.threads, state.handles.len()), (0, 0, 0));
    drop(state);
    // The runtime starts again.
    let again = Arc::new(Seen::<bool>::default());
    let is_called = Arc::clone(&again);
    let _handle = runtime.start_own(
        move || {
            is_called.change(|called| *called = true);
            Next::End
        },
        None,
    );
    again.wait_until(|called| *called);
}

#[test]
fn one_task_has_one_thread() {
    let runtime = own();
    let seen = Arc::new(Seen::<u32>::default());
    let counting = Arc::clone(&seen);
    let work = move || {
        counting.change(|calls| *calls += 1);
        Next::Wait(Duration::from_millis(1))
    };
    let _handle = runtime.start_own(work, None);
    seen.wait_until(|calls| *calls > 20);
    assert_eq!(runtime.state.lock().threads, 1);
}

#[test]
fn a_timer_calls_a_task_while_others_are_at_long_work() {
    let runtime = own();
    let (ticks, blocked) = (
        Arc::new(Seen::<u32>::default()),
        Arc::new(Seen::<(u32, bool)>::default()),
    );
    let long: Vec<_> = (1..max_threads())
        .map(|_| {
            let blocked = Arc::clone(&blocked);
            let work = move || {
                blocked.change(|(count, _)| *count += 1);
                blocked.wait_until(|(_, released)| *released);
                Next::End
            };
            runtime.start_own(work, None)
        })
        .collect();
    let ticking = Arc::clone(&ticks);
    let work = move || {
        ticking.change(|ticks| *ticks += 1);
        Next::Wait(Duration::from_millis(1))
    };
    let _timer = runtime.start_own(work, None);
    blocked.wait_until(|(count, _)| *count as usize == max_threads() - 1);
    let before = *ticks.0.lock().unwrap();
    ticks.wait_until(|ticks| *ticks > before + 3);
    blocked.change(|(_, released)| *released = true);
    drop(long);
}

#[test]
fn a_wake_up_is_not_lost() {
    // Uses the process's runtime, since a waker checks its owner.
    let waker = Arc::new(Waker::default());
    let (due, done) = (Arc::new(AtomicU64::new(0)), Arc::new(Seen::<u64>::default()));
    let task = {
        let (due, done) = (Arc::clone(&due), Arc::clone(&done));
        closure(move || {
            let seen = due.load(Ordering::SeqCst);
            done.change(|done| *done = seen);
            Next::Idle(None)
        })
    };
    waker.wake();
    let _handle = start(task, Some(&waker)).unwrap();
    for turn in 1..2000 {
        due.store(turn, Ordering::SeqCst);
        waker.wake();
        if turn % 3 == 0 {
            done.wait_until(|done| *done == turn);
        }
    }
    done.wait_until(|done| *done == 1999);
}

#[test]
fn an_end_waits_for_the_work_that_is_done_and_not_for_its_own() {
    let runtime = own();
    let (began, is_over) = (Arc::new(Seen::<bool>::default()), Arc::new(AtomicBool::new(false)));
    let handle = {
        let (began, is_over) = (Arc::clone(&began), Arc::clone(&is_over));
        let work = move || {
            began.change(|began| *began = true);
            std::thread::sleep(Duration::from_millis(20));
            is_over.store(true, Ordering::SeqCst);
            Next::Again
        };
        runtime.start_own(work, None)
    };
    began.wait_until(|began| *began);
    drop(handle);
    assert!(is_over.load(Ordering::SeqCst));

    // A task that drops its own handle.
    let own_handle = Arc::new(Mutex::new(None));
    let calls = Arc::new(AtomicUsize::new(0));
    let dropped = Arc::new(Seen::<bool>::default());
    struct SetOnDrop(Arc<Seen<bool>>);
    impl Drop for SetOnDrop {
        fn drop(&mut self) {
            self.0.change(|dropped| *dropped = true);
        }
    }
    let set_on_drop = SetOnDrop(Arc::clone(&dropped));
    let (handle, counted) = (Arc::clone(&own_handle), Arc::clone(&calls));
    let work = move || {
        let _ = &set_on_drop;
        counted.fetch_add(1, Ordering::SeqCst);
        match handle.lock().unwrap().take() {
            Some::<Owned>(handle) => drop(handle),
            None => return Next::Wait(Duration::from_millis(1)),
        }
        Next::Again
    };
    let made = runtime.start_own(work, None);
    *own_handle.lock().unwrap() = Some(made);
    dropped.wait_until(|dropped| *dropped);
    let state = runtime.state.lock();
    assert!(calls.load(Ordering::SeqCst) > 0 && state.tasks.len() <= 1);
}

#[test]
fn a_task_that_only_panics_ends_with_a_reason() {
    let panics_then_works = |panics: u32, until: u32, idles: bool| {
        let runtime = own();
        let (calls, done) = (Arc::new(AtomicU64::new(0)), Arc::new(Seen::<bool>::default()));
        struct SetOnDrop(Arc<Seen<bool>>);
        impl Drop for SetOnDrop {
            fn drop(&mut self) {
                self.0.change(|done| *done = true);
            }
        }
        let (counted, set_on_drop) = (Arc::clone(&calls), SetOnDrop(Arc::clone(&done)));
        let (mut works, mut is_idle) = (0, false);
        let task = closure(move || {
            let _ = &set_on_drop;
            if idles {
                is_idle = !is_idle;
                if is_idle {
                    return Next::Idle(Some(Duration::ZERO));
                }
            }
            let call = counted.fetch_add(1, Ordering::SeqCst);
            assert!(
                call % (u64::from(panics) + 1) >= u64::from(panics),
                "call {call} panics"
            );
            works += 1;
            if works == until { Next::End } else { Next::Again }
        });
        let (health, gave_up) = (Arc::clone(&task.health), Arc::clone(&task.gave_up));
        let handle = runtime.start(Box::new(task), None).unwrap();
        done.wait_until(|done| *done);
        drop(Owned(std::mem::ManuallyDrop::new(handle)));
        assert_eq!(gave_up.load(Ordering::Relaxed), health.failure().is_some());
        (health.panics(), health.failure())
    };
    for idles in [false, true] {
        assert_eq!(panics_then_works(2, 5, idles), (10, None));
        let one_less = MAX_PANICS_IN_A_ROW - 1;
        assert_eq!(panics_then_works(one_less, 3, idles), (u64::from(one_less) * 3, None));
        let (panics, failure) = panics_then_works(u32::MAX, 1, idles);
        assert_eq!(panics, u64::from(MAX_PANICS_IN_A_ROW));
        assert!(failure.unwrap().ends_with("the last: call 15 panics"));
    }
}

#[test]
fn timers_are_rounded_up_however_long_the_process_runs() {
    let (mut state, start) = (RuntimeState::default(), Instant::now());
    let wait = MIN_ROUNDED;
    assert_eq!(state.rounded(start, wait), Some(start));
    for (past, rounded) in [
        (Duration::from_micros(1), GRID),
        (GRID, GRID),
        (GRID + Duration::from_nanos(1), 2 * GRID),
        // Multiples of the grid beyond 32 bits.
        (
            Duration::from_secs(2 << 30) + Duration::from_micros(1),
            Duration::from_secs(2 << 30) + GRID,
        ),
    ] {
        assert_eq!(state.rounded(start + past, wait), Some(start + rounded), "{past:?}");
    }
    // Short waits are not rounded.
    let soon = start + Duration::from_micros(1);
    assert_eq!(state.rounded(soon, Duration::from_millis(1)), Some(soon));
}
