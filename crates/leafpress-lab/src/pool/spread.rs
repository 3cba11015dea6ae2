//! A part of a store's pages, spread over all of them: the head of a file need not be like the rest of it.

use std::io;
use std::sync::Arc;

use leafpress::store::{PageId, PageRead, PageStore};

use crate::core::corpus::{Assignment, Pairing};

/// This many pages of a store, in runs of neighbours evenly spread over it. Read-only.
pub(super) struct Spread {
    base: Arc<dyn PageStore>,
    pages: u64,
    assignment: Assignment,
}

impl Spread {
    /// `pages` of the first `all` pages of `base`.
    pub(super) fn new(base: Arc<dyn PageStore>, all: u64, pages: u64) -> Self {
        let assignment = Assignment::new(all, base.max_page_bytes() as f64, pages, Pairing::InOrder);
        Self {
            base,
            pages,
            assignment,
        }
    }

    fn place(&self, page: PageId) -> io::Result<PageId> {
        if page < self.pages {
            Ok(self.assignment.value(page, 0))
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }
}

impl PageStore for Spread {
    fn len(&self) -> u64 {
        self.pages
    }

    fn max_page_bytes(&self) -> usize {
        self.base.max_page_bytes()
    }

    fn page_bytes(&self, page: PageId) -> io::Result<usize> {
        self.base.page_bytes(self.place(page)?)
    }

    fn has_one_length(&self) -> bool {
        self.base.has_one_length()
    }

    fn alignment(&self) -> usize {
        self.base.alignment()
    }

    fn describe(&self) -> String {
        format!("{}; {} pages, spread over all of it", self.base.describe(), self.pages)
    }

    fn read(&self, page: PageId, into: &mut [u8]) -> io::Result<()> {
        self.base.read(self.place(page)?, into)
    }

    fn read_batch(&self, reads: &mut [PageRead<'_>]) {
        let (mut batch, mut places) = (Vec::with_capacity(reads.len()), Vec::with_capacity(reads.len()));
        for (at, read) in reads.iter_mut().enumerate() {
            match self.place(read.page) {
                Ok(page) => {
                    places.push(at);
                    batch.push(PageRead {
                        page,
                        into: &mut *read.into,
                        result: Ok(()),
                    });
                }
                Err(e) => read.result = Err(e),
            }
        }
        self.base.read_batch(&mut batch);
        let results: Vec<_> = batch.into_iter().map(|read| read.result).collect();
        for (at, result) in places.into_iter().zip(results) {
            reads[at].result = result;
        }
    }

    fn write(&self, _: PageId, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn remove(&self, _: PageId) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use leafpress::store::MemoryStore;

    use super::*;

    #[test]
    fn pages_are_of_the_whole_store() {
        let all = (0..1000_u16).map(|page| page.to_le_bytes().repeat(300));
        let base: Arc<dyn PageStore> = Arc::new(MemoryStore::from_pages(all).unwrap());
        let spread = Spread::new(base, 1000, 100);
        let mut buffers = vec![[0_u8; 600]; 101];
        let mut reads: Vec<_> = (0..101)
            .zip(&mut buffers)
            .map(|(page, into)| PageRead {
                page,
                into,
                result: Ok(()),
            })
            .collect();
        spread.read_batch(&mut reads);
        assert!(reads[..100].iter().all(|read| read.result.is_ok()) && reads[100].result.is_err());
        let found: Vec<u16> = buffers[..100]
            .iter()
            .map(|page| u16::from_le_bytes([page[0], page[1]]))
            .collect();
        assert!(found.windows(2).all(|pair| pair[0] < pair[1]), "{found:?}");
        assert!(
            found[0] == 0 && found[99] > 950 && found[50] > 400 && found[50] < 600,
            "{found:?}"
        );
        let mut page = [0; 600];
        spread.read(50, &mut page).unwrap();
        assert_eq!(page, buffers[50]);
        assert!(spread.write(0, &page).is_err());
    }
}
