//! The upkeep runtime: a few threads that execute the background tasks of all trees and caches of a process.
//!
//! A task does one piece of work per call, and returns when it is to be called again. Due tasks wait in one FIFO queue.
//! Threads are started on demand, up to a bound; all of them end with the last task.
//!
//! Invariants, which hold whenever the runtime's lock is free:
//! - A task is in its entry unless a thread runs it. A thread that runs a task holds no lock of the runtime.
//! - A task that is to be called has a timer or is in the queue. For each task in the queue a thread was notified, and
//!   for the first timer a thread sleeps no longer than until then, or is at work and will check it afterwards.
//! - Threads of an older generation are not counted any more: they end as soon as they notice.
//!
//! A child of `fork` has none of the threads, and the lock may have been held when it was forked. So it forgets the
//! runtime of its parent, whose tasks never run again, and creates its own on demand.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::{Duration, Instant};

use super::plain::{Condvar, Mutex, MutexGuard};
use super::threads::{self, Thread};
use super::worker::{Health, MAX_PANICS_IN_A_ROW};

/// Minimum of the bound on threads, on a machine with fewer cores: some tasks wait for a disk.
const MIN_MAX_THREADS: usize = 4;
/// Threads that are kept: one sleeps until the next timer, and the other checks it where the first is busy. Further
/// threads end when they have been idle for [`MAX_IDLE`].
const STANDING_THREADS: usize = 2;
const MAX_IDLE: Duration = Duration::from_secs(1);
/// Delay of a timer after which a second thread checks it.
const GRACE: Duration = Duration::from_millis(50);
/// Waits of [`MIN_ROUNDED`] and more end at whole multiples of this.
const GRID: Duration = Duration::from_millis(10);
const MIN_ROUNDED: Duration = Duration::from_millis(100);

/// When a task is to be called again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// As soon as the other waiting tasks have been called.
    Again,
    /// After this time, or when it is woken, whichever is first.
    Wait(Duration),
    /// As [`Next::Wait`], or, without a time, only when it is woken. The task had nothing to do: panics before and
    /// after this call count as consecutive.
    Idle(Option<Duration>),
    /// Never.
    End,
}

/// Background work of an owner, executed piece by piece.
pub trait Task: Send + 'static {
    /// Does one piece of work. After a panic it is called again, so it must leave no lock held, and nothing marked as
    /// in progress.
    fn work(&mut self) -> Next;

    /// Returns the health of the owner's background work.
    fn health(&self) -> &Health;

    /// Called when the task ends after too many panics while its owner stays: nothing may wait for its work from now
    /// on.
    fn give_up(&mut self);
}

/// Wakes a task. It has no effect until the task is started.
#[derive(Debug, Default)]
pub struct Waker(OnceLock<Name>);

impl Waker {
    /// Schedules the task. If it is running, it is called once more afterwards.
    pub fn wake(&self) {
        if let Some(name) = self.0.get() {
            name.wake();
        }
    }
}

/// A task of a runtime.
#[derive(Debug, Clone, Copy)]
struct Name {
    runtime: &'static Runtime,
    number: u64,
}

impl Name {
    /// Returns whether the task belongs to the process that this one was forked from.
    fn is_of_parent(self) -> bool {
        !ptr::eq(CURRENT.load(Ordering::Acquire), self.runtime)
    }

    fn wake(self) {
        if self.is_of_parent() {
            return;
        }
        let mut state = self.runtime.state.lock();
        match state.tasks.get_mut(&self.number) {
            Some(entry) if entry.status == Status::Waiting => {
                state.make_ready(self.number);
                self.runtime.call_a_thread(&mut state);
            }
            Some(entry) => entry.woken = true,
            None => {}
        }
    }
}

/// A task that was started. Dropping the handle ends the task and waits for its current piece of work, unless that
/// piece itself drops the handle.
#[derive(Debug)]
pub struct TaskHandle(Name);

impl Drop for TaskHandle {
    fn drop(&mut self) {
        // The parent's tasks are not touched: their work was interrupted by the fork.
        if !self.0.is_of_parent() {
            self.0.runtime.end(self.0.number);
        }
    }
}

/// Starts a task, which is called at once, and whenever `waker` wakes it.
pub fn start(task: impl Task, waker: Option<&Waker>) -> io::Result<TaskHandle> {
    Runtime::current().start(Box::new(task), waker)
}

#[derive(Debug, Default)]
struct Runtime {
    state: Mutex<RuntimeState>,
    /// Notified when a task is ready, or the threads are to end.
    changed: Condvar,
    /// Notified when a task has ended whose owner waits for that.
    ended: Condvar,
}

#[derive(Default)]
struct RuntimeState {
    tasks: HashMap<u64, TaskEntry>,
    next_number: u64,
    /// Due tasks, and some that have ended since.
    ready: VecDeque<u64>,
    timers: BTreeSet<(Instant, u64)>,
    generation: u64,
    /// Threads of this generation.
    threads: usize,
    /// Threads that wait for a task.
    idle: usize,
    /// Wakeup time of the idle thread that waits for the first timer.
    alarm: Option<Instant>,
    /// Origin of the grid that timers are rounded to.
    zero: Option<Instant>,
    handles: Vec<Thread<()>>,
}

impl std::fmt::Debug for RuntimeState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("tasks", &self.tasks.len())
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

struct TaskEntry {
    /// `None` while it runs.
    task: Option<Box<dyn Task>>,
    status: Status,
    /// Whether it was woken while it was ready or running.
    woken: bool,
    /// Whether it is to end after its current piece of work.
    ends: bool,
    timer: Option<Instant>,
    panics_in_a_row: u32,
}

#[derive(PartialEq, Eq)]
enum Status {
    Waiting,
    Ready,
    /// The number of the thread.
    Running(usize),
}

/// The process's runtime; null until the first use.
static CURRENT: AtomicPtr<Runtime> = AtomicPtr::new(ptr::null_mut());

/// Makes children of `fork` forget the runtime of their parent.
#[cfg(all(unix, not(miri)))]
#[allow(unsafe_code)]
fn forget_in_children() {
    extern "C" fn forget() {
        CURRENT.store(ptr::null_mut(), Ordering::Release);
    }
    static ONCE: std::sync::Once = std::sync::Once::new();
    // SAFETY: the handler may be called at any time, and only accesses an atomic. If there is no memory to register it,
    // children cannot run the upkeep of their trees.
    ONCE.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(forget));
    });
}

#[cfg(not(all(unix, not(miri))))]
fn forget_in_children() {}

/// Returns the maximum number of threads of a runtime.
fn max_threads() -> usize {
    static MAX: OnceLock<usize> = OnceLock::new();
    *MAX.get_or_init(|| {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        cores.max(MIN_MAX_THREADS)
    })
}

impl RuntimeState {
    /// Queues a task that exists and does not run.
    fn make_ready(&mut self, number: u64) {
        let Some(entry) = self.tasks.get_mut(&number) else {
            return;
        };
        entry.status = Status::Ready;
        if let Some(timer) = entry.timer.take() {
            self.timers.remove(&(timer, number));
        }
        self.ready.push_back(number);
    }

    /// Schedules a waiting task after this time.
    fn set_timer(&mut self, number: u64, time: Option<Duration>) {
        // A time past the clock's range sets no timer.
        let timer = time.and_then(|time| self.rounded(Instant::now().checked_add(time)?, time));
        if let (Some(entry), Some(timer)) = (self.tasks.get_mut(&number), timer) {
            entry.timer = Some(timer);
            self.timers.insert((timer, number));
        }
    }

    /// Rounds a time up, by at most [`GRID`], so that many tasks share it: thousands of caches wake a thread at most a
    /// hundred times a second.
    fn rounded(&mut self, time: Instant, wait: Duration) -> Option<Instant> {
        if wait < MIN_ROUNDED {
            return Some(time);
        }
        let zero = *self.zero.get_or_insert(time);
        let past = time.saturating_duration_since(zero).as_nanos() % GRID.as_nanos();
        let missing = (GRID.as_nanos() - past) % GRID.as_nanos();
        time.checked_add(Duration::from_nanos(missing as u64))
    }

    /// Records whether a task has panicked; returns the number of consecutive panics.
    fn note_panics(&mut self, number: u64, panicked: bool, next: Next) -> u32 {
        self.tasks.get_mut(&number).map_or(0, |entry| {
            match next {
                _ if panicked => entry.panics_in_a_row += 1,
                Next::Idle(_) => {}
                Next::Again | Next::Wait(_) | Next::End => entry.panics_in_a_row = 0,
            }
            entry.panics_in_a_row
        })
    }

    fn queue_what_is_due(&mut self) {
        if self.timers.is_empty() {
            return;
        }
        let now = Instant::now();
        while let Some(&(time, number)) = self.timers.first()
            && time <= now
        {
            self.make_ready(number);
        }
    }

    /// Takes the next task to run, and marks it as running.
    fn take_ready(&mut self) -> Option<(u64, Box<dyn Task>)> {
        self.queue_what_is_due();
        while let Some(number) = self.ready.pop_front() {
            if let Some(entry) = self.tasks.get_mut(&number)
                && let Some(task) = entry.task.take()
            {
                entry.status = Status::Running(threads::current_id());
                entry.woken = false;
                return Some((number, task));
            }
        }
        None
    }

    /// Ends the threads when the last task is gone; the caller joins them.
    fn end_threads_if_last(&mut self, changed: &Condvar) -> Vec<Thread<()>> {
        if !self.tasks.is_empty() {
            return Vec::new();
        }
        self.generation += 1;
        self.threads = 0;
        self.idle = 0;
        self.alarm = None;
        self.ready.clear();
        changed.notify_all();
        std::mem::take(&mut self.handles)
    }
}

impl Runtime {
    fn current() -> &'static Self {
        forget_in_children();
        let current = CURRENT.load(Ordering::Acquire);
        if !current.is_null() {
            return Self::of(current);
        }
        let made = Box::into_raw(Box::default());
        match CURRENT.compare_exchange(ptr::null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Self::of(made),
            Err(other) => {
                Self::free(made);
                Self::of(other)
            }
        }
    }

    #[allow(unsafe_code)]
    fn of(current: *mut Self) -> &'static Self {
        // SAFETY: every value of `CURRENT` came from a box, and is never freed nor mutably borrowed.
        unsafe { &*current }
    }

    #[allow(unsafe_code)]
    fn free(made: *mut Self) {
        // SAFETY: `made` came from a box above, and was not published.
        drop(unsafe { Box::from_raw(made) });
    }

    fn start(&'static self, task: Box<dyn Task>, waker: Option<&Waker>) -> io::Result<TaskHandle> {
        let mut state = self.state.lock();
        let number = state.next_number;
        state.next_number += 1;
        let is_first = state.threads == 0;
        if is_first {
            self.start_thread(&mut state)?;
        }
        let entry = TaskEntry {
            task: Some(task),
            status: Status::Waiting,
            woken: false,
            ends: false,
            timer: None,
            panics_in_a_row: 0,
        };
        state.tasks.insert(number, entry);
        let name = Name { runtime: self, number };
        if let Some(waker) = waker {
            let _ = waker.0.set(name);
        }
        state.make_ready(number);
        if !is_first {
            self.call_a_thread(&mut state);
        }
        Ok(TaskHandle(name))
    }

    fn start_thread(&'static self, state: &mut RuntimeState) -> io::Result<()> {
        let generation = state.generation;
        let handle = threads::spawn("leafpress-upkeep", move || self.run(generation))?;
        // Forgets threads that ended because they were idle for long.
        state.handles.retain(|handle| !handle.is_finished());
        state.handles.push(handle);
        state.threads += 1;
        Ok(())
    }

    /// Notifies or starts another thread for the queue and the timers. If none can be started, the existing ones follow
    /// after their current work.
    fn call_a_thread(&'static self, state: &mut RuntimeState) {
        if state.idle > 0 {
            self.changed.notify_one();
        } else if state.threads < max_threads() {
            let _ = self.start_thread(state);
        }
    }

    /// The main loop of each thread.
    fn run(&'static self, generation: u64) {
        let mut state = self.state.lock();
        let mut idle_since = Instant::now();
        while state.generation == generation {
            if let Some((number, task)) = state.take_ready() {
                // The following work may take long.
                if !state.ready.is_empty() || (!state.timers.is_empty() && state.idle == 0) {
                    self.call_a_thread(&mut state);
                }
                drop(state);
                state = self.work(number, task);
                idle_since = Instant::now();
                continue;
            }
            let first = state.timers.first().map(|(time, _)| *time);
            let alarm = first.filter(|first| state.alarm.is_none_or(|alarm| *first < alarm));
            let is_spare = alarm.is_none() && state.threads > STANDING_THREADS;
            if is_spare && idle_since.elapsed() >= MAX_IDLE {
                state.threads -= 1;
                return;
            }
            let now = Instant::now();
            let until = match (alarm, first) {
                (Some(alarm), _) => Some(alarm),
                // Another thread waits for the first timer, but may be busy by then.
                (None, Some(first)) => Some((first + GRACE).max(now + GRACE)),
                (None, None) if is_spare => Some(now + MAX_IDLE),
                (None, None) => None,
            };
            if alarm.is_some() {
                state.alarm = alarm;
            }
            state.idle += 1;
            match until {
                Some(until) => self.changed.wait_for(&mut state, until.saturating_duration_since(now)),
                None => self.changed.wait(&mut state),
            }
            if state.generation == generation {
                state.idle -= 1;
                if alarm.is_some() && state.alarm == alarm {
                    state.alarm = None;
                }
            }
        }
    }

    /// Runs a task once, and reschedules it according to its result.
    fn work(&'static self, number: u64, mut task: Box<dyn Task>) -> MutexGuard<'static, RuntimeState> {
        let result = catch_unwind(AssertUnwindSafe(|| task.work()));
        let panicked = result.is_err();
        let mut next = result.unwrap_or_else(|panic| {
            task.health().note(panic);
            Next::Again
        });
        let mut state = self.state.lock();
        let panics_in_a_row = state.note_panics(number, panicked, next);
        if panics_in_a_row >= MAX_PANICS_IN_A_ROW {
            drop(state);
            task.health().end();
            let _ = catch_unwind(AssertUnwindSafe(|| task.give_up()));
            next = Next::End;
            state = self.state.lock();
        }
        match state.tasks.get_mut(&number) {
            Some(entry) if !entry.ends && next != Next::End => {
                entry.task = Some(task);
                entry.status = Status::Waiting;
                match next {
                    Next::Wait(time) if !entry.woken => state.set_timer(number, Some(time)),
                    Next::Idle(time) if !entry.woken => state.set_timer(number, time),
                    _ => state.make_ready(number),
                }
                state
            }
            _ => {
                drop(state);
                // The task may hold the last reference to state shared with its owner, whose destructor may be the
                // caller's.
                let _ = catch_unwind(AssertUnwindSafe(|| drop(task)));
                self.remove(number)
            }
        }
    }

    /// Removes a task that has ended.
    fn remove(&'static self, number: u64) -> MutexGuard<'static, RuntimeState> {
        let mut state = self.state.lock();
        state.tasks.remove(&number);
        self.ended.notify_all();
        // The current thread is one of them: they end by themselves.
        drop(state.end_threads_if_last(&self.changed));
        state
    }

    /// Ends a task on behalf of its owner.
    fn end(&'static self, number: u64) {
        let mut state = self.state.lock();
        let mut task = None;
        while let Some(entry) = state.tasks.get_mut(&number) {
            match entry.status {
                Status::Running(thread) => {
                    entry.ends = true;
                    if thread == threads::current_id() {
                        // The thread that runs it ends it as soon as it can.
                        return;
                    }
                    self.ended.wait(&mut state);
                }
                Status::Waiting | Status::Ready => {
                    let entry = state.tasks.remove(&number);
                    if let Some(timer) = entry.as_ref().and_then(|entry| entry.timer) {
                        state.timers.remove(&(timer, number));
                    }
                    task = entry.and_then(|entry| entry.task);
                }
            }
        }
        let threads = state.end_threads_if_last(&self.changed);
        drop(state);
        drop(task);
        for thread in threads {
            // An owner may be dropped by code that another owner's task calls.
            if !thread.is_current() {
                let _ = thread.join();
            }
        }
    }
}

#[cfg(test)]
mod tests;
