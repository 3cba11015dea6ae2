//! The index from pages to entries: sharded hash tables, read without a lock and changed under one.
//!
//! A reader without the lock may miss a page that is being moved by a concurrent removal or by growth, and may find an
//! entry that has been reused for another page: it verifies what it finds, and looks again under the lock before it
//! concludes that a page is absent.

use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::PoolError;
use super::entry::Entries;
use crate::store::PageId;
use leafpress_base::sync::{AtomicU32, AtomicU64, Condvar, Mutex, MutexGuard};

/// Slots of a shard's first table.
const FIRST_SLOTS: usize = 16;
/// Maximum number of tables of a shard, each twice as long as the one before.
const TABLES: usize = 24;
/// Pages with a store operation in progress, per shard, for which memory is reserved.
const BUSY_AT_ONCE: usize = 4;

/// A page's hash: its upper half selects the shard, its lower half the slot.
#[inline]
pub(super) fn hash(page: PageId) -> u64 {
    rapidhash::v3::rapidhash_v3(&page.to_le_bytes())
}

/// A table with linear probing. A slot is 0, or the hash's lower half above the entry's number plus one.
struct SlotTable {
    slots: Box<[AtomicU64]>,
}

impl SlotTable {
    /// Creates a table; [`None`] if there is no memory.
    fn new(slots: usize) -> Option<Self> {
        let mut empty = Vec::new();
        empty.try_reserve_exact(slots).ok()?;
        empty.resize_with(slots, || AtomicU64::new(0));
        Some(Self {
            slots: empty.into_boxed_slice(),
        })
    }

    #[inline]
    fn mask(&self) -> usize {
        self.slots.len() - 1
    }

    #[inline]
    fn home(&self, tag: u32) -> usize {
        tag as usize & self.mask()
    }

    /// Returns the first entry with this tag that `accept` accepts, with its slot.
    #[inline]
    fn find<R>(&self, tag: u32, mut accept: impl FnMut(u32) -> Option<R>) -> Option<(usize, R)> {
        let mut at = self.home(tag);
        // A table is never full, but concurrent removals may hide its gaps.
        for _ in 0..self.slots.len() {
            let slot = self.slots[at].load(Acquire);
            if slot == 0 {
                return None;
            }
            if (slot >> 32) as u32 == tag
                && let Some(found) = accept(slot as u32 - 1)
            {
                return Some((at, found));
            }
            at = (at + 1) & self.mask();
        }
        None
    }

    fn insert(&self, slot: u64) {
        let mut at = self.home((slot >> 32) as u32);
        while self.slots[at].load(Relaxed) != 0 {
            at = (at + 1) & self.mask();
        }
        self.slots[at].store(slot, Release);
    }

    /// Clears a slot and moves those after it that could not be found any more.
    fn remove(&self, slot: usize) {
        let (mut gap, mut at) = (slot, slot);
        loop {
            at = (at + 1) & self.mask();
            let moving = self.slots[at].load(Relaxed);
            if moving == 0 {
                break;
            }
            let distance = |to: usize, from: usize| to.wrapping_sub(from) & self.mask();
            if distance(at, self.home((moving >> 32) as u32)) >= distance(at, gap) {
                self.slots[gap].store(moving, Release);
                gap = at;
            }
        }
        self.slots[gap].store(0, Release);
    }
}

/// A shard of the index.
#[repr(align(128))]
pub(super) struct Shard {
    /// All tables so far: readers may still be in those before the current one. Together they are not longer than it.
    tables: [OnceLock<SlotTable>; TABLES],
    /// The current one.
    table: AtomicU32,
    inner: Mutex<ShardState>,
    /// Signals that a page was loaded, or is not busy any more.
    changed: Condvar,
}

pub(super) struct ShardState {
    len: usize,
    /// Pages with a store operation in progress: at most one per page.
    busy: Vec<PageId>,
    waiting: u32,
}

/// A locked shard.
pub(super) struct Locked<'s> {
    shard: &'s Shard,
    inner: MutexGuard<'s, ShardState>,
}

impl Shard {
    fn new() -> Self {
        let tables = [const { OnceLock::new() }; TABLES];
        tables[0].get_or_init(|| SlotTable {
            slots: (0..FIRST_SLOTS).map(|_| AtomicU64::new(0)).collect(),
        });
        Self {
            tables,
            table: AtomicU32::new(0),
            inner: Mutex::new(ShardState {
                len: 0,
                busy: Vec::with_capacity(BUSY_AT_ONCE),
                waiting: 0,
            }),
            changed: Condvar::default(),
        }
    }

    #[inline]
    fn table(&self) -> &SlotTable {
        let table = self.tables[self.table.load(Acquire) as usize].get();
        table.expect("the present table is made before it becomes that")
    }

    /// Without the lock: returns the first entry that may be the page's and that `accept` accepts.
    #[inline]
    pub(super) fn find<R>(&self, hash: u64, accept: impl FnMut(u32) -> Option<R>) -> Option<R> {
        self.table().find(hash as u32, accept).map(|(_, found)| found)
    }

    pub(super) fn lock(&self) -> Locked<'_> {
        Locked {
            shard: self,
            inner: self.inner.lock(),
        }
    }
}

impl Locked<'_> {
    /// Returns the page's entry.
    pub(super) fn get(&self, hash: u64, page: PageId, entries: &Entries) -> Option<u32> {
        self.slot(hash, page, entries).map(|(_, entry)| entry)
    }

    fn slot(&self, hash: u64, page: PageId, entries: &Entries) -> Option<(usize, u32)> {
        // Under the lock, entries in the table are not reused.
        let is_it = |entry: u32| (entries.at(entry).page() == page).then_some(entry);
        self.shard.table().find(hash as u32, is_it)
    }

    /// Iterates over all entries of the shard.
    pub(super) fn entries(&self) -> impl Iterator<Item = u32> {
        let slots = self.shard.table().slots.iter().map(|slot| slot.load(Relaxed));
        slots.filter(|&slot| slot != 0).map(|slot| slot as u32 - 1)
    }

    /// Reserves room for one more entry, and returns the growth of the index, in bytes.
    pub(super) fn reserve(&mut self) -> Result<usize, PoolError> {
        let table = self.shard.table();
        if (self.inner.len + 1) * 4 <= table.slots.len() * 3 {
            return Ok(0);
        }
        let slots = table.slots.len() * 2;
        let bytes = slots * size_of::<u64>();
        let next = self.shard.table.load(Relaxed) + 1;
        let (place, larger) = match (self.shard.tables.get(next as usize), SlotTable::new(slots)) {
            (Some(place), Some(larger)) => (place, larger),
            _ => return Err(PoolError::OutOfMemory { bytes }),
        };
        for old in &table.slots {
            let old = old.load(Relaxed);
            if old != 0 {
                larger.insert(old);
            }
        }
        place.get_or_init(|| larger);
        self.shard.table.store(next, Release);
        Ok(bytes)
    }

    /// Adds an entry for a page that has none, after [`Locked::reserve`].
    pub(super) fn insert(&mut self, hash: u64, entry: u32) {
        self.shard.table().insert(hash << 32 | u64::from(entry + 1));
        self.inner.len += 1;
    }

    /// Removes a page's entry, if it is `entry`.
    pub(super) fn remove(&mut self, hash: u64, entry: u32) -> bool {
        let table = self.shard.table();
        match table.find(hash as u32, |found| (found == entry).then_some(())) {
            Some((slot, ())) => {
                table.remove(slot);
                self.inner.len -= 1;
                true
            }
            None => false,
        }
    }

    pub(super) fn is_busy(&self, page: PageId) -> bool {
        self.inner.busy.contains(&page)
    }

    pub(super) fn set_busy(&mut self, page: PageId) -> Result<(), PoolError> {
        debug_assert!(!self.is_busy(page));
        let bytes = size_of::<PageId>();
        let room = self.inner.busy.try_reserve(1);
        room.map_err(|_| PoolError::OutOfMemory { bytes })?;
        self.inner.busy.push(page);
        Ok(())
    }

    pub(super) fn set_idle(&mut self, page: PageId) {
        self.inner.busy.retain(|&busy| busy != page);
        self.notify();
    }

    /// Wakes the threads that wait for a change in this shard.
    pub(super) fn notify(&mut self) {
        if self.inner.waiting > 0 {
            self.shard.changed.notify_all();
        }
    }

    /// Waits for a change, without the lock meanwhile.
    pub(super) fn wait(&mut self) {
        self.inner.waiting += 1;
        self.shard.changed.wait(&mut self.inner);
        self.inner.waiting -= 1;
    }
}

/// All shards.
pub(super) struct Index {
    shards: Box<[Shard]>,
    shift: u32,
}

impl Index {
    /// Creates an index. `shards` is a power of two above 1.
    pub(super) fn new(shards: usize) -> Self {
        Self {
            shards: (0..shards).map(|_| Shard::new()).collect(),
            shift: u64::BITS - shards.trailing_zeros(),
        }
    }

    #[inline]
    pub(super) fn shard(&self, hash: u64) -> &Shard {
        &self.shards[(hash >> self.shift) as usize]
    }

    pub(super) fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// Memory held by an index before its first growth, in bytes.
    pub(super) fn first_bytes(&self) -> usize {
        self.shards.len() * (size_of::<Shard>() + FIRST_SLOTS * size_of::<u64>())
    }
}
