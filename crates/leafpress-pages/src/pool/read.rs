//! Getting a page: from memory raw, from memory compressed, or from the store.

use std::time::Instant;

use super::PoolError;
use super::counts::Count;
use super::entry::{CLAIMED, COMPRESSED, DIRTY, LOADING, PageState, RAW};
use super::frames::Frame;
use super::guard::{PageGuard, Pinned};
use super::index::Shard;
use super::inner::{PoolInner, nanoseconds, operate, store_error, zeroed};
use super::sweep::Sweeper;
use super::waiters::InHand;
use crate::store::PageId;
use leafpress_base::sync::Patience;

/// The outcome of a read from the store.
enum Read<'c> {
    /// Into a frame; with the count of frames in progress.
    Pooled(Frame<'c>, InHand<'c>),
    /// Into memory of its own: the pool is full of pages that cannot be written.
    Past(Vec<u8>),
}

impl PoolInner {
    /// Returns the page, from memory or from the store.
    #[inline]
    pub(super) fn get(&self, page: PageId) -> Result<PageGuard<'_>, PoolError> {
        let (hash, shard) = self.shard(page);
        let mine = self.counts.mine();
        let found = shard.find(hash, |number| {
            let entry = self.entries.at(number);
            if entry.page() != page {
                return None;
            }
            Some((number, mine.and_then(|mine| self.hold_raw(mine, number, page))))
        });
        let number = match found {
            Some((number, Some(held))) => {
                if let Some(mine) = mine {
                    mine.add(Count::RawHits, 1);
                }
                if self.wants_hits {
                    self.note_hit(number);
                }
                let guard = PageGuard::of_held(self, held);
                self.follow(hash, guard.len());
                return Ok(guard);
            }
            Some((number, None)) => Some(number),
            None => None,
        };
        match number.and_then(|number| self.pin_if_is(number, page, 1)) {
            Some(pinned) if pinned.state.kind() == RAW => Ok(self.raw_hit(pinned, hash)),
            Some(pinned) => self.compressed_hit(pinned, page, hash),
            None => self.get_slowly(page, hash, shard),
        }
    }

    /// Pins an entry if it is the page's.
    #[inline]
    fn pin_if_is(&self, number: u32, page: PageId, hits: u64) -> Option<Pinned<'_>> {
        let entry = self.entries.at(number);
        if entry.page() != page {
            return None;
        }
        // It may have been reused for another page between the lookup and the pin.
        self.pin(number, hits).filter(|_| entry.page() == page)
    }

    /// A hit on a raw page.
    #[inline]
    fn raw_hit<'c>(&self, pinned: Pinned<'c>, hash: u64) -> PageGuard<'c> {
        self.counts.add(Count::RawHits, 1);
        if self.wants_hits {
            self.note_hit(pinned.number());
        }
        let guard = pinned.into_guard();
        self.follow(hash, guard.len());
        guard
    }

    /// A `get` that has to wait, or to read.
    #[cold]
    fn get_slowly(&self, page: PageId, hash: u64, shard: &Shard) -> Result<PageGuard<'_>, PoolError> {
        let mut patience = Patience::default();
        loop {
            let mut locked = shard.lock();
            let Some(number) = locked.get(hash, page, &self.entries) else {
                if locked.is_busy(page) {
                    locked.wait();
                    continue;
                }
                let number = self.begin_loading(&mut locked, page, hash)?;
                drop(locked);
                self.counts.add(Count::Misses, 1);
                let loaded = self.load(number, page, hash, shard)?;
                self.follow(hash, loaded.len());
                return Ok(loaded);
            };
            let entry = self.entries.at(number);
            match self.pin(number, 1) {
                Some(pinned) if pinned.state.kind() == RAW => {
                    drop(locked);
                    return Ok(self.raw_hit(pinned, hash));
                }
                Some(pinned) => {
                    drop(locked);
                    return self.compressed_hit(pinned, page, hash);
                }
                None if entry.state().kind() == LOADING => locked.wait(),
                None => {
                    // The page is being moved, which takes some nanoseconds.
                    drop(locked);
                    patience.wait();
                }
            }
        }
    }

    /// Reads an entry's page from the store.
    fn load(&self, number: u32, page: PageId, hash: u64, shard: &Shard) -> Result<PageGuard<'_>, PoolError> {
        match self.read(page) {
            Ok(Read::Pooled(frame, in_hand)) => Ok(self.publish(number, hash, frame, shard, in_hand).into_guard()),
            Ok(Read::Past(bytes)) => {
                self.end_loading(number, hash, shard);
                Ok(PageGuard::of_copy(self, bytes))
            }
            Err(error) => {
                self.end_loading(number, hash, shard);
                Err(error)
            }
        }
    }

    /// Reads a page, into a frame if one is available.
    fn read(&self, page: PageId) -> Result<Read<'_>, PoolError> {
        let len = self.page_bytes(page)?;
        let Some(mut frame) = self.frame_to_read(page, len)? else {
            let mut bytes = zeroed(len)?;
            self.read_into(page, &mut bytes)?;
            return Ok(Read::Past(bytes));
        };
        let in_hand = self.waiters.take_in_hand();
        match self.read_into(page, frame.bytes_mut()) {
            Ok(()) => Ok(Read::Pooled(frame, in_hand)),
            Err(error) => {
                self.frames.free(frame);
                Err(error)
            }
        }
    }

    fn read_into(&self, page: PageId, into: &mut [u8]) -> Result<(), PoolError> {
        let (len, start) = (into.len(), Instant::now());
        operate(|| self.store.read(page, into)).map_err(|error| store_error(page, "read", error))?;
        self.costs.read(len as u32, nanoseconds(start));
        self.counts.add(Count::StoreReadBytes, len as u64);
        Ok(())
    }

    pub(super) fn page_bytes(&self, page: PageId) -> Result<usize, PoolError> {
        let len = operate(|| self.store.page_bytes(page)).map_err(|error| store_error(page, "measure", error))?;
        if (1..=self.max_page_bytes).contains(&len) {
            return Ok(len);
        }
        Err(PoolError::PageLength {
            page,
            len,
            reason: format!("the store's pages have 1 to {} bytes", self.max_page_bytes),
        })
    }

    /// A hit on a compressed page.
    fn compressed_hit<'c>(
        &'c self,
        mut pinned: Pinned<'c>,
        page: PageId,
        hash: u64,
    ) -> Result<PageGuard<'c>, PoolError> {
        let (number, len) = (pinned.number(), pinned.entry().len());
        self.follow(hash, len);
        if pinned.state.popularity() >= self.promote_after_hits {
            match self.restore(pinned, hash) {
                Ok(guard) => {
                    self.counts.add(Count::CompressedHits, 1);
                    return Ok(guard);
                }
                Err(unmoved) => pinned = unmoved,
            }
        }
        let decoded = zeroed(len).and_then(|mut copy| {
            self.decode(&pinned, &mut copy)?;
            Ok(copy)
        });
        drop(pinned);
        match decoded {
            Ok(copy) => {
                self.counts.add(Count::CompressedHits, 1);
                Ok(PageGuard::of_copy(self, copy))
            }
            // The store most likely has it.
            Err(PoolError::Codec(_)) if self.drop_undecodable(number, page, hash) => {
                self.get_slowly(page, hash, self.index.shard(hash))
            }
            Err(error) => Err(error),
        }
    }

    /// Decodes a compressed page.
    pub(super) fn decode(&self, pinned: &Pinned<'_>, into: &mut [u8]) -> Result<(), PoolError> {
        let Some(engine) = &self.engine else {
            return Ok(());
        };
        let start = Instant::now();
        engine.decompress(pinned.bytes(), None, into)?;
        self.costs.decompress(into.len() as u32, nanoseconds(start));
        Ok(())
    }

    /// Makes a compressed page raw, and returns its guard with the pin; returns the pin if there is no room, or another
    /// thread has pinned it.
    fn restore<'c>(&self, pinned: Pinned<'c>, hash: u64) -> Result<PageGuard<'c>, Pinned<'c>> {
        let (number, entry) = (pinned.number(), pinned.entry());
        let Some(mut frame) = self.frame_to_restore(entry.len()) else {
            return Err(pinned);
        };
        if self.decode(&pinned, frame.bytes_mut()).is_err() || self.mark_if_alone(number, CLAIMED).is_none() {
            self.frames.free(frame);
            return Err(pinned);
        }
        self.log.dead(entry);
        self.free_kept(entry.put_frame(frame));
        entry.change(|state| PageState(state.with_kind(RAW).0 & !CLAIMED));
        self.list_new(number, hash, Sweeper::Reader);
        self.counts.add(Count::Restorations, 1);
        Ok(pinned.into_guard())
    }

    /// Drops a page whose compressed form does not decode; returns true if the lookup should be retried. A page that
    /// the store does not have is kept.
    #[cold]
    fn drop_undecodable(&self, number: u32, page: PageId, hash: u64) -> bool {
        let mut locked = self.index.shard(hash).lock();
        let state = self.entries.at(number).state();
        if locked.get(hash, page, &self.entries) != Some(number) || state.kind() != COMPRESSED {
            return true;
        }
        if state.has(DIRTY) {
            return false;
        }
        self.detach(&mut locked, hash, number);
        self.unsynced.leaves(page, state);
        drop(locked);
        self.forget(number);
        true
    }
}
