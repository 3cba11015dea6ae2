//! What a pool is made of, and how its entries are let go.
//!
//! Locks are taken in this order, and none but these is held while another is taken: the one of flushes, the log, a shard of the index,
//! the raw space's order or what is unsynced, the frames. None but the first is held during a store's or a codec's work.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use super::adaptive::{Adaptive, Costs};
use super::counts::Counts;
use super::entry::{COMPRESSED, DETACHED, Entries, Kept, LISTED, PIN, State};
use super::frames::Frames;
use super::index::{Index, Locked, Shard, hash};
use super::log::Log;
use super::raw_space::RawSpace;
use super::sweep::Sweeper;
use super::unsynced::Unsynced;
use super::waiters::Waiters;
use super::workers::Workers;
use super::{PolicyKind, PoolError};
use crate::store::PageId;
use crate::store::PageStore;
use leafpress_base::mem::{OutOfMemory, room};
use leafpress_base::sync::Mutex;
use leafpress_codec::Engine;

/// Pages that are read or written at once.
pub(super) const BATCH_PAGES: usize = 64;

/// A pool's insides.
pub(super) struct PoolInner {
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
    room::room_for(count).map_err(|OutOfMemory { bytes }| PoolError::OutOfMemory { bytes })
}

/// So many zeros.
pub(super) fn zeroed(bytes: usize) -> Result<Vec<u8>, PoolError> {
    let mut zeros = room_for(bytes)?;
    zeros.resize(bytes, 0);
    Ok(zeros)
}

pub(super) fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

impl PoolInner {
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
        if entry.state().kind() == COMPRESSED {
            self.log.dead(entry);
        }
        self.free_kept(entry.take());
        self.entries.free(number);
    }

    /// Frees the frame that an entry kept until now.
    pub(super) fn free_kept(&self, kept: Kept) {
        if let Some(frame) = kept.into_frame(&self.frames) {
            self.frames.free(frame);
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

    /// Puts a raw page that is new, and that the caller has pinned, in the order in which pages leave.
    pub(super) fn list_new(&self, number: u32, hash: u64, sweeper: Sweeper) {
        self.list(number, hash);
        self.fit(sweeper);
    }

    /// Puts a raw page that the caller has pinned in the order in which pages leave.
    pub(super) fn list(&self, number: u32, hash: u64) {
        let mut raw = self.raw.lock();
        self.list_locked(&mut raw, number, hash);
        self.policy_bytes.store(raw.bytes(), Relaxed);
    }

    /// As [`PoolInner::list`]; the page may be one that was in the order until the lock was taken, instead of a pinned one.
    pub(super) fn list_locked(&self, raw: &mut RawSpace, number: u32, hash: u64) {
        let entry = self.entries.at(number);
        // Who takes a page out of the index marks it so before it asks for this lock.
        if !entry.state().has(DETACHED) {
            entry.set(LISTED);
            raw.insert(number, hash);
        }
    }

    /// Takes a page out of the index; the shard is locked. It stays pinned: [`PoolInner::forget`] has to follow, without the lock.
    pub(super) fn detach(&self, locked: &mut Locked<'_>, hash: u64, number: u32) {
        self.entries
            .at(number)
            .change(|state| State((state.0 + PIN) | DETACHED));
        locked.remove(hash, number);
    }

    /// Ends what [`PoolInner::detach`] began.
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
}

/// A pin that was never taken away would keep its page in memory for ever. When the pool goes, only victims that are waiting have one, and
/// guards that were forgotten.
#[cfg(debug_assertions)]
impl Drop for PoolInner {
    fn drop(&mut self) {
        let pins = (0..self.entries.used()).map(|number| self.entries.at(number).state().pins());
        let known = self.raw.lock().waiting() as u64 + self.counts.pins_handed_out();
        debug_assert!(std::thread::panicking() || pins.sum::<u64>() == known, "a pin was lost");
    }
}
