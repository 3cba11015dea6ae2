//! Freed blocks of the heap under AddressSanitizer: whoever touches one is found out.
//!
//! For builds with `-Zsanitizer=address --cfg leafpress_asan` only. The sanitizer follows the program's allocator by itself;
//! of memory that the heap divides it has to be told (`asan_interface.h`).

use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr::NonNull;

/// Freed blocks are kept from use up to so many bytes in each part of a heap.
const KEPT_BYTES: usize = 1 << 20;

unsafe extern "C" {
    fn __asan_poison_memory_region(start: *const c_void, bytes: usize);
    fn __asan_unpoison_memory_region(start: *const c_void, bytes: usize);
}

/// From now on nobody may touch the bytes.
pub fn poison(start: NonNull<u8>, bytes: usize) {
    // SAFETY: this marks addresses, whatever is there.
    unsafe { __asan_poison_memory_region(start.as_ptr().cast(), bytes) }
}

/// The bytes may be touched again.
pub fn unpoison(start: NonNull<u8>, bytes: usize) {
    // SAFETY: this marks addresses, whatever is there.
    unsafe { __asan_unpoison_memory_region(start.as_ptr().cast(), bytes) }
}

/// Blocks that were freed, each with the bytes that were asked for, poisoned: the heap writes its lists into free blocks, so that a
/// block is only poisoned before the heap has it back.
#[derive(Default)]
pub struct Quarantine {
    blocks: VecDeque<(NonNull<u8>, usize)>,
    bytes: usize,
}

// SAFETY: the blocks are the quarantine's own, and nobody else looks at them.
unsafe impl Send for Quarantine {}

impl Quarantine {
    pub fn add(&mut self, block: NonNull<u8>, asked: usize) {
        poison(block, asked);
        self.bytes += asked;
        self.blocks.push_back((block, asked));
    }

    /// The block that has been here longest, fit for use again, when there are too many.
    pub fn overflow(&mut self) -> Option<(NonNull<u8>, usize)> {
        if self.bytes <= KEPT_BYTES {
            return None;
        }
        let (block, asked) = self.blocks.pop_front()?;
        self.bytes -= asked;
        unpoison(block, asked);
        Some((block, asked))
    }
}
