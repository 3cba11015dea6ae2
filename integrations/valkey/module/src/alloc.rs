//! The module's memory: the server's, so that the server knows how much there is and `maxmemory` is true.
//!
//! The server's functions take no alignment. What asks for more than they give gets a longer block, with the address that the server
//! gave right before the part that is handed out.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::api::table::loaded;

/// What all of the servers' allocators align blocks to that are as long or longer. Longer words are rounded up to it.
const GIVEN: usize = 16;
const POINTER: usize = size_of::<*mut u8>();

/// The server's allocator; the C library's where there is no server, as in tests.
pub struct ServerAllocator;

static HELD: AtomicUsize = AtomicUsize::new(0);
static EARLY: AtomicUsize = AtomicUsize::new(0);

/// Bytes that the module has allocated and not freed.
pub fn held() -> usize {
    HELD.load(Ordering::Relaxed)
}

/// Blocks that are not the server's since they were allocated before it was known: those it could not free.
pub fn early_blocks() -> usize {
    EARLY.load(Ordering::Relaxed)
}

fn take(bytes: usize) -> *mut u8 {
    match loaded() {
        // SAFETY: the server takes any length, and answers null where there is no memory.
        Some(api) => unsafe { (api.TryAlloc)(bytes) }.cast(),
        None => {
            EARLY.fetch_add(1, Ordering::Relaxed);
            // SAFETY: as above.
            unsafe { libc::malloc(bytes) }.cast()
        }
    }
}

/// # Safety
/// `block` is one of [`take`], not freed yet.
unsafe fn give_back(block: *mut u8) {
    match loaded() {
        // SAFETY: no block is older than the server's table: the module's entry checks that.
        Some(api) => unsafe { (api.Free)(block.cast()) },
        None => {
            EARLY.fetch_sub(1, Ordering::Relaxed);
            // SAFETY: without a server all are the C library's.
            unsafe { libc::free(block.cast()) };
        }
    }
}

/// The length to ask for: allocators align a block that is shorter than what they align to no better than it is long.
fn at_least(layout: Layout, bytes: usize) -> usize {
    bytes.max(layout.align())
}

// SAFETY: blocks are as long and as aligned as was asked for, and are freed as they were allocated: the layout says how.
unsafe impl GlobalAlloc for ServerAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let start = if layout.align() <= GIVEN {
            take(at_least(layout, layout.size()))
        } else {
            // SAFETY: the layout is the caller's, and valid.
            unsafe { aligned(layout) }
        };
        if !start.is_null() {
            HELD.fetch_add(layout.size(), Ordering::Relaxed);
        }
        start
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        let block = if layout.align() <= GIVEN {
            start
        } else {
            // SAFETY: `aligned` has put the block's address there.
            unsafe { start.sub(POINTER).cast::<*mut u8>().read() }
        };
        // SAFETY: it is the block that `alloc` took.
        unsafe { give_back(block) };
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if layout.align() <= GIVEN {
            let bytes = at_least(layout, new_size);
            let block: *mut c_void = start.cast();
            let moved: *mut u8 = match loaded() {
                // SAFETY: the block is of the allocator that is asked, as in `give_back`.
                Some(api) => unsafe { (api.Realloc)(block, bytes) }.cast(),
                // SAFETY: the same.
                None => unsafe { libc::realloc(block, bytes) }.cast(),
            };
            if !moved.is_null() {
                HELD.fetch_add(new_size, Ordering::Relaxed);
                HELD.fetch_sub(layout.size(), Ordering::Relaxed);
            }
            return moved;
        }
        let Ok(new) = Layout::from_size_align(new_size, layout.align()) else {
            return std::ptr::null_mut();
        };
        // SAFETY: both blocks are as long as what is copied, and are two.
        unsafe {
            let moved = self.alloc(new);
            if !moved.is_null() {
                std::ptr::copy_nonoverlapping(start, moved, layout.size().min(new_size));
                self.dealloc(start, layout);
            }
            moved
        }
    }
}

/// A block whose start is aligned to more than the server gives.
///
/// # Safety
/// The layout's alignment is more than [`GIVEN`].
unsafe fn aligned(layout: Layout) -> *mut u8 {
    let Some(bytes) = layout.size().checked_add(layout.align()) else {
        return std::ptr::null_mut();
    };
    let block = take(bytes);
    if block.is_null() {
        return block;
    }
    // At least as far from the block's start as a pointer is long, since what is given is aligned to that, and what is asked for is longer.
    let skip = layout.align() - block.addr() % layout.align();
    debug_assert!(skip >= POINTER);
    // SAFETY: `skip` is at most the alignment, by which the block is longer; there is room for a pointer before.
    unsafe {
        let start = block.add(skip);
        start.sub(POINTER).cast::<*mut u8>().write(block);
        start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_and_keep_their_bytes() {
        let allocator = ServerAllocator;
        for align in [1, 8, 16, 32, 64, 128, 4096] {
            for size in [1, 7, 64, 1000, 70_000] {
                let layout = Layout::from_size_align(size, align).unwrap();
                // SAFETY: allocated, written within its length, grown and freed with the layouts that it had.
                unsafe {
                    let start = allocator.alloc(layout);
                    assert_eq!(start.addr() % align, 0);
                    start.write_bytes(7, size);
                    let grown = allocator.realloc(start, layout, 2 * size);
                    assert_eq!(grown.addr() % align, 0);
                    let kept = std::slice::from_raw_parts(grown, size);
                    assert!(kept.iter().all(|byte| *byte == 7));
                    allocator.dealloc(grown, Layout::from_size_align(2 * size, align).unwrap());
                }
            }
        }
    }
}
