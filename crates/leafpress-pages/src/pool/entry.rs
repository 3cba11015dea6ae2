//! The table's entries: one per page that is in the pool, being loaded, or still pinned after its removal.
//!
//! An entry's memory is never freed while the pool lives, only reused for another page. So a reader may access an entry
//! found in the index without protection: it pins the entry first, by a compare-and-swap that fails on an entry that is
//! free, loading or changing, and then checks that it is still the wanted page's. From then on the entry does not
//! change until it is unpinned.
//!
//! Most readers of raw pages do not pin: they publish the entry in a hazard slot of their thread (`counts`), and then
//! examine its state. A thread that needs exclusive access marks the entry first, and then scans all slots.
//!
//! The state is one word:
//!
//! ```text
//! bits  0..24  pins: a pinned page is neither moved nor freed
//!      24..30  popularity: hits, halved periodically
//!      32..34  kind: free, loading, raw, compressed
//!          36  dirty: the store has an older version, or none
//!          37  detached: not in the index any more; the thread that removes the last pin frees the entry
//!          38  claimed: being moved; it cannot be pinned meanwhile
//!          39  listed: in the eviction policy; changed under the policy's lock
//!          40  unsynced: written to the store and not synced yet (`unsynced`)
//!          41  the parity of the round of that write
//!          42  unwritable: dirty, and its last write failed
//! ```
//!
//! Dirty and unsynced change under the lock of the page's shard of the index.

use std::ptr::NonNull;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use super::frames::{Frame, Frames};
use crate::eviction::{MAX_POPULARITY, Pages};
use crate::store::PageId;
use leafpress_base::sync::{AtomicPtr, AtomicU32, AtomicU64, Mutex};

pub(super) const PIN: u64 = 1;
const PINS: u64 = (1 << 24) - 1;
const POPULARITY_SHIFT: u32 = 24;
const POPULARITY: u64 = (MAX_POPULARITY as u64) << POPULARITY_SHIFT;
const KIND_SHIFT: u32 = 32;
const KIND: u64 = 3 << KIND_SHIFT;
pub(super) const FREE: u64 = 0;
pub(super) const LOADING: u64 = 1 << KIND_SHIFT;
pub(super) const RAW: u64 = 2 << KIND_SHIFT;
pub(super) const COMPRESSED: u64 = 3 << KIND_SHIFT;
pub(super) const DIRTY: u64 = 1 << 36;
pub(super) const DETACHED: u64 = 1 << 37;
pub(super) const CLAIMED: u64 = 1 << 38;
pub(super) const LISTED: u64 = 1 << 39;
const UNSYNCED: u64 = 1 << 40;
const ODD_ROUND: u64 = 1 << 41;
pub(super) const UNWRITABLE: u64 = 1 << 42;

/// A decoded state word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageState(pub(super) u64);

impl PageState {
    #[inline]
    pub(super) fn kind(self) -> u64 {
        self.0 & KIND
    }

    #[inline]
    pub(super) fn pins(self) -> u64 {
        self.0 & PINS
    }

    #[inline]
    pub(super) fn popularity(self) -> u8 {
        ((self.0 & POPULARITY) >> POPULARITY_SHIFT) as u8
    }

    #[inline]
    pub(super) fn has(self, bits: u64) -> bool {
        self.0 & bits == bits
    }

    pub(super) fn with_popularity(self, popularity: u8) -> Self {
        Self(self.0 & !POPULARITY | u64::from(popularity.min(MAX_POPULARITY)) << POPULARITY_SHIFT)
    }

    pub(super) fn with_kind(self, kind: u64) -> Self {
        Self(self.0 & !KIND | kind)
    }

    /// Returns the state after a write of this version to the store in this round.
    pub(super) fn written_in(self, round: u64) -> Self {
        let odd = if round % 2 == 1 { ODD_ROUND } else { 0 };
        Self(self.0 & !(DIRTY | UNWRITABLE | ODD_ROUND) | UNSYNCED | odd)
    }

    /// Returns [`None`] if the page is synced; otherwise whether the round in which it was written is odd.
    pub(super) fn unsynced_round_is_odd(self) -> Option<bool> {
        self.has(UNSYNCED).then(|| self.has(ODD_ROUND))
    }

    /// Returns the state after a successful sync.
    pub(super) fn synced(self) -> Self {
        Self(self.0 & !(UNSYNCED | ODD_ROUND))
    }

    /// Returns the state after a failed sync, whose page has to be written again.
    pub(super) fn to_be_written_again(self) -> Self {
        Self(self.synced().0 | DIRTY)
    }

    /// Returns true if a reader may pin the entry: it is present, in the index, and not changing.
    #[inline]
    fn can_be_pinned(self) -> bool {
        self.0 & (DETACHED | CLAIMED) == 0 && self.kind() >= RAW && self.pins() < PINS
    }
}

/// An entry. Everything except the state is written by a thread with exclusive access: during its allocation, or while
/// it is claimed.
#[derive(Debug)]
pub(super) struct PageSlot {
    pub(super) state: AtomicU64,
    page: AtomicU64,
    place: AtomicPtr<u8>,
    /// The raw length in the low half; in the high half the frame's run, or the stored length.
    info: AtomicU64,
}

/// The contents that an entry had: a frame, if the page was raw.
#[must_use]
pub(super) struct Kept(Option<(NonNull<u8>, u32, usize)>);

impl Kept {
    /// Returns the frame, which has no readers any more.
    pub(super) fn into_frame(self, frames: &Frames) -> Option<Frame<'_>> {
        let (start, run, len) = self.0?;
        // SAFETY: `PageSlot::put_frame` stored the parts of a frame, and `PageSlot::take` returned them once.
        Some(unsafe { Frame::from_parts(frames, start, run, len) })
    }
}

impl PageSlot {
    pub(super) fn state(&self) -> PageState {
        PageState(self.state.load(Acquire))
    }

    #[inline]
    pub(super) fn page(&self) -> PageId {
        self.page.load(Relaxed)
    }

    #[inline]
    pub(super) fn place(&self) -> *mut u8 {
        self.place.load(Relaxed)
    }

    /// The page's length in bytes.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.info.load(Relaxed) as u32 as usize
    }

    /// The run of a raw page's frame; the stored length of a compressed page.
    pub(super) fn aux(&self) -> u32 {
        (self.info.load(Relaxed) >> 32) as u32
    }

    /// Requires exclusive access to the entry.
    fn put(&self, place: *mut u8, len: usize, aux: u32) {
        self.place.store(place, Relaxed);
        self.info.store(u64::from(aux) << 32 | len as u64, Relaxed);
    }

    /// Stores a raw page's frame, and returns the previous contents. Requires exclusive access to the entry.
    pub(super) fn put_frame(&self, frame: Frame<'_>) -> Kept {
        let kept = self.take();
        let (start, run, len) = frame.into_parts();
        self.put(start.as_ptr(), len, run);
        kept
    }

    /// Stores a page's address in the log, and returns the previous contents. Requires exclusive access to the entry.
    pub(super) fn put_block(&self, place: *mut u8, stored: u32) -> Kept {
        let kept = self.take();
        self.put(place, self.len(), stored);
        kept
    }

    /// Takes the contents out of the entry. Requires exclusive access to the entry.
    pub(super) fn take(&self) -> Kept {
        let place = self.place.swap(std::ptr::null_mut(), Relaxed);
        let start = NonNull::new(place).filter(|_| self.state().kind() == RAW);
        Kept(start.map(|start| (start, self.aux(), self.len())))
    }

    /// Returns the page's stored bytes, raw or compressed.
    ///
    /// # Safety
    /// The caller must have pinned the entry, and must keep the pin as long as it uses the bytes: a pinned page is not
    /// moved, freed or written.
    pub(super) unsafe fn bytes(&self) -> &[u8] {
        let len = match self.state().kind() {
            COMPRESSED => self.aux() as usize,
            _ => self.len(),
        };
        // SAFETY: the caller holds a pin, so the page is not moved, freed or written; the thread that stored the
        // address wrote `len` bytes there.
        unsafe { std::slice::from_raw_parts(self.place(), len) }
    }

    /// Pins the entry and counts `hits`, 0 or 1, if it has a page that can be pinned; returns the new state. The caller
    /// has to check that it is the wanted page: the entry may have been reused.
    #[inline]
    pub(super) fn pin(&self, hits: u64) -> Option<PageState> {
        let mut state = PageState(self.state.load(Relaxed));
        loop {
            if !state.can_be_pinned() {
                return None;
            }
            let hit = u64::from(state.popularity() < MAX_POPULARITY) & hits;
            let pinned = state.0 + PIN + (hit << POPULARITY_SHIFT);
            match self.state.compare_exchange_weak(state.0, pinned, Acquire, Relaxed) {
                Ok(_) => return Some(PageState(pinned)),
                Err(now) => state = PageState(now),
            }
        }
    }

    /// Adds a pin to an entry that is pinned already; returns the new state.
    pub(super) fn pin_again(&self) -> Option<PageState> {
        let mut state = PageState(self.state.load(Relaxed));
        while (1..PINS).contains(&state.pins()) {
            match self
                .state
                .compare_exchange_weak(state.0, state.0 + PIN, Acquire, Relaxed)
            {
                Ok(before) => return Some(PageState(before + PIN)),
                Err(now) => state = PageState(now),
            }
        }
        None
    }

    /// Returns true if the entry, which the caller has just published in a hazard slot, is this page, raw, and not
    /// marked: then it stays so while it is in the slot. Counts a hit.
    #[inline]
    pub(super) fn is_held_raw(&self, page: PageId) -> bool {
        let state = PageState(self.state.load(SeqCst));
        if state.0 & (DETACHED | CLAIMED) != 0 || state.kind() != RAW || self.page() != page {
            return false;
        }
        if state.popularity() < MAX_POPULARITY {
            let hit = state.0 + (1 << POPULARITY_SHIFT);
            // Best effort: losing a hit to a concurrent change of the state is harmless.
            let _ = self.state.compare_exchange_weak(state.0, hit, Relaxed, Relaxed);
        }
        true
    }

    /// Removes a pin, and returns true if it was the last one of a detached entry: the caller then frees it.
    #[inline]
    #[must_use]
    pub(super) fn unpin_is_last(&self) -> bool {
        let before = PageState(self.state.fetch_sub(PIN, AcqRel));
        debug_assert!(before.pins() > 0);
        before.pins() == 1 && before.has(DETACHED)
    }

    /// Marks an entry that only the caller has pinned and that is in the index with `mark`; [`None`] if that is no
    /// longer so. Holds in hazard slots are not checked.
    pub(super) fn mark_if_pinned_once(&self, mark: u64) -> Option<PageState> {
        let mut state = PageState(self.state.load(Relaxed));
        loop {
            if state.pins() != 1 || state.0 & (DETACHED | CLAIMED) != 0 {
                return None;
            }
            let marked = PageState(state.0 | mark);
            match self.state.compare_exchange_weak(state.0, marked.0, SeqCst, Relaxed) {
                Ok(_) => return Some(marked),
                Err(now) => state = PageState(now),
            }
        }
    }

    /// Updates the state with `next`, and returns the previous state. The update may set a mark, after which slots are
    /// scanned.
    pub(super) fn change(&self, next: impl Fn(PageState) -> PageState) -> PageState {
        let mut state = PageState(self.state.load(Relaxed));
        loop {
            match self
                .state
                .compare_exchange_weak(state.0, next(state).0, SeqCst, Relaxed)
            {
                Ok(_) => return state,
                Err(now) => state = PageState(now),
            }
        }
    }

    pub(super) fn set(&self, bits: u64) -> PageState {
        PageState(self.state.fetch_or(bits, AcqRel))
    }

    pub(super) fn clear(&self, bits: u64) -> PageState {
        PageState(self.state.fetch_and(!bits, AcqRel))
    }
}

/// Entries in the first chunk, a power of two; every next chunk is twice as long. Small under model checkers, so that
/// there are several chunks.
const FIRST: u32 = if cfg!(any(miri, shuttle)) { 8 } else { 256 };
const CHUNKS: usize = 24;

/// All entries of a pool, by number.
pub(super) struct Entries {
    chunks: [AtomicPtr<PageSlot>; CHUNKS],
    free: Mutex<FreeList>,
    /// Number of entries ever used: the memory behind them is untouched.
    used: AtomicU32,
}

#[derive(Debug, Default)]
struct FreeList {
    /// Head of the free list, chained through `info`: the number plus one, 0 for none.
    first: u32,
    used: u32,
}

/// The chunk of an entry and its index there.
#[inline]
fn locate(entry: u32) -> (usize, usize) {
    let at = u64::from(entry) + u64::from(FIRST);
    let chunk = at.ilog2() - FIRST.ilog2();
    (chunk as usize, (at - (u64::from(FIRST) << chunk)) as usize)
}

fn chunk_len(chunk: usize) -> usize {
    (FIRST as usize) << chunk
}

impl Entries {
    pub(super) fn new() -> Self {
        Self {
            chunks: std::array::from_fn(|_| AtomicPtr::new(std::ptr::null_mut())),
            free: Mutex::new(FreeList::default()),
            used: AtomicU32::new(0),
        }
    }

    /// Returns the entry of a number that [`Entries::allocate`] returned at some time.
    #[inline]
    pub(super) fn at(&self, entry: u32) -> &PageSlot {
        let (chunk, place) = locate(entry);
        let chunk = self.chunks[chunk].load(Acquire);
        debug_assert!(!chunk.is_null());
        // SAFETY: numbers are returned after their chunk was published; chunks live as long as the pool.
        unsafe { &*chunk.add(place) }
    }

    /// Allocates an entry for `page`, in `state`; [`None`] if there is no memory.
    pub(super) fn allocate(&self, page: PageId, state: u64) -> Option<u32> {
        let number = {
            let mut free = self.free.lock();
            match free.first.checked_sub(1) {
                Some(number) => {
                    free.first = self.at(number).aux();
                    number
                }
                None => {
                    let number = free.used;
                    let (chunk, place) = locate(number);
                    if chunk >= CHUNKS {
                        return None;
                    }
                    if place == 0 {
                        self.chunks[chunk].store(new_chunk(chunk_len(chunk))?, Release);
                    }
                    free.used += 1;
                    // Published after the chunk, so that iterations over all numbers find it.
                    self.used.store(free.used, Release);
                    number
                }
            }
        };
        let entry = self.at(number);
        entry.page.store(page, Relaxed);
        entry.put(std::ptr::null_mut(), 0, 0);
        entry.state.store(state, Release);
        Some(number)
    }

    /// Frees an entry that has no pin and is neither in the index nor in a list.
    pub(super) fn free(&self, number: u32) {
        let entry = self.at(number);
        entry.state.store(FREE, Release);
        let mut free = self.free.lock();
        entry.put(std::ptr::null_mut(), 0, free.first);
        free.first = number + 1;
    }

    /// Number of entries ever used: all numbers are below.
    pub(super) fn used(&self) -> u32 {
        self.used.load(Acquire)
    }

    /// Memory touched, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.used() as usize * size_of::<PageSlot>()
    }
}

#[cfg(not(shuttle))]
fn new_chunk(len: usize) -> Option<*mut PageSlot> {
    let layout = std::alloc::Layout::array::<PageSlot>(len).ok()?;
    // SAFETY: the layout is not empty. All zeros are free entries.
    let chunk = unsafe { std::alloc::alloc_zeroed(layout) };
    (!chunk.is_null()).then_some(chunk.cast())
}

#[cfg(not(shuttle))]
unsafe fn drop_chunk(chunk: *mut PageSlot, len: usize) {
    if let Ok(layout) = std::alloc::Layout::array::<PageSlot>(len) {
        // SAFETY: the caller guarantees that `new_chunk` allocated the chunk with this length, and that it has no
        // users.
        unsafe { std::alloc::dealloc(chunk.cast(), layout) };
    }
}

/// The model checker's atomics cannot be zero-initialised.
#[cfg(shuttle)]
fn new_chunk(len: usize) -> Option<*mut PageSlot> {
    let chunk: Box<[PageSlot]> = (0..len)
        .map(|_| PageSlot {
            state: AtomicU64::new(FREE),
            page: AtomicU64::new(0),
            place: AtomicPtr::new(std::ptr::null_mut()),
            info: AtomicU64::new(0),
        })
        .collect();
    Some(Box::into_raw(chunk).cast())
}

#[cfg(shuttle)]
unsafe fn drop_chunk(chunk: *mut PageSlot, len: usize) {
    // SAFETY: the caller guarantees that `new_chunk` allocated the chunk with this length, and that it has no users.
    drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(chunk, len)) });
}

impl Drop for Entries {
    fn drop(&mut self) {
        for (at, chunk) in self.chunks.iter().enumerate() {
            let chunk = chunk.load(Acquire);
            if !chunk.is_null() {
                // SAFETY: `new_chunk` allocated it with this length, and `&mut self` shows that it has no users.
                unsafe { drop_chunk(chunk, chunk_len(at)) };
            }
        }
    }
}

impl Pages for Entries {
    fn popularity(&self, slot: u32) -> u8 {
        PageState(self.at(slot).state.load(Relaxed)).popularity()
    }

    fn set_popularity(&self, slot: u32, popularity: u8) {
        self.at(slot).change(|state| state.with_popularity(popularity));
    }

    fn is_pinned(&self, slot: u32) -> bool {
        PageState(self.at(slot).state.load(Relaxed)).pins() > 0
    }
}
