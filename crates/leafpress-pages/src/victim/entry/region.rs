//! Memory of entries: mappings that each contain a TLSF heap, so that the memory held is the memory mapped.
//!
//! A block is rounded up to 32 bytes, and adjacent free blocks are merged (`leafpress_base::mem::tlsf`). An entry that
//! is too long to share a region has a mapping of its own.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use leafpress_base::mem::mapping::{Mapping, page_bytes};
use leafpress_base::mem::tlsf::{CLASSES, HEADER_BYTES, STEP_BYTES, Tlsf};

/// Regions of up to 64 MiB.
type Blocks = Tlsf<21>;

/// Maximum size of a region, in bytes.
pub(crate) const MAX_REGION_BYTES: usize = 16 << 20;
/// Minimum size of a region, in bytes.
pub(crate) const MIN_REGION_BYTES: usize = 64 << 10;

/// A mapping that entries are allocated from.
pub(crate) struct Region {
    /// One heap, or none if the mapping is one entry. A vector, because allocating a box panics if there is no memory.
    blocks: Vec<Blocks>,
    mapping: ManuallyDrop<Mapping>,
    /// Number of entries.
    entries: usize,
    /// Bytes of blocks in use.
    used_bytes: usize,
    /// Nothing is allocated from it any more; it is unmapped with its last entry.
    pub(crate) leaving: bool,
    /// It is kept even without entries.
    pub(crate) staying: bool,
}

/// Exclusively owned room for an entry, in a region that stays mapped as long as any of its room is in use.
#[derive(Debug)]
pub(crate) struct Room {
    start: NonNull<u8>,
    bytes: usize,
}

impl Room {
    /// # Safety
    /// The region must have allocated this room of this many bytes, and it must be exclusively owned.
    pub(super) unsafe fn new(start: NonNull<u8>, bytes: usize) -> Self {
        Self { start, bytes }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the start of the room, a multiple of 16 bytes.
    pub(super) fn into_start(self) -> NonNull<u8> {
        self.start
    }
}

/// Returns the bytes of an entry of `bytes` in a region, rounded up to a size class of the heap: the heap searches only
/// among blocks that are large enough whatever their size, and would not find a block again that an entry of the same
/// length has left. Without this a third of the memory was never used (`tests/victim/fill.rs`).
pub(crate) fn block_bytes(bytes: usize) -> usize {
    let block = bytes + HEADER_BYTES;
    let step = (1_usize << block.ilog2()) / CLASSES;
    block.next_multiple_of(step.max(STEP_BYTES))
}

impl Region {
    /// Memory of a region over `bytes`, including its tables.
    pub(crate) fn held_bytes_for(bytes: usize) -> usize {
        bytes + size_of::<Blocks>() + size_of::<Self>()
    }

    /// Creates a region of `bytes`, a multiple of the page size; [`None`] if the system has no memory left.
    pub(crate) fn new(bytes: usize) -> Option<Self> {
        let mapping = Mapping::new(bytes)?;
        let mut blocks = Vec::new();
        blocks.try_reserve_exact(1).ok()?;
        blocks.push(Blocks::default());
        let whole = NonNull::slice_from_raw_parts(mapping.start(), mapping.byte_len());
        // SAFETY: the mapping is owned and unused, and outlives the heap, which is declared before it in the region.
        unsafe { blocks[0].add_region(whole) }?;
        Some(Self {
            blocks,
            mapping: ManuallyDrop::new(mapping),
            entries: 0,
            used_bytes: 0,
            leaving: false,
            staying: false,
        })
    }

    /// Size of a mapping for one entry of `bytes`.
    pub(crate) fn single_bytes(bytes: usize) -> usize {
        bytes.next_multiple_of(page_bytes())
    }

    /// Creates a region for one entry.
    pub(crate) fn single(bytes: usize) -> Option<Self> {
        Some(Self {
            blocks: Vec::new(),
            mapping: ManuallyDrop::new(Mapping::new(Self::single_bytes(bytes))?),
            entries: 0,
            used_bytes: 0,
            leaving: false,
            staying: false,
        })
    }

    pub(crate) fn is_single(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Memory held, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        Self::held_bytes_for(self.mapping.byte_len())
    }

    /// Number of entries.
    pub(crate) fn entries(&self) -> usize {
        self.entries
    }

    /// Bytes of blocks in use.
    pub(crate) fn used_bytes(&self) -> usize {
        self.used_bytes
    }

    pub(crate) fn contains(&self, address: NonNull<u8>) -> bool {
        self.mapping.contains(address)
    }

    /// Allocates room for an entry of `bytes`.
    pub(crate) fn allocate(&mut self, bytes: usize) -> Option<Room> {
        if self.leaving {
            return None;
        }
        let start = match self.blocks.first_mut() {
            None if self.entries == 0 && bytes <= self.mapping.byte_len() => self.mapping.start(),
            None => return None,
            Some(blocks) => {
                let bytes = block_bytes(bytes) - HEADER_BYTES;
                blocks.allocate(bytes)?
            }
        };
        self.entries += 1;
        self.used_bytes += block_bytes(bytes);
        Some(Room { start, bytes })
    }

    /// Frees an entry's room. Room that is not of this region is leaked.
    pub(crate) fn free(&mut self, room: Room) {
        if !self.contains(room.start) {
            debug_assert!(false, "room is given back where it came from");
            return;
        }
        if let Some(blocks) = self.blocks.first_mut() {
            // SAFETY: the heap allocated this room, because it is within its mapping, which was in use since; and the
            // room is exclusively owned.
            unsafe { blocks.free(room.start) };
        }
        self.entries -= 1;
        self.used_bytes -= block_bytes(room.bytes);
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // Entries that are still in use keep their memory mapped.
        if self.entries == 0 {
            // SAFETY: the mapping is dropped here only, and the heap in it is not used again.
            unsafe { ManuallyDrop::drop(&mut self.mapping) };
        }
    }
}
