//! Memory mapped from the system for a heap.

use std::cell::Cell;
use std::ptr::NonNull;

use crate::mem::mapping::{map, page_bytes, unmap};

const HUGE_PAGE_BYTES: usize = 2 << 20;
/// Smaller regions do not get a huge page when they are first touched: the last page in use, half of it empty, would be too much of
/// them. They get some when whole ones are in use.
const MIN_HUGE_REGION_BYTES: usize = 8 * HUGE_PAGE_BYTES;

/// A mapping, unmapped when dropped.
pub struct Region {
    mapping: NonNull<[u8]>,
    /// A bit for each huge page that may have become, or never was other than, small ones.
    in_small_pages: Cell<u64>,
}

// SAFETY: a region is the only owner of its mapping.
unsafe impl Send for Region {}

impl Region {
    /// Maps `bytes`, a power of two not below the page size, and a page behind them for the heap's mark at the region's end; [`None`]
    /// when the system has no more.
    pub fn map(bytes: usize) -> Option<Self> {
        let len = bytes.checked_add(page_bytes())?;
        if bytes < HUGE_PAGE_BYTES {
            return Some(Self {
                mapping: map(len)?,
                in_small_pages: Cell::new(0),
            });
        }
        // Huge pages lie at multiples of their size: map one more, and unmap what is outside.
        let mapped = map(len.checked_add(HUGE_PAGE_BYTES)?)?;
        let start = mapped.cast::<u8>();
        let front = start.align_offset(HUGE_PAGE_BYTES);
        let at_once = bytes >= MIN_HUGE_REGION_BYTES;
        // SAFETY: both ends lie inside the mapping and are multiples of the page size, and nobody uses the mapping yet.
        unsafe {
            let kept = start.add(front);
            unmap(start, front);
            unmap(kept.add(len), HUGE_PAGE_BYTES - front);
            // Only advice: without huge pages the region works as well, slower. The mark behind them would make the last one
            // resident long before it is used.
            #[cfg(target_os = "linux")]
            if at_once {
                libc::madvise(kept.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE);
            }
            Some(Self {
                mapping: NonNull::slice_from_raw_parts(kept, len),
                in_small_pages: Cell::new(if at_once { 0 } else { bits(0..bytes / HUGE_PAGE_BYTES) }),
            })
        }
    }

    /// All but so many bytes at its start, fewer than a page.
    pub fn behind(&self, left_out: usize) -> NonNull<[u8]> {
        debug_assert!(left_out < page_bytes());
        // SAFETY: a region is never smaller than a page.
        let start = unsafe { self.start().add(left_out) };
        NonNull::slice_from_raw_parts(start, self.mapping.len() - left_out)
    }

    fn start(&self) -> NonNull<u8> {
        self.mapping.cast()
    }

    /// Huge pages that fit.
    fn huge_pages(&self) -> usize {
        self.mapping.len() / HUGE_PAGE_BYTES
    }

    /// Gives the whole pages of `part` back to the system, `keep` bytes at its start excepted.
    ///
    /// # Safety
    /// `part` lies in this region, and what it holds behind `keep` bytes is not needed any more.
    pub unsafe fn return_pages(&self, part: NonNull<[u8]>, keep: usize) {
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
            let region = self.start().addr().get();
            let torn = (first - region) / HUGE_PAGE_BYTES..(end - region).div_ceil(HUGE_PAGE_BYTES);
            let torn = bits(torn.start..torn.end.min(self.huge_pages()));
            self.in_small_pages.set(self.in_small_pages.get() | torn);
        }
    }

    /// Makes a huge page of small ones, which must all be resident, so that it takes no more memory than they. False when there are no
    /// such left.
    #[cfg(target_os = "linux")]
    pub fn make_huge_page(&self) -> bool {
        for index in 0..self.huge_pages() {
            if self.in_small_pages.get() & bits(index..index + 1) == 0
                || self.resident_in(index * HUGE_PAGE_BYTES, HUGE_PAGE_BYTES) != HUGE_PAGE_BYTES
            {
                continue;
            }
            self.in_small_pages
                .set(self.in_small_pages.get() & !bits(index..index + 1));
            // SAFETY: the pages are the region's, and hold the same afterwards. Where the system cannot, they stay as they are.
            unsafe {
                let page = self.start().add(index * HUGE_PAGE_BYTES);
                libc::madvise(page.as_ptr().cast(), HUGE_PAGE_BYTES, libc::MADV_COLLAPSE);
            }
            return true;
        }
        false
    }

    #[cfg(not(target_os = "linux"))]
    pub fn make_huge_page(&self) -> bool {
        false
    }

    /// Bytes that take memory now.
    #[cfg(target_os = "linux")]
    pub fn resident_bytes(&self) -> usize {
        self.resident_in(0, self.mapping.len())
    }

    /// The same for the `len` bytes from `from` on.
    #[cfg(target_os = "linux")]
    fn resident_in(&self, from: usize, len: usize) -> usize {
        let (mut pages, page) = ([0u8; 4096], page_bytes());
        let mut resident = 0;
        for offset in (from..from + len).step_by(pages.len() * page) {
            let bytes = (from + len - offset).min(pages.len() * page);
            // SAFETY: the part lies in the mapping, and there is a byte for every page of it.
            let asked = unsafe {
                let start = self.start().add(offset);
                libc::mincore(start.as_ptr().cast(), bytes, pages.as_mut_ptr())
            };
            let in_memory = pages[..bytes / page].iter().filter(|&&state| state & 1 == 1).count();
            resident += if asked == 0 { in_memory * page } else { bytes };
        }
        resident
    }

    /// Bytes that may take memory now.
    #[cfg(not(target_os = "linux"))]
    pub fn resident_bytes(&self) -> usize {
        self.mapping.len()
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        #[cfg(leafpress_asan)]
        crate::mem::poison::unpoison(self.start(), self.mapping.len());
        // SAFETY: the mapping is ours and whole.
        unsafe { unmap(self.start(), self.mapping.len()) };
    }
}

/// A bit set for each number in `range`, which are below 64.
fn bits(range: std::ops::Range<usize>) -> u64 {
    range.fold(0, |bits, index| bits | 1 << index)
}
