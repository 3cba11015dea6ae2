//! An allocator that fails on request, in the requesting thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

thread_local! {
    /// Number of allocations of this thread that succeed before all fail; negative for no failures.
    static LEFT: Cell<i64> = const { Cell::new(-1) };
    /// Only allocations with at least this alignment are counted and fail.
    static FROM_ALIGN: Cell<usize> = const { Cell::new(1) };
    static REFUSED: Cell<u64> = const { Cell::new(0) };
}
static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);

struct Starving;

// SAFETY: every call is forwarded to the system's allocator; an allocator may return null.
unsafe impl GlobalAlloc for Starving {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let left = LEFT.get();
        if left >= 0 && layout.align() >= FROM_ALIGN.get() {
            if left == 0 {
                REFUSED.set(REFUSED.get() + 1);
                return std::ptr::null_mut();
            }
            LEFT.set(left - 1);
        }
        LIVE_BYTES.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller upholds the contract of `alloc`, which is that of the system allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE_BYTES.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the pointer came from `alloc` with this layout, and thus from the system allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Starving = Starving;

/// Runs `work` with this thread's allocations failing from number `after` on; none fails if that is negative.
pub fn starved<T>(after: i64, work: impl FnOnce() -> T) -> T {
    LEFT.set(after);
    let result = work();
    LEFT.set(-1);
    result
}

/// Like [`starved`], for allocations that are aligned to cache lines: a tree's nodes, where it has no heap of its own.
#[allow(dead_code, reason = "not every program has a tree")]
pub fn starved_of_lines<T>(after: i64, work: impl FnOnce() -> T) -> T {
    FROM_ALIGN.set(64);
    let result = starved(after, work);
    FROM_ALIGN.set(1);
    result
}

/// Returns the number of failed allocations of this thread.
#[allow(dead_code, reason = "not every program asks")]
pub fn refused() -> u64 {
    REFUSED.get()
}

/// Returns the bytes allocated and not freed, by all threads.
#[allow(dead_code, reason = "not every program counts")]
pub fn live_bytes() -> usize {
    LIVE_BYTES.load(Relaxed)
}
