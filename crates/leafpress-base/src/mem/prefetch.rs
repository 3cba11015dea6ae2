//! Hints that have cache lines on their way while other work goes on. They change nothing but time.

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod imp {
    use std::arch::x86_64::{_MM_HINT_ET0, _MM_HINT_T0, _mm_prefetch};

    #[inline(always)]
    pub fn line(address: *const u8) {
        // SAFETY: a prefetch accesses no memory that the program can tell.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }

    #[inline(always)]
    pub fn line_for_write(address: *const u8) {
        // SAFETY: as above.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(address.cast()) }
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod imp {
    pub fn line(_address: *const u8) {}
    pub fn line_for_write(_address: *const u8) {}
}

use crate::mem::node::NodeHeader;

pub use super::LINE_BYTES;
/// Lines that the header, frame offsets and keys of a leaf of 16 KiB mostly take.
pub const DIRECTORY_LINES: usize = 8;

/// Asks for the cache line at `address`.
#[inline(always)]
pub fn prefetch(address: *const u8) {
    imp::line(address);
}

/// Asks for a node's first two cache lines, to be written.
#[inline(always)]
pub fn prefetch_for_write(node: *const u8) {
    imp::line_for_write(node);
    imp::line_for_write(node.wrapping_add(LINE_BYTES));
}

/// Asks for the lines in which a leaf's directory most likely is, all at once.
#[inline(always)]
pub fn prefetch_directory(leaf: *const u8) {
    for line in 0..DIRECTORY_LINES {
        imp::line(leaf.wrapping_add(size_of::<NodeHeader>() + line * LINE_BYTES));
    }
}
