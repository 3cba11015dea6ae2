//! The requested memory budget of a cache, and the threads that are reading a block of it.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::ThreadId;

use leafpress_base::sync::plain::Mutex;

#[derive(Default)]
pub(super) struct Limits {
    pub(super) wanted: Mutex<Wanted>,
    /// Held by the thread that applies the requested memory budget.
    pub(super) applying: Mutex<()>,
    /// There is a thread in `unfinished`.
    is_unfinished: AtomicBool,
    /// The last thread that changed the memory budget while it was reading a block.
    unfinished: Mutex<Option<ThreadId>>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wanted {
    pub(super) budget_bytes: usize,
    pub(super) deflated_bytes: usize,
}

impl Limits {
    /// Returns true if the calling thread is reading a block of this cache.
    pub(super) fn is_reading(&self) -> bool {
        READING
            .try_with(|reading| reading.borrow().contains(&address(self)))
            .unwrap_or(false)
    }

    /// Records that the calling thread has changed the memory budget while it is reading a block.
    pub(super) fn note_unfinished(&self) {
        *self.unfinished.lock() = Some(std::thread::current().id());
        self.is_unfinished.store(true, SeqCst);
    }

    /// Returns true if any thread has.
    #[inline]
    pub(super) fn is_unfinished(&self) -> bool {
        self.is_unfinished.load(SeqCst)
    }

    /// Returns true if the calling thread has, and clears the record.
    pub(super) fn take_unfinished(&self) -> bool {
        let mut unfinished = self.unfinished.lock();
        if *unfinished != Some(std::thread::current().id()) {
            return false;
        }
        *unfinished = None;
        self.is_unfinished.store(false, SeqCst);
        true
    }
}

thread_local! {
    /// The caches of which this thread is reading a block, by address of their limits.
    static READING: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Marks the calling thread as reading a block until this is dropped.
pub(super) struct Reading(());

impl Reading {
    /// Creates a mark; [`None`] if there is no memory for it.
    pub(super) fn new(limits: &Limits) -> Option<Self> {
        let noted = READING.try_with(|reading| {
            let mut reading = reading.borrow_mut();
            reading.try_reserve(1).ok()?;
            reading.push(address(limits));
            Some(())
        });
        // A thread that is exiting records nothing.
        noted.unwrap_or(Some(())).map(Self)
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let _ = READING.try_with(|reading| reading.borrow_mut().pop());
    }
}

fn address(limits: &Limits) -> usize {
    std::ptr::from_ref(limits).addr()
}
