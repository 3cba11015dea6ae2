//! A page pool: a buffer pool between a program and a [`PageStore`], with a memory budget, that keeps cold pages
//! compressed.
//!
//! The pool is an adaptive compressed cache (ACCRS: K. J. Harper's Tyche, and "Viability of Time-Memory Trade-Offs in
//! Large Data Sets", 2018). An absent page is read from the store into the raw space. When that exceeds its share of
//! the budget, victims are compressed into the compressed space; when that exceeds its share, the oldest pages are
//! evicted. A hit on a compressed page returns a decoded copy, and after some hits the page becomes raw again. By
//! default the pool adapts the share of the compressed space itself ([`RawShare::Adaptive`]).
//!
//! Begin with [`PagePool::builder`], [`PagePool::get`], [`PagePool::write`], [`PagePool::remove`], [`PagePool::flush`]
//! and [`PagePool::stats`].
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use leafpress_pages::store::MemoryStore;
//! use leafpress_pages::PagePool;
//!
//! let pages = (0..1000).map(|page: u32| page.to_le_bytes().repeat(1024));
//! let pool = PagePool::builder(MemoryStore::from_pages(pages)?).memory(1 << 20).codec("lz4".parse()?).build()?;
//! let page = pool.get(7)?;
//! assert_eq!(page[..4], 7_u32.to_le_bytes());
//! pool.write(7, &[1; 4096])?;
//! assert_eq!(page[0], 7, "a page that is pinned stays as it was");
//! assert_eq!(pool.get(7)?[0], 1);
//! pool.flush()?;
//! # Ok(())
//! # }
//! ```

mod adaptive;
mod builder;
mod change;
mod counts;
#[allow(unsafe_code)]
mod entry;
mod error;
mod frame_allocation;
#[allow(unsafe_code)]
mod frames;
#[allow(unsafe_code)]
mod guard;
mod index;
mod inner;
mod limits;
mod loading;
#[allow(unsafe_code)]
mod log;
mod prefetch;
mod raw_space;
mod read;
mod stats;
mod sweep;
#[cfg(test)]
mod tests;
mod threads;
mod unsynced;
mod waiters;
mod workers;
mod write_back;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::store::{PageId, PageStore};

#[cfg(feature = "testing")]
pub use crate::eviction::PolicySimulation;
pub use crate::eviction::{ParsePolicyError, PolicyKind};
pub use crate::tuner::{ParseRawShareError, RawShare};
pub use builder::PoolBuilder;
pub use error::PoolError;
pub use guard::{OwnedPageGuard, PageGuard};
pub use stats::PoolStats;

/// A page pool; see [the module](self). All methods may be called from many threads at once.
///
/// Dropping the pool writes dirty pages and ignores errors; call [`PagePool::flush`] before to detect them.
///
/// # Fork
///
/// A forked child must neither use nor drop a pool of its parent: another thread may have held one of its locks at the
/// fork, the drop waits for threads that do not exist in the child, and both processes would write the same store. The
/// child may build pools of its own.
pub struct PagePool {
    // Before the core: threads stop first.
    threads: threads::Threads,
    core: Arc<inner::PoolInner>,
}

const _: () = {
    const fn can_be_shared<T: Send + Sync>() {}
    can_be_shared::<PagePool>();
    can_be_shared::<PageGuard<'_>>();
    can_be_shared::<OwnedPageGuard>();
    can_be_shared::<PoolError>();
    can_be_shared::<PoolStats>();
    can_be_shared::<crate::store::DirectoryStore>();
};

impl std::fmt::Debug for PagePool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PagePool")
            .field("policy", &self.core.policy)
            .field("budget_bytes", &self.core.budget.load(Relaxed))
            .finish_non_exhaustive()
    }
}

impl PagePool {
    /// Returns a builder for a pool over `store`.
    ///
    /// ```
    /// # let pages = (0..100).map(|page: u32| page.to_le_bytes().repeat(1024));
    /// # let store = leafpress_pages::store::MemoryStore::from_pages(pages)?;
    /// let pool = leafpress_pages::PagePool::builder(store).memory(1 << 20).build()?;
    /// assert_eq!(pool.get(7)?[0], 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(store: impl PageStore + 'static) -> PoolBuilder {
        PoolBuilder::new(Box::new(store))
    }

    /// Returns the page, pinned: from memory, or read from the store.
    ///
    /// ```
    /// # let pages = (0..100).map(|page: u32| page.to_le_bytes().repeat(1024));
    /// # let store = leafpress_pages::store::MemoryStore::from_pages(pages)?;
    /// # let pool = leafpress_pages::PagePool::builder(store).memory(1 << 20).build()?;
    /// let page = pool.get(7)?;
    /// assert_eq!(page[..4], 7_u32.to_le_bytes());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`PoolError::NotFound`] if the store has no such page, [`PoolError::PoolFull`] if every page is pinned,
    /// or the store's error. If dirty pages would have to be evicted and cannot be written, the page is read past the
    /// pool: the guard has it in memory of its own, which is counted in [`PoolStats::pinned_copy_bytes`].
    #[inline]
    pub fn get(&self, page: PageId) -> Result<PageGuard<'_>, PoolError> {
        self.core.get(page)
    }

    /// Returns the page, pinned, with a guard that borrows nothing, so that it can be held in a task, across `await`s,
    /// and be sent to another. Reading from the store blocks the calling thread.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pages = (0..100).map(|page: u32| page.to_le_bytes().repeat(1024));
    /// # let store = leafpress_pages::store::MemoryStore::from_pages(pages)?;
    /// let pool = leafpress_pages::PagePool::builder(store).memory(1 << 20).build()?;
    /// let page = pool.get_owned(7)?;
    /// drop(pool);
    /// let first = std::thread::spawn(move || page[0]).join();
    /// assert_eq!(first.ok(), Some(7));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`PagePool::get`].
    pub fn get_owned(&self, page: PageId) -> Result<OwnedPageGuard, PoolError> {
        Ok(self.core.get(page)?.into_owned(&self.core))
    }

    /// Replaces or creates the page. Existing guards keep the old version. The store gets the new version at
    /// [`PagePool::flush`], or when the page is to be compressed or evicted.
    ///
    /// ```
    /// # let pages = (0..100).map(|page: u32| page.to_le_bytes().repeat(1024));
    /// # let store = leafpress_pages::store::MemoryStore::from_pages(pages)?;
    /// # let pool = leafpress_pages::PagePool::builder(store).memory(1 << 20).build()?;
    /// pool.write(7, &[1; 4096])?;
    /// assert_eq!(pool.get(7)?[0], 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`PoolError::PageLength`] or [`PoolError::Refused`] for a page that the store could never accept,
    /// [`PoolError::PoolFull`] if every page is pinned, or the store's error if dirty pages would have to be evicted
    /// for this one and cannot be written. The page is then unchanged.
    pub fn write(&self, page: PageId, bytes: &[u8]) -> Result<(), PoolError> {
        self.core.write(page, bytes)
    }

    /// Removes the page from the pool and the store. Existing guards keep it. Removing a page that does not exist is
    /// not an error.
    ///
    /// The numbering when the store is opened again depends on the store: in a [`FileStore`](crate::store::FileStore) a
    /// page that was removed before the last one comes back as zeros; a
    /// [`DirectoryStore`](crate::store::DirectoryStore) renumbers its files, so that those after it move up by one.
    ///
    /// ```
    /// # let pages = (0..100).map(|page: u32| page.to_le_bytes().repeat(1024));
    /// # let store = leafpress_pages::store::MemoryStore::from_pages(pages)?;
    /// # let pool = leafpress_pages::PagePool::builder(store).memory(1 << 20).build()?;
    /// use leafpress_pages::pool::PoolError;
    ///
    /// pool.remove(7)?;
    /// assert!(matches!(pool.get(7), Err(PoolError::NotFound { page: 7 })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Returns the store's error; the page is then still present.
    pub fn remove(&self, page: PageId) -> Result<(), PoolError> {
        self.core.remove(page)
    }

    /// Discards a version of the page that the store does not have, and returns true if there was one: the page then
    /// has the store's version. For a page that cannot be written, and for one named by [`PoolError::Lost`]. Existing
    /// guards keep it.
    ///
    /// ```
    /// # let pages = (0..100).map(|page: u32| page.to_le_bytes().repeat(1024));
    /// # let store = leafpress_pages::store::MemoryStore::from_pages(pages)?;
    /// # let pool = leafpress_pages::PagePool::builder(store).memory(1 << 20).build()?;
    /// pool.write(7, &[1; 4096])?;
    /// assert!(pool.discard(7));
    /// assert_eq!(pool.get(7)?[0], 7, "what the store has");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn discard(&self, page: PageId) -> bool {
        self.core.discard(page)
    }

    /// Reads those of the pages that are absent, in batches, and returns the number of pages read. It reads at most as
    /// many as there is room for, and skips pages that do not exist.
    ///
    /// ```
    /// # let pages = (0..100).map(|page: u32| page.to_le_bytes().repeat(1024));
    /// # let store = leafpress_pages::store::MemoryStore::from_pages(pages)?;
    /// # let pool = leafpress_pages::PagePool::builder(store).memory(1 << 20).build()?;
    /// assert_eq!(pool.prefetch(&[1, 2, 3])?, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`PagePool::get`].
    pub fn prefetch(&self, pages: &[PageId]) -> Result<usize, PoolError> {
        self.core.prefetch(pages)
    }

    /// Writes all dirty pages to the store and syncs it. When it returns without an error, all updates and removals
    /// that ended before it began are durable, including those of pages evicted since. One flush runs at a time; others
    /// wait.
    ///
    /// ```
    /// # let pages = (0..100).map(|page: u32| page.to_le_bytes().repeat(1024));
    /// # let store = leafpress_pages::store::MemoryStore::from_pages(pages)?;
    /// # let pool = leafpress_pages::PagePool::builder(store).memory(1 << 20).build()?;
    /// pool.write(7, &[1; 4096])?;
    /// pool.flush()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Returns the first failed write; all others were tried. Pages that could not be written stay in the pool, dirty.
    /// Returns [`PoolError::Sync`] if the store could not sync: what was written since the last successful sync is
    /// dirty again, and the next flush writes it again. Returns [`PoolError::Lost`] while the pool knows of pages that
    /// may be lost and that it cannot write again.
    pub fn flush(&self) -> Result<(), PoolError> {
        self.core.flush()
    }

    /// Sets the memory budget, in bytes. If it shrinks, pages are evicted before this returns, except pinned and
    /// unwritable ones: they are evicted later.
    ///
    /// ```
    /// # let pages = (0..100).map(|page: u32| page.to_le_bytes().repeat(1024));
    /// # let store = leafpress_pages::store::MemoryStore::from_pages(pages)?;
    /// # let pool = leafpress_pages::PagePool::builder(store).memory(1 << 20).build()?;
    /// pool.set_memory(2 << 20)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`PoolError::Option`] for less than the minimum of a [`PoolBuilder`].
    pub fn set_memory(&self, bytes: usize) -> Result<(), PoolError> {
        self.core.resize(bytes)
    }

    /// Returns a snapshot of the statistics.
    ///
    /// ```
    /// # let pages = (0..100).map(|page: u32| page.to_le_bytes().repeat(1024));
    /// # let store = leafpress_pages::store::MemoryStore::from_pages(pages)?;
    /// # let pool = leafpress_pages::PagePool::builder(store).memory(1 << 20).build()?;
    /// pool.get(7)?;
    /// pool.get(7)?;
    /// println!("{:?}", pool.stats());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stats(&self) -> PoolStats {
        self.core.stats()
    }

    /// Returns the store.
    ///
    /// ```
    /// # let pages = (0..100).map(|page: u32| page.to_le_bytes().repeat(1024));
    /// # let store = leafpress_pages::store::MemoryStore::from_pages(pages)?;
    /// # let pool = leafpress_pages::PagePool::builder(store).memory(1 << 20).build()?;
    /// assert_eq!(pool.store().len(), 100);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn store(&self) -> &dyn PageStore {
        &*self.core.store
    }
}

impl Drop for PagePool {
    fn drop(&mut self) {
        self.threads.stop();
        // A drop cannot report the error.
        let _ = self.core.flush();
    }
}
