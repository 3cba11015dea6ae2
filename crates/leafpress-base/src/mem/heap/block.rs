//! How long the blocks of a heap are, and where they begin.

use std::alloc::Layout;

use crate::mem::LINE_BYTES;
use crate::mem::mapping::page_bytes;

/// Nodes from this size on, which only large values have, come from the system and go back to it.
pub(super) const SYSTEM_BYTES: usize = 128 << 10;
/// To a multiple of this they are rounded there, on most machines.
const PAGE_BYTES: usize = 4096;

/// Bytes in front of a block in use, in rlsf.
const BLOCK_HEADER_BYTES: usize = rlsf::GRANULARITY / 2;
/// The step of block sizes, a multiple of rlsf's.
const BLOCK_STEP_BYTES: usize = LINE_BYTES;
/// What is left out at a region's start, for the first block, and so all others, to begin 16 bytes before a cache line.
pub(super) const LEFT_OUT_BYTES: usize = LINE_BYTES - 2 * BLOCK_HEADER_BYTES;
const _: () =
    assert!(BLOCK_STEP_BYTES.is_multiple_of(rlsf::GRANULARITY) && LEFT_OUT_BYTES.is_multiple_of(rlsf::GRANULARITY));

/// Blocks up to 128 MiB, so that a region is one block at first; 32 sizes between powers of two.
pub(super) type Blocks = rlsf::Tlsf<'static, u32, u32, 22, 32>;

/// Bytes that a block takes in its heap.
pub fn held_bytes(asked: usize) -> usize {
    let block = asked + BLOCK_HEADER_BYTES;
    if asked >= SYSTEM_BYTES {
        block.next_multiple_of(PAGE_BYTES)
    } else {
        block.next_multiple_of(BLOCK_STEP_BYTES)
    }
}

/// Bytes of the mapping of a large block: whole pages.
pub(super) fn mapped_bytes(asked: usize) -> usize {
    held_bytes(asked).next_multiple_of(page_bytes())
}

/// Whether a block of this size is from a part, and not from the system.
pub fn can_be_moved(bytes: usize) -> bool {
    bytes < SYSTEM_BYTES
}

/// What is asked for in place of so many bytes: all of the block.
pub(super) fn layout(bytes: usize) -> Option<Layout> {
    let block = bytes
        .checked_add(BLOCK_HEADER_BYTES)?
        .checked_next_multiple_of(BLOCK_STEP_BYTES)?;
    Layout::from_size_align(block - BLOCK_HEADER_BYTES, 16).ok()
}
