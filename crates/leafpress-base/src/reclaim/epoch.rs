//! Epochs: when what was unlinked from the tree may be freed.
//!
//! A thread that begins an operation notes the epoch in a slot of its own, and takes the note away at the end. An epoch that begins after a
//! node was unlinked is one in which nobody finds it any more; when no slot has an older one, nobody reads it either (Fraser, "Practical
//! lock-freedom", 2004, section 5.2.3).
//!
//! The note comes before all that the operation reads: a barrier, the only one of an operation that writes nothing. The other way, which spares it
//! and has whoever frees send a barrier to all threads instead (`membarrier`), interrupts them, which took two writers a twelfth of their time.

use std::cell::Cell;
use std::sync::atomic::Ordering;
#[cfg(all(target_arch = "x86_64", not(miri), not(shuttle)))]
use std::sync::atomic::compiler_fence;
#[cfg(not(shuttle))]
use std::sync::atomic::fence;

use crate::sync::AtomicU64;

/// In the slot of a thread that is at no operation.
const OUTSIDE: u64 = 0;

/// The epoch that it is, on cache lines of its own.
#[repr(align(128))]
pub struct Epochs {
    now: AtomicU64,
    /// Whoever leaves an operation that began before this epoch is to free what waits for it.
    left_over: AtomicU64,
}

impl Epochs {
    pub fn new() -> Self {
        Self {
            now: AtomicU64::new(OUTSIDE + 1),
            left_over: AtomicU64::new(OUTSIDE),
        }
    }

    /// Begins an epoch and returns it: threads that note it, or a later one, find nothing that was unlinked before the call.
    pub fn begin(&self) -> u64 {
        // Between what was unlinked and the look at the slots, as between a thread's note and its first look at the tree: of two
        // barriers one comes first, and the side of the other sees what was written before it.
        #[cfg(not(shuttle))]
        fence(Ordering::SeqCst);
        self.now.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Leaves what was unlinked before `epoch` began to the threads that are in the way. One that is leaving just now may not notice.
    pub fn leave_over(&self, epoch: u64) {
        self.left_over.store(epoch, Ordering::SeqCst);
    }

    /// What was left over waits for `epoch` now, or no longer.
    pub fn left_over_waits_for(&self, epoch: Option<u64>) {
        if self.left_over.load(Ordering::Relaxed) != OUTSIDE {
            self.left_over.store(epoch.unwrap_or(OUTSIDE), Ordering::SeqCst);
        }
    }
}

/// A thread's note.
pub struct Slot {
    noted: AtomicU64,
    /// Operations of the thread within each other. Only the thread itself looks.
    depth: Cell<u32>,
    /// Whether the thread has something to do when it is out of all of them.
    due: Cell<bool>,
}

// SAFETY: the cells are touched by the slot's own thread alone: of other threads' slots nothing but `is_in_the_way` is asked. A thread has its own
// from `PerThread::get_or_default`, or from a guard, which stays with its thread.
unsafe impl Sync for Slot {}

impl Default for Slot {
    fn default() -> Self {
        Self {
            noted: AtomicU64::new(OUTSIDE),
            depth: Cell::new(0),
            due: Cell::new(false),
        }
    }
}

impl Slot {
    /// Begins an operation of this thread.
    #[inline(always)]
    pub fn enter(&self, epochs: &Epochs) {
        let depth = self.depth.get();
        self.depth.set(depth + 1);
        if depth == 0 {
            // With an epoch that is over by now the thread is in the way of more than it need be, and of nothing for too short.
            self.note(epochs.now.load(Ordering::Acquire));
        }
    }

    #[inline(always)]
    fn note(&self, epoch: u64) {
        // On x86-64 an exchange is a barrier, and cheaper than one on its own.
        #[cfg(all(target_arch = "x86_64", not(miri), not(shuttle)))]
        {
            self.noted.swap(epoch, Ordering::SeqCst);
            compiler_fence(Ordering::SeqCst);
        }
        #[cfg(all(any(not(target_arch = "x86_64"), miri), not(shuttle)))]
        {
            // Whoever sees this note in place of an older one frees what the operations before it read.
            self.noted.store(epoch, Ordering::Release);
            fence(Ordering::SeqCst);
        }
        #[cfg(shuttle)]
        self.noted.store(epoch, Ordering::SeqCst);
    }

    /// Ends an operation. Returns whether it was the outermost and something is due, and whether it was and something is left over to this thread.
    #[inline(always)]
    pub fn leave(&self, epochs: &Epochs) -> (bool, bool) {
        let depth = self.depth.get() - 1;
        self.depth.set(depth);
        if depth > 0 {
            return (false, false);
        }
        let noted = self.noted.load(Ordering::Relaxed);
        // What was read was read before.
        self.noted.store(OUTSIDE, Ordering::Release);
        (self.due.take(), noted < epochs.left_over.load(Ordering::Relaxed))
    }

    /// Has the outermost operation's `leave` say that something is due.
    pub fn at_leave(&self) {
        self.due.set(true);
    }

    /// Whether the thread is at no operation, and will see what was written before this was asked when it begins one.
    #[cfg(not(shuttle))]
    pub fn is_outside(&self) -> bool {
        // As between a thread's note and what it looks at then: see `Epochs::begin`.
        fence(Ordering::SeqCst);
        self.noted.load(Ordering::SeqCst) == OUTSIDE
    }

    /// Whether this thread is at an operation.
    pub fn is_inside(&self) -> bool {
        self.depth.get() > 0
    }

    /// Whether the thread may read what was unlinked before `epoch` began.
    pub fn is_in_the_way(&self, epoch: u64) -> bool {
        let noted = self.noted.load(Ordering::Acquire);
        noted != OUTSIDE && noted < epoch
    }
}
