//! Blocks of any size in regions of memory: two-level segregated fit, TLSF (Masmano, Ripoll, Crespo, Real, ECRTS 2004).
//!
//! Allocating and freeing take constant time. Free blocks are kept in lists by size class: a level for each power of
//! two, divided into 32 classes of equal width. Two bitmaps find the first class whose blocks are all long enough. A
//! block that is longer than needed is split, and free neighbours are merged. The blocks of a region can be walked, so
//! that the pages of free ones can be returned to the system.
//!
//! ```text
//! block:  | size in bytes and flags | block before | contents ...                              |
//! free:   | size in bytes and flags | block before | next free | previous free | unused ...    |
//! region: | block | block | ... | end mark: a header with the flags END and USED               |
//! ```

use std::ptr::NonNull;

/// Granularity and alignment of blocks, in bytes, and the least size of one.
pub const STEP_BYTES: usize = size_of::<Block>();
/// Bytes of a block's header, before its contents.
pub const HEADER_BYTES: usize = 2 * size_of::<usize>();
/// Number of size classes between powers of two.
pub const CLASSES: usize = 32;

const USED: usize = 1;
const END: usize = 2;
const FLAGS: usize = USED | END;

/// A block's header; the list's links are valid in free blocks only.
#[repr(C)]
struct Block {
    size_and_flags: usize,
    before: Option<NonNull<Block>>,
    next: Option<NonNull<Block>>,
    previous: Option<NonNull<Block>>,
}

const _: () = assert!(STEP_BYTES == 2 * HEADER_BYTES && STEP_BYTES.is_power_of_two() && CLASSES == u32::BITS as usize);

/// The free lists of some regions. Blocks are shorter than `STEP_BYTES << LEVELS` bytes.
///
/// The value must be used by one thread at a time, and does not own its regions.
pub struct Tlsf<const LEVELS: usize> {
    /// A bit for each level that has a free block.
    levels: u32,
    /// For each level, a bit for each class that has one.
    classes: [u32; LEVELS],
    free: [[Option<NonNull<Block>>; CLASSES]; LEVELS],
}

// SAFETY: the links point into regions that only this value uses, by the contract of `add_region`.
unsafe impl<const LEVELS: usize> Send for Tlsf<LEVELS> {}

impl<const LEVELS: usize> Default for Tlsf<LEVELS> {
    fn default() -> Self {
        const { assert!(LEVELS <= u32::BITS as usize) }
        Self {
            levels: 0,
            classes: [0; LEVELS],
            free: [[None; CLASSES]; LEVELS],
        }
    }
}

impl<const LEVELS: usize> Tlsf<LEVELS> {
    /// Adds a region as one free block, behind bytes at its start for alignment and before an end mark of
    /// [`STEP_BYTES`]. Returns `None`, and leaves the region unused, when it is too short or too long for a block.
    ///
    /// # Safety
    /// The region is readable and writable, and nothing else uses it as long as this value or one of its blocks is
    /// used.
    pub unsafe fn add_region(&mut self, region: NonNull<[u8]>) -> Option<()> {
        let (start, skipped) = first_block(region);
        let size = (region.len().checked_sub(skipped)? / STEP_BYTES * STEP_BYTES).checked_sub(STEP_BYTES)?;
        if !(STEP_BYTES..STEP_BYTES << LEVELS).contains(&size) {
            return None;
        }
        // SAFETY: the block and the end mark behind it lie in the region, aligned, and the caller lets it be written.
        unsafe {
            (*start.as_ptr()).before = None;
            let end = start.byte_add(size);
            (*end.as_ptr()).size_and_flags = USED | END;
            (*end.as_ptr()).before = Some(start);
            self.link(start, size);
        }
        Some(())
    }

    /// Allocates a block for `bytes`. Its contents begin [`HEADER_BYTES`] after a multiple of [`STEP_BYTES`]. Returns
    /// `None` when no free block is in a class that is long enough.
    #[inline]
    pub fn allocate(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        let wanted = bytes.checked_add(HEADER_BYTES)?.checked_next_multiple_of(STEP_BYTES)?;
        if wanted >= STEP_BYTES << LEVELS {
            return None;
        }
        // The class after those in which a block may be too short.
        let (level, class) = class_of(wanted.checked_add(((1 << wanted.ilog2()) / CLASSES).saturating_sub(1))?);
        let (level, class) = self.first_from(level, class)?;
        let block = self.free[level][class]?;
        // SAFETY: a linked block is free and valid, and has a block or an end mark behind it. It has at least `wanted`
        // bytes, so that the rest begins inside it; both are multiples of the step.
        unsafe {
            let size = size_of_block(block);
            debug_assert!(size >= wanted && (*block.as_ptr()).size_and_flags & FLAGS == 0);
            self.unlink(block, level, class);
            if size > wanted {
                let rest = block.byte_add(wanted);
                (*rest.as_ptr()).before = Some(block);
                (*block.byte_add(size).as_ptr()).before = Some(rest);
                self.link(rest, size - wanted);
            }
            (*block.as_ptr()).size_and_flags = wanted | USED;
            Some(block.cast::<u8>().add(HEADER_BYTES))
        }
    }

    /// Frees a block.
    ///
    /// # Safety
    /// `contents` came from [`Tlsf::allocate`] of this value, and is not used again.
    #[inline]
    pub unsafe fn free(&mut self, contents: NonNull<u8>) {
        // SAFETY: the header lies before the contents of a block in use. A block in use has a block or an end mark
        // behind it, and `before` is a valid block if there is one. Free blocks are linked by their size.
        unsafe {
            let mut block = contents.sub(HEADER_BYTES).cast::<Block>();
            debug_assert_eq!(
                (*block.as_ptr()).size_and_flags & FLAGS,
                USED,
                "the block is not in use"
            );
            let mut size = size_of_block(block);
            let mut next = block.byte_add(size);
            if (*next.as_ptr()).size_and_flags & USED == 0 {
                let next_size = size_of_block(next);
                let (level, class) = class_of(next_size);
                self.unlink(next, level, class);
                size += next_size;
                next = block.byte_add(size);
            }
            if let Some(before) = (*block.as_ptr()).before
                && (*before.as_ptr()).size_and_flags & USED == 0
            {
                let before_size = size_of_block(before);
                let (level, class) = class_of(before_size);
                self.unlink(before, level, class);
                size += before_size;
                block = before;
            }
            (*next.as_ptr()).before = Some(block);
            self.link(block, size);
        }
    }

    /// Returns the bytes of each free block of a region that the free lists do not use.
    ///
    /// # Safety
    /// The region was added to this value, and no block of it is allocated or freed before the iterator is dropped.
    pub unsafe fn unused_in(&self, region: NonNull<[u8]>) -> impl Iterator<Item = NonNull<[u8]>> + '_ {
        let mut next = first_block(region).0;
        std::iter::from_fn(move || {
            loop {
                let block = next;
                // SAFETY: the walk begins at the region's first block, and goes on to the next until the end mark.
                let (header, size) = unsafe { ((*block.as_ptr()).size_and_flags, size_of_block(block)) };
                if header & END != 0 {
                    return None;
                }
                // SAFETY: behind a block is another block or the end mark.
                next = unsafe { block.byte_add(size) };
                if header & USED == 0 {
                    // SAFETY: a free block has at least `STEP_BYTES`.
                    let unused = unsafe { block.cast::<u8>().add(STEP_BYTES) };
                    return Some(NonNull::slice_from_raw_parts(unused, size - STEP_BYTES));
                }
            }
        })
    }

    /// Returns the first class with a free block, from this class of this level on.
    #[inline]
    fn first_from(&self, level: usize, class: usize) -> Option<(usize, usize)> {
        let classes = self.classes.get(level)? & (u32::MAX << class);
        if classes != 0 {
            return Some((level, classes.trailing_zeros() as usize));
        }
        let levels = self.levels & u32::MAX.checked_shl(level as u32 + 1)?;
        let level = levels.trailing_zeros() as usize;
        Some((level, self.classes.get(level)?.trailing_zeros() as usize))
    }

    /// Makes a block of `size` bytes a free one, the first of its class.
    ///
    /// # Safety
    /// The block is valid, and not linked.
    #[inline]
    unsafe fn link(&mut self, block: NonNull<Block>, size: usize) {
        let (level, class) = class_of(size);
        let next = self.free[level][class].replace(block);
        // SAFETY: the caller guarantees that the block is valid; a linked block is valid.
        unsafe {
            (*block.as_ptr()).size_and_flags = size;
            (*block.as_ptr()).next = next;
            (*block.as_ptr()).previous = None;
            if let Some(next) = next {
                (*next.as_ptr()).previous = Some(block);
            }
        }
        self.levels |= 1 << level;
        self.classes[level] |= 1 << class;
    }

    /// Removes a free block from the list of its class.
    ///
    /// # Safety
    /// The block is linked in this class.
    #[inline]
    unsafe fn unlink(&mut self, block: NonNull<Block>, level: usize, class: usize) {
        // SAFETY: the caller guarantees that the block is linked, so that its links are none or valid blocks.
        let (next, previous) = unsafe { ((*block.as_ptr()).next, (*block.as_ptr()).previous) };
        if let Some(next) = next {
            // SAFETY: a linked block\'s next block is a valid free block of the same list, which `self` owns.
            unsafe { (*next.as_ptr()).previous = previous };
        }
        if let Some(previous) = previous {
            // SAFETY: a linked block\'s previous block is a valid free block of the same list, which `self` owns.
            unsafe { (*previous.as_ptr()).next = next };
            return;
        }
        self.free[level][class] = next;
        if next.is_none() {
            self.classes[level] &= !(1 << class);
            if self.classes[level] == 0 {
                self.levels &= !(1 << level);
            }
        }
    }
}

/// Returns the address of a region's first block, and the bytes before it.
fn first_block(region: NonNull<[u8]>) -> (NonNull<Block>, usize) {
    let start = region.cast::<u8>();
    let skipped = start.addr().get().next_multiple_of(STEP_BYTES) - start.addr().get();
    // The address is used only if the region is longer than what is skipped.
    (
        NonNull::new(start.as_ptr().wrapping_add(skipped))
            .unwrap_or(start)
            .cast(),
        skipped,
    )
}

/// Returns the level and the class of a block of `size` bytes.
#[inline]
fn class_of(size: usize) -> (usize, usize) {
    let log = size.ilog2();
    let class = ((size - (1 << log)) * CLASSES) >> log;
    ((log - STEP_BYTES.ilog2()) as usize, class)
}

/// Returns a block's bytes, header included.
///
/// # Safety
/// The block is valid.
#[inline]
unsafe fn size_of_block(block: NonNull<Block>) -> usize {
    // SAFETY: the caller guarantees that the block is valid.
    unsafe { (*block.as_ptr()).size_and_flags & !FLAGS }
}

#[cfg(test)]
#[allow(unsafe_code)]
#[path = "tlsf_tests.rs"]
mod tests;
