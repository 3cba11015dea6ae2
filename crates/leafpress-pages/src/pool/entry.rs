//! The table's entries: one for every page that is here, on its way in, or still pinned by someone.
//!
//! An entry's memory is never given back while the pool lives, only used again for another page. So a reader may look at an entry that
//! the index named a moment ago without any protection: it pins the entry first, with a compare-and-swap that fails on an entry that is
//! free, loading or changing, and then checks that it is still the page it wants. From then on nothing of the entry changes until it is
//! unpinned.
//!
//! Most readers of raw pages do not even pin: they note the entry in a slot of their thread (`counts`), and then look at its state. Who wants
//! an entry to itself marks it first, and then looks at all slots.
//!
//! The state is one word:
//!
//! ```text
//! bits  0..24  pins: a page that is pinned neither moves nor goes
//!      24..30  popularity: hits, halved now and then
//!      32..34  kind: free, loading, raw, compressed
//!          36  dirty: the store has an older version, or none
//!          37  detached: not in the index any more; who takes the last pin away frees the entry
//!          38  claimed: changing its place; nobody can pin it for that moment
//!          39  listed: in the policy's order; changed under the policy's lock
//!          40  unsynced: the store was given this version, and may not have made it lasting (`unsynced`)
//!          41  in which round that was, an odd one or an even one
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

/// A state word, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct State(pub(super) u64);

impl State {
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

    /// The store has been given this version in this round.
    pub(super) fn written_in(self, round: u64) -> Self {
        let odd = if round % 2 == 1 { ODD_ROUND } else { 0 };
        Self(self.0 & !(DIRTY | UNWRITABLE | ODD_ROUND) | UNSYNCED | odd)
    }

    /// Whether the store may not have made lasting what it was given: then in which of the rounds it was, by whether that is odd.
    pub(super) fn unsynced_round_is_odd(self) -> Option<bool> {
        self.has(UNSYNCED).then(|| self.has(ODD_ROUND))
    }

    /// What the store was given lasts.
    pub(super) fn synced(self) -> Self {
        Self(self.0 & !(UNSYNCED | ODD_ROUND))
    }

    /// What the store was given may be lost, so that it has to be written again.
    pub(super) fn to_be_written_again(self) -> Self {
        Self(self.synced().0 | DIRTY)
    }

    /// Whether a reader may pin it: it is here, in the index, and not changing.
    #[inline]
    fn can_be_pinned(self) -> bool {
        self.0 & (DETACHED | CLAIMED) == 0 && self.kind() >= RAW && self.pins() < PINS
    }
}

/// An entry. What is not the state is written by whoever has the entry to itself: as it is allocated, or while it is claimed.
#[derive(Debug)]
pub(super) struct PageSlot {
    pub(super) state: AtomicU64,
    page: AtomicU64,
    place: AtomicPtr<u8>,
    /// The raw length in the low half; in the high half the frame's run, or the length as it is stored.
    info: AtomicU64,
}

/// What an entry kept: a frame, if the page was raw.
#[must_use]
pub(super) struct Kept(Option<(NonNull<u8>, u32, usize)>);

impl Kept {
    /// The frame, which nobody reads any more.
    pub(super) fn into_frame(self, frames: &Frames) -> Option<Frame<'_>> {
        let (start, run, len) = self.0?;
        // SAFETY: `PageSlot::put_frame` kept the parts, and `PageSlot::take` gave them out once.
        Some(unsafe { Frame::from_parts(frames, start, run, len) })
    }
}

impl PageSlot {
    pub(super) fn state(&self) -> State {
        State(self.state.load(Acquire))
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

    /// Only for the one who has the entry to itself.
    fn put(&self, place: *mut u8, len: usize, aux: u32) {
        self.place.store(place, Relaxed);
        self.info.store(u64::from(aux) << 32 | len as u64, Relaxed);
    }

    /// Keeps a raw page's frame, in place of what this returns. Only for the one who has the entry to itself.
    pub(super) fn put_frame(&self, frame: Frame<'_>) -> Kept {
        let kept = self.take();
        let (start, run, len) = frame.into_parts();
        self.put(start.as_ptr(), len, run);
        kept
    }

    /// Keeps where a page is in the log, in place of what this returns. Only for the one who has the entry to itself.
    pub(super) fn put_block(&self, place: *mut u8, stored: u32) -> Kept {
        let kept = self.take();
        self.put(place, self.len(), stored);
        kept
    }

    /// Takes out what the entry keeps. Only for the one who has the entry to itself.
    pub(super) fn take(&self) -> Kept {
        let place = self.place.swap(std::ptr::null_mut(), Relaxed);
        let start = NonNull::new(place).filter(|_| self.state().kind() == RAW);
        Kept(start.map(|start| (start, self.aux(), self.len())))
    }

    /// The page's bytes as they are kept, raw or compressed.
    ///
    /// # Safety
    /// The caller has pinned the entry, and keeps the pin as long as it has the bytes: a page that is pinned neither moves nor goes,
    /// and nobody writes it.
    pub(super) unsafe fn bytes(&self) -> &[u8] {
        let len = match self.state().kind() {
            COMPRESSED => self.aux() as usize,
            _ => self.len(),
        };
        // SAFETY: as the caller promises; whoever put the place there put so many bytes in it.
        unsafe { std::slice::from_raw_parts(self.place(), len) }
    }

    /// Pins the entry and counts `hits`, 0 or 1, if a page is here that can be pinned; returns the state it has then. Whether it is
    /// the page that is wanted is for the caller to look at: it may have become another's on the way here.
    #[inline]
    pub(super) fn pin(&self, hits: u64) -> Option<State> {
        let mut state = State(self.state.load(Relaxed));
        loop {
            if !state.can_be_pinned() {
                return None;
            }
            let hit = u64::from(state.popularity() < MAX_POPULARITY) & hits;
            let pinned = state.0 + PIN + (hit << POPULARITY_SHIFT);
            match self.state.compare_exchange_weak(state.0, pinned, Acquire, Relaxed) {
                Ok(_) => return Some(State(pinned)),
                Err(now) => state = State(now),
            }
        }
    }

    /// Pins the entry once more if it is pinned, and returns the state it has then.
    pub(super) fn pin_again(&self) -> Option<State> {
        let mut state = State(self.state.load(Relaxed));
        while (1..PINS).contains(&state.pins()) {
            match self
                .state
                .compare_exchange_weak(state.0, state.0 + PIN, Acquire, Relaxed)
            {
                Ok(before) => return Some(State(before + PIN)),
                Err(now) => state = State(now),
            }
        }
        None
    }

    /// Whether the entry, which the caller has just put in a slot of its own, is this page, raw, and not marked: then it stays so
    /// while it is in the slot. Counts a hit.
    #[inline]
    pub(super) fn is_held_raw(&self, page: PageId) -> bool {
        let state = State(self.state.load(SeqCst));
        if state.0 & (DETACHED | CLAIMED) != 0 || state.kind() != RAW || self.page() != page {
            return false;
        }
        if state.popularity() < MAX_POPULARITY {
            let hit = state.0 + (1 << POPULARITY_SHIFT);
            // A hit that is lost because the state changes at the same time is no harm.
            let _ = self.state.compare_exchange_weak(state.0, hit, Relaxed, Relaxed);
        }
        true
    }

    /// Takes a pin away, and returns whether that was the last one of a detached entry: the caller then frees it.
    #[inline]
    #[must_use]
    pub(super) fn unpin_is_last(&self) -> bool {
        let before = State(self.state.fetch_sub(PIN, AcqRel));
        debug_assert!(before.pins() > 0);
        before.pins() == 1 && before.has(DETACHED)
    }

    /// Marks an entry that is pinned by the caller alone and in the index with `mark`, unless that is not so any more. Threads that hold
    /// its page without a pin are not seen here.
    pub(super) fn mark_if_pinned_once(&self, mark: u64) -> Option<State> {
        let mut state = State(self.state.load(Relaxed));
        loop {
            if state.pins() != 1 || state.0 & (DETACHED | CLAIMED) != 0 {
                return None;
            }
            let marked = State(state.0 | mark);
            match self.state.compare_exchange_weak(state.0, marked.0, SeqCst, Relaxed) {
                Ok(_) => return Some(marked),
                Err(now) => state = State(now),
            }
        }
    }

    /// Changes the state to what `next` makes of it, and returns the state before. It may be a mark, after which slots are looked at.
    pub(super) fn change(&self, next: impl Fn(State) -> State) -> State {
        let mut state = State(self.state.load(Relaxed));
        loop {
            match self
                .state
                .compare_exchange_weak(state.0, next(state).0, SeqCst, Relaxed)
            {
                Ok(_) => return state,
                Err(now) => state = State(now),
            }
        }
    }

    pub(super) fn set(&self, bits: u64) -> State {
        State(self.state.fetch_or(bits, AcqRel))
    }

    pub(super) fn clear(&self, bits: u64) -> State {
        State(self.state.fetch_and(!bits, AcqRel))
    }
}

/// Entries in the first chunk, a power of two; every next chunk is twice as long. Where steps are slow, so few that there are some chunks.
const FIRST: u32 = if cfg!(any(miri, shuttle)) { 8 } else { 256 };
const CHUNKS: usize = 24;

/// All entries of a pool, by number.
pub(super) struct Entries {
    chunks: [AtomicPtr<PageSlot>; CHUNKS],
    free: Mutex<FreeList>,
    /// Entries that were ever used: the memory behind them is untouched.
    used: AtomicU32,
}

#[derive(Debug, Default)]
struct FreeList {
    /// Entries chained through their `info`; one more than the number, 0 for none.
    first: u32,
    used: u32,
}

/// The chunk of an entry and its place there.
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

    /// The entry of a number that [`Entries::allocate`] gave out at some time.
    #[inline]
    pub(super) fn at(&self, entry: u32) -> &PageSlot {
        let (chunk, place) = locate(entry);
        let chunk = self.chunks[chunk].load(Acquire);
        debug_assert!(!chunk.is_null());
        // SAFETY: numbers are given out after their chunk is there; chunks stay until the pool goes.
        unsafe { &*chunk.add(place) }
    }

    /// An entry for `page`, in `state`; [`None`] when there is no memory.
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
                    // Who goes through all numbers finds their chunks.
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

    /// Takes an entry back that nobody has a pin on and that is neither in the index nor in a list.
    pub(super) fn free(&self, number: u32) {
        let entry = self.at(number);
        entry.state.store(FREE, Release);
        let mut free = self.free.lock();
        entry.put(std::ptr::null_mut(), 0, free.first);
        free.first = number + 1;
    }

    /// Entries that were ever used: all numbers are below.
    pub(super) fn used(&self) -> u32 {
        self.used.load(Acquire)
    }

    /// Memory that is touched, in bytes.
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
        // SAFETY: as the caller promises.
        unsafe { std::alloc::dealloc(chunk.cast(), layout) };
    }
}

/// The model checker's atomics are no plain zeros.
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
    // SAFETY: as the caller promises.
    drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(chunk, len)) });
}

impl Drop for Entries {
    fn drop(&mut self) {
        for (at, chunk) in self.chunks.iter().enumerate() {
            let chunk = chunk.load(Acquire);
            if !chunk.is_null() {
                // SAFETY: `new_chunk` made it with this length, and nobody looks at it any more.
                unsafe { drop_chunk(chunk, chunk_len(at)) };
            }
        }
    }
}

impl Pages for Entries {
    fn popularity(&self, slot: u32) -> u8 {
        State(self.at(slot).state.load(Relaxed)).popularity()
    }

    fn set_popularity(&self, slot: u32, popularity: u8) {
        self.at(slot).change(|state| state.with_popularity(popularity));
    }

    fn is_pinned(&self, slot: u32) -> bool {
        State(self.at(slot).state.load(Relaxed)).pins() > 0
    }
}
