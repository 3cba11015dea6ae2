//! The shared state of a pool, and the release of its entries.
//!
//! Lock order: flushes, the log, a shard of the index, the raw space's order or the table of unsynced pages, the
//! frames. Only these are held while another is taken, and only the first is held during an operation of a store or a
//! codec.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use super::adaptive::{Adaptive, Costs};
use super::counts::PoolCounts;
use super::entry::{COMPRESSED, DETACHED, Entries, Kept, LISTED, PIN, PageState};
use super::frames::Frames;
use super::index::{Index, Locked, Shard, hash};
use super::log::Log;
use super::raw_space::RawSpace;
use super::unsynced::Unsynced;
use super::waiters::Waiters;
use super::workers::Workers;
use super::{PolicyKind, PoolError};
use crate::store::PageId;
use crate::store::PageStore;
use leafpress_base::mem::{OutOfMemory, room};
use leafpress_base::sync::Mutex;
use leafpress_codec::Engine;

/// Pages read or written in one batch.
pub(super) const BATCH_PAGES: usize = 64;

/// The shared state of a pool.
pub(super) struct PoolInner {
    pub(super) store: Box<dyn PageStore>,
    pub(super) max_page_bytes: usize,
    /// Memory that a page may need at once, in bytes.
    pub(super) max_run_bytes: usize,
    /// [`None`] if nothing is compressed.
    pub(super) engine: Option<Arc<dyn Engine>>,
    pub(super) policy: PolicyKind,
    pub(super) wants_hits: bool,
    pub(super) promote_after_hits: u8,
    pub(super) budget: AtomicUsize,
    /// [`None`] if the share is fixed.
    pub(super) adaptive: Option<Adaptive>,
    pub(super) costs: Arc<Costs>,
    /// Percent of the budget for raw pages, if the share is fixed.
    pub(super) raw_percent: f64,

    pub(super) entries: Entries,
    pub(super) index: Index,
    pub(super) index_bytes: AtomicUsize,
    pub(super) frames: Frames,
    pub(super) log: Log,
    pub(super) unsynced: Unsynced,
    pub(super) raw: Mutex<RawSpace>,
    /// Entries below this number have capacity in the eviction policy.
    pub(super) places: AtomicU32,
    pub(super) policy_bytes: AtomicUsize,
    pub(super) waiters: Waiters,
    pub(super) workers: Workers,
    /// Bytes of decoded copies held by callers.
    pub(super) copy_bytes: AtomicUsize,
    pub(super) counts: PoolCounts,
}

/// Converts the error of a page's store operation.
pub(super) fn store_error(page: PageId, operation: &'static str, source: io::Error) -> PoolError {
    match source.kind() {
        io::ErrorKind::NotFound => PoolError::NotFound { page },
        // There may be no memory for the error either.
        io::ErrorKind::OutOfMemory => PoolError::OutOfMemory { bytes: 0 },
        _ => PoolError::Store {
            page,
            operation,
            source: Arc::new(source),
        },
    }
}

/// Runs an operation of the store. A panic counts as a failure: other threads wait for the operation's end, and it must
/// release what it holds.
pub(super) fn operate<R>(operation: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
    catch_unwind(AssertUnwindSafe(operation)).unwrap_or_else(|panic| {
        // The payload's destructor might panic, too.
        std::mem::forget(panic);
        Err(io::Error::other("the store panicked"))
    })
}

/// Returns an empty vector with this capacity.
pub(super) fn room_for<T>(count: usize) -> Result<Vec<T>, PoolError> {
    room::room_for(count).map_err(|OutOfMemory { bytes }| PoolError::OutOfMemory { bytes })
}

/// Returns a zeroed vector.
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

    /// Removes a pin.
    #[inline]
    pub(super) fn unpin(&self, number: u32) {
        if self.entries.at(number).unpin_is_last() {
            self.free(number);
        }
    }

    /// Marks an entry that only the caller has pinned, once, and that no thread holds; see [`super::entry`].
    pub(super) fn mark_if_alone(&self, number: u32, mark: u64) -> Option<PageState> {
        let entry = self.entries.at(number);
        let marked = entry.mark_if_pinned_once(mark)?;
        if self.counts.is_held(number) {
            entry.clear(mark);
            return None;
        }
        Some(marked)
    }

    /// Frees an entry that is out of the index, out of the lists, and not pinned; deferred while a thread still holds
    /// its page.
    #[cold]
    fn free(&self, number: u32) {
        if !self.counts.is_held(number) {
            self.free_now(number);
        } else if let Err(mut limbo) = self.counts.put_in_limbo(number) {
            // If the list is full, some of its entries are not held any more: threads cannot hold more than its
            // capacity.
            while limbo.len() == limbo.capacity() {
                self.free_from(&mut limbo);
            }
            limbo.push(number);
        }
    }

    /// Frees the retired entries that no thread holds any more.
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

    /// Frees the frame that an entry had.
    pub(super) fn free_kept(&self, kept: Kept) {
        if let Some(frame) = kept.into_frame(&self.frames) {
            self.frames.free(frame);
        }
    }

    /// Reports a sampled access to the adaptive share.
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

    /// Adds a raw page that the caller has pinned to the eviction policy.
    pub(super) fn list(&self, number: u32, hash: u64) {
        let mut raw = self.raw.lock();
        self.list_locked(&mut raw, number, hash);
        self.policy_bytes.store(raw.bytes(), Relaxed);
    }

    /// Like [`PoolInner::list`], under the lock; instead of being pinned, the page may have been in the policy until
    /// the lock was taken.
    pub(super) fn list_locked(&self, raw: &mut RawSpace, number: u32, hash: u64) {
        let entry = self.entries.at(number);
        // A thread that removes a page from the index marks it so before it takes this lock.
        if !entry.state().has(DETACHED) {
            entry.set(LISTED);
            raw.insert(number, hash);
        }
    }

    /// Removes a page from the index; the shard is locked. It stays pinned: [`PoolInner::forget`] has to follow,
    /// without the lock.
    pub(super) fn detach(&self, locked: &mut Locked<'_>, hash: u64, number: u32) {
        self.entries
            .at(number)
            .change(|state| PageState((state.0 + PIN) | DETACHED));
        locked.remove(hash, number);
    }

    /// Completes [`PoolInner::detach`].
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

/// A leaked pin would keep its page in memory for ever. When the pool is dropped, only waiting victims have one, and
/// guards that were leaked.
#[cfg(debug_assertions)]
impl Drop for PoolInner {
    fn drop(&mut self) {
        let pins = (0..self.entries.used()).map(|number| self.entries.at(number).state().pins());
        let known = self.raw.lock().waiting() as u64 + self.counts.pins_handed_out();
        debug_assert!(std::thread::panicking() || pins.sum::<u64>() == known, "a pin was lost");
    }
}
