//! Page stores, which hold the page pool's pages and the cache's disk tier.

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
pub use file_options::{AutoOnOff, FileOptions};
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
    /// The buffer, as long as the page.
    pub into: &'a mut [u8],
    /// The outcome, set by the store.
    pub result: io::Result<()>,
}

/// One write of a batch: see [`PageStore::write_batch`].
#[derive(Debug)]
pub struct PageWrite<'a> {
    /// The page to write, in no other write of the batch.
    pub page: PageId,
    /// The new contents.
    pub bytes: &'a [u8],
    /// The outcome, set by the store.
    pub result: io::Result<()>,
}

/// A store of pages, numbered from 0.
///
/// The pool calls a store from many threads, never concurrently for the same page. A page that does not exist is
/// [`io::ErrorKind::NotFound`]; the pool passes any other error to its caller.
///
/// All methods take a shared reference, so an [`Arc`] of a store is a store too: the caller can keep a clone of the one
/// given to a pool.
pub trait PageStore: Send + Sync {
    /// Returns an upper bound of the page numbers, exclusive. Not every number below it need be a page (some may have
    /// been removed).
    fn len(&self) -> u64;

    /// Returns whether there is no page.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the maximum length of a page in bytes, from [`MIN_PAGE_BYTES`] to [`MAX_PAGE_BYTES`].
    fn max_page_bytes(&self) -> usize;

    /// Returns the minimum length in bytes of a page to write, where not all pages have the same length
    /// ([`PageStore::has_one_length`]). Default: 1.
    fn min_page_bytes(&self) -> usize {
        1
    }

    /// Returns a page's length in bytes.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] where there is no such page.
    fn page_bytes(&self, page: PageId) -> io::Result<usize>;

    /// Returns whether all pages have the length [`PageStore::max_page_bytes`], except possibly a shorter last one, and
    /// no others can be written.
    fn has_one_length(&self) -> bool {
        false
    }

    /// Returns the preferred alignment of the address and length of buffers, a power of two up to 4096: direct I/O
    /// reads into such a buffer without a copy.
    fn alignment(&self) -> usize {
        1
    }

    /// Returns a one-line description of the store and its I/O method, for display.
    fn describe(&self) -> String {
        String::from("a page store")
    }

    /// Reads a page into `into`, which is as long as the page.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] for a page that is shorter, [`io::ErrorKind::InvalidInput`] for one that is
    /// longer. After any error the contents of `into` are unspecified.
    fn read(&self, page: PageId, into: &mut [u8]) -> io::Result<()>;

    /// Reads many pages, concurrently where the store can.
    fn read_batch(&self, reads: &mut [PageRead<'_>]) {
        for read in reads {
            read.result = self.read(read.page, read.into);
        }
    }

    /// Checks whether a page of `len` bytes could be written, as far as that is known without writing it. The pool
    /// rejects an update that this refuses, and assumes that the write of any other will succeed eventually.
    ///
    /// # Errors
    /// The reason why the page cannot be written.
    fn check_write(&self, page: PageId, len: usize) -> io::Result<()> {
        let _ = (page, len);
        Ok(())
    }

    /// Writes a page, which may be new, or of another length where the store has pages of several lengths.
    ///
    /// # Errors
    /// The page is then unchanged or partly overwritten with `bytes`; the pool keeps what it could not write.
    fn write(&self, page: PageId, bytes: &[u8]) -> io::Result<()>;

    /// Writes many pages, concurrently where the store can.
    fn write_batch(&self, writes: &mut [PageWrite<'_>]) {
        for write in writes {
            write.result = self.write(write.page, write.bytes);
        }
    }

    /// Removes a page; removing an absent page is not an error.
    ///
    /// # Errors
    /// The page may still exist.
    fn remove(&self, page: PageId) -> io::Result<()>;

    /// Makes earlier writes and removals durable, so that they survive a crash of the machine.
    ///
    /// # Errors
    /// Everything written and removed since the last successful sync may be lost, and no later sync restores it: it has
    /// to be written again. The pool does that for pages that it still has.
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

/// Returns the error for a page that does not exist.
#[doc(hidden)]
pub fn no_such_page(page: PageId) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("there is no page {page}"))
}

/// Checks that `into` is as long as a page of `page_bytes`.
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
