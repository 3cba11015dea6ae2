//! Sizes and alignment of a heap's blocks.

use std::alloc::Layout;

use crate::mem::LINE_BYTES;
use crate::mem::mapping::page_bytes;
use crate::mem::tlsf::{HEADER_BYTES, STEP_BYTES, Tlsf};

/// Nodes of at least this size, which only large values have, are mapped separately and unmapped when freed.
pub(super) const SYSTEM_BYTES: usize = 128 << 10;
/// Granularity of mapping lengths for the estimate, the page size on most machines.
const PAGE_BYTES: usize = 4096;

/// Granularity of the sizes of a part's blocks, a multiple of the free lists' own.
const LINE_STEP_BYTES: usize = LINE_BYTES;
/// Bytes skipped at a region's start, so that the first block, and thus every block, starts 16 bytes before the end of
/// a cache line.
pub(super) const LEFT_OUT_BYTES: usize = LINE_BYTES - 2 * HEADER_BYTES;
const _: () = assert!(LINE_STEP_BYTES.is_multiple_of(STEP_BYTES) && LEFT_OUT_BYTES.is_multiple_of(STEP_BYTES));

/// Blocks of up to 128 MiB, so that a region is initially one block.
pub(super) type Blocks = Tlsf<22>;

/// Returns the bytes that a block takes in its heap.
pub fn held_bytes(requested_bytes: usize) -> usize {
    let block = requested_bytes + HEADER_BYTES;
    if requested_bytes >= SYSTEM_BYTES {
        block.next_multiple_of(PAGE_BYTES)
    } else {
        block.next_multiple_of(LINE_STEP_BYTES)
    }
}

/// Returns the length of the mapping of a large block: whole pages.
pub(super) fn mapped_bytes(requested_bytes: usize) -> usize {
    held_bytes(requested_bytes).next_multiple_of(page_bytes())
}

/// Returns whether a block of this size is allocated from a part, and not directly from the system.
pub fn can_be_moved(bytes: usize) -> bool {
    bytes < SYSTEM_BYTES
}

/// Returns the layout requested for `bytes`: the whole block that holds them.
pub(super) fn layout(bytes: usize) -> Option<Layout> {
    let block = bytes
        .checked_add(HEADER_BYTES)?
        .checked_next_multiple_of(LINE_STEP_BYTES)?;
    Layout::from_size_align(block - HEADER_BYTES, 16).ok()
}
