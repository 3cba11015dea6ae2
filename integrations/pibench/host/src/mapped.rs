//! Whether an address that a wrapper handed out is memory at all.

use std::cell::Cell;

thread_local! {
    /// The pages, first to last, that this thread last found mapped: wrappers hand out the same buffer again and again,
    /// and a system call for each scan would count as theirs.
    static KNOWN: Cell<(usize, usize)> = const { Cell::new((1, 0)) };
}

/// Returns whether there is memory at all of `bytes` (more than 0) bytes from `start`. Memory that was there at an
/// earlier call and has gone since may still be reported.
pub(crate) fn is_mapped(start: *const u8, bytes: usize) -> bool {
    let page_bytes = page_bytes();
    let Some(last) = start.addr().checked_add(bytes - 1) else {
        return false;
    };
    let (first, last) = (start.addr() / page_bytes, last / page_bytes);
    let (known_first, known_last) = KNOWN.get();
    if known_first <= first && last <= known_last {
        return true;
    }
    let mut residence = Vec::new();
    let pages = last - first + 1;
    if residence.try_reserve_exact(pages).is_err() {
        return false;
    }
    // SAFETY: mincore looks at no memory behind the address, and writes one byte per page, for which there is room.
    let mapped = unsafe {
        libc::mincore(
            std::ptr::without_provenance_mut(first * page_bytes),
            pages * page_bytes,
            residence.as_mut_ptr(),
        ) == 0
    };
    if mapped {
        KNOWN.set((first, last));
    }
    mapped
}

fn page_bytes() -> usize {
    // SAFETY: no precondition.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096).max(1)
}

#[cfg(test)]
mod tests {
    use super::is_mapped;

    #[test]
    fn distinguishes_mapped_from_unmapped_memory() {
        let mut buffer = vec![0u8; 1 << 20];
        for _ in 0..2 {
            assert!(is_mapped(buffer.as_mut_ptr(), buffer.len()));
        }
        assert!(!is_mapped(std::ptr::null(), 1));
        assert!(!is_mapped(std::ptr::without_provenance(0x10), 8));
        assert!(!is_mapped(std::ptr::without_provenance(usize::MAX), 1));
        assert!(!is_mapped(std::ptr::without_provenance(usize::MAX), 2));
        assert!(!is_mapped(buffer.as_mut_ptr(), 1 << 46));
    }
}
