//! How large a cache is wanted to be, and which threads are reading a block of it.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::ThreadId;

use leafpress_base::sync::plain::Mutex;

#[derive(Default)]
pub(super) struct Limits {
    pub(super) wanted: Mutex<Wanted>,
    /// Held by the thread that makes the cache what is wanted.
    pub(super) applying: Mutex<()>,
    /// There is a thread in `unfinished`.
    is_unfinished: AtomicBool,
    /// The thread that changed the capacity last while it read a block.
    unfinished: Mutex<Option<ThreadId>>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wanted {
    pub(super) capacity_bytes: usize,
    pub(super) deflated_bytes: usize,
}

impl Limits {
    /// Whether the calling thread reads a block of this cache.
    pub(super) fn is_reading(&self) -> bool {
        READING
            .try_with(|reading| reading.borrow().contains(&address(self)))
            .unwrap_or(false)
    }

    /// Notes that the calling thread has changed the capacity while it reads a block.
    pub(super) fn note_unfinished(&self) {
        *self.unfinished.lock() = Some(std::thread::current().id());
        self.is_unfinished.store(true, SeqCst);
    }

    /// Whether some thread has.
    #[inline]
    pub(super) fn is_unfinished(&self) -> bool {
        self.is_unfinished.load(SeqCst)
    }

    /// Whether the calling thread has; it is noted no longer then.
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
    /// The caches that this thread is reading a block of, by address of their limits.
    static READING: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// The calling thread reads a block until this is dropped.
pub(super) struct Reading(());

impl Reading {
    /// [`None`] when there is no memory to note it.
    pub(super) fn new(limits: &Limits) -> Option<Self> {
        let noted = READING.try_with(|reading| {
            let mut reading = reading.borrow_mut();
            reading.try_reserve(1).ok()?;
            reading.push(address(limits));
            Some(())
        });
        // A thread that is ending notes nothing.
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
