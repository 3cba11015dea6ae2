//! A view of a user's pages that a run may write to: changes go elsewhere, and the user's own are not modified.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use leafpress::store::{PageId, PageRead, PageStore};

/// The first pages of a store, with changes kept in another.
pub(super) struct View {
    base: Arc<dyn PageStore>,
    pages: u64,
    /// `None` refuses writes.
    changes: Option<Changes>,
}

struct Changes {
    store: Box<dyn PageStore>,
    /// The state of each page.
    state: Vec<AtomicU8>,
}

/// Unchanged from the base.
const UNCHANGED: u8 = 0;
/// In the store of changes.
const CHANGED: u8 = 1;
/// Removed.
const REMOVED: u8 = 2;

impl View {
    /// A view of the first `pages` pages of `base`, which refuses writes.
    pub(super) fn read_only(base: Arc<dyn PageStore>, pages: u64) -> Self {
        Self {
            base,
            pages,
            changes: None,
        }
    }

    /// A view of the first `pages` pages of `base` whose changes go to `changes`, an empty store that takes pages of
    /// the same lengths under the same numbers.
    pub(super) fn copy_on_write(base: Arc<dyn PageStore>, pages: u64, changes: Box<dyn PageStore>) -> Self {
        let state = (0..pages).map(|_| AtomicU8::new(UNCHANGED)).collect();
        Self {
            base,
            pages,
            changes: Some(Changes { store: changes, state }),
        }
    }

    /// The store that has the page now.
    fn holder(&self, page: PageId) -> io::Result<&dyn PageStore> {
        if page >= self.pages {
            return Err(io::ErrorKind::NotFound.into());
        }
        match &self.changes {
            None => Ok(self.base.as_ref()),
            Some(changes) => match changes.state[page as usize].load(Ordering::Acquire) {
                UNCHANGED => Ok(self.base.as_ref()),
                CHANGED => Ok(changes.store.as_ref()),
                _ => Err(io::ErrorKind::NotFound.into()),
            },
        }
    }

    fn changes(&self, page: PageId) -> io::Result<(&Changes, &AtomicU8)> {
        let changes = self.changes.as_ref().ok_or(io::ErrorKind::PermissionDenied)?;
        let state = changes.state.get(page as usize).ok_or(io::ErrorKind::NotFound)?;
        Ok((changes, state))
    }
}

impl PageStore for View {
    fn len(&self) -> u64 {
        self.pages
    }

    fn max_page_bytes(&self) -> usize {
        self.base.max_page_bytes()
    }

    fn page_bytes(&self, page: PageId) -> io::Result<usize> {
        self.holder(page)?.page_bytes(page)
    }

    fn alignment(&self) -> usize {
        let changes = self.changes.as_ref().map_or(1, |changes| changes.store.alignment());
        self.base.alignment().max(changes)
    }

    fn read(&self, page: PageId, into: &mut [u8]) -> io::Result<()> {
        self.holder(page)?.read(page, into)
    }

    fn read_batch(&self, reads: &mut [PageRead<'_>]) {
        let Some(changes) = &self.changes else {
            let (inside, outside): (Vec<_>, Vec<_>) = reads.iter_mut().partition(|read| read.page < self.pages);
            for read in outside {
                read.result = Err(io::ErrorKind::NotFound.into());
            }
            return forward(self.base.as_ref(), inside);
        };
        let (mut base, mut changed) = (Vec::new(), Vec::new());
        for read in reads {
            match changes
                .state
                .get(read.page as usize)
                .map(|state| state.load(Ordering::Acquire))
            {
                Some(UNCHANGED) => base.push(read),
                Some(CHANGED) => changed.push(read),
                _ => read.result = Err(io::ErrorKind::NotFound.into()),
            }
        }
        forward(self.base.as_ref(), base);
        forward(changes.store.as_ref(), changed);
    }

    fn describe(&self) -> String {
        match &self.changes {
            None => self.base.describe(),
            Some(changes) => format!("{}; changes in {}", self.base.describe(), changes.store.describe()),
        }
    }

    fn check_write(&self, page: PageId, len: usize) -> io::Result<()> {
        let (changes, _) = self.changes(page)?;
        changes.store.check_write(page, len)
    }

    fn write(&self, page: PageId, bytes: &[u8]) -> io::Result<()> {
        let (changes, state) = self.changes(page)?;
        changes.store.write(page, bytes)?;
        state.store(CHANGED, Ordering::Release);
        Ok(())
    }

    fn remove(&self, page: PageId) -> io::Result<()> {
        let (changes, state) = self.changes(page)?;
        if state.swap(REMOVED, Ordering::AcqRel) == CHANGED {
            changes.store.remove(page)?;
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.changes.as_ref().map_or(Ok(()), |changes| changes.store.sync())
    }
}

/// Hands reads that are apart from each other to a store as one batch.
fn forward(store: &dyn PageStore, mut reads: Vec<&mut PageRead<'_>>) {
    if reads.is_empty() {
        return;
    }
    let mut batch: Vec<PageRead<'_>> = reads
        .iter_mut()
        .map(|read| PageRead {
            page: read.page,
            into: &mut *read.into,
            result: Ok(()),
        })
        .collect();
    store.read_batch(&mut batch);
    let results: Vec<_> = batch.into_iter().map(|read| read.result).collect();
    for (read, result) in reads.into_iter().zip(results) {
        read.result = result;
    }
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
