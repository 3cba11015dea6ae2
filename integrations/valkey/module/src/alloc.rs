//! The module's memory comes from the server's allocator, so that the server's accounting, and `maxmemory`, include it.
//!
//! The server's functions take no alignment. A request for a larger alignment than theirs gets a longer block, with the
//! address of the server's block directly before the returned part.

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::api::table::loaded;

/// The alignment that every server's allocator guarantees for blocks of at least this length. A server that stores each
/// block's length before it has no other: where its C library cannot report the length of a block.
const MIN_ALIGNMENT: usize = 8;
/// The alignment that most allocators guarantee for blocks of at least this length.
const USUAL_ALIGNMENT: usize = 16;
const POINTER: usize = size_of::<*mut u8>();
const _: () = assert!(POINTER <= MIN_ALIGNMENT);

/// The server's allocator; the C library's if there is no server, as in tests.
pub struct ServerAllocator;

/// The alignment that the allocator guarantees for blocks of at least this length. Shorter blocks are rounded up to the
/// alignment that is requested.
static GUARANTEED: AtomicUsize = AtomicUsize::new(MIN_ALIGNMENT);
static HELD: AtomicUsize = AtomicUsize::new(0);
static EARLY: AtomicUsize = AtomicUsize::new(0);

/// Bytes that the module has allocated and not freed.
pub fn held() -> usize {
    HELD.load(Ordering::Relaxed)
}

/// Returns the number of blocks that were allocated before the server was known: the server could not free those.
pub fn early_blocks() -> usize {
    EARLY.load(Ordering::Relaxed)
}

/// Finds out what the server's allocator guarantees. No block may be allocated: it would be freed in another way.
pub fn find_alignment() {
    GUARANTEED.store(alignment_of(&Current), Ordering::Relaxed);
}

/// Where blocks come from.
trait Source {
    /// Returns a block; null if there is no memory.
    fn take(&self, bytes: usize) -> *mut u8;

    /// # Safety
    /// `block` is one of `take` or `resize`, not given back yet.
    unsafe fn give_back(&self, block: *mut u8);

    /// Returns a block of another length, with the bytes of this one, as far as both have them; null if there is no
    /// memory, and this one stays.
    ///
    /// # Safety
    /// `block` is one of `take` or `resize` with `old` bytes, not given back yet. It is given back if the result is not
    /// null.
    unsafe fn resize(&self, block: *mut u8, old: usize, new: usize) -> *mut u8 {
        let moved = self.take(new);
        if !moved.is_null() {
            // SAFETY: both blocks are as long as what is copied, and are two. The caller gives up `block`.
            unsafe {
                std::ptr::copy_nonoverlapping(block, moved, old.min(new));
                self.give_back(block);
            }
        }
        moved
    }
}

/// The server, or the C library if there is none.
struct Current;

impl Source for Current {
    fn take(&self, bytes: usize) -> *mut u8 {
        match loaded() {
            // SAFETY: the server takes any length, and answers null if there is no memory.
            Some(api) => unsafe { (api.TryAlloc)(bytes) }.cast(),
            None => {
                EARLY.fetch_add(1, Ordering::Relaxed);
                // SAFETY: malloc accepts any length.
                unsafe { libc::malloc(bytes) }.cast()
            }
        }
    }

    unsafe fn give_back(&self, block: *mut u8) {
        match loaded() {
            // SAFETY: no block is older than the server's table: the module's entry checks that.
            Some(api) => unsafe { (api.Free)(block.cast()) },
            None => {
                EARLY.fetch_sub(1, Ordering::Relaxed);
                // SAFETY: without a server all are the C library's.
                unsafe { libc::free(block.cast()) };
            }
        }
    }

    unsafe fn resize(&self, block: *mut u8, old: usize, new: usize) -> *mut u8 {
        match loaded().map(|api| api.TryRealloc) {
            // SAFETY: no block is older than the server's table, so that the server's allocator made this one.
            Some(Some(resize)) => unsafe { resize(block.cast(), new) }.cast(),
            // The server's `Realloc` ends the process if there is no memory.
            // SAFETY: the caller's.
            Some(None) => unsafe { Copying(self).resize(block, old, new) },
            // SAFETY: the block is of the C library's allocator.
            None => unsafe { libc::realloc(block.cast(), new) }.cast(),
        }
    }
}

/// Another source, without its own way to resize a block.
struct Copying<'s, S>(&'s S);

impl<S: Source> Source for Copying<'_, S> {
    fn take(&self, bytes: usize) -> *mut u8 {
        self.0.take(bytes)
    }

    unsafe fn give_back(&self, block: *mut u8) {
        // SAFETY: the caller's.
        unsafe { self.0.give_back(block) };
    }
}

/// Returns the alignment of a source's blocks: of two blocks of each of some lengths, since neighbours of an odd
/// multiple of 8 bytes are aligned differently where an allocator does not align them.
fn alignment_of(source: &impl Source) -> usize {
    const LENGTHS: usize = 16;
    let mut blocks = [std::ptr::null_mut(); 2 * LENGTHS];
    for (at, block) in blocks.iter_mut().enumerate() {
        *block = source.take(USUAL_ALIGNMENT + at / 2 * MIN_ALIGNMENT);
    }
    let are_aligned = blocks
        .iter()
        .all(|block: &*mut u8| !block.is_null() && block.addr().is_multiple_of(USUAL_ALIGNMENT));
    for block in blocks.into_iter().filter(|block| !block.is_null()) {
        // SAFETY: it was taken here, and is given back once.
        unsafe { source.give_back(block) };
    }
    if are_aligned { USUAL_ALIGNMENT } else { MIN_ALIGNMENT }
}

/// Returns the length to request: allocators align short blocks only to their length.
fn at_least(layout: Layout, bytes: usize) -> usize {
    bytes.max(layout.align())
}

/// Returns a block of this layout from a source that guarantees an alignment; null if there is no memory.
#[inline]
fn allocate(source: &impl Source, guaranteed: usize, layout: Layout) -> *mut u8 {
    if layout.align() <= guaranteed {
        source.take(at_least(layout, layout.size()))
    } else {
        aligned(source, layout)
    }
}

/// Gives a block back.
///
/// # Safety
/// `start` is one of [`allocate`] or [`reallocate`] with the same arguments, not given back yet.
#[inline]
unsafe fn deallocate(source: &impl Source, guaranteed: usize, start: *mut u8, layout: Layout) {
    let block = if layout.align() <= guaranteed {
        start
    } else {
        // SAFETY: `aligned` has put the block's address there.
        unsafe { start.sub(POINTER).cast::<*mut u8>().read() }
    };
    // SAFETY: it is the block that was taken.
    unsafe { source.give_back(block) };
}

/// Returns a block of another length with the bytes of this one; null if there is no memory, and this one stays.
///
/// # Safety
/// As [`deallocate`].
unsafe fn reallocate(
    source: &impl Source,
    guaranteed: usize,
    start: *mut u8,
    layout: Layout,
    new_size: usize,
) -> *mut u8 {
    let Ok(new) = Layout::from_size_align(new_size, layout.align()) else {
        return std::ptr::null_mut();
    };
    if layout.align() <= guaranteed {
        // A server frees the block if the length is half of the address space.
        if new_size == isize::MAX.unsigned_abs() {
            return std::ptr::null_mut();
        }
        // SAFETY: it is the block that was taken, of this length.
        return unsafe { source.resize(start, at_least(layout, layout.size()), at_least(layout, new_size)) };
    }
    let moved = allocate(source, guaranteed, new);
    if !moved.is_null() {
        // SAFETY: both blocks are as long as what is copied, and are two.
        unsafe {
            std::ptr::copy_nonoverlapping(start, moved, layout.size().min(new_size));
            deallocate(source, guaranteed, start, layout);
        }
    }
    moved
}

/// Returns a block with a larger alignment than the source's.
fn aligned(source: &impl Source, layout: Layout) -> *mut u8 {
    let Some(bytes) = layout.size().checked_add(layout.align()) else {
        return std::ptr::null_mut();
    };
    let block = source.take(bytes);
    if block.is_null() {
        return block;
    }
    // The distance from the block's start is at least the length of a pointer, since the block is aligned to that, and
    // the requested alignment is larger.
    let skip = layout.align() - block.addr() % layout.align();
    debug_assert!(skip >= POINTER);
    // SAFETY: `skip` is at most the alignment, by which the block is longer; there is room for a pointer before.
    unsafe {
        let start = block.add(skip);
        start.sub(POINTER).cast::<*mut u8>().write(block);
        start
    }
}

fn guaranteed() -> usize {
    GUARANTEED.load(Ordering::Relaxed)
}

// SAFETY: blocks have the requested length and alignment, and are freed as they were allocated: the layout says how.
unsafe impl GlobalAlloc for ServerAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let start = allocate(&Current, guaranteed(), layout);
        if !start.is_null() {
            HELD.fetch_add(layout.size(), Ordering::Relaxed);
        }
        start
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's.
        unsafe { deallocate(&Current, guaranteed(), start, layout) };
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller's.
        let moved = unsafe { reallocate(&Current, guaranteed(), start, layout, new_size) };
        if !moved.is_null() {
            HELD.fetch_add(new_size, Ordering::Relaxed);
            HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Blocks at `shift` behind those of the C library, as of a server that puts their length there.
    struct Shifted {
        shift: usize,
        /// Blocks of more bytes are refused.
        most: usize,
        taken: Cell<usize>,
    }

    impl Shifted {
        fn new(shift: usize) -> Self {
            Self {
                shift,
                most: usize::MAX,
                taken: Cell::new(0),
            }
        }
    }

    impl Source for Shifted {
        fn take(&self, bytes: usize) -> *mut u8 {
            if bytes > self.most {
                return std::ptr::null_mut();
            }
            self.taken.set(self.taken.get() + 1);
            // SAFETY: the block is longer by `shift`.
            unsafe { libc::malloc(bytes + self.shift).cast::<u8>().add(self.shift) }
        }

        unsafe fn give_back(&self, block: *mut u8) {
            self.taken.set(self.taken.get() - 1);
            // SAFETY: the block of the C library begins there.
            unsafe { libc::free(block.sub(self.shift).cast()) };
        }
    }

    /// Takes, fills, resizes and gives back blocks of many layouts.
    fn check(source: &impl Source, guaranteed: usize) {
        for align in [1, 8, 16, 32, 64, 128, 4096] {
            for size in [1, 7, 64, 1000, 70_000] {
                for new_size in [1, size / 2 + 1, 2 * size] {
                    let layout = Layout::from_size_align(size, align).unwrap();
                    // SAFETY: it is allocated, written within its length, resized and freed with its own layouts.
                    unsafe {
                        let start = allocate(source, guaranteed, layout);
                        assert_eq!(start.addr() % align, 0);
                        start.write_bytes(7, size);
                        let moved = reallocate(source, guaranteed, start, layout, new_size);
                        assert_eq!(moved.addr() % align, 0);
                        let kept = std::slice::from_raw_parts(moved, size.min(new_size));
                        assert!(kept.iter().all(|byte| *byte == 7));
                        let layout = Layout::from_size_align(new_size, align).unwrap();
                        deallocate(source, guaranteed, moved, layout);
                    }
                }
            }
        }
    }

    #[test]
    fn blocks_are_aligned_and_keep_their_bytes() {
        check(&Current, MIN_ALIGNMENT);
        check(&Current, USUAL_ALIGNMENT);
        check(&Copying(&Current), USUAL_ALIGNMENT);
        for shift in [0, 8] {
            let source = Shifted::new(shift);
            check(&source, alignment_of(&source));
            assert_eq!(source.taken.get(), 0, "{shift}");
        }
    }

    #[test]
    fn the_alignment_of_a_source_is_found() {
        assert_eq!(alignment_of(&Shifted::new(0)), USUAL_ALIGNMENT);
        assert_eq!(alignment_of(&Shifted::new(8)), MIN_ALIGNMENT);
        let source = Shifted {
            most: 100,
            ..Shifted::new(0)
        };
        assert_eq!(alignment_of(&source), MIN_ALIGNMENT);
        assert_eq!(source.taken.get(), 0);
    }

    #[test]
    fn a_block_stays_if_there_is_no_memory_for_a_longer_one() {
        let source = Shifted {
            most: 1000,
            ..Shifted::new(8)
        };
        for align in [8, 64] {
            let layout = Layout::from_size_align(500, align).unwrap();
            // SAFETY: it is allocated, written within its length and freed with its layout.
            unsafe {
                let start = allocate(&source, MIN_ALIGNMENT, layout);
                start.write_bytes(7, 500);
                for new_size in [1001, isize::MAX.unsigned_abs(), usize::MAX] {
                    assert!(reallocate(&source, MIN_ALIGNMENT, start, layout, new_size).is_null());
                }
                let kept = std::slice::from_raw_parts(start, 500);
                assert!(kept.iter().all(|byte| *byte == 7));
                deallocate(&source, MIN_ALIGNMENT, start, layout);
            }
        }
        assert_eq!(source.taken.get(), 0);
    }

    #[test]
    fn a_vector_reports_that_there_is_no_memory() {
        let mut bytes = vec![1_u8; 100];
        assert!(bytes.try_reserve_exact(isize::MAX.unsigned_abs() - 100).is_err());
        assert_eq!(bytes, [1; 100]);
    }
}
