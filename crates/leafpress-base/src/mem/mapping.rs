//! Memory mapped from the system, page by page.

use std::ptr::NonNull;

/// The system's page, which is 4 KiB on most, 16 or 64 KiB on some ARM.
pub fn page_bytes() -> usize {
    #[cfg(miri)]
    return 4096;
    #[cfg(not(miri))]
    {
        // SAFETY: a question without arguments.
        let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        usize::try_from(bytes).unwrap_or(4096)
    }
}

/// An anonymous private mapping, zeroed, unmapped when dropped. It takes memory only where it is touched.
pub struct Mapping(NonNull<[u8]>);

// SAFETY: a mapping is the only owner of its memory.
unsafe impl Send for Mapping {}
// SAFETY: through a shared reference only the address is to be had.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `bytes`, above 0 and a multiple of the page size; [`None`] when the system has no more.
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

    /// Gives the memory of a part back to the system; it reads as zeros when it is touched again.
    ///
    /// # Safety
    /// The part lies in the mapping, begins and ends at multiples of the page size, and what it holds is not needed any more.
    pub unsafe fn release(&self, start: NonNull<u8>, bytes: usize) {
        #[cfg(miri)]
        let _ = (start, bytes);
        #[cfg(not(miri))]
        // SAFETY: as the caller promises.
        unsafe {
            libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_DONTNEED);
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and whole.
        unsafe { unmap(self.0.cast(), self.0.len()) };
    }
}

/// Maps `bytes`, which stay mapped until they are unmapped.
#[cfg(not(miri))]
pub fn map(bytes: usize) -> Option<NonNull<[u8]>> {
    // SAFETY: a new private mapping touches nothing that exists.
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

/// Gives whole pages of a mapping back.
///
/// # Safety
/// The pages are mapped, whole, and not used any more.
#[cfg(not(miri))]
pub unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    if bytes > 0 {
        // SAFETY: as the caller promises.
        unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
    }
}

#[cfg(miri)]
fn layout(bytes: usize) -> Option<std::alloc::Layout> {
    std::alloc::Layout::from_size_align(bytes, page_bytes()).ok()
}

#[cfg(miri)]
pub fn map(bytes: usize) -> Option<NonNull<[u8]>> {
    // SAFETY: no caller maps nothing.
    let start = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout(bytes)?) })?;
    Some(NonNull::slice_from_raw_parts(start, bytes))
}

/// # Safety
/// The mapping is whole and not used any more.
#[cfg(miri)]
pub unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    if let Some(layout) = layout(bytes) {
        // SAFETY: as the caller promises.
        unsafe { std::alloc::dealloc(start.as_ptr(), layout) };
    }
}
