//! Replacing and removing pages.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::PoolError;
use super::counts::Count;
use super::entry::{DIRTY, LOADING, PageState, RAW};
use super::inner::{PoolInner, operate, store_error};
use super::sweep::Sweeper;
use crate::store::PageId;
use leafpress_base::sync::Patience;

impl PoolInner {
    /// Replaces or creates a page.
    pub(super) fn write(&self, page: PageId, bytes: &[u8]) -> Result<(), PoolError> {
        let len = bytes.len();
        // A version that the store would refuse must not become dirty here.
        let (least, most) = (self.store.min_page_bytes().max(1), self.max_page_bytes);
        let fits = (least..=most).contains(&len) && (!self.store.has_one_length() || len == most);
        // A page that is shorter than others may stay so. Whatever length a store reports, its frame has at most `most`
        // bytes.
        let may_stay = || (1..=most).contains(&len) && self.store.page_bytes(page).ok() == Some(len);
        if !fits && !may_stay() {
            return Err(PoolError::PageLength {
                page,
                len,
                reason: match self.store.has_one_length() {
                    true => format!("the store's pages have {most} bytes"),
                    false => format!("the store's pages have {least} to {most} bytes"),
                },
            });
        }
        self.check_write(page, len)?;
        let (hash, shard) = self.shard(page);
        let mut frame = self.frame_to_update(page, len)?;
        frame.bytes_mut().copy_from_slice(bytes);
        let number = match self.new_entry(page) {
            Ok(number) => number,
            Err(error) => {
                self.frames.free(frame);
                return Err(error);
            }
        };
        let mut locked = shard.lock();
        let old = loop {
            match locked.get(hash, page, &self.entries) {
                Some(old) if self.entries.at(old).state().kind() == LOADING => locked.wait(),
                old => break old,
            }
        };
        match locked.reserve() {
            Ok(grown) => self.index_bytes.fetch_add(grown, Relaxed),
            Err(error) => {
                drop(locked);
                self.entries.free(number);
                self.frames.free(frame);
                return Err(error);
            }
        };
        let popularity = old.map_or(0, |old| self.entries.at(old).state().popularity());
        let pinned = self.begin_raw(number, frame, PageState(RAW | DIRTY).with_popularity(popularity));
        if let Some(old) = old {
            self.detach(&mut locked, hash, old);
        }
        locked.insert(hash, number);
        drop(locked);
        if let Some(old) = old {
            self.forget(old);
        }
        self.list_new(number, hash, Sweeper::Writer);
        drop(pinned);
        self.counts.add(Count::Updates, 1);
        self.follow(hash, len);
        Ok(())
    }

    /// Asks the store whether it could accept a page, so that nothing becomes dirty that can never be written.
    fn check_write(&self, page: PageId, len: usize) -> Result<(), PoolError> {
        let check = || operate(|| self.store.check_write(page, len));
        let Err(mut error) = check() else {
            return Ok(());
        };
        // A page that follows the last one may depend on the last one being complete in the store, which it may be in
        // the pool only.
        if let Some(last) = self.store.len().checked_sub(1).filter(|&last| last < page) {
            self.write_newest(last)?;
            match check() {
                Ok(()) => return Ok(()),
                Err(again) => error = again,
            }
        }
        Err(PoolError::Refused {
            page,
            source: Arc::new(error),
        })
    }

    /// Discards a version of a page that the store does not have; returns true if there was one.
    pub(super) fn discard(&self, page: PageId) -> bool {
        let (hash, shard) = self.shard(page);
        let mut locked = shard.lock();
        while locked.is_busy(page) {
            locked.wait();
        }
        // Under the lock nothing becomes dirty.
        let dirty = locked
            .get(hash, page, &self.entries)
            .filter(|&number| self.entries.at(number).state().has(DIRTY));
        if let Some(dirty) = dirty {
            self.detach(&mut locked, hash, dirty);
        }
        let was_lost = self.unsynced.discarded(page);
        drop(locked);
        if let Some(dirty) = dirty {
            self.forget(dirty);
        }
        dirty.is_some() || was_lost
    }

    /// Removes a page from the pool and the store.
    pub(super) fn remove(&self, page: PageId) -> Result<(), PoolError> {
        let (hash, shard) = self.shard(page);
        let mut patience = Patience::default();
        let mut locked = shard.lock();
        // The entry stays pinned until the end, so that it is not freed and reused for a newer version meanwhile.
        let old = loop {
            match locked.get(hash, page, &self.entries) {
                _ if locked.is_busy(page) => locked.wait(),
                None => break None,
                Some(old) if self.entries.at(old).pin(0).is_some() => break Some(old),
                Some(old) if self.entries.at(old).state().kind() == LOADING => locked.wait(),
                Some(_) => {
                    // The page is being moved, which takes some nanoseconds.
                    drop(locked);
                    patience.wait();
                    locked = shard.lock();
                }
            }
        };
        if let Err(error) = locked.set_busy(page) {
            drop(locked);
            if let Some(old) = old {
                self.unpin(old);
            }
            return Err(error);
        }
        drop(locked);
        let failures = self.unsynced.failures();
        let removed = match operate(|| self.store.remove(page)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(store_error(page, "remove", error)),
            _ => Ok(()),
        };
        let mut locked = shard.lock();
        locked.set_idle(page);
        if removed.is_ok() {
            self.unsynced.removed(page, failures);
        }
        // A concurrent update is ordered after the removal.
        let gone = old.filter(|&old| removed.is_ok() && locked.get(hash, page, &self.entries) == Some(old));
        if let Some(gone) = gone {
            self.detach(&mut locked, hash, gone);
        }
        drop(locked);
        if let Some(gone) = gone {
            self.forget(gone);
        }
        if let Some(old) = old {
            self.unpin(old);
        }
        if removed.is_ok() {
            self.counts.add(Count::Removes, 1);
            if let Some(adaptive) = &self.adaptive
                && adaptive.follows(hash)
            {
                adaptive.removed(hash);
            }
            // The removal is recorded until the next sync, and the table of these records may have grown.
            self.fit(Sweeper::Writer);
        }
        removed
    }
}
