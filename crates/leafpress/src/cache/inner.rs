//! The state shared by a cache's handle and its upkeep: the tree and the parts that keep it within its budget.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bumpalo::Bump;

use super::advice::ReuseSample;
use super::budget::{Budget, Due, Measured};
use super::clock::Clock;
use super::counters::{Count, Counters, Outcome};
use super::disk::Tier;
use super::error::CacheError;
use super::evict::EvictionState;
use super::expiry::{Expiry, Times};
use super::listener::{Listener, Notifier, RemovalCause};
use super::load_table::LoadTable;
use super::long_values::LongValues;
use super::observer::Observer;
use super::policy::Policy;
use super::raw_share::RawCopies;
use super::read_queue::{LazyReadQueue, ReadQueue};
use super::record;
use super::tags::TagTable;
use crate::tree::cache_hooks::Hand;
use crate::tree::{self, Tree};
use leafpress_base::sync::runtime::Waker;
use leafpress_base::sync::worker::Health;
use leafpress_base::sync::{Mutex, MutexGuard};

/// The ghost queue takes at most this fraction (1/16) of the budget.
const GHOST_DIVISOR: u64 = 16;
/// Maximum number of measurements while the budget is lowered.
const MAX_SHRINKS: usize = 16;

/// The hand of the eviction policy and its state.
#[derive(Default)]
pub(super) struct Sweeper {
    pub hand: Hand,
    pub arena: Bump,
    pub memory: EvictionState,
}

impl Sweeper {
    pub(super) fn held_bytes(&self) -> u64 {
        self.arena.allocated_bytes() as u64 + self.memory.ghost.held_bytes() as u64
    }
}

pub(super) struct CacheInner {
    pub tree: Tree,
    pub budget: Budget,
    pub raw_copies: RawCopies,
    pub counters: Counters,
    pub loads: LoadTable,
    pub long_values: LongValues,
    pub tags: TagTable,
    /// A sample of the reads, if the cache gives advice.
    pub reuse: Option<Box<ReuseSample>>,
    pub clock: Arc<dyn Clock>,
    pub times: Times,
    /// Queued reads of records that have a time to idle.
    pub queued_reads: LazyReadQueue,
    pub listener: Option<Notifier>,
    /// The disk tier, which takes the records that leave memory.
    pub disk: Option<Arc<Tier>>,
    pub health: Arc<Health>,
    pub observer: Arc<Observer>,
    /// Whether a record that expires was ever inserted.
    may_expire: AtomicBool,
    /// Whether the cache was closed, or is being closed.
    is_closed: AtomicBool,
    /// Wakes the upkeep.
    pub upkeep: Waker,
    /// Whether the upkeep was woken to evict, and has not begun or ended yet.
    pub eviction_due: AtomicBool,
    /// Held by the thread that evicts ahead of need.
    pub evicting_ahead: Mutex<()>,
    /// Sweeper that evicts.
    pub evicting: Mutex<Sweeper>,
    /// Sweeper that removes expired records.
    pub expiring: Mutex<Sweeper>,
    /// Memory held by both sweepers.
    sweepers_bytes: AtomicU64,
}

/// What a read observed of a record: whether its time to idle needs an update, and which tier it was in.
#[derive(Default)]
pub(super) struct Seen {
    pub wants_touch: bool,
    pub is_from_disk: bool,
    /// Set by the caller: a record found on disk is not promoted, because it is about to be removed or is read by a
    /// scan.
    pub is_going: bool,
}

impl CacheInner {
    pub(super) fn new(
        tree: Tree,
        memory_bytes: u64,
        clock: Arc<dyn Clock>,
        times: Times,
        policy: Policy,
        listener: Option<Box<Listener>>,
        disk: Option<Arc<Tier>>,
    ) -> Self {
        let mut sweeper = Sweeper::default();
        sweeper.memory.policy = policy;
        tree.fit_threads(memory_bytes);
        Self {
            tree,
            budget: Budget::new(memory_bytes),
            raw_copies: RawCopies::off(),
            counters: Counters::default(),
            loads: LoadTable::default(),
            long_values: LongValues::default(),
            tags: TagTable::default(),
            reuse: None,
            clock,
            queued_reads: LazyReadQueue::default(),
            times,
            listener: listener.map(Notifier::new),
            disk,
            health: Arc::default(),
            observer: Arc::default(),
            may_expire: AtomicBool::new(times.to_idle.is_some()),
            is_closed: AtomicBool::new(false),
            upkeep: Waker::default(),
            eviction_due: AtomicBool::new(false),
            evicting_ahead: Mutex::default(),
            evicting: Mutex::new(sweeper),
            expiring: Mutex::default(),
            sweepers_bytes: AtomicU64::new(0),
        }
    }

    pub(super) fn may_expire(&self) -> bool {
        self.may_expire.load(Ordering::Relaxed)
    }

    /// Returns [`CacheError::Closed`] from the beginning of [`CacheInner::close`] on.
    pub(super) fn check_open(&self) -> Result<(), CacheError> {
        if self.is_closed.load(Ordering::SeqCst) {
            return Err(CacheError::Closed);
        }
        Ok(())
    }

    pub(super) fn set_closed(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }

    /// The result of a look-up that found nothing. Only these ask whether the cache is closed: a closed cache has no
    /// records.
    #[inline]
    pub(super) fn absent<R>(&self) -> Result<Option<R>, CacheError> {
        self.check_open().map(|()| None)
    }

    /// Called before a record that expires is inserted.
    pub(super) fn note_expiring(&self) {
        self.may_expire.store(true, Ordering::Relaxed);
    }

    /// Calls `read` with the value of a key that is present and not expired, and counts a hit or a miss. A record that
    /// cannot be decoded counts as absent and is removed.
    #[inline]
    pub(super) fn get<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, CacheError> {
        let mut seen = Seen::default();
        let began = Observer::begin_get();
        let found = self.find(key, read, &mut seen);
        let outcome = Outcome::of(matches!(found, Ok(Some(_))), seen.is_from_disk);
        self.counters.add(outcome.count(), 1);
        self.sample_read(key, outcome != Outcome::Miss);
        self.observer.end_get(began, outcome);
        if seen.wants_touch {
            self.queue_read(key);
        }
        found
    }

    /// Like [`CacheInner::get`], without counting, and also reports what it saw of the record.
    #[inline]
    pub(super) fn find<R>(
        &self,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> R,
        seen: &mut Seen,
    ) -> Result<Option<R>, CacheError> {
        let mut read = Some(read);
        match self.find_in_memory(key, &mut read, seen) {
            Ok(None) if self.disk.is_some() => self.find_on_disk(key, read, seen),
            Ok(None) => self.absent(),
            Ok(Some(None)) => {
                // A read of it may still be queued.
                if self.apply_queued_reads()
                    && let Ok(Some(Some(found))) = self.find_in_memory(key, &mut read, seen)
                {
                    return Ok(Some(found));
                }
                self.expire(key)?;
                Ok(None)
            }
            Ok(Some(found)) => Ok(found),
            Err(error) => self.damaged(key, error),
        }
    }

    /// Returns a record's value and its expiry, which has passed if a tag of the record was invalidated.
    #[inline]
    pub(super) fn read<'r>(&self, stored: &'r [u8]) -> (&'r [u8], Option<Expiry>) {
        let (value, expiry) = record::read(stored);
        if record::is_tagged(stored) && self.tags.has_invalidated(stored) {
            return (value, Some(Expiry::PAST));
        }
        (value, expiry)
    }

    /// Looks up a key in the tree: absent, expired (`Some(None)`), or the result of `read`.
    #[inline]
    pub(super) fn find_in_memory<R>(
        &self,
        key: &[u8],
        read: &mut Option<impl FnOnce(&[u8]) -> R>,
        seen: &mut Seen,
    ) -> Result<Option<Option<R>>, tree::TreeError> {
        self.tree.get_with(key, |stored| {
            let (value, expiry) = self.read(stored);
            if let Some(expiry) = expiry {
                let now = self.clock.now();
                if expiry.is_expired(now) {
                    return None;
                }
                seen.wants_touch = self.wants_touch(stored, now);
            }
            read.take().map(|read| read(value))
        })
    }

    /// Handles a record that cannot be read as absent: counts it, and removes it if possible.
    #[cfg_attr(not(feature = "tracing"), allow(unused_variables))]
    pub(super) fn damaged<R>(&self, key: &[u8], error: tree::TreeError) -> Result<Option<R>, CacheError> {
        match CacheError::from(error) {
            memory @ CacheError::OutOfMemory { .. } => Err(memory),
            reason => {
                let damaged = self.counters.add(Count::Damaged, 1);
                warn_event_by_count!(damaged, cache = %self.observer.name, error = %reason, "record damaged");
                // A leaf with a damaged frame cannot be compacted either.
                let _ = match &self.disk {
                    None => self.tree.remove(key).map(|_| ()),
                    Some(disk) => self.erase_noting(disk, key, &|| ()),
                };
                Ok(None)
            }
        }
    }

    /// Removes an expired record that is past its stale period, unless it was written meanwhile.
    fn expire(&self, key: &[u8]) -> Result<(), CacheError> {
        let value = Cell::new(None);
        // The clock is the caller's code, so it is not called under a latch.
        let now = self.clock.now();
        let is_over = |stored: Option<&[u8]>| {
            let Some(stored) = stored else { return false };
            let (found, expiry) = self.read(stored);
            let is_over = self.is_past_use(expiry, now) && !record::is_tombstone(stored);
            if is_over && self.listener.is_some() {
                value.set(Some(found.to_vec()));
            }
            is_over
        };
        if self.take_out_if(key, &is_over)? {
            self.counters.add(Count::Expired, 1);
            self.notify(key, value.take(), RemovalCause::Expired);
        }
        Ok(())
    }

    pub(super) fn notify(&self, key: &[u8], value: Option<Vec<u8>>, cause: RemovalCause) {
        if let (Some(listener), Some(value)) = (&self.listener, value) {
            listener.notify(key, value, cause);
        }
    }

    /// Removes a key; returns true if it was present and not expired.
    pub(super) fn remove(&self, key: &[u8]) -> Result<bool, CacheError> {
        self.counters.add(Count::Removes, 1);
        if let Some(disk) = &self.disk {
            return self.remove_below(disk, key);
        }
        if self.listener.is_none() && !self.may_expire() {
            let supersede = || {
                self.loads.supersede(key);
                true
            };
            return Ok(self.tree.write_noting(key, None, &supersede)?);
        }
        self.apply_queued_reads();
        let found = Cell::new(None);
        let now = self.clock.now();
        let copies = |stored: Option<&[u8]>| {
            self.loads.supersede(key);
            found.set(stored.map(|stored| {
                let (value, expiry) = self.read(stored);
                let is_over = record::is_expired(expiry, || now);
                (self.listener.is_some().then(|| value.to_vec()), is_over)
            }));
            true
        };
        self.tree.write_if(key, None, &copies)?;
        let Some((value, is_over)) = found.take() else {
            return Ok(false);
        };
        let cause = if is_over {
            RemovalCause::Expired
        } else {
            RemovalCause::Removed
        };
        if is_over {
            self.counters.add(Count::Expired, 1);
        }
        self.notify(key, value, cause);
        Ok(!is_over)
    }

    /// Records in memory, without tombstones.
    pub(super) fn records(&self) -> usize {
        // Only tombstones have empty values.
        self.tree.len().saturating_sub(self.tree.empty_values())
    }

    /// All memory that the cache holds.
    pub(super) fn held_bytes(&self) -> u64 {
        self.tree.bytes_held()
            + self.counters.held_bytes()
            + size_of::<Self>() as u64
            + self.eviction_bytes()
            + self.queued_reads.get().map_or(0, ReadQueue::held_bytes)
            + self.loads.held_bytes()
            + self.tags.held_bytes()
            + self.reuse.as_ref().map_or(0, |reuse| reuse.held_bytes())
            + self.disk_bytes()
    }

    /// Memory of the disk tier's index and buffers.
    fn disk_bytes(&self) -> u64 {
        self.disk.as_ref().map_or(0, |disk| disk.held_bytes())
    }

    pub(super) fn eviction_bytes(&self) -> u64 {
        self.sweepers_bytes.load(Ordering::Relaxed)
    }

    /// Updates the recorded memory of the sweepers, which is queried while they run.
    pub(super) fn note_sweeper(&self, before: u64, sweeper: &Sweeper) {
        let now = sweeper.held_bytes();
        self.sweepers_bytes
            .fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
    }

    /// Resizes the ghost queue to remember as many evicted keys as records are held.
    pub(super) fn fit_ghost(&self) {
        let mut sweeper = self.evicting.lock();
        let before = sweeper.held_bytes();
        let most = self.budget.memory_bytes() / GHOST_DIVISOR;
        if sweeper.memory.policy != Policy::S3Fifo {
            return;
        }
        // If the allocation fails, the old queue is kept.
        let _ = sweeper
            .memory
            .ghost
            .fit(self.tree.len(), usize::try_from(most).unwrap_or(usize::MAX));
        self.note_sweeper(before, &sweeper);
    }

    /// Measures the memory held and sets the byte limit of the nodes.
    pub(super) fn measure(&self) {
        self.measure_if(Due::Always);
    }

    pub(super) fn measure_if(&self, due: Due) {
        let measure = || Measured {
            held_bytes: self.held_bytes(),
            node_bytes: self.tree.node_bytes(),
        };
        self.budget.measure(due, measure, || self.tree.trim());
    }

    /// Sets the budget and shrinks the cache to it.
    pub(super) fn set_memory(&self, bytes: u64) {
        enter_span!("leafpress_set_memory", cache = %self.observer.name, memory_bytes = bytes);
        self.budget.set_memory_bytes(bytes);
        self.tree.fit_threads(bytes);
        self.fit_raw_copies();
        if let Some(disk) = &self.disk {
            disk.fit(bytes);
        }
        // Freed memory is returned by the next measurement only, which may find that holes are left.
        for _ in 0..MAX_SHRINKS {
            self.measure();
            self.make_room();
            if self.held_bytes() <= bytes {
                return;
            }
            self.tree.trim();
        }
    }

    /// Removes every record in both tiers and forgets the keys evicted before.
    pub(super) fn clear(&self) -> Result<(), CacheError> {
        self.loads.superseding_all(|| {
            // With both sweepers locked, no record leaves memory.
            let mut sweepers = [self.evicting.lock(), self.expiring.lock()];
            // `close` takes these locks before it moves the records: a removal that returned is not undone by it.
            self.check_open()?;
            if let Some(disk) = &self.disk {
                disk.forget();
            }
            self.clear_memory(&mut sweepers)
        })?;
        self.return_memory();
        Ok(())
    }

    /// Removes every record in memory.
    pub(super) fn clear_memory(&self, sweepers: &mut [MutexGuard<'_, Sweeper>; 2]) -> Result<(), CacheError> {
        self.tree.clear()?;
        for sweeper in sweepers {
            let before = sweeper.held_bytes();
            sweeper.arena = Bump::new();
            sweeper.memory.ghost = Default::default();
            self.note_sweeper(before, sweeper);
        }
        Ok(())
    }

    /// Returns the memory of removed records to the system.
    pub(super) fn return_memory(&self) {
        if let Some(disk) = &self.disk {
            disk.free_buffers();
        }
        self.fit_raw_copies();
        self.measure();
    }

    /// Excludes both sweepers, which remove records, until the result is dropped.
    pub(super) fn hold(&self) -> impl Sized + '_ {
        (self.evicting.lock(), self.expiring.lock())
    }
}
