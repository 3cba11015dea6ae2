//! Hot records: copies of the most frequently read records, in a table next to the tree.
//!
//! Hot records are scattered over the leaves. An uncompressed copy of a record costs its own bytes, while an
//! uncompressed leaf would also cost those of all its neighbours.
//!
//! The table is set-associative, with sets of eight slots, one cache line each; a key's set and its tag follow from its
//! hash. Readers take no lock: a guard protects the entries that they find. A record is inserted under its leaf's
//! latch: by a reader, if nothing was published since it read the value, or by the writer that has just published it. A
//! writer removes it under the same latch before publishing its write. So no reader finds a stale copy once it may have
//! seen a newer value. While the tree is cleared there is no table: old and new leaves have different latches.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use leafpress_base::mem::node::{Kind, NodeHeader};
use leafpress_base::mem::room::{TryGrow, copied, room_for};
use leafpress_base::mem::{OutOfMemory, tagged_ptr};
use leafpress_base::reclaim::guard::Guard;
use leafpress_base::reclaim::load;
use leafpress_base::reclaim::node_heap::NodeHeap;
use leafpress_base::sync::{AtomicPtr, Mutex};

/// Associativity: slots of a set, which is a cache line.
const WAYS: usize = 8;
/// Maximum of an entry's use counter.
const MAX_USES: u32 = 31;
/// Maximum of an entry's count of reads. The records that exceed it are few, and cores need not exchange their lines.
const MAX_READS: u32 = 1 << 10;
/// The count of reads of an entry that is not counted yet.
const UNSURVEYED: u32 = u32::MAX;
/// Maximum number of sets: four million slots, limited by the maximum length of a node.
const MAX_SETS: usize = 1 << 19;
/// Slots per record, since some sets are fuller than others.
const ROOM: f64 = 1.5;
/// The budget counts as nearly full when less than `1 / NEARLY_FULL` of it is left.
const NEARLY_FULL: u64 = 64;
/// Much of the budget is free when more than `1 / FULL` of it is.
const FULL: u64 = 8;
/// The table is rebuilt when its target size differs by this factor.
const RESIZED_AT: usize = 2;

#[repr(C)]
struct EntryHeader {
    node: NodeHeader,
    key_len: u32,
    value_len: u32,
    /// Saturating count of reads, decremented by refused records and halved by age.
    uses: AtomicU32,
    /// Saturating count of reads since the last survey; [`UNSURVEYED`] before the first.
    reads: AtomicU32,
}

/// A copy of a record, live for `'g`.
#[derive(Clone, Copy)]
struct HotRecord<'g>(NonNull<u8>, PhantomData<&'g NonNull<u8>>);

impl<'g> HotRecord<'g> {
    /// Borrows an entry.
    ///
    /// # Safety
    /// `node` is an entry that is live for `'g`.
    unsafe fn from_node(node: NonNull<u8>) -> Self {
        Self(node, PhantomData)
    }

    fn header(self) -> &'g EntryHeader {
        // SAFETY: an entry begins with its header, and is live for `'g`.
        unsafe { self.0.cast::<EntryHeader>().as_ref() }
    }

    fn bytes(self, from: usize, len: usize) -> &'g [u8] {
        // SAFETY: key and value are stored after the header, never change, and are live as long as the entry.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().add(size_of::<EntryHeader>() + from), len) }
    }

    fn key(self) -> &'g [u8] {
        self.bytes(0, self.header().key_len as usize)
    }

    fn value(self) -> &'g [u8] {
        self.bytes(self.header().key_len as usize, self.header().value_len as usize)
    }

    fn bytes_held(self) -> u64 {
        self.header().node.requested_bytes() as u64
    }

    fn used(self) -> Use {
        Use {
            uses: self.uses(),
            reads: self.header().reads.load(Ordering::Relaxed),
        }
    }

    fn uses(self) -> u32 {
        self.header().uses.load(Ordering::Relaxed)
    }

    fn set_uses(self, uses: u32) {
        self.header().uses.store(uses, Ordering::Relaxed);
    }
}

/// A table, protected by a guard for `'g`.
#[derive(Clone, Copy)]
struct HotTable<'g>(NonNull<u8>, PhantomData<&'g NonNull<u8>>);

impl<'g> HotTable<'g> {
    fn places(self) -> &'g [AtomicPtr<u8>] {
        // SAFETY: a table begins with its node's header; the slots follow it, and were all initialised before the table
        // was published.
        unsafe {
            let bytes = self.0.cast::<NodeHeader>().as_ref().requested_bytes() - size_of::<NodeHeader>();
            let first = self.0.as_ptr().add(size_of::<NodeHeader>()).cast();
            std::slice::from_raw_parts(first, bytes / size_of::<AtomicPtr<u8>>())
        }
    }

    /// Returns the set of a key with this hash.
    fn set(self, hash: u64) -> &'g [AtomicPtr<u8>] {
        let places = self.places();
        let sets = (places.len() / WAYS) as u64;
        let set = (((hash & 0xFFFF_FFFF) * sets) >> 32) as usize;
        &places[set * WAYS..(set + 1) * WAYS]
    }
}

/// Returns the tag of a slot for a key with this hash, where addresses have room for it.
fn mark(hash: u64) -> tagged_ptr::Hint {
    (hash >> (u64::BITS - tagged_ptr::HINT_BITS)) as tagged_ptr::Hint
}

fn with_mark(node: *mut u8, hash: u64) -> *mut u8 {
    tagged_ptr::with_hint(node, mark(hash))
}

/// How much a hot record is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Use {
    uses: u32,
    reads: u32,
}

impl Default for Use {
    /// Of a record that becomes hot.
    fn default() -> Self {
        Self {
            uses: 0,
            reads: UNSURVEYED,
        }
    }
}

/// What a survey of the hot records found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Survey {
    /// Bytes held by the records and the table.
    pub held_bytes: u64,
    /// Mean size of a record; [`None`] if none was in the table since the survey before.
    pub mean_bytes: Option<u64>,
    /// Reads and bytes of the less read half of the records.
    pub least_reads: u64,
    pub least_bytes: u64,
}

/// The hot records of a tree.
pub(crate) struct HotRecords {
    /// Null where the tree has no hot records.
    table: AtomicPtr<u8>,
    /// Whether much of the budget is free, so that records should become hot sooner.
    is_filling: AtomicBool,
    /// Number of threads that clear the tree; changed with `budget_bytes` locked.
    suspended: AtomicU32,
    /// The memory limit of the records; locked by every thread that inserts a record or replaces the table.
    budget_bytes: Mutex<u64>,
}

impl Default for HotRecords {
    fn default() -> Self {
        Self {
            table: AtomicPtr::new(std::ptr::null_mut()),
            is_filling: AtomicBool::new(true),
            suspended: AtomicU32::new(0),
            budget_bytes: Mutex::new(0),
        }
    }
}

impl HotRecords {
    /// Overhead of a record in bytes, in addition to its key and value.
    pub(crate) const RECORD_BYTES: u64 = size_of::<EntryHeader>() as u64;

    fn table<'g>(&self, guard: &'g Guard<'_>) -> Option<HotTable<'g>> {
        // A table is retired after it was unlinked, and the guard protects it.
        NonNull::new(load(&self.table, guard)).map(|node| HotTable(node, PhantomData))
    }

    /// Returns whether there is a table, so that there may be hot records.
    pub(crate) fn has_table(&self, guard: &Guard<'_>) -> bool {
        self.table(guard).is_some()
    }

    /// Returns the value of a key, if it is hot.
    #[inline]
    pub(crate) fn find<'g>(&self, key: &[u8], hash: u64, guard: &'g Guard<'_>) -> Option<&'g [u8]> {
        let (_, _, entry) = place_of(self.table(guard)?, key, hash, guard)?;
        let uses = entry.uses();
        // Unconditional stores by all readers would move the cache line between cores.
        if uses < MAX_USES {
            entry.set_uses(uses + 1);
        }
        let reads = entry.header().reads.load(Ordering::Relaxed);
        if reads < MAX_READS {
            entry.header().reads.store(reads + 1, Ordering::Relaxed);
        }
        Some(entry.value())
    }

    /// Returns whether much of the budget is free.
    #[inline(always)]
    pub(crate) fn is_filling(&self) -> bool {
        self.is_filling.load(Ordering::Relaxed)
    }

    fn note_held(&self, held: u64, budget_bytes: u64) {
        self.is_filling
            .store(held < budget_bytes - budget_bytes / FULL, Ordering::Relaxed);
    }

    /// Returns whether a key is hot, without counting a read.
    pub(crate) fn contains(&self, key: &[u8], hash: u64, guard: &Guard<'_>) -> bool {
        let table = self.table(guard);
        table.is_some_and(|table| place_of(table, key, hash, guard).is_some())
    }

    /// Returns whether a record with this hash would be inserted now. If not, the use counters of the entries in its
    /// set are decremented: so the records stay that are read more often than others are refused (Misra and Gries,
    /// 1982).
    pub(crate) fn admits(&self, hash: u64, memory: &NodeHeap, guard: &Guard<'_>) -> bool {
        let Some(table) = self.table(guard) else {
            return false;
        };
        let entries = || table.set(hash).iter().map(|place| entry_at(place, guard));
        let is_unused = |entry: Option<HotRecord<'_>>| entry.is_some_and(|entry| entry.uses() == 0);
        if entries().any(is_unused) || (entries().any(|entry| entry.is_none()) && !self.is_full(memory)) {
            return true;
        }
        entries()
            .flatten()
            .for_each(|entry| entry.set_uses(entry.uses().saturating_sub(1)));
        false
    }

    /// Returns whether the records nearly use their budget, or another thread holds its lock.
    fn is_full(&self, memory: &NodeHeap) -> bool {
        let held = memory.live_of(Kind::Hot).1.max(0).cast_unsigned();
        self.budget_bytes
            .try_lock()
            .is_none_or(|budget_bytes| held + *budget_bytes / NEARLY_FULL >= *budget_bytes)
    }

    /// Inserts a record if there is a slot for it; returns whether it did. The caller holds the latch of the key's
    /// leaf, which has this value. `used` is that of a former copy, or the default.
    ///
    /// # Errors
    /// [`OutOfMemory`]; the record is not inserted.
    pub(crate) fn insert(
        &self,
        (key, value): (&[u8], &[u8]),
        hash: u64,
        used: Use,
        memory: &NodeHeap,
        guard: &Guard<'_>,
    ) -> Result<bool, OutOfMemory> {
        let (Some(budget_bytes), Some(table)) = (self.budget_bytes.try_lock(), self.table(guard)) else {
            return Ok(false);
        };
        if place_of(table, key, hash, guard).is_some() {
            return Ok(false);
        }
        let set = table.set(hash);
        let empty = set.iter().find(|place| load(place, guard).is_null());
        let unused = || {
            let mut places = set.iter();
            places.find(|place| entry_at(place, guard).is_some_and(|entry| entry.uses() == 0))
        };
        let bytes = size_of::<EntryHeader>() + key.len() + value.len();
        let held = || memory.live_of(Kind::Hot).1.max(0).cast_unsigned();
        let has_room = |held: u64| held + bytes as u64 <= *budget_bytes;
        let place = match empty {
            Some(place) if has_room(held()) => place,
            _ => match unused() {
                Some(place) => {
                    self.is_filling.store(false, Ordering::Relaxed);
                    take_out(place, guard);
                    // Two short records may have to be evicted for a long one: only one is evicted per attempt.
                    if !has_room(held()) {
                        return Ok(false);
                    }
                    place
                }
                None => return Ok(false),
            },
        };
        let node = new_entry(key, value, used, memory)?;
        place.store(with_mark(node.as_ptr(), hash), Ordering::Release);
        Ok(true)
    }

    /// Removes a key; returns how much its record was in use, if it was hot. The caller holds the latch of its leaf,
    /// and must call this before publishing the new value.
    pub(crate) fn remove(&self, key: &[u8], hash: u64, guard: &Guard<'_>) -> Option<Use> {
        let table = self.table(guard)?;
        let mut used = None;
        // Repeated, since the entry may be relocated concurrently.
        while let Some((place, word, entry)) = place_of(table, key, hash, guard) {
            let null = std::ptr::null_mut();
            if place
                .compare_exchange(word, null, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                used = Some(entry.used());
                retire(word, guard);
            }
        }
        used
    }

    /// Removes all entries and the table, and keeps records from becoming hot until [`HotRecords::resume`]: while a
    /// tree is cleared, a record may be copied from an old leaf that writers of the new leaves do not latch.
    pub(crate) fn suspend(&self, guard: &Guard<'_>) {
        let _budget = self.budget_bytes.lock();
        self.suspended.fetch_add(1, Ordering::Relaxed);
        if let Some(old) = self.table(guard) {
            self.table.store(std::ptr::null_mut(), Ordering::Release);
            old.places().iter().for_each(|place| take_out(place, guard));
            retire(old.0.as_ptr(), guard);
        }
    }

    /// Ends a suspension. The next call of [`HotRecords::set_budget`] makes a table.
    pub(crate) fn resume(&self) {
        let _budget = self.budget_bytes.lock();
        self.suspended.fetch_sub(1, Ordering::Relaxed);
    }

    /// Ages the entries: removes those whose use counter is zero, and halves those of the others. Returns whether
    /// entries remain.
    pub(crate) fn age(&self, guard: &Guard<'_>) -> bool {
        let _budget = self.budget_bytes.lock();
        let mut is_left = false;
        for place in self.table(guard).map_or(&[][..], HotTable::places) {
            match entry_at(place, guard) {
                Some(entry) if entry.uses() == 0 => take_out(place, guard),
                Some(entry) => {
                    entry.set_uses(entry.uses() / 2);
                    is_left = true;
                }
                None => {}
            }
        }
        is_left
    }

    /// Counts what the entries were read since the last survey, and ages those that were not read.
    ///
    /// # Errors
    /// [`OutOfMemory`]; nothing was aged.
    pub(crate) fn survey(&self, memory: &NodeHeap, guard: &Guard<'_>) -> Result<Survey, OutOfMemory> {
        let budget_bytes = self.budget_bytes.lock();
        let places = self.table(guard).map_or(&[][..], HotTable::places);
        let mut read = room_for(places.len())?;
        for place in places {
            let Some(entry) = entry_at(place, guard) else { continue };
            let reads = entry.header().reads.swap(0, Ordering::Relaxed);
            if reads == UNSURVEYED {
                continue;
            }
            read.push((reads, entry.bytes_held()));
            match (reads, entry.uses()) {
                (0, 0) => take_out(place, guard),
                (0, uses) => entry.set_uses(uses / 2),
                _ => {}
            }
        }
        let half = read.len() / 2;
        if half > 0 {
            read.select_nth_unstable(half);
        }
        let sum = |read: &[(u32, u64)]| {
            read.iter().fold((0, 0), |(all, held), (reads, bytes)| {
                (all + u64::from(*reads), held + bytes)
            })
        };
        let (least_reads, least_bytes) = sum(&read[..half]);
        let (_, bytes) = sum(&read);
        let held_bytes = memory.live_of(Kind::Hot).1.max(0).cast_unsigned();
        self.note_held(held_bytes, *budget_bytes);
        Ok(Survey {
            held_bytes,
            mean_bytes: bytes.checked_div(read.len() as u64),
            least_reads,
            least_bytes,
        })
    }

    /// Sets the budget in bytes, and the number of slots by the expected number of records. If the table is much too
    /// small or too large, it is replaced by an empty one; returns the records that were in the old one, as far as
    /// there is memory to name them.
    ///
    /// # Errors
    /// [`OutOfMemory`]; the old table stays.
    pub(crate) fn set_budget(
        &self,
        bytes: u64,
        records: u64,
        memory: &NodeHeap,
        guard: &Guard<'_>,
    ) -> Result<Vec<(Vec<u8>, Use)>, OutOfMemory> {
        let mut budget_bytes = self.budget_bytes.lock();
        *budget_bytes = bytes;
        if self.suspended.load(Ordering::Relaxed) > 0 {
            return Ok(Vec::new());
        }
        let sets = ((records as f64 * ROOM) as usize).div_ceil(WAYS).min(MAX_SETS);
        let old = self.table(guard);
        let now = old.map_or(0, |table| table.places().len() / WAYS);
        if sets <= now * RESIZED_AT && now <= sets * RESIZED_AT {
            self.shrink_to(bytes, memory, guard);
            self.note_held(memory.live_of(Kind::Hot).1.max(0).cast_unsigned(), bytes);
            return Ok(Vec::new());
        }
        let new = match sets {
            0 => std::ptr::null_mut(),
            sets => new_table(sets, memory)?.as_ptr(),
        };
        // A writer that still uses the old table leaves no stale copy in the new one: entries are inserted under the
        // latch that the writer holds.
        self.table.store(new, Ordering::Release);
        let mut were_hot = Vec::new();
        if let Some(old) = old {
            for place in old.places() {
                if let Some(entry) = entry_at(place, guard)
                    && let Ok(key) = copied(entry.key())
                {
                    // The others are hot again when they are read.
                    let _ = were_hot.try_push((key, entry.used()));
                }
                take_out(place, guard);
            }
            retire(old.0.as_ptr(), guard);
        }
        Ok(were_hot)
    }

    /// Removes the least used entries until the others are within the budget.
    fn shrink_to(&self, budget_bytes: u64, memory: &NodeHeap, guard: &Guard<'_>) {
        let places = self.table(guard).map_or(&[][..], HotTable::places);
        let mut held = memory.live_of(Kind::Hot).1.max(0).cast_unsigned();
        for uses in 0..=MAX_USES {
            for place in places {
                if held <= budget_bytes {
                    return;
                }
                if let Some(entry) = entry_at(place, guard).filter(|entry| entry.uses() <= uses) {
                    held = held.saturating_sub(entry.bytes_held());
                    take_out(place, guard);
                }
            }
        }
    }

    /// Moves entries to new memory, for defragmentation. Entries for which there is no memory stay.
    pub(crate) fn relocate(&self, memory: &NodeHeap, guard: &Guard<'_>) {
        let _budget = self.budget_bytes.lock();
        let Some(table) = self.table(guard) else { return };
        for place in table.places() {
            let word = load(place, guard);
            let Some(entry) = entry_at(place, guard) else { continue };
            let Ok(copy) = new_entry(entry.key(), entry.value(), entry.used(), memory) else {
                return;
            };
            let marked = tagged_ptr::with_hint(copy.as_ptr(), tagged_ptr::split(word).1);
            match place.compare_exchange(word, marked, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => retire(word, guard),
                // SAFETY: the copy was not published, since its original was removed meanwhile.
                Err(_) => unsafe { NodeHeap::free(copy) },
            }
        }
    }

    /// Returns the number of hot records.
    pub(crate) fn count(&self, memory: &NodeHeap) -> u64 {
        let table = u64::from(!self.table.load(Ordering::Relaxed).is_null());
        memory.live_of(Kind::Hot).0.max(0).cast_unsigned().saturating_sub(table)
    }

    /// Frees all entries and the table.
    ///
    /// # Safety
    /// No other thread uses the tree, now or later.
    pub(crate) unsafe fn free(&self, guard: &Guard<'_>) {
        let Some(table) = self.table(guard) else { return };
        for place in table.places() {
            let node = tagged_ptr::address(place.swap(std::ptr::null_mut(), Ordering::AcqRel));
            if let Some(node) = NonNull::new(node) {
                // SAFETY: the caller has exclusive access to the tree, and only this slot pointed to the entry.
                unsafe { NodeHeap::free(node) };
            }
        }
        if let Some(node) = NonNull::new(self.table.swap(std::ptr::null_mut(), Ordering::AcqRel)) {
            // SAFETY: the caller has exclusive access to the tree, and the table is not used afterwards.
            unsafe { NodeHeap::free(node) };
        }
    }
}

/// Allocates a copy of a record that is not published yet.
fn new_entry(key: &[u8], value: &[u8], used: Use, memory: &NodeHeap) -> Result<NonNull<u8>, OutOfMemory> {
    let bytes = size_of::<EntryHeader>() + key.len() + value.len();
    // SAFETY: the tree's memory outlives the table's entries; header, key and value are written into the room allocated
    // for them.
    unsafe {
        let node = memory.allocate(bytes, Kind::Hot)?;
        let header = node.cast::<EntryHeader>().as_ptr();
        (&raw mut (*header).key_len).write(key.len() as u32);
        (&raw mut (*header).value_len).write(value.len() as u32);
        (&raw mut (*header).uses).write(AtomicU32::new(used.uses));
        (&raw mut (*header).reads).write(AtomicU32::new(used.reads));
        let behind = node.as_ptr().add(size_of::<EntryHeader>());
        behind.copy_from_nonoverlapping(key.as_ptr(), key.len());
        behind
            .add(key.len())
            .copy_from_nonoverlapping(value.as_ptr(), value.len());
        Ok(node)
    }
}

fn new_table(sets: usize, memory: &NodeHeap) -> Result<NonNull<u8>, OutOfMemory> {
    let places = sets * WAYS;
    let bytes = size_of::<NodeHeader>() + places * size_of::<AtomicPtr<u8>>();
    // SAFETY: the tree's memory outlives its table; each slot is written into the room allocated for it.
    unsafe {
        let node = memory.allocate(bytes, Kind::Hot)?;
        let first = node.add(size_of::<NodeHeader>()).cast::<AtomicPtr<u8>>();
        for index in 0..places {
            first.add(index).write(AtomicPtr::new(std::ptr::null_mut()));
        }
        Ok(node)
    }
}

/// Returns the entry in a slot.
fn entry_at<'g>(place: &AtomicPtr<u8>, guard: &'g Guard<'_>) -> Option<HotRecord<'g>> {
    let node = NonNull::new(tagged_ptr::address(load(place, guard)))?;
    // SAFETY: an entry is retired after its slot was cleared, and the guard protects it.
    Some(unsafe { HotRecord::from_node(node) })
}

/// Returns the slot of a key, the slot's word, and the entry.
#[inline]
fn place_of<'g>(
    table: HotTable<'g>,
    key: &[u8],
    hash: u64,
    guard: &'g Guard<'_>,
) -> Option<(&'g AtomicPtr<u8>, *mut u8, HotRecord<'g>)> {
    table.set(hash).iter().find_map(|place| {
        let word = load(place, guard);
        let node = NonNull::new(tagged_ptr::address(word))?;
        if with_mark(node.as_ptr(), hash) != word {
            return None;
        }
        // SAFETY: an entry is retired after its slot was cleared, and the guard protects it.
        let entry = unsafe { HotRecord::from_node(node) };
        (entry.key() == key).then_some((place, word, entry))
    })
}

fn take_out(place: &AtomicPtr<u8>, guard: &Guard<'_>) {
    retire(place.swap(std::ptr::null_mut(), Ordering::AcqRel), guard);
}

/// Retires the entry that a slot's word pointed to. The thread that removed the word calls this once.
fn retire(word: *mut u8, guard: &Guard<'_>) {
    if let Some(node) = NonNull::new(tagged_ptr::address(word)) {
        // SAFETY: no slot points to the node any more.
        unsafe { NodeHeap::retire(node, guard) };
    }
}

#[cfg(test)]
mod tests;
