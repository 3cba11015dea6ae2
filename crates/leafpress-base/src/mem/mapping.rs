//! Anonymous memory mappings.

use std::ptr::NonNull;

/// Returns the system's page size: 4 KiB on most machines, 16 or 64 KiB on some ARM ones.
pub fn page_bytes() -> usize {
    #[cfg(miri)]
    return 4096;
    #[cfg(not(miri))]
    {
        // SAFETY: the call takes no pointer and only returns a constant.
        let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        usize::try_from(bytes).unwrap_or(4096)
    }
}

/// An anonymous private mapping, zeroed, unmapped when dropped. Only touched pages take memory.
pub struct Mapping(NonNull<[u8]>);

// SAFETY: a mapping is the only owner of its memory.
unsafe impl Send for Mapping {}
// SAFETY: a shared reference only gives access to the address.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `bytes`, above 0 and a multiple of the page size; [`None`] when the system has no memory.
    pub fn new(bytes: usize) -> Option<Self> {
        map(bytes).map(Self)
    }

    /// Returns the first byte of the mapping.
    pub fn start(&self) -> NonNull<u8> {
        self.0.cast()
    }

    /// Returns the length in bytes.
    pub fn byte_len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether `address` lies within the mapping.
    pub fn contains(&self, address: NonNull<u8>) -> bool {
        let start = self.start().addr().get();
        (start..start + self.byte_len()).contains(&address.addr().get())
    }

    /// Returns the memory of a part to the system; it reads as zeros when it is touched again.
    ///
    /// # Safety
    /// The part lies in the mapping, begins and ends at multiples of the page size, and its contents are not needed any
    /// more.
    pub unsafe fn release(&self, start: NonNull<u8>, bytes: usize) {
        #[cfg(miri)]
        let _ = (start, bytes);
        #[cfg(not(miri))]
        // SAFETY: the caller guarantees that the range consists of whole pages of this mapping whose contents are not
        // needed.
        unsafe {
            libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_DONTNEED);
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this value owns the whole mapping, and no borrow of it is left.
        unsafe { unmap(self.0.cast(), self.0.len()) };
    }
}

/// Maps `bytes`, which stay mapped until [`unmap`].
#[cfg(not(miri))]
pub fn map(bytes: usize) -> Option<NonNull<[u8]>> {
    // SAFETY: a new private mapping at an address of the kernel's choice affects no existing memory.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return None;
    }
    NonNull::new(start.cast::<u8>()).map(|start| NonNull::slice_from_raw_parts(start, bytes))
}

/// Unmaps whole pages of a mapping.
///
/// # Safety
/// The pages are mapped, whole, and not used any more.
#[cfg(not(miri))]
pub unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    if bytes > 0 {
        // SAFETY: the caller guarantees that the pages are mapped, whole and unused.
        unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
    }
}

#[cfg(miri)]
fn layout(bytes: usize) -> Option<std::alloc::Layout> {
    std::alloc::Layout::from_size_align(bytes, page_bytes()).ok()
}

/// Returns zeroed memory; Miri maps none.
#[cfg(miri)]
pub fn map(bytes: usize) -> Option<NonNull<[u8]>> {
    // SAFETY: the layout is not empty, since no caller maps zero bytes.
    let start = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout(bytes)?) })?;
    Some(NonNull::slice_from_raw_parts(start, bytes))
}

/// Unmaps a mapping.
///
/// # Safety
/// The mapping is whole and not used any more.
#[cfg(miri)]
pub unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    if let Some(layout) = layout(bytes) {
        // SAFETY: the caller passes the whole mapping, which `map` allocated with this layout, and does not use it
        // again.
        unsafe { std::alloc::dealloc(start.as_ptr(), layout) };
    }
}
