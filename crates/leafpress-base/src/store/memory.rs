//! A page store in memory.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sync::plain::RwLock;

use super::{MAX_PAGE_BYTES, PageId, PageStore, check_read_length, no_such_page};

const SHARDS: usize = 64;

type Shard = RwLock<HashMap<PageId, Box<[u8]>>>;

/// A page store in memory, with pages of any lengths, for tests and for measuring a pool without a device.
pub struct MemoryStore {
    shards: Box<[Shard]>,
    /// One more than the highest page number ever used.
    len: AtomicU64,
    max_page_bytes: usize,
}

impl MemoryStore {
    /// Creates an empty store; pages may have 1 to `max_page_bytes` bytes.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] where `max_page_bytes` is not 1 to [`MAX_PAGE_BYTES`].
    pub fn new(max_page_bytes: usize) -> io::Result<Self> {
        if !(1..=MAX_PAGE_BYTES).contains(&max_page_bytes) {
            return Err(invalid(format!(
                "pages of up to {max_page_bytes} bytes: 1 to {MAX_PAGE_BYTES} can be"
            )));
        }
        Ok(Self {
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            len: AtomicU64::new(0),
            max_page_bytes,
        })
    }

    /// Creates a store of these pages, numbered from 0 in order; pages may have at most the bytes of the longest one.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] where there are none, or one does not have 1 to [`MAX_PAGE_BYTES`] bytes.
    pub fn from_pages<P: Into<Box<[u8]>>>(pages: impl IntoIterator<Item = P>) -> io::Result<Self> {
        let mut store = Self::new(MAX_PAGE_BYTES)?;
        let mut longest = 0;
        for (page, bytes) in (0..).zip(pages) {
            let bytes = bytes.into();
            longest = longest.max(bytes.len());
            store.put(page, bytes)?;
        }
        if longest == 0 {
            return Err(invalid(String::from("there are no pages")));
        }
        store.max_page_bytes = longest;
        Ok(store)
    }

    /// Returns the bytes of all pages.
    pub fn bytes(&self) -> u64 {
        let of = |shard: &Shard| shard.read().values().map(|page| page.len() as u64).sum::<u64>();
        self.shards.iter().map(of).sum()
    }

    fn shard(&self, page: PageId) -> &Shard {
        &self.shards[(page % SHARDS as u64) as usize]
    }

    /// Checks a write; returns the page's number plus one.
    fn check(&self, page: PageId, len: usize) -> io::Result<u64> {
        if !(1..=self.max_page_bytes).contains(&len) {
            let reason = format!("cannot write page {page}: {len} bytes of 1 to {}", self.max_page_bytes);
            return Err(invalid(reason));
        }
        page.checked_add(1)
            .ok_or_else(|| invalid(format!("cannot write page {page}: no number is above it")))
    }

    fn put(&self, page: PageId, bytes: Box<[u8]>) -> io::Result<()> {
        let len = self.check(page, bytes.len())?;
        let mut shard = self.shard(page).write();
        shard.try_reserve(1).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let _old = shard.insert(page, bytes);
        self.len.fetch_max(len, Ordering::AcqRel);
        Ok(())
    }
}

impl PageStore for MemoryStore {
    fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    fn max_page_bytes(&self) -> usize {
        self.max_page_bytes
    }

    fn page_bytes(&self, page: PageId) -> io::Result<usize> {
        let shard = self.shard(page).read();
        shard
            .get(&page)
            .map(|bytes| bytes.len())
            .ok_or_else(|| no_such_page(page))
    }

    fn describe(&self) -> String {
        format!("memory: pages of up to {} bytes", self.max_page_bytes)
    }

    fn read(&self, page: PageId, into: &mut [u8]) -> io::Result<()> {
        let shard = self.shard(page).read();
        let bytes = shard.get(&page).ok_or_else(|| no_such_page(page))?;
        check_read_length(bytes.len(), into)?;
        into.copy_from_slice(bytes);
        Ok(())
    }

    fn check_write(&self, page: PageId, len: usize) -> io::Result<()> {
        self.check(page, len).map(|_| ())
    }

    fn write(&self, page: PageId, bytes: &[u8]) -> io::Result<()> {
        {
            let mut shard = self.shard(page).write();
            if let Some(old) = shard.get_mut(&page).filter(|old| old.len() == bytes.len()) {
                old.copy_from_slice(bytes);
                return Ok(());
            }
        }
        let mut new = Vec::new();
        new.try_reserve_exact(bytes.len())
            .map_err(|_| io::ErrorKind::OutOfMemory)?;
        new.extend_from_slice(bytes);
        self.put(page, new.into_boxed_slice())
    }

    fn remove(&self, page: PageId) -> io::Result<()> {
        let _old = self.shard(page).write().remove(&page);
        Ok(())
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("len", &self.len)
            .field("max_page_bytes", &self.max_page_bytes)
            .finish_non_exhaustive()
    }
}

fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}
