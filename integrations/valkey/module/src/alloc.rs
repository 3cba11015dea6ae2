//! The module's memory comes from the server's allocator, so that the server's accounting, and `maxmemory`, include it.
//!
//! The server's functions take no alignment. A request for a larger alignment than theirs gets a longer block, with the
//! address of the server's block directly before the returned part.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::api::table::loaded;

/// The alignment that all of the servers' allocators guarantee for blocks of at least this length. Shorter blocks are
/// rounded up to it.
const GUARANTEED_ALIGNMENT: usize = 16;
const POINTER: usize = size_of::<*mut u8>();

/// The server's allocator; the C library's if there is no server, as in tests.
pub struct ServerAllocator;

static HELD: AtomicUsize = AtomicUsize::new(0);
static EARLY: AtomicUsize = AtomicUsize::new(0);

/// Bytes that the module has allocated and not freed.
pub fn held() -> usize {
    HELD.load(Ordering::Relaxed)
}

/// Returns the number of blocks that were allocated before the server was known: the server could not free those.
pub fn early_blocks() -> usize {
    EARLY.load(Ordering::Relaxed)
}

fn take(bytes: usize) -> *mut u8 {
    match loaded() {
        // SAFETY: the server takes any length, and answers null if there is no memory.
        Some(api) => unsafe { (api.TryAlloc)(bytes) }.cast(),
        None => {
            EARLY.fetch_add(1, Ordering::Relaxed);
            // SAFETY: malloc accepts any length.
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

/// Returns the length to request: allocators align short blocks only to their length.
fn at_least(layout: Layout, bytes: usize) -> usize {
    bytes.max(layout.align())
}

// SAFETY: blocks have the requested length and alignment, and are freed as they were allocated: the layout says how.
unsafe impl GlobalAlloc for ServerAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let start = if layout.align() <= GUARANTEED_ALIGNMENT {
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
        let block = if layout.align() <= GUARANTEED_ALIGNMENT {
            start
        } else {
            // SAFETY: `aligned` has put the block's address there.
            unsafe { start.sub(POINTER).cast::<*mut u8>().read() }
        };
        // SAFETY: it is the block that `alloc` took.
        unsafe { give_back(block) };
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if layout.align() <= GUARANTEED_ALIGNMENT {
            let bytes = at_least(layout, new_size);
            let block: *mut c_void = start.cast();
            let moved: *mut u8 = match loaded() {
                // SAFETY: no block is older than the server's table, so that the server's allocator made this one.
                Some(api) => unsafe { (api.Realloc)(block, bytes) }.cast(),
                // SAFETY: the block is of the C library's allocator.
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

/// Returns a block with a larger alignment than the server's.
///
/// # Safety
/// The layout's alignment is more than [`GUARANTEED_ALIGNMENT`].
unsafe fn aligned(layout: Layout) -> *mut u8 {
    let Some(bytes) = layout.size().checked_add(layout.align()) else {
        return std::ptr::null_mut();
    };
    let block = take(bytes);
    if block.is_null() {
        return block;
    }
    // The distance from the block's start is at least the length of a pointer, since the block is aligned to that, and
    // the requested alignment is larger.
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
                // SAFETY: it is allocated, written within its length, grown and freed with its own layouts.
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
