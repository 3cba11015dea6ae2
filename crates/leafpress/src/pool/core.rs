//! Finding and reading pages.
//!
//! Locks are taken in this order, and none but these is held while another is taken: the one of flushes, the log, a shard of the index,
//! the raw space's order or what is unsynced, the frames. None but the first is held during a store's or a codec's work.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use super::adaptive::{Adaptive, Costs};
use super::counts::{Count, Counts};
use super::entry::{CLAIMED, COMPRESSED, DETACHED, DIRTY, Entries, Entry, LISTED, LOADING, PIN, RAW, State};
use super::frames::{Frame, Frames};
use super::guard::PageGuard;
use super::index::{Index, Locked, Shard, hash};
use super::log::Log;
use super::store::PageStore;
use super::sweep::RawSpace;
use super::unsynced::Unsynced;
use super::waiters::{InHand, Waiters};
use super::workers::Workers;
use super::{PageId, PolicyKind, PoolError};
use crate::codec::Engine;
use crate::sync::{Mutex, Patience};

/// Pages that are read or written at once.
pub(super) const BATCH_PAGES: usize = 64;

/// A pool's insides.
pub(super) struct Core {
    pub(super) store: Box<dyn PageStore>,
    pub(super) max_page_bytes: usize,
    /// Memory that a page may need at once, in bytes.
    pub(super) max_run_bytes: usize,
    /// [`None`]: nothing is compressed.
    pub(super) engine: Option<Arc<dyn Engine>>,
    pub(super) policy: PolicyKind,
    pub(super) wants_hits: bool,
    pub(super) restore_after: u8,
    pub(super) budget: AtomicUsize,
    /// [`None`]: the share is fixed.
    pub(super) adaptive: Option<Adaptive>,
    pub(super) costs: Arc<Costs>,
    /// Percent of the budget for raw pages, where it is fixed.
    pub(super) raw_percent: f64,

    pub(super) entries: Entries,
    pub(super) index: Index,
    pub(super) index_bytes: AtomicUsize,
    pub(super) frames: Frames,
    pub(super) log: Log,
    pub(super) unsynced: Unsynced,
    pub(super) raw: Mutex<RawSpace>,
    /// Entries below this number have a place in the order.
    pub(super) places: AtomicU32,
    pub(super) policy_bytes: AtomicUsize,
    pub(super) waiters: Waiters,
    pub(super) workers: Workers,
    /// Bytes of decoded copies in callers' hands.
    pub(super) copy_bytes: AtomicUsize,
    pub(super) counts: Counts,
}

/// A page's store operation that failed.
pub(super) fn store_error(page: PageId, operation: &'static str, source: io::Error) -> PoolError {
    match source.kind() {
        io::ErrorKind::NotFound => PoolError::NotFound { page },
        // There may be none for the error either.
        io::ErrorKind::OutOfMemory => PoolError::OutOfMemory { bytes: 0 },
        _ => PoolError::Store {
            page,
            operation,
            source: Arc::new(source),
        },
    }
}

/// Runs an operation of the store. One that panics has failed: others wait for its end, and it may not keep what it has in hand.
pub(super) fn operate<R>(operation: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
    catch_unwind(AssertUnwindSafe(operation)).unwrap_or_else(|panic| {
        // Its destructor might panic, too.
        std::mem::forget(panic);
        Err(io::Error::other("the store panicked"))
    })
}

/// Room for so many.
pub(super) fn room_for<T>(count: usize) -> Result<Vec<T>, PoolError> {
    let mut room = Vec::new();
    let bytes = count * size_of::<T>();
    room.try_reserve_exact(count)
        .map_err(|_| PoolError::OutOfMemory { bytes })?;
    Ok(room)
}

/// So many zeros.
pub(super) fn zeroed(bytes: usize) -> Result<Vec<u8>, PoolError> {
    let mut zeros = room_for(bytes)?;
    zeros.resize(bytes, 0);
    Ok(zeros)
}

/// A page that was read.
enum Read<'c> {
    /// Into a frame: its length, and the room in hand.
    Pooled(Frame, usize, InHand<'c>),
    /// Into memory of its own: the pool is full of pages that cannot be written.
    Past(Vec<u8>),
}

pub(super) fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

impl Core {
    pub(super) fn shard(&self, page: PageId) -> (u64, &Shard) {
        let hash = hash(page);
        (hash, self.index.shard(hash))
    }

    /// Takes a pin away.
    #[inline]
    pub(super) fn unpin(&self, number: u32) {
        if self.entries.at(number).unpin_is_last() {
            self.free(number);
        }
    }

    /// Marks an entry that nobody but the caller, who has pinned it once, has in hand; see [`super::entry`].
    pub(super) fn mark_if_alone(&self, number: u32, mark: u64) -> Option<State> {
        let entry = self.entries.at(number);
        let marked = entry.mark_if_pinned_once(mark)?;
        if self.counts.is_held(number) {
            entry.clear(mark);
            return None;
        }
        Some(marked)
    }

    /// Frees an entry that is out of the index, out of the lists, and not pinned; later, if some thread still holds its page.
    #[cold]
    fn free(&self, number: u32) {
        if !self.counts.is_held(number) {
            self.free_now(number);
        } else if let Err(mut limbo) = self.counts.put_in_limbo(number) {
            // It is full: some of those in it are held no more, because threads can hold no more than it has room for.
            while limbo.len() == limbo.capacity() {
                self.free_from(&mut limbo);
            }
            limbo.push(number);
        }
    }

    /// Frees the entries in limbo that nobody holds any more.
    pub(super) fn clear_limbo(&self) {
        self.free_from(&mut self.counts.limbo());
    }

    fn free_from(&self, limbo: &mut Vec<u32>) {
        limbo.retain(|&number| {
            let is_held = self.counts.is_held(number);
            if !is_held {
                self.free_now(number);
            }
            is_held
        });
    }

    fn free_now(&self, number: u32) {
        let entry = self.entries.at(number);
        match entry.state().kind() {
            RAW => self.free_frame(entry.place(), entry.aux()),
            COMPRESSED => self.log.dead(entry),
            _ => {}
        }
        self.entries.free(number);
    }

    pub(super) fn free_frame(&self, place: *mut u8, run: u32) {
        if let Some(start) = std::ptr::NonNull::new(place) {
            self.frames.free(Frame { start, run });
        }
    }

    /// Where an access is followed, tells the adaptive share.
    #[inline]
    pub(super) fn follow(&self, hash: u64, len: usize) {
        if let Some(adaptive) = &self.adaptive
            && adaptive.follows(hash)
        {
            let is_pressing = adaptive.accessed(hash, len as u32);
            if is_pressing && self.workers.are_there() {
                self.workers.wake();
            } else if is_pressing {
                self.decide();
            }
        }
    }

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

    /// Puts an entry in the index that is loading.
    pub(super) fn begin_loading(&self, locked: &mut Locked<'_>, page: PageId, hash: u64) -> Result<u32, PoolError> {
        let number = self.new_entry(page)?;
        match locked.reserve() {
            Ok(grown) => self.index_bytes.fetch_add(grown, Relaxed),
            Err(error) => {
                self.entries.free(number);
                return Err(error);
            }
        };
        locked.insert(hash, number);
        Ok(number)
    }

    /// An entry that is loading, with a place in the order in which pages leave.
    pub(super) fn new_entry(&self, page: PageId) -> Result<u32, PoolError> {
        let bytes = size_of::<Entry>();
        let out_of_memory = PoolError::OutOfMemory { bytes };
        let Some(number) = self.entries.allocate(page, LOADING) else {
            return Err(out_of_memory);
        };
        // Numbers are used again: there is a place for most.
        if number >= self.places.load(Relaxed) {
            let mut raw = self.raw.lock();
            if !raw.policy.reserve(number as usize + 1) {
                drop(raw);
                self.entries.free(number);
                return Err(out_of_memory);
            }
            self.places.fetch_max(number + 1, Relaxed);
        }
        Ok(number)
    }

    /// The loading failed: takes the entry out again.
    pub(super) fn end_loading(&self, number: u32, hash: u64, shard: &Shard) {
        let mut locked = shard.lock();
        locked.remove(hash, number);
        self.entries.free(number);
        locked.notify();
    }

    /// Reads an entry's page from the store.
    fn load(&self, number: u32, page: PageId, hash: u64, shard: &Shard) -> Result<PageGuard<'_>, PoolError> {
        match self.read(page) {
            Ok(Read::Pooled(frame, len, in_hand)) => {
                self.publish(number, hash, frame, len, shard, in_hand);
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
        let Some(frame) = self.frame_to_read(page, len)? else {
            let mut bytes = zeroed(len)?;
            self.read_into(page, &mut bytes)?;
            return Ok(Read::Past(bytes));
        };
        let in_hand = self.waiters.take_in_hand();
        // SAFETY: the frame is this long and nobody else's; frames are zeroed or were written.
        let into = unsafe { std::slice::from_raw_parts_mut(frame.start.as_ptr(), len) };
        match self.read_into(page, into) {
            Ok(()) => Ok(Read::Pooled(frame, len, in_hand)),
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

    /// Makes an entry that was loading a raw page, pinned once.
    pub(super) fn publish(&self, number: u32, hash: u64, frame: Frame, len: usize, shard: &Shard, in_hand: InHand<'_>) {
        let entry = self.entries.at(number);
        entry.put(frame.start.as_ptr(), len, frame.run);
        entry.change(|_| State(RAW | PIN));
        shard.lock().notify();
        self.list(number, hash);
        drop(in_hand);
        self.fit();
    }

    /// Puts a raw page that is new, and that the caller has pinned, in the order in which pages leave.
    pub(super) fn list_new(&self, number: u32, hash: u64) {
        self.list(number, hash);
        self.fit();
    }

    /// Puts a raw page that the caller has pinned in the order in which pages leave.
    pub(super) fn list(&self, number: u32, hash: u64) {
        let mut raw = self.raw.lock();
        self.list_locked(&mut raw, number, hash);
        self.policy_bytes.store(raw.bytes(), Relaxed);
    }

    /// As [`Core::list`]; the page may be one that was in the order until the lock was taken, instead of a pinned one.
    pub(super) fn list_locked(&self, raw: &mut RawSpace, number: u32, hash: u64) {
        let entry = self.entries.at(number);
        // Who takes a page out of the index marks it so before it asks for this lock.
        if !entry.state().has(DETACHED) {
            entry.set(LISTED);
            raw.insert(number, hash);
        }
    }

    /// Takes a page out of the index; the shard is locked. It stays pinned: [`Core::forget`] has to follow, without the lock.
    pub(super) fn detach(&self, locked: &mut Locked<'_>, hash: u64, number: u32) {
        self.entries
            .at(number)
            .change(|state| State((state.0 + PIN) | DETACHED));
        locked.remove(hash, number);
    }

    /// Ends what [`Core::detach`] began.
    pub(super) fn forget(&self, number: u32) {
        let entry = self.entries.at(number);
        {
            let mut raw = self.raw.lock();
            if entry.clear(LISTED).has(LISTED) {
                raw.remove(number);
            }
        }
        self.unpin(number);
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
        // SAFETY: while the entry is pinned its block stays where it is, and nobody writes it.
        let block = unsafe { std::slice::from_raw_parts(entry.place(), entry.aux() as usize) };
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
        let frame = self.frame_to_restore(len)?;
        // SAFETY: the frame is this long and nobody else's; frames are zeroed or were written.
        let into = unsafe { std::slice::from_raw_parts_mut(frame.start.as_ptr(), len) };
        if self.decode(number, into).is_err() || self.mark_if_alone(number, CLAIMED).is_none() {
            self.frames.free(frame);
            return None;
        }
        self.log.dead(entry);
        entry.put(frame.start.as_ptr(), len, frame.run);
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
