//! Epoch-based reclamation: when a node that was unlinked from the tree may be freed.
//!
//! A thread that begins an operation stores the current epoch in its own slot, and clears the slot at the end. In an
//! epoch that begins after a node was unlinked no thread can find the node any more; when no slot holds an older epoch,
//! no thread reads it either (Fraser, "Practical lock-freedom", 2004, section 5.2.3).
//!
//! The slot is stored before all reads of the operation, with a full barrier: the only one of an operation that writes
//! nothing. The asymmetric alternative, where the freeing thread sends a barrier to all threads (`membarrier`),
//! interrupts them, which cost two writers a twelfth of their throughput.

use std::cell::Cell;
use std::sync::atomic::Ordering;
#[cfg(all(target_arch = "x86_64", not(miri), not(shuttle)))]
use std::sync::atomic::compiler_fence;
#[cfg(not(shuttle))]
use std::sync::atomic::fence;

use crate::sync::AtomicU64;

/// Slot value of a thread that is outside any operation.
const OUTSIDE: u64 = 0;

/// The global epoch, on cache lines of its own.
#[repr(align(128))]
pub struct Epochs {
    now: AtomicU64,
    /// A thread that leaves an operation that began before this epoch frees the garbage that waits for it.
    left_over: AtomicU64,
}

impl Epochs {
    /// Creates the epochs of a heap, of which the first has begun.
    pub fn new() -> Self {
        Self {
            now: AtomicU64::new(OUTSIDE + 1),
            left_over: AtomicU64::new(OUTSIDE),
        }
    }

    /// Begins an epoch and returns it: threads that store it, or a later one, find nothing that was unlinked before the
    /// call.
    pub fn begin(&self) -> u64 {
        // Orders the unlinking before the scan of the slots, as the barrier in `enter` orders a thread's slot before
        // its first read of the tree: of the two barriers one comes first, and the other side sees what was written
        // before it.
        #[cfg(not(shuttle))]
        fence(Ordering::SeqCst);
        self.now.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Leaves garbage that was unlinked before `epoch` began to the threads that still block it. One that is just
    /// leaving may not notice.
    pub fn leave_over(&self, epoch: u64) {
        self.left_over.store(epoch, Ordering::SeqCst);
    }

    /// Sets the epoch that the left-over garbage waits for; `None` if there is none.
    pub fn left_over_waits_for(&self, epoch: Option<u64>) {
        if self.left_over.load(Ordering::Relaxed) != OUTSIDE {
            self.left_over.store(epoch.unwrap_or(OUTSIDE), Ordering::SeqCst);
        }
    }
}

/// A thread's slot.
pub struct Slot {
    noted: AtomicU64,
    /// Nesting depth of the thread's operations. Only the thread itself accesses it.
    depth: Cell<u32>,
    /// Whether the thread has deferred work for the end of its outermost operation.
    due: Cell<bool>,
}

// SAFETY: the cells are accessed only by the slot's own thread: for other threads' slots only `blocks_reclamation` and
// `is_outside` are called. A thread gets its own slot from `PerThread::get_or_default`, or from a guard, which is not
// `Send`.
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
            // A stale epoch is safe: it only delays reclamation.
            self.note(epochs.now.load(Ordering::Acquire));
        }
    }

    #[inline(always)]
    fn note(&self, epoch: u64) {
        // On x86-64 an exchange is a full barrier, and cheaper than a store and a fence.
        #[cfg(all(target_arch = "x86_64", not(miri), not(shuttle)))]
        {
            self.noted.swap(epoch, Ordering::SeqCst);
            compiler_fence(Ordering::SeqCst);
        }
        #[cfg(all(any(not(target_arch = "x86_64"), miri), not(shuttle)))]
        {
            // Release: a thread that sees this epoch instead of an older one may free what the earlier operations read.
            self.noted.store(epoch, Ordering::Release);
            fence(Ordering::SeqCst);
        }
        #[cfg(shuttle)]
        self.noted.store(epoch, Ordering::SeqCst);
    }

    /// Ends an operation. Returns whether it was the outermost one and deferred work is due, and whether it was the
    /// outermost one and garbage was left over to this thread.
    #[inline(always)]
    pub fn leave(&self, epochs: &Epochs) -> (bool, bool) {
        let depth = self.depth.get() - 1;
        self.depth.set(depth);
        if depth > 0 {
            return (false, false);
        }
        let noted = self.noted.load(Ordering::Relaxed);
        // Release: all reads of the operation happen before this store.
        self.noted.store(OUTSIDE, Ordering::Release);
        (self.due.take(), noted < epochs.left_over.load(Ordering::Relaxed))
    }

    /// Makes the outermost operation's `leave` report deferred work.
    pub fn at_leave(&self) {
        self.due.set(true);
    }

    /// Returns whether the thread is outside any operation; if so, it will see what was written before this call when
    /// it begins one.
    #[cfg(not(shuttle))]
    pub fn is_outside(&self) -> bool {
        // Pairs with the barrier between a thread's slot and its first read: see `Epochs::begin`.
        fence(Ordering::SeqCst);
        self.noted.load(Ordering::SeqCst) == OUTSIDE
    }

    /// Returns whether this thread is inside an operation.
    pub fn is_inside(&self) -> bool {
        self.depth.get() > 0
    }

    /// Returns whether the thread may read nodes that were unlinked before `epoch` began.
    pub fn blocks_reclamation(&self, epoch: u64) -> bool {
        let noted = self.noted.load(Ordering::Acquire);
        noted != OUTSIDE && noted < epoch
    }
}
