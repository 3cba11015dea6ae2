//! Getting a page: from memory raw, from memory compressed, or from the store.

use std::time::Instant;

use super::core::{Core, nanoseconds, operate, store_error, zeroed};
use super::counts::Count;
use super::entry::{CLAIMED, COMPRESSED, DIRTY, LOADING, RAW, State};
use super::frames::Frame;
use super::guard::PageGuard;
use super::index::Shard;
use super::waiters::InHand;
use super::{PageId, PoolError};
use crate::sync::Patience;

/// A page that was read.
enum Read<'c> {
    /// Into a frame, and the room in hand.
    Pooled(Frame<'c>, InHand<'c>),
    /// Into memory of its own: the pool is full of pages that cannot be written.
    Past(Vec<u8>),
}

impl Core {
    /// The page, from memory or from the store.
    #[inline]
    pub(super) fn get(&self, page: PageId) -> Result<PageGuard<'_>, PoolError> {
        let (hash, shard) = self.shard(page);
        let mine = self.counts.mine();
        let found = shard.find(hash, |number| {
            let entry = self.entries.at(number);
            if entry.page() != page {
                return None;
            }
            let Some(slot) = mine.and_then(|mine| mine.hold(number)) else {
                return Some((number, None));
            };
            if entry.is_held_raw(page) {
                return Some((number, Some(slot)));
            }
            slot.release();
            Some((number, None))
        });
        if let (Some((number, Some(slot))), Some(mine)) = (found, mine) {
            mine.add(Count::RawHits, 1);
            if self.wants_hits {
                self.note_hit(number);
            }
            // SAFETY: the slot holds it, and it is raw.
            let guard = unsafe { PageGuard::of_slot(self, number, slot) };
            self.follow(hash, guard.len());
            return Ok(guard);
        }
        match found.and_then(|(number, _)| Some((number, self.pin_if_is(number, page, 1)?))) {
            Some((number, state)) if state.kind() == RAW => Ok(self.raw_hit(number, hash)),
            Some((number, state)) => self.compressed_hit(number, state, page, hash),
            None => self.get_slowly(page, hash, shard),
        }
    }

    /// Pins an entry if it is the page's.
    #[inline]
    fn pin_if_is(&self, number: u32, page: PageId, hits: u64) -> Option<State> {
        let entry = self.entries.at(number);
        if entry.page() != page {
            return None;
        }
        let state = entry.pin(hits)?;
        if entry.page() == page {
            return Some(state);
        }
        // It became another page's between the index and the pin.
        self.unpin(number);
        None
    }

    /// A hit on a raw page that is pinned.
    #[inline]
    fn raw_hit(&self, number: u32, hash: u64) -> PageGuard<'_> {
        self.counts.add(Count::RawHits, 1);
        if self.wants_hits {
            self.note_hit(number);
        }
        // SAFETY: it is raw, and pinned by the caller.
        let guard = unsafe { PageGuard::of_entry(self, number) };
        self.follow(hash, guard.len());
        guard
    }

    /// A get that has to wait, or to read.
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
            match entry.pin(1) {
                Some(state) if state.kind() == RAW => {
                    drop(locked);
                    return Ok(self.raw_hit(number, hash));
                }
                Some(state) => {
                    drop(locked);
                    return self.compressed_hit(number, state, page, hash);
                }
                None if entry.state().kind() == LOADING => locked.wait(),
                None => {
                    // It is changing its place, for some nanoseconds.
                    drop(locked);
                    patience.wait();
                }
            }
        }
    }

    /// Reads an entry's page from the store.
    fn load(&self, number: u32, page: PageId, hash: u64, shard: &Shard) -> Result<PageGuard<'_>, PoolError> {
        match self.read(page) {
            Ok(Read::Pooled(frame, in_hand)) => {
                self.publish(number, hash, frame, shard, in_hand);
                // SAFETY: it is raw, and pinned since it was published.
                Ok(unsafe { PageGuard::of_entry(self, number) })
            }
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

    /// Reads a page, into a frame if one is to be had.
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

    /// A hit on a compressed page that is pinned; `state` is what it is since.
    fn compressed_hit(&self, number: u32, state: State, page: PageId, hash: u64) -> Result<PageGuard<'_>, PoolError> {
        let entry = self.entries.at(number);
        let len = entry.len();
        self.follow(hash, len);
        if state.popularity() >= self.restore_after
            && let Some(guard) = self.restore(number, hash)
        {
            self.counts.add(Count::CompressedHits, 1);
            return Ok(guard);
        }
        let decoded = zeroed(len).and_then(|mut copy| {
            self.decode(number, &mut copy)?;
            Ok(copy)
        });
        self.unpin(number);
        match decoded {
            Ok(copy) => {
                self.counts.add(Count::CompressedHits, 1);
                Ok(PageGuard::of_copy(self, copy))
            }
            // The store has it, most likely.
            Err(PoolError::Codec(_)) if self.drop_undecodable(number, page, hash) => {
                self.get_slowly(page, hash, self.index.shard(hash))
            }
            Err(error) => Err(error),
        }
    }

    /// Decodes a compressed page that the caller has pinned.
    pub(super) fn decode(&self, number: u32, into: &mut [u8]) -> Result<(), PoolError> {
        let entry = self.entries.at(number);
        let Some(engine) = &self.engine else {
            return Ok(());
        };
        // SAFETY: the caller has pinned the entry, and takes the pin away when this has returned.
        let block = unsafe { entry.bytes() };
        let start = Instant::now();
        engine.decompress(block, None, into)?;
        self.costs.decompress(into.len() as u32, nanoseconds(start));
        Ok(())
    }

    /// Makes a compressed page that the caller has pinned a raw one, and returns the guard with the caller's pin; [`None`] when
    /// there is no room, or somebody else has pinned it.
    fn restore(&self, number: u32, hash: u64) -> Option<PageGuard<'_>> {
        let entry = self.entries.at(number);
        let len = entry.len();
        let mut frame = self.frame_to_restore(len)?;
        if self.decode(number, frame.bytes_mut()).is_err() || self.mark_if_alone(number, CLAIMED).is_none() {
            self.frames.free(frame);
            return None;
        }
        self.log.dead(entry);
        entry.put_frame(frame);
        entry.change(|state| State(state.with_kind(RAW).0 & !CLAIMED));
        self.list_new(number, hash);
        self.counts.add(Count::Restorations, 1);
        // SAFETY: it is raw, and pinned by the caller.
        Some(unsafe { PageGuard::of_entry(self, number) })
    }

    /// Drops a page whose compressed form does not decode; returns whether it is worth a new look. It stays if the store has not got it.
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
