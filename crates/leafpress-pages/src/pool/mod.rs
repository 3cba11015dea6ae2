//! A pool of pages between a program and a [`PageStore`], under a memory budget, whose cold pages stay in it compressed.
//!
//! The pool is an adaptive compressed cache (ACCRS: K. J. Harper's Tyche, and "Viability of Time-Memory Trade-Offs in Large Data Sets",
//! 2018). A page that is not here is read from the store into the raw space. When that is over its share of the budget, victims are
//! compressed and stay, in the compressed space; when that is over its share, the oldest leave. A hit on a compressed page hands out a
//! decoded copy, and after some hits the page becomes raw again. How much of the budget is for compressed pages the pool finds out by itself
//! ([`RawShare::Adaptive`]).
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
//! pool.update(7, &[1; 4096])?;
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
mod room;
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
/// Dropping the pool writes what is dirty; [`PagePool::flush`] tells whether that worked.
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
    /// A builder for a pool over `store`.
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

    /// The page, pinned: from memory, or read from the store.
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
    /// [`PoolError::NotFound`] where the store has no such page, [`PoolError::PoolFull`] when everything is pinned, and what the store
    /// says of this page. Where dirty pages would have to leave and cannot be written, the page is read past the pool: the guard has it
    /// in memory of its own, which is counted in [`PoolStats::pinned_copy_bytes`].
    #[inline]
    pub fn get(&self, page: PageId) -> Result<PageGuard<'_>, PoolError> {
        self.core.get(page)
    }

    /// As [`PagePool::get`], with a guard that borrows nothing, so that it can be held in a task, across `await`s, and be handed on. Reading
    /// from the store blocks the thread that calls this.
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
    /// As [`PagePool::get`].
    pub fn get_owned(&self, page: PageId) -> Result<OwnedPageGuard, PoolError> {
        Ok(self.core.get(page)?.into_owned(&self.core))
    }

    /// Replaces the page, or makes it. Who holds the page keeps what it was. The store has the new one after [`PagePool::flush`], or when
    /// the page is to be compressed or to leave.
    ///
    /// ```
    /// # let pages = (0..100).map(|page: u32| page.to_le_bytes().repeat(1024));
    /// # let store = leafpress_pages::store::MemoryStore::from_pages(pages)?;
    /// # let pool = leafpress_pages::PagePool::builder(store).memory(1 << 20).build()?;
    /// pool.update(7, &[1; 4096])?;
    /// assert_eq!(pool.get(7)?[0], 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`PoolError::PageLength`] and [`PoolError::Refused`] for what the store could never take, [`PoolError::PoolFull`] when everything
    /// is pinned, and what the store says when dirty pages would have to leave for this one and cannot be written. The page is then as
    /// it was.
    pub fn update(&self, page: PageId, bytes: &[u8]) -> Result<(), PoolError> {
        self.core.update(page, bytes)
    }

    /// Removes the page, here and in the store. Who holds the page keeps it. Removing one that does not exist is no error.
    ///
    /// What the number is when the store is opened again is the store's affair: a [`FileStore`](crate::store::FileStore) has nothing but pages, so that one removed
    /// before the last comes back as zeros; a [`DirectoryStore`](crate::store::DirectoryStore) numbers its files anew, so that those behind it move up by one.
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
    /// What the store says; the page is then still there.
    pub fn remove(&self, page: PageId) -> Result<(), PoolError> {
        self.core.remove(page)
    }

    /// Forgets a version of the page that the store has not got, and returns whether there was one: the page is then what the store has.
    /// For a page that cannot be written, and for one that [`PoolError::Lost`] names. Who holds the page keeps it.
    ///
    /// ```
    /// # let pages = (0..100).map(|page: u32| page.to_le_bytes().repeat(1024));
    /// # let store = leafpress_pages::store::MemoryStore::from_pages(pages)?;
    /// # let pool = leafpress_pages::PagePool::builder(store).memory(1 << 20).build()?;
    /// pool.update(7, &[1; 4096])?;
    /// assert!(pool.discard(7));
    /// assert_eq!(pool.get(7)?[0], 7, "what the store has");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn discard(&self, page: PageId) -> bool {
        self.core.discard(page)
    }

    /// Reads those of the pages that are not here, many at once, and returns how many were read. It reads no more than there is room
    /// for, and passes over pages that do not exist.
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
    /// As [`PagePool::get`].
    pub fn prefetch(&self, pages: &[PageId]) -> Result<usize, PoolError> {
        self.core.prefetch(pages)
    }

    /// Writes all dirty pages to the store and syncs it. When it returns without an error, all updates and removals that ended before it
    /// began are lasting, those of pages that have left the pool since included. One flush runs at a time; others wait.
    ///
    /// ```
    /// # let pages = (0..100).map(|page: u32| page.to_le_bytes().repeat(1024));
    /// # let store = leafpress_pages::store::MemoryStore::from_pages(pages)?;
    /// # let pool = leafpress_pages::PagePool::builder(store).memory(1 << 20).build()?;
    /// pool.update(7, &[1; 4096])?;
    /// pool.flush()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The first write that failed; all others were tried. What could not be written stays in the pool, dirty.
    /// [`PoolError::Sync`] when the store could not sync: what was written since the last sync that worked is dirty again, and the next
    /// flush writes it again. [`PoolError::Lost`] as long as the pool knows of pages that it could not write again.
    pub fn flush(&self) -> Result<(), PoolError> {
        self.core.flush()
    }

    /// Changes the budget. When it shrinks, pages leave before this returns, all but those that are pinned or cannot be written:
    /// they leave later.
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
    /// [`PoolError::Option`] for less than a [`PoolBuilder`] takes.
    pub fn set_memory(&self, budget_bytes: usize) -> Result<(), PoolError> {
        self.core.resize(budget_bytes)
    }

    /// What the pool holds and did.
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

    /// The store.
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
        // There is nobody to tell.
        let _ = self.core.flush();
    }
}
