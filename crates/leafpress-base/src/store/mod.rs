//! Page stores: where the page pool's pages and the cache's disk tier live.

mod extent;
#[cfg(feature = "testing")]
mod faulty;
mod file;
mod file_batch;
mod file_options;
mod memory;

use std::io;
use std::sync::Arc;

#[cfg(feature = "testing")]
pub use faulty::{FaultyStore, Operation, StoreCounters};
pub use file::FileStore;
pub use file_options::{FileOptions, Switch};
pub use memory::MemoryStore;

/// A page's number.
pub type PageId = u64;

/// Smallest page, in bytes.
pub const MIN_PAGE_BYTES: usize = 512;
/// Largest page, in bytes.
pub const MAX_PAGE_BYTES: usize = 1 << 20;

/// One read of a batch: see [`PageStore::read_batch`].
#[derive(Debug)]
pub struct PageRead<'a> {
    /// The page to read.
    pub page: PageId,
    /// Where to: as long as the page is.
    pub into: &'a mut [u8],
    /// How it went; the store sets it.
    pub result: io::Result<()>,
}

/// One write of a batch: see [`PageStore::write_batch`].
#[derive(Debug)]
pub struct PageWrite<'a> {
    /// The page to write, in no other write of the batch.
    pub page: PageId,
    /// What it is to hold.
    pub bytes: &'a [u8],
    /// How it went; the store sets it.
    pub result: io::Result<()>,
}

/// A place that keeps pages, numbered from 0.
///
/// The pool calls a store from many threads, never twice at once for the same page. A page that does not exist is
/// [`io::ErrorKind::NotFound`]; any other error passes through the pool to its caller.
///
/// A shared reference is all that a store needs, so that an [`Arc`] of a store is a store too: who gives a pool one can keep another.
pub trait PageStore: Send + Sync {
    /// Pages there are: every page's number is below it, and not every number below it need be a page (some were removed).
    fn len(&self) -> u64;

    /// Whether there is no page.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Length in bytes of the longest page there may be, from [`MIN_PAGE_BYTES`] to [`MAX_PAGE_BYTES`].
    fn max_page_bytes(&self) -> usize;

    /// Length in bytes of the shortest page that can be written, if not by [`PageStore::has_one_length`]. 1.
    fn min_page_bytes(&self) -> usize {
        1
    }

    /// A page's length in bytes.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] where there is no such page.
    fn page_bytes(&self, page: PageId) -> io::Result<usize>;

    /// Whether all pages have [`PageStore::max_page_bytes`], a shorter last one perhaps aside, and no others can be written.
    fn has_one_length(&self) -> bool {
        false
    }

    /// What the address and the length of buffers are best multiples of, a power of two up to 4096: direct I/O reads into such a
    /// buffer without a copy.
    fn alignment(&self) -> usize {
        1
    }

    /// What it is and how it works, in a line for people.
    fn describe(&self) -> String {
        String::from("a page store")
    }

    /// Reads a page into `into`, which is as long as the page.
    ///
    /// # Errors
    /// A page that is shorter is [`io::ErrorKind::UnexpectedEof`], one that is longer [`io::ErrorKind::InvalidInput`]. After any error
    /// `into` holds anything.
    fn read(&self, page: PageId, into: &mut [u8]) -> io::Result<()>;

    /// Reads many pages, all at once where the store can.
    fn read_batch(&self, reads: &mut [PageRead<'_>]) {
        for read in reads {
            read.result = self.read(read.page, read.into);
        }
    }

    /// Whether a page of `len` bytes could be written, as far as that can be told without writing it. The pool takes no update that is
    /// refused here, and takes one that is not for what a write will take in time.
    ///
    /// # Errors
    /// Why the page cannot be written.
    fn check_write(&self, page: PageId, len: usize) -> io::Result<()> {
        let _ = (page, len);
        Ok(())
    }

    /// Writes a page, which may be new, or of another length where the store has pages of several lengths.
    ///
    /// # Errors
    /// The page is then as it was before, or holds a part of `bytes`; the pool keeps what it could not write.
    fn write(&self, page: PageId, bytes: &[u8]) -> io::Result<()>;

    /// Writes many pages, all at once where the store can.
    fn write_batch(&self, writes: &mut [PageWrite<'_>]) {
        for write in writes {
            write.result = self.write(write.page, write.bytes);
        }
    }

    /// Removes a page; removing one that is not there is no error.
    ///
    /// # Errors
    /// The page may still be there.
    fn remove(&self, page: PageId) -> io::Result<()>;

    /// Makes what was written and removed last through a crash of the machine.
    ///
    /// # Errors
    /// What was written and removed since the last sync that worked may be lost, and no later sync brings it back: it has to be written
    /// again. The pool does that for pages that it still has.
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

macro_rules! store_behind_a_pointer {
    ($($pointer:ident),*) => { $(
        impl<S: PageStore + ?Sized> PageStore for $pointer<S> {
            fn len(&self) -> u64 {
                (**self).len()
            }
            fn is_empty(&self) -> bool {
                (**self).is_empty()
            }
            fn max_page_bytes(&self) -> usize {
                (**self).max_page_bytes()
            }
            fn min_page_bytes(&self) -> usize {
                (**self).min_page_bytes()
            }
            fn page_bytes(&self, page: PageId) -> io::Result<usize> {
                (**self).page_bytes(page)
            }
            fn has_one_length(&self) -> bool {
                (**self).has_one_length()
            }
            fn alignment(&self) -> usize {
                (**self).alignment()
            }
            fn describe(&self) -> String {
                (**self).describe()
            }
            fn read(&self, page: PageId, into: &mut [u8]) -> io::Result<()> {
                (**self).read(page, into)
            }
            fn read_batch(&self, reads: &mut [PageRead<'_>]) {
                (**self).read_batch(reads)
            }
            fn check_write(&self, page: PageId, len: usize) -> io::Result<()> {
                (**self).check_write(page, len)
            }
            fn write(&self, page: PageId, bytes: &[u8]) -> io::Result<()> {
                (**self).write(page, bytes)
            }
            fn write_batch(&self, writes: &mut [PageWrite<'_>]) {
                (**self).write_batch(writes)
            }
            fn remove(&self, page: PageId) -> io::Result<()> {
                (**self).remove(page)
            }
            fn sync(&self) -> io::Result<()> {
                (**self).sync()
            }
        }
    )* };
}

store_behind_a_pointer!(Arc, Box);

/// The error for a page that does not exist.
#[doc(hidden)]
pub fn no_such_page(page: PageId) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("there is no page {page}"))
}

/// Whether `into` is as long as a page of `page_bytes`.
#[doc(hidden)]
pub fn check_read_length(page_bytes: usize, into: &[u8]) -> io::Result<()> {
    let kind = match into.len().cmp(&page_bytes) {
        std::cmp::Ordering::Equal => return Ok(()),
        std::cmp::Ordering::Greater => io::ErrorKind::UnexpectedEof,
        std::cmp::Ordering::Less => io::ErrorKind::InvalidInput,
    };
    let reason = format!("the page has {page_bytes} bytes, the buffer {}", into.len());
    Err(io::Error::new(kind, reason))
}
