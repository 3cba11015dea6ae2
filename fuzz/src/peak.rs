//! The peak of the heap's bytes during a step.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, with a count of the bytes held.
pub struct Counted;

fn add(bytes: usize) {
    let held = HELD.fetch_add(bytes, Ordering::Relaxed) + bytes;
    MOST.fetch_max(held, Ordering::Relaxed);
}

// SAFETY: every call is passed to the system's allocator unchanged; counting does not touch the blocks.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: `layout` has a size other than 0, which `System` requires as well.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: `block` came from `System` with this layout, because every block of this allocator does, and it is
        // not used again.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: `layout` has a size other than 0, which `System` requires as well.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // Both blocks may exist at once.
        add(bytes);
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: `block` came from `System` with this layout, because every block of this allocator does; `bytes` is
        // not 0, and fits into `isize` when rounded up to the layout's alignment.
        unsafe { System.realloc(block, layout, bytes) }
    }
}

/// Returns the step's result, and the peak of the bytes held meanwhile above those held before; 0 if the program does
/// not use [`Counted`].
pub fn of<T>(step: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let done = step();
    (done, MOST.load(Ordering::Relaxed).saturating_sub(before))
}
