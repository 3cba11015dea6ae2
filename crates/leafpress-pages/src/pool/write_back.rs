//! Write-back of dirty pages.

use std::io;
use std::sync::Arc;

use super::PoolError;
use super::counts::Count;
use super::entry::{COMPRESSED, DETACHED, DIRTY, PageState, UNWRITABLE};
use super::guard::Pinned;
use super::inner::{BATCH_PAGES, PoolInner, operate, room_for, store_error, zeroed};
use crate::store::PageId;
use crate::store::PageWrite;
use leafpress_base::sync::Patience;

/// The outcome of a page's write-back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// The store has it.
    Clean,
    /// It was replaced or removed: the version is obsolete.
    Gone,
    /// Another store operation on this page is in progress, or a sync failed during the write: the page is still dirty.
    Busy,
}

/// The outcome of beginning the write of a page for [`PoolInner::flush`].
enum Begun<'c> {
    /// The entry is pinned, and the page is busy.
    Pinned(Pinned<'c>),
    /// Another thread's operation is in progress.
    Later,
    /// There is nothing to write.
    Clean,
}

impl PoolInner {
    /// Writes a page if it is dirty. With `wait`, waits for another store operation on it.
    pub(super) fn write_back(&self, pinned: &Pinned<'_>, wait: bool) -> Result<Written, PoolError> {
        let entry = pinned.entry();
        let page = entry.page();
        let (_, shard) = self.shard(page);
        let mut locked = shard.lock();
        loop {
            let state = entry.state();
            // A version that was replaced or removed must not be written any more.
            if state.has(DETACHED) {
                return Ok(Written::Gone);
            }
            if !state.has(DIRTY) {
                return Ok(Written::Clean);
            }
            if !locked.is_busy(page) {
                break;
            }
            if !wait {
                return Ok(Written::Busy);
            }
            locked.wait();
        }
        locked.set_busy(page)?;
        drop(locked);
        let failures = self.unsynced.failures();
        let written = if entry.state().kind() == COMPRESSED {
            self.decoded(pinned)
                .and_then(|bytes| operate(|| self.store.write(page, &bytes)))
        } else {
            operate(|| self.store.write(page, pinned.bytes()))
        };
        self.written(pinned, failures, written)
    }

    /// Returns the bytes of a compressed page. Such a page is only written after a failed sync.
    fn decoded(&self, pinned: &Pinned<'_>) -> io::Result<Vec<u8>> {
        let mut bytes = zeroed(pinned.entry().len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
        self.decode(pinned, &mut bytes).map_err(io::Error::other)?;
        Ok(bytes)
    }

    /// Records the outcome of the write of a page that the caller has set busy. `failures` is the number of failed
    /// syncs before it.
    fn written(&self, pinned: &Pinned<'_>, failures: u64, written: io::Result<()>) -> Result<Written, PoolError> {
        let entry = pinned.entry();
        let page = entry.page();
        let (_, shard) = self.shard(page);
        let mut locked = shard.lock();
        locked.set_idle(page);
        // A concurrent failed sync may have lost a part of this write.
        let may_be_lost = self.unsynced.failures() != failures;
        if written.is_err() {
            entry.set(UNWRITABLE);
        } else if !may_be_lost {
            let round = self.unsynced.round();
            entry.change(|state| state.written_in(round));
            self.unsynced.written(page);
        }
        drop(locked);
        match written {
            Ok(()) => {
                self.counts.add(Count::WriteBacks, 1);
                self.counts.add(Count::StoreWriteBytes, entry.len() as u64);
                Ok(if may_be_lost { Written::Busy } else { Written::Clean })
            }
            Err(error) => {
                self.counts.add(Count::WriteErrors, 1);
                Err(store_error(page, "write", error))
            }
        }
    }

    /// Writes all dirty pages and syncs the store; returns the first error. See [`super::unsynced`].
    pub(super) fn flush(&self) -> Result<(), PoolError> {
        let _alone = self.unsynced.begin_flush();
        let written = self.write_dirty();
        let round = self.unsynced.end_round();
        let synced = match operate(|| self.store.sync()) {
            Ok(()) => {
                self.unsynced.succeeded(round);
                self.unsynced.lost()
            }
            Err(error) => {
                let source = Arc::new(error);
                self.sync_failed(round, &source);
                Err(PoolError::Sync { source })
            }
        };
        written.and(synced)
    }

    /// Marks all pages dirty that were written and may not be durable.
    fn sync_failed(&self, round: u64, error: &Arc<io::Error>) {
        self.unsynced.failed();
        for shard in self.index.shards() {
            let locked = shard.lock();
            for number in locked.entries() {
                let entry = self.entries.at(number);
                if entry.state().unsynced_round_is_odd().is_some() {
                    entry.change(PageState::to_be_written_again);
                }
            }
        }
        self.unsynced.lose_gone(round, error.clone());
        self.counts.add(Count::SyncErrors, 1);
    }

    /// Writes all dirty pages; returns the first error.
    fn write_dirty(&self) -> Result<(), PoolError> {
        let mut failed = None;
        let (mut batch, mut late) = (room_for(BATCH_PAGES)?, room_for(BATCH_PAGES)?);
        for pages in self.dirty_pages()?.chunks(BATCH_PAGES) {
            // Pages that are pinned here can be evicted shortly.
            let in_hand = self.waiters.take_in_hand();
            for &page in pages {
                match self.begin_write(page) {
                    Begun::Pinned(pinned) => batch.push(pinned),
                    Begun::Later => late.push(page),
                    Begun::Clean => {}
                }
            }
            // Only then wait for others: a thread that waits keeps nothing busy.
            let written = self.write_batch(&mut batch);
            drop(in_hand);
            let waited = late.drain(..).map(|page| self.write_newest(page));
            for error in std::iter::once(written).chain(waited).filter_map(Result::err) {
                failed.get_or_insert(error);
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Returns all dirty pages, in order. They are found through the index, under its locks: a page that is updated
    /// concurrently gets another entry, which an iteration over the entries might already have passed. On the way,
    /// expired rounds are cleared, so that two are enough to distinguish.
    fn dirty_pages(&self) -> Result<Vec<PageId>, PoolError> {
        let mut dirty = Vec::new();
        let is_odd = self.unsynced.round() % 2 == 1;
        for shard in self.index.shards() {
            let locked = shard.lock();
            for number in locked.entries() {
                let entry = self.entries.at(number);
                let state = entry.state();
                if state.has(DIRTY) {
                    let bytes = size_of::<PageId>();
                    let room = dirty.try_reserve(1);
                    room.map_err(|_| PoolError::OutOfMemory { bytes })?;
                    dirty.push(entry.page());
                }
                if state.unsynced_round_is_odd() == Some(!is_odd) {
                    entry.change(PageState::synced);
                }
            }
        }
        dirty.sort_unstable();
        Ok(dirty)
    }

    /// Pins a page and sets it busy, if it is dirty and not busy.
    fn begin_write(&self, page: PageId) -> Begun<'_> {
        let (hash, shard) = self.shard(page);
        let mut locked = shard.lock();
        let Some(number) = locked.get(hash, page, &self.entries) else {
            return Begun::Clean;
        };
        if !self.entries.at(number).state().has(DIRTY) {
            return Begun::Clean;
        }
        if locked.is_busy(page) {
            return Begun::Later;
        }
        let Some(pinned) = self.pin(number, 0) else {
            return Begun::Later;
        };
        if pinned.entry().state().kind() == COMPRESSED || locked.set_busy(page).is_err() {
            drop(locked);
            return Begun::Later;
        }
        Begun::Pinned(pinned)
    }

    /// Writes the current version of a page if it is dirty, and waits for operations in progress.
    pub(super) fn write_newest(&self, page: PageId) -> Result<(), PoolError> {
        let (hash, shard) = self.shard(page);
        let mut patience = Patience::default();
        loop {
            let locked = shard.lock();
            let Some(number) = locked.get(hash, page, &self.entries) else {
                return Ok(());
            };
            if !self.entries.at(number).state().has(DIRTY) {
                return Ok(());
            }
            let pinned = self.pin(number, 0);
            drop(locked);
            let Some(pinned) = pinned else {
                // The page is being moved, which takes some nanoseconds.
                patience.wait();
                continue;
            };
            let written = self.write_back(&pinned, true);
            drop(pinned);
            // If there is a newer version, that has to be written.
            if written? == Written::Clean {
                return Ok(());
            }
        }
    }

    /// Writes pages that are pinned and set busy, and clears the list; returns the first error.
    fn write_batch(&self, batch: &mut Vec<Pinned<'_>>) -> Result<(), PoolError> {
        let failures = self.unsynced.failures();
        let Ok(mut writes) = room_for(batch.len()) else {
            return self.write_one_by_one(batch);
        };
        writes.extend(batch.iter().map(|pinned| PageWrite {
            page: pinned.entry().page(),
            bytes: pinned.bytes(),
            result: Ok(()),
        }));
        let whole = operate(|| {
            if !writes.is_empty() {
                self.store.write_batch(&mut writes);
            }
            Ok(())
        });
        let mut outcome = Ok(());
        for (pinned, write) in batch.iter().zip(writes) {
            let result = match &whole {
                Ok(()) => write.result,
                Err(error) => Err(io::Error::other(error.to_string())),
            };
            let written = self.written(pinned, failures, result);
            outcome = outcome.and(written.map(|_| ()));
        }
        batch.clear();
        outcome
    }

    /// Like [`PoolInner::write_batch`], without allocations.
    fn write_one_by_one(&self, batch: &mut Vec<Pinned<'_>>) -> Result<(), PoolError> {
        let mut outcome = Ok(());
        for pinned in batch.drain(..) {
            let failures = self.unsynced.failures();
            let page = pinned.entry().page();
            let result = operate(|| self.store.write(page, pinned.bytes()));
            let written = self.written(&pinned, failures, result);
            outcome = outcome.and(written.map(|_| ()));
        }
        outcome
    }
}
