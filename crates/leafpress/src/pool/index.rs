//! Which entry a page has: hash tables in shards, read without a lock and changed under one.
//!
//! A reader without the lock may miss a page that is being moved by a removal beside it or by growth, and may find an entry that is
//! another page's by now: it checks what it finds, and asks again under the lock before it believes that something is not here.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::PageId;
use super::entry::Entries;
use crate::sync::{AtomicPtr, AtomicU64, Condvar, Mutex, MutexGuard};

/// Slots of a shard's first table.
const FIRST_SLOTS: usize = 16;

/// A page's hash: its upper half chooses the shard, its lower half the slot.
#[inline]
pub(super) fn hash(page: PageId) -> u64 {
    rapidhash::v3::rapidhash_v3(&page.to_le_bytes())
}

/// Linear probing. A slot is 0, or the hash's lower half above the entry's number and one.
struct Table {
    slots: Box<[AtomicU64]>,
}

impl Table {
    fn new(slots: usize) -> Self {
        Self {
            slots: (0..slots).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    #[inline]
    fn mask(&self) -> usize {
        self.slots.len() - 1
    }

    #[inline]
    fn home(&self, tag: u32) -> usize {
        tag as usize & self.mask()
    }

    /// The first of the entries with this tag that `accept` takes, with its slot.
    #[inline]
    fn find<R>(&self, tag: u32, mut accept: impl FnMut(u32) -> Option<R>) -> Option<(usize, R)> {
        let mut at = self.home(tag);
        // A table is never full, but removals beside a reader may hide its gaps.
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

    /// Empties a slot and moves those behind it that would not be found any more.
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

/// A part of the pages.
#[repr(align(128))]
pub(super) struct Shard {
    table: AtomicPtr<Table>,
    inner: Mutex<Inner>,
    /// A page was loaded, or is not busy any more.
    changed: Condvar,
}

pub(super) struct Inner {
    len: usize,
    /// Every table there was, the present one last: readers may still be in the others. Together they are no longer than it.
    tables: Vec<*mut Table>,
    /// Pages whose store operation is under way: there is one at a time for each.
    busy: Vec<PageId>,
    waiting: u32,
}

// SAFETY: the tables are owned by the shard, and shared as atomics.
unsafe impl Send for Inner {}

/// A shard that is locked.
pub(super) struct Locked<'s> {
    shard: &'s Shard,
    inner: MutexGuard<'s, Inner>,
}

impl Shard {
    fn new() -> Self {
        let table = Box::into_raw(Box::new(Table::new(FIRST_SLOTS)));
        Self {
            table: AtomicPtr::new(table),
            inner: Mutex::new(Inner {
                len: 0,
                tables: vec![table],
                busy: Vec::new(),
                waiting: 0,
            }),
            changed: Condvar::default(),
        }
    }

    #[inline]
    fn table(&self) -> &Table {
        // SAFETY: tables live as long as the shard.
        unsafe { &*self.table.load(Acquire) }
    }

    /// Without the lock: the first entry that may be the page's and that `accept` takes.
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

impl Drop for Shard {
    fn drop(&mut self) {
        for table in self.inner.lock().tables.drain(..) {
            // SAFETY: it came out of a box, once, and nobody reads any more.
            drop(unsafe { Box::from_raw(table) });
        }
    }
}

impl Locked<'_> {
    /// The page's entry.
    pub(super) fn get(&self, hash: u64, page: PageId, entries: &Entries) -> Option<u32> {
        self.slot(hash, page, entries).map(|(_, entry)| entry)
    }

    fn slot(&self, hash: u64, page: PageId, entries: &Entries) -> Option<(usize, u32)> {
        // Under the lock, entries in the table do not change their page.
        let is_it = |entry: u32| (entries.at(entry).page() == page).then_some(entry);
        self.shard.table().find(hash as u32, is_it)
    }

    /// All entries of the shard.
    pub(super) fn entries(&self) -> impl Iterator<Item = u32> {
        let slots = self.shard.table().slots.iter().map(|slot| slot.load(Relaxed));
        slots.filter(|&slot| slot != 0).map(|slot| slot as u32 - 1)
    }

    /// Adds an entry for a page that has none, and returns the memory that the index grew by, in bytes.
    pub(super) fn insert(&mut self, hash: u64, entry: u32) -> usize {
        let mut grown = 0;
        let slot = hash << 32 | u64::from(entry + 1);
        let table = self.shard.table();
        if (self.inner.len + 1) * 4 > table.slots.len() * 3 {
            let larger = Table::new(table.slots.len() * 2);
            for old in &table.slots {
                let old = old.load(Relaxed);
                if old != 0 {
                    larger.insert(old);
                }
            }
            let larger = Box::into_raw(Box::new(larger));
            self.inner.tables.push(larger);
            grown = table.slots.len() * 2 * size_of::<u64>();
            self.shard.table.store(larger, Release);
        }
        self.shard.table().insert(slot);
        self.inner.len += 1;
        grown
    }

    /// Takes a page's entry out, if it is `entry`.
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

    pub(super) fn set_busy(&mut self, page: PageId) {
        debug_assert!(!self.is_busy(page));
        self.inner.busy.push(page);
    }

    pub(super) fn set_idle(&mut self, page: PageId) {
        self.inner.busy.retain(|&busy| busy != page);
        self.notify();
    }

    /// Wakes those who wait for a change in this shard.
    pub(super) fn notify(&mut self) {
        if self.inner.waiting > 0 {
            self.shard.changed.notify_all();
        }
    }

    /// Lets go of the lock until something changed.
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
    /// `shards` is a power of two above 1.
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

    /// Memory held by an index in which nothing grew yet, in bytes.
    pub(super) fn first_bytes(&self) -> usize {
        self.shards.len() * (size_of::<Shard>() + FIRST_SLOTS * size_of::<u64>())
    }
}
