//! Prefetch hints. They affect performance only.

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod imp {
    use std::arch::x86_64::{_MM_HINT_ET0, _MM_HINT_T0, _mm_prefetch};

    /// Prefetches a cache line for reading.
    #[inline(always)]
    pub fn line(address: *const u8) {
        // SAFETY: a prefetch has no architectural effect, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }

    /// Prefetches a cache line for writing.
    #[inline(always)]
    pub fn line_for_write(address: *const u8) {
        // SAFETY: a prefetch has no architectural effect, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(address.cast()) }
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod imp {
    /// Does nothing: there is no hint for this target.
    pub fn line(_address: *const u8) {}
    /// Does nothing: there is no hint for this target.
    pub fn line_for_write(_address: *const u8) {}
}

use crate::mem::node::NodeHeader;

pub use super::LINE_BYTES;
/// Cache lines that the header, frame offsets and keys of a leaf of 16 KiB typically take.
pub const DIRECTORY_LINES: usize = 8;

/// Prefetches the cache line at `address`.
#[inline(always)]
pub fn prefetch(address: *const u8) {
    imp::line(address);
}

/// Prefetches a node's first two cache lines for writing.
#[inline(always)]
pub fn prefetch_for_write(node: *const u8) {
    imp::line_for_write(node);
    imp::line_for_write(node.wrapping_add(LINE_BYTES));
}

/// Prefetches the lines in which a leaf's directory most likely is, all at once.
#[inline(always)]
pub fn prefetch_directory(leaf: *const u8) {
    for line in 0..DIRECTORY_LINES {
        imp::line(leaf.wrapping_add(size_of::<NodeHeader>() + line * LINE_BYTES));
    }
}
