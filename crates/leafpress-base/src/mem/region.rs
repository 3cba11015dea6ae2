//! Regions: mappings for a heap.

use std::cell::Cell;
use std::ptr::NonNull;

use crate::mem::mapping::{map, page_bytes, unmap};

const HUGE_PAGE_BYTES: usize = 2 << 20;
/// Minimum size of a region that requests huge pages when it is first touched: in a smaller one the last huge page,
/// half empty on average, would waste too large a share. Smaller regions get huge pages when whole ones are in use.
const MIN_HUGE_REGION_BYTES: usize = 8 * HUGE_PAGE_BYTES;

/// A mapping, unmapped when dropped.
pub struct Region {
    mapping: NonNull<[u8]>,
    /// A bit for each huge page that is or may be made of small pages.
    in_small_pages: Cell<u64>,
}

// SAFETY: a region is the only owner of its mapping.
unsafe impl Send for Region {}

impl Region {
    /// Maps `bytes`, a power of two not below the page size, and one more page for the heap's end mark; [`None`] when
    /// the system has no memory.
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
        // SAFETY: both ends lie inside the mapping and are multiples of the page size, and nothing uses the mapping
        // yet.
        unsafe {
            let kept = start.add(front);
            unmap(start, front);
            unmap(kept.add(len), HUGE_PAGE_BYTES - front);
            // This is only advice: without huge pages the region works too, but slower. The page of the end mark is
            // excluded, since it would make the last huge page resident long before it is used.
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

    /// Returns the region without its first `left_out` bytes, fewer than a page.
    pub fn behind(&self, left_out: usize) -> NonNull<[u8]> {
        debug_assert!(left_out < page_bytes());
        // SAFETY: the offset is below a page, and a region has at least a page.
        let start = unsafe { self.start().add(left_out) };
        NonNull::slice_from_raw_parts(start, self.mapping.len() - left_out)
    }

    fn start(&self) -> NonNull<u8> {
        self.mapping.cast()
    }

    /// Returns the number of whole huge pages in the region.
    fn huge_pages(&self) -> usize {
        self.mapping.len() / HUGE_PAGE_BYTES
    }

    /// Returns the whole pages of `part` to the system.
    ///
    /// # Safety
    /// `part` lies in this region, and its contents are not needed any more.
    pub unsafe fn return_pages(&self, part: NonNull<[u8]>) {
        let start = part.cast::<u8>().as_ptr().addr();
        let page = page_bytes();
        let (first, end) = (start.next_multiple_of(page), (start + part.len()) & !(page - 1));
        if first < end {
            let pages = part.cast::<u8>().as_ptr().with_addr(first);
            // SAFETY: the pages lie in `part`, whose contents the caller does not need.
            unsafe { libc::madvise(pages.cast(), end - first, libc::MADV_DONTNEED) };
            let region = self.start().addr().get();
            let torn = (first - region) / HUGE_PAGE_BYTES..(end - region).div_ceil(HUGE_PAGE_BYTES);
            let torn = bits(torn.start..torn.end.min(self.huge_pages()));
            self.in_small_pages.set(self.in_small_pages.get() | torn);
        }
    }

    /// Collapses small pages into a huge page if all of them are resident, so that this takes no more memory. Returns
    /// false when no candidates are left.
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
            // SAFETY: the pages belong to this region, and their contents do not change. If the system cannot collapse
            // them, they stay small pages.
            unsafe {
                let page = self.start().add(index * HUGE_PAGE_BYTES);
                libc::madvise(page.as_ptr().cast(), HUGE_PAGE_BYTES, libc::MADV_COLLAPSE);
            }
            return true;
        }
        false
    }

    /// Returns false: pages are collapsed on Linux only.
    #[cfg(not(target_os = "linux"))]
    pub fn make_huge_page(&self) -> bool {
        false
    }

    /// Returns the resident bytes.
    #[cfg(target_os = "linux")]
    pub fn resident_bytes(&self) -> usize {
        self.resident_in(0, self.mapping.len())
    }

    /// Returns the resident bytes among the `len` bytes from `from` on.
    #[cfg(target_os = "linux")]
    fn resident_in(&self, from: usize, len: usize) -> usize {
        let (mut pages, page) = ([0u8; 4096], page_bytes());
        let mut resident = 0;
        for offset in (from..from + len).step_by(pages.len() * page) {
            let bytes = (from + len - offset).min(pages.len() * page);
            // SAFETY: the range lies in the mapping, and the vector has a byte for every page of it.
            let status = unsafe {
                let start = self.start().add(offset);
                libc::mincore(start.as_ptr().cast(), bytes, pages.as_mut_ptr())
            };
            let in_memory = pages[..bytes / page].iter().filter(|&&state| state & 1 == 1).count();
            resident += if status == 0 { in_memory * page } else { bytes };
        }
        resident
    }

    /// Returns an upper bound of the resident bytes.
    #[cfg(not(target_os = "linux"))]
    pub fn resident_bytes(&self) -> usize {
        self.mapping.len()
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        #[cfg(leafpress_asan)]
        crate::mem::poison::unpoison(self.start(), self.mapping.len());
        // SAFETY: this value owns the whole mapping, and no block of it is in use.
        unsafe { unmap(self.start(), self.mapping.len()) };
    }
}

/// Returns a mask with a bit for each number in `range`, all below 64.
fn bits(range: std::ops::Range<usize>) -> u64 {
    range.fold(0, |bits, index| bits | 1 << index)
}
