//! The compressed space: a log of segments.
//!
//! Compressed pages are appended to the open segment. When the space exceeds its share, the oldest segment is
//! reclaimed: pages whose popularity earns them another round are copied to the open segment, the others are evicted,
//! and dead blocks cost nothing. So the space is packed whatever the lengths of its pages are, and the hand of CLOCK
//! and the cleaner of the log are one.
//!
//! A block is a header of eight bytes, with the entry's number and the stored length, the compressed page, and padding
//! to eight bytes. A block is live as long as its entry points at it. A block becomes live only under the log's lock.

use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::pool::entry::{CLAIMED, COMPRESSED, FREE, Kept, PageSlot, PageState};
use leafpress_base::mem::mapping::{Mapping, page_bytes};
use leafpress_base::sync::Mutex;

const HEADER_BYTES: usize = 8;
const MIN_SEGMENT_BYTES: usize = 16 << 10;
const MAX_SEGMENT_BYTES: usize = 256 << 10;
const PART_BYTES: usize = if cfg!(miri) { 1 << 20 } else { 64 << 20 };

/// Memory of a compressed page of `stored` bytes, without the slack at segments' ends.
pub(crate) const fn block_bytes(stored: usize) -> usize {
    (HEADER_BYTES + stored).next_multiple_of(HEADER_BYTES)
}

/// A closed segment and its length.
struct Closed {
    start: NonNull<u8>,
    end: usize,
}

#[derive(Default)]
struct LogState {
    parts: Vec<Mapping>,
    /// Bytes of the last part that are used for segments.
    cut: usize,
    /// Number of segments created: each of the lists below has capacity for all.
    segments: usize,
    /// Closed segments, oldest first.
    order: VecDeque<Closed>,
    open: Option<Closed>,
    /// Empty segments that are backed by memory.
    empty: Vec<NonNull<u8>>,
    /// Segments without memory.
    cold: Vec<NonNull<u8>>,
}

// SAFETY: the segments point into the parts, which `LogState` owns.
unsafe impl Send for LogState {}

pub(crate) struct Log {
    segment_bytes: usize,
    inner: Mutex<LogState>,
    bytes: AtomicUsize,
    /// Live blocks: their number, their stored bytes, and their decoded bytes.
    pages: AtomicUsize,
    stored: AtomicUsize,
    raw: AtomicUsize,
}

/// The outcome of an append.
pub(in crate::pool) enum Appended {
    /// The entry is compressed now; contains its previous contents.
    Done(Kept),
    /// Another thread has pinned or removed it.
    NotAlone,
    /// The space is full: a segment has to be reclaimed.
    NoRoom,
}

/// The decision about a page whose segment is reclaimed.
pub(crate) enum Turn {
    /// It stays for another round, with this popularity.
    Stays(u8),
    /// It was evicted.
    Left,
    /// It is pinned or cannot be evicted.
    Stuck,
}

/// The outcome of a reclamation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reclaimed {
    /// One more segment is free.
    Freed,
    /// The oldest segment still holds pinned pages; it becomes the youngest.
    Stuck,
    /// There was no closed segment.
    Nothing,
}

impl Log {
    /// Creates a log for pages of up to `max_page_bytes` in a pool of `budget_bytes`.
    pub(crate) fn new(budget_bytes: usize, max_page_bytes: usize) -> Self {
        let wanted = (budget_bytes / 64).clamp(MIN_SEGMENT_BYTES, MAX_SEGMENT_BYTES);
        let segment_bytes = wanted.max(block_bytes(max_page_bytes)).next_multiple_of(page_bytes());
        Self {
            segment_bytes,
            inner: Mutex::new(LogState::default()),
            bytes: AtomicUsize::new(0),
            pages: AtomicUsize::new(0),
            stored: AtomicUsize::new(0),
            raw: AtomicUsize::new(0),
        }
    }

    pub(crate) fn segment_bytes(&self) -> usize {
        self.segment_bytes
    }

    /// Memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Number of live pages, their stored bytes, and their decoded bytes.
    pub(crate) fn live(&self) -> (usize, usize, usize) {
        (
            self.pages.load(Relaxed),
            self.stored.load(Relaxed),
            self.raw.load(Relaxed),
        )
    }

    /// Accounts for a compressed page that becomes dead.
    pub(crate) fn dead(&self, entry: &PageSlot) {
        self.pages.fetch_sub(1, Relaxed);
        self.stored.fetch_sub(entry.aux() as usize, Relaxed);
        self.raw.fetch_sub(entry.len(), Relaxed);
    }

    /// Compresses a raw page that the caller has pinned into the log, within `limit` bytes of memory held. `claim`
    /// claims the entry, unless another thread has pinned or holds it.
    pub(crate) fn append(
        &self,
        number: u32,
        entry: &PageSlot,
        compressed: &[u8],
        limit: usize,
        claim: impl FnOnce() -> bool,
    ) -> Appended {
        let mut inner = self.inner.lock();
        let Some(block) = self.room(&mut inner, compressed.len(), limit) else {
            return Appended::NoRoom;
        };
        if !claim() {
            return Appended::NotAlone;
        }
        self.write(&mut inner, block, number, compressed);
        // SAFETY: the block is longer than its header.
        let place = unsafe { block.add(HEADER_BYTES) };
        let kept = entry.put_block(place.as_ptr(), compressed.len() as u32);
        entry.change(|state| PageState(state.with_kind(COMPRESSED).with_popularity(0).0 & !CLAIMED));
        self.pages.fetch_add(1, Relaxed);
        self.stored.fetch_add(compressed.len(), Relaxed);
        self.raw.fetch_add(entry.len(), Relaxed);
        Appended::Done(kept)
    }

    /// Returns the address for the next block, without writing it.
    fn room(&self, inner: &mut LogState, stored: usize, limit: usize) -> Option<NonNull<u8>> {
        let bytes = block_bytes(stored);
        if let Some(open) = &inner.open
            && open.end + bytes <= self.segment_bytes
        {
            // SAFETY: the offset is within the segment.
            return Some(unsafe { open.start.add(open.end) });
        }
        if bytes > self.segment_bytes {
            return None;
        }
        let start = match inner.empty.pop() {
            Some(start) => start,
            None if self.bytes() + self.segment_bytes > limit => return None,
            None => {
                let start = match inner.cold.pop() {
                    Some(start) => start,
                    None => self.cut(inner)?,
                };
                self.bytes.fetch_add(self.segment_bytes, Relaxed);
                start
            }
        };
        if let Some(closed) = inner.open.replace(Closed { start, end: 0 }) {
            inner.order.push_back(closed);
        }
        Some(start)
    }

    /// Creates a segment.
    fn cut(&self, inner: &mut LogState) -> Option<NonNull<u8>> {
        let segments = inner.segments + 1;
        inner.order.try_reserve(segments - inner.order.len()).ok()?;
        for list in [&mut inner.empty, &mut inner.cold] {
            list.try_reserve(segments - list.len()).ok()?;
        }
        inner.parts.try_reserve(1).ok()?;
        let part = match inner.parts.last() {
            Some(part) if inner.cut + self.segment_bytes <= part.byte_len() => part,
            _ => {
                let bytes = self.segment_bytes * (PART_BYTES / self.segment_bytes).max(1);
                inner.parts.push(Mapping::new(bytes)?);
                inner.cut = 0;
                inner.parts.last()?
            }
        };
        // SAFETY: the offset is within the part.
        let start = unsafe { part.start().add(inner.cut) };
        inner.cut += self.segment_bytes;
        inner.segments = segments;
        Some(start)
    }

    /// Writes a block at the address that [`Log::room`] returned.
    fn write(&self, inner: &mut LogState, block: NonNull<u8>, number: u32, compressed: &[u8]) {
        // SAFETY: `room` found enough bytes at the end of the open segment, which has no readers there yet; it is
        // aligned to pages, its blocks to eight bytes.
        unsafe {
            block.cast::<[u32; 2]>().write([number, compressed.len() as u32]);
            std::ptr::copy_nonoverlapping(compressed.as_ptr(), block.add(HEADER_BYTES).as_ptr(), compressed.len());
        }
        if let Some(open) = &mut inner.open {
            open.end += block_bytes(compressed.len());
        }
    }

    /// Reclaims the oldest segment. `limit` bounds the memory held meanwhile: one segment more than for
    /// [`Log::append`]. An empty segment is kept as long as at most `keep` bytes are held. `entry` returns the entry of
    /// a number, `turn` decides about a page that the log has pinned, and `unpin` removes the pin.
    pub(crate) fn reclaim<'e>(
        &self,
        limit: usize,
        keep: usize,
        entry: impl Fn(u32) -> &'e PageSlot,
        turn: impl Fn(u32, &PageSlot, PageState) -> Turn,
        unpin: impl Fn(u32),
    ) -> Reclaimed {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        let Some(segment) = inner.order.pop_front().or_else(|| inner.open.take()) else {
            return self.release_empty(inner, keep);
        };
        let mut stuck = false;
        let mut at = 0;
        while at < segment.end {
            // SAFETY: blocks are contiguous up to `end`.
            let (block, [number, stored]) = unsafe {
                let block = segment.start.add(at);
                (block, block.cast::<[u32; 2]>().read())
            };
            let stored = stored as usize;
            at += block_bytes(stored);
            // SAFETY: the block is longer than its header.
            let place = unsafe { block.add(HEADER_BYTES) };
            let entry = entry(number);
            if entry.place() != place.as_ptr() {
                continue;
            }
            let Some(state) = entry.pin(0) else {
                // Removed from the index but pinned, or changing; or freed just before.
                stuck |= entry.state().kind() != FREE;
                continue;
            };
            if entry.place() == place.as_ptr() && state.kind() == COMPRESSED {
                let mut decision = turn(number, entry, state);
                if let Turn::Stays(popularity) = decision {
                    decision = match self.room(inner, stored, limit) {
                        Some(to) if self.copy(inner, number, entry, place, to, popularity) => Turn::Left,
                        Some(_) => Turn::Stuck,
                        // It would stay for another round if there were room for it.
                        None => turn(number, entry, state.with_popularity(0)),
                    };
                }
                stuck |= !matches!(decision, Turn::Left);
            }
            unpin(number);
        }
        if stuck {
            inner.order.push_back(segment);
            return Reclaimed::Stuck;
        }
        inner.empty.push(segment.start);
        self.release_empty(inner, keep);
        Reclaimed::Freed
    }

    /// Returns empty segments to the system until at most `keep` bytes are held.
    fn release_empty(&self, inner: &mut LogState, keep: usize) -> Reclaimed {
        let mut released = Reclaimed::Nothing;
        // With more to reclaim, one is kept to copy to.
        while self.bytes() > keep
            && (inner.empty.len() > 1 || self.bytes() <= keep + self.segment_bytes)
            && let Some(start) = inner.empty.pop()
        {
            if let Some(part) = inner.parts.iter().find(|part| part.contains(start)) {
                // SAFETY: the segment consists of whole pages of this part and has no live block.
                unsafe { part.release(start, self.segment_bytes) };
            }
            inner.cold.push(start);
            self.bytes.fetch_sub(self.segment_bytes, Relaxed);
            released = Reclaimed::Freed;
        }
        released
    }

    /// Copies a page that the log has pinned to the address that [`Log::room`] returned, unless another thread has
    /// pinned it; returns true on success.
    fn copy(
        &self,
        inner: &mut LogState,
        number: u32,
        entry: &PageSlot,
        from: NonNull<u8>,
        to: NonNull<u8>,
        popularity: u8,
    ) -> bool {
        // Compressed pages are never held by hazard slots, only pinned.
        if entry.mark_if_pinned_once(CLAIMED).is_none() {
            return false;
        }
        // SAFETY: the block at `from` is live, and distinct from the one being written.
        let compressed = unsafe { std::slice::from_raw_parts(from.as_ptr(), entry.aux() as usize) };
        self.write(inner, to, number, compressed);
        // SAFETY: the block is longer than its header.
        let place = unsafe { to.add(HEADER_BYTES) };
        let _ = entry.put_block(place.as_ptr(), entry.aux());
        entry.change(|state| PageState(state.with_popularity(popularity).0 & !CLAIMED));
        true
    }
}
