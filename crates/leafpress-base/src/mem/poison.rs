//! Poisoning of the heap's freed blocks for AddressSanitizer, which then reports any access to them.
//!
//! For builds with `-Zsanitizer=address --cfg leafpress_asan` only. The sanitizer tracks the program's allocator by
//! itself; memory that this heap divides has to be announced to it (`asan_interface.h`).

use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr::NonNull;

/// Maximum bytes of freed blocks kept in quarantine in each part of a heap.
const KEPT_BYTES: usize = 1 << 20;

unsafe extern "C" {
    fn __asan_poison_memory_region(start: *const c_void, bytes: usize);
    fn __asan_unpoison_memory_region(start: *const c_void, bytes: usize);
}

/// Marks the bytes as inaccessible.
pub fn poison(start: NonNull<u8>, bytes: usize) {
    // SAFETY: the call only marks shadow memory and accepts any range.
    unsafe { __asan_poison_memory_region(start.as_ptr().cast(), bytes) }
}

/// Marks the bytes as accessible again.
pub fn unpoison(start: NonNull<u8>, bytes: usize) {
    // SAFETY: the call only marks shadow memory and accepts any range.
    unsafe { __asan_unpoison_memory_region(start.as_ptr().cast(), bytes) }
}

/// Freed blocks, poisoned, each with its requested bytes. The heap writes its free lists into free blocks, so that a
/// block can only be poisoned before the heap takes it back.
#[derive(Default)]
pub struct Quarantine {
    blocks: VecDeque<(NonNull<u8>, usize)>,
    bytes: usize,
}

// SAFETY: the quarantine owns its blocks, and nothing else accesses them.
unsafe impl Send for Quarantine {}

impl Quarantine {
    /// Poisons a freed block and keeps it.
    pub fn add(&mut self, block: NonNull<u8>, requested_bytes: usize) {
        poison(block, requested_bytes);
        self.bytes += requested_bytes;
        self.blocks.push_back((block, requested_bytes));
    }

    /// Returns the oldest block, unpoisoned, if the quarantine holds too many bytes.
    pub fn overflow(&mut self) -> Option<NonNull<u8>> {
        if self.bytes <= KEPT_BYTES {
            return None;
        }
        let (block, requested_bytes) = self.blocks.pop_front()?;
        self.bytes -= requested_bytes;
        unpoison(block, requested_bytes);
        Some(block)
    }
}
