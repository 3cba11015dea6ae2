//! Memory mapped from the system for a heap.

use std::ptr::NonNull;

use crate::mapping::{map, page_bytes, unmap};

const HUGE_PAGE_BYTES: usize = 2 << 20;
/// Smaller regions do without huge pages: the last page in use, half of it empty, would be too much of them.
const MIN_HUGE_REGION_BYTES: usize = 8 * HUGE_PAGE_BYTES;

/// A mapping, unmapped when dropped.
pub(super) struct Region(NonNull<[u8]>);

// SAFETY: a region is the only owner of its mapping.
unsafe impl Send for Region {}

impl Region {
    /// Maps `bytes`, a power of two not below the page size, and a page behind them for the heap's mark at the region's end; [`None`]
    /// when the system has no more.
    pub(super) fn map(bytes: usize) -> Option<Self> {
        let len = bytes.checked_add(page_bytes())?;
        if bytes < MIN_HUGE_REGION_BYTES {
            return map(len).map(Self);
        }
        // Huge pages lie at multiples of their size: map one more, and unmap what is outside.
        let mapped = map(len.checked_add(HUGE_PAGE_BYTES)?)?;
        let start = mapped.cast::<u8>();
        let front = start.align_offset(HUGE_PAGE_BYTES);
        // SAFETY: both ends lie inside the mapping and are multiples of the page size, and nobody uses the mapping yet.
        unsafe {
            let kept = start.add(front);
            unmap(start, front);
            unmap(kept.add(len), HUGE_PAGE_BYTES - front);
            // Only advice: without huge pages the region works as well, slower. The mark behind them would make the last one
            // resident long before it is used.
            #[cfg(target_os = "linux")]
            libc::madvise(kept.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE);
            Some(Self(NonNull::slice_from_raw_parts(kept, len)))
        }
    }

    pub(super) fn bytes(&self) -> NonNull<[u8]> {
        self.0
    }

    /// Gives the whole pages of `part` back to the system, `keep` bytes at its start excepted.
    ///
    /// # Safety
    /// `part` lies in this region, and what it holds behind `keep` bytes is not needed any more.
    pub(super) unsafe fn return_pages(&self, part: NonNull<[u8]>, keep: usize) {
        let start = part.cast::<u8>().as_ptr().addr();
        let page = page_bytes();
        let (first, end) = (
            (start + keep).next_multiple_of(page),
            (start + part.len()) & !(page - 1),
        );
        if first < end {
            let pages = part.cast::<u8>().as_ptr().with_addr(first);
            // SAFETY: as the caller promises.
            unsafe { libc::madvise(pages.cast(), end - first, libc::MADV_DONTNEED) };
        }
    }

    /// Bytes that take memory now.
    #[cfg(target_os = "linux")]
    pub(super) fn resident_bytes(&self) -> usize {
        let (mut pages, page) = ([0u8; 4096], page_bytes());
        let mut resident = 0;
        for offset in (0..self.0.len()).step_by(pages.len() * page) {
            let bytes = (self.0.len() - offset).min(pages.len() * page);
            // SAFETY: the part lies in the mapping, and there is a byte for every page of it.
            let asked = unsafe {
                let start = self.0.cast::<u8>().add(offset);
                libc::mincore(start.as_ptr().cast(), bytes, pages.as_mut_ptr())
            };
            let in_memory = pages[..bytes / page].iter().filter(|&&state| state & 1 == 1).count();
            resident += if asked == 0 { in_memory * page } else { bytes };
        }
        resident
    }

    /// Bytes that may take memory now.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn resident_bytes(&self) -> usize {
        self.0.len()
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and whole.
        unsafe { unmap(self.0.cast(), self.0.len()) };
    }
}
