//! The program's own allocator in place of the heap, for tools that follow every allocation.

use std::alloc::Layout;
use std::cell::Cell;
use std::ptr::NonNull;
#[cfg(shuttle)]
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::mem::LINE_BYTES;

/// Parts are names here, for the tools to see what is moved from one to another.
#[derive(Default)]
pub struct Heap {
    defragmented: AtomicU8,
    /// What was freed: kept, and overwritten, for whoever still reads it to be found out.
    #[cfg(shuttle)]
    freed: Mutex<Vec<(usize, Layout)>>,
}

#[cfg(shuttle)]
impl Drop for Heap {
    fn drop(&mut self) {
        for (block, layout) in self.freed.get_mut().expect("no panic under the lock").drain(..) {
            // SAFETY: it came from `allocate`, and nobody uses it any more.
            unsafe { std::alloc::dealloc(std::ptr::with_exposed_provenance_mut(block), layout) }
        }
    }
}

thread_local! {
    static PART: Cell<u8> = const { Cell::new(0) };
}

fn layout(bytes: usize) -> Option<Layout> {
    // As far behind the start of a cache line each as the other.
    Layout::from_size_align(bytes, LINE_BYTES).ok()
}

pub fn allocate_from(part: u8) -> u8 {
    PART.try_with(|own| own.replace(part)).unwrap_or_default()
}

/// For a copy to be checked.
pub fn can_be_moved(_bytes: usize) -> bool {
    true
}

/// The program's allocator is unknown here: glibc's rule (an eight-byte chunk header), in steps of what blocks are aligned to,
/// stands for it.
pub fn held_bytes(asked: usize) -> usize {
    (asked + 8).next_multiple_of(LINE_BYTES)
}

impl Heap {
    pub fn allocate(&self, bytes: usize) -> Option<(NonNull<u8>, u8)> {
        // SAFETY: a node is never empty.
        let block = NonNull::new(unsafe { std::alloc::alloc(layout(bytes)?) })?;
        Some((block, PART.try_with(Cell::get).unwrap_or_default()))
    }

    /// # Safety
    /// `block` came from `allocate(asked)` and is not used again.
    pub unsafe fn free(&self, block: NonNull<u8>, asked: usize, _part: u8) {
        if let Some(layout) = layout(asked) {
            #[cfg(shuttle)]
            {
                // SAFETY: as the caller promises nobody else uses the block.
                unsafe { block.as_ptr().write_bytes(0xdd, asked) };
                let block = block.as_ptr().expose_provenance();
                self.freed
                    .lock()
                    .expect("no panic under the lock")
                    .push((block, layout));
            }
            #[cfg(not(shuttle))]
            // SAFETY: as the caller promises; the layout is the one it was allocated with.
            unsafe {
                std::alloc::dealloc(block.as_ptr(), layout);
            }
        }
    }

    pub fn return_pages_but_of(&self, _part: u8) {}

    pub fn return_pages(&self, _tidied: bool) {}

    pub fn allocated_but_from(&self, _part: u8) -> u64 {
        0
    }

    /// Not counted here.
    pub fn allocated(&self) -> u64 {
        0
    }

    pub fn make_huge_pages(&self) {}

    pub fn defragmentation_part(&self) -> u8 {
        1 + self.defragmented.fetch_add(1, Ordering::Relaxed) % 2
    }

    pub fn is_fragmented(&self) -> bool {
        false
    }

    pub fn has_holes(&self) -> bool {
        false
    }

    pub fn is_rewritten(&self) -> bool {
        false
    }

    pub fn moved_to(&self, _part: u8) {}

    pub fn can_be_defragmented(&self) -> bool {
        false
    }

    /// Unknown here.
    pub fn free_bytes(&self) -> u64 {
        0
    }
}
