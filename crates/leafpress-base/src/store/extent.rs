//! How long a file of pages is, and which of its pages are absent.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::sync::plain::RwLock;
use rangemap::RangeSet;

use super::PageId;

/// The length of a file cut into pages, of which only the last may be short, and the pages in it that are none: removed, or
/// skipped over when a page was written beyond the end.
pub(super) struct Extent {
    page_bytes: u64,
    /// Where the last page ends. Changed under the lock of `absent`.
    end: AtomicU64,
    /// Whether `absent` has anything in it; changed under its lock.
    any_absent: AtomicBool,
    absent: RwLock<RangeSet<PageId>>,
}

/// What a write does to the file's length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// Nothing.
    InPlace,
    /// The last page becomes shorter.
    Shorter,
    /// The last page becomes longer.
    Longer { old_end: u64, new_end: u64 },
    /// A page comes after the last, absent until [`Extent::written`].
    Appended { new_end: u64 },
}

impl Extent {
    /// `page_bytes` is not 0.
    pub(super) fn new(page_bytes: usize, end: u64) -> Self {
        Self {
            page_bytes: page_bytes as u64,
            end: AtomicU64::new(end),
            any_absent: AtomicBool::new(false),
            absent: RwLock::new(RangeSet::new()),
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.end.load(Ordering::Acquire).div_ceil(self.page_bytes)
    }

    /// A page's length, `None` where there is no such page.
    pub(super) fn page_bytes(&self, page: PageId) -> Option<usize> {
        let there = self.slot_bytes(page, self.end.load(Ordering::Acquire))?;
        // Set before the end moves over an absent page, so that a reader who sees the new end sees this too.
        if self.any_absent.load(Ordering::Acquire) && self.absent.read().contains(&page) {
            return None;
        }
        Some(there as usize)
    }

    /// The page's offset in the file, if its end is one too.
    pub(super) fn offset(&self, page: PageId) -> Option<u64> {
        let offset = page.checked_mul(self.page_bytes)?;
        // File offsets are signed.
        let end = offset.checked_add(self.page_bytes)?;
        i64::try_from(end).is_ok().then_some(offset)
    }

    /// Bytes of the file's first `end` that are in the page's place, absent or not.
    fn slot_bytes(&self, page: PageId, end: u64) -> Option<u64> {
        let offset = self.offset(page)?;
        (offset < end).then(|| (end - offset).min(self.page_bytes))
    }

    /// Whether a page of `len` bytes can be written without changing the file's length.
    fn holds(&self, page: PageId, len: usize) -> bool {
        self.slot_bytes(page, self.end.load(Ordering::Acquire)) == Some(len as u64)
    }

    /// Makes room for a page of `len` bytes, at most a page's, at `offset`. `truncate` cuts the file where the last page becomes
    /// shorter.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] where the page would be short and not the last, or follow a short one; what `truncate` says.
    pub(super) fn prepare(
        &self,
        page: PageId,
        offset: u64,
        len: usize,
        truncate: impl FnOnce(u64) -> io::Result<()>,
    ) -> io::Result<Change> {
        let new_end = offset + len as u64;
        if self.holds(page, len) {
            return Ok(Change::InPlace);
        }
        let mut absent = self.absent.write();
        let end = self.end.load(Ordering::Relaxed);
        let change = self.change(page, offset, len, end)?;
        match change {
            Change::InPlace => return Ok(change),
            Change::Shorter => truncate(new_end)?,
            Change::Longer { .. } => {}
            Change::Appended { .. } => {
                absent.insert(end.div_ceil(self.page_bytes)..page + 1);
                self.any_absent.store(true, Ordering::Release);
            }
        }
        self.end.store(new_end, Ordering::Release);
        Ok(change)
    }

    /// Whether [`Extent::prepare`] would make room now.
    ///
    /// # Errors
    /// As [`Extent::prepare`], which changes nothing then.
    pub(super) fn check(&self, page: PageId, offset: u64, len: usize) -> io::Result<()> {
        let end = self.end.load(Ordering::Acquire);
        self.change(page, offset, len, end).map(|_| ())
    }

    /// What writing a page of `len` bytes at `offset` changes of a file's length that is `end`.
    fn change(&self, page: PageId, offset: u64, len: usize, end: u64) -> io::Result<Change> {
        let new_end = offset + len as u64;
        let pages = end.div_ceil(self.page_bytes);
        if page < pages {
            return match self.slot_bytes(page, end) {
                Some(there) if there == len as u64 => Ok(Change::InPlace),
                _ if page + 1 < pages => Err(invalid(format!(
                    "{len} bytes; only the last page, {}, may be shorter than {}",
                    pages - 1,
                    self.page_bytes
                ))),
                _ if new_end < end => Ok(Change::Shorter),
                _ => Ok(Change::Longer { old_end: end, new_end }),
            };
        }
        // Absent or not: an absent page's place is short only while it is being written.
        let tail = end % self.page_bytes;
        if tail != 0 {
            return Err(invalid(format!(
                "page {}, now the last, has {tail} of {} bytes: it has to be whole before another follows it",
                pages - 1,
                self.page_bytes
            )));
        }
        Ok(Change::Appended { new_end })
    }

    /// The page is there now.
    pub(super) fn written(&self, page: PageId) {
        if self.any_absent.load(Ordering::Acquire) && self.absent.read().contains(&page) {
            let mut absent = self.absent.write();
            absent.remove(page..page + 1);
            self.any_absent.store(!absent.is_empty(), Ordering::Release);
        }
    }

    /// A write failed that [`Extent::prepare`] had prepared: the last page is as long as it was, if it still is the last.
    ///
    /// A page that was to be appended stays absent, in the length too: pages after it may be there by now.
    pub(super) fn failed(&self, change: Change, truncate: impl FnOnce(u64) -> io::Result<()>) {
        let _absent = self.absent.write();
        let end = self.end.load(Ordering::Relaxed);
        match change {
            Change::Longer { old_end, new_end } if end == new_end => {
                // Where this fails the file has a few bytes more than the store says.
                let _ = truncate(old_end);
                self.end.store(old_end, Ordering::Release);
            }
            Change::Appended { new_end } if end == new_end => self.end_with_whole_place(end),
            _ => {}
        }
    }

    /// The page is no more. It is one that was there.
    pub(super) fn removed(&self, page: PageId) {
        let mut absent = self.absent.write();
        absent.insert(page..page + 1);
        self.any_absent.store(true, Ordering::Release);
        let end = self.end.load(Ordering::Relaxed);
        if page + 1 == end.div_ceil(self.page_bytes) {
            self.end_with_whole_place(end);
        }
    }

    /// Gives the last page, which is absent, a whole page's place, so that others may follow.
    fn end_with_whole_place(&self, end: u64) {
        self.end.store(end.next_multiple_of(self.page_bytes), Ordering::Release);
    }
}

fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::{Change, Extent};

    fn prepare(extent: &Extent, page: u64, len: usize) -> Result<Change, io::ErrorKind> {
        let offset = extent.offset(page).ok_or(io::ErrorKind::FileTooLarge)?;
        extent.prepare(page, offset, len, |_| Ok(())).map_err(|e| e.kind())
    }

    #[test]
    fn the_last_page_may_be_short() {
        let extent = Extent::new(512, 1300);
        assert_eq!(extent.len(), 3);
        assert_eq!(extent.page_bytes(1), Some(512));
        assert_eq!(extent.page_bytes(2), Some(276));
        assert_eq!(extent.page_bytes(3), None);
        assert_eq!(prepare(&extent, 2, 276), Ok(Change::InPlace));
        assert_eq!(prepare(&extent, 1, 276), Err(io::ErrorKind::InvalidInput));
        assert_eq!(prepare(&extent, 3, 512), Err(io::ErrorKind::InvalidInput));
        assert_eq!(prepare(&extent, 2, 100), Ok(Change::Shorter));
        assert_eq!(extent.page_bytes(2), Some(100));
        let longer = prepare(&extent, 2, 512).unwrap();
        assert_eq!(
            longer,
            Change::Longer {
                old_end: 1124,
                new_end: 1536
            }
        );
        extent.failed(longer, |_| Ok(()));
        assert_eq!(extent.page_bytes(2), Some(100));
        prepare(&extent, 2, 512).unwrap();
        assert_eq!(prepare(&extent, 3, 512), Ok(Change::Appended { new_end: 2048 }));
    }

    #[test]
    fn pages_skipped_over_are_absent_until_written() {
        let extent = Extent::new(512, 512);
        assert_eq!(prepare(&extent, 3, 512), Ok(Change::Appended { new_end: 2048 }));
        assert_eq!(extent.len(), 4);
        assert_eq!(extent.page_bytes(3), None);
        extent.written(3);
        assert_eq!(extent.page_bytes(3), Some(512));
        assert_eq!(extent.page_bytes(1), None);
        assert_eq!(prepare(&extent, 1, 512), Ok(Change::InPlace));
        extent.written(1);
        assert_eq!(extent.page_bytes(1), Some(512));
        assert_eq!(extent.page_bytes(2), None);
    }

    #[test]
    fn a_removed_short_page_lets_others_follow() {
        let extent = Extent::new(512, 700);
        extent.removed(1);
        assert_eq!(extent.page_bytes(1), None);
        assert_eq!(prepare(&extent, 2, 512), Ok(Change::Appended { new_end: 1536 }));
        extent.written(2);
        assert_eq!(prepare(&extent, 1, 512), Ok(Change::InPlace));
    }

    #[test]
    fn nothing_follows_a_short_page_that_is_being_written() {
        let extent = Extent::new(512, 512);
        let appended = prepare(&extent, 1, 100).unwrap();
        assert_eq!(prepare(&extent, 2, 512), Err(io::ErrorKind::InvalidInput));
        extent.failed(appended, |_| Ok(()));
        assert_eq!((extent.len(), extent.page_bytes(1)), (2, None));
        // Nor one that is written again after it was removed.
        assert_eq!(prepare(&extent, 1, 100), Ok(Change::Shorter));
        assert_eq!(prepare(&extent, 2, 512), Err(io::ErrorKind::InvalidInput));
        extent.written(1);
        extent.removed(1);
        assert_eq!(prepare(&extent, 1, 100), Ok(Change::Shorter));
        assert_eq!(prepare(&extent, 2, 512), Err(io::ErrorKind::InvalidInput));
    }

    #[test]
    fn numbers_that_no_file_reaches_have_no_offset() {
        let extent = Extent::new(4096, 0);
        assert_eq!(extent.offset(u64::MAX), None);
        assert_eq!(extent.offset(1 << 52), None);
        assert_eq!(extent.page_bytes(u64::MAX), None);
        // A gap of any length is one range.
        assert_eq!(
            prepare(&extent, 1 << 50, 4096),
            Ok(Change::Appended {
                new_end: (1 << 62) + 4096
            })
        );
        assert_eq!(extent.page_bytes(1 << 49), None);
    }
}
