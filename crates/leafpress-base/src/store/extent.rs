//! The length of a file of pages, and its absent pages.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::PageId;
use crate::sync::plain::RwLock;

/// The length of a file divided into pages, of which only the last may be short, and its absent pages: removed ones,
/// and those skipped when a page was written beyond the end.
pub(super) struct Extent {
    page_bytes: u64,
    /// End of the last page. Changed under the lock of `absent`.
    end: AtomicU64,
    /// Whether `absent` is not empty; changed under its lock.
    any_absent: AtomicBool,
    absent: RwLock<PageRanges>,
}

/// Effect of a write on the file's length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// No change.
    InPlace,
    /// The last page becomes shorter.
    Shorter,
    /// The last page becomes longer.
    Longer { old_end: u64, new_end: u64 },
    /// A page comes after the last, absent until [`Extent::written`].
    Appended { new_end: u64 },
}

impl Extent {
    /// Creates the extent of a file of `end` bytes. `page_bytes` is not 0.
    pub(super) fn new(page_bytes: usize, end: u64) -> Self {
        Self {
            page_bytes: page_bytes as u64,
            end: AtomicU64::new(end),
            any_absent: AtomicBool::new(false),
            absent: RwLock::new(PageRanges::default()),
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.end.load(Ordering::Acquire).div_ceil(self.page_bytes)
    }

    /// Returns a page's length, `None` where there is no such page.
    pub(super) fn page_bytes(&self, page: PageId) -> Option<usize> {
        let there = self.slot_bytes(page, self.end.load(Ordering::Acquire))?;
        // The flag is set before the end moves past an absent page, so that a reader that sees the new end sees the
        // flag too.
        if self.any_absent.load(Ordering::Acquire) && self.absent.read().contains(page) {
            return None;
        }
        Some(there as usize)
    }

    /// Returns the page's offset in the file, if offset and end are representable.
    pub(super) fn offset(&self, page: PageId) -> Option<u64> {
        let offset = page.checked_mul(self.page_bytes)?;
        // File offsets are signed.
        let end = offset.checked_add(self.page_bytes)?;
        i64::try_from(end).is_ok().then_some(offset)
    }

    /// Returns how many of the file's first `end` bytes lie in the page's slot, absent or not.
    fn slot_bytes(&self, page: PageId, end: u64) -> Option<u64> {
        let offset = self.offset(page)?;
        (offset < end).then(|| (end - offset).min(self.page_bytes))
    }

    /// Returns whether a page of `len` bytes can be written without changing the file's length.
    fn holds(&self, page: PageId, len: usize) -> bool {
        self.slot_bytes(page, self.end.load(Ordering::Acquire)) == Some(len as u64)
    }

    /// Makes room for a page of `len` bytes, at most a page's, at `offset`. `truncate` shortens the file where the last
    /// page becomes shorter.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] where the page would be short and not the last, or follow a short one; errors of
    /// `truncate`.
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

    /// Checks whether [`Extent::prepare`] would succeed now, without changing anything.
    ///
    /// # Errors
    /// As [`Extent::prepare`].
    pub(super) fn check(&self, page: PageId, offset: u64, len: usize) -> io::Result<()> {
        let end = self.end.load(Ordering::Acquire);
        self.change(page, offset, len, end).map(|_| ())
    }

    /// Determines the effect of writing a page of `len` bytes at `offset` on a file of length `end`.
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
        // Whether the page is absent or not: an absent page's slot is short only while it is being written.
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

    /// Records that the page was written.
    pub(super) fn written(&self, page: PageId) {
        if self.any_absent.load(Ordering::Acquire) && self.absent.read().contains(page) {
            let mut absent = self.absent.write();
            absent.remove(page);
            self.any_absent.store(!absent.is_empty(), Ordering::Release);
        }
    }

    /// Records that a write prepared by [`Extent::prepare`] failed: the last page gets its old length back, if it still
    /// is the last.
    ///
    /// A page that was to be appended stays absent, and the length keeps including it: pages after it may exist by now.
    pub(super) fn failed(&self, change: Change, truncate: impl FnOnce(u64) -> io::Result<()>) {
        let _absent = self.absent.write();
        let end = self.end.load(Ordering::Relaxed);
        match change {
            Change::Longer { old_end, new_end } if end == new_end => {
                // If this fails, the file is a few bytes longer than the store reports.
                let _ = truncate(old_end);
                self.end.store(old_end, Ordering::Release);
            }
            Change::Appended { new_end } if end == new_end => self.end_with_whole_place(end),
            _ => {}
        }
    }

    /// Records that an existing page was removed.
    pub(super) fn removed(&self, page: PageId) {
        let mut absent = self.absent.write();
        if !absent.contains(page) {
            absent.insert(page..page + 1);
        }
        self.any_absent.store(true, Ordering::Release);
        let end = self.end.load(Ordering::Relaxed);
        if page + 1 == end.div_ceil(self.page_bytes) {
            self.end_with_whole_place(end);
        }
    }

    /// Extends the slot of the last page, which is absent, to a whole page, so that others may follow.
    fn end_with_whole_place(&self, end: u64) {
        self.end.store(end.next_multiple_of(self.page_bytes), Ordering::Release);
    }
}

/// Pages in disjoint ranges that do not touch: the first page of each, and the page after its last.
#[derive(Debug, Default)]
struct PageRanges(BTreeMap<PageId, PageId>);

impl PageRanges {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn contains(&self, page: PageId) -> bool {
        let before = self.0.range(..=page).next_back();
        before.is_some_and(|(_, &end)| page < end)
    }

    /// Inserts pages none of which is in a range.
    fn insert(&mut self, pages: Range<PageId>) {
        let before = self.0.range(..pages.start).next_back();
        let start = before.filter(|&(_, &end)| end == pages.start).map(|(&start, _)| start);
        let end = self.0.remove(&pages.end).unwrap_or(pages.end);
        self.0.insert(start.unwrap_or(pages.start), end);
    }

    /// Removes a page, if it is in a range.
    fn remove(&mut self, page: PageId) {
        let before = self.0.range(..=page).next_back();
        let Some((start, end)) = before.map(|(&start, &end)| (start, end)).filter(|&(_, end)| page < end) else {
            return;
        };
        if start < page {
            self.0.insert(start, page);
        } else {
            self.0.remove(&start);
        }
        if page + 1 < end {
            self.0.insert(page + 1, end);
        }
    }
}

fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io;

    use super::{Change, Extent, PageRanges};

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
        // A page that is written again after it was removed may not be short either.
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
        // A gap of any length is stored as one range.
        assert_eq!(
            prepare(&extent, 1 << 50, 4096),
            Ok(Change::Appended {
                new_end: (1 << 62) + 4096
            })
        );
        assert_eq!(extent.page_bytes(1 << 49), None);
    }

    #[test]
    fn ranges_hold_the_pages_of_a_set_and_do_not_touch() {
        let mut random = fastrand::Rng::with_seed(1);
        let (mut ranges, mut pages) = (PageRanges::default(), BTreeSet::new());
        for _ in 0..2000 {
            let page = random.u64(0..40);
            if pages.remove(&page) || random.bool() {
                ranges.remove(page);
            } else {
                let end = pages
                    .range(page..)
                    .next()
                    .map_or(page + 3, |&next: &u64| next.min(page + 3));
                ranges.insert(page..end);
                pages.extend(page..end);
            }
            assert!((0..50).all(|page| ranges.contains(page) == pages.contains(&page)));
            assert_eq!(ranges.is_empty(), pages.is_empty());
            let ends = ranges.0.values().zip(ranges.0.keys().skip(1));
            assert!(ends.clone().all(|(end, next)| end < next), "{ranges:?}");
        }
    }
}
