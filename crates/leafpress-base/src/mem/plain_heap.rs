//! A replacement of the heap by the program's own allocator, for tools that track every allocation.

use std::alloc::Layout;
use std::cell::Cell;
use std::ptr::NonNull;
#[cfg(shuttle)]
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::mem::LINE_BYTES;

/// A heap whose parts are only numbers, which let tools see what is moved from one part to another.
#[derive(Default)]
pub struct Heap {
    defragmented: AtomicU8,
    /// Freed blocks, kept and overwritten, so that a use after free is detected.
    #[cfg(shuttle)]
    freed: Mutex<Vec<(usize, Layout)>>,
}

#[cfg(shuttle)]
impl Drop for Heap {
    fn drop(&mut self) {
        for (block, layout) in self.freed.get_mut().expect("no panic under the lock").drain(..) {
            // SAFETY: the block came from `allocate` with this layout, and nothing uses it any more.
            unsafe { std::alloc::dealloc(std::ptr::with_exposed_provenance_mut(block), layout) }
        }
    }
}

thread_local! {
    static PART: Cell<u8> = const { Cell::new(0) };
}

fn layout(bytes: usize) -> Option<Layout> {
    // All blocks share one offset within a cache line.
    Layout::from_size_align(bytes, LINE_BYTES).ok()
}

/// Makes the calling thread allocate from this part from now on. Returns its previous part.
pub fn allocate_from(part: u8) -> u8 {
    PART.try_with(|own| own.replace(part)).unwrap_or_default()
}

/// Always true, so that moved copies are tested.
pub fn can_be_moved(_bytes: usize) -> bool {
    true
}

/// Estimates the bytes held by a block. The allocator is unknown here: the estimate is glibc's rule (an eight-byte
/// chunk header), in steps of the blocks' alignment.
pub fn held_bytes(requested_bytes: usize) -> usize {
    (requested_bytes + 8).next_multiple_of(LINE_BYTES)
}

impl Heap {
    /// Allocates a block; returns it and its part.
    pub fn allocate(&self, bytes: usize) -> Option<(NonNull<u8>, u8)> {
        // SAFETY: the layout is not empty, since a node is never empty.
        let block = NonNull::new(unsafe { std::alloc::alloc(layout(bytes)?) })?;
        Some((block, PART.try_with(Cell::get).unwrap_or_default()))
    }

    /// Frees a block.
    ///
    /// # Safety
    /// `block` came from `allocate(requested_bytes)` and is not used again.
    pub unsafe fn free(&self, block: NonNull<u8>, requested_bytes: usize, _part: u8) {
        if let Some(layout) = layout(requested_bytes) {
            #[cfg(shuttle)]
            {
                // SAFETY: the block has `requested_bytes` bytes, and the caller guarantees that nothing else uses it.
                unsafe { block.as_ptr().write_bytes(0xdd, requested_bytes) };
                let block = block.as_ptr().expose_provenance();
                self.freed
                    .lock()
                    .expect("no panic under the lock")
                    .push((block, layout));
            }
            #[cfg(not(shuttle))]
            // SAFETY: the block came from `allocate` with this layout, and the caller does not use it again.
            unsafe {
                std::alloc::dealloc(block.as_ptr(), layout);
            }
        }
    }

    /// Does nothing and returns false: blocks keep their lengths.
    ///
    /// # Safety
    /// `block` came from `allocate(requested_bytes)`.
    pub unsafe fn shorten(&self, _block: NonNull<u8>, _requested_bytes: usize, _shorter: usize, _part: u8) -> bool {
        false
    }

    /// Does nothing: the allocator manages its pages.
    pub fn return_pages_but_of(&self, _part: u8) {}

    /// Does nothing: the allocator manages its pages.
    pub fn return_pages(&self, _tidied: bool) {}

    /// Returns 0: allocations are not counted here.
    pub fn allocated_but_from(&self, _part: u8) -> u64 {
        0
    }

    /// Returns 0: allocations are not counted here.
    pub fn allocated(&self) -> u64 {
        0
    }

    /// Does nothing: the allocator manages its pages.
    pub fn make_huge_pages(&self) {}

    /// Returns two numbers alternately.
    pub fn defragmentation_part(&self) -> u8 {
        1 + self.defragmented.fetch_add(1, Ordering::Relaxed) % 2
    }

    /// Returns false: the state of the allocator is unknown.
    pub fn is_fragmented(&self) -> bool {
        false
    }

    /// Returns false: the state of the allocator is unknown.
    pub fn has_holes(&self) -> bool {
        false
    }

    /// Returns false: allocations are not counted here.
    pub fn is_rewritten(&self) -> bool {
        false
    }

    /// Does nothing: moves are not recorded.
    pub fn moved_to(&self, _part: u8) {}

    /// Returns false: the state of the allocator is unknown.
    pub fn can_be_defragmented(&self) -> bool {
        false
    }

    /// Returns 0: the allocator's free memory is unknown.
    pub fn free_bytes(&self) -> u64 {
        0
    }
}
